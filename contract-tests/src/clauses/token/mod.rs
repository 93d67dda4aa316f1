//! Launch tokens: launches with the same token are one launch, from any handle and at any time.
//!
//! This file tests how tokens and configs are compared. [`retention`] tests how long a token is known
//! and which handles know it, [`find`] how a launch is looked up, [`race`] launches of one token that differ.
//! [`compare`] changes every field of a config, [`many`] has many and similar tokens.
//!
//! A clause about "another config" changes one field that is valid for the backend: a tag if the
//! declared limits leave room for one, otherwise the disk. A conflict must be without effect, and
//! the number of instances is counted at the end of each clause.

mod compare;
mod find;
mod many;
mod race;
mod retention;

use std::collections::BTreeSet;

use fleetwright::{
    Effect, ErrorKind, InstanceConfig, InstanceId, InstanceInfo, InstanceProvisioner, LaunchToken,
    MAX_TOKEN_BYTES, PlacementField, PublicAddress, UserData, Zone,
};
use futures_util::future::join_all;

pub(crate) use compare::{
    token_20_every_field_is_compared, token_21_changed_instance_is_still_the_launch,
};
use find::require_found;
pub(crate) use find::{
    token_09_find_launch_finds_the_instance, token_10_find_launch_launches_nothing,
    token_11_find_launch_reports_terminated, token_17_fingerprint_is_that_of_the_config,
};
pub(crate) use many::{token_22_many_tokens_are_recognized, token_23_similar_tokens_are_different};
pub(crate) use race::{
    token_18_single_launch_and_batch_share_a_token, token_19_one_zone_for_concurrent_launches,
};
pub(crate) use retention::{
    token_04_replay_returns_current_state, token_05_refused_launch_frees_its_token,
    token_06_spent_token_launches_nothing, token_07_second_handle_recognizes_token,
    token_08_restarted_process_recognizes_token, token_14_concurrent_launches_with_one_token,
    token_16_options_do_not_matter_to_a_replay,
};

use crate::{Context, Failure, Outcome, Pass, require};

/// The key of the tag in which two otherwise equal configs differ.
const VARIANT_TAG: &str = "contract-variant";

/// TOKEN-01: a backend must return the same instance for the same token with the same config, and
/// launch nothing more.
///
/// A retry must not cost a second instance.
///
/// Replays a launch at once and twice while its instance runs. Every replay must return the first
/// id, and one instance must exist.
pub(crate) async fn token_01_same_token_same_instance(cx: &Context) -> Outcome {
    let config = cx.config_with_token();
    let first = cx.launch_config(&config).await?;
    require_replay(cx.provisioner(), &config, &first.id, "at once").await?;
    cx.wait_for_state(&first.id, fleetwright::CloudInstanceState::Running)
        .await?;
    require_replay(cx.provisioner(), &config, &first.id, "while it runs").await?;
    require_replay(cx.provisioner(), &config, &first.id, "once more").await?;
    cx.require_count(1).await?;
    Ok(Pass::Held)
}

/// TOKEN-02: a backend must refuse the same token with another config as a token conflict, and
/// launch nothing.
///
/// Returning another instance than the requested one hides a mistake.
///
/// Replays a launch with configs that each differ in one field: tag, type, user data, disk, public
/// address. Each must conflict without effect, and the original config must still be a replay
/// afterwards.
pub(crate) async fn token_02_other_config_is_a_conflict(cx: &Context) -> Outcome {
    let plain = cx.config_with_token();
    let mut config = with_variant(cx, &plain, "first")?.unwrap_or(plain);
    config.user_data = small_user_data(cx, b"first")?;
    let first = cx.launch_config(&config).await?;
    for (what, other) in changed_configs(cx, &config)? {
        require_conflict(cx, cx.provisioner(), &other, what).await?;
    }
    cx.require_count(1).await?;
    require_replay(cx.provisioner(), &config, &first.id, "after the conflicts").await?;
    Ok(Pass::Held)
}

/// TOKEN-03: a backend must compare configs by their content, not by the order in which they were
/// built or their place in memory.
///
/// A restarted process builds an equal config, never the same memory.
///
/// Replays a launch with an equal config whose tags were inserted in reverse order, and with one
/// that was written as JSON and read back. Both must return the first instance.
pub(crate) async fn token_03_equal_configs_are_equal(cx: &Context) -> Outcome {
    let mut config = cx.config_with_token();
    config.user_data = small_user_data(cx, b"the same bytes")?;
    let room = cx.capabilities().tags.max_tags.min(6);
    for number in config.tags.len()..room {
        insert_tag(&mut config, &format!("contract-{number}"), "same")?;
    }
    let first = cx.launch_config(&config).await?;
    let backwards = rebuild(&config)?;
    require_replay(cx.provisioner(), &backwards, &first.id, "built backwards").await?;
    let json =
        serde_json::to_string(&config).map_err(|error| Failure::KitError(error.to_string()))?;
    let stored: InstanceConfig =
        serde_json::from_str(&json).map_err(|error| Failure::KitError(error.to_string()))?;
    require_replay(cx.provisioner(), &stored, &first.id, "stored and read back").await?;
    Ok(Pass::Held)
}

