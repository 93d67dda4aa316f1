//! What an instance keeps while it is stopped, started, rebooted and changed, as the oracle sees it.

use std::num::NonZeroU32;

use fleetwright::{
    CloudInstanceState, InstanceConfig, InstanceId, LaunchRecord, OptionalVerb, PlacementField,
    Reboot, UserData,
};

use super::kit_error;
use crate::{Context, Failure, Outcome, Pass, Truth, clauses::stop::read_truth, require};

/// VERBS-15: a backend must keep the user data, the size of the disk, the tags, the zone and the token of
/// an instance when it is stopped, started, resized, reimaged and rebooted.
///
/// A verb that replaces the instance behind its id loses what nobody looks at until it is needed. Needs:
/// oracle.
///
/// Launches with user data, a disk of 33 GB, a tag, a token and, if declared, a zone, changes the instance with
/// every verb that is declared, and compares all of it after each step.
pub(crate) async fn verbs_15_content_is_kept(cx: &Context) -> Outcome {
    let oracle = cx.oracle()?;
    let config = config_with_everything(cx)?;
    let id = cx.launch_config(&config).await?.id;
    cx.wait_for_consistent_state(&id, CloudInstanceState::Running)
        .await?;
    let before = read_truth(cx, &*oracle, &id).await?;
    let declared = |verb| cx.capabilities().supports(verb);
    let handle = cx.provisioner();

    cx.stop(&id).await?;
    cx.wait_for_consistent_state(&id, CloudInstanceState::Stopped)
        .await?;
    require_kept(cx, "a stop", &config, &before).await?;
    if let Some(to) = cx
        .harness()
        .other_type()
        .filter(|_| declared(OptionalVerb::ResizeInstance))
    {
        let resized = handle.resize_instance(&id, &to).await;
        resized.map_err(|error| Failure::call_failed("resize_instance", &error))?;
        require_kept(cx, "a resize", &config, &before).await?;
    }
    cx.start(&id).await?;
    wait_until_running(cx, &id).await?;
    require_kept(cx, "a start", &config, &before).await?;
    if declared(OptionalVerb::RebootInstance) {
        let rebooted = handle.reboot_instance(&id, Reboot::Hard).await;
        rebooted.map_err(|error| Failure::call_failed("reboot_instance", &error))?;
        wait_until_running(cx, &id).await?;
        require_kept(cx, "a reboot", &config, &before).await?;
    }
    if let Some(image) = cx
        .harness()
        .other_image()
        .filter(|_| declared(OptionalVerb::ReimageInstance))
    {
        let reimaged = handle.reimage_instance(&id, &image).await;
        reimaged.map_err(|error| Failure::call_failed("reimage_instance", &error))?;
        wait_until_running(cx, &id).await?;
        require_kept(cx, "a reimage", &config, &before).await?;
    }
    Ok(Pass::Held)
}

/// Returns a config with a value in every field that an instance must keep.
fn config_with_everything(cx: &Context) -> Result<InstanceConfig, Failure> {
    let mut config = cx.config_with_tags(&[("kit-kept", "always")])?;
    config.launch_token = Some(cx.new_token());
    config.disk_size_gb = NonZeroU32::new(33);
    let script = "#!/bin/sh\necho kept\n";
    if cx.capabilities().max_user_data_bytes >= script.len() {
        config.user_data = Some(UserData::new(script).map_err(kit_error)?);
    }
    if cx.capabilities().placement.contains(&PlacementField::Zone) {
        config.placement.zone = cx.harness().zone();
    }
    Ok(config)
}

/// Waits until an instance runs after a change, and not only seems to because reads lag.
async fn wait_until_running(cx: &Context, id: &InstanceId) -> Result<(), Failure> {
    cx.wait_for_consistent_reads().await;
    cx.wait_for_consistent_state(id, CloudInstanceState::Running)
        .await?;
    Ok(())
}

/// Requires that an instance has everything that it had `before`, and that its token finds it.
async fn require_kept(
    cx: &Context,
    step: &str,
    config: &InstanceConfig,
    before: &Truth,
) -> Result<(), Failure> {
    let id = &before.info.id;
    let oracle = cx.oracle()?;
    let now = read_truth(cx, &*oracle, id).await?;
    let lost = [
        ("user data", now.user_data == before.user_data),
        ("size of the disk", now.disk_size_gb == before.disk_size_gb),
        ("tags", now.info.tags == before.info.tags),
        (
            "zone",
            now.info.placement.zone == before.info.placement.zone,
        ),
    ];
    for (what, kept) in lost {
        require(kept, || {
            format!("{id} has not kept its {what} after {step}")
        })?;
    }
    let Some(token) = &config.launch_token else {
        return Ok(());
    };
    cx.wait_for_consistent_reads().await;
    let found = cx.provisioner().find_launch(token).await;
    let found = found.map_err(|error| Failure::call_failed("find_launch", &error))?;
    let same = matches!(&found, LaunchRecord::Found(list) if list.len() == 1 && list[0].id == *id);
    require(same, || {
        format!(
            "the token of {id} must find it after {step}, but finds {}",
            crate::shown(&found)
        )
    })
}
