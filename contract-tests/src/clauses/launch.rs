//! Launches: a launch creates what was requested, or nothing.
//!
//! The clauses launch with one special field at a time (type, user data, disk, image, placement)
//! and compare what came of it: with the list if the field is reported there, otherwise with the
//! oracle. After a refused launch the scope must be empty, by the list and by the oracle. [`fields`] launches
//! with every field, [`user_data`] with user data that is often changed on its way, and [`addresses`] several
//! instances of one network.

mod addresses;
mod fields;
mod user_data;

use std::{collections::BTreeSet, num::NonZeroU32};

use fleetwright::{
    CloudInstanceState, ErrorKind, InstanceConfig, InstanceFilter, InstanceInfo, InvalidValue,
    Market, NetworkId, Placement, PlacementField, ProvisionError, PublicAddress, SecurityGroupId,
    UserData, Zone,
};

pub(crate) use addresses::launch_14_private_addresses_are_different;
pub(crate) use fields::{
    launch_11_every_field_reaches_the_instance, launch_13_addresses_and_launch_time_are_true,
};
pub(crate) use user_data::launch_12_any_user_data_is_unchanged;

use crate::{Context, Failure, Outcome, Pass, Truth, context::names, require, shown::gigabytes};

/// LAUNCH-01: a backend must return from a launch at once, with an instance that has an id and is
/// pending or running.
///
/// A control loop must not block while an instance boots; it polls.
///
/// Launches one instance and checks the state in the result. That the id is well-formed is
/// guaranteed by its type.
pub(crate) async fn launch_01_returns_valid_info(cx: &Context) -> Outcome {
    let info = cx.launch().await?;
    let fresh = matches!(
        info.state,
        CloudInstanceState::Pending | CloudInstanceState::Running
    );
    require(fresh, || {
        format!("a launch returned {} as {}", info.id, info.state)
    })?;
    Ok(Pass::Held)
}

/// LAUNCH-02: a backend must give every instance an id that no other instance has or had, even
/// after others were terminated.
///
/// With a reused id, an old reference terminates a new instance.
///
/// Launches and terminates six instances one after the other, each only after the one before is
/// terminated, and requires six different ids.
pub(crate) async fn launch_02_ids_are_never_reused(cx: &Context) -> Outcome {
    let mut observed = BTreeSet::new();
    for _ in 0..6 {
        let info = cx.launch().await?;
        require(observed.insert(info.id.clone()), || {
            format!("{} was given out twice", info.id)
        })?;
        cx.terminate(&info.id).await?;
        cx.wait_until_terminated(&info.id).await?;
    }
    Ok(Pass::Held)
}

/// LAUNCH-03: a backend must return a launched instance from describe and from list, with and
/// without a filter, once the consistency window has passed.
///
/// An instance that is not visible cannot be terminated.
///
/// Waits for the consistency window, then describes the instance and searches for it in the list of
/// its tags and in the list of the whole account.
pub(crate) async fn launch_03_becomes_visible(cx: &Context) -> Outcome {
    let info = cx.launch().await?;
    cx.wait_for_consistent_reads().await;
    cx.describe(&info.id).await?;
    for (filter, which) in [
        (cx.filter(), "its tags"),
        (InstanceFilter::new(), "everything"),
    ] {
        let list = cx.list(&filter).await?;
        require(list.iter().any(|one| one.id == info.id), || {
            format!("{} is not in the list of {which}", info.id)
        })?;
    }
    Ok(Pass::Held)
}

/// LAUNCH-04: a backend must launch the requested image and instance type, and report both.
///
/// Otherwise the wrong size or image is only noticed in production.
///
/// Launches with the harness's second type if there is one, because a backend that ignores the type
/// would pass with its default, and compares the list entry with the config.
pub(crate) async fn launch_04_launches_requested_image_and_type(cx: &Context) -> Outcome {
    let mut config = cx.config();
    if let Some(other) = cx.harness().other_type() {
        config.instance_type = other;
    }
    let info = cx.launch_config(&config).await?;
    let listed = cx.wait_until_listed(&info.id).await?;
    require(listed.image.as_ref() == Some(&config.image), || {
        let got = crate::shown(&listed.image);
        format!("requested image {}, got {got}", config.image)
    })?;
    require(
        listed.instance_type.as_ref() == Some(&config.instance_type),
        || {
            let got = crate::shown(&listed.instance_type);
            format!("requested type {}, got {got}", config.instance_type)
        },
    )?;
    Ok(Pass::Held)
}

