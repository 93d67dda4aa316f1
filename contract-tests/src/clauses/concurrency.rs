//! Concurrency: concurrent calls neither block nor affect each other.
//!
//! The clauses of this file make calls concurrently on one task, in orders that they choose, so
//! that a failure can be reproduced. CONCURRENCY-04 generates its calls; the module `history` runs
//! and checks them.

use std::{collections::BTreeSet, pin::pin};

use fleetwright::{CloudInstanceState, ErrorKind, InstanceId, ProvisionError, Result};
use futures_util::future::{Either, join, join_all, join3, select};
use tokio::time::timeout;

use crate::{
    Context, Factory, Failure, Outcome, Pass, WireFault, WireOp, context::names,
    dropped::drop_after, history, require, shown::in_words,
};

/// The number of concurrent callers, each with an instance of its own.
const CALLERS: usize = 4;

/// The most polls after which a concurrent call is dropped.
const MOST_POLLS: usize = 12;

/// CONCURRENCY-01: a backend must serve calls on one instance while a call on another one hangs.
///
/// One dead connection must not block a fleet. Needs: fault: hang.
///
/// Lets one describe, launch, list, stop or terminate hang, and makes calls of all kinds on a second
/// instance at the same time, within half the budget. Those begin when the fault was injected: one native
/// call can belong to several kinds of calls, and a backend may send its own later than the others.
pub(crate) async fn concurrency_01_hanging_call_blocks_no_other(cx: &Context) -> Outcome {
    let faults = cx.faults(&[WireFault::Hang])?;
    let calls = [
        WireOp::Describe,
        WireOp::Launch,
        WireOp::List,
        WireOp::Stop,
        WireOp::Terminate,
    ];
    for call in calls {
        let [hung, other] = [cx.launch_running().await?.id, cx.launch_running().await?.id];
        faults.inject(call, 1, WireFault::Hang).await;
        let name = in_words(&call);
        let what = format!("the {name} of {hung} is sent");
        let injected = cx.eventually(&what, async || {
            Ok(faults.all_injected().await.then_some(()))
        });
        let served = async {
            injected.await?;
            let served = timeout(cx.harness().budget() / 2, async {
                for one in calls {
                    make_call(cx, one, &other).await?;
                }
                Ok::<(), ProvisionError>(())
            });
            let Ok(result) = served.await else {
                let text =
                    format!("calls on {other} are not served while a {name} of {hung} hangs");
                return Err(Failure::violated(text));
            };
            result.map_err(|error| {
                Failure::call_failed("a call concurrent with one that hangs", &error)
            })
        };
        let result = match select(pin!(make_call(cx, call, &hung)), pin!(served)).await {
            Either::Right((result, _)) => result,
            // The backend gives up a call that hangs.
            Either::Left((result, served)) => {
                cx.note(format!(
                    "the {name} of {hung} returned: {}",
                    crate::shown(&result)
                ));
                if faults.all_injected().await {
                    served.await
                } else {
                    Ok(())
                }
            }
        };
        cx.clear_faults(&faults).await?;
        result?;
    }
    Ok(Pass::Held)
}

/// CONCURRENCY-02: a backend must launch one instance for each of many concurrent launches.
///
/// Managers launch concurrently.
///
/// Launches twelve instances concurrently through three handles, half of them with a token of their
/// own, and compares the ids in the results with the list.
pub(crate) async fn concurrency_02_concurrent_launches(cx: &Context) -> Outcome {
    let handles = [
        cx.shared_provisioner(),
        cx.open_handle().await,
        cx.open_handle().await,
    ];
    let configs = || {
        let with_token = [cx.config_with_token(), cx.config_with_token()];
        [cx.config(), cx.config()].into_iter().chain(with_token)
    };
    let launches = handles
        .iter()
        .flat_map(|handle| configs().map(async |config| handle.launch_instance(&config).await));
    let mut ids = BTreeSet::new();
    for result in join_all(launches).await {
        let info = result
            .map_err(|error| Failure::call_failed("a launch concurrent with others", &error))?;
        require(ids.insert(info.id.clone()), || {
            format!("two concurrent launches both returned {}", info.id)
        })?;
    }
    let list = cx.require_count(ids.len()).await?;
    let listed: BTreeSet<_> = list.iter().map(|info| info.id.clone()).collect();
    require(listed == ids, || {
        format!(
            "{} were launched, and {} exist",
            crate::shown(&ids),
            names(&list)
        )
    })?;
    Ok(Pass::Held)
}

