//! Cancellation: a future that is dropped at any point leaves nothing that cannot be found or
//! retried.
//!
//! A caller's timeout drops a future between two polls. These clauses therefore poll a call a fixed
//! number of times, drop it, and repeat that with one poll more until the call completes: then
//! every point at which it can be dropped was tried.

use fleetwright::{
    CloudInstanceState, ErrorKind, InstanceId, LaunchRecord, LaunchToken, ProvisionError,
};
use futures_util::future::join;
use tokio::time::Instant;

use crate::{Context, Failure, Outcome, Pass, dropped::drop_after, require};

/// The most polls of a call that are tried. A call over sockets rarely needs more than twelve.
const MOST_POLLS: usize = 64;

/// CANCELLATION-01: a backend must leave at most one instance of a launch that is dropped at any
/// point, and find it again by its token.
///
/// Timeouts drop futures, and a dropped launch is a common leak.
///
/// Drops a launch after 0, 1, 2 and more polls, until it completes in fewer polls than that. After
/// each, looks the token up, replays the launch and requires exactly one instance.
pub(crate) async fn cancellation_01_dropped_launch_can_be_found(cx: &Context) -> Outcome {
    for polls in 0..MOST_POLLS {
        let mut config = cx.config_with_token();
        config
            .tags
            .insert("kit-polls", polls.to_string())
            .map_err(|error| Failure::KitError(error.to_string()))?;
        let launch = cx.provisioner().launch_instance(&config);
        let returned = drop_after(polls, launch).await;
        cx.note(format!("a launch was dropped after {polls} polls"));
        cx.wait_for_consistent_reads().await;
        let token = config
            .launch_token
            .clone()
            .unwrap_or_else(|| cx.new_token());
        let found = find_instances(cx, &token).await?;
        // A replay through the same handle settles the launch, whether it was carried out or not.
        let info = cx.launch_config(&config).await?;
        require(found.is_empty() || found == [info.id.clone()], || {
            format!(
                "the dropped launch created {}, but its replay returned {}",
                crate::shown(&found),
                info.id
            )
        })?;
        cx.wait_for_consistent_reads().await;
        let mut filter = cx.filter();
        filter.tags = config.tags.clone();
        let list = cx.list(&filter).await?;
        let listed: Vec<_> = list.into_iter().map(|one| one.id).collect();
        require(listed == [info.id.clone()], || {
            format!(
                "a launch dropped after {polls} polls and its replay must be {}, but there is {}",
                info.id,
                crate::shown(&listed)
            )
        })?;
        let known = find_instances(cx, &token).await?;
        require(known == listed, || {
            format!(
                "{} is not found by its token, but {}",
                info.id,
                crate::shown(&known)
            )
        })?;
        cx.terminate(&info.id).await?;
        cx.wait_until_terminated(&info.id).await?;
        if returned.is_some() {
            break;
        }
    }
    cx.require_count(0).await?;
    Ok(Pass::Held)
}

/// CANCELLATION-02: a backend must let a stop, start or terminate that was dropped at any point be
/// retried, with its full effect.
///
/// The same holds as for launches.
///
/// Drops a stop, a start and a terminate after 0, 1, 2 and more polls, until each completes. The
/// same call must then succeed and the instance reach the state.
pub(crate) async fn cancellation_02_dropped_change_can_be_retried(cx: &Context) -> Outcome {
    let id = cx.launch_running().await?.id;
    for polls in 0..MOST_POLLS {
        let stopped = drop_after(polls, cx.provisioner().stop_instance(&id)).await;
        require_retry_succeeded(
            &id,
            "stop",
            polls,
            cx.provisioner().stop_instance(&id).await,
        )?;
        cx.wait_for_state(&id, CloudInstanceState::Stopped).await?;
        cx.wait_for_consistent_reads().await;
        let started = drop_after(polls, cx.provisioner().start_instance(&id)).await;
        let again = cx.provisioner().start_instance(&id).await;
        require_retry_succeeded(&id, "start", polls, again)?;
        cx.wait_for_consistent_reads().await;
        cx.wait_for_state(&id, CloudInstanceState::Running).await?;
        if stopped.is_some() && started.is_some() {
            break;
        }
    }
    for polls in 0..MOST_POLLS {
        let id = cx.launch_running().await?.id;
        let since = Instant::now();
        let ended = drop_after(polls, cx.provisioner().terminate_instance(&id)).await;
        let again = cx.provisioner().terminate_instance(&id).await;
        if !cx.is_forgotten(again.as_ref().err(), since) {
            require_retry_succeeded(&id, "terminate", polls, again)?;
        }
        cx.wait_until_terminated(&id).await?;
        if ended.is_some() {
            break;
        }
    }
    Ok(Pass::Held)
}

