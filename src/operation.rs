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
pub enum Operation {
    /// [`launch_instance`](crate::InstanceProvisioner::launch_instance): launches one instance. Idempotent with a token.
    LaunchInstance,
    /// [`launch_instances`](crate::InstanceProvisioner::launch_instances): launches a batch. Idempotent with a token.
    LaunchInstances,
    /// [`terminate_instance`](crate::InstanceProvisioner::terminate_instance): destroys one instance.
    TerminateInstance,
    /// [`terminate_instances`](crate::InstanceProvisioner::terminate_instances): destroys many instances.
    TerminateInstances,
    /// [`stop_instance`](crate::InstanceProvisioner::stop_instance): stops one instance.
    StopInstance,
    /// [`stop_instances`](crate::InstanceProvisioner::stop_instances): stops many instances.
    StopInstances,
    /// [`start_instance`](crate::InstanceProvisioner::start_instance): starts one instance.
    StartInstance,
    /// [`start_instances`](crate::InstanceProvisioner::start_instances): starts many instances.
    StartInstances,
    /// [`describe_instance`](crate::InstanceProvisioner::describe_instance): reads the status of one instance.
    DescribeInstance,
    /// [`describe_instances`](crate::InstanceProvisioner::describe_instances): reads the status of many instances.
    DescribeInstances,
    /// [`list_instances`](crate::InstanceProvisioner::list_instances): lists instances, complete or with an error.
    ListInstances,
    /// [`stream_instances`](crate::InstanceProvisioner::stream_instances): lists instances page by page, with gaps.
    StreamInstances,
    /// [`find_launch`](crate::InstanceProvisioner::find_launch): looks a launch up by its token.
    FindLaunch,
    /// [`account_id`](crate::InstanceProvisioner::account_id): returns which instances the handle manages.
    AccountId,
    /// [`update_tags`](crate::InstanceProvisioner::update_tags): changes tags. Optional.
    UpdateTags,
    /// [`reboot_instance`](crate::InstanceProvisioner::reboot_instance): reboots an instance. Optional, and not idempotent.
    RebootInstance,
    /// [`resize_instance`](crate::InstanceProvisioner::resize_instance): changes the type of a stopped instance. Optional.
    ResizeInstance,
    /// [`reimage_instance`](crate::InstanceProvisioner::reimage_instance): replaces the root disk. Optional.
    ReimageInstance,
    /// [`console_output`](crate::InstanceProvisioner::console_output): reads the console output. Optional.
    ConsoleOutput,
    /// [`console_session`](crate::InstanceProvisioner::console_session): opens a console session. Optional.
    ConsoleSession,
    /// [`snapshot_image`](crate::InstanceProvisioner::snapshot_image): creates an image. Optional.
    SnapshotImage,
    /// [`delete_image`](crate::InstanceProvisioner::delete_image): deletes an image. Optional.
    DeleteImage,
}

impl Operation {
    /// All calls.
    pub const ALL: [Self; 22] = [
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
        Self::AccountId,
        Self::UpdateTags,
        Self::RebootInstance,
        Self::ResizeInstance,
        Self::ReimageInstance,
        Self::ConsoleOutput,
        Self::ConsoleSession,
        Self::SnapshotImage,
        Self::DeleteImage,
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
            Self::AccountId => "account_id",
            Self::UpdateTags => "update_tags",
            Self::RebootInstance => "reboot_instance",
            Self::ResizeInstance => "resize_instance",
            Self::ReimageInstance => "reimage_instance",
            Self::ConsoleOutput => "console_output",
            Self::ConsoleSession => "console_session",
            Self::SnapshotImage => "snapshot_image",
            Self::DeleteImage => "delete_image",
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
            | Self::AccountId
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
            | Self::SnapshotImage
            | Self::DeleteImage => false,
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
            OptionalVerb::DeleteImage => Self::DeleteImage,
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
            "describe_instance describe_instances list_instances stream_instances find_launch account_id console_output"
        );
    }
}
