//! Launches of one token that differ, in turn and at the same moment: a single launch and a batch, and two
//! zones.

use std::num::NonZeroU32;

use fleetwright::{
    Effect, ErrorKind, InstanceConfig, InstanceInfo, InstanceProvisioner, PlacementField,
    RetryAdvice,
};
use futures_util::future::join;

use super::in_zone;
use crate::{Context, Failure, Outcome, Pass, context::names, require};

/// How often launches are made at the same moment.
const ROUNDS: usize = 3;

/// How often a launch that lost is retried.
const RETRIES: usize = 5;

/// TOKEN-18: a backend must launch either the instance of a single launch or those of a batch, if both have
/// the same token, and refuse the other launch as a token conflict.
///
/// A cloud that knows batches by other names than single launches would launch both.
///
/// Launches one instance and then two with the same token, and the reverse, and requires a conflict without
/// effect. Then launches both at the same moment through two handles. One must succeed, and the other one
/// must conflict, at the latest when it is retried as it advises.
pub(crate) async fn token_18_single_launch_and_batch_share_a_token(cx: &Context) -> Outcome {
    let (one, two) = (NonZeroU32::MIN, NonZeroU32::MIN.saturating_add(1));
    let mut launched = 0;
    for (first, second) in [(one, two), (two, one)] {
        let config = cx.config_with_token();
        let infos = launch(cx.provisioner(), &config, first).await;
        let infos = infos.map_err(|error| Failure::call_failed("a launch", &error))?;
        launched += infos.len();
        let result = launch(cx.provisioner(), &config, second).await;
        let call = format!("a launch of {second} with the token of a launch of {first}");
        let error = cx.require_refused(&call, result, ErrorKind::TokenConflict)?;
        require(error.effect() == Effect::None, || {
            format!("{call} must fail without effect, but: {error}")
        })?;
    }
    cx.require_count(launched).await?;
    for _ in 0..ROUNDS {
        let config = cx.config_with_token();
        launched += race(cx, [(&config, one), (&config, two)]).await?;
        cx.require_count(launched).await?;
    }
    Ok(Pass::Held)
}

/// TOKEN-19: a backend must launch in one zone only, if a token is launched in two zones at the same moment.
///
/// If a cloud's own tokens or names are zonal, two processes with one token would launch twice. Needs: a zone.
///
/// Launches with one token in the zone of the harness and in the one that the backend chooses, at the same moment
/// through two handles. One must succeed, and the other one must conflict, at the latest when it is retried as
/// it advises.
pub(crate) async fn token_19_one_zone_for_concurrent_launches(cx: &Context) -> Outcome {
    let zone = cx.zone()?;
    if !cx.capabilities().placement.contains(&PlacementField::Zone) {
        let there = in_zone(&cx.config_with_token(), &zone);
        let result = cx.provisioner().launch_instance(&there).await;
        let call = "zones are not declared: a launch into one";
        cx.require_refused(call, result, ErrorKind::Invalid)?;
        cx.require_count(0).await?;
        return Ok(Pass::Refused);
    }
    for round in 1..=ROUNDS {
        let mut anywhere = cx.config_with_token();
        anywhere.placement.zone = None;
        let there = in_zone(&anywhere, &zone);
        race(
            cx,
            [(&anywhere, NonZeroU32::MIN), (&there, NonZeroU32::MIN)],
        )
        .await?;
        cx.require_count(round).await?;
    }
    Ok(Pass::Held)
}

/// Launches one instance or a batch.
async fn launch(
    handle: &dyn InstanceProvisioner,
    config: &InstanceConfig,
    count: NonZeroU32,
) -> fleetwright::Result<Vec<InstanceInfo>> {
    if count == NonZeroU32::MIN {
        let info = handle.launch_instance(config).await?;
        return Ok(vec![info]);
    }
    handle.launch_instances(config, count).await
}

/// Launches both configs at the same moment through two handles, and requires that one succeeds and the
/// other one conflicts. Returns how many instances were launched.
async fn race(
    cx: &Context,
    launches: [(&InstanceConfig, NonZeroU32); 2],
) -> Result<usize, Failure> {
    let handles = [cx.shared_provisioner(), cx.open_handle().await];
    let [first, second] = [0, 1].map(|index| {
        let (config, count) = launches[index];
        launch(&*handles[index], config, count)
    });
    let (first, second) = join(first, second).await;
    let mut launched = Vec::new();
    for (index, mut result) in [first, second].into_iter().enumerate() {
        for _ in 0..RETRIES {
            if !may_pass(&result) {
                break;
            }
            cx.wait_for_consistent_reads().await;
            let (config, count) = launches[index];
            result = launch(&*handles[index], config, count).await;
        }
        match result {
            Ok(infos) => launched.push(infos),
            Err(error) if error.kind() == ErrorKind::TokenConflict => {}
            Err(error) => {
                let call = "a launch concurrent with another one of its token";
                return Err(Failure::call_failed(call, &error));
            }
        }
    }
    match &launched[..] {
        [winner] => Ok(winner.len()),
        [] => Err(Failure::violated(
            "neither of two concurrent launches with one token succeeded",
        )),
        both => {
            let both: Vec<_> = both.iter().map(|infos| names(infos)).collect();
            Err(Failure::violated(format!(
                "two different launches with one token returned {}",
                both.join(" and ")
            )))
        }
    }
}

/// Returns whether a launch lost against another one, and its error advises a retry.
fn may_pass(result: &fleetwright::Result<Vec<InstanceInfo>>) -> bool {
    let error = result.as_ref().err();
    error.is_some_and(|error| {
        error.kind() == ErrorKind::Conflict && error.retry() != RetryAdvice::Never
    })
}