/// TOKEN-12: a backend must launch a new instance for every launch without a token.
///
/// A caller that gives no token requests a new instance each time.
///
/// Launches the same config without a token four times, two of them concurrently, and requires four
/// ids and four instances.
pub(crate) async fn token_12_launches_without_token_are_never_merged(cx: &Context) -> Outcome {
    let mut config = cx.config();
    config.user_data = small_user_data(cx, b"the same bytes")?;
    let mut ids = BTreeSet::new();
    for _ in 0..2 {
        ids.insert(cx.launch_config(&config).await?.id);
    }
    let together = (0..2).map(|_| cx.launch_config(&config));
    for result in join_all(together).await {
        ids.insert(result?.id);
    }
    require(ids.len() == 4, || {
        format!(
            "4 launches without a token returned only {}",
            crate::shown(&ids)
        )
    })?;
    cx.require_count(4).await?;
    Ok(Pass::Held)
}

/// TOKEN-13: a backend must distinguish tokens by every character, including their case and at full
/// length.
///
/// Truncated or case-folded tokens merge unrelated launches.
///
/// Launches with tokens that differ in case, in one punctuation mark or by one more character at the
/// end, and with two tokens of the maximum length that differ in the last character. Each must be
/// found with its own instance.
pub(crate) async fn token_13_tokens_are_compared_exactly(cx: &Context) -> Outcome {
    let root = format!("t{}", cx.new_token());
    let filled = format!("{root:x<width$}", width = MAX_TOKEN_BYTES - 1);
    let texts = [
        root.clone(),
        root.to_uppercase(),
        root.replace('-', "_"),
        format!("{root}/"),
        format!("{filled}a"),
        format!("{filled}b"),
    ];
    let mut launched: Vec<(LaunchToken, InstanceId)> = Vec::new();
    for text in texts {
        let token = LaunchToken::new(text).map_err(|error| Failure::KitError(error.to_string()))?;
        let mut config = cx.config();
        config.launch_token = Some(token.clone());
        let info = cx.launch_config(&config).await?;
        if let Some((twin, _)) = launched.iter().find(|(_, id)| *id == info.id) {
            let text = format!("the tokens {twin} and {token} both returned {}", info.id);
            return Err(Failure::violated(text));
        }
        launched.push((token, info.id));
    }
    cx.require_count(launched.len()).await?;
    for (token, id) in &launched {
        require_found(cx.provisioner(), token, id, "among similar tokens").await?;
    }
    Ok(Pass::Held)
}

/// TOKEN-15: a backend must refuse the same token for another zone as a token conflict instead of
/// launching a second instance.
///
/// If a cloud's own tokens are zonal, the same token in another zone would launch twice. Needs: a
/// zone.
///
/// Launches without a zone and replays with the harness's zone. If the cloud chose another zone than
/// that, also launches into the chosen zone with a new token and replays into the harness's zone.
pub(crate) async fn token_15_zone_is_part_of_the_config(cx: &Context) -> Outcome {
    let zone = cx.zone()?;
    let mut anywhere = cx.config_with_token();
    anywhere.placement.zone = None;
    let first = cx.launch_config(&anywhere).await?;
    let in_other_zone = in_zone(&anywhere, &zone);
    if !cx.capabilities().placement.contains(&PlacementField::Zone) {
        let result = cx.provisioner().launch_instance(&in_other_zone).await;
        let expected = |kind| matches!(kind, ErrorKind::Invalid | ErrorKind::TokenConflict);
        let refused = result.as_ref().is_err_and(|error| expected(error.kind()));
        require(refused, || {
            format!(
                "zones are not declared, but a launch into {zone} returned {}",
                crate::shown(&result)
            )
        })?;
        cx.require_count(1).await?;
        return Ok(Pass::Refused);
    }
    require_conflict(
        cx,
        cx.provisioner(),
        &in_other_zone,
        "a zone where none was given",
    )
    .await?;
    let home = cx.wait_until_listed(&first.id).await?.placement.zone;
    let mut launches = 1;
    if let Some(home) = home.filter(|home| *home != zone) {
        let mut in_home_zone = in_zone(&anywhere, &home);
        in_home_zone.launch_token = Some(cx.new_token());
        cx.launch_config(&in_home_zone).await?;
        launches += 1;
        require_conflict(
            cx,
            cx.provisioner(),
            &in_zone(&in_home_zone, &zone),
            "another zone",
        )
        .await?;
    }
    cx.require_count(launches).await?;
    Ok(Pass::Held)
}

/// Replays a launch and requires that it returns `first`.
async fn require_replay(
    handle: &dyn InstanceProvisioner,
    config: &InstanceConfig,
    first: &InstanceId,
    how: &str,
) -> Result<InstanceInfo, Failure> {
    let result = handle.launch_instance(config).await;
    let info =
        result.map_err(|error| Failure::call_failed(&format!("the replay {how}"), &error))?;
    require(info.id == *first, || {
        format!(
            "the replay {how} returned {}, but the token launched {first}",
            info.id
        )
    })?;
    Ok(info)
}

