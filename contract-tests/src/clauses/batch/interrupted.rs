//! Batches whose caller gives up or dies in the middle: every item can be completed, and none is doubled.
//!
//! Calls are dropped after each number of polls, and processes die at each native call, as in the families
//! cancellation and crash.

use std::{future::Future, num::NonZeroU32, pin::pin, sync::Arc, time::Duration};

use fleetwright::{
    CloudInstanceState::{Running, Stopped},
    InstanceId, InstanceInfo, ProvisionError, Result,
};
use futures_util::future::{Either, select};
use tokio::time::{Instant, sleep};

use super::{
    content::{require_found, token_of},
    ids, launch,
};
use crate::{
    Context, Failure, Faults, Outcome, Pass, Time, WireFault, WireOp, context::names,
    dropped::drop_after, life::retry_until_ok, require,
};

/// How many instances each batch has.
const PAIR: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// The most native calls of a batch at which a process dies.
const MOST_CALLS: u64 = 80;

/// Returns the most polls of a call that are tried: 64, or 12 in real time, where each one takes time.
fn most_polls(cx: &Context) -> usize {
    match cx.harness().time() {
        Time::Virtual => 64,
        Time::Real => 12,
    }
}

/// BATCH-18: a backend must let a batch launch, stop, start or termination that was dropped at any point be
/// repeated, with its full effect on every item.
///
/// A timeout drops a batch like any other call, and leaves more behind.
///
/// Drops each of the four calls after 0, 1, 2 and more polls, until it completes, and repeats it through the same
/// handle. A batch launch must then have launched exactly its instances, and its token must find them; the other
/// calls must succeed for each item and bring it to its state.
pub(crate) async fn batch_18_dropped_batches_can_be_repeated(cx: &Context) -> Outcome {
    let mut pairs = Vec::new();
    for polls in 0..most_polls(cx) {
        let config = cx.config_with_token();
        let call = cx.provisioner().launch_instances(&config, PAIR);
        let returned = drop_after(polls, call).await;
        cx.note(format!("a batch launch was dropped after {polls} polls"));
        cx.wait_for_consistent_reads().await;
        let launched = launch(cx, &config, PAIR).await?;
        cx.require_count(2 * pairs.len() + launched.len()).await?;
        require_found(cx.provisioner(), &token_of(&config)?, &launched).await?;
        pairs.push(launched.into_iter().map(|info| info.id).collect::<Vec<_>>());
        if returned.is_some() {
            break;
        }
    }
    if let Some(pair) = pairs.first() {
        stop_and_start(cx, pair).await?;
    }
    for polls in 0..most_polls(cx) {
        let pair = match pairs.pop() {
            Some(pair) => pair,
            None => {
                let launched = launch(cx, &cx.config(), PAIR).await?;
                launched.into_iter().map(|info| info.id).collect()
            }
        };
        let since = Instant::now();
        let ended = drop_after(polls, cx.provisioner().terminate_instances(&pair)).await;
        let again = cx.provisioner().terminate_instances(&pair).await;
        let forgotten = |error: &ProvisionError| cx.is_forgotten(Some(error), since);
        require_each(&pair, "termination", polls, again, forgotten)?;
        for id in &pair {
            cx.wait_until_terminated(id).await?;
        }
        if ended.is_some() {
            break;
        }
    }
    Ok(Pass::Held)
}

/// Drops stops and starts of two instances at every poll, and repeats them.
async fn stop_and_start(cx: &Context, pair: &[InstanceId]) -> Result<(), Failure> {
    for id in pair {
        cx.wait_for_state(id, Running).await?;
    }
    for polls in 0..most_polls(cx) {
        let stopped = drop_after(polls, cx.provisioner().stop_instances(pair)).await;
        let again = cx.provisioner().stop_instances(pair).await;
        require_each(pair, "stop", polls, again, |_| false)?;
        for id in pair {
            cx.wait_for_state(id, Stopped).await?;
        }
        cx.wait_for_consistent_reads().await;
        let started = drop_after(polls, cx.provisioner().start_instances(pair)).await;
        let again = cx.provisioner().start_instances(pair).await;
        require_each(pair, "start", polls, again, |_| false)?;
        cx.wait_for_consistent_reads().await;
        for id in pair {
            cx.wait_for_state(id, Running).await?;
        }
        if stopped.is_some() && started.is_some() {
            break;
        }
    }
    Ok(())
}

/// Requires that a repeated batch succeeded for each item, or failed as `allowed`.
fn require_each<T>(
    requested: &[InstanceId],
    verb: &str,
    polls: usize,
    results: Vec<Result<T>>,
    allowed: impl Fn(&ProvisionError) -> bool,
) -> Result<(), Failure> {
    require(results.len() == requested.len(), || {
        format!(
            "a {verb} of {} items has {} results",
            requested.len(),
            results.len()
        )
    })?;
    for (id, result) in requested.iter().zip(results) {
        if let Some(error) = result.err().filter(|error| !allowed(error)) {
            return Err(Failure::violated(format!(
                "a batch {verb} was dropped after {polls} polls, and its repetition fails for {id}: {error}"
            )));
        }
    }
    Ok(())
}

