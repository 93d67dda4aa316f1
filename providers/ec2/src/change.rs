//! Terminating, stopping and starting, and the meaning of EC2's refusals.
//!
//! Owns when a refusal is explained by a read. A change that EC2 accepts is never preceded by a read.

use std::collections::BTreeMap;

use fleetwright::{
    Call, CloudInstanceState, Effect, InstanceConfig, InstanceId, InstanceInfo, Operation, Result,
    async_trait,
};
use fleetwright_provider_support::{
    Change, ChangeInstances, ReadInstances as _, is_after_start, read_until,
};
use futures_util::future::BoxFuture;

use crate::{
    Ec2Provisioner,
    batch::{self, ItemResult},
    convert,
    error::{ErrorContext, Failure},
    refusal::{Concern, concern},
};

#[async_trait]
impl ChangeInstances for Ec2Provisioner {
    /// Sends one native call for each 1,000 ids, and explains each refusal.
    async fn change_once(
        &self,
        operation: Operation,
        change: Change,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let call = self.call(operation);
        let mut results = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(self.capabilities.batch_size.get()) {
            let changed = batch::change(&self.client, change, chunk).await;
            self.record_terminations(change, &changed);
            let states = self.read_refusing_states(&call, change, &changed).await;
            for id in chunk {
                results.push(match changed.get(id) {
                    Some(ItemResult::Changed) => Ok(()),
                    Some(ItemResult::Refused(failure, seen)) => {
                        let seen = seen.as_ref().and_then(|native| convert::info(native).ok());
                        let state = states.get(id);
                        Err(self.explain_refusal(&call, change, id, failure, seen, state))
                    }
                    Some(ItemResult::NotRead(failure)) => {
                        let error = failure.clone().into_error(&call, ErrorContext::default());
                        Err(error.with_effect(Effect::None))
                    }
                    Some(ItemResult::NotFound) | None => Err(self.not_found_yet(&call, id)),
                });
            }
        }
        results
    }

    /// Reads all started instances with one native call, past stale reads from before the start.
    async fn describe_all_started(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let read = || -> BoxFuture<'_, _> {
            Box::pin(async { Ok(self.describe_all(operation, ids).await) })
        };
        let is_after = |info: &Result<InstanceInfo>| info.as_ref().map_or(true, is_after_start);
        let all_after = |infos: &Vec<Result<InstanceInfo>>| infos.iter().all(is_after);
        let infos = read_until(&self.capabilities, read, all_after).await;
        let infos = infos.unwrap_or_default();
        let done = |info: Result<_>| info.map_err(|error| error.with_effect(Effect::Done));
        infos.into_iter().map(done).collect()
    }
}

impl Ec2Provisioner {
    /// Remembers which instances this handle has terminated, because reads may show them running.
    fn record_terminations(&self, change: Change, changed: &BTreeMap<InstanceId, ItemResult>) {
        if change == Change::Terminate {
            let done = changed
                .iter()
                .filter(|(_, result)| matches!(result, ItemResult::Changed));
            let ids = done.map(|(id, _)| id.clone());
            let window = self.capabilities.consistency_window;
            self.recent_terminations.record(ids, window);
        }
    }

    /// Returns what a refused change means.
    ///
    /// `WrongState` if the instance has ended, a conflict that may pass if it is between two states, and the
    /// converted refusal for every other code; missing capacity is that of the instance's offering. All
    /// without effect.
    fn explain_refusal(
        &self,
        call: &Call,
        change: Change,
        id: &InstanceId,
        failure: &Failure,
        seen: Option<InstanceInfo>,
        state: Option<&Result<CloudInstanceState>>,
    ) -> fleetwright::ProvisionError {
        match state {
            Some(Ok(state)) if state.is_ending() => {
                call.wrong_state(id, *state, change.needed_state())
            }
            Some(Ok(_)) => self.between_states(call, id),
            Some(Err(error)) => error.clone(),
            None => {
                let config = seen.and_then(offering_config);
                let mut context = self.error_context(id);
                context.config = config.as_ref();
                let placement = config.as_ref().map(|config| &config.placement);
                context.zone = placement.and_then(|placement| placement.zone.as_ref());
                context.network = placement.and_then(|placement| placement.network.as_ref());
                failure.clone().into_error(call, context)
            }
        }
    }

    /// Returns the states of the instances that have refused a stop or a start because of their state: EC2
    /// has one code for every such state. Reads those whose state is not known yet with one call. The read is
    /// repeated until it explains the refusal, because a stale read shows an earlier state.
    async fn read_refusing_states(
        &self,
        call: &Call,
        change: Change,
        changed: &BTreeMap<InstanceId, ItemResult>,
    ) -> BTreeMap<InstanceId, Result<CloudInstanceState>> {
        let (mut states, mut unexplained) = (BTreeMap::new(), Vec::new());
        for (id, result) in changed {
            let ItemResult::Refused(failure, seen) = result else {
                continue;
            };
            if change == Change::Terminate || concern(failure) != Concern::State {
                continue;
            }
            let seen = seen.as_ref().and_then(|native| convert::info(native).ok());
            match seen {
                Some(info) if !batch::accepts(change, info.state) => {
                    states.insert(id.clone(), Ok(info.state));
                }
                Some(_) | None => unexplained.push(id.clone()),
            }
        }
        if unexplained.is_empty() {
            return states;
        }
        let read = || -> BoxFuture<'_, _> {
            Box::pin(async { Ok(self.describe_all(call.operation(), &unexplained).await) })
        };
        let explains = |info: &Result<InstanceInfo>| {
            let accepting = [CloudInstanceState::Running, CloudInstanceState::Stopped];
            let state = info.as_ref().map(|info| info.state);
            state.is_ok_and(|state| !accepting.contains(&state)) || info.is_err()
        };
        let all_explained = |infos: &Vec<Result<InstanceInfo>>| infos.iter().all(explains);
        let infos = read_until(&self.capabilities, read, all_explained).await;
        let results = infos.unwrap_or_default().into_iter().map(|info| {
            let state = info.map(|info| info.state);
            state.map_err(|error| error.with_effect(Effect::None))
        });
        states.extend(unexplained.iter().cloned().zip(results));
        states
    }
}

/// Returns a config with an instance's type and placement, for errors about its offering.
fn offering_config(info: InstanceInfo) -> Option<InstanceConfig> {
    let mut config = InstanceConfig::new(info.image?, info.instance_type?);
    config.placement = info.placement;
    Some(config)
}
