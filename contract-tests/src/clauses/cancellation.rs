//! Cancellation: a future dropped at any point leaves nothing that cannot be found or repeated.

use fleetwright::{CloudInstanceState, InstanceId, LaunchRecord, LaunchToken, ProvisionError};
use futures_util::future::join;

use tokio::time::Instant;

use crate::{Arm, Cx, Outcome, Stop, dropped::drop_after, require};

/// The most polls that a call is followed through. A call over sockets rarely needs a dozen.
const MOST_POLLS: usize = 64;

pub(crate) async fn cancellation_01_a_dropped_launch_is_found_again(cx: &Cx) -> Outcome {
    for polls in 0..MOST_POLLS {
        let mut config = cx.config_with_token();
        config
            .tags
            .insert("kit-polls", polls.to_string())
            .map_err(|error| Stop::Kit(error.to_string()))?;
        let launch = cx.provisioner().launch_instance(&config);
        let answered = drop_after(polls, launch).await;
        cx.note(format!("a launch was dropped after {polls} polls"));
        cx.settle_reads().await;
        let token = config.launch_token.clone().unwrap_or_else(|| cx.token());
        let found = found(cx, &token).await?;
        // A replay, through the very handle whose call was dropped, settles it whatever happened.
        let info = cx.launch_as(&config).await?;
        let known = found.iter().all(|id| *id == info.id);
        require(known && found.len() <= 1, || {
            format!(
                "the dropped launch made {found:?}, and its replay answered {}",
                info.id
            )
        })?;
        cx.settle_reads().await;
        let mut filter = cx.filter();
        filter.tags = config.tags.clone();
        let list = cx.list(&filter).await?;
        require(list.len() == 1 && list[0].id == info.id, || {
            let names = crate::cx::names(&list);
            format!(
                "a launch dropped after {polls} polls and its replay must be {}, but there is {names}",
                info.id
            )
        })?;
        let listed = self::found(cx, &token).await?;
        require(listed == [info.id.clone()], || {
            format!("{} is not found by its token, but {listed:?}", info.id)
        })?;
        cx.terminate(&info.id).await?;
        cx.gone(&info.id).await?;
        if answered.is_some() {
            break;
        }
    }
    cx.exactly(0).await?;
    Ok(Arm::Held)
}

pub(crate) async fn cancellation_02_a_dropped_change_can_be_repeated(cx: &Cx) -> Outcome {
    let id = cx.running().await?.id;
    for polls in 0..MOST_POLLS {
        let stopped = drop_after(polls, cx.provisioner().stop_instance(&id)).await;
        repeated(
            &id,
            "stop",
            polls,
            cx.provisioner().stop_instance(&id).await,
        )?;
        cx.reach(&id, CloudInstanceState::Stopped).await?;
        cx.settle_reads().await;
        let started = drop_after(polls, cx.provisioner().start_instance(&id)).await;
        let again = cx.provisioner().start_instance(&id).await;
        repeated(&id, "start", polls, again)?;
        cx.settle_reads().await;
        cx.reach(&id, CloudInstanceState::Running).await?;
        if stopped.is_some() && started.is_some() {
            break;
        }
    }
    for polls in 0..MOST_POLLS {
        let id = cx.running().await?.id;
        let since = Instant::now();
        let ended = drop_after(polls, cx.provisioner().terminate_instance(&id)).await;
        let again = cx.provisioner().terminate_instance(&id).await;
        if !cx.is_forgotten(again.as_ref().err(), since) {
            repeated(&id, "terminate", polls, again)?;
        }
        cx.gone(&id).await?;
        if ended.is_some() {
            break;
        }
    }
    Ok(Arm::Held)
}

pub(crate) async fn cancellation_03_one_caller_s_end_is_not_another_s(cx: &Cx) -> Outcome {
    let id = cx.running().await?.id;
    cx.settle_reads().await;
    let (handle, filter) = (cx.provisioner(), cx.filter());
    for polls in 0..MOST_POLLS {
        let config = cx.config_with_token();
        let dropped = drop_after(polls, handle.launch_instance(&config));
        let (launch, kept) = join(dropped, handle.launch_instance(&config)).await;
        untouched("launch", polls, kept)?;
        let dropped = drop_after(polls, handle.describe_instance(&id));
        let (describe, kept) = join(dropped, handle.describe_instance(&id)).await;
        untouched("describe", polls, kept)?;
        let dropped = drop_after(polls, handle.list_instances(&filter));
        let (list, kept) = join(dropped, handle.list_instances(&filter)).await;
        untouched("list", polls, kept)?;
        let dropped = drop_after(polls, handle.stop_instance(&id));
        let (stop, kept) = join(dropped, handle.stop_instance(&id)).await;
        untouched("stop", polls, kept)?;
        if launch.is_some() && describe.is_some() && list.is_some() && stop.is_some() {
            break;
        }
    }
    Ok(Arm::Held)
}

/// The instances that the token is known for and that are not going.
async fn found(cx: &Cx, token: &LaunchToken) -> Result<Vec<InstanceId>, Stop> {
    let record = cx.provisioner().find_launch(token).await;
    match record.map_err(|error| Stop::failed("find_launch", &error))? {
        LaunchRecord::Found(infos) => Ok(infos.into_iter().map(|info| info.id).collect()),
        LaunchRecord::Gone(_) | LaunchRecord::NotSeen => Ok(Vec::new()),
    }
}

fn repeated<T>(
    id: &InstanceId,
    verb: &str,
    polls: usize,
    answer: Result<T, ProvisionError>,
) -> Result<(), Stop> {
    let broken = |error: ProvisionError| {
        Stop::violated(format!(
            "a {verb} of {id} was dropped after {polls} polls, and its repetition failed: {error}"
        ))
    };
    answer.map(drop).map_err(broken)
}

fn untouched<T>(call: &str, polls: usize, answer: Result<T, ProvisionError>) -> Result<(), Stop> {
    let broken = |error: ProvisionError| {
        Stop::violated(format!(
            "a {call} failed because another one like it was dropped after {polls} polls: {error}"
        ))
    };
    answer.map(drop).map_err(broken)
}
