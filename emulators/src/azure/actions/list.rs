//! Pages, and the links that lead from one to the next.
//!
//! Every page but the last has a `nextLink` with an opaque `$skiptoken`, which is valid for its own
//! list only.

use serde_json::{Value, json};

use super::Context;
use crate::{
    azure::{
        engine::resource_table::Scope,
        error::Refusal,
        knobs::SubscriptionLists,
        wire::{
            id::{Id, Kind},
            operation::Operation,
            request::Request,
            response::ApiResponse,
        },
    },
    cloud::page::{PagePosition, PageRequest},
};

/// The scope of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListScope {
    /// The resource group that the path names.
    Group,
    /// The whole subscription.
    Subscription,
}

impl Context<'_> {
    /// Returns the requested page. Its size is [`Knobs::page_size`](crate::azure::Knobs).
    ///
    /// # Errors
    ///
    /// 400 `InvalidSkipToken` for the token of another list; 400 `InvalidFilterInQueryString` for a
    /// filter, except on sizes, resources, resource groups and versions of images.
    pub(super) fn paging(&self) -> Result<PageRequest, Refusal> {
        // Lists that have a filter apply it before they are paginated.
        let filter = self.request.param("$filter");
        let filtered = matches!(
            self.request.operation,
            Some(
                Operation::ResourceSkusList
                    | Operation::ResourcesList
                    | Operation::ResourcesListByResourceGroup
                    | Operation::ResourceGroupsList
                    | Operation::VirtualMachineImagesList
            )
        );
        if let Some(filter) = filter.filter(|_| !filtered) {
            return Err(unknown_filter(filter));
        }
        let token = self.request.param("$skiptoken");
        let position = match token {
            None => PagePosition::default(),
            Some(token) => {
                PagePosition::from_token(&list_name(self.request), token).ok_or_else(|| {
                    let message = "The skip token of the request is not valid.";
                    Refusal::client("InvalidSkipToken", message)
                })?
            }
        };
        Ok(PageRequest {
            limit: usize::try_from(self.engine.core.knobs.page_size.get()).unwrap_or(usize::MAX),
            position,
            page_fault: self.injected.page_fault,
        })
    }

    /// Returns 404 `ResourceNotFound` if [`Omissions::reads`](crate::azure::Omissions) hides the resource
    /// from this GET. Only machines, interfaces and addresses are hidden.
    pub(super) fn check_shown(&mut self, id: &Id) -> Result<(), Refusal> {
        match id.kind {
            Kind::VirtualMachine | Kind::Nic | Kind::PublicIp if self.engine.misses_read(id) => {
                Err(id.not_found())
            }
            Kind::VirtualMachine
            | Kind::Nic
            | Kind::PublicIp
            | Kind::Disk
            | Kind::Image
            | Kind::VirtualNetwork
            | Kind::SecurityGroup
            | Kind::Snapshot
            | Kind::SshKey
            | Kind::ResourceGroup => Ok(()),
        }
    }

    /// Returns the scope of a list. 404 `ResourceGroupNotFound` if the resource group does not
    /// exist; 403 `AuthorizationFailed` for a subscription, if the knobs forbid it.
    pub(super) fn scope(&self, list_scope: ListScope) -> Result<Scope, Refusal> {
        let subscription = self.request.subscription();
        match list_scope {
            ListScope::Subscription => match self.engine.core.knobs.subscription_lists {
                SubscriptionLists::Complete => Ok(Scope::subscription(subscription)),
                SubscriptionLists::Forbidden => Err(Refusal::forbidden()),
                // No resource group has an empty name.
                SubscriptionLists::Empty => Ok(Scope::group(subscription, "")),
            },
            ListScope::Group => {
                self.engine
                    .check_group(subscription, self.request.name(1))?;
                Ok(Scope::group(subscription, self.request.name(1)))
            }
        }
    }

    /// Returns a page as a document with `value` and, if there are more items, `nextLink`.
    pub(super) fn page(&self, items: &[Value], next: Option<PagePosition>) -> ApiResponse {
        let mut document = json!({ "value": items });
        if let Some(next) = next {
            let origin = self.engine.core.knobs.link_origin.as_ref();
            let origin = origin.unwrap_or(&self.request.origin);
            document["nextLink"] = Value::String(link(self.request, origin, next));
        }
        ApiResponse::document(&document)
    }

    /// Returns one page of a complete list. Page faults apply here too.
    pub(super) fn paginate(&mut self, items: Vec<Value>) -> Result<ApiResponse, Refusal> {
        let paging = self.paging()?;
        let after = paging.position.after;
        let numbered = (1_u64..)
            .zip(items)
            .map(|(place, item)| (place, Some(item)));
        let (page, records_read) = paging.take(numbered.skip_while(|(place, _)| *place <= after));
        self.engine.core.records_read += records_read;
        Ok(self.page(&page.items, page.next))
    }
}

/// Returns 400 `InvalidFilterInQueryString`.
pub(super) fn unknown_filter(filter: &str) -> Refusal {
    let message = format!("The filter '{filter}' is not supported.");
    Refusal::client("InvalidFilterInQueryString", message)
}

/// Returns the name that tokens of this list are bound to: the path in lower case.
fn list_name(request: &Request) -> String {
    request.path.to_ascii_lowercase()
}

/// Returns the URL of the next page: the same path and query, with another token.
fn link(request: &Request, origin: &str, next: PagePosition) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in &request.query {
        let name = match name.as_str() {
            "$skiptoken" => continue,
            "statusonly" => "statusOnly",
            other => other,
        };
        query.append_pair(name, value);
    }
    query.append_pair("$skiptoken", &next.token(&list_name(request)));
    format!("{origin}{}?{}", request.path, query.finish())
}
