//! What several actions share: ids, filters, pages, tags, responses.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Call;
use crate::ec2::{
    engine::{
        Engine, Mode, Seq,
        filter::{self, Filter, Filtered},
        page::{Page, PagePosition, PageRequest},
        record::{Tags, Version},
        tags,
    },
    error::Refusal,
    wire::{params::Scope, tree::Tree, xml},
};

/// The smallest page that a client may request, and the largest that it gets.
const PAGE_SIZE: (usize, usize) = (5, 1000);

/// A response that only reports success.
#[derive(Debug, Serialize)]
pub(super) struct Success {
    /// Always true.
    #[serde(rename = "return")]
    pub(super) success: bool,
}

impl Call<'_> {
    /// Returns the parameters.
    pub(super) fn root(&self) -> Scope<'_> {
        self.params.root()
    }

    /// Refuses parameters that were not read.
    pub(super) fn finish(&self) -> Result<(), Refusal> {
        self.params.finish(self.action)
    }

    /// Returns whether the call is a dry run. A dry run of a valid call is refused with
    /// `DryRunOperation`, after all checks.
    pub(super) fn mode(&self) -> Result<Mode, Refusal> {
        let dry = self.root().flag("DryRun")?.unwrap_or(false);
        Ok(if dry { Mode::DryRun } else { Mode::Execute })
    }

    /// As [`Call::finish`], for an action that changes nothing: its dry run always succeeds.
    pub(super) fn finish_read(&self) -> Result<(), Refusal> {
        let mode = self.mode()?;
        self.finish()?;
        mode.check_dry_run()
    }

    /// Returns the ids under a name.
    ///
    /// # Errors
    ///
    /// `MissingParameter` if there are none.
    pub(super) fn ids(&self, name: &str) -> Result<Vec<String>, Refusal> {
        let ids = self.root().list(name);
        if ids.is_empty() {
            Err(Refusal::missing(name))
        } else {
            Ok(ids)
        }
    }

    /// Returns the filters `Filter.1.Name`, `Filter.1.Value.1` and so on. Their names are checked
    /// later.
    ///
    /// # Errors
    ///
    /// `MissingParameter` for a filter without a name.
    pub(super) fn filters(&self) -> Result<Vec<Filter>, Refusal> {
        let filter = |scope: &Scope<'_>| {
            let name = scope.required("Name")?;
            let values = scope.list("Value");
            Ok(Filter { name, values })
        };
        self.root().groups("Filter").iter().map(filter).collect()
    }

    /// Returns the requested page, and whether the client used page parameters.
    ///
    /// # Errors
    ///
    /// `InvalidParameterValue` for a `MaxResults` below 5, `InvalidPaginationToken` for a token of
    /// another action or a damaged one.
    pub(super) fn paging(&self, engine: &Engine) -> Result<(PageRequest, bool), Refusal> {
        let root = self.root();
        let max_results: Option<usize> = root.number("MaxResults")?;
        let (min_size, max_size) = PAGE_SIZE;
        if let Some(max_results) = max_results.filter(|max_results| *max_results < min_size) {
            let message = format!(
                "Value ( {max_results} ) for parameter maxResults is invalid. Expecting a value greater than {min_size}."
            );
            return Err(Refusal::invalid(message));
        }
        let token = root.text("NextToken").filter(|token| !token.is_empty());
        let position = token.as_deref().map(|token| {
            PagePosition::from_token(self.action.name(), token).ok_or_else(Refusal::bad_page_token)
        });
        let page_size = usize::try_from(engine.core.knobs.page_size.get()).unwrap_or(max_size);
        let paging = PageRequest {
            limit: max_results.unwrap_or(max_size).min(max_size).min(page_size),
            position: position.transpose()?.unwrap_or_default(),
            page_fault: self.context.page_fault,
        };
        Ok((paging, max_results.is_some() || token.is_some()))
    }

    /// Returns the instances with these ids as one page, or without ids the page of [`paging`](Self::paging).
    ///
    /// # Errors
    ///
    /// `InvalidParameterCombination` for ids together with page parameters, and the errors of the read.
    pub(super) fn read_instances(
        &self,
        engine: &mut Engine,
        ids: &[String],
        filters: &[Filter],
        (paging, is_paged): &(PageRequest, bool),
    ) -> Result<Page<(Seq, Version)>, Refusal> {
        let read_lag = self.context.read_lag;
        if ids.is_empty() {
            return engine.instances_page(filters, paging, read_lag);
        }
        if *is_paged {
            let message = "The parameter instancesSet cannot be used with the parameter maxResults";
            return Err(Refusal::combination(message));
        }
        let items = engine.instances_by_id(ids, filters, read_lag)?;
        Ok(Page { items, next: None })
    }

    /// Returns the token of the next page, which is bound to the action.
    pub(super) fn next_token(&self, next: Option<PagePosition>) -> Option<String> {
        next.map(|position| position.token(self.action.name()))
    }

    /// Returns the response document of the action.
    pub(super) fn respond<T: Serialize>(&self, body: &T) -> Result<String, Refusal> {
        xml::response(self.action, &self.context.request_id, body)
    }

    /// Returns the resources of a page, by ids and filters, and the token of the next page.
    ///
    /// # Errors
    ///
    /// `missing` for an id that no resource has, `InvalidParameterValue` for an unknown filter, and those of the parameters.
    pub(super) fn select<T: Filtered>(
        &self,
        engine: &Engine,
        all: Vec<T>,
        (parameter, id_of): (&str, fn(&T) -> &str),
        missing: impl Fn(&str) -> Refusal,
    ) -> Result<(Vec<T>, Option<String>), Refusal> {
        let ids = self.root().list(parameter);
        let filters = self.filters()?;
        let (paging, _) = self.paging(engine)?;
        self.finish_read()?;
        filter::check::<T>(&filters)?;
        let known = |id: &&String| all.iter().any(|item| id_of(item) == **id);
        if let Some(id) = ids.iter().find(|id| !known(id)) {
            return Err(missing(id));
        }
        let page = page_of(all, &paging, |item| {
            (ids.is_empty() || ids.iter().any(|id| id == id_of(item)))
                && filter::passes(item, &filters)
        });
        Ok((page.items, self.next_token(page.next)))
    }

    /// Returns the response of an action that lists resources.
    pub(super) fn respond_list(
        &self,
        name: &'static str,
        items: impl IntoIterator<Item = Tree>,
        next_token: Option<String>,
    ) -> Result<String, Refusal> {
        let list = Tree::default().set(name, items);
        self.respond(&list.some("nextToken", next_token))
    }

    /// Returns the tags of `TagSpecification` for the one kind of resource that the action creates.
    pub(super) fn tags_for(&self, kind: &str) -> Result<Tags, Refusal> {
        let mut tags = self.tag_specifications(&[kind])?;
        Ok(tags.remove(kind).unwrap_or_default())
    }

    /// Returns the response of an action without a result.
    pub(super) fn success(&self) -> Result<String, Refusal> {
        self.respond(&Success { success: true })
    }

    /// Returns the tags of `TagSpecification`, by resource type.
    ///
    /// # Errors
    ///
    /// `InvalidParameterValue` for a resource type that is not allowed or given twice, and for
    /// invalid or missing tags.
    pub(super) fn tag_specifications(
        &self,
        allowed: &[&str],
    ) -> Result<BTreeMap<String, Tags>, Refusal> {
        let mut by_type = BTreeMap::new();
        for scope in self.root().groups("TagSpecification") {
            let kind = scope.required("ResourceType")?;
            if !allowed.contains(&kind.as_str()) {
                let message =
                    format!("'{kind}' is not a valid taggable resource type for this operation.");
                return Err(Refusal::invalid(message));
            }
            let tags = tags_of(&scope)?;
            tags::check(&tags)?;
            let empty = tags.is_empty();
            if by_type.insert(kind.clone(), tags).is_some() {
                let message = format!("Duplicate resource type '{kind}' in TagSpecification.");
                return Err(Refusal::invalid(message));
            }
            if empty {
                let message = "Tag specification must have at least one tag.";
                return Err(Refusal::invalid(message));
            }
        }
        Ok(by_type)
    }
}

