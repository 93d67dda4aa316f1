//! Terminating, stopping and starting, and the meaning of EC2's refusals.
//!
//! Owns when a refusal is explained by a read. A change that EC2 accepts is never preceded by a read.

use fleetwright::{
    Call, CloudInstanceState, Effect, InstanceId, InstanceInfo, Operation, Result, async_trait,
};
use fleetwright_provider_support::{Change, ChangeInstances, ReadInstances as _};

use crate::{Ec2Provisioner, batch, error::Failure};

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
            if change == Change::Terminate {
                // Reads may still show them running.
                let done = changed.iter().filter(|(_, result)| result.is_ok());
                let window = self.capabilities.consistency_window;
                self.recent_terminations
                    .record(done.map(|(id, _)| id.clone()), window);
            }
            for id in chunk {
                results.push(match changed.get(id) {
                    Some(Ok(())) => Ok(()),
                    Some(Err(failure)) => self.explain_refusal(&call, change, id, failure).await,
                    None => Err(self.not_found_yet(&call, id)),
                });
            }
        }
        results
    }

    /// Reads all started instances with one native call.
    async fn describe_all_started(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let infos = self.describe_all(operation, ids).await;
        let done = |info: Result<_>| info.map_err(|error| error.with_effect(Effect::Done));
        infos.into_iter().map(done).collect()
    }
}

impl Ec2Provisioner {
    /// Returns what a refused change means. EC2 refuses a stop or a start with one code for every state that
    /// does not allow it, so the instance is read to find out which state that is.
    ///
    /// # Errors
    ///
    /// `WrongState` if the instance has ended, a conflict that may pass if it is between two states, and
    /// the converted refusal for every other code. All without effect.
    async fn explain_refusal(
        &self,
        call: &Call,
        change: Change,
        id: &InstanceId,
        failure: &Failure,
    ) -> Result<()> {
        match change {
            Change::Stop | Change::Start if failure.code() == "IncorrectInstanceState" => {}
            Change::Terminate | Change::Stop | Change::Start => {
                return Err(failure.clone().into_error(call, self.error_context(id)));
            }
        }
        let info = self.read_refusing_state(call.operation(), id).await?;
        if info.state.is_ending() {
            return Err(call.wrong_state(id, info.state, change.needed_state()));
        }
        Err(self.between_states(call, id))
    }

    /// Reads an instance that has just refused a change until its state explains the refusal. A stale read
    /// still shows the running or stopped state from before.
    async fn read_refusing_state(
        &self,
        operation: Operation,
        id: &InstanceId,
    ) -> Result<InstanceInfo> {
        let explains = |info: &InstanceInfo| {
            let accepting = [CloudInstanceState::Running, CloudInstanceState::Stopped];
            !accepting.contains(&info.state)
        };
        let info = self.describe_until(operation, id, explains).await;
        info.map_err(|error| error.with_effect(Effect::None))
    }
}
