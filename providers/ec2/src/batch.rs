//! Native calls about many instances.
//!
//! EC2 fails a whole call because of one of its ids. Owns how such a batch is split, so that an unknown id, an
//! instance in the wrong state or a type without capacity does not keep the other instances from being
//! served.
//!
//! A batch without a problem is one native call. After a refusal the instances are read once, with one call
//! for each 200, and the batch is sent again in parts by what the refusal is about: the ids that exist, the
//! states, the offerings. A failure that is not about single instances, such as throttling, is the result of
//! every id and is never split: that would multiply the calls.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::{Filter, Instance, InstanceLifecycleType};
use fleetwright::{CloudInstanceState, InstanceId};
use fleetwright_provider_support::{Change, batch::deduplicate};

use crate::{
    client::Ec2Client,
    error::{Failure, is_unknown_id},
    refusal::{Concern, concern, is_protected, names, names_a_part},
    state,
};

/// EC2's limit of values for one filter.
pub(crate) const MAX_FILTER_VALUES: usize = 200;

/// What became of one id of a batch.
#[derive(Clone, Debug)]
pub(crate) enum ItemResult {
    /// It was changed, or needed no change.
    Changed,
    /// EC2 does not know it.
    NotFound,
    /// EC2 refused it. Has the instance if a read showed it after a refusal.
    Refused(Failure, Option<Box<Instance>>),
    /// A call about it was refused, and the read that would explain it failed. Nothing was changed.
    NotRead(Failure),
}

/// Changes `ids`, with one native call if EC2 accepts all of them. Returns a result for each id.
///
/// EC2 changes all ids of a call or none, so a refused batch can be sent again in parts. The exception is the
/// termination of a protected instance: EC2 then terminates a part of the batch and fails. That part can be sent
/// again too, because a second termination changes nothing.
pub(crate) async fn change(
    client: &Ec2Client,
    change: Change,
    ids: &[InstanceId],
) -> BTreeMap<InstanceId, ItemResult> {
    let ids = deduplicate(ids);
    let mut batch = Batch {
        client,
        change,
        seen: BTreeMap::new(),
        pending: Vec::new(),
        blind_splits: 4 * (ids.len().max(1).ilog2() + 1),
        results: BTreeMap::new(),
    };
    match batch.send(&ids).await {
        Ok(()) => batch.finish(ids, &ItemResult::Changed),
        Err(failure) if batch.needs_read(&failure, &ids) => {
            match find_existing(client, &ids).await {
                Ok(seen) => {
                    batch.seen = seen;
                    batch.split(ids, failure).await;
                    batch.send_pending().await;
                }
                Err(failed_read) => batch.finish(ids, &ItemResult::NotRead(failed_read)),
            }
        }
        Err(failure) => batch.refuse(ids, &failure),
    }
    batch.results
}

/// A batch that is sent in parts.
struct Batch<'a> {
    client: &'a Ec2Client,
    change: Change,
    /// What EC2 showed after the first refusal.
    seen: BTreeMap<InstanceId, Instance>,
    /// The parts that are not sent yet.
    pending: Vec<Vec<InstanceId>>,
    /// How often a part may still be split without a reason to separate its ids. Keeps a batch that EC2
    /// refuses as a whole from being sent once for each id.
    blind_splits: u32,
    results: BTreeMap<InstanceId, ItemResult>,
}

