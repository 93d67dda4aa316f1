//! MATRIX-06: what a call leaves or returns is what was requested, and what the cloud has.

use std::collections::BTreeSet;

use fleetwright::{AccountId, InstanceInfo, InstanceStatus, LaunchRecord, Result};

use super::{
    cell::Cell,
    operations::{Change, Got},
    properties::{reaches, succeeded},
    truth::{Progress, Seen, find, launched},
};
use crate::{Failure, Truth};

/// Repeats a call until it succeeds, and compares what it left and returned with the oracle.
pub(super) async fn judge(cell: &Cell<'_>) -> Result<bool, Failure> {
    let got = if succeeded(cell) {
        let results = cell.results.iter().flatten();
        results.filter_map(|result| result.clone().ok()).collect()
    } else if cell.row.change.can_be_repeated() {
        match cell.repeat().await {
            Ok(got) => got,
            // MATRIX-03 says whether it must succeed.
            Err(_) => return Ok(false),
        }
    } else {
        return Ok(false);
    };
    if !matches!(
        cell.row.change,
        Change::Nothing | Change::Session | Change::Launch(_) | Change::LaunchOnce
    ) {
        for item in 0..cell.items() {
            let whole = |now| now == Progress::Whole;
            reaches(cell, item, "was a success, but is not carried out", whole).await?;
        }
    }
    if cell.row.change == Change::Snapshot {
        same_image(cell, &got).await?;
    }
    let seen = Seen::now(cell.cx, &cell.target).await?;
    if cell.row.change.launches() > 0 {
        for id in launched(&cell.target, &seen.instances) {
            if let Some(truth) = find(&seen.instances, Some(&id)) {
                as_requested(cell, &truth)?;
            }
        }
    } else if cell.row.change != Change::Terminate {
        for id in &cell.target.ids {
            let before = find(&cell.before.instances, Some(id));
            if let (Some(before), Some(now)) = (before, find(&seen.instances, Some(id))) {
                kept(cell, &before, &now)?;
            }
        }
    }
    for (item, got) in got.iter().enumerate() {
        returned(cell, item, got, &seen)?;
    }
    Ok(true)
}

/// Requires that the same request returns the same image.
async fn same_image(cell: &Cell<'_>, got: &[Got]) -> Result<(), Failure> {
    let again = cell.repeat().await;
    let again =
        again.map_err(|error| cell.violated(format!("a second request failed: {error}")))?;
    let same =
        matches!((got, &again[..]), ([Got::Image(one)], [Got::Image(other)]) if one == other);
    cell.require(same, || {
        let image = |got: &[Got]| match got {
            [Got::Image(image)] => image.to_string(),
            _ => "no image".to_owned(),
        };
        let (first, second) = (image(got), image(&again));
        format!("the same request returned {first}, then {second}")
    })
}

/// Requires that a launched instance is as its config says.
fn as_requested(cell: &Cell<'_>, truth: &Truth) -> Result<(), Failure> {
    let (config, info) = (&cell.target.config, &truth.info);
    let data = config.user_data.as_ref().map(|data| data.as_bytes());
    let disk = config.disk_size_gb.map(std::num::NonZeroU32::get);
    let zone = config.placement.zone.as_ref();
    let fields = [
        ("user data", truth.user_data.as_deref() == data),
        ("disk", truth.disk_size_gb == disk),
        (
            "type",
            info.instance_type.as_ref() == Some(&config.instance_type),
        ),
        ("image", info.image.as_ref() == Some(&config.image)),
        (
            "zone",
            zone.is_none() || info.placement.zone.as_ref() == zone,
        ),
    ];
    for (field, right) in fields {
        cell.require(right, || {
            format!("{} does not have the requested {field}", info.id)
        })?;
    }
    Ok(())
}

