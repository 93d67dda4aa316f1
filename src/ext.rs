//! Convenience methods that need nothing but the trait.
//!
//! Owns the combinations of calls that every caller needs: call and wait, launch under the next
//! unspent token, settle a launch. They keep no state: a crashed caller repeats them with the same
//! arguments.

mod waiting;

use std::{num::NonZeroU32, ops::RangeInclusive, sync::Arc};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc;

use crate::{
    BoxStream, Call, CloudInstanceState, Effect, ErrorKind, InstanceConfig, InstanceFilter,
    InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InvalidValue, LaunchRecord,
    LaunchToken, ListItem, Operation, Problem, Result,
    wait::{self, WaitPolicy},
};

pub(crate) use waiting::{look_up_within, with_status};
use waiting::{wait_failed, wait_for_one, wait_until_running};

/// Convenience methods of every [`InstanceProvisioner`].
///
/// The caller may drop each of them at any point, or the process may die: the instances that they
/// launched can be found again by token or tags.
///
/// ```
/// use std::time::Duration;
/// use fleetwright::prelude::*;
/// use fleetwright_memory::MemoryCloud;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let provisioner = MemoryCloud::new().provisioner();
/// let policy = WaitPolicy::within(Duration::from_secs(120));
/// let config = InstanceConfig::builder("image-1", "small").tag("fleet", "blue").build()?;
///
/// let instance = provisioner.launch_and_wait(&config, &policy).await?;
/// assert_eq!(instance.state, CloudInstanceState::Running);
/// let stopped = provisioner.stop_and_wait(&instance.id, &policy).await?;
/// assert_eq!(stopped.state, CloudInstanceState::Stopped);
/// provisioner.start_and_wait(&instance.id, &policy).await?;
///
/// let fleet = InstanceFilter::tagged("fleet", "blue")?;
/// let terminated = provisioner.terminate_matching(&fleet, &policy).await?;
/// assert_eq!(terminated, [instance.id]);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait InstanceProvisionerExt: InstanceProvisioner {
    /// Launches an instance and waits until it runs.
    ///
    /// If the outcome of the launch is unknown and the config has a token, the token is looked up
    /// first. The launch is never sent again.
    ///
    /// # Errors
    /// - The error of the launch, also if its outcome is unknown and the look-up did not settle it.
    /// - [`Timeout`](ErrorKind::Timeout) or [`WrongState`](ErrorKind::WrongState) if the instance
    ///   does not run in time or cannot run. The error [carries](crate::ProvisionError::survivors) the
    ///   instance, which is not terminated.
    async fn launch_and_wait(
        &self,
        config: &InstanceConfig,
        policy: &WaitPolicy,
    ) -> Result<InstanceInfo> {
        let info = match (self.launch_instance(config).await, &config.launch_token) {
            (Ok(info), _) => info,
            (Err(error), Some(token)) if error.effect() == Effect::Unknown => {
                // Nothing follows from "not found" here, so no proof of it is needed.
                let lag = self.capabilities().usual_lag();
                let found = match look_up_within(self, token, lag).await {
                    Ok(LaunchRecord::Found(found)) => found,
                    // A failed look-up proves nothing: the outcome is as unknown as before.
                    Ok(LaunchRecord::Terminated(_) | LaunchRecord::NotFound) | Err(_) => Vec::new(),
                };
                // A cloud that forgets tokens may still list the instances of an earlier launch.
                match found.into_iter().find(|info| !info.state.is_final()) {
                    Some(info) => info,
                    None => return Err(error),
                }
            }
            (Err(error), _) => return Err(error),
        };
        wait_until_running(self, Operation::LaunchInstance, info, policy).await
    }

    /// Launches an instance under the first attempt of the config's token that is not spent.
    ///
    /// A fleet manager that keeps a slot filled needs a new token whenever the slot's instance was
    /// terminated. This method derives it: it launches with
    /// [`token.attempt(n)`](LaunchToken::attempt) for each `n` of `attempts`, and continues with the next
    /// `n` only if the backend refuses the token as [spent](ErrorKind::TokenSpent). If an attempt has
    /// a living instance, the launch is a replay and returns that instance.
    ///
    /// # After a crash
    /// Call it again with the same config and the same attempts: earlier attempts are still spent, so
    /// it arrives at the same attempt and returns the same instance. That holds for as long as the
    /// backend [remembers spent tokens](crate::Capabilities::token_after_terminate). If a slot may
    /// live longer than that, store [`LaunchAttempt::attempt`] with the slot, and start there the next
    /// time.
    ///
    /// # Errors
    /// - [`Invalid`](ErrorKind::Invalid) if the config has no launch token, or if `attempts` is empty
    ///   or starts with 0. Nothing is sent.
    /// - [`TokenSpent`](ErrorKind::TokenSpent) if all `attempts` are spent.
    /// - Any other error of a launch, at once. If its outcome is unknown, call the method again with
    ///   the same arguments: it replays the same attempt.
    ///
    /// ```
    /// use fleetwright::prelude::*;
    /// use fleetwright_memory::MemoryCloud;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let provisioner = MemoryCloud::new().provisioner();
    /// let config = InstanceConfig::builder("image-1", "small").launch_token("blue/slot-1").build()?;
    ///
    /// let first = provisioner.launch_next_attempt(&config, 1..=10).await?;
    /// assert_eq!(first.attempt, 1);
    /// provisioner.terminate_instance(&first.instance.id).await?;
    ///
    /// let second = provisioner.launch_next_attempt(&config, 1..=10).await?;
    /// assert_eq!(second.attempt, 2);
    /// let replay = provisioner.launch_next_attempt(&config, 1..=10).await?;
    /// assert_eq!(replay.instance.id, second.instance.id);
    /// # Ok(())
    /// # }
    /// ```
    async fn launch_next_attempt(
        &self,
        config: &InstanceConfig,
        attempts: RangeInclusive<u32>,
    ) -> Result<LaunchAttempt> {
        let call = Call::new(
            self.capabilities().provider.as_str(),
            Operation::LaunchInstance,
        );
        let invalid = |field, problem| call.invalid(InvalidValue::new(field, problem));
        let Some(token) = &config.launch_token else {
            return Err(invalid("launch token", Problem::Empty));
        };
        let mut spent = invalid("attempts", Problem::Empty);
        for attempt in attempts {
            let Some(number) = NonZeroU32::new(attempt) else {
                return Err(invalid("attempts", Problem::Zero));
            };
            let token = token.attempt(number);
            let mut config = config.clone();
            config.launch_token = Some(token.clone());
            match self.launch_instance(&config).await {
                Ok(instance) => {
                    return Ok(LaunchAttempt {
                        attempt,
                        token,
                        instance,
                    });
                }
                Err(error) if error.kind() == ErrorKind::TokenSpent => spent = error,
                Err(error) => return Err(error),
            }
        }
        Err(spent)
    }

    /// Starts an instance and waits until it runs. The returned addresses are the current ones.
    ///
    /// # Errors
    /// The error of the start or of the wait. If the instance does not run in time, the error
    /// [carries](crate::ProvisionError::survivors) it.
    async fn start_and_wait(&self, id: &InstanceId, policy: &WaitPolicy) -> Result<InstanceInfo> {
        let info = self.start_instance(id).await?;
        wait_until_running(self, Operation::StartInstance, info, policy).await
    }

    /// Stops an instance and waits until it is stopped.
    ///
    /// # Errors
    /// The error of the stop or of the wait. After a failed wait the instance may still stop.
    async fn stop_and_wait(&self, id: &InstanceId, policy: &WaitPolicy) -> Result<InstanceStatus> {
        self.stop_instance(id).await?;
        let waited = wait_for_one(self, id, CloudInstanceState::Stopped, policy).await;
        waited.map_err(|error| wait_failed(self, Operation::StopInstance, error))
    }

    /// Terminates an instance and waits until it is terminated.
    ///
    /// An instance that the cloud no longer knows counts as terminated once the consistency window
    /// has passed.
    ///
    /// # Errors
    /// The error of the terminate or of the wait. After a failed wait the termination continues.
    async fn terminate_and_wait(
        &self,
        id: &InstanceId,
        policy: &WaitPolicy,
    ) -> Result<InstanceStatus> {
        self.terminate_instance(id).await?;
        let waited = wait_for_one(self, id, CloudInstanceState::Terminated, policy).await;
        waited.map_err(|error| wait_failed(self, Operation::TerminateInstance, error))
    }

    /// Terminates all instances that `filter` selects, waits until they are terminated, and returns
    /// their ids. An instance that another actor terminated first counts as terminated.
    ///
    /// # Errors
    /// - [`Invalid`](ErrorKind::Invalid) if the filter has no tags, because it would select every
    ///   instance of the account.
    /// - If some instances cannot be terminated, the first of their errors. It
    ///   [carries](crate::ProvisionError::survivors) those instances; all others are terminating.
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
        let results = self.terminate_instances(&ids).await;
        let (mut kept, mut failure, mut effect) = (Vec::new(), None, Effect::None);
        for (info, result) in infos.into_iter().zip(results) {
            match result {
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
        let goal = CloudInstanceState::Terminated;
        match wait::for_state_after(self, &ids, goal, policy, None).await {
            Ok(_) => Ok(ids),
            Err(error) => Err(wait_failed(self, Operation::TerminateInstances, error)),
        }
    }

    /// Finds out what became of a batch launch of `count` instances.
    ///
    /// Looks up the token of the batch, and if that does not find all instances, the
    /// [item tokens](LaunchToken::item) of the others, because some backends launch a batch item
    /// by item. Like [`find_launch`](InstanceProvisioner::find_launch), it does not wait for the
    /// consistency window.
    ///
    /// # Errors
    /// The first error of a look-up. The outcome of the launch is then as unknown as before.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use fleetwright::prelude::*;
    /// use fleetwright_memory::MemoryCloud;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let provisioner = MemoryCloud::new().provisioner();
    /// let (token, three) = (LaunchToken::new("pool-1")?, NonZeroU32::new(3).unwrap());
    /// let config = InstanceConfig::builder("image-1", "small").launch_token(&token).build()?;
    /// provisioner.launch_instances(&config, three).await?;
    /// match provisioner.find_launches(&token, three).await? {
    ///     LaunchRecord::Found(instances) => assert_eq!(instances.len(), 3),
    ///     LaunchRecord::Terminated(_) | LaunchRecord::NotFound => unreachable!("they live"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    async fn find_launches(&self, token: &LaunchToken, count: NonZeroU32) -> Result<LaunchRecord> {
        // All of the batch, or its first item, which has the same token.
        let by_token = self.find_launch(token).await?;
        let (mut instances, mut any_found) = match &by_token {
            LaunchRecord::Found(infos) | LaunchRecord::Terminated(infos) => (infos.clone(), true),
            LaunchRecord::NotFound => (Vec::new(), false),
        };
        let all = usize::try_from(count.get()).unwrap_or(usize::MAX);
        if instances.len() >= all {
            return Ok(by_token);
        }
        for index in 1..count.get() {
            match self.find_launch(&token.item(index)).await? {
                LaunchRecord::Found(infos) | LaunchRecord::Terminated(infos) => {
                    any_found = true;
                    instances.extend(infos);
                }
                LaunchRecord::NotFound => {}
            }
        }
        // A terminated launch may be known without its instances.
        Ok(if any_found && instances.is_empty() {
            LaunchRecord::Terminated(instances)
        } else {
            LaunchRecord::from_instances(instances)
        })
    }

    /// Finds out what became of a launch that was sent before this call.
    ///
    /// Polls [`find_launch`](InstanceProvisioner::find_launch) and returns as soon as the token is
    /// found. Returns [`NotFound`](LaunchRecord::NotFound) only when the consistency window has
    /// passed since this call, which proves that there was no launch.
    ///
    /// # Errors
    /// An error of the look-up that may not be retried, or the last one inside the window. The outcome
    /// of the launch is then as unknown as before.
    ///
    /// ```
    /// use fleetwright::prelude::*;
    /// use fleetwright_memory::MemoryCloud;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let provisioner = MemoryCloud::new().provisioner();
    /// let token = LaunchToken::new("blue/slot-1/attempt-1")?;
    /// assert_eq!(provisioner.settle_launch(&token).await?, LaunchRecord::NotFound);
    ///
    /// let config = InstanceConfig::builder("image-1", "small").launch_token(&token).build()?;
    /// let instance = provisioner.launch_instance(&config).await?;
    /// match provisioner.settle_launch(&token).await? {
    ///     LaunchRecord::Found(found) => assert_eq!(found[0].id, instance.id),
    ///     LaunchRecord::Terminated(_) | LaunchRecord::NotFound => unreachable!("it was launched"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    async fn settle_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        let window = self.capabilities().consistency_window;
        look_up_within(self, token, window).await
    }

    /// Streams instances like [`stream_instances`](InstanceProvisioner::stream_instances), but owns
    /// the provisioner and the filter, so that the stream can be moved to another task.
    ///
    /// No task is spawned. Dropping the stream ends the list.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use fleetwright::prelude::*;
    /// use fleetwright_memory::MemoryCloud;
    /// use futures_util::StreamExt as _;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let provisioner = Arc::new(MemoryCloud::new().provisioner());
    /// let items = provisioner.stream_owned(InstanceFilter::new());
    /// let count = tokio::spawn(items.count()).await?;
    /// assert_eq!(count, 0);
    /// # Ok(())
    /// # }
    /// ```
    fn stream_owned(self: Arc<Self>, filter: InstanceFilter) -> BoxStream<'static, Result<ListItem>>
    where
        Self: 'static,
    {
        let (sender, mut receiver) = mpsc::channel(1);
        // The future owns the provisioner and forwards one item at a time. It is polled together with
        // the stream, so no task is needed and dropping the stream drops it.
        let forward = async move {
            let mut items = self.stream_instances(&filter);
            while let Some(item) = items.next().await {
                if sender.send(item).await.is_err() {
                    break;
                }
            }
        };
        let forward = stream::once(forward).filter_map(|()| std::future::ready(None));
        let items = stream::poll_fn(move |context| receiver.poll_recv(context));
        stream::select(items, forward).boxed()
    }
}

#[async_trait]
impl<P: InstanceProvisioner + ?Sized> InstanceProvisionerExt for P {}

/// The result of [`launch_next_attempt`](InstanceProvisionerExt::launch_next_attempt).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchAttempt {
    /// The number of the attempt whose token launched the instance. The first attempt is 1.
    ///
    /// Store it: the next call may start with it.
    pub attempt: u32,
    /// The token of that attempt, for [`find_launch`](InstanceProvisioner::find_launch).
    pub token: LaunchToken,
    /// The instance, which this call or an earlier one launched.
    pub instance: InstanceInfo,
}
