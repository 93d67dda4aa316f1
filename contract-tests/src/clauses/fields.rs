//! The fields of a config as a table: one row for each field that the backend declares and the harness can
//! name, with a value that is not the default.
//!
//! Owns the rows and the comparison of an instance with its config. LAUNCH-11, BATCH-13 and TOKEN-20 use the
//! same table, so a new field of a config is a new row here. What a backend does not declare, or what exceeds
//! its limits, has no row.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
};

use fleetwright::{
    CloudInstanceState::Running, InstanceConfig, InstanceId, InstanceInfo, Market, PlacementField,
    PublicAddress, SecurityGroupId, UserData,
};

use crate::{
    Context, Failure, Truth, require,
    shown::{gigabytes, in_words},
};

/// A size that no default has.
pub(super) const DISK_SIZE_GB: NonZeroU32 = NonZeroU32::new(33).unwrap();

/// One field with a value that is not the default.
pub(super) struct Variation {
    /// What is changed, after "with".
    pub(super) name: &'static str,
    change: Box<dyn Fn(&mut InstanceConfig) + Send + Sync>,
}

impl Variation {
    pub(super) fn new(
        name: &'static str,
        change: impl Fn(&mut InstanceConfig) + Send + Sync + 'static,
    ) -> Self {
        let change = Box::new(change);
        Self { name, change }
    }

    /// Returns `config` with this change.
    pub(super) fn of(&self, config: &InstanceConfig) -> InstanceConfig {
        let mut config = config.clone();
        (self.change)(&mut config);
        config
    }
}

/// Returns the rows of the table, without those that change nothing in `config`.
pub(super) fn variations(cx: &Context, config: &InstanceConfig) -> Result<Vec<Variation>, Failure> {
    let mut rows = Vec::new();
    if let Some(image) = cx.harness().other_image() {
        rows.push(Variation::new("another image", move |config| {
            config.image = image.clone();
        }));
    }
    if let Some(other) = cx.harness().other_type() {
        rows.push(Variation::new("another type", move |config| {
            config.instance_type = other.clone();
        }));
    }
    if let Some(data) = user_data(cx, b"#!/bin/sh\nexec every-field\n")? {
        rows.push(Variation::new("user data", move |config| {
            config.user_data = Some(data.clone());
        }));
    }
    rows.push(Variation::new("a disk size", |config| {
        config.disk_size_gb = Some(DISK_SIZE_GB);
    }));
    for field in &cx.capabilities().placement {
        rows.extend(placement_rows(cx, *field));
    }
    rows.retain(|row| row.of(config) != *config);
    Ok(rows)
}

/// Returns the rows of one field of the placement.
fn placement_rows(cx: &Context, field: PlacementField) -> Vec<Variation> {
    let named = cx.harness().placement();
    match field {
        PlacementField::Zone => {
            let row = named.zone.map(|zone| {
                Variation::new("a zone", move |config| {
                    config.placement.zone = Some(zone.clone());
                })
            });
            row.into_iter().collect()
        }
        PlacementField::Network => {
            let row = named.network.map(|network| {
                Variation::new("a network", move |config| {
                    config.placement.network = Some(network.clone());
                })
            });
            row.into_iter().collect()
        }
        PlacementField::SecurityGroups => {
            let groups = named.security_groups;
            let row = (!groups.is_empty()).then(|| {
                Variation::new("security groups", move |config| {
                    config.placement.security_groups.clone_from(&groups);
                })
            });
            row.into_iter().collect()
        }
        PlacementField::PublicAddress => {
            let row = |name, wanted| {
                Variation::new(name, move |config| {
                    config.placement.public_address = Some(wanted);
                })
            };
            vec![
                row("no public address", PublicAddress::Absent),
                row("a public address", PublicAddress::Assigned),
            ]
        }
        PlacementField::Spot => vec![Variation::new("the spot market", |config| {
            config.placement.market = Some(Market::Spot);
        })],
    }
}

/// Returns `config` with all rows.
pub(super) fn with_all(config: &InstanceConfig, rows: &[Variation]) -> InstanceConfig {
    rows.iter()
        .fold(config.clone(), |config, row| row.of(&config))
}

/// Returns `bytes` as user data, or `None` if the backend does not accept that many.
pub(super) fn user_data(cx: &Context, bytes: &[u8]) -> Result<Option<UserData>, Failure> {
    let data = UserData::new(bytes).map_err(|error| Failure::KitError(error.to_string()))?;
    let fits = data.check(cx.capabilities().max_user_data_bytes).is_ok();
    Ok(fits.then_some(data))
}

/// A launch of one row: what is special about it, its config and what it returned.
pub(super) struct Launched {
    pub(super) name: &'static str,
    pub(super) config: InstanceConfig,
    pub(super) infos: Vec<InstanceInfo>,
}

