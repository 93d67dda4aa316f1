//! The capabilities that a backend declares, as flags and numbers.
//!
//! Owns the declaration that callers use for planning and that the contract kit tests. It never
//! changes during the life of a handle. Read it from the handle; never keep a table of providers.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::{NonZeroU32, NonZeroUsize},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{NativeCost, Operation, PlacementField, TagLimits};

/// The capabilities and limits of a backend. The contract kit tests every field.
///
/// What callers read:
///
/// - [`consistency_window`](Self::consistency_window) before they conclude that an instance does not
///   exist, [`usual_lag`](Self::usual_lag()) where a wrong conclusion only costs another call, and
///   [`poll_interval`](Self::poll_interval) when they poll;
/// - [`late_failures`](Self::late_failures) to know how long a launch may still fail;
/// - [`token_after_terminate`](Self::token_after_terminate) to decide whether the attempt of each slot
///   must be stored;
/// - [`verbs`](Self::verbs) and [`placement`](Self::placement) before they offer an optional feature;
/// - [`tags`](Self::tags) and [`max_user_data_bytes`](Self::max_user_data_bytes) to check input early.
///
/// A backend's author starts with [`Capabilities::new`], sets the consistency window if reads can be
/// stale, and sets the fields in which the cloud does better.
///
/// ```
/// use std::time::Duration;
/// use fleetwright::{Capabilities, OptionalVerb, TagLimits};
///
/// let mut capabilities = Capabilities::new("my-cloud", TagLimits::new(50, 128, 256), 16 * 1024);
/// capabilities.consistency_window = Duration::from_secs(30);
/// capabilities.verbs.insert(OptionalVerb::UpdateTags);
/// assert!(capabilities.supports(OptionalVerb::UpdateTags));
/// assert!(!capabilities.supports(OptionalVerb::ResizeInstance));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Capabilities {
    /// The backend's short name, such as `memory` or `ec2`. Every error and every metric has it.
    pub provider: String,
    /// How long after a change a read may return data from before it. "Not found" proves absence only
    /// after this time. Default: zero.
    pub consistency_window: Duration,
    /// How long after a change reads usually still return data from before it, if that is less than the
    /// [consistency window](Self::consistency_window), which is the worst case. Read it with
    /// [`usual_lag`](Self::usual_lag()). Default: `None`, as long as the window.
    #[serde(default)]
    pub usual_lag: Option<Duration>,
    /// How long a launch token is remembered after its last instance was terminated. A replay within
    /// this time is refused as [spent](crate::ErrorKind::TokenSpent) and never launches. Default: zero,
    /// the cloud forgets at once.
    pub token_after_terminate: Duration,
    /// How long a terminated instance can be described. Default: zero.
    pub terminated_visible: Duration,
    /// Whether a list with a filter for terminated instances returns them, for as long as they can be
    /// described. Default: `false`.
    pub terminated_listed: bool,
    /// The limits of a caller's tags.
    pub tags: TagLimits,
    /// The largest user data, in bytes before encoding.
    pub max_user_data_bytes: usize,
    /// The most instances in one page of a list, which is one native call. [`NonZeroUsize::MAX`] says
    /// that there are no pages: a list is always one call. Default: 1.
    pub page_size: NonZeroUsize,
    /// The most ids in one native batch call. The backend splits larger batches, except launches, which
    /// stay one unit. Default: 1.
    pub batch_size: NonZeroUsize,
    /// How many native calls an operation needs, where it is not one for each
    /// [batch](Self::batch_size) of instances. The layer `Limit` counts them. Default:
    /// empty.
    #[serde(default)]
    pub native_costs: BTreeMap<Operation, NativeCost>,
    /// What happens when the cloud can launch only a part of a batch. Default:
    /// [`Partial`](BatchLaunch::Partial).
    pub batch_launch: BatchLaunch,
    /// The shortest useful time between two polls. Default: 1 s.
    pub poll_interval: Duration,
    /// How long after a launch returned it may still fail for lack of capacity or quota, because the cloud
    /// accepts launches before it has found a machine. A failed launch leaves its token free. Default:
    /// zero, such a launch is refused at once.
    #[serde(default)]
    pub late_failures: Duration,
    /// The supported fields of a placement. Default: none.
    pub placement: BTreeSet<PlacementField>,
    /// The supported optional calls. All others are refused as
    /// [unsupported](crate::ErrorKind::Unsupported), without effect. Default: none.
    pub verbs: BTreeSet<OptionalVerb>,
}

