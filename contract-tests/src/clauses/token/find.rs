//! Finding the instances of a launch by its token, without launching.
//!
//! A lookup must be exact in both directions: it finds the one instance of its token once the
//! consistency window has passed, and never reports an instance that is terminating as found.

use std::num::NonZeroU32;

use fleetwright::{
    CloudInstanceState, Fingerprint, InstanceId, InstanceInfo, InstanceProvisioner,
    InstanceProvisionerExt as _, LaunchRecord, LaunchToken,
};

use crate::{Context, Failure, Outcome, Pass, require};

/// TOKEN-09: a backend must find the instances of a token from any handle, once the consistency
/// window has passed.
///
/// An unknown outcome is settled by a read, not by another launch.
///
/// Looks the token up through the launching handle, a handle that was open before the launch and
/// one that was opened after it, and again while the instance is stopped.
pub(crate) async fn token_09_find_launch_finds_the_instance(cx: &Context) -> Outcome {
    let second = cx.open_handle().await;
    let mut config = cx.config();
    let token = cx.new_token();
    config.launch_token = Some(token.clone());
    let info = cx.launch_config(&config).await?;
    cx.wait_for_consistent_reads().await;
    let reopened = cx.open_handle().await;
    require_found(
        cx.provisioner(),
        &token,
        &info.id,
        "through the launching handle",
    )
    .await?;
    require_found(&*second, &token, &info.id, "through a second handle").await?;
    require_found(&*reopened, &token, &info.id, "after a restart").await?;
    cx.wait_for_state(&info.id, CloudInstanceState::Running)
        .await?;
    cx.stop(&info.id).await?;
    cx.wait_for_state(&info.id, CloudInstanceState::Stopped)
        .await?;
    cx.wait_for_consistent_reads().await;
    require_found(cx.provisioner(), &token, &info.id, "while it is stopped").await?;
    Ok(Pass::Held)
}

/// TOKEN-10: a backend must report an unknown token as not found, and launch nothing by the lookup.
///
/// A lookup must have no effect, or it is not safe to use.
///
/// Looks an unknown token up through two handles, beside an instance of another token. Then
/// launches with the token and requires a new instance.
pub(crate) async fn token_10_find_launch_launches_nothing(cx: &Context) -> Outcome {
    let other_launch = cx.launch_config(&cx.config_with_token()).await?;
    cx.wait_for_state(&other_launch.id, CloudInstanceState::Running)
        .await?;
    cx.wait_for_consistent_reads().await;
    let token = cx.new_token();
    let second = cx.open_handle().await;
    for handle in [cx.provisioner(), &*second] {
        let record = look_up(handle, &token).await?;
        require(record == LaunchRecord::NotFound, || {
            format!(
                "a token that launched nothing is reported as {}",
                crate::shown(&record)
            )
        })?;
    }
    cx.require_count(1).await?;
    let mut config = cx.config();
    config.launch_token = Some(token);
    let launched = cx.launch_config(&config).await?;
    require(launched.id != other_launch.id, || {
        format!(
            "a new token returned {}, the instance of another token",
            launched.id
        )
    })?;
    Ok(Pass::Held)
}

/// TOKEN-11: a backend must report a launch as terminated once its instance is terminating, for as
/// long as its token is remembered, and never as found.
///
/// A manager would adopt an instance that is being terminated.
///
/// Looks the token up while its instance is terminating, when it is terminated and near the end of
/// the declared memory. A record must name the instance in an ending state.
pub(crate) async fn token_11_find_launch_reports_terminated(cx: &Context) -> Outcome {
    let mut config = cx.config();
    let token = cx.new_token();
    config.launch_token = Some(token.clone());
    let info = cx.launch_config(&config).await?;
    cx.wait_for_state(&info.id, CloudInstanceState::Running)
        .await?;
    let start = tokio::time::Instant::now();
    cx.terminate(&info.id).await?;
    cx.wait_for_consistent_reads().await;
    let memory = cx.capabilities().token_after_terminate;
    require_terminated_record(cx, &token, &info, start, "as it is being terminated").await?;
    cx.wait_until_terminated(&info.id).await?;
    cx.wait_for_consistent_reads().await;
    require_terminated_record(cx, &token, &info, start, "once it is terminated").await?;
    if memory.is_zero() {
        return Ok(Pass::Weaker);
    }
    if cx.can_advance_time(memory) {
        let late = (memory / 10 * 9).saturating_sub(start.elapsed());
        cx.advance_time(late).await;
        require_terminated_record(cx, &token, &info, start, "near the end of its memory").await?;
    }
    Ok(Pass::Held)
}

