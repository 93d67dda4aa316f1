//! The actions that the emulator supports.

use serde::{Deserialize, Serialize};

use super::service::Service;

/// Defines [`Action`] with its list and its names, so that each action is written once.
macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident,)+) => {
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
            $($(#[$doc])* $name,)+
        }

        impl Action {
            /// All actions, sorted by name.
            pub const ALL: [Self; [$(stringify!($name)),+].len()] = [$(Self::$name),+];

            /// Returns the name on the wire, which fault rules and call counts use.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }
        }
    };
}

actions! {
    /// Allocates an elastic address.
    AllocateAddress,
    /// Associates an elastic address with an instance.
    AssociateAddress,
    /// Attaches a volume to an instance.
    AttachVolume,
    /// Adds rules for outgoing packets to a security group.
    AuthorizeSecurityGroupEgress,
    /// Adds rules for incoming packets to a security group.
    AuthorizeSecurityGroupIngress,
    /// Cancels requests for spot instances.
    CancelSpotInstanceRequests,
    /// Creates an image of an instance.
    CreateImage,
    /// Creates a key pair.
    CreateKeyPair,
    /// Creates a security group.
    CreateSecurityGroup,
    /// Creates a subnet.
    CreateSubnet,
    /// Adds and replaces tags.
    CreateTags,
    /// Creates a volume.
    CreateVolume,
    /// Creates a VPC.
    CreateVpc,
    /// Deletes a key pair.
    DeleteKeyPair,
    /// Deletes a security group.
    DeleteSecurityGroup,
    /// Deletes a snapshot.
    DeleteSnapshot,
    /// Deletes a subnet.
    DeleteSubnet,
    /// Removes tags.
    DeleteTags,
    /// Deletes a volume.
    DeleteVolume,
    /// Deletes a VPC.
    DeleteVpc,
    /// Deletes an image.
    DeregisterImage,
    /// Lists the attributes of the account.
    DescribeAccountAttributes,
    /// Lists elastic addresses.
    DescribeAddresses,
    /// Lists the domain names of elastic addresses: none has one.
    DescribeAddressesAttribute,
    /// Lists the zones.
    DescribeAvailabilityZones,
    /// Returns one attribute of an image.
    DescribeImageAttribute,
    /// Lists images.
    DescribeImages,
    /// Returns one attribute of an instance.
    DescribeInstanceAttribute,
    /// Lists how instances spend CPU credits.
    DescribeInstanceCreditSpecifications,
    /// Lists the status checks of instances.
    DescribeInstanceStatus,
    /// Lists where instance types are offered.
    DescribeInstanceTypeOfferings,
    /// Lists the instance types.
    DescribeInstanceTypes,
    /// Lists instances.
    DescribeInstances,
    /// Lists key pairs.
    DescribeKeyPairs,
    /// Lists network ACLs: one for each VPC.
    DescribeNetworkAcls,
    /// Lists network interfaces.
    DescribeNetworkInterfaces,
    /// Lists the regions: one.
    DescribeRegions,
    /// Lists route tables: one for each VPC.
    DescribeRouteTables,
    /// Lists the rules of security groups.
    DescribeSecurityGroupRules,
    /// Lists security groups.
    DescribeSecurityGroups,
    /// Lists snapshots.
    DescribeSnapshots,
    /// Lists requests for spot instances.
    DescribeSpotInstanceRequests,
    /// Lists subnets.
    DescribeSubnets,
    /// Lists tags.
    DescribeTags,
    /// Lists volumes.
    DescribeVolumes,
    /// Lists the changes of volumes.
    DescribeVolumesModifications,
    /// Returns one attribute of a VPC.
    DescribeVpcAttribute,
    /// Lists VPCs.
    DescribeVpcs,
    /// Detaches a volume.
    DetachVolume,
    /// Ends the association of an elastic address.
    DisassociateAddress,
    /// Returns the account of the caller: an action of STS.
    GetCallerIdentity,
    /// Returns the console output of an instance.
    GetConsoleOutput,
    /// Imports a public key.
    ImportKeyPair,
    /// Changes one attribute of an instance.
    ModifyInstanceAttribute,
    /// Changes how instances spend CPU credits.
    ModifyInstanceCreditSpecification,
    /// Changes the metadata service of an instance.
    ModifyInstanceMetadataOptions,
    /// Changes one attribute of a network interface.
    ModifyNetworkInterfaceAttribute,
    /// Changes one attribute of a subnet.
    ModifySubnetAttribute,
    /// Changes the size or the type of a volume.
    ModifyVolume,
    /// Changes one attribute of a VPC.
    ModifyVpcAttribute,
    /// Enables the detailed monitoring of instances.
    MonitorInstances,
    /// Reboots instances.
    RebootInstances,
    /// Releases an elastic address.
    ReleaseAddress,
    /// Removes rules for outgoing packets of a security group.
    RevokeSecurityGroupEgress,
    /// Removes rules for incoming packets of a security group.
    RevokeSecurityGroupIngress,
    /// Launches instances.
    RunInstances,
    /// Starts stopped instances.
    StartInstances,
    /// Stops instances.
    StopInstances,
    /// Terminates instances.
    TerminateInstances,
    /// Disables the detailed monitoring of instances.
    UnmonitorInstances,
}

impl Action {
    /// Returns the service that has the action.
    pub(crate) const fn service(self) -> Service {
        if matches!(self, Self::GetCallerIdentity) {
            Service::Sts
        } else {
            Service::Ec2
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
