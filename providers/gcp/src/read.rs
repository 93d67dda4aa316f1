//! Reading: instances by id and by filter, page by page, and what operations tell of the others.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    slice,
};

use fleetwright::{
    BoxStream, Call, CloudInstanceState, Effect, ErrorKind, InstanceFilter, InstanceId,
    InstanceInfo, Operation, ProvisionError, Result, Scope, Seen, Zone, read_past_lag,
};
use futures_util::{StreamExt as _, future::BoxFuture, stream};
use google_cloud_compute_v1::model::{Instance, Operation as NativeOperation};

use crate::{
    GcpProvisioner,
    address::{Address, last_part},
    client::{Look, Page, whole},
    convert,
    error::{About, Failure},
    history::{self, Fate},
};

/// How many instances operations are asked about at once: what keeps the URL below four thousand bytes.
const NUMBERS_IN_A_LIST: usize = 100;

/// How much of a filter the names of instances are at most: ours are short, those of others need not be.
const BYTES_OF_NAMES: usize = 5900;

/// What was found, by id.
type Found = BTreeMap<InstanceId, InstanceInfo>;

/// Operations by the number of the instance that they are about.
pub(crate) type Histories = HashMap<u64, Vec<NativeOperation>>;

/// The fate of an instance, by what was read of its operations.
pub(crate) fn fate_of(histories: &Histories, number: u64) -> Fate {
    history::fate(histories.get(&number).into_iter().flatten())
}

impl GcpProvisioner {
    /// The address in an id of ours: one of another project is nobody's here.
    pub(crate) fn address(&self, id: &InstanceId) -> Option<Address> {
        Address::parse(id).filter(|at| at.project == self.client.project())
    }

