//! What EC2's error codes mean. Pure.
//!
//! Owns the meaning of every code. A code that is not listed is classified by its form, such as `…LimitExceeded`,
//! and one without a known form by its HTTP status: a refusal changed nothing and would be the same for a retry,
//! the effect of an internal error is unknown.
//!
//! The code decides before the status. EC2 reports missing capacity with status 500 and throttling
//! with 503, and both changed nothing; by status they would be outages with an unknown effect.

use std::time::Duration;

use fleetwright::{Market, Scope};
pub(crate) use fleetwright_provider_support::{Cause, ErrorContext};
use fleetwright_provider_support::{Class, Service};

use crate::scope;

/// A call to EC2 that failed.
pub(crate) type Failure = fleetwright_provider_support::Failure<Ec2>;

/// EC2 as a service whose failures the shared code converts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ec2 {}

impl Service for Ec2 {
    const NAME: &'static str = "EC2";
    /// EC2 refills its request buckets every second.
    const RETRY_DELAY: Duration = Duration::from_secs(1);

    fn classify(failure: &Failure, context: &ErrorContext<'_>) -> Class {
        let class = classify(failure.code(), &failure.message, context);
        match (class, failure.cause) {
            (Class::Other, Cause::Responded(status)) if !failure.code().is_empty() => {
                classify_status(status)
            }
            (class, _) => class,
        }
    }
}

/// Returns whether EC2 knows no instance with one of the ids, or finds one of them malformed. A
/// malformed id cannot belong to an instance, so both mean the same to a caller.
pub(crate) fn is_unknown_id(failure: &Failure) -> bool {
    failure.code().starts_with("InvalidInstanceID")
}

/// Classifies a code that is not listed. EC2 refuses with many codes that its reference does not list, always
/// because of the request; a retry of the same request has the same result.
const fn classify_status(status: u16) -> Class {
    match status {
        401 => Class::Unauthenticated,
        403 => Class::Forbidden,
        // A gateway stopped waiting for EC2.
        408 => Class::Other,
        429 => Class::Throttled,
        400..=499 => Class::Invalid("request"),
        _ => Class::Other,
    }
}

