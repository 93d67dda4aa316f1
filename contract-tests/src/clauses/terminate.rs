//! Terminating: the named instance, for good, whatever else is going on.

use std::num::NonZeroU32;

use fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceId, InstanceProvisioner, LaunchToken, Result,
};
use futures_util::future::join;
use tokio::time::Instant;

use crate::{Context, Failure, Outcome, Pass, WireFault, WireOp, require};

pub(crate) async fn terminate_01_can_be_described_afterwards(cx: &Context) -> Outcome {
    let id = cx.launch_running().await?.id;
    let since = Instant::now();
    cx.terminate(&id).await?;
    let (accepted, window) = (Instant::now(), cx.capabilities().consistency_window);
    cx.eventually(&format!("{id} is terminated"), async || {
        let may_lag = accepted.elapsed() <= window;
        let answer = cx.provisioner().describe_instance(&id).await;
        if cx.is_forgotten(answer.as_ref().err(), since) {
            return Ok(Some(Pass::Weaker));
        }
        let status = answer.map_err(|error| {
            Failure::violated(format!(
                "{id} must be described as terminating or terminated, but: {error}"
            ))
        })?;
        let state = status.state;
        require(state.is_ending() || may_lag, || {
            format!("{id} is {state} after its terminate was accepted")
        })?;
        Ok((state == CloudInstanceState::Terminated).then_some(Pass::Held))
    })
    .await
}

pub(crate) async fn terminate_02_can_be_repeated(cx: &Context) -> Outcome {
    let id = cx.launch_running().await?.id;
    let since = Instant::now();
    cx.terminate(&id).await?;
    let other = cx.open_handle().await;
    let mut arm = Pass::Held;
    for state in ["terminating", "terminated"] {
        for handle in [cx.provisioner(), &*other] {
            let answer = handle.terminate_instance(&id).await;
            if cx.is_forgotten(answer.as_ref().err(), since) {
                arm = Pass::Weaker;
                continue;
            }
            answer.map_err(|error| {
                Failure::violated(format!(
                    "a terminate of {id}, which is {state}, must succeed, but: {error}"
                ))
            })?;
        }
        cx.wait_until_terminated(&id).await?;
    }
    Ok(arm.weaker(cx.require_ending(&id, since).await?))
}

pub(crate) async fn terminate_03_unknown_id_is_not_found(cx: &Context) -> Outcome {
    let id = cx.harness().unknown_id();
    let answer = cx.provisioner().terminate_instance(&id).await;
    let call = format!("a terminate of {id}, which never existed,");
    cx.require_refused(&call, answer, ErrorKind::NotFound)?;
    Ok(Pass::Held)
}

pub(crate) async fn terminate_04_affects_only_its_target(cx: &Context) -> Outcome {
    let (mut short, mut long) = (cx.config(), cx.config());
    let token = cx.new_token();
    let longer = LaunchToken::new(format!("{token}-1"));
    long.launch_token = Some(longer.map_err(|error| Failure::KitError(error.to_string()))?);
    short.launch_token = Some(token);
    let (short, long) = (
        cx.launch_config(&short).await?,
        cx.launch_config(&long).await?,
    );
    let two = NonZeroU32::MIN.saturating_add(1);
    let batch = cx.config_with_token();
    let pair = cx.provisioner().launch_instances(&batch, two).await;
    let pair = pair.map_err(|error| Failure::call_failed("launch_instances", &error))?;
    let [one, other] = pair.as_slice() else {
        return Err(Failure::violated(format!(
            "2 were asked for, {} came",
            pair.len()
        )));
    };
    let (targets, bystanders) = ([&short.id, &one.id], [&long.id, &other.id]);
    for id in bystanders {
        cx.wait_for_state(id, CloudInstanceState::Running).await?;
    }
    for id in targets {
        cx.terminate(id).await?;
        cx.wait_until_terminated(id).await?;
    }
    cx.settle_reads().await;
    for id in bystanders {
        let state = cx.describe(id).await?.state;
        require(state == CloudInstanceState::Running, || {
            let [short, one] = targets;
            format!("{id} is {state} since {short} and {one} were terminated")
        })?;
    }
    cx.require_count(bystanders.len()).await?;
    Ok(Pass::Held)
}

pub(crate) async fn terminate_05_works_from_every_state(cx: &Context) -> Outcome {
    let pending = cx.launch().await?.id;
    end(cx, &pending, "pending").await?;
    let running = cx.launch_running().await?.id;
    end(cx, &running, "running").await?;
    let stopping = cx.launch_running().await?.id;
    cx.stop(&stopping).await?;
    end(cx, &stopping, "stopping").await?;
    let stopped = cx.launch_stopped().await?.id;
    end(cx, &stopped, "stopped").await?;
    cx.require_count(0).await?;
    Ok(Pass::Held)
}

