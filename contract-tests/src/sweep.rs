//! Cleaning up after runs that died: finds what the kit launched and nobody terminated.
//!
//! It looks at instances with the kit's own tag only, spares young ones because a run may be under
//! way, and does nothing but tell unless it is told to apply.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use fleetwright::{
    ErrorKind, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, Result, Tags,
};

use crate::{OWNER_TAG, OWNER_VALUE};

/// Whether a sweep only looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sweep {
    /// Tell what would be terminated.
    #[default]
    DryRun,
    /// Terminate it.
    Apply,
}

/// What a sweep found.
#[derive(Debug, Default)]
pub struct Swept {
    /// Old enough to be terminated, and where the sweep applies, terminated.
    pub leftovers: Vec<InstanceInfo>,
    /// Too young, or of unknown age: a run may be using them.
    pub spared: Vec<InstanceId>,
}

/// Finds what the kit launched and left behind for longer than `min_age`, and terminates it if told
/// to. Fails if the list is not complete, or if something cannot be terminated.
pub async fn sweep<P: InstanceProvisioner + ?Sized>(
    provisioner: &P,
    how: Sweep,
    min_age: Duration,
    now: DateTime<Utc>,
) -> Result<Swept> {
    let mut filter = InstanceFilter::new();
    filter.tags = owned();
    let mut swept = Swept::default();
    for info in provisioner.list_instances(&filter).await? {
        let old = info.launch_time.is_some_and(|at| {
            now.signed_duration_since(at) >= TimeDelta::from_std(min_age).unwrap_or(TimeDelta::MAX)
        });
        if old {
            swept.leftovers.push(info);
        } else {
            swept.spared.push(info.id);
        }
    }
    if how == Sweep::Apply {
        let ids: Vec<_> = swept.leftovers.iter().map(|info| info.id.clone()).collect();
        for answer in provisioner.terminate_instances(&ids).await {
            match answer {
                // It went by itself meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                answer => answer?,
            }
        }
    }
    Ok(swept)
}

/// The tag that everything the kit launches carries.
pub(crate) fn owned() -> Tags {
    // The key and the value are written in this crate and are no reserved ones.
    Tags::new().with(OWNER_TAG, OWNER_VALUE).unwrap_or_default()
}
