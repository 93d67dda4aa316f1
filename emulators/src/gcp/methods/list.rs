//! Lists: filter, order, pages, and the lists over all zones or regions.
//!
//! A page token is bound to method, project, scope, filter and order: with other parameters it is
//! refused with 400 `invalid`.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::Call;
use crate::{
    cloud::{
        inject::CallContext,
        page::{Page, PagePosition, PageRequest},
    },
    gcp::{
        engine::Engine,
        error::Refusal,
        filter::Filter,
        wire::{link::link, route::Scope},
    },
};

/// The maximum number of items on a page, and the default.
const MAX_RESULTS: usize = 500;

/// The parsed parameters of a list.
#[derive(Debug)]
pub(super) struct Listing {
    /// The filter, if there is one.
    pub(super) filter: Option<Filter>,
    /// Position and size of the page.
    pub(super) paging: PageRequest,
    /// The order of the items.
    pub(super) order: Order,
    /// Whether unreachable zones are left out and named, instead of failing the list.
    pub(super) partial: bool,
    /// What a page token is bound to.
    token_scope: String,
}

/// The order of the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// In the order of creation. This is the default.
    Creation,
    /// By name (`orderBy=name`).
    Name,
    /// Newest first (`orderBy=creationTimestamp desc`).
    NewestFirst,
}

/// The type of the items of a list.
#[derive(Debug)]
pub(super) struct ListKind {
    /// The kind of an item without `compute#`, for example `instance`.
    pub(super) kind: &'static str,
    /// The collection in paths and in aggregated lists, for example `instances`.
    pub(super) collection: &'static str,
    /// The top-level fields that a filter may name.
    pub(super) fields: &'static [&'static str],
}

impl Listing {
    /// Parses the query of a list.
    ///
    /// `maxResults` of 0 means the default; the knob `page_size` is an upper limit.
    ///
    /// # Errors
    ///
    /// 400 `invalid` for a wrong filter, `maxResults`, `orderBy` or `pageToken`; 400
    /// `notSupported` for `serviceProjectNumber`.
    pub(super) fn read(
        call: &Call,
        engine: &Engine,
        context: &CallContext,
        list_kind: &ListKind,
    ) -> Result<Self, Refusal> {
        let query = &call.query;
        if query.text("serviceProjectNumber").is_some() {
            return Err(Refusal::not_emulated(
                "The parameter 'serviceProjectNumber'",
            ));
        }
        let filter = query
            .text("filter")
            .map(|text| Filter::read(text, list_kind.fields));
        let max_results = match query.number::<usize>("maxResults")? {
            None | Some(0) => MAX_RESULTS,
            Some(max_results) if max_results <= MAX_RESULTS => max_results,
            Some(too_many) => {
                let problem = format!("Value must be between 0 and {MAX_RESULTS}.");
                return Err(Refusal::invalid(
                    "maxResults",
                    &too_many.to_string(),
                    &problem,
                ));
            }
        };
        let order = match query.text("orderBy") {
            None => Order::Creation,
            Some("name") => Order::Name,
            Some("creationTimestamp desc") => Order::NewestFirst,
            Some(other) => {
                let problem = "Only 'name' and 'creationTimestamp desc' are supported.";
                return Err(Refusal::invalid("orderBy", other, problem));
            }
        };
        let token_input = [
            &call.target.project,
            &call.target.scope.to_string(),
            query.text("filter").unwrap_or_default(),
            query.text("orderBy").unwrap_or_default(),
        ];
        let token_input = Uuid::new_v5(&Uuid::NAMESPACE_OID, token_input.join("\n").as_bytes());
        let name = format!("{}:{token_input}", call.method.name());
        let position = query.text("pageToken").map(|token| {
            PagePosition::from_token(&name, token).ok_or_else(|| {
                let problem = "The token is not of this list.";
                Refusal::invalid("pageToken", token, problem)
            })
        });
        let page_size = usize::try_from(engine.core.knobs.page_size.get()).unwrap_or(MAX_RESULTS);
        Ok(Self {
            filter: filter.transpose()?,
            paging: PageRequest {
                limit: max_results.min(page_size),
                position: position.transpose()?.unwrap_or_default(),
                page_fault: context.page_fault,
            },
            order,
            partial: query.flag("returnPartialSuccess")? || engine.core.knobs.partial_by_default,
            token_scope: name,
        })
    }

    /// Returns whether a document passes the filter.
    pub(super) fn passes(&self, document: &Value) -> bool {
        self.filter
            .as_ref()
            .is_none_or(|filter| filter.passes(document))
    }

    /// Returns a page of items in the order of their positions, all behind the position of the
    /// page, and the number of items read.
    pub(super) fn take(&self, items: impl Iterator<Item = (u64, Item)>) -> (Page<Item>, u64) {
        let passing = |(position, item): (u64, Item)| {
            let passes = self.passes(&item.1);
            (position, passes.then_some(item))
        };
        self.paging.take(items.map(passing))
    }

