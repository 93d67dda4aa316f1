//! The errors that failures of Compute Engine become.

use super::*;
use fleetwright::{
    Call, Effect, ErrorKind, InstanceConfig, Market, NetworkId, Operation, RetryAdvice, Scope, Zone,
};
use fleetwright_provider_testkit::errors::check_error_kinds;

fn failed(cause: Cause, code: &str, message: &str) -> Failure {
    Failure::new(cause, message).with_code(code)
}

fn launch() -> Call {
    Call::new("gcp", Operation::LaunchInstance)
}

#[test]
fn code_decides_before_status() {
    let cases = [
        (403, "quotaExceeded", "", ErrorKind::Quota),
        (403, "rateLimitExceeded", "", ErrorKind::Throttled),
        (403, "forbidden", "", ErrorKind::Forbidden),
        (403, "", "", ErrorKind::Forbidden),
        (401, "authError", "", ErrorKind::Unauthenticated),
        (401, "", "", ErrorKind::Unauthenticated),
        (429, "", "", ErrorKind::Throttled),
        (400, "resourceNotReady", "", ErrorKind::Conflict),
        (
            400,
            "invalid",
            "Invalid value for field",
            ErrorKind::Invalid,
        ),
        (
            400,
            "invalid",
            "Machine type x does not exist in zone y",
            ErrorKind::Capacity,
        ),
        (
            404,
            "notFound",
            "'projects/p/global/images/x' was not found",
            ErrorKind::Invalid,
        ),
        (412, "conditionNotMet", "", ErrorKind::Conflict),
        (500, "backendError", "", ErrorKind::Unavailable),
        (503, "", "", ErrorKind::Unavailable),
        (418, "teapot", "", ErrorKind::Unexpected),
    ];
    check_error_kinds::<ComputeEngine>(&launch(), ErrorContext::default(), &cases);
}

#[test]
fn failed_operation_has_no_effect() {
    let cases = [
        ("ZONE_RESOURCE_POOL_EXHAUSTED", "", ErrorKind::Capacity),
        (
            "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
            "",
            ErrorKind::Capacity,
        ),
        ("VM_MIN_COUNT_NOT_REACHED", "", ErrorKind::Capacity),
        (
            "UNSUPPORTED_OPERATION",
            "Instance was preempted",
            ErrorKind::Capacity,
        ),
        (
            "UNSUPPORTED_OPERATION",
            "no such thing",
            ErrorKind::Unexpected,
        ),
        ("IP_SPACE_EXHAUSTED", "", ErrorKind::Capacity),
        ("QUOTA_EXCEEDED", "", ErrorKind::Quota),
        ("RESOURCE_OPERATION_RATE_EXCEEDED", "", ErrorKind::Throttled),
        ("PERMISSIONS_ERROR", "", ErrorKind::Forbidden),
        ("RESOURCE_NOT_READY", "", ErrorKind::Conflict),
        ("INTERNAL_ERROR", "", ErrorKind::Unavailable),
    ];
    for (code, message, kind) in cases {
        let status = if code == "INTERNAL_ERROR" { 503 } else { 400 };
        let failure = failed(Cause::OperationFailed(Some(status)), code, message);
        let error = failure.into_error(&launch(), ErrorContext::default());
        assert_eq!(error.kind(), kind, "{code}: {error}");
        assert_eq!(error.effect(), Effect::None, "{code}: {error}");
        assert_eq!(error.native_code(), Some(code));
    }
}

#[test]
fn not_found_in_an_operation_may_be_about_state() {
    for (cause, about_state) in [
        (Cause::OperationFailed(Some(404)), true),
        (Cause::OperationFailed(Some(400)), true),
        (Cause::Responded(404), false),
    ] {
        let failure = failed(cause, "RESOURCE_NOT_FOUND", "");
        assert_eq!(failure.may_be_about_state(), about_state, "{cause:?}");
    }
}

#[test]
fn capacity_error_names_the_offering() {
    let config = InstanceConfig::builder("debian", "n2-standard-4")
        .build()
        .unwrap();
    let (zone, network) = (
        Zone::new("us-central1-a").unwrap(),
        NetworkId::new("fleet").unwrap(),
    );
    let context = ErrorContext {
        config: Some(&config),
        zone: Some(&zone),
        network: Some(&network),
        ..ErrorContext::default()
    };
    let later = Cause::OperationFailed(Some(503));
    let error = failed(later, "ZONE_RESOURCE_POOL_EXHAUSTED", "").into_error(&launch(), context);
    let offering = Scope::Offering {
        instance_type: Some(config.instance_type.clone()),
        zone: Some(zone.clone()),
        market: Some(Market::OnDemand),
    };
    assert_eq!(error.scopes(), [offering]);
    let error = failed(later, "IP_SPACE_EXHAUSTED", "").into_error(&launch(), context);
    assert_eq!(error.scopes(), [Scope::Network(network.clone())]);
}

#[test]
fn throttling_keeps_the_retry_delay() {
    let mut failure = failed(Cause::Responded(403), "rateLimitExceeded", "slow down");
    let retry = |failure: &Failure| {
        let error = failure
            .clone()
            .into_error(&launch(), ErrorContext::default());
        error.retry()
    };
    for (now, seconds) in [
        (Some("2026-11-16T10:00:15Z"), 45),
        (Some("2026-11-16T10:00:59Z"), 1),
        (Some("2026-11-16T10:01:00Z"), 60),
        (None, 60),
    ] {
        failure.server_time = now.and_then(|now: &str| now.parse().ok());
        let delay = Duration::from_secs(seconds);
        assert_eq!(retry(&failure), RetryAdvice::After(delay), "{now:?}");
    }
    failure.retry_after = Some(Duration::from_secs(7));
    assert_eq!(retry(&failure), RetryAdvice::After(Duration::from_secs(7)));
}

#[test]
fn only_a_rate_quota_is_refilled_each_minute() {
    for (cause, code, limited) in [
        (Cause::Responded(403), "rateLimitExceeded", true),
        (Cause::Responded(429), "RATE_LIMIT_EXCEEDED", true),
        (Cause::Responded(429), "", true),
        (
            Cause::Responded(403),
            "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED",
            false,
        ),
        (Cause::Responded(403), "quotaExceeded", false),
        (Cause::Responded(403), "", false),
        (
            Cause::OperationFailed(Some(403)),
            "rateLimitExceeded",
            false,
        ),
    ] {
        let failure = failed(cause, code, "");
        assert_eq!(failure.is_rate_limited(), limited, "{cause:?} {code}");
    }
}
