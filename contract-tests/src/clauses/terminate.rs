//! Terminate: the named instance and no other, permanently, whatever else is in progress.
//!
//! The cloud may delete its record of a terminated instance after the declared time. From then on
//! the clauses accept not found in place of terminated, and pass in the weaker form.

use std::num::NonZeroU32;

use fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceId, InstanceProvisioner, LaunchToken, Result,
};
use futures_util::future::join;
use tokio::time::Instant;

pub(crate) use super::bystanders::terminate_08_affects_only_its_targets;
use crate::{Context, Failure, Outcome, Pass, WireFault, WireOp, require, shown::in_words};

/// TERMINATE-01: a backend must describe a terminated instance as terminating, then terminated,
/// without an error for as long as declared.
///
/// A manager observes the termination that it requested.
///
/// Polls after the terminate until the instance is terminated. Other states are legal within the
/// consistency window, and not found only after the declared time.
pub(crate) async fn terminate_01_can_be_described_afterwards(cx: &Context) -> Outcome {
    let id = cx.launch_running().await?.id;
    let since = Instant::now();
    cx.terminate(&id).await?;
    let (accepted, window) = (Instant::now(), cx.capabilities().consistency_window);
    cx.eventually(&format!("{id} is terminated"), async || {
        let may_lag = accepted.elapsed() <= window;
        let result = cx.provisioner().describe_instance(&id).await;
        if cx.is_forgotten(result.as_ref().err(), since) {
            return Ok(Some(Pass::Weaker));
        }
        let status = result.map_err(|error| {
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

/// TERMINATE-02: a backend must accept a second terminate of the same instance, while it is
/// terminating and while its record is kept.
///
/// Retries repeat terminates.
///
/// Terminates an instance through two handles while it is terminating and when it is terminated.
pub(crate) async fn terminate_02_can_be_repeated(cx: &Context) -> Outcome {
    let id = cx.launch_running().await?.id;
    let since = Instant::now();
    cx.terminate(&id).await?;
    let other = cx.open_handle().await;
    let mut pass = Pass::Held;
    for state in ["terminating", "terminated"] {
        for handle in [cx.provisioner(), &*other] {
            let result = handle.terminate_instance(&id).await;
            if cx.is_forgotten(result.as_ref().err(), since) {
                pass = Pass::Weaker;
                continue;
            }
            result.map_err(|error| {
                Failure::violated(format!(
                    "a terminate of {id}, which is {state}, must succeed, but: {error}"
                ))
            })?;
        }
        cx.wait_until_terminated(&id).await?;
    }
    Ok(pass.weaker(cx.require_ending(&id, since).await?))
}

/// TERMINATE-03: a backend must return not found for a terminate of an id that no instance ever
/// had.
///
/// A success would hide a wrong id, and with it an instance that keeps running.
///
/// Terminates the harness's unknown id once.
pub(crate) async fn terminate_03_unknown_id_is_not_found(cx: &Context) -> Outcome {
    let id = cx.harness().unknown_id();
    let result = cx.provisioner().terminate_instance(&id).await;
    let call = format!("a terminate of {id}, which never existed,");
    cx.require_refused(&call, result, ErrorKind::NotFound)?;
    Ok(Pass::Held)
}

/// TERMINATE-04: a backend must terminate the named instance and no other, not even one of the same
/// batch or of a longer token.
///
/// Terminating another instance destroys data that nobody wanted to lose.
///
/// Terminates one instance of a batch of two, and one of two instances whose tokens are a prefix of
/// each other. The other two must run afterwards.
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
            "2 were requested, {} were returned",
            pair.len()
        )));
    };
    let (targets, others) = ([&short.id, &one.id], [&long.id, &other.id]);
    for id in others {
        cx.wait_for_state(id, CloudInstanceState::Running).await?;
    }
    for id in targets {
        cx.terminate(id).await?;
        cx.wait_until_terminated(id).await?;
    }
    cx.wait_for_consistent_reads().await;
    for id in others {
        let state = cx.describe(id).await?.state;
        require(state == CloudInstanceState::Running, || {
            let [short, one] = targets;
            format!("{id} is {state} since {short} and {one} were terminated")
        })?;
    }
    cx.require_count(others.len()).await?;
    Ok(Pass::Held)
}

/// TERMINATE-05: a backend must terminate a pending, running, stopping or stopped instance.
///
/// An instance must be removable in every state.
///
/// Terminates an instance in each of the four states and waits until it is terminated.
pub(crate) async fn terminate_05_works_from_every_state(cx: &Context) -> Outcome {
    let pending = cx.launch().await?.id;
    terminate_and_wait(cx, &pending, "pending").await?;
    let running = cx.launch_running().await?.id;
    terminate_and_wait(cx, &running, "running").await?;
    let stopping = cx.launch_running().await?.id;
    cx.stop(&stopping).await?;
    terminate_and_wait(cx, &stopping, "stopping").await?;
    let stopped = cx.launch_stopped().await?.id;
    terminate_and_wait(cx, &stopped, "stopped").await?;
    cx.require_count(0).await?;
    Ok(Pass::Held)
}

