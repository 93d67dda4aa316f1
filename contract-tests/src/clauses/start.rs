//! Start: the same instance runs again, with the addresses that it has now.
//!
//! The clauses start instances in every state, and compare the result of the start with what reads
//! return before the stop and after the start. A public address may change; everything else must
//! not.

use std::{cell::RefCell, net::IpAddr};

use fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceId, InstanceInfo, InstanceStatus, RetryAdvice,
};
use tokio::time::Instant;

pub(crate) use super::bystanders::start_08_affects_only_its_targets;
use super::stop::read_truth;
use crate::{
    Context, Failure, Outcome, Pass, WireFault, WireOp, require, shown::gigabytes,
    steady::differences,
};

/// START-01: a backend must start a stopped instance under the same id, and bring it to running.
///
/// Everything refers to the id.
///
/// Starts a stopped instance, checks id and state in the result, waits until it runs, and requires
/// that one instance exists.
pub(crate) async fn start_01_same_id_after_stop_and_start(cx: &Context) -> Outcome {
    let id = cx.launch_stopped().await?.id;
    let result = cx.start(&id).await?;
    require(result.id == id, || {
        format!("a start of {id} returned {}", result.id)
    })?;
    let starting = matches!(
        result.state,
        CloudInstanceState::Pending | CloudInstanceState::Running
    );
    require(starting, || {
        format!("a start of {id} returned it as {}", result.state)
    })?;
    wait_until_running_again(cx, &id).await?;
    cx.require_count(1).await?;
    Ok(Pass::Held)
}

/// START-02: a backend must accept a start of a pending or running instance and change nothing.
///
/// Retries repeat starts.
///
/// Starts an instance immediately after its launch and again when it runs, and compares every field
/// before and after.
pub(crate) async fn start_02_starting_again_changes_nothing(cx: &Context) -> Outcome {
    let id = cx.launch().await?.id;
    start_again(cx, &id, "launched just now").await?;
    cx.wait_for_state(&id, CloudInstanceState::Running).await?;
    let before = cx.consistent_info(&id).await?;
    start_again(cx, &id, "running").await?;
    cx.require_unchanged("a second start", &before).await?;
    cx.require_count(1).await?;
    Ok(Pass::Held)
}

/// Starts an instance that is pending or running already.
async fn start_again(cx: &Context, id: &InstanceId, state: &str) -> Result<InstanceInfo, Failure> {
    let result = cx.provisioner().start_instance(id).await;
    result.map_err(|error| {
        Failure::violated(format!(
            "a start of {id}, which is {state}, must succeed, but: {error}"
        ))
    })
}

/// START-03: a backend must return from a start the addresses that the instance has from now on,
/// and never report its former ones.
///
/// Stale addresses lead to instances of somebody else.
///
/// Collects the addresses in the result of the start and in every description until the instance
/// runs. Each must be absent or the final one, and the oracle confirms the public one.
pub(crate) async fn start_03_addresses_are_current(cx: &Context) -> Outcome {
    let id = cx.launch().await?.id;
    let before = cx.wait_for_state(&id, CloudInstanceState::Running).await?;
    cx.stop(&id).await?;
    cx.wait_for_state(&id, CloudInstanceState::Stopped).await?;
    let result = InstanceStatus::from(cx.start(&id).await?);
    cx.wait_for_consistent_reads().await;
    let reads = RefCell::new(vec![("the start", result)]);
    cx.eventually(&format!("{id} is running again"), async || {
        let status = cx.describe(&id).await?;
        let state = status.state;
        reads.borrow_mut().push(("a description", status));
        Ok((state == CloudInstanceState::Running).then_some(()))
    })
    .await?;
    let now = cx.consistent_info(&id).await?;
    let (public, private) = (now.public_ip, now.private_ip);
    for (had, has, which) in [
        (before.public_ip, public, "public"),
        (before.private_ip, private, "private"),
    ] {
        require(had.is_some() == has.is_some(), || {
            let (had, has) = (crate::shown(&had), crate::shown(&has));
            format!("{id} had the {which} address {had} and has {has} since its start")
        })?;
    }
    for (call, shown) in reads.take() {
        for (shown, has) in [(shown.public_ip, public), (shown.private_ip, private)] {
            require(shown.is_none() || shown == has, || {
                let (shown, has) = (crate::shown(&shown), crate::shown(&has));
                format!("{call} of {id} returns {shown}, but it has {has} since its start")
            })?;
        }
    }
    if let Some(oracle) = cx.harness().oracle() {
        let all = oracle.instances(cx.scope()).await;
        let truth = all.into_iter().find(|truth| truth.info.id == id);
        let true_address: Option<IpAddr> = truth.and_then(|truth| truth.info.public_ip);
        require(public == true_address, || {
            let (public, address) = (crate::shown(&public), crate::shown(&true_address));
            format!("{id} is reported with the public address {public}, but has {address}")
        })?;
    }
    Ok(Pass::Held)
}

