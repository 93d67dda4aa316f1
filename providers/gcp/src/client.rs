//! Compute Engine's calls, one method each. The only file that names the SDK's clients.
//!
//! Owns how a call is sent and how its failure is read. It repeats nothing: the SDK's own retries and
//! pollers are off, because what may be repeated, and when, is decided in one place above.

use std::time::Duration;

use chrono::{DateTime, Utc};
use google_cloud_auth::credentials::Credentials;
use google_cloud_compute_v1::{
    client::{GlobalOperations, Images, Instances, ZoneOperations},
    model::{
        Image, Instance, InstancesSetLabelsRequest, InstancesSetMachineTypeRequest, Metadata,
        Operation,
    },
};
use google_cloud_gax::{
    client_builder::{Error as BuildError, Result as BuildResult},
    error::{Error, rpc::StatusDetails},
    retry_policy::NeverRetry,
};

use crate::{
    address::{Address, last_part},
    error::{Cause, Failure},
};

type Answer<T> = Result<T, Failure>;

/// The most that a page may be asked to hold.
const LARGEST_PAGE: u32 = 500;

/// The warning of a scope that does not answer.
const UNREACHABLE: &str = "UNREACHABLE";

/// A page of instances with the scopes that could not be seen, and the token of the next one.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) instances: Vec<Instance>,
    pub(crate) unseen: Vec<String>,
    pub(crate) next: Option<String>,
}

/// Where a list looks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Look<'a> {
    /// In one zone.
    Zone(&'a str),
    /// In all zones of the project.
    Everywhere,
}

/// Compute Engine in one project.
#[derive(Clone, Debug)]
pub(crate) struct GcpClient {
    project: String,
    instances: Instances,
    operations: ZoneOperations,
    everywhere: GlobalOperations,
    images: Images,
    patience: Duration,
}

/// Builds one of the SDK's clients, without its retries.
macro_rules! client {
    ($client:ident, $endpoint:expr, $credentials:expr) => {{
        let builder = $client::builder().with_retry_policy(NeverRetry);
        let builder = builder.with_credentials($credentials.clone());
        match $endpoint {
            Some(endpoint) => builder.with_endpoint(endpoint).build().await?,
            None => builder.build().await?,
        }
    }};
}

/// Sends one of the SDK's requests, for as long as the patience lasts.
macro_rules! send {
    ($self:ident, $request:expr) => {
        match tokio::time::timeout($self.patience, $request.send()).await {
            Ok(answer) => answer.map_err(failure),
            Err(_) => Err(Failure::new(Cause::TimedOut, "no response came in time")),
        }
    };
}

impl GcpClient {
    /// A client of `project`. A call may take `patience` at most.
    pub(crate) async fn new(
        project: &str,
        credentials: Credentials,
        endpoint: Option<&str>,
        patience: Duration,
    ) -> BuildResult<Self> {
        Ok(Self {
            project: project.to_owned(),
            instances: client!(Instances, endpoint, credentials),
            operations: client!(ZoneOperations, endpoint, credentials),
            everywhere: client!(GlobalOperations, endpoint, credentials),
            images: client!(Images, endpoint, credentials),
            patience,
        })
    }

    pub(crate) fn project(&self) -> &str {
        &self.project
    }

    pub(crate) async fn insert(
        &self,
        zone: &str,
        instance: Instance,
        request_id: &str,
    ) -> Answer<Operation> {
        let call = self.instances.insert().set_project(&self.project);
        let call = call.set_zone(zone).set_request_id(request_id);
        send!(self, call.set_body(instance))
    }

    /// The instance in `zone` with this name or number.
    pub(crate) async fn get(&self, zone: &str, instance: &str) -> Answer<Instance> {
        let call = self.instances.get().set_project(&self.project);
        send!(self, call.set_zone(zone).set_instance(instance))
    }

