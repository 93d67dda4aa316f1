//! The calls of the trait by name, for errors, traces, metrics and fault rules.
//!
//! Owns their frozen names and which of them only read.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::OptionalVerb;

/// A call of [`InstanceProvisioner`](crate::InstanceProvisioner), as in errors, traces and metrics.
///
/// ```
/// use fleetwright::Operation;
///
/// assert_eq!(Operation::LaunchInstance.as_str(), "launch_instance");
/// assert!(Operation::ListInstances.is_read() && !Operation::StopInstance.is_read());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "each is the trait's method of the same name")]
pub enum Operation {
    LaunchInstance,
    LaunchInstances,
    TerminateInstance,
    TerminateInstances,
    StopInstance,
    StopInstances,
    StartInstance,
    StartInstances,
    DescribeInstance,
    DescribeInstances,
    ListInstances,
    StreamInstances,
    FindLaunch,
    UpdateTags,
    RebootInstance,
    ResizeInstance,
    ReimageInstance,
    ConsoleOutput,
    ConsoleSession,
    SnapshotImage,
}

impl Operation {
    /// All calls.
    pub const ALL: [Self; 20] = [
        Self::LaunchInstance,
        Self::LaunchInstances,
        Self::TerminateInstance,
        Self::TerminateInstances,
        Self::StopInstance,
        Self::StopInstances,
        Self::StartInstance,
        Self::StartInstances,
        Self::DescribeInstance,
        Self::DescribeInstances,
        Self::ListInstances,
        Self::StreamInstances,
        Self::FindLaunch,
        Self::UpdateTags,
        Self::RebootInstance,
        Self::ResizeInstance,
        Self::ReimageInstance,
        Self::ConsoleOutput,
        Self::ConsoleSession,
        Self::SnapshotImage,
    ];

    /// Returns the method's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LaunchInstance => "launch_instance",
            Self::LaunchInstances => "launch_instances",
            Self::TerminateInstance => "terminate_instance",
            Self::TerminateInstances => "terminate_instances",
            Self::StopInstance => "stop_instance",
            Self::StopInstances => "stop_instances",
            Self::StartInstance => "start_instance",
            Self::StartInstances => "start_instances",
            Self::DescribeInstance => "describe_instance",
            Self::DescribeInstances => "describe_instances",
            Self::ListInstances => "list_instances",
            Self::StreamInstances => "stream_instances",
            Self::FindLaunch => "find_launch",
            Self::UpdateTags => "update_tags",
            Self::RebootInstance => "reboot_instance",
            Self::ResizeInstance => "resize_instance",
            Self::ReimageInstance => "reimage_instance",
            Self::ConsoleOutput => "console_output",
            Self::ConsoleSession => "console_session",
            Self::SnapshotImage => "snapshot_image",
        }
    }

    /// Returns whether the call only reads. A read has no effect, whatever its outcome.
    pub const fn is_read(self) -> bool {
        match self {
            Self::DescribeInstance
            | Self::DescribeInstances
            | Self::ListInstances
            | Self::StreamInstances
            | Self::FindLaunch
            | Self::ConsoleOutput => true,
            Self::LaunchInstance
            | Self::LaunchInstances
            | Self::TerminateInstance
            | Self::TerminateInstances
            | Self::StopInstance
            | Self::StopInstances
            | Self::StartInstance
            | Self::StartInstances
            | Self::UpdateTags
            | Self::RebootInstance
            | Self::ResizeInstance
            | Self::ReimageInstance
            | Self::ConsoleSession
            | Self::SnapshotImage => false,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<OptionalVerb> for Operation {
    fn from(verb: OptionalVerb) -> Self {
        match verb {
            OptionalVerb::UpdateTags => Self::UpdateTags,
            OptionalVerb::RebootInstance => Self::RebootInstance,
            OptionalVerb::ResizeInstance => Self::ResizeInstance,
            OptionalVerb::ReimageInstance => Self::ReimageInstance,
            OptionalVerb::ConsoleOutput => Self::ConsoleOutput,
            OptionalVerb::ConsoleSession => Self::ConsoleSession,
            OptionalVerb::SnapshotImage => Self::SnapshotImage,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_the_name_of_its_method() {
        for operation in Operation::ALL {
            let name = operation.as_str();
            assert_eq!(serde_json::to_value(operation).unwrap(), name);
            assert_eq!(operation.to_string(), name);
        }
        for verb in OptionalVerb::ALL {
            let name = serde_json::to_value(verb).unwrap();
            assert_eq!(name, Operation::from(verb).as_str());
        }
    }

    #[test]
    fn reads_are_fixed() {
        let reads: Vec<_> = Operation::ALL
            .iter()
            .filter(|op| op.is_read())
            .map(|op| op.as_str())
            .collect();
        assert_eq!(
            reads.join(" "),
            "describe_instance describe_instances list_instances stream_instances find_launch console_output"
        );
    }
}
