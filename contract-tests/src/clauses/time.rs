//! Time: waits that end, and a clock that everything follows.
//!
//! TIME-01 to TIME-03 run the waiting functions of the core on the backend, since their promises
//! depend on what the backend declares and returns; a harness can substitute other ones with
//! `state_waiter`. The others are about the backend alone; `blocking` has TIME-06.

mod blocking;

use std::time::Duration;

use fleetwright::{
    Capabilities, CloudInstanceState, ErrorKind, InstanceId, InstanceStatus,
    wait::{WaitCause, WaitError, WaitPolicy},
};
use tokio::time::Instant;

pub(crate) use self::blocking::time_06_no_call_blocks_its_thread;
use crate::{Context, Failure, Outcome, Pass, Time, WireFault, WireOp, require};

/// TIME-01: a backend must let a wait fail at its deadline, and never return success for a goal
/// that was not reached.
///
/// A wait that returns a false success sends work to an instance that is not there.
///
/// Waits for a state that never comes, with a deadline of three poll intervals, also while every
/// describe hangs. The wait must end at the deadline and name the instance.
pub(crate) async fn time_01_waiting_ends_at_its_deadline(cx: &Context) -> Outcome {
    let id = cx.launch_running().await?.id;
    let deadline = cx.capabilities().poll_interval.saturating_mul(3);
    let deadline = deadline.max(Duration::from_millis(200));
    require_deadline_kept(cx, &id, deadline).await?;
    let hang = WireFault::Hang;
    if let Some(faults) = cx
        .harness()
        .faults()
        .filter(|faults| faults.supports(&hang))
    {
        faults.inject_always(WireOp::Describe, hang).await;
        require_deadline_kept(cx, &id, deadline).await?;
        faults.clear().await;
    }
    Ok(Pass::Held)
}

/// TIME-02: a backend must let a wait fail as soon as its goal can no longer be reached.
///
/// Ten minutes of waiting for a terminated instance are ten minutes of outage.
///
/// Terminates an instance while a wait for stopped is in progress, and waits until a terminated
/// instance runs. Both waits must end because the state is unreachable.
pub(crate) async fn time_02_waiting_ends_when_goal_is_unreachable(cx: &Context) -> Outcome {
    let deadline = cx.harness().budget();
    let running = cx.launch_running().await?.id;
    let lost = wait(cx, &running, CloudInstanceState::Stopped, deadline);
    let (waited, terminated) = futures_util::future::join(lost, cx.terminate(&running)).await;
    terminated?;
    require_given_up(&running, CloudInstanceState::Stopped, waited)?;
    let terminated = cx.launch_terminated().await?.id;
    cx.wait_for_consistent_reads().await;
    let waited = wait(cx, &terminated, CloudInstanceState::Running, deadline).await;
    require_given_up(&terminated, CloudInstanceState::Running, waited)?;
    Ok(Pass::Held)
}

/// TIME-03: a backend must let a wait for many instances poll no faster than the declared interval,
/// with one call for all.
///
/// Calls count against the account's rate limits. Needs: oracle.
///
/// Waits for four instances with a policy of one microsecond between polls, and counts the
/// calls with the oracle.
pub(crate) async fn time_03_waiting_makes_few_calls(cx: &Context) -> Outcome {
    let oracle = cx.oracle()?;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(cx.launch().await?.id);
    }
    for id in &ids {
        cx.wait_for_state(id, CloudInstanceState::Running).await?;
    }
    let interval = cx
        .capabilities()
        .poll_interval
        .max(Duration::from_millis(1));
    let intervals: u32 = if cx.can_advance_time(interval.saturating_mul(20)) {
        20
    } else {
        4
    };
    // The policy requests shorter delays than the declared interval, which must win.
    let policy = WaitPolicy::within(interval.saturating_mul(intervals))
        .delays(Duration::from_micros(1), Duration::from_micros(1));
    let before = oracle.calls().await;
    let start = Instant::now();
    let goal = CloudInstanceState::Stopped;
    let waiter = cx.harness().state_waiter();
    let waited = waiter.for_state(cx.provisioner(), &ids, goal, &policy);
    // Other clauses check how it ends.
    let _ = waited.await;
    let polls = start.elapsed().as_nanos() / interval.as_nanos() + 2;
    let for_each_poll = ids.len().div_ceil(cx.capabilities().batch_size.get()) as u128;
    let (calls, most) = (oracle.calls().await - before, polls * for_each_poll);
    require(u128::from(calls) <= most, || {
        format!(
            "a wait of {:?} for {} instances made {calls} calls, but a poll interval of {interval:?} allows {most}",
            start.elapsed(),
            ids.len(),
        )
    })?;
    Ok(Pass::Held)
}

/// TIME-04: a backend must declare the same capabilities during the lifetime of a handle, with a
/// poll interval above zero and a batch and page size of at least one.
///
/// Callers read them once and rely on them.
///
/// Compares the declared capabilities after a launch, a list, a stop, an error and a terminate with
/// those before.
pub(crate) async fn time_04_capabilities_never_change(cx: &Context) -> Outcome {
    let declared = cx.capabilities().clone();
    require(!declared.poll_interval.is_zero(), || {
        "the declared poll interval is zero: callers would poll without a pause".to_owned()
    })?;
    require(!declared.provider.is_empty(), || {
        "the declared provider has no name".to_owned()
    })?;
    let same = |after: &str| {
        require(*cx.capabilities() == declared, || {
            let changed = changed_fields(&declared, cx.capabilities());
            format!("after {after} the handle declares other capabilities than before: {changed}")
        })
    };
    let info = cx.launch_running().await?;
    same("a launch")?;
    cx.list(&cx.filter()).await?;
    same("a list")?;
    cx.stop(&info.id).await?;
    cx.wait_for_state(&info.id, CloudInstanceState::Stopped)
        .await?;
    same("a stop")?;
    let unknown = cx.harness().unknown_id();
    let _ = cx.provisioner().describe_instance(&unknown).await;
    same("an error")?;
    cx.terminate(&info.id).await?;
    cx.wait_until_terminated(&info.id).await?;
    same("a terminate")?;
    Ok(Pass::Held)
}