    /// One page of what `filter` selects.
    pub(crate) async fn page(
        &self,
        look: Look<'_>,
        filter: &str,
        size: usize,
        after: Option<&str>,
    ) -> Answer<Page> {
        let size = u32::try_from(size).map_or(LARGEST_PAGE, |size| size.min(LARGEST_PAGE));
        let (filter, after) = (some(filter), after.map(ToOwned::to_owned));
        let page = match look {
            Look::Zone(zone) => {
                let call = self
                    .instances
                    .list()
                    .set_project(&self.project)
                    .set_zone(zone);
                let call = call.set_or_clear_filter(filter).set_max_results(size);
                let list = send!(self, call.set_or_clear_page_token(after.clone()))?;
                Page {
                    instances: list.items,
                    unseen: Vec::new(),
                    next: list.next_page_token,
                }
            }
            Look::Everywhere => {
                let call = self.instances.aggregated_list().set_project(&self.project);
                let call = call.set_or_clear_filter(filter).set_max_results(size);
                let list = send!(self, call.set_or_clear_page_token(after.clone()))?;
                let unreachable = list.items.iter().filter(|(_, scope)| {
                    let code = scope
                        .warning
                        .as_ref()
                        .and_then(|warning| warning.code.as_ref());
                    code.and_then(|code| code.name()) == Some(UNREACHABLE)
                });
                let unseen = unreachable
                    .map(|(scope, _)| scope)
                    .chain(&list.unreachables);
                Page {
                    unseen: unseen.map(|scope| last_part(scope).to_owned()).collect(),
                    instances: list
                        .items
                        .into_values()
                        .flat_map(|one| one.instances)
                        .collect(),
                    next: list.next_page_token,
                }
            }
        };
        let next = onward(after.as_deref(), page.next)?;
        Ok(Page { next, ..page })
    }

