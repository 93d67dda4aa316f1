//! Waits until instances are in a state.
//!
//! Owns the polling loop: one batch describe per poll for any number of instances, growing delays,
//! a deadline and a limit of polls. It fails at once when the goal cannot be reached any more.
//! It only reads and never changes an instance.
//!
//! The `_and_wait` methods of [`InstanceProvisionerExt`](crate::InstanceProvisionerExt) combine it
//! with a call. Time is tokio's, so tests can pause it.
//!
//! ```
//! use std::time::Duration;
//! use fleetwright::{prelude::*, wait};
//! use fleetwright_memory::MemoryCloud;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let provisioner = MemoryCloud::new().provisioner();
//! let config = InstanceConfig::builder("image-1", "small").build()?;
//! let count = std::num::NonZeroU32::new(3).unwrap();
//! let instances = provisioner.launch_instances(&config, count).await?;
//! let ids: Vec<_> = instances.into_iter().map(|info| info.id).collect();
//!
//! let policy = WaitPolicy::within(Duration::from_secs(120));
//! let running = wait::for_state(&provisioner, &ids, CloudInstanceState::Running, &policy).await?;
//! assert_eq!(running.len(), 3);
//! # Ok(())
//! # }
//! ```

mod policy;
mod ticks;
mod watch;

use std::{collections::BTreeMap, fmt, time::Duration};

use tokio::time::{Instant, sleep_until, timeout_at};

pub use policy::WaitPolicy;
use watch::{Decision, Watch};

use crate::{
    Call, CloudInstanceState, Effect, InstanceId, InstanceProvisioner, InstanceStatus, Operation,
    ProvisionError, error::one_line,
};

/// The shortest delay between two polls, also for a backend without a poll interval.
const MIN_DELAY: Duration = Duration::from_millis(1);

/// Polls until all of `ids` are in the state `goal`. Returns their statuses in the order of `ids`.
///
/// - A poll is one [`describe_instances`](InstanceProvisioner::describe_instances) of the instances
///   that are not in the goal state yet. Over a [stack of layers](crate::layer::Stack) concurrent waits
///   share their calls: ten thousand waits for one instance each poll with about ten calls, if the
///   cloud describes a thousand instances at once. Waits that begin at different times poll at
///   [common ticks](WaitPolicy).
/// - An error that may be retried does not end the wait. Its delay is respected; if the delay ends
///   after the deadline, there is no further poll.
/// - "Not found" counts only when some time has passed since the start of the wait. A wait for
///   [`Terminated`](CloudInstanceState::Terminated) succeeds for the instance, with the reason
///   `no record kept`, when the consistency window has passed, which proves that it is gone. Any other wait
///   fails after the [usual lag](crate::Capabilities::usual_lag()) of reads; for an instance that a call
///   has just returned, after the window.
/// - The wait fails at once when an instance cannot reach the goal any more. If an instance that was
///   heading to the goal went back to another state (a start that failed), it fails once it has been
///   observed there for the usual lag.
///
/// # Errors
/// A [`WaitError`] with the cause, the instances that reached the goal, and the last observation of
/// the others.
///
/// ```
/// use std::time::Duration;
/// use fleetwright::{prelude::*, wait};
/// use fleetwright_memory::MemoryCloud;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let provisioner = MemoryCloud::new().provisioner();
/// let config = InstanceConfig::builder("image-1", "small").build()?;
/// let three = std::num::NonZeroU32::new(3).unwrap();
/// let launched = provisioner.launch_instances(&config, three).await?;
///
/// let ids: Vec<_> = launched.into_iter().map(|info| info.id).collect();
/// let policy = WaitPolicy::within(Duration::from_secs(60));
/// let statuses = wait::for_state(&provisioner, &ids, CloudInstanceState::Running, &policy).await?;
/// assert_eq!(statuses.len(), 3);
/// # Ok(())
/// # }
/// ```
pub async fn for_state<P: InstanceProvisioner + ?Sized>(
    provisioner: &P,
    ids: &[InstanceId],
    goal: CloudInstanceState,
    policy: &WaitPolicy,
) -> Result<Vec<InstanceStatus>, WaitError> {
    poll_until(provisioner, ids, goal, policy, FirstPoll::AtOnce).await
}

