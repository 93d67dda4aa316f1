//! The fields of request bodies, as Google's discovery document has them.
//!
//! Owns the tables and nothing else. Every field of the API is in them: as an input, as an output
//! that is dropped, or as not emulated. A field that is missing here is refused as unknown.

use super::body::{Field, Kind};

/// A field that only responses have.
const OUTPUT: Kind = Kind::Output;
/// A field that the emulator does not support.
const NOT_EMULATED: Kind = Kind::NotEmulated;

/// The architecture of an image or disk.
const ARCHITECTURE: Kind = Kind::Choice(&["ARCHITECTURE_UNSPECIFIED", "ARM64", "X86_64"]);

/// `Instance`, the body of instances.insert.
pub(crate) const INSTANCE: &[Field] = &[
    Field("advancedMachineFeatures", NOT_EMULATED),
    Field("canIpForward", Kind::Flag),
    Field("confidentialInstanceConfig", Kind::Object(CONFIDENTIAL)),
    Field("cpuPlatform", OUTPUT),
    Field("creationTimestamp", OUTPUT),
    Field("deletionProtection", Kind::Flag),
    Field("description", Kind::Text),
    Field("disks", Kind::Many(&Kind::Object(ATTACHED_DISK))),
    Field(
        "displayDevice",
        Kind::Object(&[Field("enableDisplay", Kind::Flag)]),
    ),
    Field("fingerprint", OUTPUT),
    Field("guestAccelerators", Kind::Many(&Kind::Object(ACCELERATOR))),
    Field("hostname", Kind::Text),
    Field("id", OUTPUT),
    Field("instanceEncryptionKey", NOT_EMULATED),
    Field("keyRevocationActionType", NOT_EMULATED),
    Field("kind", OUTPUT),
    Field("labelFingerprint", OUTPUT),
    Field("labels", Kind::Texts),
    Field("lastStartTimestamp", OUTPUT),
    Field("lastStopTimestamp", OUTPUT),
    Field("lastSuspendedTimestamp", OUTPUT),
    Field("localSsdEncryptionMode", NOT_EMULATED),
    Field("machineType", Kind::Text),
    Field("metadata", Kind::Object(METADATA)),
    Field("minCpuPlatform", Kind::Text),
    Field("name", Kind::Text),
    Field(
        "networkInterfaces",
        Kind::Many(&Kind::Object(NETWORK_INTERFACE)),
    ),
    Field("networkPerformanceConfig", NOT_EMULATED),
    Field("params", NOT_EMULATED),
    Field("privateIpv6GoogleAccess", NOT_EMULATED),
    Field("reservationAffinity", Kind::Object(RESERVATION)),
    Field("resourcePolicies", NOT_EMULATED),
    Field("resourceStatus", OUTPUT),
    Field("satisfiesPzi", OUTPUT),
    Field("satisfiesPzs", OUTPUT),
    Field("scheduling", Kind::Object(SCHEDULING)),
    Field("selfLink", OUTPUT),
    Field(
        "serviceAccounts",
        Kind::Many(&Kind::Object(SERVICE_ACCOUNT)),
    ),
    Field("shieldedInstanceConfig", Kind::Object(SHIELDED)),
    Field("shieldedInstanceIntegrityPolicy", NOT_EMULATED),
    Field("sourceMachineImage", NOT_EMULATED),
    Field("sourceMachineImageEncryptionKey", NOT_EMULATED),
    Field("startRestricted", OUTPUT),
    Field("status", OUTPUT),
    Field("statusMessage", OUTPUT),
    Field("tags", Kind::Object(TAGS)),
    Field("workloadIdentityConfig", NOT_EMULATED),
    Field("zone", OUTPUT),
];

/// Fields of an instance that are stored and returned unchanged.
pub(crate) const ECHOED: [&str; 8] = [
    "confidentialInstanceConfig",
    "description",
    "displayDevice",
    "guestAccelerators",
    "minCpuPlatform",
    "reservationAffinity",
    "serviceAccounts",
    "shieldedInstanceConfig",
];