/// Two equal calls that are in progress at the same time.
#[derive(Clone, Copy, Debug)]
enum EqualCalls {
    Launches,
    Describes,
    Lists,
    Stops,
}

/// CANCELLATION-03: a backend must not affect a call because another one was dropped.
///
/// In other systems, a shared call ends with its first caller.
///
/// Makes two equal launches, describes, lists or stops concurrently and drops one of them after 0,
/// 1, 2 and more polls. The other one must succeed.
pub(crate) async fn cancellation_03_dropped_call_affects_no_other(cx: &Context) -> Outcome {
    let id = cx.launch_running().await?.id;
    cx.wait_for_consistent_reads().await;
    let (handle, filter) = (cx.provisioner(), cx.filter());
    for calls in [
        EqualCalls::Launches,
        EqualCalls::Describes,
        EqualCalls::Lists,
        EqualCalls::Stops,
    ] {
        for polls in 0..MOST_POLLS {
            let config = cx.config_with_token();
            let make = async || match calls {
                EqualCalls::Launches => handle.launch_instance(&config).await.map(drop),
                EqualCalls::Describes => handle.describe_instance(&id).await.map(drop),
                EqualCalls::Lists => handle.list_instances(&filter).await.map(drop),
                EqualCalls::Stops => handle.stop_instance(&id).await,
            };
            let (dropped, kept) = join(drop_after(polls, make()), make()).await;
            let kept = match (calls, kept) {
                // A conflict is allowed while the other launch was in progress. It no longer is.
                (EqualCalls::Launches, Err(error)) if is_retryable_conflict(&error) => make().await,
                (_, kept) => kept,
            };
            kept.map_err(|error| {
                let calls = crate::shown::in_words(&calls);
                Failure::violated(format!(
                    "of two {calls}, one failed because the other was dropped after {polls} polls: {error}"
                ))
            })?;
            if dropped.is_some() {
                break;
            }
        }
    }
    Ok(Pass::Held)
}

/// Returns whether an error says that another call is in progress and when to retry.
fn is_retryable_conflict(error: &ProvisionError) -> bool {
    error.kind() == ErrorKind::Conflict && error.retry().delay().is_some()
}

/// Returns the live instances of a token.
async fn find_instances(cx: &Context, token: &LaunchToken) -> Result<Vec<InstanceId>, Failure> {
    let record = cx.provisioner().find_launch(token).await;
    match record.map_err(|error| Failure::call_failed("find_launch", &error))? {
        LaunchRecord::Found(infos) => Ok(infos.into_iter().map(|info| info.id).collect()),
        LaunchRecord::Terminated(_) | LaunchRecord::NotFound => Ok(Vec::new()),
    }
}

/// Requires that the retry of a dropped call succeeded.
fn require_retry_succeeded<T>(
    id: &InstanceId,
    verb: &str,
    polls: usize,
    result: Result<T, ProvisionError>,
) -> Result<(), Failure> {
    let broken = |error: ProvisionError| {
        Failure::violated(format!(
            "a {verb} of {id} was dropped after {polls} polls, and its retry failed: {error}"
        ))
    };
    result.map(drop).map_err(broken)
}
