//! What is convenient and needs nothing but the trait.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

use crate::{
    BoxStream, Call, CloudInstanceState, Effect, ErrorKind, InstanceConfig, InstanceFilter,
    InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InvalidValue, LaunchRecord,
    LaunchToken, ListItem, Operation, Problem, ProvisionError, Result,
    wait::{self, WaitCause, WaitError, WaitPolicy},
};

/// Conveniences over any [`InstanceProvisioner`], implemented for all of them.
///
/// Each can be dropped or killed at any point like the calls it is made of: what it launched is
/// found again by its token or its tags.
#[async_trait]
pub trait InstanceProvisionerExt: InstanceProvisioner {
    /// Launches an instance and waits until it runs.
    ///
    /// A launch whose outcome is unknown is settled by its token before anything else is done; one
    /// that cannot be settled is answered with its own error, and is never sent again. When the
    /// instance does not come up in time, the error [carries it](ProvisionError::survivors); it is
    /// not terminated.
    async fn launch_and_wait(
        &self,
        config: &InstanceConfig,
        policy: &WaitPolicy,
    ) -> Result<InstanceInfo> {
        let info = match (self.launch_instance(config).await, &config.launch_token) {
            (Ok(info), _) => info,
            (Err(error), Some(token)) if error.effect() == Effect::Unknown => {
                let made = match self.settle_launch(token).await {
                    Ok(LaunchRecord::Found(made)) => made,
                    // A look-up that failed tells nothing: the launch is as unknown as it was.
                    Ok(LaunchRecord::Terminated(_) | LaunchRecord::NotFound) | Err(_) => Vec::new(),
                };
                // A cloud that forgets its tokens may still show what an earlier launch made.
                match made.into_iter().find(|info| !info.state.is_final()) {
                    Some(info) => info,
                    None => return Err(error),
                }
            }
            (Err(error), _) => return Err(error),
        };
        up(self, Operation::LaunchInstance, info, policy).await
    }

    /// Starts an instance and waits until it runs; its addresses are those of now. When it does not
    /// come up, the error [carries it](ProvisionError::survivors).
    async fn start_and_wait(&self, id: &InstanceId, policy: &WaitPolicy) -> Result<InstanceInfo> {
        let info = self.start_instance(id).await?;
        up(self, Operation::StartInstance, info, policy).await
    }

    /// Stops an instance and waits until it is stopped.
    async fn stop_and_wait(&self, id: &InstanceId, policy: &WaitPolicy) -> Result<InstanceStatus> {
        self.stop_instance(id).await?;
        let waited = one(self, id, CloudInstanceState::Stopped, policy).await;
        waited.map_err(|error| in_words(self, Operation::StopInstance, error))
    }

    /// Terminates an instance and waits until it is gone.
    async fn terminate_and_wait(
        &self,
        id: &InstanceId,
        policy: &WaitPolicy,
    ) -> Result<InstanceStatus> {
        self.terminate_instance(id).await?;
        let waited = one(self, id, CloudInstanceState::Terminated, policy).await;
        waited.map_err(|error| in_words(self, Operation::TerminateInstance, error))
    }

