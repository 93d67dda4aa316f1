//! The members that Azure's models have and the emulator does not emulate, by document.
//!
//! Owns the tables and nothing else. They are the models of the packages azure-mgmt-compute 39.0.0 and
//! azure-mgmt-network 33.1.0, without the members that the types of `body` and `vm_body` have. A text
//! beside a member is what Azure chooses itself.

use super::{
    body::{DiskBody, ImageBody, IpBody, NicBody, TagsBody},
    schema::{Member, Treatment},
    vm_body::VmBody,
};

/// A document of a request, and the members that it has beyond its type.
pub(crate) trait Known {
    /// The members that Azure's model has and the type does not.
    const MEMBERS: &'static [Member];
}

/// A member that is not emulated.
const NONE: Treatment = Treatment::NotEmulated(&[]);
/// A member that only the cloud writes.
const READ: Treatment = Treatment::ReadOnly;

impl Known for VmBody {
    const MEMBERS: &'static [Member] = VIRTUAL_MACHINE;
}

impl Known for IpBody {
    const MEMBERS: &'static [Member] = PUBLIC_ADDRESS;
}

impl Known for NicBody {
    const MEMBERS: &'static [Member] = INTERFACE;
}

impl Known for DiskBody {
    const MEMBERS: &'static [Member] = DISK;
}

impl Known for ImageBody {
    const MEMBERS: &'static [Member] = IMAGE;
}

impl Known for TagsBody {
    const MEMBERS: &'static [Member] = &[];
}

/// The members of a virtual machine.
const VIRTUAL_MACHINE: &[Member] = &[
    Member("extendedLocation", NONE),
    Member("placement", NONE),
    Member(
        "properties",
        Treatment::Object(&[
            Member("applicationProfile", NONE),
            Member("availabilitySet", NONE),
            Member("capacityReservation", NONE),
            Member("flexProfile", NONE),
            Member(
                "hardwareProfile",
                Treatment::Object(&[
                    Member("processorMode", NONE),
                    Member("vmSizeProperties", NONE),
                ]),
            ),
            Member("host", NONE),
            Member("hostGroup", NONE),
            Member("interconnectBlockProfile", NONE),
            Member(
                "networkProfile",
                Treatment::Object(&[
                    Member("interconnectGroupProfile", NONE),
                    Member(
                        "networkInterfaceConfigurations",
                        Treatment::List(&[Member(
                            "properties",
                            Treatment::Object(&[
                                Member("auxiliaryMode", Treatment::NotEmulated(&["None"])),
                                Member("auxiliarySku", Treatment::NotEmulated(&["None"])),
                                Member("disableTcpStateTracking", NONE),
                                Member("dscpConfiguration", NONE),
                                Member("enableFpga", NONE),
                                Member(
                                    "ipConfigurations",
                                    Treatment::List(&[Member(
                                        "properties",
                                        Treatment::Object(&[
                                            Member("applicationGatewayBackendAddressPools", NONE),
                                            Member("applicationSecurityGroups", NONE),
                                            Member("loadBalancerBackendAddressPools", NONE),
                                            Member("privateIPAddressPrefixLength", NONE),
                                            Member(
                                                "publicIPAddressConfiguration",
                                                Treatment::Object(&[Member(
                                                    "properties",
                                                    Treatment::Object(&[
                                                        Member("dnsSettings", NONE),
                                                        Member("ipTags", NONE),
                                                        Member("publicIPPrefix", NONE),
                                                    ]),
                                                )]),
                                            ),
                                        ]),
                                    )]),
                                ),
                            ]),
                        )]),
                    ),
                ]),
            ),
            Member("platformFaultDomain", NONE),
            Member("proximityPlacementGroup", NONE),
            Member("resiliencyProfile", NONE),
            Member("scheduledEventsPolicy", NONE),
            Member("scheduledEventsProfile", NONE),
            Member(
                "storageProfile",
                Treatment::Object(&[
                    Member("alignRegionalDisksToVMZone", NONE),
                    Member(
                        "dataDisks",
                        Treatment::List(&[
                            Member("detachOption", NONE),
                            Member("diskIOPSReadWrite", NONE),
                            Member("diskMBpsReadWrite", NONE),
                            Member("image", NONE),
                            Member(
                                "managedDisk",
                                Treatment::Object(&[
                                    Member("additionalDiskProperties", NONE),
                                    Member("diskEncryptionSet", NONE),
                                    Member("securityProfile", NONE),
                                ]),
                            ),
                            Member("sourceResource", NONE),
                            Member("storageFaultDomainAlignment", NONE),
                            Member("vhd", NONE),
                        ]),
                    ),
                    Member("diskApiVersion", NONE),
                    Member(
                        "imageReference",
                        Treatment::Object(&[
                            Member("communityGalleryImageId", NONE),
                            Member("sharedGalleryImageId", NONE),
                        ]),
                    ),
                    Member(
                        "osDisk",
                        Treatment::Object(&[
                            Member(
                                "diffDiskSettings",
                                Treatment::Object(&[Member("enableFullCaching", NONE)]),
                            ),
                            Member("encryptionSettings", NONE),
                            Member("image", NONE),
                            Member(
                                "managedDisk",
                                Treatment::Object(&[
                                    Member("additionalDiskProperties", NONE),
                                    Member("diskEncryptionSet", NONE),
                                    Member("securityProfile", NONE),
                                ]),
                            ),
                            Member("storageFaultDomainAlignment", NONE),
                            Member("vhd", NONE),
                        ]),
                    ),
                ]),
            ),
            Member("virtualMachineScaleSet", NONE),
        ]),
    ),
];

