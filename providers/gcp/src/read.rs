//! Reading: instances by id and by name, and lists of operations.
//!
//! Owns which native calls a read needs. A zone that does not respond must never affect instances
//! of another zone, and an incomplete list proves nothing about an instance that is not in it.
//!
//! | read | native calls |
//! | --- | --- |
//! | one instance | `instances.get` by number; if it is not found, another one by name |
//! | many | one list by name for up to 170 of them |
//! | stopping or not found | what [`crate::resolve`] needs |
//!
//! An instance that does not exist is terminated if something proves it. Otherwise it is not found,
//! which may only mean that it does not show yet.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use fleetwright::{
    Call, Effect, ErrorKind, InstanceId, InstanceInfo, Operation, ProvisionError, Result, Zone,
    async_trait,
};
use fleetwright_provider_support::{ReadInstances, RecentLaunches};
use google_cloud_compute_v1::model::{Instance, Operation as NativeOperation};

use crate::{
    GcpProvisioner,
    address::{self, Address},
    client::{ListScope, require_complete},
    convert,
    error::{ErrorContext, Failure, GcpFailure as _},
    history::{self, History},
    resolve::Unclear,
};

/// How many instances one list of operations is about. This keeps the URL below 4,000 bytes.
pub(crate) const NUMBERS_PER_FILTER: usize = 100;

/// The largest part of a filter that names take, in bytes. Names of other owners can be long.
const MAX_NAME_FILTER_BYTES: usize = 5900;

/// Instances by id.
type Found = BTreeMap<InstanceId, InstanceInfo>;

/// Operations by the number of their instance.
pub(crate) type Histories = HashMap<u64, Vec<NativeOperation>>;

/// Sums up the operations of one instance.
pub(crate) fn summary_of(histories: &Histories, number: u64) -> History {
    history::summarize(histories.get(&number).into_iter().flatten())
}

#[async_trait]
impl ReadInstances for GcpProvisioner {
    fn recent_launches(&self) -> &RecentLaunches {
        &self.recent_launches
    }

    /// Describes many instances, with lists of as many as one filter can contain.
    async fn describe_once(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let call = self.call(operation);
        let mut results = Vec::with_capacity(ids.len());
        for some in chunks(ids, self.capabilities.batch_size.get()) {
            results.extend(self.find_each(&call, some).await);
        }
        results
    }
}

impl GcpProvisioner {
    /// Returns the address in an id of this project, or `None` for any other id.
    pub(crate) fn address(&self, id: &InstanceId) -> Option<Address> {
        Address::parse(id).filter(|at| at.project == self.client.project())
    }

    /// Returns the number in an id of this project, or `None` for any other id.
    pub(crate) fn number(&self, id: &InstanceId) -> Option<u64> {
        address::number_in(id, self.client.project())
    }

    /// Describes the instances of one filter. If the list fails, each zone is read on its own.
    async fn find_each(&self, call: &Call, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        if let [id] = ids {
            let found = self.find_by_id(call, ids).await;
            let missing = || self.not_found_yet(call, id);
            let info = found.and_then(|mut found| found.remove(id).ok_or_else(missing));
            return vec![info];
        }
        let result_for = |found: &Result<Found>, id: &InstanceId| match found {
            Ok(found) => {
                let info = found.get(id).cloned();
                info.ok_or_else(|| self.not_found_yet(call, id))
            }
            Err(error) => Err(error.clone()),
        };
        let together = self.find_by_id(call, ids).await;
        let groups = self.group_by_zone(ids);
        let broken = |error: &ProvisionError| error.kind() == ErrorKind::Unavailable;
        if groups.len() < 2 || !together.as_ref().is_err_and(broken) {
            return ids.iter().map(|id| result_for(&together, id)).collect();
        }
        let mut separate = BTreeMap::new();
        for (zone, some) in groups {
            separate.insert(zone, self.find_by_id(call, &some).await);
        }
        let each = ids.iter().map(|id| {
            let zone = self.address(id).map(|at| at.zone);
            let found = zone.and_then(|zone| separate.get(&zone));
            found.map_or_else(
                || Err(self.not_found_yet(call, id)),
                |found| result_for(found, id),
            )
        });
        each.collect()
    }