/// CONCURRENCY-03: a backend must end with a terminated instance, whatever stops and starts are
/// concurrent with the terminate.
///
/// A terminated instance must not come back.
///
/// Makes two stops, a start and a terminate concurrently, in each of four orders, on running and on
/// stopped instances. The terminate must succeed and the instance must stay terminated.
pub(crate) async fn concurrency_03_terminate_races(cx: &Context) -> Outcome {
    let mut race = [WireOp::Stop, WireOp::Terminate, WireOp::Start, WireOp::Stop];
    for stopped in [false, true] {
        for _ in 0..race.len() {
            race.rotate_left(1);
            let from = if stopped {
                cx.launch_stopped().await
            } else {
                cx.launch_running().await
            };
            let id = from?.id;
            let calls = race.map(|call| {
                let id = &id;
                async move { (call, make_call(cx, call, id).await) }
            });
            for (call, result) in join_all(calls).await {
                require_terminate_wins(&id, call, result)?;
            }
            cx.wait_until_terminated(&id).await?;
            cx.wait_for_consistent_reads().await;
            cx.consistently(cx.capabilities().consistency_window, async || {
                match cx.provisioner().describe_instance(&id).await {
                    Ok(status) if !status.state.is_ending() => Err(Failure::violated(format!(
                        "{id} was terminated concurrently with stops and starts and is {} again",
                        status.state
                    ))),
                    _ => Ok(()),
                }
            })
            .await?;
        }
    }
    cx.require_count(0).await?;
    Ok(Pass::Held)
}

/// CONCURRENCY-04: a backend must return from concurrent launches, stops and terminates what some
/// sequential order of them would return.
///
/// A caller cannot act on any other result.
///
/// Generates callers and their calls, records begin, end and result of each call, and searches for
/// an order that explains all results. The module `history` has the rules.
pub(crate) fn concurrency_04_histories_are_linearizable(factory: &Factory) -> Outcome {
    history::run(factory)
}

