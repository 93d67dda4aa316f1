//! Lists: filter, order, pages, and the lists over all zones or regions.

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

/// The maximum number of items on a page.
const MAX_RESULTS: usize = 500;

/// What a list is asked for.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) filter: Option<Filter>,
    pub(super) paging: PageRequest,
    pub(super) order: Order,
    /// Whether zones that do not answer are left out.
    pub(super) partial: bool,
    /// What a page token is bound to.
    token_scope: String,
}

/// In which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// In the order of creation.
    Creation,
    Name,
    NewestFirst,
}

/// What a list is of: its kind, what it is called in a list of all scopes, and the fields of an
/// item.
#[derive(Debug)]
pub(super) struct ListKind {
    pub(super) kind: &'static str,
    pub(super) collection: &'static str,
    pub(super) fields: &'static [&'static str],
}

impl Listing {
    /// Parses the parameters of a call.
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
                let why = format!("Value must be between 0 and {MAX_RESULTS}.");
                return Err(Refusal::invalid("maxResults", &too_many.to_string(), &why));
            }
        };
        let order = match query.text("orderBy") {
            None => Order::Creation,
            Some("name") => Order::Name,
            Some("creationTimestamp desc") => Order::NewestFirst,
            Some(other) => {
                let why = "Only 'name' and 'creationTimestamp desc' are supported.";
                return Err(Refusal::invalid("orderBy", other, why));
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
                let why = "The token is not of this list.";
                Refusal::invalid("pageToken", token, why)
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

    /// Whether a document is asked for.
    pub(super) fn passes(&self, document: &Value) -> bool {
        self.filter
            .as_ref()
            .is_none_or(|filter| filter.passes(document))
    }

    /// A page of what has positions of its own, which come after the wanted one; also tells how
    /// many it records_read.
    pub(super) fn take(&self, items: impl Iterator<Item = (u64, Item)>) -> (Page<Item>, u64) {
        let passing = |(position, item): (u64, Item)| {
            let passes = self.passes(&item.1);
            (position, passes.then_some(item))
        };
        self.paging.take(items.map(passing))
    }

    /// A page of what is there, in the order in which it was made.
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

    /// The document of a list of one scope.
    pub(super) fn document(&self, call: &Call, list_kind: &ListKind, page: Page<Item>) -> Value {
        let items: Vec<_> = page.items.into_iter().map(|(_, item)| item).collect();
        let mut document = self.envelope(call, list_kind, "List", page.next);
        if !items.is_empty() {
            document["items"] = items.into();
        }
        document
    }

    /// The document of a list over all scopes, those without items included.
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
            let here = &mut by_scope[&scope.to_string()];
            if let Some(fields) = here.as_object_mut() {
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

    /// Refuses an aggregated list if a zone is unreachable, unless a partial result is allowed.
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

/// A document and where it belongs.
pub(super) type Item = (Scope, Value);

/// Every zone, as a scope.
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

/// Whether a scope does not answer.
pub(super) fn is_unreachable(engine: &Engine, scope: &Scope) -> bool {
    match scope {
        Scope::Zone(zone) => engine.core.knobs.unreachable_zones.contains(zone),
        Scope::Region(_) | Scope::Global => false,
    }
}

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
