//! Reading: instances by id and by name, and what operations tell of the others.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    slice,
};

use fleetwright::{
    Call, CloudInstanceState, Effect, ErrorKind, InstanceId, InstanceInfo, Operation,
    ProvisionError, Result, Zone,
};
use fleetwright_provider_support::{read_until, read_until_state};
use futures_util::future::BoxFuture;
use google_cloud_compute_v1::model::{Instance, Operation as NativeOperation};

use crate::{
    GcpProvisioner,
    address::Address,
    client::{Look, whole},
    convert,
    error::{ErrorContext, Failure, GcpFailure as _},
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
        self.fresh
            .retry_not_found(ids, &self.capabilities, once)
            .await
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
        let told = |failure: Failure| failure.into_error(call, ErrorContext::default());
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
    pub(crate) fn judged(&self, info: InstanceInfo, histories: &Histories) -> InstanceInfo {
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
    pub(crate) async fn resolve_stopping(
        &self,
        call: &Call,
        info: InstanceInfo,
    ) -> Result<InstanceInfo> {
        let at = self.address(&info.id);
        let Some(at) = at.filter(|_| info.state == CloudInstanceState::Stopping) else {
            return Ok(info);
        };
        let histories = self.histories([at.zone.as_str()], &[at.number]).await;
        let told = |failure: Failure| failure.into_error(call, ErrorContext::default());
        Ok(self.judged(info, &histories.map_err(told)?))
    }

    pub(crate) fn missing(&self, call: &Call, id: &InstanceId) -> ProvisionError {
        call.not_found_yet(id, self.capabilities.consistency_window)
    }

    pub(crate) async fn one(&self, operation: Operation, id: &InstanceId) -> Result<InstanceInfo> {
        let mut answers = self.described(operation, slice::from_ref(id)).await;
        answers
            .pop()
            .unwrap_or_else(|| Err(self.missing(&self.call(operation), id)))
    }

    /// Reads one until the answer is `enough` or cannot be of the past any more.
    pub(crate) async fn read_until(
        &self,
        operation: Operation,
        id: &InstanceId,
        enough: impl Fn(&InstanceInfo) -> bool + Send + Sync,
    ) -> Result<InstanceInfo> {
        let read = || -> BoxFuture<'_, _> { Box::pin(self.one(operation, id)) };
        read_until(&self.capabilities, read, enough).await
    }

    /// An instance that an optional verb is about, in one of the states that the verb needs.
    pub(crate) async fn in_state(
        &self,
        operation: Operation,
        id: &InstanceId,
        states: &[CloudInstanceState],
        needed: &str,
    ) -> Result<InstanceInfo> {
        let call = self.call(operation);
        let read = || -> BoxFuture<'_, _> { Box::pin(self.one(operation, id)) };
        read_until_state(&self.capabilities, &call, id, (states, needed), read).await
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
pub(crate) fn look_at<'z>(zones: impl IntoIterator<Item = &'z str>) -> Look<'z> {
    let mut zones = zones.into_iter();
    match zones.next() {
        Some(first) if zones.all(|zone| zone == first) => Look::Zone(first),
        Some(_) | None => Look::Everywhere,
    }
}
