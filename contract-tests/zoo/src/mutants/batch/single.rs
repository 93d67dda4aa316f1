//! Batches that show less, or do less, than calls for one instance.

use std::{collections::BTreeSet, sync::Mutex};

use async_trait::async_trait;
use fleetwright::{
    CloudInstanceState::Terminated, InstanceFilter, InstanceId, InstanceInfo, InstanceStatus,
    Result, Tags,
};

use crate::{CallContext, Override, mutants::token::lock};

/// Reads the addresses of a batch only if all of its instances exist.
#[derive(Default)]
pub(super) struct HidesAddressesBesideTheEnded;

#[async_trait]
impl Override for HidesAddressesBesideTheEnded {
    async fn describe_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        let mut results = at.inner.describe_instances(ids).await;
        let ended = |result: &Result<InstanceStatus>| {
            let status = result.as_ref();
            status.map_or(true, |status| status.state.is_ending())
        };
        if results.iter().any(ended) {
            for status in results.iter_mut().flatten() {
                (status.private_ip, status.public_ip) = (None, None);
            }
        }
        results
    }
}

#[derive(Default)]
pub(super) struct NamesNoNativeStates;

#[async_trait]
impl Override for NamesNoNativeStates {
    async fn describe_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        let mut results = at.inner.describe_instances(ids).await;
        for status in results.iter_mut().flatten() {
            status.native_state = None;
        }
        results
    }
}

/// Omits from the results of a batch of starts what `omit` removes.
fn omit_in_starts(
    mut results: Vec<Result<InstanceInfo>>,
    omit: fn(&mut InstanceInfo),
) -> Vec<Result<InstanceInfo>> {
    if results.len() > 1 {
        results.iter_mut().flatten().for_each(omit);
    }
    results
}

macro_rules! batch_of_starts_without {
    ($name:ident, $what:literal, $omit:expr) => {
        #[doc = concat!("Returns no ", $what, " from a batch of starts.")]
        #[derive(Default)]
        pub(super) struct $name;

        #[async_trait]
        impl Override for $name {
            async fn start_instances(
                &self,
                at: CallContext<'_>,
                ids: &[InstanceId],
            ) -> Vec<Result<InstanceInfo>> {
                omit_in_starts(at.inner.start_instances(ids).await, $omit)
            }
        }
    };
}

batch_of_starts_without!(StartsWithoutTags, "tags", |info| info.tags = Tags::new());
batch_of_starts_without!(StartsWithoutType, "type", |info| info.instance_type = None);
batch_of_starts_without!(StartsWithoutZone, "placement", |info| info.placement.zone =
    None);
batch_of_starts_without!(StartsWithoutTime, "launch time", |info| info.launch_time =
    None);
batch_of_starts_without!(StartsWithoutAddress, "address", |info| info.public_ip =
    None);

/// Takes an instance that a list does not show for terminated.
#[derive(Default)]
pub(super) struct SkipsWhatListsOmit;

#[async_trait]
impl Override for SkipsWhatListsOmit {
    async fn terminate_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let Ok(listed) = at.inner.list_instances(&InstanceFilter::new()).await else {
            return at.inner.terminate_instances(ids).await;
        };
        let mut results = Vec::new();
        for id in ids {
            // One that has no record at all is refused, as it should be.
            let omitted = at.truth(id).is_some() && !listed.iter().any(|info| info.id == *id);
            results.push(if omitted {
                Ok(())
            } else {
                at.inner.terminate_instance(id).await
            });
        }
        results
    }
}

/// Shows the last of five instances as terminated, through the same handle, and sends nothing for
/// it. Other handles terminate what they are given.
#[derive(Default)]
pub(super) struct TerminatesForItself(Mutex<BTreeSet<(usize, InstanceId)>>);

#[async_trait]
impl Override for TerminatesForItself {
    async fn terminate_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let [first @ .., last] = ids else {
            return Vec::new();
        };
        if first.len() != 4 || at.handle != 1 || at.state(last).is_none() {
            return at.inner.terminate_instances(ids).await;
        }
        let mut results = at.inner.terminate_instances(first).await;
        lock(&self.0).insert((at.handle, last.clone()));
        results.push(Ok(()));
        results
    }

    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let mut status = at.inner.describe_instance(id).await?;
        if lock(&self.0).contains(&(at.handle, id.clone())) {
            status.state = Terminated;
        }
        Ok(status)
    }
}