/// LAUNCH-05: a backend must pass the user data to the instance unchanged to the byte, whatever the
/// bytes are.
///
/// One byte of a script decides whether an instance joins its fleet. Needs: oracle.
///
/// Launches with a script that has line ends and quotes, with white space alone, with Unicode and
/// with all 256 bytes, and compares what the oracle says the instance received.
pub(crate) async fn launch_05_user_data_is_unchanged(cx: &Context) -> Outcome {
    cx.oracle()?;
    let most = cx.capabilities().max_user_data_bytes;
    let every_byte: Vec<u8> = (0..=255).collect();
    let scripts: [&[u8]; 4] = [
        b"#!/bin/sh\necho \"$HOME\"\r\n",
        b" \n",
        "naïve ☃".as_bytes(),
        &every_byte,
    ];
    for script in scripts.into_iter().filter(|script| script.len() <= most) {
        let mut config = cx.config();
        let data = UserData::new(script).map_err(|error| Failure::KitError(error.to_string()))?;
        config.user_data = Some(data);
        let truth = launch_and_read_truth(cx, &config).await?;
        require(truth.user_data.as_deref() == Some(script), || {
            let received = truth.user_data.as_deref().map_or(0, <[u8]>::len);
            format!(
                "{} bytes of user data were given, but the instance received {received} other bytes",
                script.len()
            )
        })?;
    }
    Ok(Pass::Held)
}

/// LAUNCH-06: a backend must give the root disk the requested size.
///
/// A disk that is too small fails under load, not at launch. Needs: oracle.
///
/// Requests 33 GB, a size that no default has, and compares the size that the oracle reports.
pub(crate) async fn launch_06_disk_has_requested_size(cx: &Context) -> Outcome {
    cx.oracle()?;
    let mut config = cx.config();
    config.disk_size_gb = std::num::NonZeroU32::new(33);
    let truth = launch_and_read_truth(cx, &config).await?;
    let size = truth.disk_size_gb;
    require(size == Some(33), || {
        format!("requested a disk of 33 GB, got {}", gigabytes(size))
    })?;
    Ok(Pass::Held)
}

/// LAUNCH-07: a backend must refuse a launch of an image that does not exist as invalid or not
/// found, and create nothing.
///
/// A check after the creation leaves instances behind. Needs: an unknown image.
///
/// Checks first that the core refuses to build a config without image or type. Then launches an
/// unknown image and requires an error of one of the two kinds and an empty scope.
pub(crate) async fn launch_07_empty_or_unknown_config_is_refused(cx: &Context) -> Outcome {
    for (image, instance_type) in [("", ""), ("", "x"), ("x", "")] {
        // No backend receives these: a config without image or type cannot be created.
        let built = InstanceConfig::builder(image, instance_type).build();
        require(built.is_err(), || {
            format!("a config with the image {image:?} and the type {instance_type:?} was created")
        })?;
    }
    let none = || Failure::NotRun("the harness names no unknown image".to_owned());
    let mut config = cx.config();
    config.image = cx.harness().unknown_image().ok_or_else(none)?;
    let launched = cx.provisioner().launch_instance(&config).await;
    let launched = launched.map(|info| vec![info]);
    let kinds = [ErrorKind::Invalid, ErrorKind::NotFound];
    require_unknown(
        cx,
        "a launch of an image that does not exist",
        launched,
        &kinds,
    )
    .await?;
    Ok(Pass::Held)
}

/// Requires that a launch of something that does not exist is refused and has created nothing.
async fn require_unknown(
    cx: &Context,
    call: &str,
    launched: Result<Vec<InstanceInfo>, ProvisionError>,
    kinds: &[ErrorKind],
) -> Result<(), Failure> {
    match launched {
        Err(error) if kinds.contains(&error.kind()) => {}
        Err(error) => {
            return Err(Failure::violated(format!(
                "{call} must be refused as something that does not exist, but failed as: {error}"
            )));
        }
        Ok(infos) => {
            let ids = names(&infos);
            return Err(Failure::violated(format!(
                "{call} must be refused, but launched {ids}"
            )));
        }
    }
    cx.require_count(0).await?;
    Ok(())
}

/// LAUNCH-15: a backend must refuse a launch of an instance type that does not exist as invalid, not found or
/// capacity, for one instance and for a batch, and create nothing.
///
/// A type that is replaced by a default is paid for, and is too small or too large. Some clouds do not distinguish a
/// type that exists nowhere from one that a zone does not offer. Needs: an unknown type.
///
/// Launches one instance and a batch of two with the harness's unknown type. Each must be refused as one of the
/// three kinds, and leave the scope empty.
pub(crate) async fn launch_15_unknown_type_is_refused(cx: &Context) -> Outcome {
    let kinds = [ErrorKind::Invalid, ErrorKind::NotFound, ErrorKind::Capacity];
    let none = || Failure::NotRun("the harness names no unknown type".to_owned());
    let mut config = cx.config();
    config.instance_type = cx.harness().unknown_type().ok_or_else(none)?;
    let launched = cx.provisioner().launch_instance(&config).await;
    let launched = launched.map(|info| vec![info]);
    require_unknown(
        cx,
        "a launch of a type that does not exist",
        launched,
        &kinds,
    )
    .await?;
    let two = NonZeroU32::MIN.saturating_add(1);
    let launched = cx.provisioner().launch_instances(&config, two).await;
    require_unknown(
        cx,
        "a batch of a type that does not exist",
        launched,
        &kinds,
    )
    .await?;
    Ok(Pass::Held)
}

