//! Deleting images.
//!
//! Owns which images may be deleted: those of the resource group whose tag says that a snapshot created them. An image
//! contains its data, so nothing is left of a deleted one.

use fleetwright::{Call, ImageId, Operation, Result, RetryAdvice};
use fleetwright_provider_support::read_if_exists;
use futures_util::future::BoxFuture;

use crate::{
    AzureProvisioner, address,
    error::{AzureFailure as _, ErrorContext, Failure},
    tags,
};

impl AzureProvisioner {
    /// Deletes an image of a snapshot, and waits until that is done. One that does not exist counts as deleted.
    ///
    /// # Errors
    ///
    /// A conflict if no snapshot created the image, or if it is still being created.
    pub(crate) async fn delete_created_image(&self, image: &ImageId) -> Result<()> {
        let call = self.call(Operation::DeleteImage);
        let to_error = |failure: Failure| failure.into_error(&call, ErrorContext::default());
        let name = self
            .own_image(image)
            .ok_or_else(|| not_ours(&call, image))?;
        let read = || -> BoxFuture<'_, _> { Box::pin(self.client.image(name)) };
        let is_missing = |failure: &Failure| failure.is_not_found() && !failure.is_group_missing();
        let found = read_if_exists(&self.capabilities, read, is_missing, to_error).await?;
        let Some(native) = found else {
            return Ok(());
        };
        if tags::value(&native.tags, tags::SOURCE).is_none() {
            return Err(not_ours(&call, image));
        }
        if native.provisioning.as_deref() == Some("Creating") {
            let message = format!("{image} is still being created; retry when that has ended");
            let retry = RetryAdvice::After(self.capabilities.poll_interval);
            return Err(call.conflict(&message, retry));
        }
        match self.client.delete_image(name).await {
            Ok(Some(started)) => self.await_change(started).await.map_err(to_error),
            Ok(None) => Ok(()),
            Err(failure) => Err(to_error(failure)),
        }
    }

    /// Returns the name of an image of the resource group. An image of the marketplace, of a gallery or of another group
    /// is `None`. Azure compares paths without regard to case.
    fn own_image<'a>(&self, image: &'a ImageId) -> Option<&'a str> {
        let text = image.as_str();
        let (group, name) = text.rsplit_once('/')?;
        let ours = format!(
            "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Compute/images",
            self.client.subscription(),
            self.client.group(),
        );
        (group.eq_ignore_ascii_case(&ours) && address::is_name(name)).then_some(name)
    }
}

/// Returns the refusal of an image that no snapshot created.
fn not_ours(call: &Call, image: &ImageId) -> fleetwright::ProvisionError {
    let message = format!(
        "{image} is not an image of this resource group with the tag {}, so snapshot_image did not create it and it is \
         not deleted; check the id",
        tags::SOURCE
    );
    call.conflict(&message, RetryAdvice::Never)
}
