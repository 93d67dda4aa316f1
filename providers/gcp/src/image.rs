//! Deleting images.
//!
//! Owns which images may be deleted: those of this project whose label says that a snapshot created them. An image
//! contains its data, so nothing is left of a deleted one.

use fleetwright::{Call, ImageId, Operation, Result, RetryAdvice};
use fleetwright_provider_support::read_if_exists;
use futures_util::future::BoxFuture;
use google_cloud_compute_v1::model::image::Status;

use crate::{
    GcpProvisioner, address,
    client::OperationScope,
    error::{Cause, ErrorContext, Failure, GcpFailure as _},
    history,
    verbs::SOURCE_LABEL,
};

impl GcpProvisioner {
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
        let found = read_if_exists(&self.capabilities, read, Failure::is_not_found, to_error);
        let Some(native) = found.await? else {
            return Ok(());
        };
        if !native.labels.contains_key(SOURCE_LABEL) {
            return Err(not_ours(&call, image));
        }
        if native.status == Some(Status::Pending) {
            let message = format!("{image} is still being created; retry when it is ready");
            let retry = RetryAdvice::After(self.capabilities.poll_interval);
            return Err(call.conflict(&message, retry));
        }
        let operation = match self.client.delete_image(name).await {
            Ok(operation) => operation,
            // Deleted since it was read.
            Err(failure) if failure.is_not_found() => return Ok(()),
            Err(failure) => return Err(to_error(failure)),
        };
        let timeout = self.options.call_timeout;
        let ended = self.await_operation(OperationScope::Global, operation, timeout);
        let ended = ended.await;
        match history::failure(&ended) {
            Some(failure) if failure.is_not_found() => Ok(()),
            Some(failure) => Err(to_error(failure)),
            None if history::is_over(&ended) => Ok(()),
            None => {
                let failure = Failure::new(Cause::TimedOut, "the deletion did not end in time");
                Err(to_error(failure.with_request_id(ended.name)))
            }
        }
    }

    /// Returns the name of an image of this project. An image family, and an image of another project, is `None`.
    fn own_image<'a>(&self, image: &'a ImageId) -> Option<&'a str> {
        let text = image.as_str();
        let name = match text.rsplit_once("projects/") {
            None => text.strip_prefix("global/images/").unwrap_or(text),
            Some((_, path)) => {
                let path = path.strip_prefix(self.client.project())?;
                path.strip_prefix("/global/images/")?
            }
        };
        address::is_name(name).then_some(name)
    }
}

/// Returns the refusal of an image that no snapshot created.
fn not_ours(call: &Call, image: &ImageId) -> fleetwright::ProvisionError {
    let message = format!(
        "{image} is not an image of this project with the label {SOURCE_LABEL}, so snapshot_image did not create it and it \
         is not deleted; check the id"
    );
    call.conflict(&message, RetryAdvice::Never)
}
