//! Reads, which may lag behind the true state.
//!
//! The knob `lag` chooses how old the state is that a read of instances returns. Volumes,
//! interfaces and images never lag. Every read counts the records that it touches.

use std::time::Duration;

use super::{
    Engine, ReadLag, Seq,
    filter::{self, Filter},
    page::{Page, PageRequest},
    record::{Instance, Key, State, Version},
    storage::{Nic, Volume},
};
use crate::ec2::error::Refusal;

/// An instance as a read returns it.
#[derive(Debug)]
pub(crate) struct ReadInstance<'a> {
    /// The instance with its fixed properties.
    pub(crate) instance: &'a Instance,
    /// The version that this read returns.
    pub(crate) version: &'a Version,
}

/// Refuses ids that are not of the form `prefix-` and 8 or 17 hexadecimal digits, with the given
/// code.
pub(crate) fn check_ids(ids: &[String], prefix: &str, code: &'static str) -> Result<(), Refusal> {
    let well_formed = |id: &&String| {
        let digits = id
            .strip_prefix(prefix)
            .and_then(|rest| rest.strip_prefix('-'));
        digits.is_some_and(|digits| {
            matches!(digits.len(), 8 | 17) && digits.bytes().all(|b| b.is_ascii_hexdigit())
        })
    };
    match ids.iter().find(|id| !well_formed(id)) {
        None => Ok(()),
        Some(id) => {
            let message = format!("Invalid id: \"{id}\" (expecting \"{prefix}-...\")");
            Err(Refusal::client(code, message))
        }
    }
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

    /// Returns the true state of an instance, without counting the read.
    pub(crate) fn instance(&self, id: &str) -> Option<&Instance> {
        self.instances.get(self.by_id.get(id)?)
    }

    /// Returns the instances with these ids that pass the filters, in the order of launch and each
    /// once.
    ///
    /// # Errors
    ///
    /// `InvalidInstanceID.Malformed` or `InvalidInstanceID.NotFound` if any id is wrong or
    /// missing; the latter names all missing ids.
    pub(crate) fn instances_by_id(
        &mut self,
        ids: &[String],
        filters: &[Filter],
        read_lag: ReadLag,
    ) -> Result<Vec<(Seq, Version)>, Refusal> {
        check_ids(ids, "i", "InvalidInstanceID.Malformed")?;
        filter::check::<ReadInstance<'_>>(filters)?;
        let moment = self.read_time(read_lag);
        self.core.records_read += ids.len() as u64;
        let (mut found_instances, mut missing) = (Vec::new(), Vec::new());
        for id in ids {
            let found = self
                .instance(id)
                .and_then(|instance| Some((instance, instance.version_at(moment)?)));
            match found {
                Some((instance, version)) => {
                    if filter::passes(&ReadInstance { instance, version }, filters) {
                        found_instances.push((instance.seq, version.clone()));
                    }
                }
                None => missing.push(id.as_str()),
            }
        }
        if !missing.is_empty() {
            return Err(Refusal::not_found(
                "InvalidInstanceID.NotFound",
                "instance",
                &missing,
            ));
        }
        found_instances.sort_by_key(|(seq, _)| *seq);
        found_instances.dedup_by_key(|(seq, _)| *seq);
        Ok(found_instances)
    }

    /// Returns a page of the instances that the filters select.
    ///
    /// Reads only the instances that the most selective indexed filter selects. Filters of state,
    /// tag and client token without wildcards are indexed, and so is the id.
    ///
    /// # Errors
    ///
    /// `InvalidParameterValue` for an unknown filter.
    pub(crate) fn instances_page(
        &mut self,
        filters: &[Filter],
        paging: &PageRequest,
        read_lag: ReadLag,
    ) -> Result<Page<(Seq, Version)>, Refusal> {
        filter::check::<ReadInstance<'_>>(filters)?;
        let moment = self.read_time(read_lag);
        let to_item = |seq: Seq| {
            let item = self.instances.get(&seq).and_then(|instance| {
                let version = instance.version_at(moment)?;
                let read = ReadInstance { instance, version };
                filter::passes(&read, filters).then(|| (seq, version.clone()))
            });
            (seq, item)
        };
        let (page, records_read) = match self.ids_in_filter(filters) {
            Some(seqs) => paging.take(
                seqs.into_iter()
                    .filter(|seq| *seq > paging.position.after)
                    .map(to_item),
            ),
            None => paging.take(
                self.instances
                    .find(&self.most_selective_keys(filters), paging.position.after)
                    .map(to_item),
            ),
        };
        self.core.records_read += records_read;
        Ok(page)
    }

    /// Returns the instances that an `instance-id` filter without wildcards names.
    fn ids_in_filter(&self, filters: &[Filter]) -> Option<Vec<Seq>> {
        let ids = exact_values(filters, "instance-id")?.iter();
        let mut seqs: Vec<Seq> = ids.filter_map(|id| self.by_id.get(id).copied()).collect();
        seqs.sort_unstable();
        seqs.dedup();
        Some(seqs)
    }

    /// Returns the index keys of the filter that selects the fewest instances.
    fn most_selective_keys(&self, filters: &[Filter]) -> Vec<Key> {
        let choices = filters.iter().filter_map(keys_of);
        let best = choices.min_by_key(|keys| self.instances.size(keys));
        best.unwrap_or_else(|| vec![Key::All])
    }

    /// Returns a page of volumes. Reads only those that an id or attachment filter names, if there
    /// is one.
    ///
    /// # Errors
    ///
    /// `InvalidParameterValue` for an unknown filter.
    pub(crate) fn volumes_page(
        &mut self,
        filters: &[Filter],
        paging: &PageRequest,
    ) -> Result<Page<Volume>, Refusal> {
        filter::check::<Volume>(filters)?;
        let to_item = |(seq, volume): (Seq, &Volume)| {
            (seq, filter::passes(volume, filters).then(|| volume.clone()))
        };
        let by_id = |id: &String| {
            self.volume_ids
                .get(id)
                .and_then(|seq| Some((*seq, self.volumes.get(seq)?)))
        };
        let by_ids =
            exact_values(filters, "volume-id").map(|ids| ids.iter().filter_map(by_id).collect());
        let attached = || {
            attached_instance_ids(filters)
                .map(|ids| ids.iter().flat_map(|id| self.volumes_of(id)).collect())
        };
        let (page, records_read) = match by_ids.or_else(attached) {
            Some(found) => paging.take(sort_after_position(found, paging).map(to_item)),
            None => paging.take(
                self.volumes
                    .range(paging.position.after + 1..)
                    .map(|(seq, volume)| (*seq, volume))
                    .map(to_item),
            ),
        };
        self.core.records_read += records_read;
        Ok(page)
    }

    /// Returns a page of network interfaces. Reads only those that an id or attachment filter
    /// names, if there is one.
    ///
    /// # Errors
    ///
    /// `InvalidParameterValue` for an unknown filter.
    pub(crate) fn nics_page(
        &mut self,
        filters: &[Filter],
        paging: &PageRequest,
    ) -> Result<Page<Nic>, Refusal> {
        filter::check::<Nic>(filters)?;
        let to_item =
            |(seq, nic): (Seq, &Nic)| (seq, filter::passes(nic, filters).then(|| nic.clone()));
        let by_id = |id: &String| {
            self.nic_ids
                .get(id)
                .and_then(|seq| Some((*seq, self.nics.get(seq)?)))
        };
        let by_ids = exact_values(filters, "network-interface-id")
            .map(|ids| ids.iter().filter_map(by_id).collect());
        let attached = || {
            attached_instance_ids(filters)
                .map(|ids| ids.iter().flat_map(|id| self.nics_of(id)).collect())
        };
        let (page, records_read) = match by_ids.or_else(attached) {
            Some(found) => paging.take(sort_after_position(found, paging).map(to_item)),
            None => paging.take(
                self.nics
                    .range(paging.position.after + 1..)
                    .map(|(seq, nic)| (*seq, nic))
                    .map(to_item),
            ),
        };
        self.core.records_read += records_read;
        Ok(page)
    }

    /// Returns a volume by its id.
    pub(crate) fn volume(&self, id: &str) -> Option<&Volume> {
        self.volumes.get(self.volume_ids.get(id)?)
    }

    /// Returns a network interface by its id.
    pub(crate) fn nic(&self, id: &str) -> Option<&Nic> {
        self.nics.get(self.nic_ids.get(id)?)
    }
}

