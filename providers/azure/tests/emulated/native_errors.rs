//! The errors of Azure, each with what it means.
//!
//! Owns the table for ERRORS-15 and ERRORS-16. It is written from the sources below and reads no code of the provider. Errors
//! of operations are not in it: a launch returns before its operation ends.
//!
//! - "Understand common error messages when you manage virtual machines in Azure", Microsoft: the codes of allocations.
//! - "Resolve errors for SKU not available", Microsoft: `SkuNotAvailable`.
//! - "Resolve errors for resource quotas", Microsoft: `OperationNotAllowed` and `QuotaExceeded`, and the words of a quota.
//! - "Throttling Resource Manager requests" and "Understanding throttling" of virtual machines, Microsoft: status 429.
//! - "Troubleshoot common Azure deployment errors", Microsoft: the codes of credentials, permissions and policies.

use fleetwright_azure::fleetwright::{InstanceConfig, Market, Operation, Placement};
use fleetwright_contract_tests::{Meaning, NativeError};
use fleetwright_provider_testkit::emulated::{EmulatedAccount as _, parse_name};

use super::AzureGroup;

/// Returns all errors.
pub(super) fn all() -> Vec<NativeError> {
    let launches = [Operation::LaunchInstance, Operation::LaunchInstances];
    let of_launches = |status, code, meaning| error(status, code, meaning).of_calls(launches);
    let mut all = vec![
        error(429, "TooManyRequests", Meaning::Throttled),
        of_launches(429, "OperationNotAllowed", Meaning::Throttled),
        of_launches(429, "SubscriptionRequestsThrottled", Meaning::Throttled),
        error(401, "ExpiredAuthenticationToken", Meaning::BadCredentials),
        of_launches(401, "InvalidAuthenticationToken", Meaning::BadCredentials),
        error(403, "AuthorizationFailed", Meaning::Forbidden),
        of_launches(403, "LinkedAuthorizationFailed", Meaning::Forbidden),
        of_launches(403, "RequestDisallowedByPolicy", Meaning::Forbidden),
        of_launches(400, "InvalidParameter", Meaning::Invalid { field: None }),
        error(500, "InternalServerError", Meaning::Outage),
        error(503, "ServiceUnavailable", Meaning::Outage)
            .of_calls([Operation::LaunchInstance, Operation::DescribeInstance]),
    ];
    all.extend(shortages());
    all
}

/// Missing capacity and quotas.
fn shortages() -> Vec<NativeError> {
    let here = || launch("Standard_B1s", "2");
    let larger = || launch("Standard_D4s_v3", "2");
    let capacity = |code| error(409, code, Meaning::Capacity).launched_in(placement(here()));
    let quota = |code, name: &str| {
        let message = format!(
            "Operation could not be completed as it results in exceeding approved {name} quota. \
             Additional details - Deployment Model: Resource Manager, Location: westeurope, Current Limit: 4"
        );
        error(409, code, Meaning::Quota)
            .with_message(message)
            .launched_in(placement(here()))
    };
    vec![
        capacity("SkuNotAvailable")
            .concerning([here()])
            .sparing([larger()]),
        capacity("AllocationFailed")
            .concerning([here()])
            .sparing([larger()]),
        capacity("ZonalAllocationFailed")
            .concerning([here()])
            .sparing([larger(), launch("Standard_B1s", "1")]),
        capacity("OverconstrainedZonalAllocationRequest")
            .concerning([here()])
            .sparing([larger(), launch("Standard_B1s", "1")]),
        quota("OperationNotAllowed", "standardBSFamily Cores")
            .concerning([here()])
            .sparing([larger(), on_spot(here())]),
        quota("OperationNotAllowed", "Total Regional Cores")
            .concerning([here(), larger()])
            .sparing([on_spot(here())]),
        quota("QuotaExceeded", "LowPriorityCores")
            .launched_in(placement(on_spot(here())))
            .concerning([on_spot(here()), on_spot(larger())])
            .sparing([here()]),
    ]
}

fn error(status: u16, code: &str, meaning: Meaning) -> NativeError {
    NativeError::new(code, meaning).with_status(status)
}

fn launch(instance_type: &str, zone: &str) -> InstanceConfig {
    let image = parse_name(AzureGroup::FIXTURES.image);
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