/// START-04: a backend must refuse to start a terminating or terminated instance as wrong state, or
/// as not found if no record is kept, and leave it terminated.
///
/// A success would promise an instance that never runs.
///
/// Starts an instance while it is terminating and when it is terminated, and requires that it stays
/// terminated.
pub(crate) async fn start_04_terminated_instance_cannot_be_started(cx: &Context) -> Outcome {
    let id = cx.launch_running().await?.id;
    let since = Instant::now();
    cx.terminate(&id).await?;
    let mut pass = Pass::Held;
    for state in ["terminating", "terminated"] {
        let result = cx.provisioner().start_instance(&id).await;
        let call = format!("a start of {id}, which is {state},");
        pass = pass.weaker(cx.require_refused_after_terminate(&call, result, since)?);
        cx.wait_until_terminated(&id).await?;
    }
    pass = pass.weaker(cx.require_ending(&id, since).await?);
    cx.require_count(0).await?;
    Ok(pass)
}

/// START-05: a backend must return not found for a start of an id that no instance has.
///
/// A success would hide a wrong id.
///
/// Starts the harness's unknown id once.
pub(crate) async fn start_05_unknown_id_is_not_found(cx: &Context) -> Outcome {
    let id = cx.harness().unknown_id();
    let result = cx.provisioner().start_instance(&id).await;
    let call = format!("a start of {id}, which never existed,");
    cx.require_refused(&call, result, ErrorKind::NotFound)?;
    Ok(Pass::Held)
}

/// START-06: a backend must return from a start the instance's unchanged tags, image and type, and
/// a launch time.
///
/// Managers overwrite what they know with the result.
///
/// Compares the result of a start with a list entry from before the stop, except state, addresses
/// and placement. The launch time may be the time of the start.
pub(crate) async fn start_06_result_is_complete(cx: &Context) -> Outcome {
    let mut config = cx.config();
    let named = config.tags.insert("kept", "through-a-start");
    named.map_err(|error| Failure::KitError(error.to_string()))?;
    let id = cx.launch_config(&config).await?.id;
    cx.wait_for_state(&id, CloudInstanceState::Running).await?;
    let before = cx.consistent_info(&id).await?;
    cx.stop(&id).await?;
    cx.wait_for_state(&id, CloudInstanceState::Stopped).await?;
    let result = cx.start(&id).await?;
    let mut expected = before;
    // START-01 and START-03 check id and addresses, and a placement may contain them.
    expected.id = result.id.clone();
    expected.state = result.state;
    expected.private_ip = result.private_ip;
    expected.public_ip = result.public_ip;
    expected.mac_address = result.mac_address;
    expected.placement = result.placement.clone();
    // Some clouds report the last start as the launch time, but none may stop reporting one.
    if result.launch_time.is_some() {
        expected.launch_time = result.launch_time;
    }
    let changed = differences(&expected, &result);
    require(changed.is_empty(), || {
        format!(
            "a start of {id} returned something else: {}",
            changed.join("; ")
        )
    })?;
    Ok(Pass::Held)
}

