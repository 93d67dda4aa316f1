//! The members of the documents that the engine keeps as they are: resource groups, networks,
//! security groups, snapshots and SSH keys.
//!
//! Owns their tables, which have every member of the models of the packages azure-mgmt-compute
//! 39.0.0 and azure-mgmt-network 33.1.0.

use serde_json::Value;

use super::{
    body::without_nulls,
    id::Kind,
    request::Request,
    schema::{Member, Others, Treatment, apply},
};
use crate::azure::error::Refusal;

/// A member that is stored and returned.
const KEPT: Treatment = Treatment::Kept;
/// A member that only the cloud writes.
const READ: Treatment = Treatment::ReadOnly;
/// A member that is not emulated.
const NONE: Treatment = Treatment::NotEmulated(&[]);

/// Reads the document of a request.
///
/// # Errors
///
/// 400 `InvalidRequestContent` without a JSON object, 400 `BadRequest` for an unknown member, 400
/// `NotSupported` for one that is not emulated.
pub(crate) fn read(request: &Request, kind: Kind) -> Result<Value, Refusal> {
    let members = match kind {
        Kind::ResourceGroup => RESOURCE_GROUP,
        Kind::VirtualNetwork => NETWORK,
        Kind::SecurityGroup => SECURITY_GROUP,
        Kind::Snapshot => SNAPSHOT,
        Kind::SshKey => SSH_KEY,
        Kind::VirtualMachine | Kind::Disk | Kind::Image | Kind::Nic | Kind::PublicIp => &[],
    };
    read_members(request, members)
}

/// Reads the document of a subnet, or of a rule of a network security group. Errors as in [`read`].
pub(crate) fn read_part(request: &Request, subnet: bool) -> Result<Value, Refusal> {
    read_members(request, if subnet { SUBNET } else { RULE })
}

/// Reads a document with these members.
fn read_members(request: &Request, members: &'static [Member]) -> Result<Value, Refusal> {
    let body = request.body.clone().filter(Value::is_object);
    let Some(body) = body else {
        return Err(Refusal::content("the document is not an object"));
    };
    let mut body = without_nulls(body);
    apply(&mut body, members, Others::Refused, "")?;
    Ok(body)
}

/// The members of a resource group.
const RESOURCE_GROUP: &[Member] = &[
    Member("id", READ),
    Member("location", KEPT),
    Member("managedBy", KEPT),
    Member("name", READ),
    Member(
        "properties",
        Treatment::Object(&[Member("provisioningState", READ)]),
    ),
    Member("tags", KEPT),
    Member("type", READ),
];

/// The members of a virtual network.
const NETWORK: &[Member] = &[
    Member("etag", READ),
    Member("extendedLocation", NONE),
    Member("id", READ),
    Member("location", KEPT),
    Member("name", READ),
    Member("properties", Treatment::Object(NETWORK_PROPERTIES)),
    Member("tags", KEPT),
    Member("type", READ),
];

/// The properties of a virtual network.
const NETWORK_PROPERTIES: &[Member] = &[
    Member(
        "addressSpace",
        Treatment::Object(&[
            Member("addressPrefixes", KEPT),
            Member("ipamPoolPrefixAllocations", NONE),
        ]),
    ),
    Member("bgpCommunities", NONE),
    Member("ddosProtectionPlan", NONE),
    Member("defaultPublicNatGateway", READ),
    Member("dhcpOptions", KEPT),
    Member("enableDdosProtection", NONE),
    Member("enableVmProtection", NONE),
    Member("encryption", Treatment::NotEmulated(&["AllowUnencrypted"])),
    Member("flowLogs", READ),
    Member("flowTimeoutInMinutes", KEPT),
    Member("ipAllocations", NONE),
    Member(
        "privateEndpointVNetPolicies",
        Treatment::NotEmulated(&["Disabled"]),
    ),
    Member("provisioningState", READ),
    Member("resourceGuid", READ),
    Member("subnets", Treatment::List(SUBNET)),
    Member("summarizedGatewayPrefixes", NONE),
    Member("virtualNetworkPeerings", NONE),
];

/// The members of a subnet.
const SUBNET: &[Member] = &[
    Member("etag", READ),
    Member("id", READ),
    Member("name", KEPT),
    Member("properties", Treatment::Object(SUBNET_PROPERTIES)),
    Member("type", READ),
];

/// The properties of a subnet.
const SUBNET_PROPERTIES: &[Member] = &[
    Member("addressPrefix", KEPT),
    Member("addressPrefixes", KEPT),
    Member("applicationGatewayIPConfigurations", NONE),
    Member("defaultOutboundAccess", KEPT),
    Member("delegations", NONE),
    Member("ipAllocations", NONE),
    Member("ipConfigurationProfiles", READ),
    Member("ipConfigurations", READ),
    Member("ipamPoolPrefixAllocations", NONE),
    Member("natGateway", NONE),
    Member("networkSecurityGroup", KEPT),
    Member("privateEndpointNetworkPolicies", KEPT),
    Member("privateEndpoints", READ),
    Member("privateLinkServiceNetworkPolicies", KEPT),
    Member("provisioningState", READ),
    Member("purpose", READ),
    Member("resourceNavigationLinks", READ),
    Member("routeTable", NONE),
    Member("serviceAssociationLinks", READ),
    Member("serviceEndpointPolicies", NONE),
    Member("serviceEndpoints", KEPT),
    Member("serviceGateway", NONE),
    Member("sharingScope", NONE),
];

