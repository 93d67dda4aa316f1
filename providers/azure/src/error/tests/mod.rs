//! The errors that failures of Azure become.

use super::*;
use fleetwright::{
    Call, Effect, ErrorKind, InstanceConfig, NetworkId, Operation, RetryAdvice, Zone,
};
use fleetwright_provider_testkit::errors::check_error_kinds;

fn failed(cause: Cause, code: &str, message: &str) -> Failure {
    Failure::new(cause, message).with_code(code)
}

fn launch() -> Call {
    Call::new("azure", Operation::LaunchInstance)
}

#[test]
fn code_decides_before_status() {
    let cases = [
        (409, "OperationNotAllowed", "quota", ErrorKind::Quota),
        (409, "OperationNotAllowed", "", ErrorKind::Conflict),
        (429, "OperationNotAllowed", "", ErrorKind::Throttled),
        (429, "TooManyRequests", "", ErrorKind::Throttled),
        (
            429,
            "RetryableErrorDueToAnotherOperation",
            "",
            ErrorKind::Conflict,
        ),
        (409, "SkuNotAvailable", "", ErrorKind::Capacity),
        (
            401,
            "ExpiredAuthenticationToken",
            "",
            ErrorKind::Unauthenticated,
        ),
        (403, "AuthorizationFailed", "", ErrorKind::Forbidden),
        (
            409,
            "ReadOnlyDisabledSubscription",
            "",
            ErrorKind::Forbidden,
        ),
        (404, "ResourceGroupNotFound", "", ErrorKind::Invalid),
        (404, "PlatformImageNotFound", "", ErrorKind::Invalid),
        (404, "ResourceNotFound", "", ErrorKind::Invalid),
        (404, "GalleryImageNotFound", "", ErrorKind::Invalid),
        (404, "SubscriptionNotFound", "", ErrorKind::Forbidden),
        (404, "InvalidResourceType", "", ErrorKind::Unexpected),
        (404, "", "", ErrorKind::Unexpected),
        (408, "", "", ErrorKind::Unavailable),
        (400, "InvalidParameter", "", ErrorKind::Invalid),
        (400, "SubnetIsFull", "", ErrorKind::Capacity),
        (409, "Conflict", "", ErrorKind::Conflict),
        (412, "PreconditionFailed", "", ErrorKind::Conflict),
        (500, "InternalExecutionError", "", ErrorKind::Unavailable),
        (503, "", "", ErrorKind::Unavailable),
        (418, "Teapot", "", ErrorKind::Unexpected),
    ];
    check_error_kinds::<Azure>(&launch(), ErrorContext::default(), &cases);
}

#[test]
fn only_codes_of_azure_mean_not_found() {
    let absent = |status, code| failed(Cause::Responded(status), code, "").is_not_found();
    for code in ["ResourceNotFound", "NotFound", "ResourceGroupNotFound"] {
        assert!(absent(404, code), "{code}");
        assert!(!absent(409, code), "{code}");
    }
    for code in ["", "SubscriptionNotFound", "InvalidResourceType"] {
        assert!(!absent(404, code), "{code}");
    }
}

#[test]
fn only_a_missing_machine_means_that_its_name_is_not_free() {
    let is_missing = |status, code, message: &str| {
        failed(Cause::Responded(status), code, message).is_name_not_free("fw-1")
    };
    assert!(is_missing(404, "NotFound", "The entity was not found."));
    for image in [
        "Artifact: VMImage was not found.",
        "The image '/images/x' was not found.",
    ] {
        assert!(!is_missing(404, "NotFound", image), "{image}");
    }
    let machine = "The Resource 'Microsoft.Compute/virtualMachines/FW-1' was not found.";
    assert!(is_missing(404, "ResourceNotFound", machine));
    let disk = "The Resource 'Microsoft.Compute/disks/x' was not found.";
    assert!(!is_missing(404, "ResourceNotFound", disk));
    assert!(!is_missing(404, "ResourceGroupNotFound", "fw-1"));
    assert!(!is_missing(409, "NotFound", "fw-1"));
}