impl Batch<'_> {
    /// Sends one native call.
    async fn send(&self, ids: &[InstanceId]) -> Result<(), Failure> {
        match self.change {
            Change::Terminate => self.client.terminate(ids).await,
            Change::Stop => self.client.stop(ids).await,
            Change::Start => self.client.start(ids).await,
        }
    }

    /// Sends every part, and splits it further if EC2 refuses it.
    async fn send_pending(&mut self) {
        while let Some(ids) = self.pending.pop() {
            match self.send(&ids).await {
                Ok(()) => self.finish(ids, &ItemResult::Changed),
                Err(failure) => self.split(ids, failure).await,
            }
        }
    }

    /// Returns whether a refusal is explained, or its batch split, by a read. The refusal of one id mostly
    /// says enough; but an id without permission may not exist, and capacity and quota are those of an offering.
    fn needs_read(&self, failure: &Failure, ids: &[InstanceId]) -> bool {
        match concern(failure) {
            Concern::Call => false,
            Concern::Permission | Concern::Capacity | Concern::Quota => true,
            Concern::UnknownId | Concern::State | Concern::Kind => ids.len() > 1,
            Concern::Instance => {
                ids.len() > 1 && (is_protected(failure) || names_a_part(failure, ids))
            }
        }
    }

    /// Finishes the ids that a refusal is about, and prepares the others to be sent again. Every part is
    /// smaller than `ids`.
    async fn split(&mut self, ids: Vec<InstanceId>, failure: Failure) {
        match concern(&failure) {
            Concern::Call => self.refuse(ids, &failure),
            Concern::UnknownId => self.split_unknown(ids, &failure),
            Concern::Permission => self.split_by_permission(ids, &failure),
            Concern::State => self.split_by_state(ids, &failure),
            Concern::Kind => self.split_by_kind(ids, &failure),
            Concern::Capacity | Concern::Quota => {
                let parts = self.parts(&ids, offering);
                if parts.len() > 1 {
                    self.pending.extend(parts.into_values());
                } else {
                    self.send_what_fits(ids, failure).await;
                }
            }
            Concern::Instance => self.split_by_name(ids, &failure),
        }
    }

    /// Finishes the ids that EC2 does not know. It names them, all at once; if not, the read decides.
    fn split_unknown(&mut self, ids: Vec<InstanceId>, failure: &Failure) {
        let is_named = names_a_part(failure, &ids);
        let is_unknown = |id: &InstanceId| {
            if is_named {
                names(failure, id)
            } else {
                !self.seen.contains_key(id)
            }
        };
        let (unknown, rest): (Vec<_>, Vec<_>) = ids.into_iter().partition(is_unknown);
        if unknown.is_empty() {
            return self.split_by_name(rest, failure);
        }
        self.finish(unknown, &ItemResult::NotFound);
        self.pending.extend((!rest.is_empty()).then_some(rest));
    }

    /// Separates the ids that the read does not show. Under an IAM condition on tags, EC2 refuses two of them as
    /// unauthorized: an id that does not exist, and that of an ended instance, which has lost its tags. The read
    /// may have been stale, so the ids that it does not show are sent once more without the others.
    fn split_by_permission(&mut self, ids: Vec<InstanceId>, failure: &Failure) {
        let all = ids.len();
        let (mut shown, hidden): (Vec<_>, Vec<_>) =
            ids.into_iter().partition(|id| self.seen.contains_key(id));
        if hidden.len() == all {
            return self.finish(hidden, &ItemResult::NotFound);
        }
        if self.change == Change::Terminate {
            let ended: Vec<_> = shown.extract_if(.., |id| self.is_ending(id)).collect();
            self.finish(ended, &ItemResult::Changed);
        }
        if shown.len() == all {
            return self.split_by_name(shown, failure);
        }
        let parts = [hidden, shown].into_iter().filter(|part| !part.is_empty());
        self.pending.extend(parts);
    }

    /// Separates spot instances from others, and instances by the kind of their root disk. Spot instances are
    /// one-time, as this crate launches them, so none of them can be stopped.
    fn split_by_kind(&mut self, ids: Vec<InstanceId>, failure: &Failure) {
        let kind = |instance: &Instance| {
            let root = instance.root_device_type();
            let root = root.map(|kind| kind.as_str().to_owned());
            (is_spot(instance), root)
        };
        let parts = self.parts(&ids, kind);
        if parts.len() > 1 {
            self.pending.extend(parts.into_values());
        } else if ids.iter().all(|id| self.seen.get(id).is_some_and(is_spot)) {
            self.refuse(ids, failure);
        } else {
            self.split_by_name(ids, failure);
        }
    }

    /// Separates the instances whose state, as read, accepts the change from those whose state does not.
    fn split_by_state(&mut self, ids: Vec<InstanceId>, failure: &Failure) {
        let accepts = |id: &InstanceId| {
            let state = self.seen.get(id).map(state_of);
            state.is_none_or(|state| accepts(self.change, state))
        };
        let (accepting, refusing): (Vec<_>, Vec<_>) = ids.into_iter().partition(accepts);
        if accepting.is_empty() {
            self.refuse(refusing, failure);
        } else if refusing.is_empty() {
            self.split_by_name(accepting, failure);
        } else {
            // The read may have been stale, so those that seem to refuse are sent too.
            self.pending.extend([refusing, accepting]);
        }
    }

    /// Finishes the ids that EC2's message names, and separates the others from them. If it names none, the
    /// batch is halved a limited number of times.
    fn split_by_name(&mut self, ids: Vec<InstanceId>, failure: &Failure) {
        // EC2 names one protected instance at a time, and shows in no list which are protected.
        let is_named = names_a_part(failure, &ids);
        let is_limited = !(is_named && is_protected(failure));
        if ids.len() <= 1 || (is_limited && self.blind_splits == 0) {
            return self.refuse(ids, failure);
        }
        self.blind_splits = self.blind_splits.saturating_sub(u32::from(is_limited));
        if is_named {
            let (named, rest) = ids.into_iter().partition(|id| names(failure, id));
            self.refuse(named, failure);
            self.pending.push(rest);
        } else {
            let mut first = ids;
            let second = first.split_off(first.len() / 2);
            self.pending.extend([second, first]);
        }
    }

    /// Starts as many instances of one offering as there is capacity or quota for: in parts that get smaller
    /// with every refusal, until one instance alone is refused. Costs about `2 log2(n)` calls.
    async fn send_what_fits(&mut self, mut ids: Vec<InstanceId>, mut failure: Failure) {
        let mut size = ids.len() / 2;
        while size > 0 && !ids.is_empty() {
            let rest = ids.split_off(size.min(ids.len()));
            match self.send(&ids).await {
                Ok(()) => {
                    self.finish(std::mem::replace(&mut ids, rest), &ItemResult::Changed);
                }
                Err(refusal) => match concern(&refusal) {
                    Concern::Capacity | Concern::Quota => {
                        size = ids.len() / 2;
                        ids.extend(rest);
                        failure = refusal;
                    }
                    Concern::Call => {
                        ids.extend(rest);
                        return self.refuse(ids, &refusal);
                    }
                    // The part is split by what this refusal is about; the others continue.
                    Concern::UnknownId
                    | Concern::Permission
                    | Concern::State
                    | Concern::Kind
                    | Concern::Instance => {
                        self.pending.push(std::mem::replace(&mut ids, rest));
                    }
                },
            }
        }
        self.refuse(ids, &failure);
    }

    /// Returns the ids by a property of their instances. Instances that the read did not show have none.
    fn parts<K: Ord>(
        &self,
        ids: &[InstanceId],
        property: impl Fn(&Instance) -> K,
    ) -> BTreeMap<Option<K>, Vec<InstanceId>> {
        let mut parts: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for id in ids {
            let key = self.seen.get(id).map(&property);
            parts.entry(key).or_default().push(id.clone());
        }
        parts
    }

    fn is_ending(&self, id: &InstanceId) -> bool {
        let state = self.seen.get(id).map(state_of);
        state.is_some_and(CloudInstanceState::is_ending)
    }

    fn refuse(&mut self, ids: Vec<InstanceId>, failure: &Failure) {
        for id in ids {
            let seen = self.seen.get(&id).cloned().map(Box::new);
            self.results
                .insert(id, ItemResult::Refused(failure.clone(), seen));
        }
    }

    fn finish(&mut self, ids: Vec<InstanceId>, result: &ItemResult) {
        let results = ids.into_iter().map(|id| (id, result.clone()));
        self.results.extend(results);
    }
}

