//! Azure's calls, one method each. With its parts, the only place that names the SDK.
//!
//! Owns how a call is sent and how its failure is read. It repeats nothing and awaits no operation: the
//! SDK's own retries are off, and its awaiting sends a creation again instead of asking for its end.

pub(crate) mod identity;
mod machines;
mod networks;
mod orders;
mod transport;

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use azure_core::{
    Pageable, Response, RetryOptions, StatusCode, TransportOptions, Url, error::Error,
};
use azure_mgmt_compute::package_2024_07_01::{
    Client, images,
    models::{VirtualMachine, VirtualMachineListResult},
    virtual_machines,
};
use chrono::{DateTime, Utc};
use futures_util::StreamExt as _;
use serde::{Deserialize, de::DeserializeOwned};

use self::{
    identity::{Nobody, Tokens},
    networks::{InterfaceDocument, ListDocument, PublicDocument},
    transport::{Collected, Details, Transport, failure, header, retry_after, shortened},
};
use crate::{
    AzureCredentials, AzureOptions,
    address::{folded, machine_path, shifted},
    error::{AzureFailure as _, Cause, Failure},
    machine::{Begun, Edit, Interface, Machine, MadeImage, Order, Public},
};

type Answer<T> = Result<T, Failure>;

/// The version of the network's documents, which the SDK has none of.
const NETWORK_VERSION: &str = "2024-03-01";

/// How far an operation is.
#[derive(Clone, Debug)]
pub(crate) enum Progress {
    GoesOn(Option<Duration>),
    Done,
    Failed(Failure),
}

/// Machines, page by page.
pub(crate) struct Pages {
    pages: Pageable<VirtualMachineListResult, Error>,
    /// The links that were followed.
    links: Links,
    patience: Duration,
    over: bool,
}

/// Azure in one resource group.
#[derive(Clone)]
pub(crate) struct AzureClient {
    subscription: String,
    group: String,
    machines: Arc<virtual_machines::Client>,
    images: Arc<images::Client>,
    transport: Transport,
    patience: Duration,
}

