//! Concurrency: calls beside each other neither wait for nor spoil each other.

use std::{collections::BTreeSet, pin::pin};

use fleetwright::{ErrorKind, InstanceId, ProvisionError, Result};
use futures_util::future::{Either, join_all, select};
use tokio::time::timeout;

use crate::{Arm, Cx, Factory, Outcome, Stop, WireFault, WireOp, cx::names, history, require};

/// How many launches are under way at the same time.
const LAUNCHES: usize = 12;

pub(crate) async fn concurrency_01_calls_do_not_wait_for_each_other(cx: &Cx) -> Outcome {
    let faults = cx.faults(&[WireFault::Hang])?;
    let calls = [
        WireOp::Describe,
        WireOp::Launch,
        WireOp::List,
        WireOp::Stop,
        WireOp::Terminate,
    ];
    for call in calls {
        let [hung, other] = [cx.running().await?.id, cx.running().await?.id];
        faults.strike(call, 1, WireFault::Hang).await;
        // The others are calls of another kind, so that the fault cannot strike one of them.
        let served = timeout(cx.harness().budget() / 2, async {
            for one in calls.into_iter().filter(|one| *one != call) {
                make(cx, one, &other).await?;
            }
            Ok::<(), ProvisionError>(())
        });
        let answer = match select(pin!(make(cx, call, &hung)), pin!(served)).await {
            Either::Right((answer, _)) => answer,
            Either::Left((answer, served)) => {
                cx.note(format!("the {call:?} of {hung} ended: {answer:?}"));
                served.await
            }
        };
        cx.struck(&faults).await?;
        let Ok(answer) = answer else {
            let text = format!("calls on {other} are not served while a {call:?} of {hung} hangs");
            return Err(Stop::violated(text));
        };
        answer.map_err(|error| Stop::failed("a call beside one that hangs", &error))?;
    }
    Ok(Arm::Held)
}

pub(crate) async fn concurrency_02_launches_side_by_side(cx: &Cx) -> Outcome {
    let second = cx.other_handle().await;
    let launches = (0..LAUNCHES).map(|number| {
        let config = match number % 2 {
            0 => cx.config(),
            _ => cx.config_with_token(),
        };
        let handle = match number % 3 {
            0 => std::sync::Arc::clone(&second),
            _ => cx.shared(),
        };
        async move { handle.launch_instance(&config).await }
    });
    let mut ids = BTreeSet::new();
    for answer in join_all(launches).await {
        let info = answer.map_err(|error| Stop::failed("a launch beside others", &error))?;
        require(ids.insert(info.id.clone()), || {
            format!(
                "two of {LAUNCHES} launches under way at once answered {}",
                info.id
            )
        })?;
    }
    let list = cx.exactly(LAUNCHES).await?;
    let listed: BTreeSet<_> = list.iter().map(|info| info.id.clone()).collect();
    require(listed == ids, || {
        format!("{ids:?} were launched, and {} exist", names(&list))
    })?;
    Ok(Arm::Held)
}

pub(crate) async fn concurrency_03_terminate_races(cx: &Cx) -> Outcome {
    let race = [WireOp::Stop, WireOp::Terminate, WireOp::Start, WireOp::Stop];
    for stopped in [false, true] {
        for first in 0..race.len() {
            let from = if stopped {
                cx.stopped().await
            } else {
                cx.running().await
            };
            let id = from?.id;
            let order = (0..race.len()).map(|place| race[(first + place) % race.len()]);
            let calls = order.map(|call| {
                let id = &id;
                async move { (call, make(cx, call, id).await) }
            });
            for (call, answer) in join_all(calls).await {
                may_lose(&id, call, answer)?;
            }
            cx.gone(&id).await?;
            cx.settle_reads().await;
            cx.consistently(cx.capabilities().consistency_window, async || {
                match cx.provisioner().describe_instance(&id).await {
                    Ok(status) if !status.state.is_ending() => Err(Stop::violated(format!(
                        "{id} was terminated beside stops and starts and is {} again",
                        status.state
                    ))),
                    _ => Ok(()),
                }
            })
            .await?;
        }
    }
    cx.exactly(0).await?;
    Ok(Arm::Held)
}

pub(crate) fn concurrency_04_histories_are_linearizable(factory: &Factory) -> Outcome {
    history::run(factory)
}

/// Makes a call on `id`; a launch and a list need none.
async fn make(cx: &Cx, call: WireOp, id: &InstanceId) -> Result<()> {
    let handle = cx.provisioner();
    match call {
        WireOp::Launch => handle.launch_instance(&cx.config()).await.map(drop),
        WireOp::Describe => handle.describe_instance(id).await.map(drop),
        WireOp::List => handle.list_instances(&cx.filter()).await.map(drop),
        WireOp::Terminate => handle.terminate_instance(id).await,
        WireOp::Stop => handle.stop_instance(id).await,
        WireOp::Start => match handle.start_instance(id).await {
            // It is still stopping: served, and told when to come back.
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
            answer => answer.map(drop),
        },
        WireOp::Any | WireOp::FindLaunch | WireOp::UpdateTags => Ok(()),
    }
}

/// A terminate succeeds; a stop or a start beside it may come too late or into the middle.
fn may_lose(id: &InstanceId, call: WireOp, answer: Result<()>) -> Result<(), Stop> {
    let Err(error) = answer else { return Ok(()) };
    let late = matches!(
        error.kind(),
        ErrorKind::WrongState | ErrorKind::Conflict | ErrorKind::NotFound
    );
    require(late && call != WireOp::Terminate, || {
        format!("a {call:?} of {id} beside a terminate failed: {error}")
    })
}
