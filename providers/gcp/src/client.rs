//! Compute Engine's calls, one method each. With its submodules, the only module that names the SDK's
//! clients.
//!
//! Owns how a call is sent and how its failure is read. It repeats nothing: the SDK's retries and
//! pollers are off, because the callers decide what is repeated, and when.
//!
//! Every method returns a [`Failure`] for an error response, a timeout, or a response that cannot
//! be read. A call that changes something returns its operation, which may fail later.
//!
//! Instances are addressed by number, which the SDK accepts wherever it accepts a name. A list of
//! all zones reports zones that did not respond as warnings; such a list is incomplete.

mod failure;
mod within;

use std::time::Duration;

use google_cloud_auth::credentials::Credentials;
use google_cloud_compute_v1::{
    client::{GlobalOperations, Images, Instances, ZoneOperations},
    model::{
        BulkInsertInstanceResource, Image, Instance, InstancesSetLabelsRequest,
        InstancesSetMachineTypeRequest, Metadata, Operation,
    },
};
use google_cloud_gax::{client_builder::Result as BuildResult, retry_policy::NeverRetry};

pub(crate) use self::failure::build_error_message;
use self::within::within;
use crate::{
    address::{Address, last_part},
    error::{Cause, Failure},
};

/// The result of one native call.
type CallResult<T> = Result<T, Failure>;

/// The largest page that Compute Engine returns.
const LARGEST_PAGE: u32 = 500;

/// The warning of a zone that does not respond.
const UNREACHABLE: &str = "UNREACHABLE";

/// A page of instances.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// The instances, in no order.
    pub(crate) instances: Vec<Instance>,
    /// The zones that the page does not include because they did not respond.
    pub(crate) unreachable: Vec<String>,
    /// The token of the next page.
    pub(crate) next: Option<String>,
}

/// Where a list reads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ListScope<'a> {
    /// One zone.
    Zone(&'a str),
    /// All zones of the project.
    AllZones,
}

/// Where an operation runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OperationScope<'a> {
    /// In one zone.
    Zone(&'a str),
    /// In no zone: it is about an image.
    Global,
}

/// The universe of credentials that name none (Google Cloud, "Universe domain").
const DEFAULT_UNIVERSE: &str = "googleapis.com";

/// The calls of one project. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct GcpClient {
    /// The id of the project.
    project: String,
    /// The domain of the universe that the credentials belong to.
    universe: String,
    /// Instances of one zone or of all.
    instances: Instances,
    /// Operations of one zone.
    operations: ZoneOperations,
    /// Operations of all zones.
    global_operations: GlobalOperations,
    /// Images of the project.
    images: Images,
    /// The timeout of one call.
    timeout: Duration,
}

/// Builds one of the SDK's clients without its retries, in the universe of the credentials.
macro_rules! client {
    ($client:ident, $endpoint:expr, $credentials:expr, $universe:expr) => {{
        let builder = $client::builder().with_retry_policy(NeverRetry);
        let builder = builder.with_credentials($credentials.clone());
        let builder = match $universe {
            Some(universe) => builder.with_universe_domain(universe),
            None => builder,
        };
        match $endpoint {
            Some(endpoint) => builder.with_endpoint(endpoint).build().await?,
            None => builder.build().await?,
        }
    }};
}

/// Sends one of the SDK's requests with the timeout of the client. A macro, because the requests have no trait in common.
macro_rules! send {
    ($self:ident, $request:expr) => {
        within($self.timeout, $request.send()).await
    };
}

impl GcpClient {
    /// Creates a client of `project`. `timeout` limits each call.
    pub(crate) async fn new(
        project: &str,
        credentials: Credentials,
        endpoint: Option<&str>,
        timeout: Duration,
    ) -> BuildResult<Self> {
        let universe = credentials.universe_domain().await;
        let universe = universe.as_deref();
        Ok(Self {
            project: project.to_owned(),
            universe: universe.unwrap_or(DEFAULT_UNIVERSE).to_owned(),
            instances: client!(Instances, endpoint, credentials, universe),
            operations: client!(ZoneOperations, endpoint, credentials, universe),
            global_operations: client!(GlobalOperations, endpoint, credentials, universe),
            images: client!(Images, endpoint, credentials, universe),
            timeout,
        })
    }

    /// The id of the project.
    pub(crate) fn project(&self) -> &str {
        &self.project
    }

    /// The domain of the universe.
    pub(crate) fn universe(&self) -> &str {
        &self.universe
    }

    /// Sends the creation of an instance. Compute Engine treats inserts with the same request id as
    /// one.
    pub(crate) async fn insert(
        &self,
        zone: &str,
        instance: Instance,
        request_id: &str,
    ) -> CallResult<Operation> {
        let call = self.instances.insert().set_project(&self.project);
        let call = call.set_zone(zone).set_request_id(request_id);
        send!(self, call.set_body(instance))
    }

