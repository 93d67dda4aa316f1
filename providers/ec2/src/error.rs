//! What EC2's error codes mean. Pure.
//!
//! Owns the meaning of every code. A code that is not listed is classified by its HTTP status: a refusal
//! changed nothing, the effect of an internal error is unknown.
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
        classify(failure.code(), &failure.message, context)
    }
}

/// Returns whether EC2 knows no instance with one of the ids, or finds one of them malformed. A
/// malformed id cannot belong to an instance, so both mean the same to a caller.
pub(crate) fn is_unknown_id(failure: &Failure) -> bool {
    failure.code().starts_with("InvalidInstanceID")
}

/// Classifies a code. The message decides only for `Unsupported`, which EC2 uses both for a type that
/// the zone does not offer and for settings that do not fit together.
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
        | "UnfulfillableCapacity"
        | "VolumeTypeNotAvailableInZone"
        | "SpotMaxPriceTooLow" => Class::Capacity(scope::offering(context, message)),
        // A type that one zone does not offer is a lack of capacity there; another zone may have it.
        "Unsupported" if message.contains("vailability Zone") => {
            Class::Capacity(scope::offering(context, message))
        }
        "Unsupported" => Class::Invalid("config"),
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
        | "NetworkInterfaceLimitExceeded"
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
        | "Blocked"
        | "OperationNotPermitted"
        | "OptInRequired"
        | "PendingVerification" => Class::Forbidden,
        "UnsupportedOperation" => Class::Unsupported,
        "ConcurrentTagAccess" | "IncorrectState" | "ResourceInUse" => Class::Conflict,
        "InvalidUserData.Malformed" => Class::Invalid("user data"),
        "InvalidBlockDeviceMapping" => Class::Invalid("disk size"),
        "TagLimitExceeded" | "InvalidTagKey.Malformed" => Class::Invalid("tags"),
        _ => classify_prefix(code),
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
        ("InvalidKeyPair", "key_pair"),
        ("Invalid", "config"),
        ("MissingParameter", "config"),
        ("UnknownParameter", "config"),
    ];
    let known = fields.iter().find(|(prefix, _)| code.starts_with(prefix));
    known.map_or(Class::Other, |(_, field)| Class::Invalid(field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::{
        Call, Effect, ErrorKind, InstanceConfig, InstanceId, LaunchToken, NetworkId, Operation,
        RetryAdvice, Zone,
    };
    use fleetwright_provider_testkit::errors::check_error_kinds;

    fn response(status: u16, code: &str, message: &str) -> Failure {
        Failure::new(Cause::Responded(status), message)
            .with_code(code)
            .with_request_id(Some("req-1".to_owned()))
    }

    fn launch() -> Call {
        Call::new("ec2", Operation::LaunchInstance)
    }

    fn config() -> InstanceConfig {
        let mut config = InstanceConfig::builder("ami-1", "m7i.large")
            .build()
            .unwrap();
        config.placement.zone = Some(Zone::new("us-east-1b").unwrap());
        config.placement.network = Some(NetworkId::new("subnet-1").unwrap());
        config
    }

    #[test]
    fn code_decides_the_kind_whatever_the_status() {
        let cases = [
            (500, "InsufficientInstanceCapacity", "", ErrorKind::Capacity),
            (
                400,
                "Unsupported",
                "not supported in your requested Availability Zone (us-east-1b)",
                ErrorKind::Capacity,
            ),
            (
                400,
                "Unsupported",
                "the image needs another architecture",
                ErrorKind::Invalid,
            ),
            (
                400,
                "InsufficientFreeAddressesInSubnet",
                "",
                ErrorKind::Capacity,
            ),
            (400, "VcpuLimitExceeded", "", ErrorKind::Quota),
            (400, "MaxSpotInstanceCountExceeded", "", ErrorKind::Quota),
            (503, "RequestLimitExceeded", "", ErrorKind::Throttled),
            (401, "AuthFailure", "", ErrorKind::Unauthenticated),
            (400, "RequestExpired", "", ErrorKind::Unauthenticated),
            (403, "UnauthorizedOperation", "", ErrorKind::Forbidden),
            (400, "PendingVerification", "", ErrorKind::Forbidden),
            (400, "OperationNotPermitted", "", ErrorKind::Forbidden),
            (400, "InvalidAMIID.NotFound", "", ErrorKind::Invalid),
            (400, "InvalidUserData.Malformed", "", ErrorKind::Invalid),
            (400, "UnsupportedOperation", "", ErrorKind::Unsupported),
            (500, "InternalError", "", ErrorKind::Unavailable),
            (503, "Unavailable", "", ErrorKind::Unavailable),
            (418, "ATeapot", "", ErrorKind::Unexpected),
        ];
        let config = config();
        let context = ErrorContext {
            config: Some(&config),
            ..ErrorContext::default()
        };
        check_error_kinds::<Ec2>(&launch(), context, &cases);
    }

    #[test]
    fn capacity_error_names_offering_or_network() {
        let config = config();
        let context = ErrorContext {
            config: Some(&config),
            zone: config.placement.zone.as_ref(),
            network: config.placement.network.as_ref(),
            ..ErrorContext::default()
        };
        let error =
            response(500, "InsufficientInstanceCapacity", "none").into_error(&launch(), context);
        assert_eq!(
            error.scopes(),
            [Scope::Offering {
                instance_type: Some("m7i.large".parse().unwrap()),
                zone: Some("us-east-1b".parse().unwrap()),
                market: Some(Market::OnDemand),
            }]
        );
        let error = response(400, "InsufficientFreeAddressesInSubnet", "none")
            .into_error(&launch(), context);
        assert_eq!(
            error.scopes(),
            [Scope::Network("subnet-1".parse().unwrap())]
        );
    }

    #[test]
    fn throttling_keeps_the_retry_delay_of_the_response() {
        let mut failure = response(503, "RequestLimitExceeded", "slow down");
        let retry = |failure: &Failure| {
            failure
                .clone()
                .into_error(&launch(), ErrorContext::default())
                .retry()
        };
        assert_eq!(retry(&failure), RetryAdvice::After(Ec2::RETRY_DELAY));
        failure.retry_after = Some(Duration::from_secs(7));
        assert_eq!(retry(&failure), RetryAdvice::After(Duration::from_secs(7)));
    }

    #[test]
    fn errors_name_token_and_instance() {
        let (token, id) = (
            LaunchToken::new("t-1").unwrap(),
            InstanceId::new("i-1").unwrap(),
        );
        let context = ErrorContext {
            token: Some(&token),
            ..ErrorContext::default()
        };
        let error = response(400, "IdempotentParameterMismatch", "").into_error(&launch(), context);
        assert_eq!(error.kind(), ErrorKind::TokenConflict);
        let error =
            response(400, "IdempotentInstanceTerminated", "").into_error(&launch(), context);
        assert_eq!(error.kind(), ErrorKind::TokenSpent);
        let stop = Call::new("ec2", Operation::StopInstance);
        for (window, retry) in [
            (Duration::ZERO, RetryAdvice::Never),
            (
                Duration::from_secs(9),
                RetryAdvice::After(Duration::from_secs(9)),
            ),
        ] {
            let context = ErrorContext {
                instance: Some(&id),
                hidden_for: window,
                ..ErrorContext::default()
            };
            let error = response(400, "InvalidInstanceID.NotFound", "").into_error(&stop, context);
            assert_eq!((error.kind(), error.retry()), (ErrorKind::NotFound, retry));
        }
    }

    #[test]
    fn effect_is_unknown_without_a_response_and_none_if_not_sent() {
        let cases = [
            (Cause::TimedOut, ErrorKind::Timeout, Effect::Unknown),
            (Cause::Disconnected, ErrorKind::Unavailable, Effect::Unknown),
            (Cause::Unreadable, ErrorKind::Unexpected, Effect::Unknown),
            (
                Cause::Responded(200),
                ErrorKind::Unexpected,
                Effect::Unknown,
            ),
            (
                Cause::Responded(502),
                ErrorKind::Unavailable,
                Effect::Unknown,
            ),
            (
                Cause::NoCredentials,
                ErrorKind::Unauthenticated,
                Effect::None,
            ),
            (Cause::NotSent, ErrorKind::Unexpected, Effect::None),
        ];
        for (cause, kind, effect) in cases {
            let failure = Failure::new(cause, "x");
            let error = failure.into_error(&launch(), ErrorContext::default());
            assert_eq!((error.kind(), error.effect()), (kind, effect), "{cause:?}");
        }
    }
}
