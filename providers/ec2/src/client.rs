//! EC2's calls, one method each. The only file that names the SDK's client.
//!
//! Owns how a call is sent and how its failure is read. It repeats nothing: the SDK's own retries are
//! off, because what may be repeated, and when, is decided in one place above.

use std::time::Duration;

use aws_sdk_ec2::{
    Client,
    config::{
        Builder, ConfigBag, Intercept, RuntimeComponents, http::HttpResponse,
        interceptors::AfterDeserializationInterceptorContextRef, retry::RetryConfig,
        timeout::TimeoutConfig,
    },
    error::{BoxError, ProvideErrorMetadata, SdkError},
    operation::RequestId as _,
    types::{AttributeValue, Filter, Instance, Reservation, ResourceType, Tag, TagSpecification},
};
use fleetwright::{InstanceId, Tags};

use crate::{
    convert,
    error::{Cause, Failure},
    plan::Plan,
};

/// A page of instances, and the token of the next one.
pub(crate) type Page = (Vec<Instance>, Option<String>);

type Answer<T> = Result<T, Failure>;

/// EC2 in one region.
#[derive(Clone, Debug)]
pub(crate) struct Ec2Client {
    sdk: Client,
}

impl Ec2Client {
    /// A client of `config`, without the SDK's retries. A call may take `patience` at most.
    pub(crate) fn new(config: Builder, patience: Duration) -> Self {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(patience.min(Duration::from_secs(5)))
            .operation_timeout(patience)
            .build();
        let config = config
            .interceptor(WholeAnswers)
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeouts)
            .build();
        Self {
            sdk: Client::from_conf(config),
        }
    }

    pub(crate) async fn run(&self, plan: Plan) -> Answer<Vec<Instance>> {
        let sent = self
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
            .set_network_interfaces(plan.network_card.map(|card| vec![card]))
            .send()
            .await;
        sent.map(|output| output.instances.unwrap_or_default())
            .map_err(failure)
    }

    /// Every one of `ids`, or a failure if EC2 does not know one of them.
    pub(crate) async fn describe(&self, ids: &[InstanceId]) -> Answer<Vec<Instance>> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            // With ids, EC2 takes no page size; it may still cut the answer.
            let call = self
                .sdk
                .describe_instances()
                .set_instance_ids(Some(names(ids)));
            let output = call
                .set_next_token(after.clone())
                .send()
                .await
                .map_err(failure)?;
            all.extend(instances(output.reservations));
            match onward(after.as_deref(), output.next_token)? {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// Everything that `filters` select, page by page.
    pub(crate) async fn all(&self, filters: &[Filter], size: usize) -> Answer<Vec<Instance>> {
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

    /// One page of what `filters` select.
    pub(crate) async fn page(
        &self,
        filters: Vec<Filter>,
        size: usize,
        after: Option<String>,
    ) -> Answer<Page> {
        let call = self
            .sdk
            .describe_instances()
            .set_filters((!filters.is_empty()).then_some(filters))
            .max_results(i32::try_from(size).unwrap_or(1000))
            .set_next_token(after.clone());
        let output = call.send().await.map_err(failure)?;
        let next = onward(after.as_deref(), output.next_token)?;
        Ok((instances(output.reservations), next))
    }

    pub(crate) async fn terminate(&self, ids: &[InstanceId]) -> Answer<()> {
        let call = self
            .sdk
            .terminate_instances()
            .set_instance_ids(Some(names(ids)));
        call.send().await.map(drop).map_err(failure)
    }

    pub(crate) async fn stop(&self, ids: &[InstanceId]) -> Answer<()> {
        let call = self.sdk.stop_instances().set_instance_ids(Some(names(ids)));
        call.send().await.map(drop).map_err(failure)
    }

    pub(crate) async fn start(&self, ids: &[InstanceId]) -> Answer<()> {
        let call = self
            .sdk
            .start_instances()
            .set_instance_ids(Some(names(ids)));
        call.send().await.map(drop).map_err(failure)
    }

    pub(crate) async fn reboot(&self, id: &InstanceId) -> Answer<()> {
        let call = self.sdk.reboot_instances().instance_ids(id.as_str());
        call.send().await.map(drop).map_err(failure)
    }

    pub(crate) async fn resize(&self, id: &InstanceId, to: &str) -> Answer<()> {
        let call = self
            .sdk
            .modify_instance_attribute()
            .instance_id(id.as_str());
        let call = call.instance_type(AttributeValue::builder().value(to).build());
        call.send().await.map(drop).map_err(failure)
    }

    pub(crate) async fn set_tags(&self, id: &InstanceId, tags: &Tags) -> Answer<()> {
        let call = self.sdk.create_tags().resources(id.as_str());
        let call = call.set_tags(Some(convert::native_tags(tags)));
        call.send().await.map(drop).map_err(failure)
    }

    pub(crate) async fn remove_tags<'k>(
        &self,
        id: &InstanceId,
        keys: impl IntoIterator<Item = &'k String> + Send,
    ) -> Answer<()> {
        let tags = keys
            .into_iter()
            .map(|key| Tag::builder().key(key).build())
            .collect();
        let call = self
            .sdk
            .delete_tags()
            .resources(id.as_str())
            .set_tags(Some(tags));
        call.send().await.map(drop).map_err(failure)
    }

    /// What the console wrote, in base64, and when.
    pub(crate) async fn console(
        &self,
        id: &InstanceId,
    ) -> Answer<(Option<String>, Option<aws_sdk_ec2::primitives::DateTime>)> {
        let call = self.sdk.get_console_output().instance_id(id.as_str());
        let output = call.send().await.map_err(failure)?;
        Ok((output.output, output.timestamp))
    }

    /// The device name of an image's root disk, if the image exists.
    pub(crate) async fn root_device(&self, image: &str) -> Answer<Option<String>> {
        let output = self
            .sdk
            .describe_images()
            .image_ids(image)
            .send()
            .await
            .map_err(failure)?;
        let image = output.images.unwrap_or_default().into_iter().next();
        Ok(image.and_then(|image| image.root_device_name))
    }

    /// An own image of this name: its id, and the instance it says it was made of.
    pub(crate) async fn image_named(
        &self,
        name: &str,
        tag: &str,
    ) -> Answer<Option<(String, Option<String>)>> {
        let call = self.sdk.describe_images().owners("self");
        let call = call.filters(convert::of_one("name", &convert::literal(name)));
        let output = call.send().await.map_err(failure)?;
        let image = output.images.unwrap_or_default().into_iter().next();
        Ok(image.and_then(|image| {
            let source = image.tags().iter().find(|one| one.key() == Some(tag));
            let source = source.and_then(|tag| tag.value()).map(ToOwned::to_owned);
            image.image_id.map(|id| (id, source))
        }))
    }

    /// Makes an image, without rebooting the instance.
    pub(crate) async fn make_image(
        &self,
        id: &InstanceId,
        name: &str,
        tags: Vec<Tag>,
    ) -> Answer<Option<String>> {
        let of = |kind| {
            TagSpecification::builder()
                .resource_type(kind)
                .set_tags(Some(tags.clone()))
                .build()
        };
        let call = self
            .sdk
            .create_image()
            .instance_id(id.as_str())
            .name(name)
            .no_reboot(true)
            .tag_specifications(of(ResourceType::Image))
            .tag_specifications(of(ResourceType::Snapshot));
        call.send()
            .await
            .map(|output| output.image_id)
            .map_err(failure)
    }
}

