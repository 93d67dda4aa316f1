//! The decision of the image controller. Pure.

use chrono::{DateTime, Utc};
use fleetwright_runtime::clock::later;

use super::SnapshotPolicy;
use crate::{
    catalog::{Image, ImageState, Origin},
    ids::RegionId,
};

/// The next step for an image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Request the image from the cloud.
    Create,
    /// Mark it as ready.
    Finish,
    /// Delete it at the cloud, and then its record.
    Delete,
    /// Mark it as failed, with the reason.
    Fail(&'static str),
    /// Reconcile again at this date.
    Wait(DateTime<Utc>),
    /// Nothing: it is finished, or belongs to another region.
    Nothing,
}

impl Step {
    /// Returns the name in logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Finish => "finish",
            Self::Delete => "delete",
            Self::Fail(_) => "fail",
            Self::Wait(_) => "wait",
            Self::Nothing => "nothing",
        }
    }
}

/// Returns the next step for an image in a region.
pub fn decide(
    image: &Image,
    region: &RegionId,
    policy: &SnapshotPolicy,
    now: DateTime<Utc>,
) -> Step {
    let is_ours = match &image.origin {
        Origin::File => false,
        Origin::Snapshot {
            region: created_in, ..
        } => created_in == region,
    };
    let Some(snapshot) = image.snapshot.as_ref().filter(|_| is_ours) else {
        return Step::Nothing;
    };
    match image.state {
        ImageState::Ready | ImageState::Failed => Step::Nothing,
        ImageState::Pending if image.retired => Step::Fail("it was retired before it was created"),
        ImageState::Pending => match snapshot.not_before {
            // A later date is from before a clock was set back.
            Some(date) if date > now && date <= later(now, policy.longest_delay()) => {
                Step::Wait(date)
            }
            Some(_) | None => Step::Create,
        },
        ImageState::Deleting => match snapshot.not_before {
            Some(date) if date > now && date <= later(now, policy.longest_delay()) => {
                Step::Wait(date)
            }
            Some(_) | None => Step::Delete,
        },
        ImageState::Creating => {
            let started = snapshot.started_at.unwrap_or(snapshot.requested_at);
            let ready = later(started, policy.ready_after);
            if ready > now && started <= now {
                Step::Wait(ready)
            } else {
                Step::Finish
            }
        }
    }
}