impl AzureClient {
    /// A client of a resource group.
    pub(crate) fn new(
        subscription: &str,
        group: &str,
        credentials: AzureCredentials,
        options: &AzureOptions,
    ) -> Answer<Self> {
        let endpoint = Url::parse(&options.endpoint).ok();
        let secure = |url: &Url| url.scheme() == "https" || url.scheme() == "http" && is_here(url);
        let endpoint = endpoint.filter(|url| url.has_host() && secure(url));
        let unfit = || {
            let message = format!(
                "the endpoint {} is no https URL, nor http on this machine",
                options.endpoint
            );
            Failure::new(Cause::NotSent, message)
        };
        let endpoint = endpoint.ok_or_else(unfit)?;
        let tokens = Arc::new(Tokens::new(credentials.source, options.scope.clone()));
        let transport = Transport::new(endpoint.clone(), tokens, options.call_timeout)?;
        let client = Client::builder(Arc::new(Nobody))
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
            patience: options.call_timeout,
        })
    }

    pub(crate) fn subscription(&self) -> &str {
        &self.subscription
    }

    pub(crate) fn group(&self) -> &str {
        &self.group
    }

    /// A time of ours at Azure's, as its latest answer tells.
    pub(crate) fn moment(&self, ours: DateTime<Utc>) -> DateTime<Utc> {
        shifted(ours, self.transport.ahead())
    }

    /// Makes a machine of a name that nobody has, with all that belongs to it.
    pub(crate) async fn create(&self, name: &str, order: &Order) -> Answer<(Machine, Begun)> {
        let body = orders::document(order, name)?;
        let path = machine_path(&self.subscription, &self.group, name);
        let url = self.transport.url(&path, orders::VERSION)?;
        let sent = self.in_time(self.transport.put(url, body)).await?;
        let begun = begun(&sent.headers);
        let machine = machines::machine(read(&sent)?)?;
        Ok((machine, begun))
    }

    /// The machine of a name, with how it is.
    pub(crate) async fn get(&self, name: &str) -> Answer<Machine> {
        let call = self
            .machines
            .get(&self.group, name, &self.subscription)
            .expand("instanceView");
        let sent = async {
            let response = call.send().await?;
            response.into_body().await
        };
        machines::machine(self.asked(sent).await?)
    }

    /// Begins to delete the machine of a name; nothing, if Azure says that there is none.
    pub(crate) async fn delete(&self, name: &str) -> Answer<Option<Begun>> {
        let call = self.machines.delete(&self.group, name, &self.subscription);
        let response = self.asked(call.send()).await?.into_raw_response();
        let none = response.status() == StatusCode::NoContent;
        let begun = self.accepted(response).await?;
        Ok((!none).then_some(begun))
    }

    pub(crate) async fn deallocate(&self, name: &str) -> Answer<Begun> {
        let call = self
            .machines
            .deallocate(&self.group, name, &self.subscription);
        let response = self.asked(call.send()).await?;
        self.accepted(response.into_raw_response()).await
    }

    pub(crate) async fn start(&self, name: &str) -> Answer<Begun> {
        let call = self.machines.start(&self.group, name, &self.subscription);
        let response = self.asked(call.send()).await?;
        self.accepted(response.into_raw_response()).await
    }

    pub(crate) async fn restart(&self, name: &str) -> Answer<Begun> {
        let call = self.machines.restart(&self.group, name, &self.subscription);
        let response = self.asked(call.send()).await?;
        self.accepted(response.into_raw_response()).await
    }

    /// Changes the machine of a name, if its document is still of a version.
    pub(crate) async fn update(
        &self,
        name: &str,
        edit: &Edit,
        etag: Option<&str>,
    ) -> Answer<Begun> {
        let body = orders::update(edit);
        let call = self
            .machines
            .update(&self.group, name, body, &self.subscription);
        let call = match etag {
            Some(etag) => call.if_match(etag),
            None => call,
        };
        let response = self.asked(call.send()).await?;
        self.accepted(response.into_raw_response()).await
    }

    /// Every machine of the group, without how it is.
    pub(crate) fn pages(&self) -> Pages {
        let call = self.machines.list(&self.group, &self.subscription);
        Pages {
            pages: call.into_stream(),
            links: Links::default(),
            patience: self.patience,
            over: false,
        }
    }

    /// How every machine of the group is, by its resource id in small letters. The list is of the whole
    /// subscription: Azure has no other.
    pub(crate) async fn statuses(&self) -> Answer<BTreeMap<String, Machine>> {
        let call = self.machines.list_all(&self.subscription);
        let mut pages = Pages {
            pages: call.status_only("true").into_stream(),
            links: Links::default(),
            patience: self.patience,
            over: false,
        };
        let ours = folded(&machine_path(&self.subscription, &self.group, ""));
        let mut all = BTreeMap::new();
        while let Some(page) = pages.next_with(machines::status).await? {
            let each = page.into_iter().map(|one| (folded(&one.path), one));
            all.extend(each.filter(|(path, _)| path.starts_with(&ours)));
        }
        Ok(all)
    }

    /// Every interface of the group.
    pub(crate) async fn interfaces(&self) -> Answer<Vec<Interface>> {
        let all: Vec<InterfaceDocument> = self.listed("networkInterfaces").await?;
        Ok(all.into_iter().map(InterfaceDocument::interface).collect())
    }

    /// Every public address of the group that is one, by its resource id in small letters.
    pub(crate) async fn public_addresses(&self) -> Answer<BTreeMap<String, IpAddr>> {
        let all: Vec<PublicDocument> = self.listed("publicIPAddresses").await?;
        let each = all.into_iter();
        Ok(each
            .filter_map(|one| Some((folded(&one.id), one.address()?)))
            .collect())
    }

    /// One interface, with its public address.
    pub(crate) async fn interface(&self, path: &str) -> Answer<Interface> {
        let mut url = self.transport.url(path, NETWORK_VERSION)?;
        url.query_pairs_mut()
            .append_pair("$expand", "ipConfigurations/publicIPAddress");
        let document: InterfaceDocument = self.read(url).await?;
        let mut interface = document.interface();
        if let Some(Public::At(path)) = &interface.public {
            let url = self.transport.url(path, NETWORK_VERSION)?;
            interface.public = match self.read::<PublicDocument>(url).await {
                Ok(public) => public.address().map(Public::Address),
                // It is not shown yet, or goes before its interface.
                Err(failure) if failure.is_not_found() => None,
                Err(failure) => return Err(failure),
            };
        }
        Ok(interface)
    }

    /// How far an operation is.
    pub(crate) async fn progress(&self, url: &str) -> Answer<Progress> {
        let url = self.transport.own(url)?;
        let sent = self.in_time(self.transport.get(url)).await?;
        let operation: OperationDocument = read(&sent)?;
        let status = operation.status.to_ascii_lowercase();
        let request_id = header(&sent.headers, "x-ms-request-id");
        let error = operation.error.unwrap_or_default();
        Ok(match status.as_str() {
            "succeeded" => Progress::Done,
            "failed" | "canceled" | "cancelled" => {
                let message = shortened(error.message.unwrap_or_default());
                let failure = Failure::new(Cause::OperationFailed(None), message)
                    .with_code(error.code.unwrap_or_default())
                    .with_request_id(request_id.map(ToOwned::to_owned));
                Progress::Failed(failure)
            }
            _ => Progress::GoesOn(retry_after(&sent.headers)),
        })
    }

    /// What a machine wrote to its console.
    pub(crate) async fn console(&self, name: &str) -> Answer<String> {
        let call =
            self.machines
                .retrieve_boot_diagnostics_data(&self.group, name, &self.subscription);
        let sent = async {
            let response = call.send().await?;
            response.into_body().await
        };
        let told = self.asked(sent).await?;
        let Some(url) = told.serial_console_log_blob_uri else {
            return Ok(String::new());
        };
        let text = self.in_time(self.transport.read_public(&url)).await;
        match text {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            // It has not written anything yet.
            Err(failure) if failure.cause == Cause::Responded(404) => Ok(String::new()),
            Err(failure) => Err(failure),
        }
    }

    pub(crate) async fn image(&self, name: &str) -> Answer<MadeImage> {
        let call = self.images.get(&self.group, name, &self.subscription);
        let sent = async {
            let response = call.send().await?;
            response.into_body().await
        };
        Ok(machines::image(self.asked(sent).await?))
    }

    /// Makes an image of a disk as it is.
    pub(crate) async fn make_image(
        &self,
        name: &str,
        source: &Machine,
        disk: &str,
        tags: &BTreeMap<String, String>,
    ) -> Answer<Begun> {
        let body = orders::image(&source.location, disk, source.generation.as_deref(), tags);
        let call = self
            .images
            .create_or_update(&self.group, name, body, &self.subscription);
        let response = self.asked(call.send()).await?;
        self.accepted(response.into_raw_response()).await
    }

    /// What a call has begun. Its answer has no body, or a document: anything else is not Azure's.
    async fn accepted(&self, response: Response) -> Answer<Begun> {
        let (_, headers, body) = response.deconstruct();
        let body = self.asked(body.collect()).await?;
        if !body.is_empty() {
            let collected = Collected { headers, body };
            read::<serde_json::Value>(&collected)?;
            return Ok(begun(&collected.headers));
        }
        Ok(begun(&headers))
    }

    /// Every resource of a kind in the group, over all pages.
    async fn listed<T: DeserializeOwned>(&self, kind: &str) -> Answer<Vec<T>> {
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
            match links.onward(page.next_link)? {
                Some(next) => url = self.transport.own(&next)?,
                None => return Ok(all),
            }
        }
    }

    async fn read<T: DeserializeOwned>(&self, url: Url) -> Answer<T> {
        read(&self.in_time(self.transport.get(url)).await?)
    }

    async fn asked<T>(&self, call: impl Future<Output = azure_core::Result<T>>) -> Answer<T> {
        let answer = async { call.await.map_err(|error| failure(&error)) };
        self.in_time(answer).await
    }

    async fn in_time<T>(&self, call: impl Future<Output = Answer<T>>) -> Answer<T> {
        in_time(self.patience, call).await
    }
}

