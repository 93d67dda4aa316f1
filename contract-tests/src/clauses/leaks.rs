//! Leaks: what costs money goes with the instance it belongs to.
//!
//! Every clause ends with a look for leftovers, after what it launched was terminated through
//! another handle. These look earlier: through the one handle that there is, with nobody tidying up.

use fleetwright::{PlacementField, PublicAddress, UserData};

use crate::{Arm, Cx, Outcome, Stop, WireFault, WireOp, require};

pub(crate) async fn leaks_01_terminate_leaves_nothing(cx: &Cx) -> Outcome {
    let oracle = cx.oracle()?;
    let mut config = cx.config();
    config.disk_size_gb = std::num::NonZeroU32::new(33);
    let offered = &cx.capabilities().placement;
    if offered.contains(&PlacementField::PublicAddress) {
        config.placement.public_address = Some(PublicAddress::Assigned);
    }
    let id = cx.launch_as(&config).await?.id;
    cx.reach(&id, fleetwright::CloudInstanceState::Running)
        .await?;
    if oracle.leftovers(cx.scope()).await.is_empty() {
        let text = format!("the oracle sees nothing of {id}, which runs");
        return Err(Stop::Kit(text));
    }
    cx.terminate(&id).await?;
    cx.gone(&id).await?;
    nothing_left(cx, &format!("{id} is terminated")).await?;
    Ok(Arm::Held)
}

pub(crate) async fn leaks_02_a_refused_launch_leaves_nothing(cx: &Cx) -> Outcome {
    cx.oracle()?;
    let faults = cx.faults(&[WireFault::Capacity])?;
    faults
        .strike_always(WireOp::Launch, WireFault::Capacity)
        .await;
    let config = cx.config_with_token();
    let answer = cx.provisioner().launch_instance(&config).await;
    cx.struck(&faults).await?;
    was_refused("without capacity", answer)?;
    nothing_left(cx, "a launch was refused without capacity").await?;
    let mut config = cx.config();
    let too_much = vec![b'x'; cx.capabilities().max_user_data_bytes + 1];
    let too_much = UserData::new(too_much).map_err(|error| Stop::Kit(error.to_string()))?;
    config.user_data = Some(too_much);
    let answer = cx.provisioner().launch_instance(&config).await;
    was_refused("with too much user data", answer)?;
    nothing_left(cx, "a launch was refused with too much user data").await?;
    cx.exactly(0).await?;
    Ok(Arm::Held)
}

/// Demands that a launch was refused.
fn was_refused(
    how: &str,
    answer: fleetwright::Result<fleetwright::InstanceInfo>,
) -> Result<(), Stop> {
    match answer {
        Ok(info) => Err(Stop::violated(format!(
            "a launch {how} must be refused, but answered {} as {}",
            info.id, info.state
        ))),
        Err(error) => require(error.survivors().is_empty(), || {
            format!("a launch {how} must create nothing, but: {error}")
        }),
    }
}

pub(crate) async fn leaks_03_a_launch_that_fails_late_leaves_nothing(cx: &Cx) -> Outcome {
    cx.oracle()?;
    let fault = WireFault::FailsLate("NoMachine".to_owned());
    let faults = cx.faults(std::slice::from_ref(&fault))?;
    faults.strike(WireOp::Launch, 1, fault).await;
    let answer = cx.provisioner().launch_instance(&cx.config()).await;
    cx.struck(&faults).await?;
    // A backend that waits for the end of the launch may refuse it at once.
    if let Ok(info) = answer {
        cx.gone(&info.id).await?;
    }
    nothing_left(cx, "a launch failed after it was accepted").await?;
    cx.exactly(0).await?;
    Ok(Arm::Held)
}

pub(crate) async fn leaks_04_terminating_a_stopped_instance_leaves_nothing(cx: &Cx) -> Outcome {
    cx.oracle()?;
    let ids = [cx.stopped().await?.id, cx.stopped().await?.id];
    let answers = cx.provisioner().terminate_instances(&ids).await;
    require(answers.len() == ids.len(), || {
        format!("{} terminates got {} answers", ids.len(), answers.len())
    })?;
    for answer in answers {
        answer.map_err(|error| Stop::failed("terminate_instances", &error))?;
    }
    for id in &ids {
        cx.gone(id).await?;
    }
    let [one, other] = ids;
    let what = format!("{one} and {other} are terminated, which were stopped");
    nothing_left(cx, &what).await?;
    Ok(Arm::Held)
}

/// Demands that nothing of this scope is left in the end; clouds may take a while to tidy up.
async fn nothing_left(cx: &Cx, what: &str) -> Result<(), Stop> {
    let oracle = cx.oracle()?;
    let left = cx.eventually("nothing is left", async || {
        let left = oracle.leftovers(cx.scope()).await;
        Ok(left.is_empty().then_some(()))
    });
    if left.await.is_ok() {
        return Ok(());
    }
    let left = oracle.leftovers(cx.scope()).await.join(", ");
    Err(Stop::violated(format!(
        "{what}, and the cloud still has: {left}"
    )))
}
