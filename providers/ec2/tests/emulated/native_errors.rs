//! The errors of EC2, each with what it means.
//!
//! Owns the table for ERRORS-15 and ERRORS-16: at least one code for each meaning that a code of the same form does not
//! have. It is written from the sources below and reads no code of the provider. Rows without a source of their own are in the
//! Amazon EC2 API reference, "Error codes".
//!
//! - "Request throttling for the Amazon EC2 API": `RequestLimitExceeded` has status 503.
//! - "Ensuring idempotency in Amazon EC2 API requests": `IdempotentInstanceTerminated`.
//! - "Amazon EC2 instance type quotas": the types A, C, D, H, I, M, R, T and Z share one quota for each market.
//! - "Spot Instance quotas": `MaxSpotInstanceCountExceeded`.
//! - hashicorp/terraform-provider-aws#9113: `Unsupported` for a type that EC2 cannot provide now.
//! - aws/karpenter-provider-aws, `pkg/errors/errors.go`: `Unsupported`, `UnfulfillableCapacity`,
//!   `MaxFleetCountExceeded` and `InsufficientFreeAddressesInSubnet` of launches,
//!   `AuthFailure.ServiceLinkedRoleCreationNotPermitted` of spot launches.
//! - hashicorp/terraform-provider-aws, `internal/service/ec2/errors.go`: `InvalidCapacityReservationId.NotFound`.
//! - RFC 9110, section 15.5, and RFC 6585, section 4: what a status means, for codes that EC2 does not document.

use fleetwright_contract_tests::{Meaning, NativeError};
use fleetwright_ec2::fleetwright::{InstanceConfig, Market, Operation, Placement};
use fleetwright_provider_testkit::emulated::{EmulatedAccount as _, parse_name};

use super::Ec2Account;

/// EC2 names the zone of a shortage, and then others.
const SHORT_IN_1C: &str = "We currently do not have sufficient t3.micro capacity in the Availability Zone you requested \
    (us-east-1c). Our system will be working on provisioning additional capacity. You can currently get t3.micro capacity \
    by not specifying an Availability Zone in your request or choosing us-east-1a, us-east-1b.";

const NOT_OFFERED_IN_1C: &str = "Your requested instance type (t3.micro) is not supported in your requested Availability \
    Zone (us-east-1c). Please retry your request by not specifying an Availability Zone or choosing us-east-1a.";

const NOT_NOW: &str = "The requested configuration is currently not supported. Please check the documentation for \
    supported configurations.";

const SUBNET_FULL: &str = "There are not enough free addresses in subnet 'subnet-0123456789abcdef0' to satisfy the \
    requested number of instances.";

/// Returns all errors.
pub(super) fn all() -> Vec<NativeError> {
    let mut all = capacity();
    all.extend(quota());
    all.extend(callers());
    all.extend(refusals());
    all.extend(conflicts());
    all.extend(outages());
    all
}

/// A launch of the type of the fixtures in a zone.
fn in_zone(zone: &str) -> InstanceConfig {
    let mut config = of_type(Ec2Account::FIXTURES.instance_type);
    config.placement.zone = Some(parse_name(zone));
    config
}

/// A launch in a subnet, in whatever zone that is.
fn in_subnet(subnet: &str) -> InstanceConfig {
    let mut config = of_type(Ec2Account::FIXTURES.instance_type);
    config.placement.network = Some(parse_name(subnet));
    config
}

/// A launch on demand, without a zone.
fn of_type(instance_type: &str) -> InstanceConfig {
    InstanceConfig::new(
        parse_name(Ec2Account::FIXTURES.image),
        parse_name(instance_type),
    )
}

fn with_type(mut config: InstanceConfig, instance_type: &str) -> InstanceConfig {
    config.instance_type = parse_name(instance_type);
    config
}

fn on_spot(mut config: InstanceConfig) -> InstanceConfig {
    config.placement.market = Some(Market::Spot);
    config
}

fn placement(config: InstanceConfig) -> Placement {
    config.placement
}

fn error(status: u16, code: &str, meaning: Meaning) -> NativeError {
    NativeError::new(code, meaning).with_status(status)
}

