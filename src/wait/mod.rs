//! Waiting for a state, for one instance or a thousand.
//!
//! Owns the polling loop: one batch describe a poll whatever the number of instances, jittered
//! backoff, a deadline and a budget of polls. It fails fast when the goal cannot be reached any
//! more, and it only reads: whatever its outcome, the instances are as they were.
//!
//! Time is tokio's, so a test can pause it.

mod policy;
mod watch;

use std::{collections::BTreeMap, fmt, time::Duration};

use tokio::time::{Instant, sleep, timeout_at};

pub use policy::WaitPolicy;
use watch::{Verdict, Watch};

use crate::{
    Call, CloudInstanceState, Effect, InstanceId, InstanceProvisioner, InstanceStatus, Operation,
    ProvisionError, error::one_line,
};

/// The shortest delay, whatever was declared: a wait never spins.
const SHORTEST: Duration = Duration::from_millis(1);

/// Polls until every one of `ids` is in the state `goal`, and answers their statuses in the order
/// asked.
///
/// - A poll is one [`describe_instances`](InstanceProvisioner::describe_instances) of those that are
///   not there yet.
/// - An error that may be retried does not end the wait; its delay is kept, also where the deadline
///   comes first: then no further poll is made.
/// - "Not found" counts only once the declared consistency window has passed since the wait began.
///   Then it ends a wait for terminated well, with the reason `no record kept`, and any other badly.
/// - The wait ends at once when an instance can no longer reach the goal, and once the window has
///   passed when one that was on its way has turned back (a start that failed).
///
/// # Errors
/// A [`WaitError`] that says why, which instances got there, and what was last seen of the others.
pub async fn for_state<P: InstanceProvisioner + ?Sized>(
    provisioner: &P,
    ids: &[InstanceId],
    goal: CloudInstanceState,
    policy: &WaitPolicy,
) -> Result<Vec<InstanceStatus>, WaitError> {
    for_state_after(provisioner, ids, goal, policy, None).await
}

/// The same for instances that a call has just answered as `before`, so that one which turns back
/// between two polls is told as well.
pub(crate) async fn for_state_after<P: InstanceProvisioner + ?Sized>(
    provisioner: &P,
    ids: &[InstanceId],
    goal: CloudInstanceState,
    policy: &WaitPolicy,
    before: Option<CloudInstanceState>,
) -> Result<Vec<InstanceStatus>, WaitError> {
    let window = provisioner.capabilities().consistency_window;
    let tick = provisioner.capabilities().poll_interval.max(SHORTEST);
    let deadline = policy.deadline(Instant::now());
    let mut watches: BTreeMap<&InstanceId, Watch> = ids
        .iter()
        .map(|id| (id, Watch::new(goal, window, before)))
        .collect();
    let mut delays = policy.backoff();
    for poll in 1_u32.. {
        let open: Vec<InstanceId> = watches
            .iter()
            .filter(|(_, w)| !w.is_there())
            .map(|(id, _)| (*id).clone())
            .collect();
        if open.is_empty() {
            break;
        }
        let Ok(answers) = timeout_at(deadline, provisioner.describe_instances(&open)).await else {
            return Err(WaitError::new(
                WaitCause::Deadline,
                goal,
                poll,
                ids,
                &watches,
            ));
        };
        if answers.len() != open.len() {
            let (asked, answered) = (open.len(), answers.len());
            let message = format!("asked for {asked} instances, {answered} were answered");
            let cause = WaitCause::Failed(unexpected(provisioner, &message));
            return Err(WaitError::new(cause, goal, poll, ids, &watches));
        }
        let mut at_least = tick;
        let mut failure = None;
        for (id, answer) in open.iter().zip(answers) {
            if answer.as_ref().is_ok_and(|status| status.id != *id) {
                let message = "the answers are not in the order that was asked for";
                let cause = WaitCause::Failed(unexpected(provisioner, message));
                failure = failure.or(Some(cause));
                continue;
            }
            let watch = watches.get_mut(id);
            match watch.map(|watch| watch.take(id, answer)) {
                Some(Verdict::Failed(cause)) => failure = failure.or(Some(cause)),
                Some(Verdict::Wait(asked)) => at_least = at_least.max(asked),
                Some(Verdict::There) | None => {}
            }
        }
        let ended = match failure {
            Some(cause) => Some(cause),
            None if watches.values().all(Watch::is_there) => None,
            None if policy.max_polls.is_some_and(|most| poll >= most.get()) => {
                Some(WaitCause::PollLimit)
            }
            None => {
                let left = deadline.saturating_duration_since(Instant::now());
                let delay = delays.next().unwrap_or(policy.max_delay).max(at_least);
                sleep(delay.min(left)).await;
                // The deadline cuts our own delay short, never what the cloud asks for.
                (at_least > left).then_some(WaitCause::Deadline)
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

/// What to say of a backend that answers a batch in another way than it was asked.
fn unexpected<P: InstanceProvisioner + ?Sized>(provisioner: &P, message: &str) -> ProvisionError {
    let provider = provisioner.capabilities().provider.as_str();
    Call::new(provider, Operation::DescribeInstances).unexpected(Effect::None, message)
}

/// Why a wait ended without its goal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WaitCause {
    /// The time was up.
    Deadline,
    /// The budget of polls was used up.
    PollLimit,
    /// This instance can no longer reach the goal by any call.
    Unreachable(Box<InstanceStatus>),
    /// This instance was on its way and has turned back: it stays where it is unless it is asked
    /// again.
    Reverted(Box<InstanceStatus>),
    /// A read failed in a way that a retry would not mend.
    Failed(ProvisionError),
}

impl fmt::Display for WaitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |f: &mut fmt::Formatter<'_>, status: &InstanceStatus, what| {
            let reason = one_line(status.state_reason.as_deref().unwrap_or("no reason given"));
            write!(
                f,
                "instance {} {what} {} ({reason})",
                status.id, status.state
            )
        };
        match self {
            Self::Deadline => f.write_str("the deadline passed"),
            Self::PollLimit => f.write_str("the budget of polls is used up"),
            Self::Unreachable(status) => told(f, status, "is"),
            Self::Reverted(status) => told(f, status, "turned back to"),
            Self::Failed(error) => write!(f, "{} failed", error.operation()),
        }
    }
}

/// An instance that did not get to the goal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NotReached {
    /// The instance.
    pub id: InstanceId,
    /// What was last seen of it.
    pub last: Option<InstanceStatus>,
    /// The last read that failed, where it failed after that.
    pub error: Option<ProvisionError>,
}

/// A wait that ended without its goal. The instances are as they were: none was touched.
#[derive(Clone, Debug, thiserror::Error)]
#[error("waiting for {goal}: {cause}; {} of {} got there in {polls} polls", reached.len(), reached.len() + not_reached.len())]
#[non_exhaustive]
pub struct WaitError {
    /// Why it ended.
    pub cause: WaitCause,
    /// The state that was waited for.
    pub goal: CloudInstanceState,
    /// How many polls were made.
    pub polls: u32,
    /// Those that got there.
    pub reached: Vec<InstanceStatus>,
    /// Those that did not.
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
                Some(status) if watch.is_there() => reached.push(status.clone()),
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