/// `InstanceProperties`, from which bulkInsert creates instances.
pub(crate) const PROPERTIES: &[Field] = &[
    Field("advancedMachineFeatures", NOT_EMULATED),
    Field("canIpForward", Kind::Flag),
    Field("confidentialInstanceConfig", Kind::Object(CONFIDENTIAL)),
    Field("description", Kind::Text),
    Field("disks", Kind::Many(&Kind::Object(ATTACHED_DISK))),
    Field("guestAccelerators", Kind::Many(&Kind::Object(ACCELERATOR))),
    Field("keyRevocationActionType", NOT_EMULATED),
    Field("labels", Kind::Texts),
    Field("localSsdEncryptionMode", NOT_EMULATED),
    Field("machineType", Kind::Text),
    Field("metadata", Kind::Object(METADATA)),
    Field("minCpuPlatform", Kind::Text),
    Field(
        "networkInterfaces",
        Kind::Many(&Kind::Object(NETWORK_INTERFACE)),
    ),
    Field("networkPerformanceConfig", NOT_EMULATED),
    Field("privateIpv6GoogleAccess", NOT_EMULATED),
    Field("reservationAffinity", Kind::Object(RESERVATION)),
    Field("resourceManagerTags", NOT_EMULATED),
    Field("resourcePolicies", NOT_EMULATED),
    Field("scheduling", Kind::Object(SCHEDULING)),
    Field(
        "serviceAccounts",
        Kind::Many(&Kind::Object(SERVICE_ACCOUNT)),
    ),
    Field("shieldedInstanceConfig", Kind::Object(SHIELDED)),
    Field("tags", Kind::Object(TAGS)),
    Field("workloadIdentityConfig", NOT_EMULATED),
];

/// `BulkInsertInstanceResource`, the body of instances.bulkInsert.
pub(crate) const BULK: &[Field] = &[
    Field("count", Kind::Long),
    Field("instanceFlexibilityPolicy", NOT_EMULATED),
    Field("instanceProperties", Kind::Object(PROPERTIES)),
    Field("locationPolicy", NOT_EMULATED),
    Field("minCount", Kind::Long),
    Field("namePattern", Kind::Text),
    Field(
        "perInstanceProperties",
        Kind::Each(&[Field("hostname", NOT_EMULATED), Field("name", Kind::Text)]),
    ),
    Field("sourceInstanceTemplate", NOT_EMULATED),
];

/// `AttachedDisk`, a disk of an instance.
const ATTACHED_DISK: &[Field] = &[
    Field("architecture", OUTPUT),
    Field("autoDelete", Kind::Flag),
    Field("boot", Kind::Flag),
    Field("deviceName", Kind::Text),
    Field("diskEncryptionKey", NOT_EMULATED),
    Field("diskSizeGb", Kind::Long),
    Field("forceAttach", NOT_EMULATED),
    Field("guestOsFeatures", NOT_EMULATED),
    Field("index", OUTPUT),
    Field("initializeParams", Kind::Object(INITIALIZE)),
    Field("interface", Kind::Choice(&["NVME", "SCSI"])),
    Field("kind", OUTPUT),
    Field("licenses", OUTPUT),
    Field("mode", Kind::Choice(&["READ_ONLY", "READ_WRITE"])),
    Field("savedState", OUTPUT),
    Field("shieldedInstanceInitialState", OUTPUT),
    Field("source", Kind::Text),
    Field("type", Kind::Choice(&["PERSISTENT", "SCRATCH"])),
];

/// `AttachedDiskInitializeParams`, the properties of a new disk.
const INITIALIZE: &[Field] = &[
    Field("architecture", ARCHITECTURE),
    Field("description", Kind::Text),
    Field("diskName", Kind::Text),
    Field("diskSizeGb", Kind::Long),
    Field("diskType", Kind::Text),
    Field("enableConfidentialCompute", NOT_EMULATED),
    Field("labels", Kind::Texts),
    Field("licenses", NOT_EMULATED),
    Field("onUpdateAction", NOT_EMULATED),
    Field("provisionedIops", NOT_EMULATED),
    Field("provisionedThroughput", NOT_EMULATED),
    Field("replicaZones", NOT_EMULATED),
    Field("resourceManagerTags", NOT_EMULATED),
    Field("resourcePolicies", NOT_EMULATED),
    Field("sourceImage", Kind::Text),
    Field("sourceImageEncryptionKey", NOT_EMULATED),
    Field("sourceSnapshot", NOT_EMULATED),
    Field("sourceSnapshotEncryptionKey", NOT_EMULATED),
    Field("storagePool", NOT_EMULATED),
];