/// Waits until all instances run, and compares the results of their launches, the list and, if there is one,
/// the oracle with their configs.
pub(super) async fn require_as_requested(
    cx: &Context,
    launches: &[Launched],
) -> Result<(), Failure> {
    for launch in launches {
        for info in &launch.infos {
            require_same(launch, info, "its launch returned")?;
            cx.wait_for_state(&info.id, Running).await?;
        }
    }
    cx.wait_for_consistent_reads().await;
    let list = cx.list(&cx.filter()).await?;
    let listed: BTreeMap<_, _> = list.iter().map(|info| (&info.id, info)).collect();
    let truths = truths(cx).await;
    for launch in launches {
        for InstanceInfo { id, .. } in &launch.infos {
            let Some(info) = listed.get(id) else {
                return Err(Failure::violated(format!(
                    "{id} is not in the list of its tags"
                )));
            };
            require_same(launch, info, "the list shows")?;
            let Some(truth) = truths.get(id) else {
                continue;
            };
            require_same(launch, &truth.info, "the cloud has")?;
            require_placed(launch, &truth.info)?;
            let (config, name) = (&launch.config, launch.name);
            let given = config.user_data.as_ref().map(UserData::as_bytes);
            require(truth.user_data.as_deref() == given, || {
                let size = |data: Option<&[u8]>| data.map_or(0, <[u8]>::len);
                let (given, has) = (size(given), size(truth.user_data.as_deref()));
                format!(
                    "{id}, launched with {name}, was given {given} bytes of user data and has {has} others"
                )
            })?;
            let wanted = config.disk_size_gb.map(NonZeroU32::get);
            require(wanted.is_none() || truth.disk_size_gb == wanted, || {
                let (has, wanted) = (gigabytes(truth.disk_size_gb), gigabytes(wanted));
                format!("{id}, launched with {name}, has a disk of {has} instead of {wanted}")
            })?;
        }
    }
    Ok(())
}

/// Returns what the oracle says about the instances of this scope; nothing if there is no oracle.
pub(super) async fn truths(cx: &Context) -> BTreeMap<InstanceId, Truth> {
    let Some(oracle) = cx.harness().oracle() else {
        return BTreeMap::new();
    };
    let truths = oracle.instances(cx.scope()).await.into_iter();
    truths.map(|truth| (truth.info.id.clone(), truth)).collect()
}

/// Requires that a read shows nothing else than was requested. Other clauses say which fields a read must have.
fn require_same(launch: &Launched, info: &InstanceInfo, read: &str) -> Result<(), Failure> {
    let wrong = contradictions(&launch.config, info);
    require(wrong.is_empty(), || {
        let (id, name, wrong) = (&info.id, launch.name, wrong.join("; "));
        format!("{id} was launched with {name}, but {read} otherwise: {wrong}")
    })
}

/// Requires that the cloud has put an instance into the network and the groups of its config. A harness that names them has an
/// oracle that knows them.
fn require_placed(launch: &Launched, truth: &InstanceInfo) -> Result<(), Failure> {
    let (wanted, has) = (&launch.config.placement, &truth.placement);
    let (id, name) = (&truth.id, launch.name);
    require(wanted.network.is_none() || has.network.is_some(), || {
        format!("{id} was launched with {name}, but the cloud has it in no network")
    })?;
    let has_groups = wanted.security_groups.is_empty() || !has.security_groups.is_empty();
    require(has_groups, || {
        format!("{id} was launched with {name}, but the cloud has it in no security group")
    })
}

/// Returns the requested fields for which a read shows another value.
fn contradictions(config: &InstanceConfig, info: &InstanceInfo) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut compare = |field: &str, wanted: String, shown: Option<String>| {
        if let Some(shown) = shown.filter(|shown| *shown != wanted) {
            wrong.push(format!("{field} must be {wanted} and is {shown}"));
        }
    };
    let (wanted, shown) = (&config.placement, &info.placement);
    compare(
        "image",
        config.image.to_string(),
        info.image.as_ref().map(ToString::to_string),
    );
    compare(
        "type",
        config.instance_type.to_string(),
        info.instance_type.as_ref().map(ToString::to_string),
    );
    if let Some(zone) = &wanted.zone {
        compare(
            "zone",
            zone.to_string(),
            shown.zone.as_ref().map(ToString::to_string),
        );
    }
    if let Some(network) = &wanted.network {
        compare(
            "network",
            network.to_string(),
            shown.network.as_ref().map(ToString::to_string),
        );
    }
    if !wanted.security_groups.is_empty() {
        let groups = &shown.security_groups;
        let names = |groups: &BTreeSet<SecurityGroupId>| {
            let names: Vec<_> = groups.iter().map(SecurityGroupId::as_str).collect();
            names.join(", ")
        };
        let shown = (!groups.is_empty()).then(|| names(groups));
        compare("groups", names(&wanted.security_groups), shown);
    }
    if let Some(market) = wanted.market {
        compare(
            "market",
            in_words(&market),
            shown.market.map(|market| in_words(&market)),
        );
    }
    if let Some(public) = wanted.public_address {
        // A read of a running instance shows whether it has one.
        let observed = (info.state == Running).then_some(match info.public_ip {
            Some(_) => PublicAddress::Assigned,
            None => PublicAddress::Absent,
        });
        for shown in [shown.public_address, observed] {
            compare(
                "public address",
                in_words(&public),
                shown.map(|shown| in_words(&shown)),
            );
        }
    }
    if !info.tags.contains_all(&config.tags) {
        wrong.push(format!(
            "tags must contain {} and are {}",
            crate::shown(&config.tags),
            crate::shown(&info.tags)
        ));
    }
    wrong
}