/// When a wait polls first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstPoll {
    /// The state of the instances is not known.
    AtOnce,
    /// A call has just changed the instances, and has returned this state if it returns any. A poll at once would
    /// show nothing new.
    AfterDelay(Option<CloudInstanceState>),
}

/// Like [`for_state`], after a call that has changed the instances and has returned them in the state `before`, if it returns a
/// state. Polls for the first time after a delay, unless `before` is the goal, and detects an instance that went back to another state
/// before the first poll.
pub(crate) async fn for_state_after<P: InstanceProvisioner + ?Sized>(
    provisioner: &P,
    ids: &[InstanceId],
    goal: CloudInstanceState,
    policy: &WaitPolicy,
    before: Option<CloudInstanceState>,
) -> Result<Vec<InstanceStatus>, WaitError> {
    poll_until(
        provisioner,
        ids,
        goal,
        policy,
        FirstPoll::AfterDelay(before),
    )
    .await
}

async fn poll_until<P: InstanceProvisioner + ?Sized>(
    provisioner: &P,
    ids: &[InstanceId],
    goal: CloudInstanceState,
    policy: &WaitPolicy,
    first: FirstPoll,
) -> Result<Vec<InstanceStatus>, WaitError> {
    let before = match first {
        FirstPoll::AtOnce => None,
        FirstPoll::AfterDelay(before) => before,
    };
    let capabilities = provisioner.capabilities();
    let interval = capabilities.poll_interval.max(MIN_DELAY);
    let deadline = policy.deadline(Instant::now());
    let mut watches: BTreeMap<&InstanceId, Watch> = ids
        .iter()
        .map(|id| (id, Watch::new(goal, capabilities, before)))
        .collect();
    let mut delays = policy.delays_from(interval);
    if first != FirstPoll::AtOnce && before != Some(goal) && !watches.is_empty() {
        sleep_until(delays.next_poll(interval).min(deadline)).await;
    }
    for poll in 1_u32.. {
        let open: Vec<InstanceId> = watches
            .iter()
            .filter(|(_, watch)| !watch.is_at_goal())
            .map(|(id, _)| (*id).clone())
            .collect();
        if open.is_empty() {
            break;
        }
        let Ok(results) = timeout_at(deadline, provisioner.describe_instances(&open)).await else {
            return Err(WaitError::new(
                WaitCause::Deadline,
                goal,
                poll,
                ids,
                &watches,
            ));
        };
        if results.len() != open.len() {
            let (returned, expected) = (results.len(), open.len());
            let message =
                format!("the backend returned {returned} results for {expected} instances");
            let cause = WaitCause::Failed(unexpected(provisioner, &message));
            return Err(WaitError::new(cause, goal, poll, ids, &watches));
        }
        let mut min_delay = interval;
        let mut failure = None;
        for (id, result) in open.iter().zip(results) {
            if result.as_ref().is_ok_and(|status| status.id != *id) {
                let message = "the backend returned the results of a batch in another order";
                let cause = WaitCause::Failed(unexpected(provisioner, message));
                failure = failure.or(Some(cause));
                continue;
            }
            let watch = watches.get_mut(id);
            match watch.map(|watch| watch.update(id, result)) {
                Some(Decision::Failed(cause)) => failure = failure.or(Some(cause)),
                Some(Decision::PollAfter(delay)) => min_delay = min_delay.max(delay),
                Some(Decision::Reached) | None => {}
            }
        }
        let ended = match failure {
            Some(cause) => Some(cause),
            None if watches.values().all(Watch::is_at_goal) => None,
            None if policy.max_polls.is_some_and(|most| poll >= most.get()) => {
                Some(WaitCause::PollLimit)
            }
            None => {
                let remaining = deadline.saturating_duration_since(Instant::now());
                sleep_until(delays.next_poll(min_delay).min(deadline)).await;
                // The deadline may shorten our own delay, but never the one that the cloud requests.
                (min_delay > remaining).then_some(WaitCause::Deadline)
            }
        };
        if let Some(cause) = ended {
            return Err(WaitError::new(cause, goal, poll, ids, &watches));
        }
    }
    Ok(ids
        .iter()
        .filter_map(|id| watches[id].last().cloned())
        .collect())
}