/// `NetworkInterface`. Only IPv4 is emulated, and the internal address cannot be chosen.
const NETWORK_INTERFACE: &[Field] = &[
    Field("accessConfigs", Kind::Many(&Kind::Object(ACCESS_CONFIG))),
    Field("aliasIpRanges", NOT_EMULATED),
    Field("aliasIpv6Ranges", NOT_EMULATED),
    Field("enableVpcScopedDns", NOT_EMULATED),
    Field("fingerprint", OUTPUT),
    Field("igmpQuery", NOT_EMULATED),
    Field("internalIpv6PrefixLength", NOT_EMULATED),
    Field("ipv6AccessConfigs", NOT_EMULATED),
    Field("ipv6AccessType", OUTPUT),
    Field("ipv6Address", NOT_EMULATED),
    Field("kind", OUTPUT),
    Field("name", OUTPUT),
    Field("network", Kind::Text),
    Field("networkAttachment", NOT_EMULATED),
    Field("networkIP", NOT_EMULATED),
    Field(
        "nicType",
        Kind::Choice(&["GVNIC", "UNSPECIFIED_NIC_TYPE", "VIRTIO_NET"]),
    ),
    Field("parentNicName", NOT_EMULATED),
    Field("queueCount", NOT_EMULATED),
    Field("serviceClassId", NOT_EMULATED),
    Field("stackType", Kind::Choice(&["IPV4_ONLY"])),
    Field("subnetwork", Kind::Text),
    Field("vlan", NOT_EMULATED),
];

/// `AccessConfig`, the external address of an interface.
const ACCESS_CONFIG: &[Field] = &[
    Field("externalIpv6", NOT_EMULATED),
    Field("externalIpv6PrefixLength", NOT_EMULATED),
    Field("ipCollection", NOT_EMULATED),
    Field("kind", OUTPUT),
    Field("name", Kind::Text),
    Field("natIP", Kind::Text),
    Field("networkTier", Kind::Choice(&["PREMIUM", "STANDARD"])),
    Field("publicPtrDomainName", NOT_EMULATED),
    Field("securityPolicy", NOT_EMULATED),
    Field("setPublicPtr", NOT_EMULATED),
    Field("type", Kind::Choice(&["ONE_TO_ONE_NAT"])),
];

/// `Scheduling`: spot, restart and maintenance.
const SCHEDULING: &[Field] = &[
    Field("automaticRestart", Kind::Flag),
    Field("availabilityDomain", NOT_EMULATED),
    Field("exposeHostTopology", NOT_EMULATED),
    Field("gracefulShutdown", NOT_EMULATED),
    Field("hostErrorTimeoutSeconds", NOT_EMULATED),
    Field(
        "instanceTerminationAction",
        Kind::Choice(&["DELETE", "INSTANCE_TERMINATION_ACTION_UNSPECIFIED", "STOP"]),
    ),
    Field("localSsdRecoveryTimeout", NOT_EMULATED),
    Field("locationHint", NOT_EMULATED),
    Field("maxRunDuration", NOT_EMULATED),
    Field("minNodeCpus", NOT_EMULATED),
    Field("nodeAffinities", NOT_EMULATED),
    Field("onHostMaintenance", Kind::Choice(&["MIGRATE", "TERMINATE"])),
    Field("onInstanceStopAction", NOT_EMULATED),
    Field("preemptible", Kind::Flag),
    Field("preemptionNoticeDuration", NOT_EMULATED),
    Field("protectionTier", NOT_EMULATED),
    Field("provisioningModel", Kind::Choice(&["SPOT", "STANDARD"])),
    Field("skipGuestOsShutdown", NOT_EMULATED),
    Field("terminationTime", NOT_EMULATED),
];