/// Classifies a code. The message decides for two codes with several meanings. `Unsupported` is a type that
/// the zone does not offer, a type that EC2 cannot provide now (hashicorp/terraform-provider-aws#9113), or settings
/// that do not fit together. `AuthFailure` is invalid credentials, or valid ones that may not use an image or
/// another resource (Amazon EC2 API reference, "Error codes").
fn classify(code: &str, message: &str, context: &ErrorContext<'_>) -> Class {
    match code {
        "InvalidInstanceID.NotFound" | "InvalidInstanceID.Malformed" => Class::NotFound,
        "IdempotentParameterMismatch" => Class::TokenConflict,
        "IdempotentInstanceTerminated" => Class::TokenSpent,
        "InsufficientInstanceCapacity"
        | "InsufficientHostCapacity"
        | "InsufficientReservedInstanceCapacity"
        | "InsufficientCapacity"
        | "ReservationCapacityExceeded"
        | "UnavailableHostRequirements"
        | "UnfulfillableCapacity"
        | "VolumeTypeNotAvailableInZone"
        | "SpotMaxPriceTooLow" => Class::Capacity(scope::offering(context, message)),
        // A type that one zone does not offer is a lack of capacity there; another zone may have it.
        "Unsupported"
            if message.contains("vailability Zone")
                || message.contains("configuration is currently not supported") =>
        {
            Class::Capacity(scope::offering(context, message))
        }
        "Unsupported" => Class::Invalid("config"),
        "InsufficientVolumeCapacity" => Class::Capacity(scope::zone(context, message)),
        "InsufficientAddressCapacity" => Class::Capacity(Scope::Region),
        "InsufficientFreeAddressesInSubnet" => Class::Capacity(scope::subnet(context, message)),
        "VcpuLimitExceeded" => Class::Quota(scope::vcpu_quota(context, None)),
        "MaxSpotInstanceCountExceeded" => {
            Class::Quota(scope::vcpu_quota(context, Some(Market::Spot)))
        }
        "InstanceLimitExceeded" => Class::Quota(scope::type_quota(context)),
        "MaxFleetCountExceeded"
        | "VolumeLimitExceeded"
        | "MaxIOPSLimitExceeded"
        | "AddressLimitExceeded"
        | "HostLimitExceeded"
        | "NetworkInterfaceLimitExceeded"
        | "PrivateIpAddressLimitExceeded"
        | "SnapshotLimitExceeded"
        | "ResourceLimitExceeded" => Class::Quota(Scope::Region),
        "RequestLimitExceeded"
        | "Throttling"
        | "ThrottlingException"
        | "RequestThrottled"
        | "RequestThrottledException"
        | "EC2ThrottledException"
        | "TooManyRequestsException"
        | "BandwidthLimitExceeded" => Class::Throttled,
        "AuthFailure" if message.to_ascii_lowercase().contains("not authorized") => {
            Class::Forbidden
        }
        "AuthFailure"
        | "ExpiredToken"
        | "ExpiredTokenException"
        | "IncompleteSignature"
        | "InvalidClientTokenId"
        | "MissingAuthenticationToken"
        | "RequestExpired"
        | "SignatureDoesNotMatch"
        | "UnrecognizedClientException" => Class::Unauthenticated,
        "UnauthorizedOperation"
        | "AccessDenied"
        | "AccessDeniedException"
        | "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
        | "AccountDisabled"
        | "Blocked"
        | "OperationNotPermitted"
        | "OptInRequired"
        | "PendingVerification" => Class::Forbidden,
        "UnsupportedOperation" => Class::Unsupported,
        // Each passes when another change of the same resource is over.
        "ConcurrentCreateImageNoRebootLimitExceeded"
        | "ConcurrentSnapshotLimitExceeded"
        | "ConcurrentTagAccess"
        | "PendingSnapshotLimitExceeded"
        | "ResourceInUse"
        | "RetryableError" => Class::Conflict,
        // A disk or a card that was detached and deleted since it was read.
        "InvalidVolume.NotFound" | "InvalidNetworkInterfaceID.NotFound" => Class::Conflict,
        "InvalidAMIName.Duplicate" | "InvalidAMIName.Malformed" => Class::Invalid("name"),
        "InvalidUserData.Malformed" => Class::Invalid("user data"),
        "InvalidBlockDeviceMapping" => Class::Invalid("disk size"),
        "TagLimitExceeded" | "TagPolicyViolation" | "InvalidTagKey.Malformed" => {
            Class::Invalid("tags")
        }
        // Limits of one request or of one instance. No quota can be raised for them.
        "AttachmentLimitExceeded" | "FilterLimitExceeded" => Class::Invalid("config"),
        _ => classify_form(code, message, context),
    }
}

/// Classifies a code by its form. EC2's reference ("Error codes") has several codes for each kind of shortage, limit
/// and state, and new ones are added.
fn classify_form(code: &str, message: &str, context: &ErrorContext<'_>) -> Class {
    let name = code.strip_suffix("Exception").unwrap_or(code);
    if name.starts_with("Insufficient") && name.contains("Capacity") {
        Class::Capacity(scope::offering(context, message))
    } else if name.starts_with("Incorrect") && name.contains("State")
        || name.ends_with("InProgress")
    {
        Class::Conflict
    } else if name.contains("Throttl") || name.ends_with("RateExceeded") {
        Class::Throttled
    } else if name.ends_with("PerInstanceLimitExceeded")
        || name.ends_with("PerInterfaceLimitExceeded")
    {
        // The request itself is too large.
        Class::Invalid("config")
    } else if name.ends_with("LimitExceeded")
        || name.ends_with("QuotaExceeded")
        || name.ends_with("IOPSLimit")
    {
        Class::Quota(Scope::Region)
    } else {
        classify_prefix(code)
    }
}

/// Classifies the families of codes that name a field, the more specific prefixes first.
fn classify_prefix(code: &str) -> Class {
    let fields = [
        ("InvalidAMIID", "image"),
        ("InvalidInstanceType", "instance type"),
        ("InvalidSubnet", "placement.network"),
        ("InvalidGroup", "placement.security_groups"),
        ("InvalidSecurityGroup", "placement.security_groups"),
        ("InvalidZone", "placement.zone"),
        ("InvalidAvailabilityZone", "placement.zone"),
        ("InvalidKeyPair", "key_pair"),
        ("Invalid", "config"),
        ("MissingParameter", "config"),
        ("UnknownParameter", "config"),
    ];
    let known = fields.iter().find(|(prefix, _)| code.starts_with(prefix));
    known.map_or(Class::Other, |(_, field)| Class::Invalid(field))
}

#[cfg(test)]
mod tests;