/// Returns the tags `Tag.1`, `Tag.2` and so on. Of a key that is given twice, the last value counts: seen in
/// skypilot-org/skypilot, which sends such calls of CreateTags and has no case for a refusal.
pub(super) fn tags_by_key(scope: &Scope<'_>) -> Tags {
    let tag = |tag: &Scope<'_>| {
        (
            tag.text("Key").unwrap_or_default(),
            tag.text("Value").unwrap_or_default(),
        )
    };
    scope.groups("Tag").iter().map(tag).collect()
}

/// Returns the tags `Tag.1`, `Tag.2` and so on of a new resource. A missing value is empty.
///
/// # Errors
///
/// `InvalidParameterValue` for a key that is given twice.
pub(super) fn tags_of(scope: &Scope<'_>) -> Result<Tags, Refusal> {
    let mut tags = Tags::new();
    for tag in scope.groups("Tag") {
        let key = tag.text("Key").unwrap_or_default();
        let value = tag.text("Value").unwrap_or_default();
        if tags.insert(key.clone(), value).is_some() {
            return Err(Refusal::invalid(format!(
                "Duplicate tag key '{key}' specified."
            )));
        }
    }
    Ok(tags)
}

/// Returns tags as elements, in the order of their keys.
pub(super) fn tag_trees(tags: &Tags) -> impl Iterator<Item = Tree> {
    tags.iter()
        .map(|(key, value)| Tree::default().text("key", key).text("value", value))
}

/// Returns a page of a list that is completely in memory. The position is the number of the item.
pub(super) fn page_of<T>(
    items: Vec<T>,
    paging: &PageRequest,
    passes: impl Fn(&T) -> bool,
) -> Page<T> {
    let skip = usize::try_from(paging.position.after).unwrap_or(usize::MAX);
    let positions = paging.position.after + 1..;
    let (page, _) = paging.take(positions.zip(items.into_iter().skip(skip)).map(
        |(position, item)| {
            let passes = passes(&item);
            (position, passes.then_some(item))
        },
    ));
    page
}
