//! Cleanup after runs that died: finds instances that the kit launched and nothing terminated.
//!
//! It only looks at instances with the kit's own tag, and spares young ones because a run may still be
//! using them. It terminates nothing unless the mode is [`CleanupMode::Apply`].

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use fleetwright::{
    ErrorKind, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, Result, Tags,
};

use crate::{OWNER_TAG, OWNER_VALUE};

/// Whether a cleanup terminates anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CleanupMode {
    /// Only report what would be terminated.
    #[default]
    DryRun,
    /// Terminate it.
    Apply,
}

/// What a cleanup found.
#[derive(Debug, Default)]
pub struct CleanupResult {
    /// Instances that are old enough to be terminated. With [`CleanupMode::Apply`], their termination
    /// was requested.
    pub leftovers: Vec<InstanceInfo>,
    /// Instances that are too young, or whose age is unknown: a run may be using them.
    pub kept: Vec<InstanceId>,
}

/// Finds instances that the kit launched at least `min_age` before `now`, and terminates them if the
/// mode says so.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_contract_tests::cleanup::{CleanupMode, cleanup};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> fleetwright::Result<()> {
/// let provisioner = fleetwright_memory::MemoryCloud::new().provisioner();
/// let two_hours = Duration::from_secs(7200);
/// let now = std::time::SystemTime::now().into();
/// let found = cleanup(&provisioner, CleanupMode::DryRun, two_hours, now).await?;
/// assert!(found.leftovers.is_empty());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the list is not complete, or if an instance cannot be terminated.
pub async fn cleanup<P: InstanceProvisioner + ?Sized>(
    provisioner: &P,
    mode: CleanupMode,
    min_age: Duration,
    now: DateTime<Utc>,
) -> Result<CleanupResult> {
    let mut filter = InstanceFilter::new();
    filter.tags = owner_tags();
    let mut result = CleanupResult::default();
    for info in provisioner.list_instances(&filter).await? {
        let is_old = info.launch_time.is_some_and(|at| {
            now.signed_duration_since(at) >= TimeDelta::from_std(min_age).unwrap_or(TimeDelta::MAX)
        });
        if is_old {
            result.leftovers.push(info);
        } else {
            result.kept.push(info.id);
        }
    }
    if mode == CleanupMode::Apply {
        let leftovers = result.leftovers.iter();
        let ids: Vec<_> = leftovers.map(|info| info.id.clone()).collect();
        for terminated in provisioner.terminate_instances(&ids).await {
            match terminated {
                // It disappeared in the meantime.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                terminated => terminated?,
            }
        }
    }
    Ok(result)
}

/// Returns the tag that everything the kit launches carries.
pub(crate) fn owner_tags() -> Tags {
    // Key and value are constants of this crate and not reserved.
    Tags::new().with(OWNER_TAG, OWNER_VALUE).unwrap_or_default()
}