/// Returns the index keys of a filter; `None` if it is not indexed or has wildcards.
fn keys_of(filter: &Filter) -> Option<Vec<Key>> {
    if !filter.values.iter().all(|value| filter::is_plain(value)) {
        return None;
    }
    let keys = filter.values.iter();
    if filter.name == "instance-state-name" {
        let state = |name: &String| State::ALL.into_iter().find(|state| state.name() == name);
        return Some(keys.filter_map(state).map(Key::State).collect());
    }
    if filter.name == "client-token" {
        return Some(keys.cloned().map(Key::Token).collect());
    }
    let tag = filter.name.strip_prefix("tag:")?;
    Some(
        keys.map(|value| Key::Tag(tag.to_owned(), value.clone()))
            .collect(),
    )
}

/// Returns the values of a filter, if it is present without wildcards.
fn exact_values<'a>(filters: &'a [Filter], name: &str) -> Option<&'a [String]> {
    let filter = filters.iter().find(|filter| filter.name == name)?;
    filter
        .values
        .iter()
        .all(|value| filter::is_plain(value))
        .then_some(&filter.values)
}

/// Returns the instances that an attachment filter without wildcards names.
fn attached_instance_ids(filters: &[Filter]) -> Option<&[String]> {
    exact_values(filters, "attachment.instance-id")
}

/// Returns the items behind the position of the page, in order and each once.
fn sort_after_position<'a, T>(
    mut items: Vec<(Seq, &'a T)>,
    paging: &PageRequest,
) -> impl Iterator<Item = (Seq, &'a T)> {
    items.retain(|(seq, _)| *seq > paging.position.after);
    items.sort_by_key(|(seq, _)| *seq);
    items.dedup_by_key(|(seq, _)| *seq);
    items.into_iter()
}