    /// Sends the creation of many instances. The operation is about all of them; each has another one of the same group.
    pub(crate) async fn bulk_insert(
        &self,
        zone: &str,
        instances: BulkInsertInstanceResource,
        request_id: &str,
    ) -> CallResult<Operation> {
        let call = self.instances.bulk_insert().set_project(&self.project);
        let call = call.set_zone(zone).set_request_id(request_id);
        send!(self, call.set_body(instances))
    }

    /// Reads the instance in `zone` with this name or number.
    pub(crate) async fn get(&self, zone: &str, instance: &str) -> CallResult<Instance> {
        let call = self.instances.get().set_project(&self.project);
        send!(self, call.set_zone(zone).set_instance(instance))
    }

    /// Reads one page of the instances that `filter` selects, after the page token `after`.
    pub(crate) async fn page(
        &self,
        scope: ListScope<'_>,
        filter: &str,
        size: usize,
        after: Option<&str>,
    ) -> CallResult<Page> {
        let size = u32::try_from(size).map_or(LARGEST_PAGE, |size| size.min(LARGEST_PAGE));
        let (filter, after) = (non_empty(filter), after.map(ToOwned::to_owned));
        let page = match scope {
            ListScope::Zone(zone) => {
                let call = self
                    .instances
                    .list()
                    .set_project(&self.project)
                    .set_zone(zone);
                let call = call.set_or_clear_filter(filter).set_max_results(size);
                let list = send!(self, call.set_or_clear_page_token(after.clone()))?;
                Page {
                    instances: list.items,
                    unreachable: Vec::new(),
                    next: list.next_page_token,
                }
            }
            ListScope::AllZones => {
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
                let unreachable = unreachable
                    .map(|(scope, _)| scope)
                    .chain(&list.unreachables);
                Page {
                    unreachable: unreachable
                        .map(|scope| last_part(scope).to_owned())
                        .collect(),
                    instances: list
                        .items
                        .into_values()
                        .flat_map(|one| one.instances)
                        .collect(),
                    next: list.next_page_token,
                }
            }
        };
        let next = next_page_token(after.as_deref(), page.next)?;
        Ok(Page { next, ..page })
    }