impl Pages {
    /// The next page, if there is one.
    pub(crate) async fn next(&mut self) -> Answer<Option<Vec<Machine>>> {
        self.next_with(machines::machine).await
    }

    async fn next_with(
        &mut self,
        read: impl Fn(VirtualMachine) -> Answer<Machine>,
    ) -> Answer<Option<Vec<Machine>>> {
        if self.over {
            return Ok(None);
        }
        let page = in_time(self.patience, async {
            let page = self.pages.next().await;
            page.transpose().map_err(|error| failure(&error))
        });
        let Some(page) = page.await? else {
            return Ok(None);
        };
        self.over = self.links.onward(page.next_link)?.is_none();
        page.value
            .into_iter()
            .map(read)
            .collect::<Answer<_>>()
            .map(Some)
    }
}

#[derive(Deserialize)]
struct OperationDocument {
    status: String,
    #[serde(default)]
    error: Option<Details>,
}

async fn in_time<T>(patience: Duration, call: impl Future<Output = Answer<T>>) -> Answer<T> {
    match tokio::time::timeout(patience, call).await {
        Ok(answer) => answer,
        Err(_) => Err(Failure::new(Cause::TimedOut, "no answer came in time")),
    }
}

fn read<T: DeserializeOwned>(sent: &Collected) -> Answer<T> {
    let unread = |_| Failure::new(Cause::Unreadable, "an answer of Azure's cannot be read");
    serde_json::from_slice(&sent.body).map_err(unread)
}

/// Where the end of what a call has begun is told.
fn begun(headers: &azure_core::headers::Headers) -> Begun {
    Begun {
        url: header(headers, "azure-asyncoperation").map(ToOwned::to_owned),
        retry_after: retry_after(headers),
    }
}

/// The links from page to page of one list.
#[derive(Default)]
struct Links(BTreeSet<String>);

impl Links {
    /// The link to the next page. One that was followed before would have us go in circles, or miss what comes
    /// after it.
    fn onward(&mut self, next: Option<String>) -> Answer<Option<String>> {
        let Some(next) = next.filter(|next| !next.is_empty()) else {
            return Ok(None);
        };
        if !self.0.insert(next.clone()) {
            let message = "a page's link leads back to a page that was read";
            return Err(Failure::new(Cause::Unreadable, message));
        }
        Ok(Some(next))
    }
}

/// Whether a URL is of this machine, where http is safe.
fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