/// Terminates an instance and waits until it is terminated.
async fn terminate_and_wait(cx: &Context, id: &InstanceId, state: &str) -> Result<(), Failure> {
    let result = cx.provisioner().terminate_instance(id).await;
    result.map_err(|error| {
        Failure::violated(format!(
            "a terminate of {id}, which is {state}, must succeed, but: {error}"
        ))
    })?;
    cx.wait_until_terminated(id).await
}

/// The call that runs concurrently with a terminate.
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

/// TERMINATE-06: a backend must accept a terminate that is concurrent with a stop or a start, and
/// end with a terminated instance.
///
/// A terminated instance must not come back.
///
/// Terminates an instance while a stop or a start is in progress, and concurrently with one, in
/// both orders. The terminate must succeed; the other call may fail as wrong state or conflict.
pub(crate) async fn terminate_06_wins_over_stop_and_start(cx: &Context) -> Outcome {
    let mut pass = Pass::Held;
    for rival in [Rival::Stop, Rival::Start] {
        // While the transition of the other call is in progress.
        let id = launch_for(cx, rival).await?;
        let result = rival.call(cx.provisioner(), &id).await;
        result.map_err(|error| {
            Failure::call_failed(&format!("the {} of {id}", in_words(&rival)), &error)
        })?;
        let since = Instant::now();
        let terminated = cx.provisioner().terminate_instance(&id).await;
        pass = pass.weaker(require_terminate_won(cx, &id, rival, terminated, since).await?);
        // At the same time, and in both orders: the order of arrival is not defined.
        for terminate_first in [true, false] {
            let id = launch_for(cx, rival).await?;
            let since = Instant::now();
            let rival_call = rival.call(cx.provisioner(), &id);
            let terminate = cx.provisioner().terminate_instance(&id);
            let (terminated, result) = if terminate_first {
                join(terminate, rival_call).await
            } else {
                let (result, terminated) = join(rival_call, terminate).await;
                (terminated, result)
            };
            require_lost_to_terminate(cx, &id, rival, result, since)?;
            pass = pass.weaker(require_terminate_won(cx, &id, rival, terminated, since).await?);
        }
    }
    Ok(pass)
}

/// Launches an instance in the state that the rival needs.
async fn launch_for(cx: &Context, rival: Rival) -> Result<InstanceId, Failure> {
    let info = match rival {
        Rival::Stop => cx.launch_running().await?,
        Rival::Start => cx.launch_stopped().await?,
    };
    Ok(info.id)
}

/// Requires that a terminate was accepted, and that the instance ends and stays ended.
async fn require_terminate_won(
    cx: &Context,
    id: &InstanceId,
    rival: Rival,
    result: Result<()>,
    since: Instant,
) -> Result<Pass, Failure> {
    result.map_err(|error| {
        let rival = in_words(&rival);
        Failure::violated(format!(
            "a terminate of {id} must succeed although a {rival} is in progress, but: {error}"
        ))
    })?;
    cx.wait_until_terminated(id).await?;
    cx.require_ending(id, since).await
}

/// Requires that the call concurrent with a terminate succeeded, or failed because of the terminate.
fn require_lost_to_terminate(
    cx: &Context,
    id: &InstanceId,
    rival: Rival,
    result: Result<()>,
    since: Instant,
) -> Result<(), Failure> {
    let Err(error) = result else { return Ok(()) };
    let reported = matches!(error.kind(), ErrorKind::WrongState | ErrorKind::Conflict);
    require(reported || cx.is_forgotten(Some(&error), since), || {
        let rival = in_words(&rival);
        format!(
            "a {rival} of {id}, concurrent with a terminate, must succeed or be refused because of it, but: {error}"
        )
    })
}

/// TERMINATE-07: a backend must report that a terminate failed, and not claim success for an
/// instance that continues to run.
///
/// A failure that is not reported is a leak. Needs: fault: server error.
///
/// Injects a server error, and a refusal for lack of permission if the harness can, into every
/// terminate. The call must fail, the instance must run, and a terminate without the fault must
/// succeed.
pub(crate) async fn terminate_07_failures_are_reported(cx: &Context) -> Outcome {
    let faults = cx.faults(&[WireFault::ServerErrorBefore])?;
    let also = Some(WireFault::Forbidden).filter(|fault| faults.supports(fault));
    for fault in [WireFault::ServerErrorBefore].into_iter().chain(also) {
        let id = cx.launch_running().await?.id;
        faults.inject_always(WireOp::Terminate, fault.clone()).await;
        let result = cx.provisioner().terminate_instance(&id).await;
        cx.clear_faults(&faults).await?;
        match result {
            Ok(()) => {
                let fault = in_words(&fault);
                let text = format!("a terminate of {id} with {fault} returned success");
                return Err(Failure::violated(text));
            }
            Err(error) => {
                let fits = error.kind() != ErrorKind::NotFound && error.effect() != Effect::Done;
                require(fits, || {
                    format!(
                        "a terminate of {id} with {} had no effect, but the error is: {error}",
                        in_words(&fault)
                    )
                })?;
            }
        }
        let state = cx.consistent_info(&id).await?.state;
        require(state == CloudInstanceState::Running, || {
            format!("no terminate of {id} was carried out, but it is {state}")
        })?;
        terminate_and_wait(cx, &id, "running").await?;
    }
    Ok(Pass::Held)
}
