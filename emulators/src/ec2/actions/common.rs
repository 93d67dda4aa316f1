//! What several actions read and write alike.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Call;
use crate::ec2::{
    engine::{
        Engine, Mode,
        filter::Filter,
        page::{Page, PagePosition, PageRequest},
        record::Tags,
        tags,
    },
    error::Refusal,
    wire::{params::Scope, xml},
};

/// The fewest that a client may ask of a page, and the most that it gets.
const PAGE: (usize, usize) = (5, 1000);

/// A reply that says only that it was done.
#[derive(Debug, Serialize)]
pub(super) struct Done {
    #[serde(rename = "return")]
    pub(super) done: bool,
}

impl Call<'_> {
    /// The parameters, to be read.
    pub(super) fn root(&self) -> Scope<'_> {
        self.params.root()
    }

    /// All parameters are read: refuses the rest.
    pub(super) fn finish(&self) -> Result<(), Refusal> {
        self.params.finish()
    }

    /// Whether the call is only a try.
    pub(super) fn mode(&self) -> Result<Mode, Refusal> {
        let dry = self.root().flag("DryRun")?.unwrap_or(false);
        Ok(if dry { Mode::DryRun } else { Mode::Execute })
    }

    /// For an action that changes nothing: a try succeeds, and says so.
    pub(super) fn finish_read(&self) -> Result<(), Refusal> {
        let mode = self.mode()?;
        self.finish()?;
        mode.check_dry_run()
    }

    /// The ids under a name, at least one.
    pub(super) fn ids(&self, name: &str) -> Result<Vec<String>, Refusal> {
        let ids = self.root().list(name);
        if ids.is_empty() {
            Err(Refusal::missing(name))
        } else {
            Ok(ids)
        }
    }

    /// The filters.
    pub(super) fn filters(&self) -> Result<Vec<Filter>, Refusal> {
        let filter = |scope: &Scope<'_>| {
            let name = scope.required("Name")?;
            let values = scope.list("Value");
            Ok(Filter { name, values })
        };
        self.root().groups("Filter").iter().map(filter).collect()
    }

    /// Which page is asked for, and whether the client said anything about pages.
    pub(super) fn paging(&self, engine: &Engine) -> Result<(PageRequest, bool), Refusal> {
        let root = self.root();
        let most: Option<usize> = root.number("MaxResults")?;
        let (least, cap) = PAGE;
        if let Some(most) = most.filter(|most| *most < least) {
            let message = format!(
                "Value ( {most} ) for parameter maxResults is invalid. Expecting a value greater than {least}."
            );
            return Err(Refusal::invalid(message));
        }
        let token = root.text("NextToken").filter(|token| !token.is_empty());
        let place = token.as_deref().map(|token| {
            PagePosition::from_token(self.action.name(), token).ok_or_else(Refusal::bad_page_token)
        });
        let knob = usize::try_from(engine.core.knobs.page_size.get()).unwrap_or(cap);
        let paging = PageRequest {
            limit: most.unwrap_or(cap).min(cap).min(knob),
            position: place.transpose()?.unwrap_or_default(),
            page_fault: self.context.page_fault,
        };
        Ok((paging, most.is_some() || token.is_some()))
    }

    /// The token of the page after this one.
    pub(super) fn next_token(&self, next: Option<PagePosition>) -> Option<String> {
        next.map(|place| place.token(self.action.name()))
    }

    /// The document.
    pub(super) fn reply<T: Serialize>(&self, body: &T) -> Result<String, Refusal> {
        xml::reply(self.action, &self.context.request_id, body)
    }

    /// The document of an action that only says that it was done.
    pub(super) fn done(&self) -> Result<String, Refusal> {
        self.reply(&Done { done: true })
    }

    /// The tags of `TagSpecification`, by type of resource.
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

/// The tags `Tag.1`, `Tag.2` and so on.
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

/// A page of a list that fits in memory whole.
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
