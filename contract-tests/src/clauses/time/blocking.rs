//! Calls that block their thread.
//!
//! Owns the measurement: how long each poll of a call keeps the thread. A call that waits returns from its poll
//! and is woken later; one that sleeps inside of a poll stops every other task of the thread, and no
//! clock that is injected can shorten it. The machine's load can also keep a thread, so a long poll counts only
//! if the same call repeats it each time.
//!
//! This is the only judgement of the kit that depends on the wall clock. It cannot do without: another task of the same
//! thread is not polled between two polls of a correct call either, so counting polls or yields shows no difference, and the
//! paused clock stands still in both cases. A blocked poll differs from a short one by nothing but its duration. The load of
//! the machine can only make the clause fail if it keeps the thread for 200 ms in each of four attempts, and it can never
//! make a blocking call pass, because that one blocks in all of them.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    time::{Duration, Instant},
};

use fleetwright::InstanceId;

use crate::{Context, Failure, Outcome, Pass, Time, WireFault, WireOp, require, shown::in_words};

/// The longest time that a poll may keep its thread. Calls that compute need a fraction of it.
const LONGEST_POLL: Duration = Duration::from_millis(200);

/// How often a call is repeated if it seems to block.
const ATTEMPTS: usize = 4;

/// The delay that the cloud demands in this clause. A backend that sleeps for it blocks for longer than
/// [`LONGEST_POLL`].
const DELAY: Duration = Duration::from_secs(1);

/// TIME-06: a backend must let other tasks of its thread run while a call waits.
///
/// A call that sleeps on its thread stops every other call of the program, timeouts included.
///
/// Makes each of the seven calls, without a fault and while the cloud throttles it, and measures how long every single
/// poll of the call takes. If one takes far longer than any computation, the call is repeated; it blocks if
/// that happens each time.
pub(crate) async fn time_06_no_call_blocks_its_thread(cx: &Context) -> Outcome {
    let running = cx.launch_running().await?.id;
    let stopped = cx.launch_stopped().await?.id;
    cx.wait_for_consistent_reads().await;
    let throttled = WireFault::Throttled(DELAY);
    let faults = cx.harness().faults();
    let faults = faults.filter(|faults| faults.supports(&throttled));
    for call in [
        WireOp::Describe,
        WireOp::List,
        WireOp::FindLaunch,
        WireOp::Launch,
        WireOp::Start,
        WireOp::Stop,
        WireOp::Terminate,
    ] {
        let id = if call == WireOp::Start {
            &stopped
        } else {
            &running
        };
        require_polls_are_short(cx, call, "", async || make(cx, call, id).await).await?;
        // In real time every delay costs a second, and backends wait for it in one place.
        let is_cheap = cx.harness().time() == Time::Virtual || call == WireOp::Describe;
        let Some(faults) = faults.as_ref().filter(|_| is_cheap) else {
            continue;
        };
        require_polls_are_short(cx, call, " that is throttled", async || {
            faults.inject(call, 1, throttled.clone()).await;
            make(cx, call, id).await;
            faults.clear().await;
        })
        .await?;
    }
    Ok(Pass::Held)
}

/// Repeats a call as long as one of its polls takes too long.
async fn require_polls_are_short(
    cx: &Context,
    call: WireOp,
    how: &str,
    make: impl AsyncFn(),
) -> Result<(), Failure> {
    let (mut shortest, name) = (Duration::MAX, in_words(&call));
    for _ in 0..ATTEMPTS {
        shortest = shortest.min(longest_poll(make()).await);
        if shortest < LONGEST_POLL {
            return Ok(());
        }
    }
    cx.note(format!("{ATTEMPTS} attempts of the {name}{how} were made"));
    require(shortest < LONGEST_POLL, || {
        format!("a {name}{how} blocks its thread: other tasks cannot run while it waits")
    })
}

/// Makes a call. Other clauses check its result.
async fn make(cx: &Context, call: WireOp, id: &InstanceId) {
    let handle = cx.provisioner();
    match call {
        WireOp::Describe => drop(handle.describe_instance(id).await),
        WireOp::List => drop(handle.list_instances(&cx.filter()).await),
        WireOp::FindLaunch => drop(handle.find_launch(&cx.new_token()).await),
        WireOp::Launch => drop(handle.launch_instance(&cx.config_with_token()).await),
        WireOp::Start => drop(handle.start_instance(id).await),
        WireOp::Stop => drop(handle.stop_instance(id).await),
        WireOp::Terminate => drop(handle.terminate_instance(id).await),
        WireOp::Any | WireOp::UpdateTags => {}
    }
}

/// Runs a future and returns how long the longest of its polls took.
async fn longest_poll(future: impl Future<Output = ()>) -> Duration {
    let mut future = pin!(future);
    let mut longest = Duration::ZERO;
    poll_fn(|task| {
        let start = Instant::now();
        let polled = future.as_mut().poll(task);
        longest = longest.max(start.elapsed());
        polled
    })
    .await;
    longest
}
