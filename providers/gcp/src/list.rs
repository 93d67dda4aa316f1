//! Listing: page by page over all our zones, with a gap for each that cannot be seen.
//!
//! Owns what a list falls back to. Where a list of all zones breaks down, nobody says for which of them, so
//! each of ours is asked; if none answers, the list has failed.

use std::{collections::BTreeSet, slice};

use fleetwright::{
    BoxStream, Call, CloudInstanceState, Effect, InstanceFilter, ListItem, Operation,
    ProvisionError, Result, Scope, Zone,
};
use futures_util::{StreamExt as _, stream};

use crate::{
    GcpProvisioner,
    address::last_part,
    client::{Look, Page},
    convert,
    error::{ErrorContext, Failure, GcpFailure as _},
};

impl GcpProvisioner {
    pub(crate) fn pages<'a>(
        &'a self,
        operation: Operation,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let step = move |at: Option<At<'a>>| async move {
            let at = at?;
            let call = self.call(operation);
            Some(self.next_page(&call, filter, at).await)
        };
        stream::unfold(Some(At::start(self.look())), step)
            .flat_map(stream::iter)
            .boxed()
    }

    async fn next_page<'a>(
        &'a self,
        call: &Call,
        filter: &InstanceFilter,
        mut at: At<'a>,
    ) -> (Vec<Result<ListItem>>, Option<At<'a>>) {
        let natively = convert::filter(filter);
        let size = self.options.page_size.get();
        let read = self
            .client
            .page(at.look, &natively, size, at.after.as_deref())
            .await;
        match (read, at.look) {
            (Ok(page), _) => {
                let next = page.next.clone();
                match self.shown(call, filter, page).await {
                    Ok(seen) if next.is_some() => {
                        at.after = next;
                        (seen, Some(at))
                    }
                    Ok(seen) => self.onward(at, seen),
                    Err(error) => (vec![Err(error)], None),
                }
            }
            // Nobody says which zone it is that cannot be seen, so each is asked.
            (Err(failure), Look::Everywhere) if failure.is_breakdown() && at.after.is_none() => {
                (Vec::new(), At::zone_by_zone(&self.launch.zones))
            }
            (Err(failure), Look::Zone(zone)) if failure.is_breakdown() && at.one_of_many => {
                let error = failure.into_error(call, ErrorContext::default());
                at.gaps.push((zone, error));
                self.onward(at, Vec::new())
            }
            (Err(failure), _) => (
                vec![Err(failure.into_error(call, ErrorContext::default()))],
                None,
            ),
        }
    }

    /// Goes on to the next zone, or ends with the zones that could not be seen. If that is all of them,
    /// nothing was seen at all, and the list has failed.
    fn onward<'a>(
        &self,
        at: At<'a>,
        mut seen: Vec<Result<ListItem>>,
    ) -> (Vec<Result<ListItem>>, Option<At<'a>>) {
        match at.onward() {
            Ok(next) => (seen, Some(next)),
            Err(gaps) if gaps.len() == self.launch.zones.len() => {
                seen.extend(gaps.into_iter().next().map(|(_, error)| Err(error)));
                (seen, None)
            }
            Err(gaps) => {
                let gaps = gaps.into_iter();
                seen.extend(gaps.filter_map(|(zone, error)| self.gap(zone, error)));
                (seen, None)
            }
        }
    }

    /// What a page shows of our zones, and the gaps in it.
    async fn shown(
        &self,
        call: &Call,
        filter: &InstanceFilter,
        mut page: Page,
    ) -> Result<Vec<Result<ListItem>>> {
        let told = |failure: Failure| failure.into_error(call, ErrorContext::default());
        // What is elsewhere is nothing to us, however odd; what says no zone may be anywhere.
        page.instances.retain(|native| {
            let zone = native.zone.as_deref().map(last_part);
            let mut zones = self.launch.zones.iter();
            zone.is_none_or(|zone| zones.any(|ours| ours.as_str() == zone))
        });
        let ours = self.infos(call, &page.instances)?;
        let stopping = ours
            .iter()
            .filter(|info| info.state == CloudInstanceState::Stopping);
        let at: Vec<_> = stopping.filter_map(|info| self.address(&info.id)).collect();
        let numbers: Vec<_> = at.iter().map(|at| at.number).collect();
        let zones = at.iter().map(|at| at.zone.as_str());
        let histories = self.histories(zones, &numbers).await.map_err(told)?;
        let infos = ours.into_iter().map(|info| self.judged(info, &histories));
        let infos = infos
            .filter(|info| filter.matches(info))
            .map(|info| Ok(ListItem::from(info)));
        let unseen: BTreeSet<_> = page.unseen.iter().collect();
        let gaps = unseen.into_iter().filter_map(|zone| {
            let error = call.unavailable(Effect::None, &format!("zone {zone} cannot be reached"));
            self.gap(zone, error)
        });
        Ok(infos.chain(gaps).collect())
    }

    /// That one of our zones could not be seen.
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

/// Where a list has got to.
#[derive(Debug)]
struct At<'a> {
    look: Look<'a>,
    after: Option<String>,
    /// The zones that come after this one.
    rest: slice::Iter<'a, Zone>,
    one_of_many: bool,
    /// The zones that could not be seen.
    gaps: Gaps<'a>,
}

type Gaps<'a> = Vec<(&'a str, ProvisionError)>;

impl<'a> At<'a> {
    fn start(look: Look<'a>) -> Self {
        Self {
            look,
            after: None,
            rest: [].iter(),
            one_of_many: false,
            gaps: Vec::new(),
        }
    }

    fn zone_by_zone(zones: &'a [Zone]) -> Option<Self> {
        let mut start = Self::start(Look::Everywhere);
        start.rest = zones.iter();
        start.one_of_many = true;
        start.onward().ok()
    }

    /// The next zone, or the gaps if there is none.
    fn onward(mut self) -> std::result::Result<Self, Gaps<'a>> {
        let Some(zone) = self.rest.next() else {
            return Err(self.gaps);
        };
        self.look = Look::Zone(zone.as_str());
        self.after = None;
        Ok(self)
    }
}
