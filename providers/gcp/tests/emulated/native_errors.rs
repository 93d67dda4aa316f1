//! The errors of Compute Engine, each with what it means.
//!
//! Owns the table for ERRORS-15 and ERRORS-16. It is written from the sources below and reads no code of the provider. Errors
//! of operations are not in it: a launch returns before its operation ends.
//!
//! - "Troubleshoot quota errors", Google: `QUOTA_EXCEEDED` and `RATE_LIMIT_EXCEEDED` have status 403.
//! - "Troubleshooting bulk VM creation", Google: `rateLimitExceeded` with status 403, `insufficientCapacity` with 503.
//! - "Allocation quotas", Google: `CPUS` is that of the machine types without one of their own, in a region;
//!   `PREEMPTIBLE_CPUS` that of spot instances; `CPUS_ALL_REGIONS` is global. GoogleCloudPlatform/pubsec-declarative-toolkit#627
//!   has an N2 quota that is used up, and launches of E2.
//! - "Standard error responses", Google's JSON APIs: `authError`, `forbidden`, `insufficientPermissions`,
//!   `accessNotConfigured`, `userRateLimitExceeded`, `backendError` and `internalError`.

use fleetwright_contract_tests::{Meaning, NativeError};
use fleetwright_gcp::fleetwright::{InstanceConfig, Market, Operation, Placement};
use fleetwright_provider_testkit::emulated::{EmulatedAccount as _, parse_name};

use super::GcpProject;

const POLICY: &str = "Constraint constraints/compute.vmExternalIpAccess violated for project 1.";

/// Returns all errors.
pub(super) fn all() -> Vec<NativeError> {
    let launches = [Operation::LaunchInstance, Operation::LaunchInstances];
    let of_launches = |status, code, meaning| error(status, code, meaning).of_calls(launches);
    let mut all = vec![
        error(403, "rateLimitExceeded", Meaning::Throttled),
        of_launches(403, "userRateLimitExceeded", Meaning::Throttled),
        of_launches(403, "RATE_LIMIT_EXCEEDED", Meaning::Throttled),
        error(401, "authError", Meaning::BadCredentials),
        error(403, "forbidden", Meaning::Forbidden),
        of_launches(403, "insufficientPermissions", Meaning::Forbidden),
        of_launches(403, "accessNotConfigured", Meaning::Forbidden),
        of_launches(412, "conditionNotMet", Meaning::Forbidden).with_message(POLICY),
        of_launches(400, "invalid", Meaning::Invalid { field: None }),
        error(500, "internalError", Meaning::Outage),
        error(503, "backendError", Meaning::Outage)
            .of_calls([Operation::LaunchInstance, Operation::DescribeInstance]),
    ];
    all.extend(shortages());
    all
}

/// Missing capacity and quotas.
fn shortages() -> Vec<NativeError> {
    let here = || launch("e2-micro", "us-central1-b");
    let quota = |code, metric: &str| {
        let message = format!("Quota '{metric}' exceeded.  Limit: 24.0 in region us-central1.");
        error(403, code, Meaning::Quota)
            .with_message(message)
            .launched_in(placement(here()))
    };
    vec![
        error(503, "insufficientCapacity", Meaning::Capacity)
            .launched_in(placement(here()))
            .concerning([here()])
            .sparing([launch("e2-micro", "us-central1-a"), on_spot(here())]),
        quota("quotaExceeded", "CPUS")
            .concerning([here(), launch("e2-small", "us-central1-a")])
            .sparing([launch("n2-standard-2", "us-central1-a")]),
        quota("QUOTA_EXCEEDED", "CPUS_ALL_REGIONS")
            .concerning([here(), launch("n2-standard-2", "us-central1-a")]),
        quota("QUOTA_EXCEEDED", "IN_USE_ADDRESSES")
            .concerning([here(), launch("n2-standard-2", "us-central1-a")]),
        quota("quotaExceeded", "PREEMPTIBLE_CPUS")
            .launched_in(placement(on_spot(here())))
            .concerning([on_spot(here())])
            .sparing([here()]),
    ]
}

fn error(status: u16, code: &str, meaning: Meaning) -> NativeError {
    NativeError::new(code, meaning).with_status(status)
}

fn launch(instance_type: &str, zone: &str) -> InstanceConfig {
    let image = parse_name(GcpProject::FIXTURES.image);
    let mut config = InstanceConfig::new(image, parse_name(instance_type));
    config.placement.zone = Some(parse_name(zone));
    config
}

fn on_spot(mut config: InstanceConfig) -> InstanceConfig {
    config.placement.market = Some(Market::Spot);
    config
}

fn placement(config: InstanceConfig) -> Placement {
    config.placement
}
