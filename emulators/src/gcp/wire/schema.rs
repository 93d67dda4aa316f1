//! The fields of request bodies, as Google's discovery document has them.

use super::body::{Field, Kind};

const OUTPUT: Kind = Kind::Output;
const NOT: Kind = Kind::NotEmulated;

const ARCHITECTURE: Kind = Kind::Choice(&["ARCHITECTURE_UNSPECIFIED", "ARM64", "X86_64"]);

/// `Instance`.
pub(crate) const INSTANCE: &[Field] = &[
    Field("advancedMachineFeatures", NOT),
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
    Field("instanceEncryptionKey", NOT),
    Field("keyRevocationActionType", NOT),
    Field("kind", OUTPUT),
    Field("labelFingerprint", OUTPUT),
    Field("labels", Kind::Texts),
    Field("lastStartTimestamp", OUTPUT),
    Field("lastStopTimestamp", OUTPUT),
    Field("lastSuspendedTimestamp", OUTPUT),
    Field("localSsdEncryptionMode", NOT),
    Field("machineType", Kind::Text),
    Field("metadata", Kind::Object(METADATA)),
    Field("minCpuPlatform", Kind::Text),
    Field("name", Kind::Text),
    Field(
        "networkInterfaces",
        Kind::Many(&Kind::Object(NETWORK_INTERFACE)),
    ),
    Field("networkPerformanceConfig", NOT),
    Field("params", NOT),
    Field("privateIpv6GoogleAccess", NOT),
    Field("reservationAffinity", Kind::Object(RESERVATION)),
    Field("resourcePolicies", NOT),
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
    Field("shieldedInstanceIntegrityPolicy", NOT),
    Field("sourceMachineImage", NOT),
    Field("sourceMachineImageEncryptionKey", NOT),
    Field("startRestricted", OUTPUT),
    Field("status", OUTPUT),
    Field("statusMessage", OUTPUT),
    Field("tags", Kind::Object(TAGS)),
    Field("workloadIdentityConfig", NOT),
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

/// `InstanceProperties`, of which bulkInsert makes instances.
pub(crate) const PROPERTIES: &[Field] = &[
    Field("advancedMachineFeatures", NOT),
    Field("canIpForward", Kind::Flag),
    Field("confidentialInstanceConfig", Kind::Object(CONFIDENTIAL)),
    Field("description", Kind::Text),
    Field("disks", Kind::Many(&Kind::Object(ATTACHED_DISK))),
    Field("guestAccelerators", Kind::Many(&Kind::Object(ACCELERATOR))),
    Field("keyRevocationActionType", NOT),
    Field("labels", Kind::Texts),
    Field("localSsdEncryptionMode", NOT),
    Field("machineType", Kind::Text),
    Field("metadata", Kind::Object(METADATA)),
    Field("minCpuPlatform", Kind::Text),
    Field(
        "networkInterfaces",
        Kind::Many(&Kind::Object(NETWORK_INTERFACE)),
    ),
    Field("networkPerformanceConfig", NOT),
    Field("privateIpv6GoogleAccess", NOT),
    Field("reservationAffinity", Kind::Object(RESERVATION)),
    Field("resourceManagerTags", NOT),
    Field("resourcePolicies", NOT),
    Field("scheduling", Kind::Object(SCHEDULING)),
    Field(
        "serviceAccounts",
        Kind::Many(&Kind::Object(SERVICE_ACCOUNT)),
    ),
    Field("shieldedInstanceConfig", Kind::Object(SHIELDED)),
    Field("tags", Kind::Object(TAGS)),
    Field("workloadIdentityConfig", NOT),
];

/// `BulkInsertInstanceResource`.
pub(crate) const BULK: &[Field] = &[
    Field("count", Kind::Long),
    Field("instanceFlexibilityPolicy", NOT),
    Field("instanceProperties", Kind::Object(PROPERTIES)),
    Field("locationPolicy", NOT),
    Field("minCount", Kind::Long),
    Field("namePattern", Kind::Text),
    Field(
        "perInstanceProperties",
        Kind::Each(&[Field("hostname", NOT), Field("name", Kind::Text)]),
    ),
    Field("sourceInstanceTemplate", NOT),
];

const ATTACHED_DISK: &[Field] = &[
    Field("architecture", OUTPUT),
    Field("autoDelete", Kind::Flag),
    Field("boot", Kind::Flag),
    Field("deviceName", Kind::Text),
    Field("diskEncryptionKey", NOT),
    Field("diskSizeGb", Kind::Long),
    Field("forceAttach", NOT),
    Field("guestOsFeatures", NOT),
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

const INITIALIZE: &[Field] = &[
    Field("architecture", ARCHITECTURE),
    Field("description", Kind::Text),
    Field("diskName", Kind::Text),
    Field("diskSizeGb", Kind::Long),
    Field("diskType", Kind::Text),
    Field("enableConfidentialCompute", NOT),
    Field("labels", Kind::Texts),
    Field("licenses", NOT),
    Field("onUpdateAction", NOT),
    Field("provisionedIops", NOT),
    Field("provisionedThroughput", NOT),
    Field("replicaZones", NOT),
    Field("resourceManagerTags", NOT),
    Field("resourcePolicies", NOT),
    Field("sourceImage", Kind::Text),
    Field("sourceImageEncryptionKey", NOT),
    Field("sourceSnapshot", NOT),
    Field("sourceSnapshotEncryptionKey", NOT),
    Field("storagePool", NOT),
];

const NETWORK_INTERFACE: &[Field] = &[
    Field("accessConfigs", Kind::Many(&Kind::Object(ACCESS_CONFIG))),
    Field("aliasIpRanges", NOT),
    Field("aliasIpv6Ranges", NOT),
    Field("enableVpcScopedDns", NOT),
    Field("fingerprint", OUTPUT),
    Field("igmpQuery", NOT),
    Field("internalIpv6PrefixLength", NOT),
    Field("ipv6AccessConfigs", NOT),
    Field("ipv6AccessType", OUTPUT),
    Field("ipv6Address", NOT),
    Field("kind", OUTPUT),
    Field("name", OUTPUT),
    Field("network", Kind::Text),
    Field("networkAttachment", NOT),
    Field("networkIP", NOT),
    Field(
        "nicType",
        Kind::Choice(&["GVNIC", "UNSPECIFIED_NIC_TYPE", "VIRTIO_NET"]),
    ),
    Field("parentNicName", NOT),
    Field("queueCount", NOT),
    Field("serviceClassId", NOT),
    Field("stackType", Kind::Choice(&["IPV4_ONLY"])),
    Field("subnetwork", Kind::Text),
    Field("vlan", NOT),
];

const ACCESS_CONFIG: &[Field] = &[
    Field("externalIpv6", NOT),
    Field("externalIpv6PrefixLength", NOT),
    Field("ipCollection", NOT),
    Field("kind", OUTPUT),
    Field("name", Kind::Text),
    Field("natIP", Kind::Text),
    Field("networkTier", Kind::Choice(&["PREMIUM", "STANDARD"])),
    Field("publicPtrDomainName", NOT),
    Field("securityPolicy", NOT),
    Field("setPublicPtr", NOT),
    Field("type", Kind::Choice(&["ONE_TO_ONE_NAT"])),
];

const SCHEDULING: &[Field] = &[
    Field("automaticRestart", Kind::Flag),
    Field("availabilityDomain", NOT),
    Field("exposeHostTopology", NOT),
    Field("gracefulShutdown", NOT),
    Field("hostErrorTimeoutSeconds", NOT),
    Field(
        "instanceTerminationAction",
        Kind::Choice(&["DELETE", "INSTANCE_TERMINATION_ACTION_UNSPECIFIED", "STOP"]),
    ),
    Field("localSsdRecoveryTimeout", NOT),
    Field("locationHint", NOT),
    Field("maxRunDuration", NOT),
    Field("minNodeCpus", NOT),
    Field("nodeAffinities", NOT),
    Field("onHostMaintenance", Kind::Choice(&["MIGRATE", "TERMINATE"])),
    Field("onInstanceStopAction", NOT),
    Field("preemptible", Kind::Flag),
    Field("preemptionNoticeDuration", NOT),
    Field("protectionTier", NOT),
    Field("provisioningModel", Kind::Choice(&["SPOT", "STANDARD"])),
    Field("skipGuestOsShutdown", NOT),
    Field("terminationTime", NOT),
];

/// `Metadata`.
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

const TAGS: &[Field] = &[
    Field("fingerprint", OUTPUT),
    Field("items", Kind::Many(&Kind::Text)),
];

const ACCELERATOR: &[Field] = &[
    Field("acceleratorCount", Kind::Int),
    Field("acceleratorType", Kind::Text),
];

const CONFIDENTIAL: &[Field] = &[
    Field("confidentialInstanceType", Kind::Text),
    Field("enableConfidentialCompute", Kind::Flag),
];

const RESERVATION: &[Field] = &[
    Field("consumeReservationType", Kind::Text),
    Field("key", Kind::Text),
    Field("values", Kind::Many(&Kind::Text)),
];

const SERVICE_ACCOUNT: &[Field] = &[
    Field("email", Kind::Text),
    Field("scopes", Kind::Many(&Kind::Text)),
];

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

/// `Image`.
pub(crate) const IMAGE: &[Field] = &[
    Field("architecture", ARCHITECTURE),
    Field("archiveSizeBytes", OUTPUT),
    Field("creationTimestamp", OUTPUT),
    Field("deprecated", NOT),
    Field("description", Kind::Text),
    Field("diskSizeGb", OUTPUT),
    Field("enableConfidentialCompute", OUTPUT),
    Field("family", Kind::Text),
    Field("guestOsFeatures", NOT),
    Field("id", OUTPUT),
    Field("imageEncryptionKey", NOT),
    Field("kind", OUTPUT),
    Field("labelFingerprint", OUTPUT),
    Field("labels", Kind::Texts),
    Field("licenseCodes", NOT),
    Field("licenses", NOT),
    Field("name", Kind::Text),
    Field("params", NOT),
    Field("rawDisk", NOT),
    Field("satisfiesPzi", OUTPUT),
    Field("satisfiesPzs", OUTPUT),
    Field("selfLink", OUTPUT),
    Field("shieldedInstanceInitialState", NOT),
    Field("sourceDisk", Kind::Text),
    Field("sourceDiskEncryptionKey", NOT),
    Field("sourceDiskId", OUTPUT),
    Field("sourceImage", NOT),
    Field("sourceImageEncryptionKey", NOT),
    Field("sourceImageId", OUTPUT),
    Field("sourceSnapshot", NOT),
    Field("sourceSnapshotEncryptionKey", NOT),
    Field("sourceSnapshotId", OUTPUT),
    Field("sourceType", Kind::Choice(&["RAW"])),
    Field("status", OUTPUT),
    Field("storageLocations", NOT),
];