    /// Lists every operation that `filter` selects. Fails if a zone did not respond.
    pub(crate) async fn operations(
        &self,
        scope: ListScope<'_>,
        filter: &str,
    ) -> CallResult<Vec<Operation>> {
        let (mut all, mut after) = (Vec::new(), None::<String>);
        loop {
            let (some, next) = self.operations_page(scope, filter, after.clone()).await?;
            all.extend(some);
            match next_page_token(after.as_deref(), next)? {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// Reads one page of operations, and the token of the next one.
    async fn operations_page(
        &self,
        scope: ListScope<'_>,
        filter: &str,
        after: Option<String>,
    ) -> CallResult<(Vec<Operation>, Option<String>)> {
        match scope {
            ListScope::Zone(zone) => {
                let call = self
                    .operations
                    .list()
                    .set_project(&self.project)
                    .set_zone(zone);
                let call = call.set_filter(filter).set_or_clear_page_token(after);
                let list = send!(self, call)?;
                Ok((list.items, list.next_page_token))
            }
            ListScope::AllZones => {
                let call = self
                    .global_operations
                    .aggregated_list()
                    .set_project(&self.project);
                let call = call.set_filter(filter).set_or_clear_page_token(after);
                let list = send!(self, call)?;
                let unreachable = list.items.iter().filter(|(_, scope)| {
                    let warning = scope.warning.as_ref();
                    let code = warning.and_then(|warning| warning.code.as_ref());
                    code.and_then(|code| code.name()) == Some(UNREACHABLE)
                });
                let unreachable = unreachable
                    .map(|(scope, _)| scope)
                    .chain(&list.unreachables);
                require_complete(unreachable.map(String::as_str))?;
                let all = list.items.into_values().flat_map(|one| one.operations);
                Ok((all.collect(), list.next_page_token))
            }
        }
    }

    /// Waits for an operation as long as Compute Engine keeps the call open. The operation may
    /// still run then.
    pub(crate) async fn wait(
        &self,
        scope: OperationScope<'_>,
        operation: &str,
    ) -> CallResult<Operation> {
        match scope {
            OperationScope::Zone(zone) => {
                let call = self.operations.wait().set_project(&self.project);
                send!(self, call.set_zone(zone).set_operation(operation))
            }
            OperationScope::Global => {
                let call = self.global_operations.wait().set_project(&self.project);
                send!(self, call.set_operation(operation))
            }
        }
    }

    /// Reads an operation by its name.
    pub(crate) async fn operation(&self, zone: &str, name: &str) -> CallResult<Operation> {
        let call = self.operations.get().set_project(&self.project);
        send!(self, call.set_zone(zone).set_operation(name))
    }

    /// Sends the deletion of an instance.
    pub(crate) async fn delete(&self, at: &Address) -> CallResult<Operation> {
        let call = self.instances.delete().set_project(&self.project);
        send!(
            self,
            call.set_zone(&at.zone).set_instance(at.number.to_string())
        )
    }

    /// Sends the stop of an instance. One with local SSDs is stopped only with
    /// `discard_local_ssds`.
    pub(crate) async fn stop(
        &self,
        at: &Address,
        discard_local_ssds: bool,
    ) -> CallResult<Operation> {
        let call = self.instances.stop().set_project(&self.project);
        let call = call.set_zone(&at.zone).set_instance(at.number.to_string());
        let discard = discard_local_ssds.then_some(true);
        send!(self, call.set_or_clear_discard_local_ssd(discard))
    }

    /// Sends the start of a stopped instance.
    pub(crate) async fn start(&self, at: &Address) -> CallResult<Operation> {
        let call = self.instances.start().set_project(&self.project);
        send!(
            self,
            call.set_zone(&at.zone).set_instance(at.number.to_string())
        )
    }

    /// Sends the start of a suspended instance.
    pub(crate) async fn resume(&self, at: &Address) -> CallResult<Operation> {
        let call = self.instances.resume().set_project(&self.project);
        send!(
            self,
            call.set_zone(&at.zone).set_instance(at.number.to_string())
        )
    }

    /// Sends a reboot.
    pub(crate) async fn reset(&self, at: &Address) -> CallResult<Operation> {
        let call = self.instances.reset().set_project(&self.project);
        send!(
            self,
            call.set_zone(&at.zone).set_instance(at.number.to_string())
        )
    }

    /// Replaces all labels, if the fingerprint in `body` is still current.
    pub(crate) async fn set_labels(
        &self,
        at: &Address,
        body: InstancesSetLabelsRequest,
    ) -> CallResult<Operation> {
        let call = self.instances.set_labels().set_project(&self.project);
        let call = call.set_zone(&at.zone).set_instance(at.number.to_string());
        send!(self, call.set_body(body))
    }

    /// Replaces all metadata, if the fingerprint in `body` is still current.
    pub(crate) async fn set_metadata(&self, at: &Address, body: Metadata) -> CallResult<Operation> {
        let call = self.instances.set_metadata().set_project(&self.project);
        let call = call.set_zone(&at.zone).set_instance(at.number.to_string());
        send!(self, call.set_body(body))
    }

    /// Changes the type of a stopped instance.
    pub(crate) async fn set_machine_type(&self, at: &Address, to: &str) -> CallResult<Operation> {
        let call = self.instances.set_machine_type().set_project(&self.project);
        let call = call.set_zone(&at.zone).set_instance(at.number.to_string());
        let body = InstancesSetMachineTypeRequest::new();
        let path = format!("zones/{}/machineTypes/{to}", at.zone);
        send!(self, call.set_body(body.set_machine_type(path)))
    }

    /// Reads the output of the first serial port.
    pub(crate) async fn console(&self, at: &Address) -> CallResult<String> {
        let call = self
            .instances
            .get_serial_port_output()
            .set_project(&self.project);
        let call = call.set_zone(&at.zone).set_instance(at.number.to_string());
        let output = send!(self, call)?;
        Ok(output.contents.unwrap_or_default())
    }

    /// Reads an image of this project.
    pub(crate) async fn image(&self, name: &str) -> CallResult<Image> {
        let call = self.images.get().set_project(&self.project);
        send!(self, call.set_image(name))
    }

    /// Creates an image, also from a disk that is in use.
    pub(crate) async fn insert_image(
        &self,
        image: Image,
        request_id: &str,
    ) -> CallResult<Operation> {
        let call = self.images.insert().set_project(&self.project);
        let call = call.set_force_create(true).set_request_id(request_id);
        send!(self, call.set_body(image))
    }

    /// Sends the deletion of an image of this project.
    pub(crate) async fn delete_image(&self, name: &str) -> CallResult<Operation> {
        let call = self.images.delete().set_project(&self.project);
        send!(self, call.set_image(name))
    }
}

/// Refuses a list that omits zones: an instance that is not listed may exist there.
pub(crate) fn require_complete<'a>(
    mut unreachable: impl Iterator<Item = &'a str>,
) -> CallResult<()> {
    unreachable.next().map_or(Ok(()), |scope| {
        let message = format!("{} cannot be reached", last_part(scope));
        Err(Failure::new(Cause::Responded(503), message))
    })
}

/// Returns `text`, or `None` if it is empty.
fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the token of the next page. Refuses one that leads back to the same page, which would
/// loop.
fn next_page_token(after: Option<&str>, next: Option<String>) -> CallResult<Option<String>> {
    let next = next.filter(|token| !token.is_empty());
    if next.is_some() && next.as_deref() == after {
        let message = "the token of a page leads back to the same page";
        return Err(Failure::new(Cause::Unreadable, message));
    }
    Ok(next)
}