/// The members of a public address.
const PUBLIC_ADDRESS: &[Member] = &[
    Member("extendedLocation", NONE),
    Member(
        "properties",
        Treatment::Object(&[
            Member(
                "ddosSettings",
                Treatment::NotEmulated(&["VirtualNetworkInherited"]),
            ),
            Member("dnsSettings", NONE),
            Member("linkedPublicIPAddress", NONE),
            Member("migrationPhase", Treatment::NotEmulated(&["None"])),
            Member("natGateway", NONE),
            Member("publicIPPrefix", NONE),
            Member("servicePublicIPAddress", NONE),
            Member("upgradedToV2", READ),
        ]),
    ),
];

/// The members of an interface.
const INTERFACE: &[Member] = &[
    Member("extendedLocation", NONE),
    Member(
        "properties",
        Treatment::Object(&[
            Member("auxiliaryMode", Treatment::NotEmulated(&["None"])),
            Member("auxiliarySku", Treatment::NotEmulated(&["None"])),
            Member("defaultOutboundConnectivityEnabled", READ),
            Member("disableTcpStateTracking", NONE),
            Member("dscpConfiguration", READ),
            Member(
                "ipConfigurations",
                Treatment::List(&[Member(
                    "properties",
                    Treatment::Object(&[
                        Member("applicationGatewayBackendAddressPools", NONE),
                        Member("applicationSecurityGroups", NONE),
                        Member("gatewayLoadBalancer", NONE),
                        Member("loadBalancerBackendAddressPools", NONE),
                        Member("loadBalancerInboundNatRules", NONE),
                        Member("privateIPAddressPrefixLength", NONE),
                        Member("privateLinkConnectionProperties", READ),
                        Member("virtualNetworkTaps", NONE),
                    ]),
                )]),
            ),
            Member("migrationPhase", Treatment::NotEmulated(&["None"])),
            Member("privateEndpoint", READ),
            Member("privateLinkService", NONE),
            Member("vnetEncryptionSupported", READ),
            Member("workloadType", NONE),
        ]),
    ),
];

/// The members of a disk.
const DISK: &[Member] = &[
    Member("extendedLocation", NONE),
    Member("managedByExtended", READ),
    Member(
        "properties",
        Treatment::Object(&[
            Member("LastOwnershipUpdateTime", READ),
            Member("availabilityPolicy", NONE),
            Member("burstingEnabled", NONE),
            Member("burstingEnabledTime", READ),
            Member("completionPercent", NONE),
            Member(
                "creationData",
                Treatment::Object(&[
                    Member("elasticSanResourceId", NONE),
                    Member("galleryImageReference", NONE),
                    Member("imageReference", NONE),
                    Member("instantAccessDurationMinutes", NONE),
                    Member("logicalSectorSize", Treatment::NotEmulated(&["4096"])),
                    Member("performancePlus", NONE),
                    Member("provisionedBandwidthCopySpeed", NONE),
                    Member("securityDataUri", NONE),
                    Member("securityMetadataUri", NONE),
                    Member("sourceUniqueId", READ),
                    Member("sourceUri", NONE),
                    Member("storageAccountId", NONE),
                    Member("uploadSizeBytes", NONE),
                ]),
            ),
            Member("dataAccessAuthMode", Treatment::NotEmulated(&["None"])),
            Member("diskAccessId", NONE),
            Member("diskIOPSReadOnly", NONE),
            Member("diskIOPSReadWrite", NONE),
            Member("diskMBpsReadOnly", NONE),
            Member("diskMBpsReadWrite", NONE),
            Member(
                "encryption",
                Treatment::NotEmulated(&["EncryptionAtRestWithPlatformKey"]),
            ),
            Member("encryptionSettingsCollection", NONE),
            Member("hyperVGeneration", Treatment::NotEmulated(&["V1", "V2"])),
            Member("maxShares", Treatment::NotEmulated(&["1"])),
            Member("networkAccessPolicy", Treatment::NotEmulated(&["AllowAll"])),
            Member("optimizedForFrequentAttach", NONE),
            Member("propertyUpdatesInProgress", READ),
            Member("publicNetworkAccess", Treatment::NotEmulated(&["Enabled"])),
            Member("purchasePlan", NONE),
            Member("securityProfile", NONE),
            Member("shareInfo", READ),
            Member("supportedCapabilities", NONE),
            Member("supportsHibernation", NONE),
            Member("tier", NONE),
        ]),
    ),
];

/// The members of an image.
const IMAGE: &[Member] = &[Member("extendedLocation", NONE)];
