//! Azure's calls, one method each. With its submodules, the only module that names the SDK.
//!
//! Owns how a call is sent and how its failure is read. It repeats nothing and awaits no operation:
//! the SDK's retries are off, and its waiting repeats a creation instead of polling its operation.
//!
//! Every method returns a [`Failure`] for an error response, a timeout, or a response that cannot
//! be read. The transport sends `create`, operation links and network documents itself. The
//! SDK sends all other calls, through the same transport.
//!
//! Submodules: `transport` sends requests, `identity` obtains tokens, `orders` builds request
//! documents, `machines` and `networks` read response documents, `pages` reads lists, `states` lists
//! states.

pub(crate) mod identity;
mod machines;
mod networks;
mod orders;
mod pages;
mod placeholder;
mod states;
mod transport;

use std::{collections::BTreeMap, future::Future, net::IpAddr, sync::Arc, time::Duration};

use azure_core::{Response, RetryOptions, StatusCode, TransportOptions, Url};
use azure_mgmt_compute::package_2024_07_01::{Client, images, virtual_machines};
use chrono::{DateTime, Utc};
use serde::{Deserialize, de::DeserializeOwned};

pub(crate) use self::pages::Pages;
use self::{
    identity::TokenCache,
    networks::{InterfaceDocument, ListDocument, PublicDocument},
    pages::Links,
    placeholder::PlaceholderCredential,
    states::SubscriptionRights,
    transport::{ErrorDetails, FullResponse, Transport, failure, header, retry_after, shorten},
};
use crate::{
    AzureCredentials, AzureOptions,
    address::{lowercase, machine_path, shift},
    error::{AzureFailure as _, Cause, Failure},
    machine::{Edit, ImageRecord, Interface, Machine, MachineSpec, Public, StartedOperation},
    reason::operation_status,
};

/// The result of one native call.
type CallResult<T> = Result<T, Failure>;

/// The API version of network resources, which this SDK does not include.
const NETWORK_VERSION: &str = "2024-03-01";

/// The state of an operation.
#[derive(Clone, Debug)]
pub(crate) enum Progress {
    /// It runs. Azure may say when to poll again.
    Running(Option<Duration>),
    /// It has succeeded.
    Done,
    /// It has failed or was cancelled.
    Failed(Failure),
}

/// The calls of one resource group. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AzureClient {
    /// The id of the subscription.
    subscription: String,
    /// The name of the resource group.
    group: String,
    /// The SDK's calls for machines.
    machines: Arc<virtual_machines::Client>,
    /// The SDK's calls for images.
    images: Arc<images::Client>,
    /// The transport that the SDK's clients use too.
    transport: Transport,
    /// Whether the caller may list the whole subscription.
    rights: SubscriptionRights,
    /// The timeout of one call.
    timeout: Duration,
}

impl AzureClient {
    /// Creates a client. Refuses an endpoint that is neither `https` nor on this machine.
    pub(crate) fn new(
        subscription: &str,
        group: &str,
        credentials: AzureCredentials,
        options: &AzureOptions,
    ) -> CallResult<Self> {
        let endpoint = Url::parse(&options.endpoint).ok();
        let secure =
            |url: &Url| url.scheme() == "https" || url.scheme() == "http" && is_loopback(url);
        let endpoint = endpoint.filter(|url| url.has_host() && secure(url));
        let invalid = || {
            let message = format!(
                "the endpoint {} must be an https URL, or http on this machine",
                options.endpoint
            );
            Failure::new(Cause::NotSent, message)
        };
        let endpoint = endpoint.ok_or_else(invalid)?;
        // Shorter than the timeout of a call, so that it is certain that nothing was sent.
        let token_timeout = options.call_timeout / 2;
        let scope = options.scope.clone();
        let tokens = TokenCache::new(credentials.source, scope, token_timeout);
        let transport = Transport::new(endpoint.clone(), Arc::new(tokens))?;
        let client = Client::builder(Arc::new(PlaceholderCredential))
            .endpoint(endpoint)
            .scopes(&[&options.scope])
            .retry(RetryOptions::none())
            .transport(TransportOptions::new(Arc::new(transport.clone())))
            .build();
        let client = client.map_err(|error| failure(&error))?;
        Ok(Self {
            subscription: subscription.to_owned(),
            group: group.to_owned(),
            machines: Arc::new(client.virtual_machines_client()),
            images: Arc::new(client.images_client()),
            transport,
            rights: SubscriptionRights::default(),
            timeout: options.call_timeout,
        })
    }