/// Reads `ids`, with one native call if EC2 knows all of them. Leaves out what EC2 does not know. In no order.
pub(crate) async fn read(client: &Ec2Client, ids: &[InstanceId]) -> Result<Vec<Instance>, Failure> {
    let ids = deduplicate(ids);
    match client.describe(&ids).await {
        Ok(instances) => Ok(instances),
        Err(failure) if is_unknown_id(&failure) && ids.len() == 1 => Ok(Vec::new()),
        Err(failure) if is_unknown_id(&failure) => {
            let existing = find_existing(client, &ids).await?;
            Ok(existing.into_values().collect())
        }
        Err(failure) => Err(failure),
    }
}

/// Returns whether an instance in this state accepts a stop or a start.
pub(crate) fn accepts(change: Change, state: CloudInstanceState) -> bool {
    use CloudInstanceState::{Pending, Running, Stopped, Stopping};
    match change {
        Change::Terminate => true,
        Change::Stop => matches!(state, Running | Stopping | Stopped),
        Change::Start => matches!(state, Pending | Running | Stopped),
    }
}

/// Reads those of `ids` that EC2 knows. A filter omits unknown ids, where a list of ids would fail.
async fn find_existing(
    client: &Ec2Client,
    ids: &[InstanceId],
) -> Result<BTreeMap<InstanceId, Instance>, Failure> {
    let mut existing = BTreeMap::new();
    for chunk in ids.chunks(MAX_FILTER_VALUES) {
        let values = chunk.iter().map(ToString::to_string).collect();
        let filter = Filter::builder()
            .name("instance-id")
            .set_values(Some(values))
            .build();
        existing.extend(by_id(client.list(&[filter], 1_000).await?));
    }
    Ok(existing)
}

/// Indexes instances by id. Instances without a valid id are left out.
fn by_id(instances: Vec<Instance>) -> BTreeMap<InstanceId, Instance> {
    let entries = instances.into_iter().filter_map(|instance| {
        let id = InstanceId::new(instance.instance_id()?).ok()?;
        Some((id, instance))
    });
    entries.collect()
}

fn state_of(instance: &Instance) -> CloudInstanceState {
    let name = instance.state().and_then(|state| state.name());
    state::normalize(name.map_or("", |name| name.as_str()))
}

fn is_spot(instance: &Instance) -> bool {
    instance.instance_lifecycle() == Some(&InstanceLifecycleType::Spot)
}

/// Returns what an instance needs capacity of: type, zone and market.
fn offering(instance: &Instance) -> (String, String, bool) {
    let kind = instance.instance_type().map(|kind| kind.as_str());
    let zone = instance.placement().and_then(|at| at.availability_zone());
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    (text(kind), text(zone), is_spot(instance))
}