/// Missing capacity: of the offering, of the zone, of the subnet, or of the region.
fn capacity() -> Vec<NativeError> {
    let capacity = |status, code| error(status, code, Meaning::Capacity);
    let offering = |error: NativeError, zone: &str, other: &str| {
        error.concerning([in_zone(zone)]).sparing([
            in_zone(other),
            with_type(in_zone(zone), "t3.small"),
            on_spot(in_zone(zone)),
        ])
    };
    let requested = |status, code| {
        let error = capacity(status, code).launched_in(placement(in_zone("us-east-1b")));
        offering(error, "us-east-1b", "us-east-1a")
    };
    let subnet = Ec2Account::FIXTURES.network;
    vec![
        requested(500, "InsufficientInstanceCapacity"),
        requested(500, "InsufficientHostCapacity"),
        requested(500, "InsufficientReservedInstanceCapacity"),
        requested(500, "InsufficientCapacity"),
        requested(400, "ReservationCapacityExceeded"),
        requested(500, "UnfulfillableCapacity"),
        requested(400, "VolumeTypeNotAvailableInZone"),
        offering(
            capacity(500, "InsufficientInstanceCapacity").with_message(SHORT_IN_1C),
            "us-east-1c",
            "us-east-1a",
        ),
        offering(
            capacity(400, "Unsupported").with_message(NOT_OFFERED_IN_1C),
            "us-east-1c",
            "us-east-1a",
        ),
        requested(400, "Unsupported").with_message(NOT_NOW),
        // Only the subnet says where.
        capacity(500, "InsufficientInstanceCapacity")
            .launched_in(placement(in_subnet(subnet)))
            .concerning([in_subnet(subnet)])
            .sparing([in_subnet("subnet-00000000000000002")]),
        capacity(400, "SpotMaxPriceTooLow")
            .launched_in(placement(on_spot(in_zone("us-east-1b"))))
            .concerning([on_spot(in_zone("us-east-1b"))])
            .sparing([in_zone("us-east-1b"), on_spot(in_zone("us-east-1a"))]),
        // Disks are those of a zone, for every type.
        capacity(500, "InsufficientVolumeCapacity")
            .launched_in(placement(in_zone("us-east-1b")))
            .concerning([
                in_zone("us-east-1b"),
                with_type(in_zone("us-east-1b"), "m7i.large"),
                on_spot(in_zone("us-east-1b")),
            ])
            .sparing([in_zone("us-east-1a")]),
        capacity(500, "InsufficientAddressCapacity").concerning([
            in_zone("us-east-1a"),
            with_type(in_zone("us-east-1b"), "m7i.large"),
        ]),
        // The addresses of a subnet are those of every type.
        capacity(400, "InsufficientFreeAddressesInSubnet")
            .launched_in(placement(in_subnet(subnet)))
            .concerning([in_subnet(subnet), with_type(in_subnet(subnet), "m7i.large")])
            .sparing([in_subnet("subnet-00000000000000002"), in_zone("us-east-1b")]),
        capacity(400, "InsufficientFreeAddressesInSubnet")
            .with_message(SUBNET_FULL)
            .concerning([in_subnet("subnet-0123456789abcdef0")])
            .sparing([in_subnet(subnet), in_zone("us-east-1b")]),
    ]
}

/// Limits of the account: of a group of types, of a market, of a type, or of the region.
fn quota() -> Vec<NativeError> {
    let quota = |code| error(400, code, Meaning::Quota);
    let region =
        |code| quota(code).concerning([of_type("t3.micro"), on_spot(of_type("g5.xlarge"))]);
    vec![
        quota("VcpuLimitExceeded")
            .concerning([
                of_type("t3.small"),
                of_type("c5.large"),
                of_type("z1d.large"),
            ])
            .sparing([of_type("g5.xlarge"), on_spot(of_type("t3.micro"))]),
        quota("MaxSpotInstanceCountExceeded")
            .launched_in(placement(on_spot(of_type("t3.micro"))))
            .concerning([on_spot(of_type("t3.small"))])
            .sparing([of_type("t3.micro"), on_spot(of_type("g5.xlarge"))]),
        quota("InstanceLimitExceeded")
            .concerning([of_type("t3.micro")])
            .sparing([of_type("t3.small"), on_spot(of_type("t3.micro"))]),
        region("MaxFleetCountExceeded"),
        region("VolumeLimitExceeded"),
        region("MaxIOPSLimitExceeded"),
        region("AddressLimitExceeded"),
        region("NetworkInterfaceLimitExceeded"),
        region("PrivateIpAddressLimitExceeded"),
        region("ResourceLimitExceeded"),
        region("PlacementGroupLimitExceeded"),
        region("VolumeIOPSLimit"),
    ]
}

