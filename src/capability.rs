//! What a backend can do, as flags and numbers.
//!
//! Owns the declaration that callers plan by and the contract kit tests by. It never changes during
//! the life of a handle, and it is asked of the handle, not kept in a table elsewhere.

use std::{collections::BTreeSet, num::NonZeroUsize, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{PlacementField, TagLimits};

/// What a backend declares. The contract kit holds it to every word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Capabilities {
    /// The backend's short name: `memory`, `ec2`. It stands in every error.
    pub provider: String,
    /// For how long after a change a read may still show what was before it. Only past it is
    /// "not found" proof of absence.
    pub consistency_window: Duration,
    /// For how long after its last instance was terminated a launch token is remembered. Within
    /// it a replay never launches; zero where the cloud forgets at once.
    pub token_after_terminate: Duration,
    /// For how long a terminated instance can still be described.
    pub terminated_visible: Duration,
    /// Whether a list that asks for terminated instances shows them, for as long as they can be described.
    pub terminated_listed: bool,
    /// What the cloud can hold of a caller's tags.
    pub tags: TagLimits,
    /// The largest user data, in bytes before any encoding.
    pub max_user_data_bytes: usize,
    /// The most instances in one page of a list: what one native call brings at best.
    pub page_size: NonZeroUsize,
    /// The most ids in one native batch call; larger batches of ids are cut into several. A launch
    /// is never cut, so that it stays one unit.
    pub batch_size: NonZeroUsize,
    /// What a batch launch does when only a part can be had.
    pub batch_launch: BatchLaunch,
    /// The shortest sensible time between two polls.
    pub poll_interval: Duration,
    /// The fields of a placement that are offered.
    pub placement: BTreeSet<PlacementField>,
    /// The optional verbs that work. All others are refused as unsupported, without effect.
    pub verbs: BTreeSet<OptionalVerb>,
}

impl Capabilities {
    /// The weakest sensible declaration, for a backend to raise field by field: reads are
    /// consistent, tokens and terminated instances are forgotten at once, no placement field and
    /// no optional verb is offered, one item at a time.
    pub fn new(provider: impl Into<String>, tags: TagLimits, max_user_data_bytes: usize) -> Self {
        Self {
            provider: provider.into(),
            consistency_window: Duration::ZERO,
            token_after_terminate: Duration::ZERO,
            terminated_visible: Duration::ZERO,
            terminated_listed: false,
            tags,
            max_user_data_bytes,
            page_size: NonZeroUsize::MIN,
            batch_size: NonZeroUsize::MIN,
            batch_launch: BatchLaunch::Partial,
            poll_interval: Duration::from_secs(1),
            placement: BTreeSet::new(),
            verbs: BTreeSet::new(),
        }
    }

    /// Whether `verb` is declared.
    pub fn supports(&self, verb: OptionalVerb) -> bool {
        self.verbs.contains(&verb)
    }
}

/// What a batch launch does when only a part of it can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BatchLaunch {
    /// Nothing is launched and the call fails.
    AllOrNothing,
    /// The call fails and its error carries those that were launched.
    Partial,
}

/// A verb that a backend may leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionalVerb {
    /// [`update_tags`](crate::InstanceProvisioner::update_tags)
    UpdateTags,
    /// [`reboot_instance`](crate::InstanceProvisioner::reboot_instance)
    RebootInstance,
    /// [`resize_instance`](crate::InstanceProvisioner::resize_instance)
    ResizeInstance,
    /// [`reimage_instance`](crate::InstanceProvisioner::reimage_instance)
    ReimageInstance,
    /// [`console_output`](crate::InstanceProvisioner::console_output)
    ConsoleOutput,
    /// [`console_session`](crate::InstanceProvisioner::console_session)
    ConsoleSession,
    /// [`snapshot_image`](crate::InstanceProvisioner::snapshot_image)
    SnapshotImage,
}

impl OptionalVerb {
    /// Every optional verb.
    pub const ALL: [Self; 7] = [
        Self::UpdateTags,
        Self::RebootInstance,
        Self::ResizeInstance,
        Self::ReimageInstance,
        Self::ConsoleOutput,
        Self::ConsoleSession,
        Self::SnapshotImage,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_declaration_promises_nothing() {
        let mut declared = Capabilities::new("x", TagLimits::new(1, 2, 3), 4);
        assert!(
            OptionalVerb::ALL
                .into_iter()
                .all(|verb| !declared.supports(verb))
        );
        declared.verbs.insert(OptionalVerb::UpdateTags);
        assert!(declared.supports(OptionalVerb::UpdateTags));
        assert!(!declared.supports(OptionalVerb::ConsoleOutput));
        let json = serde_json::to_string(&declared).unwrap();
        assert_eq!(
            serde_json::from_str::<Capabilities>(&json).unwrap(),
            declared
        );
    }
}
