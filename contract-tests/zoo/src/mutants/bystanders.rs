//! Backends whose stops, starts and terminations affect other instances, or the target in another way.

use async_trait::async_trait;
use fleetwright::{
    CloudInstanceState::{self, Pending, Stopped, Stopping},
    Effect, ErrorKind, InstanceId, InstanceInfo, Market, Operation, ProvisionError, Result,
    RetryAdvice, TagChange,
};
use fleetwright_contract_tests::SCOPE_TAG;

use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};

/// At least one for each clause about other instances, spot instances and starts without capacity.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a stop also stops instances that boot",
        violates: "STOP-08",
        make: OverrideHarness::factory::<StopsBooting>,
    },
    Mutant {
        name: "a batch of stops terminates instances that are stopped",
        violates: "STOP-08",
        make: OverrideHarness::factory::<BatchTerminatesStopped>,
    },
    Mutant {
        name: "a stop of a spot instance terminates it",
        violates: "STOP-09",
        make: OverrideHarness::factory::<TerminatesSpot>,
    },
    Mutant {
        name: "a stop of a spot instance is a conflict to retry",
        violates: "STOP-09",
        make: OverrideHarness::factory::<SpotIsAConflict>,
    },
    Mutant {
        name: "a batch with a spot instance stops nothing",
        violates: "STOP-09",
        make: OverrideHarness::factory::<SpotRefusesTheBatch>,
    },
    Mutant {
        name: "a start also starts other stopped instances",
        violates: "START-08",
        make: OverrideHarness::factory::<StartsAllStopped>,
    },
    Mutant {
        name: "a batch of starts stops instances that boot",
        violates: "START-08",
        make: OverrideHarness::factory::<BatchOfStartsStopsBooting>,
    },
    Mutant {
        name: "a start without capacity terminates the instance",
        violates: "START-09",
        make: OverrideHarness::factory::<WithoutCapacity<Terminates>>,
    },
    Mutant {
        name: "a start without capacity is unavailable",
        violates: "START-09",
        make: OverrideHarness::factory::<WithoutCapacity<SaysUnavailable>>,
    },
    Mutant {
        name: "a single start without capacity has an unknown effect",
        violates: "START-09",
        make: OverrideHarness::factory::<WithoutCapacity<SaysUnknown>>,
    },
    Mutant {
        name: "a start without capacity loses the tags",
        violates: "START-09",
        make: OverrideHarness::factory::<WithoutCapacity<LosesTags>>,
    },
    Mutant {
        name: "a terminate also terminates instances that are stopping",
        violates: "TERMINATE-08",
        make: OverrideHarness::factory::<TerminatesStopping>,
    },
    Mutant {
        name: "a batch of terminations stops instances that boot",
        violates: "TERMINATE-08",
        make: OverrideHarness::factory::<BatchOfTerminationsStopsBooting>,
    },
];

/// Returns the instances in `state` with the same scope as the first of `ids`, except `ids`.
fn others(at: CallContext<'_>, ids: &[InstanceId], state: CloudInstanceState) -> Vec<InstanceId> {
    let scope_of = |info: &InstanceInfo| info.tags.get(SCOPE_TAG).map(ToOwned::to_owned);
    let first = ids.first().and_then(|id| at.truth(id));
    let scope = first.and_then(|truth| scope_of(&truth.info));
    let all = at.harness.cloud().oracle().instances().into_iter();
    all.map(|truth| truth.info)
        .filter(|info| info.state == state && scope_of(info) == scope && !ids.contains(&info.id))
        .map(|info| info.id)
        .collect()
}

fn stop_others(at: CallContext<'_>, ids: &[InstanceId], state: CloudInstanceState) {
    for id in others(at, ids, state) {
        let _ = at.harness.cloud().external_actor().stop(&id);
    }
}

fn terminate_others(at: CallContext<'_>, ids: &[InstanceId], state: CloudInstanceState) {
    for id in others(at, ids, state) {
        let _ = at.harness.cloud().external_actor().terminate(&id);
    }
}

#[derive(Default)]
struct StopsBooting;

#[async_trait]
impl Override for StopsBooting {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        stop_others(at, std::slice::from_ref(id), Pending);
        at.inner.stop_instance(id).await
    }
}

#[derive(Default)]
struct BatchTerminatesStopped;