/// Names the declared values that are different, with both where they are short.
fn changed_fields(declared: &Capabilities, now: &Capabilities) -> String {
    let fields = |one| serde_json::to_value(one).unwrap_or_default();
    let (declared, now) = (fields(declared), fields(now));
    let names = declared.as_object().into_iter().flatten();
    let changed = names.filter(|(name, value)| now.get(name) != Some(value));
    let changed = changed.map(|(name, value)| match now.get(name) {
        Some(now) if !value.is_object() && !value.is_array() => {
            format!("{name} is {now} and was {value}")
        }
        _ => format!("{name} is another"),
    });
    changed.collect::<Vec<_>>().join(", ")
}

/// TIME-05: a backend must complete transitions by the clock that it was given, however rarely they
/// are observed, and sleep on no other clock.
///
/// Otherwise tests would have to wait in real time.
///
/// Launches two instances, polls only the second one until it runs, and requires that the first
/// runs too. In virtual time, also launches one and describes it only after the whole budget.
pub(crate) async fn time_05_transitions_follow_the_clock(cx: &Context) -> Outcome {
    require_progress_unobserved(cx).await?;
    if cx.harness().time() == Time::Real {
        return Ok(Pass::Held);
    }
    let info = cx.launch().await?;
    // It must run after this time although nobody has read it.
    cx.advance_time(cx.harness().budget()).await;
    let status = cx.describe(&info.id).await?;
    require(status.state == CloudInstanceState::Running, || {
        let (id, state, budget) = (&info.id, status.state, cx.harness().budget());
        format!("{id} is {state} after {budget:?} on the clock that the backend was given")
    })?;
    Ok(Pass::Held)
}

/// Requires that an instance that is not observed gets as far as one that was launched after it. This
/// works in real time, too.
async fn require_progress_unobserved(cx: &Context) -> Result<(), Failure> {
    let [unwatched, watched] = [cx.launch().await?.id, cx.launch().await?.id];
    cx.wait_for_state(&watched, CloudInstanceState::Running)
        .await?;
    cx.wait_for_consistent_reads().await;
    let state = cx.describe(&unwatched).await?.state;
    require(state == CloudInstanceState::Running, || {
        format!(
            "{watched} was polled and is running, but {unwatched}, launched before it, is {state}"
        )
    })
}

/// Waits with the harness's waiter, as a program would.
async fn wait(
    cx: &Context,
    id: &InstanceId,
    goal: CloudInstanceState,
    deadline: Duration,
) -> Result<Vec<InstanceStatus>, WaitError> {
    let interval = cx.capabilities().poll_interval;
    let policy = WaitPolicy::within(deadline).delays(interval, interval.saturating_mul(2));
    let ids = std::slice::from_ref(id);
    let waiter = cx.harness().state_waiter();
    waiter.for_state(cx.provisioner(), ids, goal, &policy).await
}

/// Requires that a wait for an unreachable state fails at its deadline, neither earlier nor later.
async fn require_deadline_kept(
    cx: &Context,
    id: &InstanceId,
    deadline: Duration,
) -> Result<(), Failure> {
    let start = Instant::now();
    let waited = wait(cx, id, CloudInstanceState::Stopped, deadline).await;
    let took = start.elapsed();
    let error = match waited {
        Ok(statuses) => {
            let observed = crate::shown(&statuses);
            let text = format!("a wait until {id} is stopped succeeded, with {observed}");
            return Err(Failure::violated(text));
        }
        Err(error) => error,
    };
    let right = matches!(error.cause, WaitCause::Deadline)
        && error.not_reached.iter().any(|one| one.id == *id);
    require(right, || {
        format!("the wait for {id} must end at its deadline and name it, but: {error}")
    })?;
    let latest = deadline
        .saturating_mul(2)
        .saturating_add(Duration::from_secs(1));
    require((deadline..=latest).contains(&took), || {
        format!("a wait with a deadline of {deadline:?} ended after {took:?}")
    })
}

/// Requires that a wait ended because its goal became unreachable, not because of its deadline.
fn require_given_up(
    id: &InstanceId,
    goal: CloudInstanceState,
    waited: Result<Vec<InstanceStatus>, WaitError>,
) -> Result<(), Failure> {
    let error = match waited {
        Ok(_) => {
            let text = format!("{id} is terminated, but a wait until it is {goal} succeeded");
            return Err(Failure::violated(text));
        }
        Err(error) => error,
    };
    let lost = matches!(&error.cause, WaitCause::Unreachable(status) if status.state.is_ending())
        || matches!(&error.cause, WaitCause::Failed(failed) if failed.kind() == ErrorKind::NotFound);
    require(lost, || {
        format!(
            "{id} is terminated and cannot be {goal} any more, but the wait ended with: {error}"
        )
    })
}