#[test]
fn operation_that_broke_down_can_be_retried() {
    for code in [
        "InternalExecutionError",
        "RetryableError",
        "VMStartTimedOut",
    ] {
        let cause = Cause::OperationFailed(crate::reason::operation_status(code));
        let error = failed(cause, code, "x").into_error(&launch(), ErrorContext::default());
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{code}: {error}");
        assert!(error.retry() != RetryAdvice::Never, "{code}: {error}");
    }
    let cause = Cause::OperationFailed(crate::reason::operation_status("VMExtensionError"));
    let error = failed(cause, "VMExtensionError", "x");
    let error = error.into_error(&launch(), ErrorContext::default());
    assert_eq!(error.kind(), ErrorKind::Unexpected, "{error}");
}

#[test]
fn capacity_and_quota_errors_have_scopes() {
    let config = InstanceConfig::builder("a:b:c:d", "Standard_B1s")
        .build()
        .unwrap();
    let (zone, network) = (Zone::new("1").unwrap(), NetworkId::new("a/b").unwrap());
    let context = ErrorContext {
        config: Some(&config),
        zone: Some(&zone),
        network: Some(&network),
        ..ErrorContext::default()
    };
    let scope = |code: &str, message: &str| {
        let failure = failed(Cause::OperationFailed(None), code, message);
        failure.into_error(&launch(), context).scopes().to_vec()
    };
    let offering = |zone, market| Scope::Offering {
        instance_type: Some(config.instance_type.clone()),
        zone,
        market,
    };
    assert_eq!(scope("AllocationFailed", ""), [offering(None, None)]);
    assert_eq!(
        scope("ZonalAllocationFailed", ""),
        [offering(Some(zone.clone()), None)]
    );
    assert_eq!(
        scope("OverconstrainedZonalAllocationRequest", ""),
        [offering(Some(zone.clone()), Some(Market::OnDemand))]
    );
    assert_eq!(scope("SubnetIsFull", ""), [Scope::Network(network.clone())]);
    let family = scope("QuotaExceeded", "standardBSFamily Cores quota");
    let on_demand = Some(Market::OnDemand);
    assert_eq!(
        family,
        [Scope::Family {
            family: super::family(&config.instance_type),
            zones: None,
            market: on_demand,
        }]
    );
    let whole = scope("QuotaExceeded", "Total Regional Cores quota");
    assert_eq!(whole, [Scope::market(Market::OnDemand)]);
    let spot = scope("QuotaExceeded", "LowPriorityCores quota");
    assert_eq!(spot, [Scope::market(Market::Spot)]);
    assert_eq!(scope("PublicIPCountLimitReached", ""), [Scope::Region]);
}

#[test]
fn sizes_of_one_quota_are_one_family() {
    let groups: [&[&str]; 5] = [
        &["Standard_D4s_v3", "Standard_D16s_v3", "standard_d2s_v3"],
        &["Standard_E8s_v3", "Standard_E8-4s_v3"],
        &["Standard_DS2_v2", "Standard_DS11_v2"],
        &["Standard_NC4as_T4_v3", "Standard_NC64as_T4_v3"],
        &["Odd"],
    ];
    for (at, group) in groups.iter().enumerate() {
        for one in *group {
            let family = super::family(&one.parse().unwrap());
            for (other_at, others) in groups.iter().enumerate() {
                for other in *others {
                    let same = family.contains(&other.parse().unwrap());
                    assert_eq!(same, at == other_at, "{one} {other}");
                }
            }
        }
    }
}

#[test]
fn failed_operation_may_have_had_an_effect() {
    let failure = failed(Cause::OperationFailed(None), "", "x");
    let error = failure.into_error(&launch(), ErrorContext::default());
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Unexpected, Effect::Unknown)
    );
}

#[test]
fn throttling_keeps_the_retry_delay() {
    let mut failure = failed(Cause::Responded(429), "TooManyRequests", "slow down");
    let retry = |failure: &Failure| {
        let error = failure
            .clone()
            .into_error(&launch(), ErrorContext::default());
        error.retry()
    };
    assert_eq!(retry(&failure), RetryAdvice::After(Azure::RETRY_DELAY));
    failure.retry_after = Some(Duration::from_secs(1200));
    assert_eq!(
        retry(&failure),
        RetryAdvice::After(Duration::from_secs(1200))
    );
}
