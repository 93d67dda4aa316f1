//! The actions that the emulator supports.

use serde::{Deserialize, Serialize};

use super::service::Service;

/// An action of EC2's API, or the one of STS that clients of EC2 need. In JSON it is its name.
///
/// ```
/// use fleetwright_emulators::ec2::Action;
/// assert_eq!(Action::RunInstances.name(), "RunInstances");
/// assert_eq!(Action::from_name("RunInstances"), Some(Action::RunInstances));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Action {
    /// Creates an image of an instance.
    CreateImage,
    /// Adds and replaces tags.
    CreateTags,
    /// Deletes a snapshot.
    DeleteSnapshot,
    /// Removes tags.
    DeleteTags,
    /// Deletes an image.
    DeregisterImage,
    /// Lists elastic addresses: always empty.
    DescribeAddresses,
    /// Lists the zones.
    DescribeAvailabilityZones,
    /// Lists images.
    DescribeImages,
    /// Returns one attribute of an instance.
    DescribeInstanceAttribute,
    /// Lists the status checks of instances.
    DescribeInstanceStatus,
    /// Lists the instance types.
    DescribeInstanceTypes,
    /// Lists instances.
    DescribeInstances,
    /// Lists network interfaces.
    DescribeNetworkInterfaces,
    /// Lists security groups.
    DescribeSecurityGroups,
    /// Lists snapshots.
    DescribeSnapshots,
    /// Lists subnets.
    DescribeSubnets,
    /// Lists tags.
    DescribeTags,
    /// Lists volumes.
    DescribeVolumes,
    /// Returns the account of the caller: an action of STS.
    GetCallerIdentity,
    /// Returns the console output of an instance.
    GetConsoleOutput,
    /// Changes one attribute of an instance.
    ModifyInstanceAttribute,
    /// Reboots instances.
    RebootInstances,
    /// Launches instances.
    RunInstances,
    /// Starts stopped instances.
    StartInstances,
    /// Stops instances.
    StopInstances,
    /// Terminates instances.
    TerminateInstances,
}

impl Action {
    /// All actions, sorted by name.
    pub const ALL: [Self; 26] = [
        Self::CreateImage,
        Self::CreateTags,
        Self::DeleteSnapshot,
        Self::DeleteTags,
        Self::DeregisterImage,
        Self::DescribeAddresses,
        Self::DescribeAvailabilityZones,
        Self::DescribeImages,
        Self::DescribeInstanceAttribute,
        Self::DescribeInstanceStatus,
        Self::DescribeInstanceTypes,
        Self::DescribeInstances,
        Self::DescribeNetworkInterfaces,
        Self::DescribeSecurityGroups,
        Self::DescribeSnapshots,
        Self::DescribeSubnets,
        Self::DescribeTags,
        Self::DescribeVolumes,
        Self::GetCallerIdentity,
        Self::GetConsoleOutput,
        Self::ModifyInstanceAttribute,
        Self::RebootInstances,
        Self::RunInstances,
        Self::StartInstances,
        Self::StopInstances,
        Self::TerminateInstances,
    ];

    /// Returns the name on the wire, which fault rules and call counts use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CreateImage => "CreateImage",
            Self::CreateTags => "CreateTags",
            Self::DeleteSnapshot => "DeleteSnapshot",
            Self::DeleteTags => "DeleteTags",
            Self::DeregisterImage => "DeregisterImage",
            Self::DescribeAddresses => "DescribeAddresses",
            Self::DescribeAvailabilityZones => "DescribeAvailabilityZones",
            Self::DescribeImages => "DescribeImages",
            Self::DescribeInstanceAttribute => "DescribeInstanceAttribute",
            Self::DescribeInstanceStatus => "DescribeInstanceStatus",
            Self::DescribeInstanceTypes => "DescribeInstanceTypes",
            Self::DescribeInstances => "DescribeInstances",
            Self::DescribeNetworkInterfaces => "DescribeNetworkInterfaces",
            Self::DescribeSecurityGroups => "DescribeSecurityGroups",
            Self::DescribeSnapshots => "DescribeSnapshots",
            Self::DescribeSubnets => "DescribeSubnets",
            Self::DescribeTags => "DescribeTags",
            Self::DescribeVolumes => "DescribeVolumes",
            Self::GetCallerIdentity => "GetCallerIdentity",
            Self::GetConsoleOutput => "GetConsoleOutput",
            Self::ModifyInstanceAttribute => "ModifyInstanceAttribute",
            Self::RebootInstances => "RebootInstances",
            Self::RunInstances => "RunInstances",
            Self::StartInstances => "StartInstances",
            Self::StopInstances => "StopInstances",
            Self::TerminateInstances => "TerminateInstances",
        }
    }

    /// Returns the service that has the action.
    pub(crate) const fn service(self) -> Service {
        match self {
            Self::GetCallerIdentity => Service::Sts,
            Self::CreateImage
            | Self::CreateTags
            | Self::DeleteSnapshot
            | Self::DeleteTags
            | Self::DeregisterImage
            | Self::DescribeAddresses
            | Self::DescribeAvailabilityZones
            | Self::DescribeImages
            | Self::DescribeInstanceAttribute
            | Self::DescribeInstanceStatus
            | Self::DescribeInstanceTypes
            | Self::DescribeInstances
            | Self::DescribeNetworkInterfaces
            | Self::DescribeSecurityGroups
            | Self::DescribeSnapshots
            | Self::DescribeSubnets
            | Self::DescribeTags
            | Self::DescribeVolumes
            | Self::GetConsoleOutput
            | Self::ModifyInstanceAttribute
            | Self::RebootInstances
            | Self::RunInstances
            | Self::StartInstances
            | Self::StopInstances
            | Self::TerminateInstances => Service::Ec2,
        }
    }

    /// Returns the action with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_lead_back() {
        assert!(Action::ALL.is_sorted_by_key(|action| action.name()));
        for action in Action::ALL {
            assert_eq!(Action::from_name(action.name()), Some(action));
        }
        assert_eq!(Action::from_name("runinstances"), None);
    }
}
