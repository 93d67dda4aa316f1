//! Starting: the same instance again, with the addresses that it has now.

use std::{cell::RefCell, net::IpAddr};

use fleetwright::{
    CloudInstanceState, ErrorKind, InstanceId, InstanceInfo, InstanceStatus, RetryAdvice,
};
use tokio::time::Instant;

use crate::{
    Arm, Cx, Outcome, Stop, require,
    steady::{differences, weaker},
};

pub(crate) async fn start_01_same_id_after_stop_and_start(cx: &Cx) -> Outcome {
    let id = cx.stopped().await?.id;
    let answer = cx.start(&id).await?;
    require(answer.id == id, || {
        format!("a start of {id} answered {}", answer.id)
    })?;
    let on_its_way = matches!(
        answer.state,
        CloudInstanceState::Pending | CloudInstanceState::Running
    );
    require(on_its_way, || {
        format!("a start of {id} answered it as {}", answer.state)
    })?;
    running_again(cx, &id).await?;
    cx.exactly(1).await?;
    Ok(Arm::Held)
}

pub(crate) async fn start_02_starting_again_changes_nothing(cx: &Cx) -> Outcome {
    let id = cx.launch().await?.id;
    again(cx, &id, "launched just now").await?;
    cx.reach(&id, CloudInstanceState::Running).await?;
    let before = cx.settled(&id).await?;
    again(cx, &id, "running").await?;
    cx.is_still("a second start", &before).await?;
    cx.exactly(1).await?;
    Ok(Arm::Held)
}

/// Starts an instance that is on its way or there already.
async fn again(cx: &Cx, id: &InstanceId, state: &str) -> Result<InstanceInfo, Stop> {
    let answer = cx.provisioner().start_instance(id).await;
    answer.map_err(|error| {
        Stop::violated(format!(
            "a start of {id}, which is {state}, must succeed, but: {error}"
        ))
    })
}

pub(crate) async fn start_03_addresses_are_fresh(cx: &Cx) -> Outcome {
    let id = cx.launch().await?.id;
    let before = cx.reach(&id, CloudInstanceState::Running).await?;
    cx.stop(&id).await?;
    cx.reach(&id, CloudInstanceState::Stopped).await?;
    let answer = InstanceStatus::from(cx.start(&id).await?);
    cx.settle_reads().await;
    let on_the_way = RefCell::new(vec![("the start", answer)]);
    cx.eventually(&format!("{id} is running again"), async || {
        let status = cx.describe(&id).await?;
        let state = status.state;
        on_the_way.borrow_mut().push(("a description", status));
        Ok((state == CloudInstanceState::Running).then_some(()))
    })
    .await?;
    let now = cx.settled(&id).await?;
    let (public, private) = (now.public_ip, now.private_ip);
    for (had, has, which) in [
        (before.public_ip, public, "public"),
        (before.private_ip, private, "private"),
    ] {
        require(had.is_some() == has.is_some(), || {
            format!("{id} had the {which} address {had:?} and has {has:?} since its start")
        })?;
    }
    for (who, shown) in on_the_way.take() {
        for (shown, has) in [(shown.public_ip, public), (shown.private_ip, private)] {
            require(shown.is_none() || shown == has, || {
                format!("{who} of {id} shows {shown:?}, but it has {has:?} since its start")
            })?;
        }
    }
    if let Some(oracle) = cx.harness().oracle() {
        let all = oracle.instances(cx.scope()).await;
        let truth = all.into_iter().find(|truth| truth.info.id == id);
        let true_one: Option<IpAddr> = truth.and_then(|truth| truth.info.public_ip);
        require(public == true_one, || {
            format!("{id} is shown with the public address {public:?}, but has {true_one:?}")
        })?;
    }
    Ok(Arm::Held)
}

pub(crate) async fn start_04_a_terminated_instance_cannot_be_started(cx: &Cx) -> Outcome {
    let id = cx.running().await?.id;
    let since = Instant::now();
    cx.terminate(&id).await?;
    let mut arm = Arm::Held;
    for state in ["terminating", "terminated"] {
        let answer = cx.provisioner().start_instance(&id).await;
        let call = format!("a start of {id}, which is {state},");
        arm = weaker(arm, cx.refused_at_the_end(&call, answer, since)?);
        cx.gone(&id).await?;
    }
    arm = weaker(arm, cx.is_at_its_end(&id, since).await?);
    cx.exactly(0).await?;
    Ok(arm)
}

pub(crate) async fn start_05_an_unknown_id_is_not_found(cx: &Cx) -> Outcome {
    let id = cx.harness().unknown_id();
    let answer = cx.provisioner().start_instance(&id).await;
    let call = format!("a start of {id}, which never existed,");
    cx.refused(&call, answer, ErrorKind::NotFound)?;
    Ok(Arm::Held)
}

pub(crate) async fn start_06_the_answer_is_complete(cx: &Cx) -> Outcome {
    let mut config = cx.config();
    let named = config.tags.insert("kept", "through a start");
    named.map_err(|error| Stop::Kit(error.to_string()))?;
    let id = cx.launch_as(&config).await?.id;
    cx.reach(&id, CloudInstanceState::Running).await?;
    let before = cx.settled(&id).await?;
    cx.stop(&id).await?;
    cx.reach(&id, CloudInstanceState::Stopped).await?;
    let answer = cx.start(&id).await?;
    let mut expected = before;
    // Id and addresses are what START-01 and START-03 are about, and a placement may tell of them.
    expected.id = answer.id.clone();
    expected.state = answer.state;
    expected.private_ip = answer.private_ip;
    expected.public_ip = answer.public_ip;
    expected.mac_address = answer.mac_address;
    expected.placement = answer.placement.clone();
    // Some clouds tell when it was last started; what they know at all they must still tell.
    if answer.launch_time.is_some() {
        expected.launch_time = answer.launch_time;
    }
    let changed = differences(&expected, &answer);
    require(changed.is_empty(), || {
        format!(
            "a start of {id} answered something else: {}",
            changed.join("; ")
        )
    })?;
    Ok(Arm::Held)
}

pub(crate) async fn start_07_a_stopping_instance_is_busy_or_starts(cx: &Cx) -> Outcome {
    let id = cx.running().await?.id;
    cx.stop(&id).await?;
    if let Err(error) = cx.provisioner().start_instance(&id).await {
        let in_time = matches!(error.retry(), RetryAdvice::After(_));
        require(error.kind() == ErrorKind::Conflict && in_time, || {
            format!(
                "a start of {id}, which is stopping, must succeed or be a conflict with a time to \
                 retry, but: {error}"
            )
        })?;
        cx.reach(&id, CloudInstanceState::Stopped).await?;
        cx.start(&id).await?;
    }
    running_again(cx, &id).await?;
    Ok(Arm::Held)
}

/// Waits until a started instance runs, and not only seems to because reads lag.
async fn running_again(cx: &Cx, id: &InstanceId) -> Result<(), Stop> {
    cx.settle_reads().await;
    cx.reach(id, CloudInstanceState::Running).await?;
    Ok(())
}