/// CONCURRENCY-05: a backend must return to each of many concurrent calls its own instance,
/// whichever of the others fail or are dropped.
///
/// A backend that combines calls must return each result to the right caller.
///
/// Four callers describe, stop, start and terminate concurrently, each an instance of its own, together
/// with a call on an unknown id. During the descriptions, further callers are dropped after 0, 1, 2 and
/// more polls. Each caller must get the result of its own id.
pub(crate) async fn concurrency_05_each_caller_gets_its_own_result(cx: &Context) -> Outcome {
    let mut ids = Vec::new();
    for _ in 0..CALLERS {
        ids.push(cx.launch_running().await?.id);
    }
    cx.wait_for_consistent_reads().await;
    let (handle, unknown) = (cx.provisioner(), cx.harness().unknown_id());
    for polls in 0..MOST_POLLS {
        // One caller of each instance is dropped, and as many calls fail.
        let dropped = join_all(
            ids.iter()
                .map(|id| drop_after(polls, handle.describe_instance(id))),
        );
        let failing = join_all(ids.iter().map(|_| handle.describe_instance(&unknown)));
        let requested = join_all(ids.iter().map(|id| handle.describe_instance(id)));
        let (dropped, failing, results) = join3(dropped, failing, requested).await;
        for (id, result) in ids.iter().zip(results) {
            let status = result.map_err(|error| concurrent_failure(id, "describe", &error))?;
            require(status.id == *id, || {
                format!(
                    "one of {CALLERS} callers requested {id} and received {}",
                    status.id
                )
            })?;
        }
        for result in failing {
            cx.require_refused(
                "describe_instance of an unknown id",
                result,
                ErrorKind::NotFound,
            )?;
        }
        if dropped.iter().all(Option::is_some) {
            break;
        }
    }
    let stops = ids.iter().map(|id| handle.stop_instance(id));
    let (unknown_stop, stops) = join(handle.stop_instance(&unknown), join_all(stops)).await;
    cx.require_refused(
        "stop_instance of an unknown id",
        unknown_stop,
        ErrorKind::NotFound,
    )?;
    for (id, result) in ids.iter().zip(stops) {
        result.map_err(|error| concurrent_failure(id, "stop", &error))?;
    }
    for id in &ids {
        cx.wait_for_state(id, CloudInstanceState::Stopped).await?;
    }
    cx.wait_for_consistent_reads().await;
    let starts = ids.iter().map(|id| handle.start_instance(id));
    let (unknown_start, starts) = join(handle.start_instance(&unknown), join_all(starts)).await;
    cx.require_refused(
        "start_instance of an unknown id",
        unknown_start,
        ErrorKind::NotFound,
    )?;
    for (id, result) in ids.iter().zip(starts) {
        let info = result.map_err(|error| concurrent_failure(id, "start", &error))?;
        require(info.id == *id, || {
            format!("a concurrent start of {id} returned {}", info.id)
        })?;
    }
    // One instance is not terminated and must run to the end.
    let (kept, terminated) = (&ids[0], &ids[1..]);
    let ends = terminated.iter().map(|id| handle.terminate_instance(id));
    let (unknown_end, ends) = join(handle.terminate_instance(&unknown), join_all(ends)).await;
    cx.require_refused(
        "terminate_instance of an unknown id",
        unknown_end,
        ErrorKind::NotFound,
    )?;
    for (id, result) in terminated.iter().zip(ends) {
        result.map_err(|error| concurrent_failure(id, "terminate", &error))?;
    }
    for id in terminated {
        cx.wait_until_terminated(id).await?;
    }
    cx.wait_for_state(kept, CloudInstanceState::Running).await?;
    Ok(Pass::Held)
}

/// Returns the violation of a call that must succeed, whatever the result of the concurrent ones.
fn concurrent_failure(id: &InstanceId, call: &str, error: &ProvisionError) -> Failure {
    Failure::violated(format!(
        "a {call} of {id}, concurrent with others, failed: {error}"
    ))
}

/// Makes a call on `id`. A launch and a list do not use it.
async fn make_call(cx: &Context, call: WireOp, id: &InstanceId) -> Result<()> {
    let handle = cx.provisioner();
    match call {
        WireOp::Launch => handle.launch_instance(&cx.config()).await.map(drop),
        WireOp::Describe => handle.describe_instance(id).await.map(drop),
        WireOp::List => handle.list_instances(&cx.filter()).await.map(drop),
        WireOp::Terminate => handle.terminate_instance(id).await,
        WireOp::Stop => handle.stop_instance(id).await,
        WireOp::Start => handle.start_instance(id).await.map(drop),
        WireOp::Any | WireOp::FindLaunch | WireOp::UpdateTags => Ok(()),
    }
}

/// Requires that a terminate succeeded. A stop or a start concurrent with it may be refused.
fn require_terminate_wins(
    id: &InstanceId,
    call: WireOp,
    result: Result<()>,
) -> Result<(), Failure> {
    let Err(error) = result else { return Ok(()) };
    let late = matches!(
        error.kind(),
        ErrorKind::WrongState | ErrorKind::Conflict | ErrorKind::NotFound
    );
    require(late && call != WireOp::Terminate, || {
        let call = in_words(&call);
        format!("a {call} of {id}, concurrent with a terminate, failed: {error}")
    })
}
