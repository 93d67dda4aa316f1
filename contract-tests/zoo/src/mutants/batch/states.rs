//! Batches that treat their items differently by state or by their place in the batch.
//!
//! They are broken for the first handle only: another one cleans up after a clause.

use std::collections::BTreeSet;

use async_trait::async_trait;
use fleetwright::{
    CloudInstanceState::{self, Pending, Running, Stopped, Stopping, Terminated},
    InstanceId, InstanceInfo, InstanceStatus, Operation, Result,
};

use super::batches_of_ten;
use crate::{
    CallContext, OverrideHarness,
    mutants::{Mutant, Override},
};

/// BATCH-15 and BATCH-16.
pub(in crate::mutants) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the second native batch of descriptions has no addresses",
        violates: "BATCH-15",
        make: || OverrideHarness::factory_on::<LaterWithoutAddresses>(batches_of_ten),
    },
    Mutant {
        name: "a repeated id is described without its addresses",
        violates: "BATCH-15",
        make: OverrideHarness::factory::<RepeatedWithoutAddresses>,
    },
    Mutant {
        name: "a large batch describes instances that were just launched as not found",
        violates: "BATCH-15",
        make: || OverrideHarness::factory_on::<LaterWithoutFresh>(batches_of_ten),
    },
    Mutant {
        name: "a batch of terminations skips stopped instances",
        violates: "BATCH-16",
        make: OverrideHarness::factory::<SkipsToTerminate<3>>,
    },
    Mutant {
        name: "a batch of terminations skips pending instances",
        violates: "BATCH-16",
        make: OverrideHarness::factory::<SkipsToTerminate<0>>,
    },
    Mutant {
        name: "a batch of terminations refuses terminated instances",
        violates: "BATCH-16",
        make: OverrideHarness::factory::<RefusesTerminated>,
    },
    Mutant {
        name: "a batch of stops refuses stopped instances",
        violates: "BATCH-16",
        make: OverrideHarness::factory::<RefusesStopped>,
    },
    Mutant {
        name: "a batch of starts skips stopped instances beside running ones",
        violates: "BATCH-16",
        make: OverrideHarness::factory::<SkipsToStart>,
    },
];

fn without_addresses(result: &mut Result<InstanceStatus>) {
    if let Ok(status) = result {
        (status.private_ip, status.public_ip) = (None, None);
    }
}

#[derive(Default)]
struct LaterWithoutAddresses;

#[async_trait]
impl Override for LaterWithoutAddresses {
    async fn describe_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        let mut results = at.inner.describe_instances(ids).await;
        let native = at.inner.capabilities().batch_size.get();
        results.iter_mut().skip(native).for_each(without_addresses);
        results
    }
}

#[derive(Default)]
struct RepeatedWithoutAddresses;

#[async_trait]
impl Override for RepeatedWithoutAddresses {
    async fn describe_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        let mut results = at.inner.describe_instances(ids).await;
        let mut known = BTreeSet::new();
        for (id, result) in ids.iter().zip(&mut results) {
            if !known.insert(id) {
                without_addresses(result);
            }
        }
        results
    }
}

/// Waits for its own recent launches in the first native batch only.
#[derive(Default)]
struct LaterWithoutFresh;

#[async_trait]
impl Override for LaterWithoutFresh {
    async fn describe_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        let mut results = at.inner.describe_instances(ids).await;
        let native = at.inner.capabilities().batch_size.get();
        for (id, result) in ids.iter().zip(&mut results).skip(native) {
            if result.as_ref().is_ok_and(|status| status.state == Pending) {
                *result = Err(at.call(Operation::DescribeInstances).not_found(id));
            }
        }
        results
    }
}

/// Returns success for items in one state, given by its number, and sends nothing for them.
#[derive(Default)]
struct SkipsToTerminate<const STATE: usize>;

#[async_trait]
impl<const STATE: usize> Override for SkipsToTerminate<STATE> {
    async fn terminate_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let skipped = |id: &InstanceId| at.state(id) == Some(CloudInstanceState::ALL[STATE]);
        let mut results = Vec::new();
        for id in ids {
            results.push(if at.handle == 1 && skipped(id) {
                Ok(())
            } else {
                at.inner.terminate_instance(id).await
            });
        }
        results
    }
}

#[derive(Default)]
struct RefusesTerminated;

#[async_trait]
impl Override for RefusesTerminated {
    async fn terminate_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let ended = ids
            .iter()
            .map(|id| at.handle == 1 && at.state(id) == Some(Terminated));
        let ended: Vec<_> = ended.collect();
        let mut results = at.inner.terminate_instances(ids).await;
        for ((id, result), ended) in ids.iter().zip(&mut results).zip(ended) {
            if ended {
                let call = at.call(Operation::TerminateInstances);
                *result = Err(call.wrong_state(id, Terminated, "not terminated"));
            }
        }
        results
    }
}

#[derive(Default)]
struct RefusesStopped;

#[async_trait]
impl Override for RefusesStopped {
    async fn stop_instances(&self, at: CallContext<'_>, ids: &[InstanceId]) -> Vec<Result<()>> {
        let stopped: Vec<_> = ids.iter().map(|id| at.state(id) == Some(Stopped)).collect();
        let mut results = at.inner.stop_instances(ids).await;
        for ((id, result), stopped) in ids.iter().zip(&mut results).zip(stopped) {
            if stopped {
                let call = at.call(Operation::StopInstances);
                *result = Err(call.wrong_state(id, Stopped, "running"));
            }
        }
        results
    }
}

/// Takes a batch with a running instance for one of running instances.
#[derive(Default)]
struct SkipsToStart;

#[async_trait]
impl Override for SkipsToStart {
    async fn start_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let running = ids.iter().any(|id| at.state(id) == Some(Running));
        let stopping = ids.iter().any(|id| at.state(id) == Some(Stopping));
        let mut results = Vec::new();
        for id in ids {
            let truth = at.truth(id).filter(|truth| truth.info.state == Stopped);
            results.push(match truth {
                Some(truth) if running && stopping => Ok(truth.info),
                _ => at.inner.start_instance(id).await,
            });
        }
        results
    }
}
