//! How far a call got, as the oracle has it.
//!
//! Owns the comparison of the cloud before and after a call. It reads no result of the backend.

use fleetwright::{CloudInstanceState, InstanceId};

use super::{
    cell::Cell,
    operations::{Change, Target},
};
use crate::{
    Failure, Truth,
    steady::{difference, differences},
};

/// How much of a call was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Nothing,
    Part,
    Whole,
}

impl Progress {
    /// Returns the progress in words that complete "the cloud carried out …".
    pub(super) const fn shown(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Part => "a part of it",
            Self::Whole => "all of it",
        }
    }
}

/// What the oracle has at one moment.
pub(super) struct Seen {
    pub(super) instances: Vec<Truth>,
    /// What exists of the cell's image, if the oracle can tell.
    pub(super) images: Option<Vec<String>>,
}

impl Seen {
    /// Reads the oracle.
    pub(super) async fn now(cx: &crate::Context, target: &Target) -> Result<Self, Failure> {
        let oracle = cx.oracle()?;
        Ok(Self {
            instances: oracle.instances(cx.scope()).await,
            images: oracle.images(&target.snapshot.tags).await,
        })
    }

    /// Returns how much of one item of a call was carried out. `None` if the oracle cannot tell.
    pub(super) fn progress(&self, cell: &Cell<'_>, item: usize) -> Option<Progress> {
        let whole = |whole| {
            if whole {
                Progress::Whole
            } else {
                Progress::Nothing
            }
        };
        let id = cell.target.ids.get(item);
        let now = find(&self.instances, id);
        let before = find(&cell.before.instances, id);
        Some(match cell.row.change {
            Change::Nothing | Change::Session => {
                let same = same_instances(&cell.before.instances, &self.instances, &cell.target);
                whole(!same)
            }
            Change::Launch(_) | Change::LaunchOnce => {
                let count = launched(&cell.target, &self.instances).len();
                match u32::try_from(count).unwrap_or(u32::MAX) {
                    0 => Progress::Nothing,
                    some if some < cell.row.change.launches() => Progress::Part,
                    _ => Progress::Whole,
                }
            }
            Change::Stop => match now?.info.state {
                CloudInstanceState::Stopping | CloudInstanceState::Stopped => Progress::Whole,
                CloudInstanceState::Pending | CloudInstanceState::Running => Progress::Nothing,
                CloudInstanceState::Terminating | CloudInstanceState::Terminated => Progress::Part,
            },
            Change::Start => match now?.info.state {
                CloudInstanceState::Pending | CloudInstanceState::Running => Progress::Whole,
                CloudInstanceState::Stopping | CloudInstanceState::Stopped => Progress::Nothing,
                CloudInstanceState::Terminating | CloudInstanceState::Terminated => Progress::Part,
            },
            Change::Terminate => whole(now.is_none_or(|now| now.info.state.is_ending())),
            Change::Tags => {
                let (tags, change) = (now?.info.tags, &cell.target.tags);
                let set = change.set.iter();
                let set = set.map(|(key, value)| tags.get(key) == Some(value));
                let removed = change.remove.iter();
                let had = |key: &&String| {
                    let before = before.as_ref();
                    before.is_some_and(|truth| truth.info.tags.get(key).is_some())
                };
                let removed = removed.filter(had).map(|key| tags.get(key).is_none());
                let parts: Vec<_> = set.chain(removed).collect();
                if parts.iter().all(|done| *done) {
                    Progress::Whole
                } else if parts.iter().any(|done| *done) {
                    Progress::Part
                } else {
                    Progress::Nothing
                }
            }
            Change::Boot => whole(now?.boots? > before?.boots?),
            Change::Type => whole(now?.info.instance_type? == cell.target.instance_type),
            Change::Image => whole(now?.info.image? == cell.target.image),
            Change::Snapshot => whole(!self.images.as_ref()?.is_empty()),
            Change::Deletion => {
                let (now, before) = (self.images.as_ref()?, cell.before.images.as_ref()?);
                if now.is_empty() {
                    Progress::Whole
                } else if now.len() < before.len() {
                    Progress::Part
                } else {
                    Progress::Nothing
                }
            }
        })
    }
}

/// Returns the truth about an instance.
pub(super) fn find(all: &[Truth], id: Option<&InstanceId>) -> Option<Truth> {
    all.iter().find(|truth| Some(&truth.info.id) == id).cloned()
}

/// Returns the instances that the launch of a cell left and that are not ending.
pub(super) fn launched(target: &Target, all: &[Truth]) -> Vec<InstanceId> {
    let ours = all
        .iter()
        .filter(|truth| truth.info.tags.contains_all(&target.config.tags));
    let live = ours.filter(|truth| !truth.info.state.is_ending());
    live.map(|truth| truth.info.id.clone()).collect()
}

/// Returns whether the instances of a read are the same, and there is no new one.
fn same_instances(before: &[Truth], now: &[Truth], target: &Target) -> bool {
    let known = |truth: &Truth| before.iter().any(|one| one.info.id == truth.info.id);
    let unchanged = |id: &InstanceId| match (find(before, Some(id)), find(now, Some(id))) {
        (Some(before), Some(now)) => changes(&before, &now).is_empty(),
        (before, now) => before.is_none() && now.is_none(),
    };
    now.iter().all(known) && target.ids.iter().all(unchanged)
}

/// Returns the differences between two reads of the oracle.
pub(super) fn changes(before: &Truth, now: &Truth) -> Vec<String> {
    let size = |truth: &Truth| truth.user_data.as_ref().map_or(0, Vec::len);
    let others = [
        difference("disk size", &before.disk_size_gb, &now.disk_size_gb),
        difference("machine", &before.holds_machine, &now.holds_machine),
        difference("number of boots", &before.boots, &now.boots),
    ];
    let mut changed = differences(&before.info, &now.info);
    changed.extend(others.into_iter().flatten());
    if before.user_data != now.user_data {
        let (before, now) = (size(before), size(now));
        changed.push(format!(
            "user data must be the {before} bytes of the launch and is {now} other bytes"
        ));
    }
    changed
}