/// START-07: a backend must refuse to start a stopping instance as a conflict with a delay to retry
/// after, or start it once it has stopped.
///
/// A start that is silently lost leaves the instance stopped.
///
/// Starts an instance immediately after its stop. If that is refused, waits until it is stopped and
/// starts it again; in both cases it must run in the end.
pub(crate) async fn start_07_stopping_instance_is_refused_or_started(cx: &Context) -> Outcome {
    let id = cx.launch_running().await?.id;
    cx.stop(&id).await?;
    if let Err(error) = cx.provisioner().start_instance(&id).await {
        let in_time = matches!(error.retry(), RetryAdvice::After(_));
        require(error.kind() == ErrorKind::Conflict && in_time, || {
            format!(
                "a start of {id}, which is stopping, must succeed or be a conflict with a time to \
                 retry, but: {error}"
            )
        })?;
        cx.wait_for_state(&id, CloudInstanceState::Stopped).await?;
        cx.start(&id).await?;
    }
    wait_until_running_again(cx, &id).await?;
    Ok(Pass::Held)
}

/// START-09: a backend must refuse a start for which there is no capacity as capacity, without effect, or
/// let the instance become stopped again, keep its id, tags, type and disk, and start it once there is
/// capacity.
///
/// A stopped instance has no machine, and the cloud may not have another one. Its disk must survive that. Needs:
/// external actor or fault: capacity.
///
/// Starts a stopped instance while there is no capacity, twice, compares every field, and starts it again
/// when there is capacity.
pub(crate) async fn start_09_missing_capacity_costs_nothing(cx: &Context) -> Outcome {
    let mut config = cx.config_with_tags(&[("kit-kept", "without-capacity")])?;
    config.disk_size_gb = std::num::NonZeroU32::new(33);
    let id = cx.launch_config(&config).await?.id;
    cx.wait_for_state(&id, CloudInstanceState::Running).await?;
    cx.stop(&id).await?;
    cx.wait_for_state(&id, CloudInstanceState::Stopped).await?;
    let before = cx.consistent_info(&id).await?;
    let external_actor = cx.harness().external_actor();
    let limited = match &external_actor {
        Some(external_actor) => external_actor.limit_capacity(0).await,
        None => false,
    };
    let faults = match limited {
        true => None,
        false => Some(cx.faults(&[WireFault::Capacity])?),
    };
    if let Some(faults) = &faults {
        faults
            .inject_always(WireOp::Start, WireFault::Capacity)
            .await;
    }
    for _ in 0..2 {
        if let Err(error) = cx.provisioner().start_instance(&id).await {
            let expected = error.kind() == ErrorKind::Capacity && error.effect() == Effect::None;
            require(expected, || {
                format!(
                    "a start of {id} without capacity must fail as capacity, without effect, but: {error}"
                )
            })?;
        }
        cx.wait_for_consistent_reads().await;
        cx.wait_for_state(&id, CloudInstanceState::Stopped).await?;
        cx.require_unchanged("a start without capacity", &before)
            .await?;
        if let Some(oracle) = cx.harness().oracle() {
            let truth = read_truth(cx, &*oracle, &id).await?;
            require(truth.disk_size_gb == Some(33), || {
                let size = gigabytes(truth.disk_size_gb);
                format!("{id} had a disk of 33 GB, and has {size} since a start without capacity")
            })?;
        }
    }
    if let Some(faults) = &faults {
        cx.clear_faults(faults).await?;
    }
    if let Some(external_actor) = &external_actor {
        external_actor.reconnect().await;
    }
    cx.start(&id).await?;
    wait_until_running_again(cx, &id).await?;
    cx.require_count(1).await?;
    Ok(Pass::Held)
}

/// Waits until a started instance runs, and not only seems to because reads lag.
async fn wait_until_running_again(cx: &Context, id: &InstanceId) -> Result<(), Failure> {
    cx.wait_for_consistent_reads().await;
    cx.wait_for_state(id, CloudInstanceState::Running).await?;
    Ok(())
}