/// The members of a network security group.
const SECURITY_GROUP: &[Member] = &[
    Member("etag", READ),
    Member("id", READ),
    Member("location", KEPT),
    Member("name", READ),
    Member(
        "properties",
        Treatment::Object(&[
            Member("defaultSecurityRules", READ),
            Member("flowLogs", READ),
            Member("flushConnection", NONE),
            Member("networkInterfaces", READ),
            Member("provisioningState", READ),
            Member("resourceGuid", READ),
            Member("securityRules", Treatment::List(RULE)),
            Member("subnets", READ),
        ]),
    ),
    Member("tags", KEPT),
    Member("type", READ),
];

/// The members of a rule of a network security group.
const RULE: &[Member] = &[
    Member("etag", READ),
    Member("id", READ),
    Member("name", KEPT),
    Member(
        "properties",
        Treatment::Object(&[
            Member("access", KEPT),
            Member("description", KEPT),
            Member("destinationAddressPrefix", KEPT),
            Member("destinationAddressPrefixes", KEPT),
            Member("destinationApplicationSecurityGroups", NONE),
            Member("destinationPortRange", KEPT),
            Member("destinationPortRanges", KEPT),
            Member("direction", KEPT),
            Member("priority", KEPT),
            Member("protocol", KEPT),
            Member("provisioningState", READ),
            Member("sourceAddressPrefix", KEPT),
            Member("sourceAddressPrefixes", KEPT),
            Member("sourceApplicationSecurityGroups", NONE),
            Member("sourcePortRange", KEPT),
            Member("sourcePortRanges", KEPT),
        ]),
    ),
    Member("type", READ),
];

/// The members of a snapshot.
const SNAPSHOT: &[Member] = &[
    Member("extendedLocation", NONE),
    Member("id", READ),
    Member("location", KEPT),
    Member("managedBy", READ),
    Member("name", READ),
    Member("properties", Treatment::Object(SNAPSHOT_PROPERTIES)),
    Member(
        "sku",
        Treatment::Object(&[Member("name", KEPT), Member("tier", READ)]),
    ),
    Member("systemData", READ),
    Member("tags", KEPT),
    Member("type", READ),
];

/// The properties of a snapshot.
const SNAPSHOT_PROPERTIES: &[Member] = &[
    Member("completionPercent", READ),
    Member("copyCompletionError", NONE),
    Member(
        "creationData",
        Treatment::Object(&[
            Member("createOption", KEPT),
            Member("elasticSanResourceId", NONE),
            Member("galleryImageReference", NONE),
            Member("imageReference", NONE),
            Member("instantAccessDurationMinutes", NONE),
            Member("logicalSectorSize", Treatment::NotEmulated(&["4096"])),
            Member("performancePlus", NONE),
            Member(
                "provisionedBandwidthCopySpeed",
                Treatment::NotEmulated(&["None"]),
            ),
            Member("securityDataUri", NONE),
            Member("securityMetadataUri", NONE),
            Member("sourceResourceId", KEPT),
            Member("sourceUniqueId", READ),
            Member("sourceUri", KEPT),
            Member("storageAccountId", NONE),
            Member("uploadSizeBytes", NONE),
        ]),
    ),
    Member("dataAccessAuthMode", Treatment::NotEmulated(&["None"])),
    Member("diskAccessId", NONE),
    Member("diskSizeBytes", READ),
    Member("diskSizeGB", KEPT),
    Member("diskState", READ),
    Member(
        "encryption",
        Treatment::NotEmulated(&["EncryptionAtRestWithPlatformKey"]),
    ),
    Member("encryptionSettingsCollection", NONE),
    Member("hyperVGeneration", KEPT),
    Member("immutabilityPolicy", READ),
    Member("incremental", KEPT),
    Member("incrementalSnapshotFamilyId", READ),
    Member("networkAccessPolicy", KEPT),
    Member("osType", KEPT),
    Member("provisioningState", READ),
    Member("publicNetworkAccess", KEPT),
    Member("purchasePlan", NONE),
    Member("securityProfile", NONE),
    Member("snapshotAccessState", READ),
    Member("supportedCapabilities", NONE),
    Member("supportsHibernation", NONE),
    Member("timeCreated", READ),
    Member("uniqueId", READ),
];

/// The members of an SSH key.
const SSH_KEY: &[Member] = &[
    Member("id", READ),
    Member("location", KEPT),
    Member("name", READ),
    Member(
        "properties",
        Treatment::Object(&[Member("publicKey", KEPT)]),
    ),
    Member("systemData", READ),
    Member("tags", KEPT),
    Member("type", READ),
];
