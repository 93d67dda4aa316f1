//! What is to be done next for an image. Pure.

use chrono::{DateTime, Utc};
use fleetwright_runtime::clock::later;

use super::SnapshotPolicy;
use crate::{
    catalog::{Image, ImageState, Origin},
    ids::RegionId,
};

/// What is to be done next for an image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Ask the cloud for it.
    Ask,
    /// Say that it is ready.
    Finish,
    /// Say that there will be none, and why.
    Fail(&'static str),
    /// ScanContext again then.
    Wait(DateTime<Utc>),
    /// Nothing: it is at its end, or somebody else's.
    Nothing,
}

impl Step {
    /// As metrics have it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Finish => "finish",
            Self::Fail(_) => "fail",
            Self::Wait(_) => "wait",
            Self::Nothing => "nothing",
        }
    }
}

/// What is to be done next for an image in a region.
pub fn decide(
    image: &Image,
    region: &RegionId,
    policy: &SnapshotPolicy,
    now: DateTime<Utc>,
) -> Step {
    let is_ours = match &image.origin {
        Origin::File => false,
        Origin::Made {
            region: made_in, ..
        } => made_in == region,
    };
    let Some(snapshot) = image.snapshot.as_ref().filter(|_| is_ours) else {
        return Step::Nothing;
    };
    match image.state {
        ImageState::Ready | ImageState::Failed => Step::Nothing,
        ImageState::Pending if image.retired => Step::Fail("it was retired before it was created"),
        ImageState::Pending => match snapshot.not_before {
            Some(date) if date > now => Step::Wait(date),
            Some(_) | None => Step::Ask,
        },
        ImageState::Creating => {
            let begun = snapshot.begun_at.unwrap_or(snapshot.asked_at);
            let ready = later(begun, policy.settling);
            if ready > now {
                Step::Wait(ready)
            } else {
                Step::Finish
            }
        }
    }
}