    /// The id of the subscription.
    pub(crate) fn subscription(&self) -> &str {
        &self.subscription
    }

    /// The name of the resource group.
    pub(crate) fn group(&self) -> &str {
        &self.group
    }

    /// Converts a time of our clock to Azure's, by its latest response.
    pub(crate) fn azure_time(&self, ours: DateTime<Utc>) -> DateTime<Utc> {
        shift(ours, self.transport.clock_offset())
    }

    /// Creates a machine with its disk, interface and address. Fails with a conflict if the name is
    /// taken.
    pub(crate) async fn create(
        &self,
        name: &str,
        order: &MachineSpec,
    ) -> CallResult<(Machine, StartedOperation)> {
        let body = orders::document(order, name)?;
        let path = machine_path(&self.subscription, &self.group, name);
        let url = self.transport.url(&path, orders::VERSION)?;
        let sent = self.with_timeout(self.transport.put(url, body)).await?;
        let operation = operation_link(&sent.headers);
        let machine = machines::machine(read(&sent)?)?;
        Ok((machine, operation))
    }

    /// Reads a machine with its instance view.
    pub(crate) async fn get(&self, name: &str) -> CallResult<Machine> {
        let call = self
            .machines
            .get(&self.group, name, &self.subscription)
            .expand("instanceView");
        let sent = async {
            let response = call.send().await?;
            response.into_body().await
        };
        machines::machine(self.send(sent).await?)
    }

    /// Sends the deletion of a machine. Returns `None` if Azure reports that it does not exist.
    pub(crate) async fn delete(&self, name: &str) -> CallResult<Option<StartedOperation>> {
        let call = self.machines.delete(&self.group, name, &self.subscription);
        let response = self.send(call.send()).await?.into_raw_response();
        let none = response.status() == StatusCode::NoContent;
        let operation = self.started_operation(response).await?;
        Ok((!none).then_some(operation))
    }

    /// Sends the stop of a machine, which ends its billing.
    pub(crate) async fn deallocate(&self, name: &str) -> CallResult<StartedOperation> {
        let call = self
            .machines
            .deallocate(&self.group, name, &self.subscription);
        let response = self.send(call.send()).await?;
        self.started_operation(response.into_raw_response()).await
    }

    /// Sends the start of a machine.
    pub(crate) async fn start(&self, name: &str) -> CallResult<StartedOperation> {
        let call = self.machines.start(&self.group, name, &self.subscription);
        let response = self.send(call.send()).await?;
        self.started_operation(response.into_raw_response()).await
    }

    /// Sends a reboot.
    pub(crate) async fn restart(&self, name: &str) -> CallResult<StartedOperation> {
        let call = self.machines.restart(&self.group, name, &self.subscription);
        let response = self.send(call.send()).await?;
        self.started_operation(response.into_raw_response()).await
    }

    /// Changes a machine. With `etag`, only if it was not changed since it was read.
    pub(crate) async fn update(
        &self,
        name: &str,
        edit: &Edit,
        etag: Option<&str>,
    ) -> CallResult<StartedOperation> {
        let body = orders::update(edit);
        let call = self
            .machines
            .update(&self.group, name, body, &self.subscription);
        let call = match etag {
            Some(etag) => call.if_match(etag),
            None => call,
        };
        let response = self.send(call.send()).await?;
        self.started_operation(response.into_raw_response()).await
    }

