//! Images of instances.
//!
//! Owns how they are marked, and how a repeated request finds the image of the first one: an image name is unique in an account, and a
//! tag says which instance an image was created from.

mod delete;

use fleetwright::{
    CloudInstanceState, Effect, ImageId, InstanceId, Operation, Result, RetryAdvice,
    SnapshotRequest,
};
use fleetwright_provider_support::{ReadInstances as _, read_until};
use futures_util::future::BoxFuture;

use crate::{Ec2Provisioner, convert, error::Failure};

/// The tag of an image with the id of the instance that it was created from.
const SOURCE_TAG: &str = "fleetwright:source";

impl Ec2Provisioner {
    /// Creates an image with the requested name, or returns the existing one if it was created from the same
    /// instance.
    ///
    /// # Errors
    ///
    /// A conflict if an image of that name was created from something else.
    pub(crate) async fn create_snapshot_image(
        &self,
        id: &InstanceId,
        request: &SnapshotRequest,
    ) -> Result<ImageId> {
        let operation = Operation::SnapshotImage;
        let call = self.call(operation);
        let states = [CloudInstanceState::Running, CloudInstanceState::Stopped];
        self.describe_in_state(operation, id, &states, "running or stopped")
            .await?;
        let error = |failure: Failure| failure.into_error(&call, self.error_context(id));
        let find = || -> BoxFuture<'_, Result<Option<String>>> {
            Box::pin(async {
                let found = self.client.find_image(&request.name, SOURCE_TAG).await;
                let found = found.map_err(|failure| error(failure).with_effect(Effect::None))?;
                match found {
                    Some((image, source)) if source.as_deref() == Some(id.as_str()) => {
                        Ok(Some(image))
                    }
                    Some(_) => {
                        let message = format!(
                            "an image with the name {} exists and was not created from {id}; choose another name",
                            request.name
                        );
                        Err(call.conflict(&message, RetryAdvice::Never))
                    }
                    None => Ok(None),
                }
            })
        };
        let name = match find().await? {
            Some(image) => image,
            None => {
                let mut tags = convert::native_tags(&request.tags);
                // A deletion adds a tag to the snapshots, so they must not have as many as the image.
                let snapshot_tags = tags.clone();
                tags.push(convert::native_tag(SOURCE_TAG, id.as_str()));
                let created = self
                    .client
                    .create_image(id, &request.name, tags, snapshot_tags)
                    .await;
                match created {
                    // Another attempt has created it since the first lookup, or that lookup was stale.
                    Err(failure) if failure.code() == "InvalidAMIName.Duplicate" => {
                        let image = read_until(&self.capabilities, find, Option::is_some).await?;
                        image.ok_or_else(|| error(failure))?
                    }
                    created => {
                        let no_id =
                            || call.unexpected(Effect::Unknown, "EC2 returned an image without id");
                        created.map_err(error)?.ok_or_else(no_id)?
                    }
                }
            }
        };
        ImageId::new(name).map_err(|error| call.unexpected(Effect::Done, &error.to_string()))
    }
}