/// Refuses answers that end in the middle. The SDK reads XML as far as it goes, and would take the half
/// of a list for the whole of it.
#[derive(Debug)]
struct WholeAnswers;

impl Intercept for WholeAnswers {
    fn name(&self) -> &'static str {
        "WholeAnswers"
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let answer = context.response();
        let body = answer.body().bytes().unwrap_or_default();
        if answer.status().is_success() && !body.trim_ascii_end().ends_with(b"Response>") {
            return Err("the answer ends in the middle".into());
        }
        Ok(())
    }
}

fn instances(reservations: Option<Vec<Reservation>>) -> Vec<Instance> {
    let reservations = reservations.unwrap_or_default().into_iter();
    reservations
        .flat_map(|one| one.instances.unwrap_or_default())
        .collect()
}

/// The token of the page after the one that was asked for with `after`. One that leads back to the same
/// page would have us go in circles, or miss what comes after it.
fn onward(after: Option<&str>, next: Option<String>) -> Answer<Option<String>> {
    let next = next.filter(|token| !token.is_empty());
    if next.is_some() && next.as_deref() == after {
        let message = "the token of a page leads back to the same page";
        return Err(Failure::new(Cause::Unreadable, message));
    }
    Ok(next)
}

fn names(ids: &[InstanceId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

/// What the SDK's error says, without what it carries: headers and bodies stay here.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` takes")]
fn failure<E: ProvideErrorMetadata + std::error::Error + 'static>(
    error: SdkError<E, HttpResponse>,
) -> Failure {
    let request_id = error.request_id().map(ToOwned::to_owned);
    let header = error
        .raw_response()
        .and_then(|raw| raw.headers().get("retry-after"));
    let retry_after = header
        .and_then(|text| text.trim().parse().ok())
        .map(Duration::from_secs);
    let (cause, message) = match &error {
        SdkError::ServiceError(service) => {
            let status = service.raw().status().as_u16();
            let message = error.message().unwrap_or("EC2 gives no reason").to_owned();
            (Cause::Responded(status), message)
        }
        SdkError::TimeoutError(_) => (Cause::TimedOut, String::new()),
        SdkError::DispatchFailure(failed) if failed.is_timeout() => {
            (Cause::TimedOut, String::new())
        }
        SdkError::DispatchFailure(failed) if failed.is_user() => not_sent(&error),
        SdkError::DispatchFailure(_) => (
            Cause::Disconnected,
            "the connection to EC2 failed".to_owned(),
        ),
        SdkError::ResponseError(_) => (Cause::Unreadable, "EC2's answer cannot be read".to_owned()),
        SdkError::ConstructionFailure(_) => not_sent(&error),
        _ => (
            Cause::Unreadable,
            "the SDK failed in a way that is not known here".to_owned(),
        ),
    };
    Failure::new(cause, message)
        .with_code(error.code().unwrap_or_default())
        .with_request_id(request_id)
        .with_retry_after(retry_after)
}

/// Nothing was sent: for want of credentials, or for another reason that has no secret in it.
fn not_sent<E, R>(error: &SdkError<E, R>) -> (Cause, String)
where
    SdkError<E, R>: std::error::Error,
{
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        let text = inner.to_string();
        if text.contains("credential") || text.contains("identity") {
            let message = "no credentials were found for EC2; see the chain that aws-config tries";
            return (Cause::NoCredentials, message.to_owned());
        }
        source = inner.source();
    }
    (Cause::NotSent, "the request could not be built".to_owned())
}
