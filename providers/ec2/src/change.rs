//! Stopping, starting and terminating: what EC2 refuses, and what that means.

use fleetwright::{
    Call, CloudInstanceState, Effect, InstanceId, InstanceInfo, Operation, Result, RetryAdvice,
    Scope,
};
use futures_util::future::BoxFuture;

use crate::{
    Ec2Provisioner,
    batch::{self, Change},
    error::Failure,
};

impl Ec2Provisioner {
    /// Changes many, one by one in what becomes of them.
    pub(crate) async fn changed(
        &self,
        operation: Operation,
        change: Change,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let once = |ids: Vec<InstanceId>| -> BoxFuture<'_, _> {
            Box::pin(async move { self.changed_once(operation, change, &ids).await })
        };
        self.fresh
            .retry_not_found(ids, &self.capabilities, once)
            .await
    }

    pub(crate) async fn changed_once(
        &self,
        operation: Operation,
        change: Change,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let call = self.call(operation);
        let mut answers = Vec::with_capacity(ids.len());
        for some in ids.chunks(self.capabilities.batch_size.get()) {
            let done = batch::change(&self.client, change, some).await;
            for id in some {
                answers.push(match done.get(id) {
                    Some(Ok(())) => Ok(()),
                    Some(Err(failure)) => self.refused(&call, change, id, failure).await,
                    None => Err(self.missing(&call, id)),
                });
            }
        }
        answers
    }

    /// What a refused change means, which may take a look at the instance.
    pub(crate) async fn refused(
        &self,
        call: &Call,
        change: Change,
        id: &InstanceId,
        failure: &Failure,
    ) -> Result<()> {
        let needed = match change {
            Change::Stop if failure.code() == "IncorrectInstanceState" => "running",
            Change::Start if failure.code() == "IncorrectInstanceState" => "stopped",
            Change::Terminate | Change::Stop | Change::Start => {
                return Err(failure.clone().into_error(call, self.about(id)));
            }
        };
        let info = self.refusing(call, id).await?;
        if info.state.is_ending() {
            return Err(call.wrong_state(id, info.state, needed));
        }
        let message = format!("instance {id} is between two states; try again when it is not");
        let retry = RetryAdvice::After(self.capabilities.poll_interval);
        let error = call.conflict(&message, retry);
        Err(error.with_scope(Scope::Instance(id.clone())))
    }

    /// An instance that has just refused a change, in a state that explains it: a lagging read shows it
    /// for a while at rest in the one that it had before.
    pub(crate) async fn refusing(&self, call: &Call, id: &InstanceId) -> Result<InstanceInfo> {
        let operation = call.operation();
        let explained = |info: &InstanceInfo| {
            let at_rest = [CloudInstanceState::Running, CloudInstanceState::Stopped];
            !at_rest.contains(&info.state)
        };
        let read = self.read_until(operation, id, explained).await;
        read.map_err(|error| error.with_effect(Effect::None))
    }

    /// Reads an instance that was just started, past what a lagging read shows of before.
    pub(crate) async fn started(
        &self,
        operation: Operation,
        id: &InstanceId,
    ) -> Result<InstanceInfo> {
        let fresh = |info: &InstanceInfo| {
            let before = [CloudInstanceState::Stopped, CloudInstanceState::Stopping];
            !before.contains(&info.state)
        };
        let read = self.read_until(operation, id, fresh).await;
        read.map_err(|error| error.with_effect(Effect::Done))
    }
}
