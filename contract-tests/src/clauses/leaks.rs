//! Leaks: everything that costs money is deleted with the instance it belongs to.
//!
//! Every clause of the contract ends with a check for leftovers, after everything that it launched
//! was terminated through another handle. The clauses here check earlier: after a terminate or a
//! failed launch through the clause's only handle, before any cleanup. All of them need the oracle,
//! because disks and addresses are not part of a list.

use fleetwright::{PlacementField, PublicAddress, UserData};

use crate::{Context, Failure, Outcome, Pass, WireFault, WireOp, require};

/// LEAKS-01: a backend must delete the disk, the network interface and the address with the
/// instance.
///
/// Disks and addresses are billed without an instance. Needs: oracle.
///
/// Launches with a disk and, if declared, a public address. The oracle must see leftovers while the
/// instance runs, so that it is not blind, and none after its termination.
pub(crate) async fn leaks_01_terminate_leaves_nothing(cx: &Context) -> Outcome {
    let oracle = cx.oracle()?;
    let mut config = cx.config();
    config.disk_size_gb = std::num::NonZeroU32::new(33);
    let offered = &cx.capabilities().placement;
    if offered.contains(&PlacementField::PublicAddress) {
        config.placement.public_address = Some(PublicAddress::Assigned);
    }
    let id = cx.launch_config(&config).await?.id;
    cx.wait_for_state(&id, fleetwright::CloudInstanceState::Running)
        .await?;
    if oracle.leftovers(cx.scope()).await.is_empty() {
        let text = format!("the oracle reports no leftovers of {id}, which runs");
        return Err(Failure::KitError(text));
    }
    cx.terminate(&id).await?;
    cx.wait_until_terminated(&id).await?;
    require_nothing_left(cx, &format!("{id} is terminated")).await?;
    Ok(Pass::Held)
}

/// LEAKS-02: a backend must leave nothing of a launch that was refused.
///
/// A failed creation that keeps its network interface is a common leak. Needs: oracle, fault:
/// capacity.
///
/// Lets a launch fail with too much user data and for lack of capacity, and requires no leftovers
/// after each. A cloud that never lacks capacity is held to the first half.
pub(crate) async fn leaks_02_refused_launch_leaves_nothing(cx: &Context) -> Outcome {
    cx.oracle()?;
    let mut config = cx.config();
    let too_much = vec![b'x'; cx.capabilities().max_user_data_bytes + 1];
    let too_much = UserData::new(too_much).map_err(|error| Failure::KitError(error.to_string()))?;
    config.user_data = Some(too_much);
    let result = cx.provisioner().launch_instance(&config).await;
    require_refused_launch("with too much user data", result)?;
    require_nothing_left(cx, "a launch was refused with too much user data").await?;
    cx.require_count(0).await?;
    let faults = match cx.faults(&[WireFault::Capacity]) {
        // Everything that applies to this cloud is proven.
        Err(Failure::NotApplicable(_)) => return Ok(Pass::Held),
        faults => faults?,
    };
    faults
        .inject_always(WireOp::Launch, WireFault::Capacity)
        .await;
    let config = cx.config_with_token();
    let result = cx.provisioner().launch_instance(&config).await;
    cx.clear_faults(&faults).await?;
    require_refused_launch("without capacity", result)?;
    require_nothing_left(cx, "a launch was refused without capacity").await?;
    cx.require_count(0).await?;
    Ok(Pass::Held)
}

/// Requires that a launch was refused.
fn require_refused_launch(
    how: &str,
    result: fleetwright::Result<fleetwright::InstanceInfo>,
) -> Result<(), Failure> {
    match result {
        Ok(info) => Err(Failure::violated(format!(
            "a launch {how} must be refused, but returned {} as {}",
            info.id, info.state
        ))),
        Err(error) => require(error.survivors().is_empty(), || {
            format!("a launch {how} must create nothing, but: {error}")
        }),
    }
}

/// LEAKS-03: a backend must leave nothing of a launch that failed after it was accepted.
///
/// The same holds as for refused launches, and nothing reports it. Needs: oracle, fault: fails
/// late.
///
/// Injects the late failure, waits until the instance is terminated if the launch returned one, and
/// requires no leftovers.
pub(crate) async fn leaks_03_late_failure_leaves_nothing(cx: &Context) -> Outcome {
    cx.oracle()?;
    let fault = WireFault::FailsLate("NoMachine".to_owned());
    let faults = cx.faults(std::slice::from_ref(&fault))?;
    faults.inject(WireOp::Launch, 1, fault).await;
    let result = cx.provisioner().launch_instance(&cx.config()).await;
    cx.clear_faults(&faults).await?;
    // A backend that waits for the end of the launch may refuse it at once.
    if let Ok(info) = result {
        cx.wait_until_terminated(&info.id).await?;
    }
    require_nothing_left(cx, "a launch failed after it was accepted").await?;
    cx.require_count(0).await?;
    Ok(Pass::Held)
}

/// LEAKS-04: a backend must delete everything of an instance that is terminated while it is
/// stopped.
///
/// Resources that were detached while it was stopped are easily forgotten. Needs: oracle.
///
/// Terminates two stopped instances in one batch and requires no leftovers.
pub(crate) async fn leaks_04_terminating_a_stopped_instance_leaves_nothing(
    cx: &Context,
) -> Outcome {
    cx.oracle()?;
    let ids = [cx.launch_stopped().await?.id, cx.launch_stopped().await?.id];
    let results = cx.provisioner().terminate_instances(&ids).await;
    require(results.len() == ids.len(), || {
        format!(
            "{} terminates returned {} results",
            ids.len(),
            results.len()
        )
    })?;
    for result in results {
        result.map_err(|error| Failure::call_failed("terminate_instances", &error))?;
    }
    for id in &ids {
        cx.wait_until_terminated(id).await?;
    }
    let [one, other] = ids;
    let what = format!("{one} and {other}, which were stopped, are terminated");
    require_nothing_left(cx, &what).await?;
    Ok(Pass::Held)
}

/// Requires that nothing of this scope is left within the budget: clouds may need some time to clean up.
async fn require_nothing_left(cx: &Context, what: &str) -> Result<(), Failure> {
    let oracle = cx.oracle()?;
    let left = cx.eventually("nothing is left", async || {
        let left = oracle.leftovers(cx.scope()).await;
        Ok(left.is_empty().then_some(()))
    });
    if left.await.is_ok() {
        return Ok(());
    }
    let left = oracle.leftovers(cx.scope()).await.join(", ");
    Err(Failure::violated(format!(
        "{what}, but the cloud still has: {left}"
    )))
}
