//! MATRIX-04: after a launch with a fault, its token finds what the cloud has, and a replay completes it.

use std::{collections::BTreeSet, num::NonZeroU32};

use fleetwright::{InstanceId, InstanceProvisionerExt as _, LaunchRecord, LaunchToken, Result};

use super::{
    cell::Cell,
    faults::What,
    operations::Got,
    properties::succeeded,
    truth::{Seen, launched},
};
use crate::Failure;

/// Judges a launch.
pub(super) async fn judge(cell: &Cell<'_>) -> Result<bool, Failure> {
    let count = usize::try_from(cell.row.change.launches()).unwrap_or(usize::MAX);
    cell.cx.wait_for_consistent_reads().await;
    let live = live(cell).await?;
    cell.require(live.len() <= count, || {
        format!("{count} were requested, and there are {}", live.len())
    })?;
    if let Some(Ok(Got::Instances(infos))) = cell.results.iter().flatten().next() {
        let returned: BTreeSet<_> = infos.iter().map(|info| info.id.clone()).collect();
        cell.require(returned == live && infos.len() == count, || {
            let (returned, live) = (crate::shown(&returned), crate::shown(&live));
            format!("it returned {returned}, and the cloud has {live}")
        })?;
    }
    let Some(token) = &cell.target.config.launch_token else {
        return Ok(succeeded(cell));
    };
    require_found(cell, token, &live).await?;
    let replay = cell.repeat().await;
    let replay =
        replay.map_err(|error| cell.violated(format!("a replay of the token failed: {error}")))?;
    let after = self::live(cell).await?;
    cell.require(after.len() == count && live.is_subset(&after), || {
        let (live, after) = (crate::shown(&live), crate::shown(&after));
        format!("there were {live}, and after a replay for {count} there are {after}")
    })?;
    for got in replay {
        if let Got::Instances(infos) = got {
            let returned: BTreeSet<_> = infos.into_iter().map(|info| info.id).collect();
            cell.require(returned == after, || {
                let (returned, after) = (crate::shown(&returned), crate::shown(&after));
                format!("a replay returned {returned}, and the cloud has {after}")
            })?;
        }
    }
    if live != after {
        cell.cx.wait_for_consistent_reads().await;
        require_found(cell, token, &after).await?;
    }
    Ok(true)
}

/// Returns the live instances of the launch.
async fn live(cell: &Cell<'_>) -> Result<BTreeSet<InstanceId>, Failure> {
    let seen = Seen::now(cell.cx, &cell.target).await?;
    Ok(launched(&cell.target, &seen.instances)
        .into_iter()
        .collect())
}

/// Requires that the token finds exactly the live instances. A dropped launch may still be carried out, so what exists after the lookup
/// counts for it, too.
async fn require_found(
    cell: &Cell<'_>,
    token: &LaunchToken,
    live: &BTreeSet<InstanceId>,
) -> Result<(), Failure> {
    let count = NonZeroU32::new(cell.row.change.launches()).unwrap_or(NonZeroU32::MIN);
    let found = cell.cx.provisioner().find_launches(token, count).await;
    let found = found.map_err(|error| cell.violated(format!("a lookup failed: {error}")))?;
    let ids: BTreeSet<_> = match &found {
        LaunchRecord::Found(infos) | LaunchRecord::Terminated(infos) => {
            let running = infos.iter().filter(|info| !info.state.is_ending());
            running.map(|info| info.id.clone()).collect()
        }
        LaunchRecord::NotFound => BTreeSet::new(),
    };
    let is_found =
        ids == *live || (cell.fault.what == What::Dropped && ids == self::live(cell).await?);
    cell.require(is_found, || {
        let (ids, live) = (crate::shown(&ids), crate::shown(live));
        format!("the token finds {ids}, and the cloud has {live}")
    })
}