    /// Groups the ids of this project by zone.
    pub(crate) fn group_by_zone(&self, ids: &[InstanceId]) -> BTreeMap<String, Vec<InstanceId>> {
        let mut groups = BTreeMap::<_, Vec<_>>::new();
        for id in ids {
            if let Some(at) = self.address(id) {
                groups.entry(at.zone).or_default().push(id.clone());
            }
        }
        groups
    }

    /// Returns those of `ids` that exist, and those that are known not to exist any more.
    async fn find_by_id(&self, call: &Call, ids: &[InstanceId]) -> Result<Found> {
        let to_error = |failure: Failure| failure.into_error(call, ErrorContext::default());
        let wanted: BTreeMap<_, _> = ids
            .iter()
            .filter_map(|id| self.address(id))
            .map(|at| (at.number, at))
            .collect();
        let (natives, now) = self.read_natives(&wanted).await.map_err(to_error)?;
        let mut infos = self.infos(call, &natives)?;
        infos.retain(|info| ids.contains(&info.id));
        let infos = self.resolve_shown(infos, Unclear::Report).await;
        let infos = infos.map_err(to_error)?;
        let mut found: Found = infos
            .into_iter()
            .map(|info| (info.id.clone(), info))
            .collect();
        let shown: BTreeSet<_> = natives.iter().filter_map(|native| native.id).collect();
        let mut absent: Vec<_> = wanted.into_values().collect();
        absent.retain(|at| !shown.contains(&at.number));
        if !absent.is_empty() {
            // A name is unique only within its zone.
            let places = natives.iter().filter_map(|one| convert::place(one).ok());
            let names: BTreeSet<_> = places.map(|(zone, name, _)| (zone, name)).collect();
            let is_replaced = |at: &Address| names.contains(&(&*at.zone, &*at.name));
            let absent = self.resolve_absent(absent, now, is_replaced).await;
            let absent = absent.map_err(to_error)?.into_iter();
            found.extend(absent.map(|info| (info.id.clone(), info)));
        }
        Ok(found)
    }

    /// Reads the instances at these addresses, or those that have their names now: a single one by
    /// number and then by name, many with one list by name. Also returns the time of the read on the
    /// cloud's clock, which only the response "not found" has.
    async fn read_natives(
        &self,
        wanted: &BTreeMap<u64, Address>,
    ) -> Result<(Vec<Instance>, Option<DateTime<Utc>>), Failure> {
        let mut each = wanted.values();
        let (Some(first), None) = (each.next(), each.next()) else {
            let names = wanted.values().map(|at| at.name.as_str());
            let zones = wanted.values().map(|at| at.zone.as_str());
            if wanted.is_empty() {
                return Ok((Vec::new(), None));
            }
            let filter = convert::name_filter(names);
            return Ok((self.list_all(scope_of(zones), &filter).await?, None));
        };
        match self
            .client
            .get(&first.zone, &first.number.to_string())
            .await
        {
            Ok(native) => Ok((vec![native], None)),
            Err(absent) if absent.is_not_found() => {
                match self.client.get(&first.zone, &first.name).await {
                    Ok(native) => Ok((vec![native], absent.server_time)),
                    Err(failure) if failure.is_not_found() => Ok((Vec::new(), absent.server_time)),
                    Err(failure) => Err(failure),
                }
            }
            Err(failure) => Err(failure),
        }
    }