/// Terminates an instance to the end.
async fn end(cx: &Context, id: &InstanceId, state: &str) -> Result<(), Failure> {
    let answer = cx.provisioner().terminate_instance(id).await;
    answer.map_err(|error| {
        Failure::violated(format!(
            "a terminate of {id}, which is {state}, must succeed, but: {error}"
        ))
    })?;
    cx.wait_until_terminated(id).await
}

/// What a terminate meets.
#[derive(Clone, Copy, Debug)]
enum Rival {
    Stop,
    Start,
}

impl Rival {
    async fn call(self, handle: &dyn InstanceProvisioner, id: &InstanceId) -> Result<()> {
        match self {
            Self::Stop => handle.stop_instance(id).await,
            Self::Start => handle.start_instance(id).await.map(drop),
        }
    }
}

pub(crate) async fn terminate_06_wins_over_stop_and_start(cx: &Context) -> Outcome {
    let mut arm = Pass::Held;
    for rival in [Rival::Stop, Rival::Start] {
        // One after the other, while the rival's transition is under way.
        let id = rivals_prey(cx, rival).await?;
        let answer = rival.call(cx.provisioner(), &id).await;
        answer.map_err(|error| Failure::call_failed(&format!("the {rival:?} of {id}"), &error))?;
        let since = Instant::now();
        let terminated = cx.provisioner().terminate_instance(&id).await;
        arm = arm.weaker(won(cx, &id, rival, terminated, since).await?);
        // At the same time, and in both orders: which one comes first is nobody's to say.
        for terminate_first in [true, false] {
            let id = rivals_prey(cx, rival).await?;
            let since = Instant::now();
            let rivalry = rival.call(cx.provisioner(), &id);
            let terminate = cx.provisioner().terminate_instance(&id);
            let (terminated, answer) = if terminate_first {
                join(terminate, rivalry).await
            } else {
                let (answer, terminated) = join(rivalry, terminate).await;
                (terminated, answer)
            };
            lost(cx, &id, rival, answer, since)?;
            arm = arm.weaker(won(cx, &id, rival, terminated, since).await?);
        }
    }
    Ok(arm)
}

/// An instance that the rival can do something to.
async fn rivals_prey(cx: &Context, rival: Rival) -> Result<InstanceId, Failure> {
    let info = match rival {
        Rival::Stop => cx.launch_running().await?,
        Rival::Start => cx.launch_stopped().await?,
    };
    Ok(info.id)
}

/// Demands that a terminate was accepted, and that the instance ends and stays ended.
async fn won(
    cx: &Context,
    id: &InstanceId,
    rival: Rival,
    answer: Result<()>,
    since: Instant,
) -> Result<Pass, Failure> {
    answer.map_err(|error| {
        Failure::violated(format!(
            "a terminate of {id} must win against a {rival:?} under way, but: {error}"
        ))
    })?;
    cx.wait_until_terminated(id).await?;
    cx.require_ending(id, since).await
}

/// Demands that the call beside a terminate succeeded, or says what came between.
fn lost(
    cx: &Context,
    id: &InstanceId,
    rival: Rival,
    answer: Result<()>,
    since: Instant,
) -> Result<(), Failure> {
    let Err(error) = answer else { return Ok(()) };
    let told = matches!(error.kind(), ErrorKind::WrongState | ErrorKind::Conflict);
    require(told || cx.is_forgotten(Some(&error), since), || {
        format!(
            "a {rival:?} of {id} beside a terminate must succeed or be in its way, but: {error}"
        )
    })
}

pub(crate) async fn terminate_07_failures_are_reported(cx: &Context) -> Outcome {
    let faults = cx.faults(&[WireFault::ServerErrorBefore])?;
    let also = Some(WireFault::Forbidden).filter(|fault| faults.supports(fault));
    for fault in [WireFault::ServerErrorBefore].into_iter().chain(also) {
        let id = cx.launch_running().await?.id;
        faults.inject_always(WireOp::Terminate, fault.clone()).await;
        let answer = cx.provisioner().terminate_instance(&id).await;
        cx.clear_faults(&faults).await?;
        match answer {
            Ok(()) => {
                let text = format!("a terminate of {id} met {fault:?} and claimed success");
                return Err(Failure::violated(text));
            }
            Err(error) => {
                let honest = error.kind() != ErrorKind::NotFound && error.effect() != Effect::Done;
                require(honest, || {
                    format!("a terminate of {id} met {fault:?}, had no effect, and says: {error}")
                })?;
            }
        }
        let state = cx.settled_info(&id).await?.state;
        require(state == CloudInstanceState::Running, || {
            format!("no terminate of {id} arrived, and it is {state}")
        })?;
        end(cx, &id, "running").await?;
    }
    Ok(Pass::Held)
}