    /// Lists the machines of the group, without their states.
    pub(crate) fn pages(&self) -> Pages {
        let call = self.machines.list(&self.group, &self.subscription);
        Pages::new(call.into_stream(), self.timeout)
    }

    /// Lists the network interfaces of the group.
    pub(crate) async fn interfaces(&self) -> CallResult<Vec<Interface>> {
        let all: Vec<InterfaceDocument> = self.list_resources("networkInterfaces").await?;
        Ok(all.into_iter().map(InterfaceDocument::interface).collect())
    }

    /// Lists the public addresses of the group that are assigned, by resource id in lower case.
    pub(crate) async fn public_addresses(&self) -> CallResult<BTreeMap<String, IpAddr>> {
        let all: Vec<PublicDocument> = self.list_resources("publicIPAddresses").await?;
        let each = all.into_iter();
        Ok(each
            .filter_map(|one| Some((lowercase(&one.id), one.address()?)))
            .collect())
    }

    /// Reads one interface with its public address.
    pub(crate) async fn interface(&self, path: &str) -> CallResult<Interface> {
        let mut url = self.transport.url(path, NETWORK_VERSION)?;
        url.query_pairs_mut()
            .append_pair("$expand", "ipConfigurations/publicIPAddress");
        let document: InterfaceDocument = self.read(url).await?;
        let mut interface = document.interface();
        if let Some(Public::At(path)) = &interface.public {
            let url = self.transport.url(path, NETWORK_VERSION)?;
            interface.public = match self.read::<PublicDocument>(url).await {
                Ok(public) => public.address().map(Public::Address),
                // It does not show yet, or was deleted before its interface.
                Err(failure) if failure.is_not_found() => None,
                Err(failure) => return Err(failure),
            };
        }
        Ok(interface)
    }

    /// Polls an operation by its link.
    pub(crate) async fn progress(&self, url: &str) -> CallResult<Progress> {
        let url = self.transport.own_url(url)?;
        let sent = self.with_timeout(self.transport.get(url)).await?;
        let operation: OperationDocument = read(&sent)?;
        let status = operation.status.to_ascii_lowercase();
        let request_id = header(&sent.headers, "x-ms-request-id");
        let error = operation.error.unwrap_or_default();
        Ok(match status.as_str() {
            "succeeded" => Progress::Done,
            "failed" | "canceled" | "cancelled" => {
                let message = shorten(error.message.unwrap_or_default());
                let code = error.code.unwrap_or_default();
                let failure =
                    Failure::new(Cause::OperationFailed(operation_status(&code)), message)
                        .with_code(code)
                        .with_request_id(request_id.map(ToOwned::to_owned));
                Progress::Failed(failure)
            }
            _ => Progress::Running(retry_after(&sent.headers)),
        })
    }

    /// Reads the console log of a machine. Empty if it has written nothing.
    pub(crate) async fn console(&self, name: &str) -> CallResult<String> {
        let call =
            self.machines
                .retrieve_boot_diagnostics_data(&self.group, name, &self.subscription);
        let sent = async {
            let response = call.send().await?;
            response.into_body().await
        };
        let data = self.send(sent).await?;
        let Some(url) = data.serial_console_log_blob_uri else {
            return Ok(String::new());
        };
        let text = self.with_timeout(self.transport.read_public(&url)).await;
        match text {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            // The machine has written nothing yet.
            Err(failure) if failure.cause == Cause::Responded(404) => Ok(String::new()),
            Err(failure) => Err(failure),
        }
    }

    /// Reads an image of the group.
    pub(crate) async fn image(&self, name: &str) -> CallResult<ImageRecord> {
        let call = self.images.get(&self.group, name, &self.subscription);
        let sent = async {
            let response = call.send().await?;
            response.into_body().await
        };
        Ok(machines::image(self.send(sent).await?))
    }