impl Capabilities {
    /// Creates the capabilities of a cloud with consistent reads and nothing else: it forgets tokens and
    /// terminated instances at once, and has no placement field, no optional call and one item per
    /// native call.
    ///
    /// Every promise but one is the weakest that can be declared. The exception is
    /// [`consistency_window`](Self::consistency_window): its weakest value would be endless, so the
    /// author of a backend whose reads can be stale must set it.
    pub fn new(provider: impl Into<String>, tags: TagLimits, max_user_data_bytes: usize) -> Self {
        Self {
            provider: provider.into(),
            consistency_window: Duration::ZERO,
            usual_lag: None,
            token_after_terminate: Duration::ZERO,
            terminated_visible: Duration::ZERO,
            terminated_listed: false,
            tags,
            max_user_data_bytes,
            page_size: NonZeroUsize::MIN,
            batch_size: NonZeroUsize::MIN,
            native_costs: BTreeMap::new(),
            batch_launch: BatchLaunch::Partial,
            poll_interval: Duration::from_secs(1),
            late_failures: Duration::ZERO,
            placement: BTreeSet::new(),
            verbs: BTreeSet::new(),
        }
    }

    /// Returns how long it is worth waiting for a read to show a change: the declared
    /// [lag](field@Self::usual_lag), and never more than the [consistency window](Self::consistency_window).
    ///
    /// A backend waits this long in a call before it returns what reads show, and so does a caller for
    /// whom stale data costs only another call. It proves nothing: what must not happen twice, such as
    /// a launch, waits for the consistency window.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fleetwright::{Capabilities, TagLimits};
    ///
    /// let mut capabilities = Capabilities::new("my-cloud", TagLimits::new(50, 128, 256), 16 * 1024);
    /// capabilities.consistency_window = Duration::from_secs(300);
    /// assert_eq!(capabilities.usual_lag(), Duration::from_secs(300));
    /// capabilities.usual_lag = Some(Duration::from_secs(20));
    /// assert_eq!(capabilities.usual_lag(), Duration::from_secs(20));
    /// ```
    pub fn usual_lag(&self) -> Duration {
        let window = self.consistency_window;
        self.usual_lag.map_or(window, |lag| lag.min(window))
    }

    /// Returns how many native calls a call of `operation` for so many instances needs, at least one:
    /// the [declared](Self::native_costs) number, or one for each [batch](Self::batch_size).
    pub fn native_calls(&self, operation: Operation, instances: usize) -> NonZeroU32 {
        let declared = self.native_costs.get(&operation).copied();
        let cost = declared.unwrap_or(NativeCost::per_chunk(1, self.batch_size));
        cost.native_calls(instances)
    }

    /// Returns whether the optional call `verb` is supported.
    pub fn supports(&self, verb: OptionalVerb) -> bool {
        self.verbs.contains(&verb)
    }
}

/// What happens when the cloud can launch only a part of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BatchLaunch {
    /// The call fails and nothing is launched.
    AllOrNothing,
    /// The call fails, and its error [carries](crate::ProvisionError::survivors) the instances that
    /// were launched.
    Partial,
}

/// A call that a backend need not support.
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
    /// [`delete_image`](crate::InstanceProvisioner::delete_image)
    DeleteImage,
}

impl OptionalVerb {
    /// All optional calls.
    pub const ALL: [Self; 8] = [
        Self::UpdateTags,
        Self::RebootInstance,
        Self::ResizeInstance,
        Self::ReimageInstance,
        Self::ConsoleOutput,
        Self::ConsoleSession,
        Self::SnapshotImage,
        Self::DeleteImage,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_capabilities_support_nothing_optional() {
        let mut declared = Capabilities::new("x", TagLimits::new(1, 2, 3), 4);
        assert!(
            OptionalVerb::ALL
                .into_iter()
                .all(|verb| !declared.supports(verb))
        );
        declared.verbs.insert(OptionalVerb::UpdateTags);
        assert!(declared.supports(OptionalVerb::UpdateTags));
        assert!(!declared.supports(OptionalVerb::ConsoleOutput));
        declared.usual_lag = Some(Duration::from_secs(2));
        assert_eq!(declared.usual_lag(), Duration::ZERO);
        declared.consistency_window = Duration::from_secs(9);
        assert_eq!(declared.usual_lag(), Duration::from_secs(2));
        let describe = Operation::DescribeInstances;
        assert_eq!(declared.native_calls(describe, 7).get(), 7);
        let cost = NativeCost::constant(2);
        declared.native_costs.insert(describe, cost);
        assert_eq!(declared.native_calls(describe, 7).get(), 2);
        let json = serde_json::to_string(&declared).unwrap();
        assert_eq!(
            serde_json::from_str::<Capabilities>(&json).unwrap(),
            declared
        );
    }
}