/// Launches another config with a used token and requires a conflict without effect.
async fn require_conflict(
    cx: &Context,
    handle: &dyn InstanceProvisioner,
    other: &InstanceConfig,
    what: &str,
) -> Result<(), Failure> {
    let result = handle.launch_instance(other).await;
    let call = format!("the same token with {what}");
    let error = cx.require_refused(&call, result, ErrorKind::TokenConflict)?;
    require(error.effect() == Effect::None, || {
        format!(
            "{call} must conflict without effect, but the effect is {}: {error}",
            error.effect()
        )
    })
}

/// Returns valid configs with the same token, each of which differs from `config` in one field.
fn changed_configs(
    cx: &Context,
    config: &InstanceConfig,
) -> Result<Vec<(&'static str, InstanceConfig)>, Failure> {
    let mut others = Vec::new();
    let mut add = |what, change: &dyn Fn(&mut InstanceConfig)| {
        let mut other = config.clone();
        change(&mut other);
        others.push((what, other));
    };
    if config.tags.get(VARIANT_TAG).is_some() {
        let mut other_tag = config.clone();
        insert_tag(&mut other_tag, VARIANT_TAG, "other")?;
        add("another value of a tag", &|other| {
            other.tags = other_tag.tags.clone();
        });
        add("one tag less", &|other| {
            other.tags.remove(VARIANT_TAG);
        });
    }
    let other_type = cx.harness().other_type();
    if let Some(other_type) = other_type.filter(|other| *other != config.instance_type) {
        add("another type", &|other| {
            other.instance_type = other_type.clone();
        });
    }
    let other_data = small_user_data(cx, b"other")?;
    if other_data.is_some() {
        add("other user data", &|other| {
            other.user_data.clone_from(&other_data);
        });
        add("no user data", &|other| other.user_data = None);
    }
    add("another disk size", &|other| {
        other.disk_size_gb = std::num::NonZeroU32::new(33);
    });
    let addresses = &cx.capabilities().placement;
    if addresses.contains(&PlacementField::PublicAddress) {
        add("no public address", &|other| {
            other.placement.public_address = match other.placement.public_address {
                Some(PublicAddress::Absent) => None,
                Some(PublicAddress::Assigned) | None => Some(PublicAddress::Absent),
            };
        });
    }
    Ok(others)
}

/// Returns a config that differs from `config` in a tag or, if there is no room for one, in the disk.
fn changed_config(cx: &Context, config: &InstanceConfig) -> Result<InstanceConfig, Failure> {
    if let Some(other) = with_variant(cx, config, "other")? {
        return Ok(other);
    }
    let mut other = config.clone();
    other.disk_size_gb = std::num::NonZeroU32::new(33);
    Ok(other)
}

/// Returns `config` with one more tag, or `None` if the declared limits leave no room for it.
fn with_variant(
    cx: &Context,
    config: &InstanceConfig,
    variant: &str,
) -> Result<Option<InstanceConfig>, Failure> {
    let mut tagged = config.clone();
    insert_tag(&mut tagged, VARIANT_TAG, variant)?;
    let fits = cx.capabilities().tags.check(&tagged.tags).is_ok();
    Ok(fits.then_some(tagged))
}

/// Sets a tag of a config.
fn insert_tag(config: &mut InstanceConfig, key: &str, value: &str) -> Result<(), Failure> {
    let set = config.tags.insert(key, value);
    set.map(drop)
        .map_err(|error| Failure::KitError(error.to_string()))
}

/// Returns `bytes` as user data, or `None` if the backend does not accept that many.
fn small_user_data(cx: &Context, bytes: &[u8]) -> Result<Option<UserData>, Failure> {
    let data = UserData::new(bytes).map_err(|error| Failure::KitError(error.to_string()))?;
    let fits = data.check(cx.capabilities().max_user_data_bytes).is_ok();
    Ok(fits.then_some(data))
}

/// Returns an equal config that shares no memory with `config` and was built in another order.
fn rebuild(config: &InstanceConfig) -> Result<InstanceConfig, Failure> {
    let mut equal = config.clone();
    equal.tags = fleetwright::Tags::new();
    let tags: Vec<_> = config.tags.iter().collect();
    for (key, value) in tags.into_iter().rev() {
        insert_tag(&mut equal, key, value)?;
    }
    let data = config.user_data.as_ref();
    equal.user_data = data.and_then(|data| UserData::new(data.as_bytes()).ok());
    let token = config.launch_token.as_ref();
    equal.launch_token = token.and_then(|token| LaunchToken::new(token.as_str()).ok());
    Ok(equal)
}

/// Returns `config` with a zone.
fn in_zone(config: &InstanceConfig, zone: &Zone) -> InstanceConfig {
    let mut config = config.clone();
    config.placement.zone = Some(zone.clone());
    config
}