#[async_trait]
impl Override for BatchTerminatesStopped {
    async fn stop_instances(&self, at: CallContext<'_>, ids: &[InstanceId]) -> Vec<Result<()>> {
        terminate_others(at, ids, Stopped);
        at.inner.stop_instances(ids).await
    }
}

fn is_spot(at: CallContext<'_>, id: &InstanceId) -> bool {
    let market = at.truth(id).and_then(|truth| truth.info.placement.market);
    market == Some(Market::Spot)
}

/// Stops spot instances as the cloud reclaims them.
#[derive(Default)]
struct TerminatesSpot;

#[async_trait]
impl Override for TerminatesSpot {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        if is_spot(at, id) {
            return at.inner.terminate_instance(id).await;
        }
        at.inner.stop_instance(id).await
    }
}

#[derive(Default)]
struct SpotIsAConflict;

#[async_trait]
impl Override for SpotIsAConflict {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        if is_spot(at, id) {
            let call = at.call(Operation::StopInstance);
            return Err(call.conflict("a spot instance cannot be stopped", RetryAdvice::SameToken));
        }
        at.inner.stop_instance(id).await
    }
}

#[derive(Default)]
struct SpotRefusesTheBatch;

#[async_trait]
impl Override for SpotRefusesTheBatch {
    async fn stop_instances(&self, at: CallContext<'_>, ids: &[InstanceId]) -> Vec<Result<()>> {
        if ids.iter().any(|id| is_spot(at, id)) {
            let call = at.call(Operation::StopInstances);
            let refused = || call.unsupported_because("spot instances cannot be stopped");
            return ids.iter().map(|_| Err(refused())).collect();
        }
        at.inner.stop_instances(ids).await
    }
}

#[derive(Default)]
struct StartsAllStopped;

#[async_trait]
impl Override for StartsAllStopped {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        for other in others(at, std::slice::from_ref(id), Stopped) {
            let _ = at.harness.cloud().external_actor().start(&other);
        }
        at.inner.start_instance(id).await
    }
}

#[derive(Default)]
struct BatchOfStartsStopsBooting;

#[async_trait]
impl Override for BatchOfStartsStopsBooting {
    async fn start_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        stop_others(at, ids, Pending);
        at.inner.start_instances(ids).await
    }
}

/// What a broken backend does if there is no capacity for a start.
trait Reaction: Default + Send + Sync {
    fn react(at: CallContext<'_>, id: &InstanceId, error: ProvisionError) -> ProvisionError;
}

#[derive(Default)]
struct WithoutCapacity<T>(T);

#[async_trait]
impl<T: Reaction> Override for WithoutCapacity<T> {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let started = at.inner.start_instance(id).await;
        started.map_err(|error| {
            if error.kind() == ErrorKind::Capacity {
                return T::react(at, id, error);
            }
            error
        })
    }
}

#[derive(Default)]
struct Terminates;

impl Reaction for Terminates {
    fn react(at: CallContext<'_>, id: &InstanceId, error: ProvisionError) -> ProvisionError {
        let _ = at.harness.cloud().external_actor().terminate(id);
        error
    }
}

#[derive(Default)]
struct SaysUnavailable;

impl Reaction for SaysUnavailable {
    fn react(at: CallContext<'_>, _: &InstanceId, error: ProvisionError) -> ProvisionError {
        let call = at.call(Operation::StartInstance);
        call.unavailable(Effect::None, error.message())
    }
}

#[derive(Default)]
struct SaysUnknown;

impl Reaction for SaysUnknown {
    fn react(_: CallContext<'_>, _: &InstanceId, error: ProvisionError) -> ProvisionError {
        error.with_effect(Effect::Unknown)
    }
}

#[derive(Default)]
struct LosesTags;

impl Reaction for LosesTags {
    fn react(at: CallContext<'_>, id: &InstanceId, error: ProvisionError) -> ProvisionError {
        let mut change = TagChange::new();
        change.remove.insert("kit-kept".to_owned());
        let _ = at.harness.cloud().external_actor().update_tags(id, &change);
        error
    }
}

#[derive(Default)]
struct TerminatesStopping;

#[async_trait]
impl Override for TerminatesStopping {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        terminate_others(at, std::slice::from_ref(id), Stopping);
        at.inner.terminate_instance(id).await
    }
}

#[derive(Default)]
struct BatchOfTerminationsStopsBooting;

#[async_trait]
impl Override for BatchOfTerminationsStopsBooting {
    async fn terminate_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        stop_others(at, ids, Pending);
        at.inner.terminate_instances(ids).await
    }
}