    /// Terminates everything that `filter` selects and waits until all of it is gone; answers the
    /// ids. A filter without tags would empty the account, so it is refused as invalid.
    ///
    /// What somebody else removed first counts as gone. When some cannot be terminated, the error
    /// [carries them](ProvisionError::survivors); the others are on their way out.
    async fn terminate_matching(
        &self,
        filter: &InstanceFilter,
        policy: &WaitPolicy,
    ) -> Result<Vec<InstanceId>> {
        if filter.tags.is_empty() {
            let call = Call::new(
                self.capabilities().provider.as_str(),
                Operation::TerminateInstances,
            );
            return Err(call.invalid(InvalidValue::new("filter.tags", Problem::Empty)));
        }
        let infos = self.list_instances(filter).await?;
        let ids: Vec<_> = infos.iter().map(|info| info.id.clone()).collect();
        let answers = self.terminate_instances(&ids).await;
        let (mut kept, mut failure, mut effect) = (Vec::new(), None, Effect::None);
        for (info, answer) in infos.into_iter().zip(answers) {
            match answer {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    effect = effect.max(error.effect());
                    kept.push(info);
                    failure.get_or_insert(error);
                }
                Ok(()) | Err(_) => effect = effect.max(Effect::Done),
            }
        }
        if let Some(error) = failure {
            return Err(error.with_survivors(kept).with_effect(effect));
        }
        let waited = wait::for_state(self, &ids, CloudInstanceState::Terminated, policy).await;
        match waited {
            Ok(_) => Ok(ids),
            Err(error) => Err(in_words(self, Operation::TerminateInstances, error)),
        }
    }

    /// What became of a batch of `count`, whichever way the backend launches batches: by the
    /// batch's token, or where that shows nothing, by the tokens of its items.
    async fn find_launches(&self, token: &LaunchToken, count: NonZeroU32) -> Result<LaunchRecord> {
        let whole = self.find_launch(token).await?;
        if whole != LaunchRecord::NotFound {
            return Ok(whole);
        }
        let (mut made, mut seen) = (Vec::new(), false);
        for index in 0..count.get() {
            match self.find_launch(&token.item(index)).await? {
                LaunchRecord::Found(infos) | LaunchRecord::Terminated(infos) => {
                    seen = true;
                    made.extend(infos);
                }
                LaunchRecord::NotFound => {}
            }
        }
        let forgotten = seen && made.is_empty();
        Ok(if forgotten {
            LaunchRecord::Terminated(made)
        } else {
            LaunchRecord::from_instances(made)
        })
    }

    /// Settles what became of a launch that was sent before this call: answers as soon as the
    /// token is seen, and that it was not only once the consistency window has passed.
    async fn settle_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        let (window, tick) = (
            self.capabilities().consistency_window,
            self.capabilities().poll_interval,
        );
        let began = Instant::now();
        loop {
            let remaining = window.saturating_sub(began.elapsed());
            match self.find_launch(token).await {
                Ok(LaunchRecord::NotFound) if !remaining.is_zero() => {
                    sleep(tick.max(Duration::from_millis(1)).min(remaining)).await;
                }
                Err(error) if error.retry().delay().is_some() && !remaining.is_zero() => {
                    let asked = error.retry().delay().unwrap_or_default();
                    sleep(asked.max(tick).max(Duration::from_millis(1)).min(remaining)).await;
                }
                settled => return settled,
            }
        }
    }

    /// [`stream_instances`](InstanceProvisioner::stream_instances) that owns what it reads from,
    /// to be sent elsewhere.
    fn stream_owned(self: Arc<Self>, filter: InstanceFilter) -> BoxStream<'static, Result<ListItem>>
    where
        Self: 'static,
    {
        let (sender, mut receiver) = mpsc::channel(1);
        // The reading future owns the provisioner and hands on one item at a time. It is polled
        // with the stream itself, so nothing is spawned and dropping the stream ends it.
        let reading = async move {
            let mut items = self.stream_instances(&filter);
            while let Some(item) = items.next().await {
                if sender.send(item).await.is_err() {
                    break;
                }
            }
        };
        let nothing = stream::once(reading).filter_map(|()| std::future::ready(None));
        let items = stream::poll_fn(move |context| receiver.poll_recv(context));
        stream::select(items, nothing).boxed()
    }
}

#[async_trait]
impl<P: InstanceProvisioner + ?Sized> InstanceProvisionerExt for P {}

/// Waits until what `operation` answered runs. Where it does not come up, the error carries it as it
/// was last seen, unless nothing of it is left.
async fn up<P: InstanceProvisioner + ?Sized>(
    provisioner: &P,
    operation: Operation,
    info: InstanceInfo,
    policy: &WaitPolicy,
) -> Result<InstanceInfo> {
    let ids = std::slice::from_ref(&info.id);
    let goal = CloudInstanceState::Running;
    match wait::for_state_after(provisioner, ids, goal, policy, Some(info.state)).await {
        Ok(mut all) => Ok(refreshed(info, all.remove(0))),
        Err(error) => {
            let seen = error.not_reached.first();
            let last = seen.and_then(|one| one.last.clone());
            let unseen = seen.and_then(|one| one.error.as_ref());
            let left = match last {
                _ if unseen.is_some_and(|error| error.kind() == ErrorKind::NotFound) => None,
                Some(status) if status.state.is_final() => None,
                Some(status) => Some(refreshed(info, status)),
                None => Some(info),
            };
            let error = in_words(provisioner, operation, error);
            Err(error.with_survivors(left.into_iter().collect()))
        }
    }
}

/// Waits for one instance.
async fn one<P: InstanceProvisioner + ?Sized>(
    provisioner: &P,
    id: &InstanceId,
    goal: CloudInstanceState,
    policy: &WaitPolicy,
) -> Result<InstanceStatus, WaitError> {
    let mut all = wait::for_state(provisioner, std::slice::from_ref(id), goal, policy).await?;
    Ok(all.remove(0))
}

/// `info` with what `status` tells of it now.
fn refreshed(info: InstanceInfo, status: InstanceStatus) -> InstanceInfo {
    let InstanceStatus {
        id: _,
        state,
        native_state,
        state_reason,
        private_ip,
        public_ip,
        mac_address,
    } = status;
    InstanceInfo {
        state,
        native_state,
        state_reason,
        private_ip,
        public_ip,
        mac_address,
        ..info
    }
}

/// A failed wait as the error of the call that was waited for, which had its effect. A read that
/// failed for good keeps its own kind, which says what to do.
fn in_words<P: InstanceProvisioner + ?Sized>(
    provisioner: &P,
    operation: Operation,
    error: WaitError,
) -> ProvisionError {
    let call = Call::new(provisioner.capabilities().provider.as_str(), operation);
    let made = match &error.cause {
        WaitCause::Deadline | WaitCause::PollLimit => call.timeout(Effect::Done),
        WaitCause::Unreachable(status) | WaitCause::Reverted(status) => {
            let needed = format!("{} ({})", error.goal, error.cause);
            call.wrong_state(&status.id, status.state, &needed)
                .with_effect(Effect::Done)
        }
        WaitCause::Failed(failed) => return failed.clone().with_effect(Effect::Done),
    };
    made.with_source(error)
}