    /// Creates an image of a disk.
    pub(crate) async fn put_image(
        &self,
        name: &str,
        source: &Machine,
        disk: &str,
        tags: &BTreeMap<String, String>,
    ) -> CallResult<StartedOperation> {
        let body = orders::image(&source.location, disk, source.generation.as_deref(), tags);
        let call = self
            .images
            .create_or_update(&self.group, name, body, &self.subscription);
        let response = self.send(call.send()).await?;
        self.started_operation(response.into_raw_response()).await
    }

    /// Sends the deletion of an image. Returns `None` if Azure reports that it does not exist.
    pub(crate) async fn delete_image(&self, name: &str) -> CallResult<Option<StartedOperation>> {
        let call = self.images.delete(&self.group, name, &self.subscription);
        let response = self.send(call.send()).await?.into_raw_response();
        let none = response.status() == StatusCode::NoContent;
        let operation = self.started_operation(response).await?;
        Ok((!none).then_some(operation))
    }

    /// Returns the operation that a response started. The body must be empty or JSON: anything else
    /// is not Azure's.
    async fn started_operation(&self, response: Response) -> CallResult<StartedOperation> {
        let (_, headers, body) = response.deconstruct();
        let body = self.send(body.collect()).await?;
        if !body.is_empty() {
            let collected = FullResponse { headers, body };
            read::<serde_json::Value>(&collected)?;
            return Ok(operation_link(&collected.headers));
        }
        Ok(operation_link(&headers))
    }

    /// Lists the network resources of a kind in the group.
    async fn list_resources<T: DeserializeOwned>(&self, kind: &str) -> CallResult<Vec<T>> {
        let Self {
            subscription,
            group,
            ..
        } = self;
        let path = format!(
            "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/{kind}"
        );
        let (mut all, mut links) = (Vec::new(), Links::default());
        let mut url = self.transport.url(&path, NETWORK_VERSION)?;
        loop {
            let page: ListDocument<T> = self.read(url).await?;
            all.extend(page.value);
            match links.advance(page.next_link)? {
                Some(next) => url = self.transport.own_url(&next)?,
                None => return Ok(all),
            }
        }
    }

    /// Reads a document by URL.
    async fn read<T: DeserializeOwned>(&self, url: Url) -> CallResult<T> {
        read(&self.with_timeout(self.transport.get(url)).await?)
    }

    /// Sends a request of the SDK with the timeout.
    async fn send<T>(&self, call: impl Future<Output = azure_core::Result<T>>) -> CallResult<T> {
        let response = async { call.await.map_err(|error| failure(&error)) };
        self.with_timeout(response).await
    }

    /// Limits a call by the timeout of this client.
    async fn with_timeout<T>(&self, call: impl Future<Output = CallResult<T>>) -> CallResult<T> {
        with_timeout(self.timeout, call).await
    }
}

/// The response of an operation link.
#[derive(Deserialize)]
struct OperationDocument {
    status: String,
    #[serde(default)]
    error: Option<ErrorDetails>,
}

/// Limits a call by a timeout.
async fn with_timeout<T>(
    timeout: Duration,
    call: impl Future<Output = CallResult<T>>,
) -> CallResult<T> {
    match tokio::time::timeout(timeout, call).await {
        Ok(result) => result,
        Err(_) => Err(Failure::new(
            Cause::TimedOut,
            "Azure did not respond in time",
        )),
    }
}

/// Parses a response.
fn read<T: DeserializeOwned>(sent: &FullResponse) -> CallResult<T> {
    let unread = |_| Failure::new(Cause::Unreadable, "the response of Azure cannot be read");
    serde_json::from_slice(&sent.body).map_err(unread)
}

/// Returns the link of the operation that a call started.
fn operation_link(headers: &azure_core::headers::Headers) -> StartedOperation {
    StartedOperation {
        url: header(headers, "azure-asyncoperation").map(ToOwned::to_owned),
    }
}

/// Whether a URL is on this machine, where `http` is safe.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