    /// The instances by id, each as it is or not found.
    pub(crate) async fn described(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let once = |ids: Vec<InstanceId>| -> BoxFuture<'_, _> {
            Box::pin(async move { self.described_once(operation, &ids).await })
        };
        self.fresh.patiently(ids, &self.capabilities, once).await
    }

    async fn described_once(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let call = self.call(operation);
        let mut answers = Vec::with_capacity(ids.len());
        for some in chunks(ids, self.capabilities.batch_size.get()) {
            answers.extend(self.each_found(&call, some).await);
        }
        answers
    }

    /// Each of `ids`. Where a list breaks down, zones are asked one by one, so that one that cannot be
    /// reached takes no other with it.
    async fn each_found(&self, call: &Call, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        let answer = |found: &Result<Found>, id: &InstanceId| match found {
            Ok(found) => {
                let info = found.get(id).cloned();
                info.ok_or_else(|| self.missing(call, id))
            }
            Err(error) => Err(error.clone()),
        };
        let together = self.found(call, ids).await;
        let groups = self.by_zone(ids);
        let broken = |error: &ProvisionError| error.kind() == ErrorKind::Unavailable;
        if groups.len() < 2 || !together.as_ref().is_err_and(broken) {
            return ids.iter().map(|id| answer(&together, id)).collect();
        }
        let mut apart = BTreeMap::new();
        for (zone, some) in groups {
            apart.insert(zone, self.found(call, &some).await);
        }
        let each = ids.iter().map(|id| {
            let zone = self.address(id).map(|at| at.zone);
            let found = zone.and_then(|zone| apart.get(&zone));
            found.map_or_else(|| Err(self.missing(call, id)), |found| answer(found, id))
        });
        each.collect()
    }

    /// The ids of ours among `ids`, by zone.
    pub(crate) fn by_zone(&self, ids: &[InstanceId]) -> BTreeMap<String, Vec<InstanceId>> {
        let mut groups = BTreeMap::<_, Vec<_>>::new();
        for id in ids {
            if let Some(at) = self.address(id) {
                groups.entry(at.zone).or_default().push(id.clone());
            }
        }
        groups
    }

    /// Those of `ids` that are there, or of which operations tell.
    async fn found(&self, call: &Call, ids: &[InstanceId]) -> Result<Found> {
        let told = |failure: Failure| failure.into_error(call, About::default());
        let wanted: BTreeMap<_, _> = ids
            .iter()
            .filter_map(|id| Some((self.address(id)?.number, self.address(id)?)))
            .collect();
        let natives = self.natives(&wanted).await.map_err(told)?;
        let mut infos = self.infos(call, &natives)?;
        infos.retain(|info| ids.contains(&info.id));
        let seen: BTreeSet<_> = natives.iter().filter_map(|native| native.id).collect();
        let unclear = |info: &InstanceInfo| info.state == CloudInstanceState::Stopping;
        let mut asked: Vec<_> = wanted
            .keys()
            .copied()
            .filter(|number| !seen.contains(number))
            .collect();
        let stopping = infos.iter().filter(|info| unclear(info));
        asked.extend(stopping.filter_map(|info| Some(self.address(&info.id)?.number)));
        let zones = wanted.values().map(|at| at.zone.as_str());
        let histories = self.histories(zones, &asked).await.map_err(told)?;
        let mut found: BTreeMap<_, _> = infos
            .into_iter()
            .map(|info| (info.id.clone(), self.judged(info, &histories)))
            .collect();
        // A name is of one zone: in another, it is another instance's.
        let there = natives.iter().filter_map(|native| {
            let at = convert::address(self.client.project(), native).ok()?;
            Some((at.zone, at.name))
        });
        let names: BTreeSet<_> = there.collect();
        for at in wanted.values().filter(|at| !seen.contains(&at.number)) {
            let fate = fate_of(&histories, at.number);
            let window = self.capabilities.consistency_window;
            let absent = convert::absent(at, &fate, window);
            let taken = || {
                names
                    .contains(&(at.zone.clone(), at.name.clone()))
                    .then(|| convert::replaced(at))
                    .flatten()
            };
            found.extend(absent.or_else(taken).map(|info| (info.id.clone(), info)));
        }
        Ok(found)
    }

    /// The instances at these addresses, and those that have the name of one: with one call by number
    /// for one, and one list by name for many.
    async fn natives(&self, wanted: &BTreeMap<u64, Address>) -> Result<Vec<Instance>, Failure> {
        let mut each = wanted.values();
        let (Some(first), None) = (each.next(), each.next()) else {
            let names = wanted.values().map(|at| at.name.as_str());
            let zones = wanted.values().map(|at| at.zone.as_str());
            if wanted.is_empty() {
                return Ok(Vec::new());
            }
            return self.all(look_at(zones), &convert::named(names)).await;
        };
        match self
            .client
            .get(&first.zone, &first.number.to_string())
            .await
        {
            Ok(native) => Ok(vec![native]),
            Err(failure) if failure.is_not_found() => {
                match self.client.get(&first.zone, &first.name).await {
                    Ok(native) => Ok(vec![native]),
                    Err(failure) if failure.is_not_found() => Ok(Vec::new()),
                    Err(failure) => Err(failure),
                }
            }
            Err(failure) => Err(failure),
        }
    }

    /// Everything that `filter` selects, page by page; one place that cannot be seen fails it.
    pub(crate) async fn all(&self, look: Look<'_>, filter: &str) -> Result<Vec<Instance>, Failure> {
        let (mut all, mut after) = (Vec::new(), None::<String>);
        loop {
            let size = self.options.page_size.get();
            let page = self
                .client
                .page(look, filter, size, after.as_deref())
                .await?;
            whole(page.unseen.iter().map(String::as_str))?;
            all.extend(page.instances);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// Everything that `filter` selects of our zones. What is somewhere else need not be seen.
    pub(crate) async fn all_of_ours(&self, filter: &str) -> Result<Vec<Instance>, Failure> {
        let read = self.all(self.look(), filter).await;
        if !(read.as_ref().is_err_and(Failure::is_breakdown) && self.has_many_zones()) {
            return read;
        }
        let mut all = Vec::new();
        for zone in &self.launch.zones {
            all.extend(self.all(Look::Zone(zone.as_str()), filter).await?);
        }
        Ok(all)
    }

    /// The same of operations.
    pub(crate) async fn operations_of_ours(
        &self,
        filter: &str,
    ) -> Result<Vec<NativeOperation>, Failure> {
        let read = self.client.operations(self.look(), filter).await;
        if !(read.as_ref().is_err_and(Failure::is_breakdown) && self.has_many_zones()) {
            return read;
        }
        let mut all = Vec::new();
        for zone in &self.launch.zones {
            let look = Look::Zone(zone.as_str());
            all.extend(self.client.operations(look, filter).await?);
        }
        Ok(all)
    }

    fn has_many_zones(&self) -> bool {
        self.launch.zones.len() > 1
    }

    /// The operations on these instances.
    pub(crate) async fn histories<'z>(
        &self,
        zones: impl IntoIterator<Item = &'z str>,
        numbers: &[u64],
    ) -> Result<Histories, Failure> {
        let mut histories = Histories::new();
        let look = look_at(zones);
        for some in numbers.chunks(NUMBERS_IN_A_LIST) {
            for operation in self.client.operations(look, &convert::about(some)).await? {
                let number = operation.target_id.unwrap_or_default();
                histories.entry(number).or_default().push(operation);
            }
        }
        Ok(histories)
    }

    /// An instance as it is shown, once it is known whether it is being deleted.
    fn judged(&self, info: InstanceInfo, histories: &Histories) -> InstanceInfo {
        let number = self
            .address(&info.id)
            .map(|at| at.number)
            .unwrap_or_default();
        let stopping = info.state == CloudInstanceState::Stopping;
        match fate_of(histories, number) {
            Fate::Going | Fate::Gone(_) | Fate::Failed(_) if stopping => convert::going(info),
            Fate::Unknown
            | Fate::Coming
            | Fate::Going
            | Fate::Gone(_)
            | Fate::Failed(_)
            | Fate::Made(_) => info,
        }
    }

    /// An instance as it is shown, once its operations are asked whether it is being deleted.
    pub(crate) async fn unless_going(
        &self,
        call: &Call,
        info: InstanceInfo,
    ) -> Result<InstanceInfo> {
        let at = self.address(&info.id);
        let Some(at) = at.filter(|_| info.state == CloudInstanceState::Stopping) else {
            return Ok(info);
        };
        let histories = self.histories([at.zone.as_str()], &[at.number]).await;
        let told = |failure: Failure| failure.into_error(call, About::default());
        Ok(self.judged(info, &histories.map_err(told)?))
    }

    pub(crate) fn missing(&self, call: &Call, id: &InstanceId) -> ProvisionError {
        let window = self.capabilities.consistency_window;
        let error = call.not_found(id);
        if window.is_zero() {
            error
        } else {
            error.retry_after(window)
        }
    }

    pub(crate) async fn one(&self, operation: Operation, id: &InstanceId) -> Result<InstanceInfo> {
        let mut answers = self.described(operation, slice::from_ref(id)).await;
        answers
            .pop()
            .unwrap_or_else(|| Err(self.missing(&self.call(operation), id)))
    }

    /// Reads one until the answer is `enough` or cannot be of the past any more.
    pub(crate) async fn read_past_lag(
        &self,
        operation: Operation,
        id: &InstanceId,
        enough: impl Fn(&InstanceInfo) -> bool + Send + Sync,
    ) -> Result<InstanceInfo> {
        let read = || -> BoxFuture<'_, _> { Box::pin(self.one(operation, id)) };
        read_past_lag(&self.capabilities, read, enough).await
    }

    /// An instance that an optional verb is about, in one of the states that the verb needs.
    pub(crate) async fn in_state(
        &self,
        operation: Operation,
        id: &InstanceId,
        states: &[CloudInstanceState],
        needed: &str,
    ) -> Result<InstanceInfo> {
        let fit = |info: &InstanceInfo| states.contains(&info.state) || info.state.is_ending();
        let read = self.read_past_lag(operation, id, fit).await;
        let info = read.map_err(|error| error.with_effect(Effect::None))?;
        if states.contains(&info.state) {
            return Ok(info);
        }
        Err(self.call(operation).wrong_state(id, info.state, needed))
    }

    pub(crate) fn infos(&self, call: &Call, natives: &[Instance]) -> Result<Vec<InstanceInfo>> {
        let info = |native| convert::info(self.client.project(), native);
        let infos: std::result::Result<_, _> = natives.iter().map(info).collect();
        infos.map_err(|wrong| call.unexpected(Effect::Unknown, &wrong))
    }

    /// Where everything that is launched here can be.
    pub(crate) fn look(&self) -> Look<'_> {
        look_at(self.launch.zones.iter().map(Zone::as_str))
    }

    pub(crate) fn pages<'a>(
        &'a self,
        operation: Operation,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<Seen>> {
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
    ) -> (Vec<Result<Seen>>, Option<At<'a>>) {
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
                let error = failure.into_error(call, About::default());
                at.gaps.push((zone, error));
                self.onward(at, Vec::new())
            }
            (Err(failure), _) => (vec![Err(failure.into_error(call, About::default()))], None),
        }
    }

    /// Goes on to the next zone, or ends with the zones that could not be seen. If that is all of them,
    /// nothing was seen at all, and the list has failed.
    fn onward<'a>(
        &self,
        at: At<'a>,
        mut seen: Vec<Result<Seen>>,
    ) -> (Vec<Result<Seen>>, Option<At<'a>>) {
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
    ) -> Result<Vec<Result<Seen>>> {
        let told = |failure: Failure| failure.into_error(call, About::default());
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
            .map(|info| Ok(Seen::from(info)));
        let unseen: BTreeSet<_> = page.unseen.iter().collect();
        let gaps = unseen.into_iter().filter_map(|zone| {
            let error = call.unavailable(Effect::None, &format!("zone {zone} cannot be reached"));
            self.gap(zone, error)
        });
        Ok(infos.chain(gaps).collect())
    }

    /// That one of our zones could not be seen.
    fn gap(&self, zone: &str, error: ProvisionError) -> Option<Result<Seen>> {
        let zone = self
            .launch
            .zones
            .iter()
            .find(|ours| ours.as_str() == zone)?;
        let scope = Scope::zone(zone.clone());
        Some(Ok(Seen::Gap { scope, error }))
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

/// `ids` in parts of at most `most`, each with a filter by name that fits a URL.
fn chunks(ids: &[InstanceId], most: usize) -> Vec<&[InstanceId]> {
    let name = |id: &InstanceId| Address::parse(id).map_or(0, |at| at.name.len() + 1);
    let (mut parts, mut from, mut bytes) = (Vec::new(), 0, 0);
    for (at, id) in ids.iter().enumerate() {
        bytes += name(id);
        if at - from >= most || bytes > BYTES_OF_NAMES {
            parts.push(&ids[from..at]);
            (from, bytes) = (at, name(id));
        }
    }
    parts.push(&ids[from..]);
    parts
}

/// One zone if that is enough.
fn look_at<'z>(zones: impl IntoIterator<Item = &'z str>) -> Look<'z> {
    let mut zones = zones.into_iter();
    match zones.next() {
        Some(first) if zones.all(|zone| zone == first) => Look::Zone(first),
        Some(_) | None => Look::Everywhere,
    }
}
