//! What every code of EC2 means, and what unknown codes mean.

mod forms;

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
        (418, "ATeapot", "", ErrorKind::Invalid),
    ];
    let config = config();
    let context = ErrorContext {
        config: Some(&config),
        ..ErrorContext::default()
    };
    check_error_kinds::<Ec2>(&launch(), context, &cases);
}

/// What a code means: kind, retry, and whether the scope is an offering, a family, a network or a region.
type Meaning = (ErrorKind, RetryAdvice, &'static str);

#[test]
fn every_code_has_its_kind_retry_scope_and_effect() {
    let never = |kind, scope| (kind, RetryAdvice::Never, scope);
    let soon = |kind| (kind, RetryAdvice::After(Ec2::RETRY_DELAY), "");
    let zoned = "in your requested Availability Zone (us-east-1b)";
    let current = "The requested configuration is currently not supported. Please check";
    let image = "Not authorized for images: [ami-1]";
    let capacity = never(ErrorKind::Capacity, "offering");
    let region = never(ErrorKind::Quota, "region");
    let family = never(ErrorKind::Quota, "family");
    let (unauthenticated, forbidden, invalid) = (
        never(ErrorKind::Unauthenticated, ""),
        never(ErrorKind::Forbidden, ""),
        never(ErrorKind::Invalid, ""),
    );
    let cases: Vec<(u16, &[&str], &str, Meaning)> = vec![
        (
            500,
            &[
                "InsufficientInstanceCapacity",
                "InsufficientHostCapacity",
                "InsufficientReservedInstanceCapacity",
                "InsufficientCapacity",
                "InsufficientVolumeCapacity",
            ],
            "",
            capacity,
        ),
        (
            400,
            &[
                "ReservationCapacityExceeded",
                "UnfulfillableCapacity",
                "VolumeTypeNotAvailableInZone",
                "SpotMaxPriceTooLow",
            ],
            "",
            capacity,
        ),
        (400, &["Unsupported"], zoned, capacity),
        (400, &["Unsupported"], current, capacity),
        (400, &["Unsupported"], "the image needs arm64", invalid),
        (
            400,
            &["InsufficientFreeAddressesInSubnet"],
            "",
            never(ErrorKind::Capacity, "network"),
        ),
        (
            500,
            &["InsufficientAddressCapacity"],
            "",
            never(ErrorKind::Capacity, "region"),
        ),
        (
            400,
            &["VcpuLimitExceeded", "MaxSpotInstanceCountExceeded"],
            "",
            family,
        ),
        (
            400,
            &["InstanceLimitExceeded"],
            "",
            never(ErrorKind::Quota, "offering"),
        ),
        (
            400,
            &[
                "MaxFleetCountExceeded",
                "VolumeLimitExceeded",
                "MaxIOPSLimitExceeded",
                "AddressLimitExceeded",
                "HostLimitExceeded",
                "NetworkInterfaceLimitExceeded",
                "PrivateIpAddressLimitExceeded",
                "SnapshotLimitExceeded",
                "ResourceLimitExceeded",
            ],
            "",
            region,
        ),
        (
            503,
            &[
                "RequestLimitExceeded",
                "Throttling",
                "EC2ThrottledException",
            ],
            "",
            soon(ErrorKind::Throttled),
        ),
        (
            401,
            &[
                "AuthFailure",
                "SignatureDoesNotMatch",
                "MissingAuthenticationToken",
            ],
            "AWS was not able to validate the provided access credentials",
            unauthenticated,
        ),
        (
            400,
            &["RequestExpired", "ExpiredToken", "InvalidClientTokenId"],
            "",
            unauthenticated,
        ),
        (401, &["AuthFailure"], image, forbidden),
        (400, &["AuthFailure"], image, forbidden),
        (
            403,
            &[
                "UnauthorizedOperation",
                "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
            ],
            "",
            forbidden,
        ),
        (
            400,
            &[
                "PendingVerification",
                "OptInRequired",
                "Blocked",
                "OperationNotPermitted",
            ],
            "",
            forbidden,
        ),
        (
            400,
            &[
                "VPCIdNotSpecified",
                "MissingInput",
                "MissingParameter",
                "MissingAction",
                "NoSuchVersion",
                "MalformedQueryString",
                "InvalidAMIID.NotFound",
                "InvalidAMIID.Unavailable",
                "InvalidAMIName.Duplicate",
                "InvalidParameterCombination",
                "InvalidSubnetID.NotFound",
                "InvalidUserData.Malformed",
                "TagLimitExceeded",
                "UnknownParameter",
                "DefaultVpcDoesNotExist",
                "AttachmentLimitExceeded",
                "SecurityGroupsPerInstanceLimitExceeded",
                "EncryptedVolumesNotSupported",
            ],
            "",
            invalid,
        ),
        (
            400,
            &[
                "IncorrectInstanceState",
                "IncorrectState",
                "ConcurrentTagAccess",
            ],
            "",
            soon(ErrorKind::Conflict),
        ),
        (
            400,
            &["UnsupportedOperation"],
            "spot",
            never(ErrorKind::Unsupported, ""),
        ),
    ];
    let config = config();
    let context = ErrorContext {
        config: Some(&config),
        zone: config.placement.zone.as_ref(),
        network: config.placement.network.as_ref(),
        ..ErrorContext::default()
    };
    for (status, codes, message, (kind, retry, scope)) in cases {
        for code in codes {
            let error = response(status, code, message).into_error(&launch(), context);
            assert_eq!(
                (error.kind(), error.retry()),
                (kind, retry),
                "{code} {error}"
            );
            assert_eq!(error.effect(), Effect::None, "{code}");
            let found = match error.scopes() {
                [] => "",
                [Scope::Offering { .. }] => "offering",
                [Scope::Family { .. }] => "family",
                [Scope::Network(_)] => "network",
                [Scope::Region] => "region",
                other => panic!("{code}: {other:?}"),
            };
            assert_eq!(found, scope, "{code}");
        }
    }
}

#[test]
fn unknown_code_of_a_refusal_is_invalid_and_that_of_a_breakdown_can_be_retried() {
    let mut state = 7_u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    for _ in 0..2_000 {
        let letters = (0..=random() % 20).map(|_| char::from(b'a' + (random() % 26) as u8));
        let code = format!("Zz{}", letters.collect::<String>());
        let refusal = match 400 + u16::try_from(random() % 100).unwrap() {
            401 | 403 | 408 | 429 => 400,
            status => status,
        };
        let error = response(refusal, &code, "no").into_error(&launch(), ErrorContext::default());
        assert_eq!(
            (error.kind(), error.retry(), error.effect()),
            (ErrorKind::Invalid, RetryAdvice::Never, Effect::None),
            "{refusal} {code}"
        );
        let breakdown = 500 + u16::try_from(random() % 100).unwrap();
        let error = response(breakdown, &code, "no").into_error(&launch(), ErrorContext::default());
        assert_eq!(
            (error.kind(), error.retry(), error.effect()),
            (
                ErrorKind::Unavailable,
                RetryAdvice::SameToken,
                Effect::Unknown
            ),
            "{breakdown} {code}"
        );
    }
}

#[test]
fn refusal_of_a_call_keeps_the_words_of_ec2() {
    let message =
        "You can't stop the Spot Instance 'i-1' because it is associated with a one-time request";
    let stop = Call::new("ec2", Operation::StopInstance);
    let error =
        response(400, "UnsupportedOperation", message).into_error(&stop, ErrorContext::default());
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains(message), "{error}");
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
    let error =
        response(400, "InsufficientFreeAddressesInSubnet", "none").into_error(&launch(), context);
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
    let error = response(400, "IdempotentInstanceTerminated", "").into_error(&launch(), context);
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