/// LAUNCH-08: a backend must accept user data up to the declared limit, refuse longer user data as
/// invalid, and create nothing.
///
/// With truncated user data, an instance boots without a part of its setup.
///
/// Launches with one byte more than declared, requires a refusal without effect and an empty scope,
/// and then launches with exactly the declared size.
pub(crate) async fn launch_08_oversized_user_data_is_refused(cx: &Context) -> Outcome {
    let most = cx.capabilities().max_user_data_bytes;
    let mut config = cx.config();
    let sized = |size| {
        UserData::new(vec![b'x'; size]).map_err(|error| Failure::KitError(error.to_string()))
    };
    config.user_data = Some(sized(most + 1)?);
    let result = cx.provisioner().launch_instance(&config).await;
    let call = "a launch with too much user data";
    cx.require_refused_without_effect(call, result, ErrorKind::Invalid)
        .await?;
    // No user data at all is what a limit of zero allows.
    config.user_data = if most == 0 { None } else { Some(sized(most)?) };
    cx.launch_config(&config).await?;
    Ok(Pass::Held)
}

/// LAUNCH-09: a backend must launch an instance in the requested zone and report it, and refuse
/// every placement field that is not declared as invalid.
///
/// A launch that moves to another zone by itself defeats every placement policy. Needs: a zone.
///
/// Sets every placement field that is not declared, one at a time, and requires a refusal without
/// effect. If zones are declared, launches into the harness's zone and compares the list entry.
pub(crate) async fn launch_09_placement_is_applied_or_refused(cx: &Context) -> Outcome {
    let offered = &cx.capabilities().placement;
    for field in PlacementField::ALL {
        if offered.contains(&field) {
            continue;
        }
        let mut config = cx.config();
        set_field(&mut config.placement, field)?;
        let result = cx.provisioner().launch_instance(&config).await;
        let call = format!("a launch with {}, which is not declared,", field.path());
        cx.require_refused_without_effect(&call, result, ErrorKind::Invalid)
            .await?;
    }
    if !offered.contains(&PlacementField::Zone) {
        return Ok(Pass::Refused);
    }
    let zone = cx.zone()?;
    let mut config = cx.config();
    config.placement.zone = Some(zone.clone());
    let info = cx.launch_config(&config).await?;
    let listed = cx.wait_until_listed(&info.id).await?;
    require(listed.placement.zone.as_ref() == Some(&zone), || {
        let got = crate::shown(&listed.placement.zone);
        format!("requested zone {zone}, got {got}")
    })?;
    Ok(Pass::Held)
}

/// Sets a field to a well-formed value.
fn set_field(placement: &mut Placement, field: PlacementField) -> Result<(), Failure> {
    let wrong = |error: InvalidValue| Failure::KitError(error.to_string());
    match field {
        PlacementField::Zone => placement.zone = Some(Zone::new("kit-zone").map_err(wrong)?),
        PlacementField::Network => {
            placement.network = Some(NetworkId::new("kit-network").map_err(wrong)?);
        }
        PlacementField::SecurityGroups => {
            let group = SecurityGroupId::new("kit-group").map_err(wrong)?;
            placement.security_groups.insert(group);
        }
        PlacementField::PublicAddress => {
            placement.public_address = Some(PublicAddress::Absent);
        }
        PlacementField::Spot => placement.market = Some(Market::Spot),
    }
    Ok(())
}

/// LAUNCH-10: a backend must not return running from a launch while reads return pending once the
/// consistency window has passed.
///
/// A caller that trusts the result connects to an instance that does not run yet.
///
/// Compares the state in the result of the launch with a description after the consistency window.
/// Only the pair running, then pending, is a violation.
pub(crate) async fn launch_10_result_is_not_ahead_of_reads(cx: &Context) -> Outcome {
    let info = cx.launch().await?;
    cx.wait_for_consistent_reads().await;
    let status = cx.describe(&info.id).await?;
    let ahead =
        info.state == CloudInstanceState::Running && status.state == CloudInstanceState::Pending;
    require(!ahead, || {
        format!("{} was returned as running, but is pending", info.id)
    })?;
    Ok(Pass::Held)
}

/// Launches `config` and returns what the oracle reports about the instance.
async fn launch_and_read_truth(cx: &Context, config: &InstanceConfig) -> Result<Truth, Failure> {
    let info = cx.launch_config(config).await?;
    let truth = cx.oracle()?.instances(cx.scope()).await;
    let found = truth.into_iter().find(|truth| truth.info.id == info.id);
    found.ok_or_else(|| Failure::violated(format!("the cloud has no {}", info.id)))
}