/// Requires that a call changed nothing but what it is for.
fn kept(cell: &Cell<'_>, before: &Truth, now: &Truth) -> Result<(), Failure> {
    let change = cell.row.change;
    let mut wanted = before.info.tags.clone();
    if change == Change::Tags {
        for key in &cell.target.tags.remove {
            wanted.remove(key);
        }
        for (key, value) in &cell.target.tags.set {
            wanted.insert(key, value).map_err(super::stock::kit_error)?;
        }
    }
    let (old, new) = (&before.info, &now.info);
    let fields = [
        ("tags", new.tags == wanted),
        ("user data", now.user_data == before.user_data),
        (
            "disk",
            change == Change::Image || now.disk_size_gb == before.disk_size_gb,
        ),
        (
            "type",
            change == Change::Type || new.instance_type == old.instance_type,
        ),
        ("image", change == Change::Image || new.image == old.image),
        ("zone", new.placement.zone == old.placement.zone),
    ];
    for (field, right) in fields {
        cell.require(right, || {
            format!("the call has also changed the {field} of {}", new.id)
        })?;
    }
    Ok(())
}

/// Requires that a result is what the cloud has.
fn returned(cell: &Cell<'_>, item: usize, got: &Got, seen: &Seen) -> Result<(), Failure> {
    let truth = find(&seen.instances, cell.target.ids.get(item));
    match (cell.row.change, got) {
        (Change::Nothing, Got::Status(status)) => match truth {
            Some(truth) => described(cell, status, &truth.info),
            None => Err(cell.violated(format!("{} does not exist", status.id))),
        },
        (Change::Nothing, Got::Instances(list)) => listed(cell, list, seen),
        (Change::Nothing, Got::Record(record)) => {
            let wanted = launched(&cell.target, &seen.instances);
            let right = matches!(record, LaunchRecord::Found(found)
                if found.iter().map(|info| &info.id).eq(wanted.iter()));
            cell.require(right, || {
                format!("the token finds {}", crate::shown(record))
            })
        }
        (_, Got::Instances(infos)) => {
            for info in infos {
                let Some(truth) = find(&seen.instances, Some(&info.id)) else {
                    return Err(
                        cell.violated(format!("it returned {}, which is not there", info.id))
                    );
                };
                let same = info.tags == truth.info.tags || truth.info.tags.contains_all(&info.tags);
                let right = same
                    && info.instance_type == truth.info.instance_type
                    && info.image == truth.info.image;
                let right = right && cell.target.ids.get(item).is_none_or(|id| *id == info.id);
                cell.require(right, || {
                    format!("it returned {} with other content", crate::shown(info))
                })?;
            }
            Ok(())
        }
        (_, Got::Account(account)) => cell.require(*account == cell.target.account, || {
            let name = |account: &Option<AccountId>| {
                let name = account.as_ref().map(ToString::to_string);
                name.unwrap_or_else(|| "none".to_owned())
            };
            let (shown, wanted) = (name(account), name(&cell.target.account));
            format!("it returned the account {shown} instead of {wanted}")
        }),
        (_, Got::Done | Got::Status(_) | Got::Record(_) | Got::Image(_)) => Ok(()),
    }
}

fn described(
    cell: &Cell<'_>,
    status: &InstanceStatus,
    truth: &InstanceInfo,
) -> Result<(), Failure> {
    let right = status.id == truth.id
        && status.state == truth.state
        && (truth.private_ip.is_none() || status.private_ip == truth.private_ip)
        && (truth.public_ip.is_none() || status.public_ip == truth.public_ip);
    cell.require(right, || {
        format!(
            "it returned {} for {}, which is {}",
            crate::shown::details(&Ok(status.clone())),
            truth.id,
            truth.state
        )
    })
}

/// Requires that a list has every instance that lived before and after it, and each once.
fn listed(cell: &Cell<'_>, list: &[InstanceInfo], seen: &Seen) -> Result<(), Failure> {
    let ids: BTreeSet<_> = list.iter().map(|info| &info.id).collect();
    cell.require(ids.len() == list.len(), || {
        "an item is listed twice".to_owned()
    })?;
    let before = cell.before.instances.iter();
    for truth in before.filter(|truth| !truth.info.state.is_ending()) {
        let now = find(&seen.instances, Some(&truth.info.id));
        let lives = now.is_some_and(|now| !now.info.state.is_ending());
        cell.require(!lives || ids.contains(&truth.info.id), || {
            format!("{} is not in the list", truth.info.id)
        })?;
    }
    // A read within the consistency window may show an instance that is gone, so only the filter decides.
    match list.iter().find(|info| !cell.target.filter.matches(info)) {
        Some(info) => Err(cell.violated(format!("{} is listed against the filter", info.id))),
        None => Ok(()),
    }
}
