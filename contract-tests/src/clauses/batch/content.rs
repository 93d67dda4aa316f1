//! What a batch launch gives to each instance, which instances its token finds, and batches of nothing.

use std::num::NonZeroU32;

use fleetwright::{
    CloudInstanceState::Running, ErrorKind, InstanceConfig, InstanceInfo, InstanceProvisioner,
    InstanceProvisionerExt as _, LaunchRecord, LaunchToken, Result,
};
use futures_util::future::try_join_all;

use super::{COUNT, ids, launch};
use crate::{
    Context, Failure, Outcome, Pass,
    clauses::fields::{Launched, require_as_requested, variations, with_all},
    context::names,
    require,
};

/// BATCH-13: a backend must launch every instance of a batch with every field of the config that it declares,
/// alone and with all others.
///
/// A batch is often another native call than a launch of one, with a list of fields of its own.
///
/// Launches a batch of two with each row of the table of LAUNCH-11 and a batch with all of them, or, where that
/// are too many instances, only the latter. Compares results, list and oracle with the config.
pub(crate) async fn batch_13_every_field_reaches_every_instance(cx: &Context) -> Outcome {
    let two = NonZeroU32::MIN.saturating_add(1);
    let plain = cx.config();
    let rows = variations(cx, &plain)?;
    let mut configs = vec![("every field", with_all(&plain, &rows))];
    if cx.can_launch(2 * rows.len() + 2) {
        configs.extend(rows.iter().map(|row| (row.name, row.of(&plain))));
    }
    let launches = configs.into_iter().map(|(name, config)| async move {
        let infos = launch(cx, &config, two).await?;
        Ok::<_, Failure>(Launched {
            name,
            config,
            infos,
        })
    });
    let launches = try_join_all(launches).await?;
    require_as_requested(cx, &launches).await?;
    Ok(Pass::Held)
}

/// BATCH-14: a backend must return an empty result for an empty list of ids, and change no instance.
///
/// In many clouds, a call without ids means all instances.
///
/// Describes, stops, starts and terminates an empty list beside a running and a stopped instance, which must
/// be unchanged.
pub(crate) async fn batch_14_empty_batches_do_nothing(cx: &Context) -> Outcome {
    let stopped = cx.launch_stopped().await?.id;
    let running = cx.launch_running().await?.id;
    let before = [
        cx.consistent_info(&stopped).await?,
        cx.consistent_info(&running).await?,
    ];
    let handle = cx.provisioner();
    let sizes = [
        (
            "describe_instances",
            handle.describe_instances(&[]).await.len(),
        ),
        ("stop_instances", handle.stop_instances(&[]).await.len()),
        ("start_instances", handle.start_instances(&[]).await.len()),
        (
            "terminate_instances",
            handle.terminate_instances(&[]).await.len(),
        ),
    ];
    for (call, size) in sizes {
        require(size == 0, || {
            format!("{call} without ids returned {size} results")
        })?;
    }
    for info in &before {
        cx.require_unchanged("calls without ids", info).await?;
    }
    Ok(Pass::Held)
}

/// BATCH-17: a backend must find all instances of a batch by its token, from any handle, and launch nothing
/// more for a launch of one and a batch of one with the same token.
///
/// Instances of a batch that its token does not find are launched again.
///
/// Looks a batch of three up through the launching handle, one that was open before and a new one, also while
/// one of its instances is stopped. Then launches one instance and a batch of one with one token, and the
/// reverse: the second launch must return the instance of the first, or be a token conflict.
pub(crate) async fn batch_17_token_finds_the_whole_batch(cx: &Context) -> Outcome {
    let second = cx.open_handle().await;
    let config = cx.config_with_token();
    let token = token_of(&config)?;
    let launched = launch(cx, &config, COUNT).await?;
    cx.wait_for_state(&launched[1].id, Running).await?;
    cx.wait_for_consistent_reads().await;
    let reopened = cx.open_handle().await;
    for handle in [cx.provisioner(), &*second, &*reopened] {
        require_found(handle, &token, &launched).await?;
    }
    cx.stop(&launched[1].id).await?;
    cx.wait_for_consistent_reads().await;
    require_found(&*second, &token, &launched).await?;
    let mut instances = launched.len();
    for batch_first in [false, true] {
        let config = cx.config_with_token();
        let first = launch_one(&*second, &config, batch_first).await;
        let first = first.map_err(|error| Failure::call_failed("a launch of one", &error))?;
        instances += 1;
        match launch_one(cx.provisioner(), &config, !batch_first).await {
            Err(error) if error.kind() == ErrorKind::TokenConflict => {}
            Err(error) => return Err(Failure::call_failed("a second launch of one", &error)),
            Ok(again) => require(ids(&first) == ids(&again), || {
                let (first, again) = (names(&first), names(&again));
                format!(
                    "a launch of one and a batch of one with one token returned {first} and {again}"
                )
            })?,
        }
        cx.require_count(instances).await?;
    }
    Ok(Pass::Held)
}

/// Launches one instance, as a batch or not.
async fn launch_one(
    handle: &dyn InstanceProvisioner,
    config: &InstanceConfig,
    batch: bool,
) -> Result<Vec<InstanceInfo>> {
    if batch {
        return handle.launch_instances(config, NonZeroU32::MIN).await;
    }
    let info = handle.launch_instance(config).await?;
    Ok(vec![info])
}

/// Requires that a batch is found with exactly its instances.
pub(in crate::clauses) async fn require_found(
    handle: &dyn InstanceProvisioner,
    token: &LaunchToken,
    launched: &[InstanceInfo],
) -> Result<(), Failure> {
    let count = u32::try_from(launched.len()).ok().and_then(NonZeroU32::new);
    let found = handle.find_launches(token, count.unwrap_or(COUNT)).await;
    let found = found.map_err(|error| Failure::call_failed("find_launches", &error))?;
    let LaunchRecord::Found(found) = found else {
        let launched = names(launched);
        return Err(Failure::violated(format!(
            "the batch {launched} is reported as {}",
            crate::shown(&found)
        )));
    };
    require(
        ids(&found) == ids(launched) && found.len() == launched.len(),
        || {
            let (launched, found) = (names(launched), names(&found));
            format!("a batch launched {launched}, but its token finds {found}")
        },
    )
}

/// Returns the token of a config.
pub(super) fn token_of(config: &InstanceConfig) -> Result<LaunchToken, Failure> {
    let token = config.launch_token.clone();
    token.ok_or_else(|| Failure::KitError("a config without a token".to_owned()))
}