/// `Metadata`, also the body of instances.setMetadata.
pub(crate) const METADATA: &[Field] = &[
    Field("fingerprint", Kind::Text),
    Field(
        "items",
        Kind::Many(&Kind::Object(&[
            Field("key", Kind::Text),
            Field("value", Kind::Text),
        ])),
    ),
    Field("kind", OUTPUT),
];

/// `Tags`, the network tags.
const TAGS: &[Field] = &[
    Field("fingerprint", OUTPUT),
    Field("items", Kind::Many(&Kind::Text)),
];

/// `AcceleratorConfig`; stored, and it forbids migration.
const ACCELERATOR: &[Field] = &[
    Field("acceleratorCount", Kind::Int),
    Field("acceleratorType", Kind::Text),
];

/// `ConfidentialInstanceConfig`; stored, and it forbids migration.
const CONFIDENTIAL: &[Field] = &[
    Field("confidentialInstanceType", Kind::Text),
    Field("enableConfidentialCompute", Kind::Flag),
];

/// `ReservationAffinity`; only stored.
const RESERVATION: &[Field] = &[
    Field("consumeReservationType", Kind::Text),
    Field("key", Kind::Text),
    Field("values", Kind::Many(&Kind::Text)),
];

/// `ServiceAccount`; only stored.
const SERVICE_ACCOUNT: &[Field] = &[
    Field("email", Kind::Text),
    Field("scopes", Kind::Many(&Kind::Text)),
];

/// `ShieldedInstanceConfig`; only stored.
const SHIELDED: &[Field] = &[
    Field("enableIntegrityMonitoring", Kind::Flag),
    Field("enableSecureBoot", Kind::Flag),
    Field("enableVtpm", Kind::Flag),
];

/// `InstancesSetLabelsRequest`.
pub(crate) const SET_LABELS: &[Field] = &[
    Field("labelFingerprint", Kind::Text),
    Field("labels", Kind::Texts),
];

/// `InstancesSetMachineTypeRequest`.
pub(crate) const SET_MACHINE_TYPE: &[Field] = &[Field("machineType", Kind::Text)];

/// `Image`, the body of images.insert. Only a disk can be its source.
pub(crate) const IMAGE: &[Field] = &[
    Field("architecture", ARCHITECTURE),
    Field("archiveSizeBytes", OUTPUT),
    Field("creationTimestamp", OUTPUT),
    Field("deprecated", NOT_EMULATED),
    Field("description", Kind::Text),
    Field("diskSizeGb", OUTPUT),
    Field("enableConfidentialCompute", OUTPUT),
    Field("family", Kind::Text),
    Field("guestOsFeatures", NOT_EMULATED),
    Field("id", OUTPUT),
    Field("imageEncryptionKey", NOT_EMULATED),
    Field("kind", OUTPUT),
    Field("labelFingerprint", OUTPUT),
    Field("labels", Kind::Texts),
    Field("licenseCodes", NOT_EMULATED),
    Field("licenses", NOT_EMULATED),
    Field("name", Kind::Text),
    Field("params", NOT_EMULATED),
    Field("rawDisk", NOT_EMULATED),
    Field("satisfiesPzi", OUTPUT),
    Field("satisfiesPzs", OUTPUT),
    Field("selfLink", OUTPUT),
    Field("shieldedInstanceInitialState", NOT_EMULATED),
    Field("sourceDisk", Kind::Text),
    Field("sourceDiskEncryptionKey", NOT_EMULATED),
    Field("sourceDiskId", OUTPUT),
    Field("sourceImage", NOT_EMULATED),
    Field("sourceImageEncryptionKey", NOT_EMULATED),
    Field("sourceImageId", OUTPUT),
    Field("sourceSnapshot", NOT_EMULATED),
    Field("sourceSnapshotEncryptionKey", NOT_EMULATED),
    Field("sourceSnapshotId", OUTPUT),
    Field("sourceType", Kind::Choice(&["RAW"])),
    Field("status", OUTPUT),
    Field("storageLocations", NOT_EMULATED),
];