/// Refusals of the caller: of its rate, its credentials, or its permissions.
fn callers() -> Vec<NativeError> {
    let launches = [Operation::LaunchInstance, Operation::LaunchInstances];
    let images = "Not authorized for images: [ami-00000000000000001]";
    vec![
        error(503, "RequestLimitExceeded", Meaning::Throttled),
        error(400, "Throttling", Meaning::Throttled),
        error(400, "ThrottlingException", Meaning::Throttled),
        error(503, "EC2ThrottledException", Meaning::Throttled),
        error(400, "BandwidthLimitExceeded", Meaning::Throttled).of_calls(launches),
        error(429, "TooManyRequests", Meaning::Throttled).of_calls(launches),
        error(
            400,
            "SnapshotCreationPerVolumeRateExceeded",
            Meaning::Throttled,
        )
        .of_calls([Operation::SnapshotImage]),
        error(401, "AuthFailure", Meaning::BadCredentials)
            .with_message("AWS was not able to validate the provided access credentials"),
        error(400, "ExpiredToken", Meaning::BadCredentials),
        error(400, "RequestExpired", Meaning::BadCredentials).of_calls(launches),
        error(400, "InvalidClientTokenId", Meaning::BadCredentials).of_calls(launches),
        error(403, "SignatureDoesNotMatch", Meaning::BadCredentials).of_calls(launches),
        error(401, "Unauthorized", Meaning::BadCredentials).of_calls(launches),
        error(403, "UnauthorizedOperation", Meaning::Forbidden),
        error(400, "OptInRequired", Meaning::Forbidden).of_calls(launches),
        error(400, "PendingVerification", Meaning::Forbidden).of_calls(launches),
        error(400, "Blocked", Meaning::Forbidden).of_calls(launches),
        error(401, "AuthFailure", Meaning::Forbidden)
            .with_message(images)
            .of_calls(launches),
        error(
            403,
            "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
            Meaning::Forbidden,
        )
        .of_calls(launches),
        error(403, "Forbidden", Meaning::Forbidden).of_calls(launches),
        // A proxy between the caller and EC2 has no code of EC2.
        error(403, "", Meaning::NotOfTheCloud)
            .of_calls([Operation::LaunchInstance, Operation::DescribeInstance]),
    ]
}

/// Refused values, and calls that an instance does not allow.
fn refusals() -> Vec<NativeError> {
    let invalid = |code, field| error(400, code, Meaning::invalid(field));
    let unnamed = |code| error(400, code, Meaning::Invalid { field: None });
    vec![
        invalid("InvalidAMIID.NotFound", "image"),
        invalid("InvalidAMIID.Unavailable", "image"),
        invalid("InvalidUserData.Malformed", "user data"),
        invalid("InvalidBlockDeviceMapping", "disk size"),
        invalid("TagLimitExceeded", "tags"),
        invalid("InvalidSubnetID.NotFound", "placement.network"),
        invalid("InvalidGroup.NotFound", "placement.security_groups"),
        invalid("InvalidAvailabilityZone", "placement.zone"),
        invalid("InvalidKeyPair.NotFound", "key_pair"),
        invalid("InvalidAMIName.Duplicate", "name").of_calls([Operation::SnapshotImage]),
        invalid("Unsupported", "config")
            .with_message("The architecture 'arm64' of the specified instance type does not match that of the image."),
        // Limits of one request: no quota can be raised for them.
        invalid("AttachmentLimitExceeded", "config"),
        invalid("SecurityGroupsPerInstanceLimitExceeded", "config"),
        invalid("SecurityGroupsPerInterfaceLimitExceeded", "config"),
        invalid("InvalidCapacityReservationId.NotFound", "config"),
        invalid("InvalidParameterCombination", "config"),
        unnamed("VPCIdNotSpecified"),
        unnamed("EncryptedVolumesNotSupported"),
        error(400, "UnsupportedOperation", Meaning::Unsupported)
            .with_message("You can't stop the Spot Instance because it is associated with a one-time request"),
        error(400, "IdempotentInstanceTerminated", Meaning::TokenSpent),
    ]
}

/// Refusals because of another change, which passes.
fn conflicts() -> Vec<NativeError> {
    let of = |code, call| error(400, code, Meaning::Conflict).of_calls([call]);
    vec![
        of("ConcurrentTagAccess", Operation::UpdateTags),
        of("InvalidVolume.NotFound", Operation::UpdateTags),
        of("InvalidNetworkInterfaceID.NotFound", Operation::UpdateTags),
        of(
            "ConcurrentCreateImageNoRebootLimitExceeded",
            Operation::SnapshotImage,
        ),
        of("ConcurrentSnapshotLimitExceeded", Operation::SnapshotImage),
        of("PendingSnapshotLimitExceeded", Operation::SnapshotImage),
        of("IncorrectState", Operation::SnapshotImage),
        of(
            "CreditSpecificationUpdateInProgress",
            Operation::RebootInstance,
        ),
    ]
}

/// Breakdowns of EC2, and of a gateway that waits for it.
fn outages() -> Vec<NativeError> {
    let launches = [Operation::LaunchInstance, Operation::DescribeInstance];
    vec![
        error(500, "InternalError", Meaning::Outage),
        error(503, "Unavailable", Meaning::Outage),
        error(500, "InternalFailure", Meaning::Outage).of_calls(launches),
        error(503, "ServiceUnavailable", Meaning::Outage).of_calls(launches),
        error(408, "RequestTimeout", Meaning::Outage).of_calls(launches),
    ]
}
