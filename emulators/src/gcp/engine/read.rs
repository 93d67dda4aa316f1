//! Reads of instances, which may lag behind; and finding the instance that a call changes.
//!
//! Gets and lists return the version of an instance at a past time that the knob `lag` chooses.
//! Calls that change an instance see its true state, except that `lag` may hide a new one from
//! them.

use std::time::Duration;

use super::{
    Address, Engine,
    record::{Instance, Key, Version},
};
use crate::{
    cloud::{
        index::Seq,
        lag::ReadLag,
        page::{Page, PageRequest},
    },
    gcp::{
        catalog::region_of,
        error::Refusal,
        wire::route::{Scope, Target},
    },
};

/// An instance as a read returns it.
#[derive(Debug)]
pub(crate) struct ReadInstance<'a> {
    /// The instance with its fixed properties.
    pub(crate) instance: &'a Instance,
    /// The version that this read returns.
    pub(crate) version: &'a Version,
}

impl Engine {
    /// Returns the time whose state a read returns, or `None` if that is before the start.
    pub(crate) fn read_time(&mut self, read_lag: ReadLag) -> Option<Duration> {
        let now = self.now();
        self.core
            .knobs
            .lag
            .read_time(now, read_lag, &mut self.core.rng)
    }

    /// Returns the instance that has a name now. A deleted instance has none.
    pub(super) fn live_instance(&self, address: &Address) -> Option<&Instance> {
        let seq = self.by_name.get(address)?.last()?;
        self.instances
            .get(seq)
            .filter(|instance| !instance.is_gone())
    }

    /// Returns all instances that had a name and that a lagging read may return, newest first.
    ///
    /// As in Compute Engine, the numeric id is accepted instead of the name.
    fn seqs_named(&self, target: &Target) -> Vec<Seq> {
        let Scope::Zone(zone) = &target.scope else {
            return Vec::new();
        };
        if let Ok(id) = target.name.parse::<u64>() {
            let in_zone = |seq: &Seq| {
                let instance = self.instances.get(seq);
                instance.is_some_and(|instance| {
                    instance.fixed.project == target.project && instance.fixed.zone == *zone
                })
            };
            return self
                .instances
                .find(&[Key::Id(id)], 0)
                .filter(in_zone)
                .collect();
        }
        let address = (target.project.clone(), zone.clone(), target.name.clone());
        let seqs = self.by_name.get(&address).into_iter().flatten();
        seqs.rev().copied().collect()
    }

    /// Finds the instance that a call changes, and counts a read.
    ///
    /// # Errors
    ///
    /// 404 `notFound` for a missing or deleted instance, and for a new one that the knob `lag`
    /// hides.
    pub(crate) fn find(&mut self, target: &Target) -> Result<Seq, Refusal> {
        self.core.records_read += 1;
        let now = self.now();
        for seq in self.seqs_named(target) {
            let Some(instance) = self.instances.get(&seq) else {
                continue;
            };
            let created_at = instance.versions.created_at();
            if !instance.is_gone()
                && !self
                    .core
                    .knobs
                    .lag
                    .hides(created_at, now, &mut self.core.rng)
            {
                return Ok(seq);
            }
        }
        Err(Refusal::not_found(&target.path("instances")))
    }

    /// Returns an instance as a read at a chosen lag returns it, and counts a read.
    ///
    /// # Errors
    ///
    /// 404 `notFound` if no instance with this name existed at that time.
    pub(crate) fn read_instance(
        &mut self,
        target: &Target,
        read_lag: ReadLag,
    ) -> Result<ReadInstance<'_>, Refusal> {
        self.core.records_read += 1;
        let moment = self.read_time(read_lag);
        let seqs = self.seqs_named(target);
        let found = seqs.iter().find_map(|seq| {
            let instance = self.instances.get(seq)?;
            let version = instance.version_at(moment)?;
            Some(ReadInstance { instance, version })
        });
        found.ok_or_else(|| Refusal::not_found(&target.path("instances")))
    }

    /// Returns a page of the instances under any of `keys` for which `show` returns an item.
    ///
    /// Reads only those instances, so the cost does not grow with the fleet.
    pub(crate) fn instances_page<T>(
        &mut self,
        keys: &[Key],
        paging: &PageRequest,
        read_lag: ReadLag,
        show: impl Fn(&Self, ReadInstance<'_>) -> Option<T>,
    ) -> Page<T> {
        let moment = self.read_time(read_lag);
        let engine = &*self;
        let found = engine
            .instances
            .find(keys, paging.position.after)
            .map(|seq| {
                let item = engine.instances.get(&seq).and_then(|instance| {
                    let version = instance.version_at(moment)?;
                    show(engine, ReadInstance { instance, version })
                });
                (seq, item)
            });
        let (page, records_read) = paging.take(found);
        self.core.records_read += records_read;
        page
    }

    /// Returns the set of keys with the fewest instances.
    pub(crate) fn smallest_key_set(&self, choices: Vec<Vec<Key>>) -> Vec<Key> {
        let best = choices
            .into_iter()
            .min_by_key(|keys| self.instances.size(keys));
        best.unwrap_or_default()
    }
}

/// Names in the catalog.
impl Engine {
    /// Returns the regions, in the order of their zones.
    pub(crate) fn regions(&self) -> Vec<String> {
        let regions = self.core.knobs.zones.iter().map(|zone| region_of(zone));
        distinct(regions)
    }

    /// Returns whether a region has a zone.
    pub(crate) fn has_region(&self, region: &str) -> bool {
        self.core
            .knobs
            .zones
            .iter()
            .any(|zone| region_of(zone) == region)
    }

    /// Returns the networks that have subnetworks, in the order of the knobs.
    pub(crate) fn networks(&self) -> Vec<String> {
        distinct(
            self.core
                .knobs
                .subnetworks
                .iter()
                .map(|known| &*known.network),
        )
    }
}

/// Returns each name once, in the order of its first occurrence.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut found = Vec::new();
    for name in names {
        if !found.iter().any(|other| other == name) {
            found.push(name.to_owned());
        }
    }
    found
}
