//! EC2's calls, one method each. The only file that uses the SDK's client of EC2.
//!
//! Owns the parameters of every call. It retries nothing: the SDK's own retries are off, because the layers
//! above decide what may be retried, and when.
//!
//! Every method sends one native call, except the reads of all pages. Every method fails with a
//! [`Failure`], which never contains a header, a body or the SDK's own text: those may hold secrets.

use aws_sdk_ec2::{
    Client,
    config::{Builder, retry::RetryConfig, timeout::TimeoutConfig},
    types::{
        AttributeValue, Filter, Image, Instance, Reservation, ResourceType, Tag, TagSpecification,
    },
};
use fleetwright::{InstanceId, Tags};

use crate::{
    convert,
    error::{Cause, Failure},
    plan::Plan,
    send::{CompleteResponses, NoteSent, send},
};

/// A page of instances, and the token of the next page; `None` after the last one.
pub(crate) type Page = (Vec<Instance>, Option<String>);

/// The result of a native call.
type Response<T> = Result<T, Failure>;

/// EC2 in one region.
#[derive(Clone, Debug)]
pub(crate) struct Ec2Client {
    sdk: Client,
}

impl Ec2Client {
    /// Creates a client without the SDK's retries. `timeouts` limit one call, connecting included. A
    /// connection that takes longer than its own limit fails as a timeout.
    pub(crate) fn new(config: Builder, timeouts: TimeoutConfig) -> Self {
        let config = config
            .interceptor(NoteSent)
            .interceptor(CompleteResponses)
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeouts)
            .build();
        Self {
            sdk: Client::from_conf(config),
        }
    }

    /// Launches instances: exactly `plan.count`, or none, because minimum and maximum are the same.
    pub(crate) async fn run(&self, plan: Plan) -> Response<Vec<Instance>> {
        let call = self
            .sdk
            .run_instances()
            .image_id(plan.image)
            .instance_type(plan.instance_type.as_str().into())
            .min_count(plan.count)
            .max_count(plan.count)
            .set_client_token(plan.client_token)
            .set_user_data(plan.user_data)
            .set_tag_specifications(Some(plan.tags))
            .set_block_device_mappings(
                (!plan.block_devices.is_empty()).then_some(plan.block_devices),
            )
            .set_key_name(plan.key_pair)
            .set_iam_instance_profile(plan.instance_profile)
            .metadata_options(plan.metadata)
            .instance_initiated_shutdown_behavior(plan.shutdown)
            .set_instance_market_options(plan.market)
            .set_placement(plan.placement)
            .set_subnet_id(plan.subnet)
            .set_security_group_ids(
                (!plan.security_groups.is_empty()).then_some(plan.security_groups),
            )
            .set_network_interfaces(plan.network_card.map(|card| vec![card]));
        let output = send(call.send()).await;
        output.map(|output| output.instances.unwrap_or_default())
    }

    /// Reads instances by id. Fails if EC2 does not know one of them.
    pub(crate) async fn describe(&self, ids: &[InstanceId]) -> Response<Vec<Instance>> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            // With ids, EC2 allows no page size. It may still split its response into pages.
            let call = self
                .sdk
                .describe_instances()
                .set_instance_ids(Some(names(ids)));
            let output = send(call.set_next_token(after.clone()).send()).await?;
            all.extend(instances(output.reservations));
            match next_token(after.as_deref(), output.next_token)? {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// Reads all instances that `filters` select, page by page.
    pub(crate) async fn list(&self, filters: &[Filter], size: usize) -> Response<Vec<Instance>> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let (page, next) = self.page(filters.to_vec(), size, after).await?;
            all.extend(page);
            match next {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// Reads one page of the instances that `filters` select. `size` is EC2's page size, 5 to 1,000.
    pub(crate) async fn page(
        &self,
        filters: Vec<Filter>,
        size: usize,
        after: Option<String>,
    ) -> Response<Page> {
        let call = self
            .sdk
            .describe_instances()
            .set_filters((!filters.is_empty()).then_some(filters))
            .max_results(i32::try_from(size).unwrap_or(1000))
            .set_next_token(after.clone());
        let output = send(call.send()).await?;
        let next = next_token(after.as_deref(), output.next_token)?;
        Ok((instances(output.reservations), next))
    }

    /// Terminates all of `ids`, or none.
    pub(crate) async fn terminate(&self, ids: &[InstanceId]) -> Response<()> {
        let call = self
            .sdk
            .terminate_instances()
            .set_instance_ids(Some(names(ids)));
        send(call.send()).await.map(drop)
    }

    /// Stops all of `ids`, or none.
    pub(crate) async fn stop(&self, ids: &[InstanceId]) -> Response<()> {
        let call = self.sdk.stop_instances().set_instance_ids(Some(names(ids)));
        send(call.send()).await.map(drop)
    }

    /// Starts all of `ids`, or none.
    pub(crate) async fn start(&self, ids: &[InstanceId]) -> Response<()> {
        let call = self
            .sdk
            .start_instances()
            .set_instance_ids(Some(names(ids)));
        send(call.send()).await.map(drop)
    }

    /// Reboots an instance. EC2 only queues it.
    pub(crate) async fn reboot(&self, id: &InstanceId) -> Response<()> {
        let call = self.sdk.reboot_instances().instance_ids(id.as_str());
        send(call.send()).await.map(drop)
    }

    /// Changes the type of a stopped instance.
    pub(crate) async fn resize(&self, id: &InstanceId, to: &str) -> Response<()> {
        let call = self
            .sdk
            .modify_instance_attribute()
            .instance_id(id.as_str());
        let call = call.instance_type(AttributeValue::builder().value(to).build());
        send(call.send()).await.map(drop)
    }

    /// Adds tags to all of `resources`, or none, and replaces the values of existing ones.
    pub(crate) async fn set_tags(&self, resources: &[String], tags: &Tags) -> Response<()> {
        let call = self.sdk.create_tags();
        let call = call.set_resources(Some(resources.to_vec()));
        let call = call.set_tags(Some(convert::native_tags(tags)));
        send(call.send()).await.map(drop)
    }

    /// Adds one tag to all of `resources`, or none.
    pub(crate) async fn add_tag(&self, resources: &[String], tag: Tag) -> Response<()> {
        let call = self.sdk.create_tags();
        let call = call.set_resources(Some(resources.to_vec())).tags(tag);
        send(call.send()).await.map(drop)
    }

    /// Removes tags of all of `resources`, or none. A key that a resource does not have is ignored.
    pub(crate) async fn remove_tags<'k>(
        &self,
        resources: &[String],
        keys: impl IntoIterator<Item = &'k String> + Send,
    ) -> Response<()> {
        let tags = keys
            .into_iter()
            .map(|key| Tag::builder().key(key).build())
            .collect();
        let call = self.sdk.delete_tags();
        let call = call.set_resources(Some(resources.to_vec()));
        send(call.set_tags(Some(tags)).send()).await.map(drop)
    }

    /// Reads the console output in base64, and the time of its capture. Both are missing until EC2
    /// has captured something.
    pub(crate) async fn console_output(
        &self,
        id: &InstanceId,
    ) -> Response<(Option<String>, Option<aws_sdk_ec2::primitives::DateTime>)> {
        let call = self.sdk.get_console_output().instance_id(id.as_str());
        let output = send(call.send()).await?;
        Ok((output.output, output.timestamp))
    }

    /// Returns the device name of an image's root disk, if the image exists.
    pub(crate) async fn root_device(&self, image: &str) -> Response<Option<String>> {
        let call = self.sdk.describe_images().image_ids(image);
        let output = send(call.send()).await?;
        let image = output.images.unwrap_or_default().into_iter().next();
        Ok(image.and_then(|image| image.root_device_name))
    }

    /// Returns the account's own image with this name: its id and the value of its `tag`. Names are
    /// unique in an account and a region.
    pub(crate) async fn find_image(
        &self,
        name: &str,
        tag: &str,
    ) -> Response<Option<(String, Option<String>)>> {
        let call = self.sdk.describe_images().owners("self");
        let call = call.filters(convert::value_filter("name", &convert::literal(name)));
        let output = send(call.send()).await?;
        let image = output.images.unwrap_or_default().into_iter().next();
        Ok(image.and_then(|image| {
            let source = image.tags().iter().find(|one| one.key() == Some(tag));
            let source = source.and_then(|tag| tag.value()).map(ToOwned::to_owned);
            image.image_id.map(|id| (id, source))
        }))
    }

    /// Creates an image and returns its id. The instance is not rebooted, so its file systems are as
    /// after a power failure.
    pub(crate) async fn create_image(
        &self,
        id: &InstanceId,
        name: &str,
        tags: Vec<Tag>,
        snapshot_tags: Vec<Tag>,
    ) -> Response<Option<String>> {
        // EC2 refuses an empty list of tags.
        let tagged = |kind, tags: Vec<Tag>| {
            let specification = TagSpecification::builder().resource_type(kind);
            (!tags.is_empty()).then(|| specification.set_tags(Some(tags)).build())
        };
        let image = tagged(ResourceType::Image, tags);
        let snapshots = tagged(ResourceType::Snapshot, snapshot_tags);
        let call = self
            .sdk
            .create_image()
            .instance_id(id.as_str())
            .name(name)
            .no_reboot(true)
            .set_tag_specifications(Some(image.into_iter().chain(snapshots).collect()));
        send(call.send()).await.map(|output| output.image_id)
    }

    /// Returns the image with this id, of whichever account.
    pub(crate) async fn image(&self, image: &str) -> Response<Option<Image>> {
        let call = self.sdk.describe_images().image_ids(image);
        // A deprecated or disabled image can be deregistered, too.
        let call = call.include_deprecated(true).include_disabled(true);
        let output = send(call.send()).await?;
        Ok(output.images.unwrap_or_default().into_iter().next())
    }

    /// Returns whether an image of the account uses a snapshot.
    pub(crate) async fn is_snapshot_used(&self, snapshot: &str) -> Response<bool> {
        let call = self.sdk.describe_images().owners("self");
        let filter = convert::value_filter("block-device-mapping.snapshot-id", snapshot);
        let call = call
            .filters(filter)
            .include_deprecated(true)
            .include_disabled(true);
        let output = send(call.send()).await?;
        Ok(!output.images.unwrap_or_default().is_empty())
    }

    /// Deregisters an image. Its snapshots remain.
    pub(crate) async fn deregister_image(&self, image: &str) -> Response<()> {
        let call = self.sdk.deregister_image().image_id(image);
        send(call.send()).await.map(drop)
    }

    /// Returns the ids of the account's snapshots with a tag.
    pub(crate) async fn snapshots_with_tag(&self, key: &str, value: &str) -> Response<Vec<String>> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let call = self.sdk.describe_snapshots().owner_ids("self");
            let call = call.filters(convert::value_filter(
                &format!("tag:{key}"),
                &convert::literal(value),
            ));
            let output = send(call.set_next_token(after.clone()).send()).await?;
            let found = output.snapshots.unwrap_or_default().into_iter();
            all.extend(found.filter_map(|snapshot| snapshot.snapshot_id));
            match next_token(after.as_deref(), output.next_token)? {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// Deletes a snapshot.
    pub(crate) async fn delete_snapshot(&self, snapshot: &str) -> Response<()> {
        let call = self.sdk.delete_snapshot().snapshot_id(snapshot);
        send(call.send()).await.map(drop)
    }
}

/// Returns the instances of all reservations. A reservation is one launch.
fn instances(reservations: Option<Vec<Reservation>>) -> Vec<Instance> {
    let mut reservations = reservations.unwrap_or_default().into_iter();
    let Some(first) = reservations.next() else {
        return Vec::new();
    };
    // The SDK's type is large: the list of a single launch is returned as it is.
    let mut all = first.instances.unwrap_or_default();
    let others = reservations.as_slice().iter();
    all.reserve_exact(others.map(|one| one.instances().len()).sum());
    for reservation in reservations {
        all.extend(reservation.instances.unwrap_or_default());
    }
    all
}

/// Returns the token of the page that follows the one requested with `after`. A token that leads back to the
/// same page is an error: following it would never end.
fn next_token(after: Option<&str>, next: Option<String>) -> Response<Option<String>> {
    let next = next.filter(|token| !token.is_empty());
    if next.is_some() && next.as_deref() == after {
        let message = "the token of a page leads back to the same page";
        return Err(Failure::new(Cause::Unreadable, message));
    }
    Ok(next)
}

/// Returns ids as the SDK wants them.
fn names(ids: &[InstanceId]) -> Vec<String> {
    ids.iter().map(|id| id.as_str().to_owned()).collect()
}