/// Creates the error for a backend that returns a malformed batch.
fn unexpected<P: InstanceProvisioner + ?Sized>(provisioner: &P, message: &str) -> ProvisionError {
    let provider = provisioner.capabilities().provider.as_str();
    Call::new(provider, Operation::DescribeInstances).unexpected(Effect::None, message)
}

/// Why a wait failed.
///
/// | cause | what to do |
/// | --- | --- |
/// | [`Deadline`](Self::Deadline), [`PollLimit`](Self::PollLimit) | wait again, or terminate the instance |
/// | [`Unreachable`](Self::Unreachable) | launch another instance |
/// | [`Reverted`](Self::Reverted) | read the reason, then start the instance again or replace it |
/// | [`Failed`](Self::Failed) | act on the kind of the error |
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WaitCause {
    /// The deadline passed.
    Deadline,
    /// The limit of polls was reached.
    PollLimit,
    /// This instance cannot reach the goal any more, whatever is called.
    Unreachable(Box<InstanceStatus>),
    /// This instance was heading to the goal and went back to another state, in which it stays until
    /// the next call: a start that failed.
    Reverted(Box<InstanceStatus>),
    /// A read failed with an error that must not be retried.
    Failed(ProvisionError),
}

impl fmt::Display for WaitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let write_status = |f: &mut fmt::Formatter<'_>, status: &InstanceStatus, what| {
            let reason = one_line(status.state_reason.as_deref().unwrap_or("no reason given"));
            write!(
                f,
                "instance {} {what} {} ({reason})",
                status.id, status.state
            )
        };
        match self {
            Self::Deadline => f.write_str("the deadline passed"),
            Self::PollLimit => f.write_str("the limit of polls was reached"),
            Self::Unreachable(status) => write_status(f, status, "is"),
            Self::Reverted(status) => write_status(f, status, "went back to"),
            Self::Failed(error) => write!(f, "{} failed", error.operation()),
        }
    }
}

/// An instance that did not reach the goal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NotReached {
    /// The instance.
    pub id: InstanceId,
    /// Its last observed status.
    pub last: Option<InstanceStatus>,
    /// The error of the last poll, if that failed.
    pub error: Option<ProvisionError>,
}

/// The error of a failed wait. The wait changed nothing.
///
/// ```
/// use fleetwright::wait::{WaitCause, WaitError};
///
/// fn describe(error: &WaitError) -> String {
///     let open: Vec<_> = error.not_reached.iter().map(|one| one.id.as_str()).collect();
///     match &error.cause {
///         WaitCause::Deadline | WaitCause::PollLimit => format!("still waiting for {open:?}"),
///         WaitCause::Unreachable(status) => format!("{} is lost", status.id),
///         _ => error.to_string(),
///     }
/// }
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[error("waiting for {goal}: {cause}; {} of {} reached it in {polls} polls", reached.len(), reached.len() + not_reached.len())]
#[non_exhaustive]
pub struct WaitError {
    /// Why the wait failed.
    pub cause: WaitCause,
    /// The goal of the wait.
    pub goal: CloudInstanceState,
    /// The number of polls.
    pub polls: u32,
    /// The instances that reached the goal.
    pub reached: Vec<InstanceStatus>,
    /// The instances that did not.
    pub not_reached: Vec<NotReached>,
    #[source]
    source: Option<ProvisionError>,
}

impl WaitError {
    fn new(
        cause: WaitCause,
        goal: CloudInstanceState,
        polls: u32,
        ids: &[InstanceId],
        watches: &BTreeMap<&InstanceId, Watch>,
    ) -> Self {
        let (mut reached, mut not_reached) = (Vec::new(), Vec::new());
        for id in ids {
            let watch = &watches[id];
            match watch.last() {
                Some(status) if watch.is_at_goal() => reached.push(status.clone()),
                last => {
                    let (id, last, error) = (id.clone(), last.cloned(), watch.error().cloned());
                    not_reached.push(NotReached { id, last, error });
                }
            }
        }
        let source = match &cause {
            WaitCause::Failed(error) => Some(error.clone()),
            WaitCause::Deadline
            | WaitCause::PollLimit
            | WaitCause::Unreachable(_)
            | WaitCause::Reverted(_) => not_reached.iter().find_map(|one| one.error.clone()),
        };
        Self {
            cause,
            goal,
            polls,
            reached,
            not_reached,
            source,
        }
    }
}