    /// Returns a page of the items of a whole list, given in the order of creation. Filters and
    /// sorts them first.
    pub(super) fn page(&self, items: Vec<Item>) -> Page<Item> {
        let mut passing: Vec<_> = items
            .into_iter()
            .filter(|item| self.passes(&item.1))
            .collect();
        match self.order {
            Order::Creation => {}
            Order::Name => passing.sort_by_key(|item| item.1["name"].to_string()),
            Order::NewestFirst => passing.reverse(),
        }
        let skip = usize::try_from(self.paging.position.after).unwrap_or(usize::MAX);
        let positions = self.paging.position.after.saturating_add(1)..;
        let items = positions.zip(passing.into_iter().skip(skip));
        let (page, _) = self
            .paging
            .take(items.map(|(position, item)| (position, Some(item))));
        page
    }

    /// Returns the document of a list of one scope. A list without items has no `items`.
    pub(super) fn document(&self, call: &Call, list_kind: &ListKind, page: Page<Item>) -> Value {
        let items: Vec<_> = page.items.into_iter().map(|(_, item)| item).collect();
        let mut document = self.envelope(call, list_kind, "List", page.next);
        if !items.is_empty() {
            document["items"] = items.into();
        }
        document
    }

    /// Returns the document of an aggregated list. Every scope is in it.
    ///
    /// A scope without items has the warning `NO_RESULTS_ON_PAGE`, an unreachable one
    /// `UNREACHABLE`; the latter are also listed in `unreachables`.
    pub(super) fn aggregate(
        &self,
        call: &Call,
        engine: &Engine,
        list_kind: &ListKind,
        scopes: &[Scope],
        page: Page<Item>,
    ) -> Value {
        let mut by_scope = Map::new();
        let mut unreachable = Vec::new();
        for scope in scopes {
            let warning = if is_unreachable(engine, scope) {
                unreachable.push(format!("projects/{}/{scope}", call.target.project));
                warning(scope, "UNREACHABLE", "The scope '{}' is unreachable.")
            } else {
                let message = "There are no results for scope '{}' on this page.";
                warning(scope, "NO_RESULTS_ON_PAGE", message)
            };
            by_scope.insert(scope.to_string(), warning);
        }
        for (scope, item) in page.items {
            let entry = &mut by_scope[&scope.to_string()];
            if let Some(fields) = entry.as_object_mut() {
                fields.remove("warning");
                let list = fields
                    .entry(list_kind.collection)
                    .or_insert_with(|| json!([]));
                if let Some(list) = list.as_array_mut() {
                    list.push(item);
                }
            }
        }
        let mut document = self.envelope(call, list_kind, "AggregatedList", page.next);
        document["items"] = Value::Object(by_scope);
        if !unreachable.is_empty() {
            document["unreachables"] = unreachable.into();
        }
        document
    }

    /// Returns the fields that all lists have: kind, id, link and the token of the next page.
    fn envelope(
        &self,
        call: &Call,
        list_kind: &ListKind,
        suffix: &str,
        next: Option<PagePosition>,
    ) -> Value {
        let (project, scope) = (&call.target.project, &call.target.scope);
        let section = match suffix {
            "AggregatedList" => "aggregated".to_owned(),
            _ => scope.to_string(),
        };
        let path = match list_kind.collection {
            "zones" | "regions" => format!("projects/{project}/{}", list_kind.collection),
            collection => format!("projects/{project}/{section}/{collection}"),
        };
        let mut document = json!({
            "kind": format!("compute#{}{suffix}", list_kind.kind),
            "id": path,
            "selfLink": link(&path),
        });
        if let Some(next) = next {
            document["nextPageToken"] = next.token(&self.token_scope).into();
        }
        document
    }

    /// Refuses an aggregated list with 503 if a zone is unreachable, unless a partial result is
    /// allowed.
    pub(super) fn check_all(&self, call: &Call, engine: &Engine) -> Result<(), Refusal> {
        let mut unreachable = engine.core.knobs.unreachable_zones.iter();
        match unreachable.find(|zone| engine.core.knobs.zones.contains(zone)) {
            Some(zone) if !self.partial => {
                let path = format!("projects/{}/zones/{zone}", call.target.project);
                Err(Refusal::unreachable(&path))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// A document, and the scope that it belongs to.
pub(super) type Item = (Scope, Value);

/// Returns every zone as a scope.
pub(super) fn zones(engine: &Engine) -> Vec<Scope> {
    engine
        .core
        .knobs
        .zones
        .iter()
        .cloned()
        .map(Scope::Zone)
        .collect()
}

/// Returns whether a scope is an unreachable zone.
pub(super) fn is_unreachable(engine: &Engine, scope: &Scope) -> bool {
    match scope {
        Scope::Zone(zone) => engine.core.knobs.unreachable_zones.contains(zone),
        Scope::Region(_) | Scope::Global => false,
    }
}

/// Returns the entry of a scope without items; `{}` in the message stands for the scope.
fn warning(scope: &Scope, code: &str, message: &str) -> Value {
    let scope = scope.to_string();
    json!({
        "warning": {
            "code": code,
            "message": message.replace("{}", &scope),
            "data": [{ "key": "scope", "value": scope }],
        }
    })
}
