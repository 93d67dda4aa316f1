//! Listing: page by page over all configured zones, with a gap for each zone that did not respond.
//!
//! Owns the fallback of a list. If a list of all zones fails, the response does not say because of
//! which zone, so each configured zone is listed on its own. If none responds, the list fails. A
//! list must never omit a zone silently.
//!
//! Instances in other zones of the project are ignored. A page can be empty and still have a
//! successor. A page token that leads to the same page is an error.

use std::{collections::BTreeSet, slice};

use fleetwright::{
    BoxStream, Call, Effect, InstanceFilter, ListItem, Operation, ProvisionError, Result, Scope,
    Zone,
};
use futures_util::{StreamExt as _, stream};

use crate::{
    GcpProvisioner,
    address::last_part,
    client::{ListScope, Page},
    convert,
    error::{ErrorContext, Failure, GcpFailure as _},
    resolve::Unclear,
};

impl GcpProvisioner {
    /// Lists the instances that `filter` selects.
    pub(crate) fn pages<'a>(
        &'a self,
        operation: Operation,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let step = move |cursor: Option<Cursor<'a>>| async move {
            let cursor = cursor?;
            let call = self.call(operation);
            Some(self.next_page(&call, filter, cursor).await)
        };
        stream::unfold(Some(Cursor::start(self.list_scope())), step)
            .flat_map(stream::iter)
            .boxed()
    }

    /// Reads the page at `cursor`. Returns its items, and the cursor of the next page.
    async fn next_page<'a>(
        &'a self,
        call: &Call,
        filter: &InstanceFilter,
        mut cursor: Cursor<'a>,
    ) -> (Vec<Result<ListItem>>, Option<Cursor<'a>>) {
        let native_filter = convert::list_filter(filter);
        let size = self.options.page_size.get();
        let read = self
            .client
            .page(cursor.scope, &native_filter, size, cursor.after.as_deref())
            .await;
        match (read, cursor.scope) {
            (Ok(page), _) => {
                let next = page.next.clone();
                match self.page_items(call, filter, page).await {
                    Ok(items) if next.is_some() => {
                        cursor.after = next;
                        (items, Some(cursor))
                    }
                    Ok(items) => self.advance(cursor, items),
                    Err(error) => (vec![Err(error)], None),
                }
            }
            // The response does not say which zone failed, so each is listed on its own.
            (Err(failure), ListScope::AllZones)
                if failure.is_unavailable() && cursor.after.is_none() =>
            {
                (Vec::new(), Cursor::zone_by_zone(&self.launch.zones))
            }
            (Err(failure), ListScope::Zone(zone))
                if failure.is_unavailable() && cursor.one_of_many =>
            {
                let error = failure.into_error(call, ErrorContext::default());
                cursor.gaps.push((zone, error));
                self.advance(cursor, Vec::new())
            }
            (Err(failure), _) => (
                vec![Err(failure.into_error(call, ErrorContext::default()))],
                None,
            ),
        }
    }

    /// Continues with the next zone, or ends the list with a gap for each zone that did not
    /// respond. If no zone responded, the list fails.
    fn advance<'a>(
        &self,
        cursor: Cursor<'a>,
        mut items: Vec<Result<ListItem>>,
    ) -> (Vec<Result<ListItem>>, Option<Cursor<'a>>) {
        match cursor.advance() {
            Ok(next) => (items, Some(next)),
            Err(gaps) if gaps.len() == self.launch.zones.len() => {
                items.extend(gaps.into_iter().next().map(|(_, error)| Err(error)));
                (items, None)
            }
            Err(gaps) => {
                let gaps = gaps.into_iter();
                items.extend(gaps.filter_map(|(zone, error)| self.gap(zone, error)));
                (items, None)
            }
        }
    }

    /// Converts the instances of a page that are in configured zones, and adds its gaps.
    async fn page_items(
        &self,
        call: &Call,
        filter: &InstanceFilter,
        mut page: Page,
    ) -> Result<Vec<Result<ListItem>>> {
        let to_error = |failure: Failure| failure.into_error(call, ErrorContext::default());
        // An instance in another zone is ignored, even if it is malformed. One without a zone is
        // not.
        page.instances.retain(|native| {
            let zone = native.zone.as_deref().map(last_part);
            let mut zones = self.launch.zones.iter();
            zone.is_none_or(|zone| zones.any(|ours| ours.as_str() == zone))
        });
        let ours = self.infos(call, &page.instances)?;
        let infos = self.resolve_shown(ours, Unclear::Report).await;
        let infos = infos.map_err(to_error)?.into_iter();
        let infos = infos
            .filter(|info| filter.matches(info))
            .map(|info| Ok(ListItem::from(info)));
        let unreachable: BTreeSet<_> = page.unreachable.iter().collect();
        let gaps = unreachable.into_iter().filter_map(|zone| {
            let error = call.unavailable(Effect::None, &format!("zone {zone} does not respond"));
            self.gap(zone, error)
        });
        Ok(infos.chain(gaps).collect())
    }

    /// Returns the gap of a zone, or `None` if the zone is not configured.
    fn gap(&self, zone: &str, error: ProvisionError) -> Option<Result<ListItem>> {
        let zone = self
            .launch
            .zones
            .iter()
            .find(|ours| ours.as_str() == zone)?;
        let scope = Scope::zone(zone.clone());
        Some(Ok(ListItem::Gap { scope, error }))
    }
}

/// The position of a list.
#[derive(Debug)]
struct Cursor<'a> {
    /// Where the current page is read.
    scope: ListScope<'a>,
    /// The token of the current page; `None` for the first one.
    after: Option<String>,
    /// The zones that are still to be listed.
    rest: slice::Iter<'a, Zone>,
    /// Whether zones are listed one by one.
    one_of_many: bool,
    /// The zones that did not respond.
    gaps: Gaps<'a>,
}

/// Zones that did not respond, with the error of each.
type Gaps<'a> = Vec<(&'a str, ProvisionError)>;

impl<'a> Cursor<'a> {
    /// Starts at the first page of a scope.
    fn start(scope: ListScope<'a>) -> Self {
        Self {
            scope,
            after: None,
            rest: [].iter(),
            one_of_many: false,
            gaps: Vec::new(),
        }
    }

    /// Starts at the first of `zones`. `None` if there is none.
    fn zone_by_zone(zones: &'a [Zone]) -> Option<Self> {
        let mut start = Self::start(ListScope::AllZones);
        start.rest = zones.iter();
        start.one_of_many = true;
        start.advance().ok()
    }

    /// Moves to the next zone. Returns the gaps if there is none.
    fn advance(mut self) -> std::result::Result<Self, Gaps<'a>> {
        let Some(zone) = self.rest.next() else {
            return Err(self.gaps);
        };
        self.scope = ListScope::Zone(zone.as_str());
        self.after = None;
        Ok(self)
    }
}