    /// Lists every instance that `filter` selects. Fails if a zone did not respond.
    pub(crate) async fn list_all(
        &self,
        scope: ListScope<'_>,
        filter: &str,
    ) -> Result<Vec<Instance>, Failure> {
        let (mut all, mut after) = (Vec::new(), None::<String>);
        loop {
            let size = self.options.page_size.get();
            let page = self
                .client
                .page(scope, filter, size, after.as_deref())
                .await?;
            require_complete(page.unreachable.iter().map(String::as_str))?;
            all.extend(page.instances);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// Lists every instance that `filter` selects in the configured zones. Other zones need not
    /// respond.
    pub(crate) async fn list_own_zones(&self, filter: &str) -> Result<Vec<Instance>, Failure> {
        let read = self.list_all(self.list_scope(), filter).await;
        if !(read.as_ref().is_err_and(Failure::is_unavailable) && self.has_many_zones()) {
            return read;
        }
        let mut all = Vec::new();
        for zone in &self.launch.zones {
            all.extend(
                self.list_all(ListScope::Zone(zone.as_str()), filter)
                    .await?,
            );
        }
        Ok(all)
    }

    /// Lists every operation that `filter` selects in the configured zones. Other zones need not
    /// respond.
    pub(crate) async fn operations_in_own_zones(
        &self,
        filter: &str,
    ) -> Result<Vec<NativeOperation>, Failure> {
        let read = self.client.operations(self.list_scope(), filter).await;
        if !(read.as_ref().is_err_and(Failure::is_unavailable) && self.has_many_zones()) {
            return read;
        }
        let mut all = Vec::new();
        for zone in &self.launch.zones {
            let scope = ListScope::Zone(zone.as_str());
            all.extend(self.client.operations(scope, filter).await?);
        }
        Ok(all)
    }

    /// Whether more than one zone is configured.
    fn has_many_zones(&self) -> bool {
        self.launch.zones.len() > 1
    }

    /// Lists the operations on these instances.
    pub(crate) async fn histories<'z>(
        &self,
        zones: impl IntoIterator<Item = &'z str>,
        numbers: &[u64],
    ) -> Result<Histories, Failure> {
        let mut histories = Histories::new();
        let scope = scope_of(zones);
        for some in numbers.chunks(NUMBERS_PER_FILTER) {
            for operation in self
                .client
                .operations(scope, &convert::operations_on(some))
                .await?
            {
                let number = operation.target_id.unwrap_or_default();
                histories.entry(number).or_default().push(operation);
            }
        }
        Ok(histories)
    }

    /// Converts many instances. Fails if one is malformed.
    pub(crate) fn infos(&self, call: &Call, natives: &[Instance]) -> Result<Vec<InstanceInfo>> {
        let info = |native| convert::info(self.client.project(), native);
        let infos: std::result::Result<_, _> = natives.iter().map(info).collect();
        infos.map_err(|problem| call.unexpected(Effect::Unknown, &problem))
    }

    /// The scope of all configured zones.
    pub(crate) fn list_scope(&self) -> ListScope<'_> {
        scope_of(self.launch.zones.iter().map(Zone::as_str))
    }
}

/// Splits `ids` into parts of at most `most`, each with a name filter that fits into a URL.
fn chunks(ids: &[InstanceId], most: usize) -> Vec<&[InstanceId]> {
    let name = |id: &InstanceId| Address::parse(id).map_or(0, |at| at.name.len() + 1);
    let (mut parts, mut from, mut bytes) = (Vec::new(), 0, 0);
    for (at, id) in ids.iter().enumerate() {
        bytes += name(id);
        if at - from >= most || bytes > MAX_NAME_FILTER_BYTES {
            parts.push(&ids[from..at]);
            (from, bytes) = (at, name(id));
        }
    }
    parts.push(&ids[from..]);
    parts
}

/// Returns the scope that includes all `zones`: one zone if all are the same.
pub(crate) fn scope_of<'z>(zones: impl IntoIterator<Item = &'z str>) -> ListScope<'z> {
    let mut zones = zones.into_iter();
    match zones.next() {
        Some(first) if zones.all(|zone| zone == first) => ListScope::Zone(first),
        Some(_) | None => ListScope::AllZones,
    }
}