/// BATCH-19: a backend must end with exactly the instances of a batch, then with none of them, wherever in the
/// batch launch and in the batch termination the process dies and is restarted.
///
/// A process that dies in the middle of a batch leaves several instances, not one. Needs: fault: crash.
///
/// Lets the process die at each native call of a batch launch of two, and at each one of its batch termination.
/// A new process repeats the call. After the launch exactly its two instances must exist, after the termination
/// neither. In real time, the process dies only after the effect of each call.
pub(crate) async fn batch_19_crash_at_every_call_of_a_batch(cx: &Context) -> Outcome {
    let crashes = [WireFault::CrashAfter, WireFault::CrashBefore];
    let faults = cx.faults(&crashes)?;
    let tried = match cx.harness().time() {
        Time::Virtual => &crashes[..],
        Time::Real => &crashes[..1],
    };
    let mut ended: Vec<InstanceId> = Vec::new();
    for crash in tried {
        for nth in 1..=MOST_CALLS {
            let (pair, in_launch) = launch_despite(cx, &faults, nth, crash).await?;
            require_live(cx, &pair, crash, nth).await?;
            let pair: Vec<_> = pair.into_iter().map(|info| info.id).collect();
            let in_termination = terminate_despite(cx, &faults, nth, crash, &pair).await?;
            ended.extend(pair);
            if !in_launch && !in_termination {
                break;
            }
        }
    }
    for id in &ended {
        cx.wait_until_terminated(id).await?;
    }
    cx.require_count(0).await?;
    Ok(Pass::Held)
}

/// Launches a batch in processes of which the first may die at its native call `nth`. Returns the batch, and
/// whether a process died.
async fn launch_despite(
    cx: &Context,
    faults: &Arc<dyn Faults>,
    nth: u64,
    crash: &WireFault,
) -> Result<(Vec<InstanceInfo>, bool), Failure> {
    let config = cx.config_with_token();
    let handle = cx.open_handle().await;
    faults.inject(WireOp::Any, nth, crash.clone()).await;
    let first = unless_dead(faults, handle.launch_instances(&config, PAIR)).await;
    let died = faults.clear().await;
    let launched = match first {
        Some(Ok(launched)) => launched,
        Some(Err(_)) | None => {
            cx.note("a batch launch did not return its instances");
            let next = cx.open_handle().await;
            let call = || next.launch_instances(&config, PAIR);
            retry_until_ok(cx, "batch launch", call).await?
        }
    };
    Ok((launched, died))
}

/// Terminates a batch as [`launch_despite`] launches it. Returns whether a process died.
async fn terminate_despite(
    cx: &Context,
    faults: &Arc<dyn Faults>,
    nth: u64,
    crash: &WireFault,
    pair: &[InstanceId],
) -> Result<bool, Failure> {
    let since = Instant::now();
    let handle = cx.open_handle().await;
    faults.inject(WireOp::Any, nth, crash.clone()).await;
    let first = unless_dead(faults, handle.terminate_instances(pair)).await;
    let died = faults.clear().await;
    if first.is_none() {
        cx.note("a batch termination did not return");
    }
    if first.is_none_or(|results| results.iter().any(Result::is_err)) {
        let next = cx.open_handle().await;
        let call = || async {
            let results = next.terminate_instances(pair).await.into_iter();
            let mut failed = results.filter_map(Result::err);
            let failed = failed.find(|error| !cx.is_forgotten(Some(error), since));
            failed.map_or(Ok(()), Err)
        };
        retry_until_ok(cx, "batch termination", call).await?;
    }
    Ok(died)
}

/// Waits for a call, or until the process that makes it has died: then it never returns.
async fn unless_dead<T>(faults: &Arc<dyn Faults>, call: impl Future<Output = T>) -> Option<T> {
    let died = async {
        while !faults.all_injected().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    match select(pin!(call), pin!(died)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}

/// Requires that the live instances of this clause are exactly those of the batch.
async fn require_live(
    cx: &Context,
    pair: &[InstanceInfo],
    crash: &WireFault,
    nth: u64,
) -> Result<(), Failure> {
    cx.wait_for_consistent_reads().await;
    let mut reads = vec![cx.list(&cx.filter()).await?];
    if let Some(oracle) = cx.harness().oracle() {
        let truths = oracle.instances(cx.scope()).await.into_iter();
        reads.push(truths.map(|truth| truth.info).collect());
    }
    for mut read in reads {
        read.retain(|info| !info.state.is_ending());
        require(ids(&read) == ids(pair) && pair.len() == 2, || {
            let (pair, read) = (names(pair), names(&read));
            format!(
                "with {} at call {nth}, a batch of two launched [{pair}], and there is [{read}]",
                crate::shown::in_words(&crash)
            )
        })?;
    }
    Ok(())
}