    /// Every operation that `filter` selects; one place that cannot be seen fails it.
    pub(crate) async fn operations(&self, look: Look<'_>, filter: &str) -> Answer<Vec<Operation>> {
        let (mut all, mut after) = (Vec::new(), None::<String>);
        loop {
            let (some, next) = self.operations_page(look, filter, after.clone()).await?;
            all.extend(some);
            match onward(after.as_deref(), next)? {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
    }

    async fn operations_page(
        &self,
        look: Look<'_>,
        filter: &str,
        after: Option<String>,
    ) -> Answer<(Vec<Operation>, Option<String>)> {
        match look {
            Look::Zone(zone) => {
                let call = self
                    .operations
                    .list()
                    .set_project(&self.project)
                    .set_zone(zone);
                let call = call.set_filter(filter).set_or_clear_page_token(after);
                let list = send!(self, call)?;
                Ok((list.items, list.next_page_token))
            }
            Look::Everywhere => {
                let call = self.everywhere.aggregated_list().set_project(&self.project);
                let call = call.set_filter(filter).set_or_clear_page_token(after);
                let list = send!(self, call)?;
                let dark = list.items.iter().filter(|(_, scope)| {
                    let warning = scope.warning.as_ref();
                    let code = warning.and_then(|warning| warning.code.as_ref());
                    code.and_then(|code| code.name()) == Some(UNREACHABLE)
                });
                let dark = dark.map(|(scope, _)| scope).chain(&list.unreachables);
                whole(dark.map(String::as_str))?;
                let all = list.items.into_values().flat_map(|one| one.operations);
                Ok((all.collect(), list.next_page_token))
            }
        }
    }

    /// Waits for an operation, for as long as Compute Engine likes; it need not be over then.
    pub(crate) async fn wait(&self, zone: &str, operation: &str) -> Answer<Operation> {
        let call = self.operations.wait().set_project(&self.project);
        send!(self, call.set_zone(zone).set_operation(operation))
    }

    pub(crate) async fn delete(&self, at: &Address) -> Answer<Operation> {
        let call = self.instances.delete().set_project(&self.project);
        send!(
            self,
            call.set_zone(&at.zone).set_instance(at.number.to_string())
        )
    }

    pub(crate) async fn stop(&self, at: &Address, discard_local_ssds: bool) -> Answer<Operation> {
        let call = self.instances.stop().set_project(&self.project);
        let call = call.set_zone(&at.zone).set_instance(at.number.to_string());
        let discard = discard_local_ssds.then_some(true);
        send!(self, call.set_or_clear_discard_local_ssd(discard))
    }

    pub(crate) async fn start(&self, at: &Address) -> Answer<Operation> {
        let call = self.instances.start().set_project(&self.project);
        send!(
            self,
            call.set_zone(&at.zone).set_instance(at.number.to_string())
        )
    }

    pub(crate) async fn resume(&self, at: &Address) -> Answer<Operation> {
        let call = self.instances.resume().set_project(&self.project);
        send!(
            self,
            call.set_zone(&at.zone).set_instance(at.number.to_string())
        )
    }

    pub(crate) async fn reset(&self, at: &Address) -> Answer<Operation> {
        let call = self.instances.reset().set_project(&self.project);
        send!(
            self,
            call.set_zone(&at.zone).set_instance(at.number.to_string())
        )
    }

    /// Puts `body` in the place of the labels that its fingerprint is of.
    pub(crate) async fn set_labels(
        &self,
        at: &Address,
        body: InstancesSetLabelsRequest,
    ) -> Answer<Operation> {
        let call = self.instances.set_labels().set_project(&self.project);
        let call = call.set_zone(&at.zone).set_instance(at.number.to_string());
        send!(self, call.set_body(body))
    }

    /// Puts `body` in the place of the metadata that its fingerprint is of.
    pub(crate) async fn set_metadata(&self, at: &Address, body: Metadata) -> Answer<Operation> {
        let call = self.instances.set_metadata().set_project(&self.project);
        let call = call.set_zone(&at.zone).set_instance(at.number.to_string());
        send!(self, call.set_body(body))
    }

    pub(crate) async fn set_machine_type(&self, at: &Address, to: &str) -> Answer<Operation> {
        let call = self.instances.set_machine_type().set_project(&self.project);
        let call = call.set_zone(&at.zone).set_instance(at.number.to_string());
        let body = InstancesSetMachineTypeRequest::new();
        let path = format!("zones/{}/machineTypes/{to}", at.zone);
        send!(self, call.set_body(body.set_machine_type(path)))
    }

    /// What the first serial port wrote.
    pub(crate) async fn console(&self, at: &Address) -> Answer<String> {
        let call = self
            .instances
            .get_serial_port_output()
            .set_project(&self.project);
        let call = call.set_zone(&at.zone).set_instance(at.number.to_string());
        let output = send!(self, call)?;
        Ok(output.contents.unwrap_or_default())
    }

    /// An image of this project.
    pub(crate) async fn image(&self, name: &str) -> Answer<Image> {
        let call = self.images.get().set_project(&self.project);
        send!(self, call.set_image(name))
    }

    /// Makes an image, also of a disk that is in use.
    pub(crate) async fn make_image(&self, image: Image, request_id: &str) -> Answer<Operation> {
        let call = self.images.insert().set_project(&self.project);
        let call = call.set_force_create(true).set_request_id(request_id);
        send!(self, call.set_body(image))
    }
}

/// Refuses a list that leaves out some places: what is not in it may be there.
pub(crate) fn whole<'a>(mut dark: impl Iterator<Item = &'a str>) -> Answer<()> {
    dark.next().map_or(Ok(()), |scope| {
        let message = format!("{} cannot be reached", last_part(scope));
        Err(Failure::new(Cause::Responded(503), message))
    })
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
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

/// Why a client could not be built, without what it carries.
pub(crate) fn unbuilt(error: &BuildError) -> &'static str {
    if error.is_default_credentials() {
        "no credentials were found for Compute Engine; see how application default credentials are set up"
    } else {
        "a client of Compute Engine could not be made; check the endpoint"
    }
}

/// What the SDK's error says, without what it carries: headers and bodies stay here.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` takes")]
fn failure(error: Error) -> Failure {
    let retry_after = error
        .http_headers()
        .and_then(|headers| headers.get("retry-after"))
        .and_then(|value| wait_of(value.to_str().ok()?.trim()));
    let status = error.status();
    let details = status.map(|status| status.details.as_slice());
    let reason = details.unwrap_or_default().iter().find_map(|detail| {
        if let StatusDetails::ErrorInfo(info) = detail {
            return some(&info.reason);
        }
        None
    });
    let told = status
        .map(|status| status.message.as_str())
        .filter(|text| !text.is_empty());
    let (cause, otherwise) = cause(&error);
    Failure::new(cause, told.unwrap_or(otherwise))
        .with_code(reason.unwrap_or_default())
        .with_retry_after(retry_after)
}

/// How long a reply asks to wait: in seconds, or until a date.
fn wait_of(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = DateTime::parse_from_rfc2822(text).ok()?;
    let left = until.with_timezone(&Utc) - Utc::now();
    Some(left.to_std().unwrap_or_default())
}

fn cause(error: &Error) -> (Cause, &'static str) {
    if error.is_authentication() {
        if error.is_transient_and_before_rpc() {
            return (
                Cause::CredentialsUnavailable,
                "credentials cannot be had just now",
            );
        }
        let message = "no credentials for Compute Engine could be had";
        return (Cause::NoCredentials, message);
    }
    if let Some(status) = error.http_status_code() {
        return (Cause::Responded(status), "Compute Engine gives no reason");
    }
    if error.is_transient_and_before_rpc() {
        return (Cause::NotConnected, "Compute Engine cannot be connected to");
    }
    if error.is_timeout() {
        return (Cause::TimedOut, "no answer came in time");
    }
    if error.is_deserialization() {
        return (Cause::Unreadable, "Compute Engine's answer cannot be read");
    }
    if error.is_serialization() || error.is_binding() {
        return (Cause::NotSent, "the request could not be built");
    }
    (
        Cause::Disconnected,
        "the connection to Compute Engine failed",
    )
}