/// Requires that a launch is reported as terminated while its token is remembered, and never as found.
async fn require_terminated_record(
    cx: &Context,
    token: &LaunchToken,
    launched: &InstanceInfo,
    terminated: tokio::time::Instant,
    when: &str,
) -> Result<(), Failure> {
    let id = &launched.id;
    let record = look_up(cx.provisioner(), token).await?;
    let may_be_forgotten = terminated.elapsed() >= cx.capabilities().token_after_terminate;
    match record {
        LaunchRecord::Terminated(kept) => {
            let wrong = kept
                .iter()
                .find(|one| one.id != *id || !one.state.is_ending());
            require(wrong.is_none(), || {
                format!(
                    "the launch of {id} is terminated {when}, but is reported as {}",
                    crate::shown(&wrong)
                )
            })
        }
        LaunchRecord::NotFound => require(may_be_forgotten, || {
            format!("the launch of {id} is not found {when}, although its token is remembered")
        }),
        LaunchRecord::Found(_) => Err(Failure::violated(format!(
            "the launch of {id} is found {when}"
        ))),
    }
}

/// TOKEN-17: a backend must report each instance that a token launched with the fingerprint of its
/// config or with none, and never with another one.
///
/// A launch whose outcome is unknown is recognized by it, whatever the cloud adds to tags or changes
/// in names.
///
/// Launches one instance and a batch of two, and looks both tokens up through another handle. A
/// backend that reports no fingerprint passes in the weaker form.
pub(crate) async fn token_17_fingerprint_is_that_of_the_config(cx: &Context) -> Outcome {
    let other = cx.open_handle().await;
    let mut pass = Pass::Held;
    for count in [NonZeroU32::MIN, NonZeroU32::MIN.saturating_add(1)] {
        let mut config = cx.config();
        let token = cx.new_token();
        config.launch_token = Some(token.clone());
        let launched = if count == NonZeroU32::MIN {
            cx.provisioner().launch_instance(&config).await.map(drop)
        } else {
            let batch = cx.provisioner().launch_instances(&config, count).await;
            batch.map(drop)
        };
        launched.map_err(|error| Failure::call_failed("a launch", &error))?;
        cx.wait_for_consistent_reads().await;
        let found = other.find_launches(&token, count).await;
        let found = found.map_err(|error| Failure::call_failed("find_launches", &error))?;
        let LaunchRecord::Found(infos) = found else {
            return Err(Failure::violated(format!(
                "a launch of {count} is reported as {}",
                crate::shown(&found)
            )));
        };
        // A batch that is launched one by one has the fingerprints of its items.
        let mut item = config.clone();
        item.batch = Some(count);
        let expected = [config.fingerprint(count), item.fingerprint(NonZeroU32::MIN)];
        for info in infos {
            match info.config {
                None => pass = Pass::Weaker,
                Some(reported) => require(expected.contains(&reported), || {
                    let [whole, item] = expected.map(Fingerprint::as_uuid);
                    format!(
                        "{} was launched as one of {count} with the fingerprint {whole} or {item}, but is reported with {}",
                        info.id,
                        reported.as_uuid()
                    )
                })?,
            }
        }
    }
    Ok(pass)
}

/// Requires that the launch of `token` is found with exactly the instance `id`.
pub(super) async fn require_found(
    handle: &dyn InstanceProvisioner,
    token: &LaunchToken,
    id: &InstanceId,
    how: &str,
) -> Result<(), Failure> {
    let record = look_up(handle, token).await?;
    let right =
        matches!(&record, LaunchRecord::Found(list) if list.len() == 1 && list[0].id == *id);
    require(right, || {
        format!(
            "the token of {id}, looked up {how}, is reported as {}",
            crate::shown(&record)
        )
    })
}

/// Looks a launch up by its token. An error is a violation.
async fn look_up(
    handle: &dyn InstanceProvisioner,
    token: &LaunchToken,
) -> Result<LaunchRecord, Failure> {
    let record = handle.find_launch(token).await;
    record.map_err(|error| Failure::call_failed("find_launch", &error))
}
