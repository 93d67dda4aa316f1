//! The errors of the memory cloud, each with what it means.
//!
//! Owns the table, and how each error is injected: all but one by a fault, and the shortage of one offering by a limit.

use std::time::Duration;

use fleetwright::{InstanceConfig, Market, Operation, Zone};
use fleetwright_contract_tests::{Meaning, NativeError};
use fleetwright_memory::{Capacity, Fault, Phase, RefusalReason};

/// The delay that a throttled call demands.
const DELAY: Duration = Duration::from_secs(2);

/// The errors that a fault injects.
fn injected() -> Vec<(NativeError, Fault)> {
    let refused = |code, meaning, reason| (NativeError::new(code, meaning), Fault::Refused(reason));
    let mut all = vec![
        refused(
            "Throttling",
            Meaning::Throttled,
            RefusalReason::Throttled(DELAY),
        ),
        refused(
            "BadCredentials",
            Meaning::BadCredentials,
            RefusalReason::BadCredentials,
        ),
        refused(
            "AccessDenied",
            Meaning::Forbidden,
            RefusalReason::AccessDenied,
        ),
        refused(
            "InsufficientCapacity",
            Meaning::Capacity,
            RefusalReason::Capacity,
        ),
        refused("AddressesExhausted", Meaning::Quota, RefusalReason::Quota),
        refused("QuotaExceeded", Meaning::Quota, RefusalReason::AccountQuota),
        refused(
            "InvalidParameter",
            Meaning::invalid("disk size"),
            RefusalReason::DiskSize,
        ),
        refused(
            "ChangeInProgress",
            Meaning::Conflict,
            RefusalReason::ChangeInProgress,
        ),
        refused(
            "UnsupportedOperation",
            Meaning::Unsupported,
            RefusalReason::Unsupported,
        ),
    ];
    let outage = NativeError::new("InternalError", Meaning::Outage);
    // Before it is carried out, like every error of the table.
    all.push((outage, Fault::ServerError(Phase::Before)));
    all
}

/// The code of the shortage of one offering.
const SHORTAGE: &str = "InsufficientCapacity of one offering";

/// Returns all errors of a cloud with these zones, for launches of `config`.
pub(super) fn all(config: &InstanceConfig, [first, second]: [Zone; 2]) -> Vec<NativeError> {
    let in_zone = |zone: Zone| {
        let mut config = config.clone();
        config.placement.zone = Some(zone);
        config
    };
    let here = in_zone(first);
    let elsewhere = in_zone(second);
    let mut spot = here.clone();
    spot.placement.market = Some(Market::Spot);
    let whole = |error: NativeError| {
        if matches!(error.meaning, Meaning::Capacity | Meaning::Quota) {
            // The region, or the account.
            return error.concerning([here.clone(), elsewhere.clone()]);
        }
        error
    };
    let injected = injected().into_iter().map(|(error, _)| whole(error));
    // A launch without a zone goes to the first one.
    let shortage = NativeError::new(SHORTAGE, Meaning::Capacity)
        .of_calls([Operation::LaunchInstance])
        .concerning([here.clone()])
        .sparing([elsewhere.clone(), spot]);
    injected.chain([shortage]).collect()
}

/// Returns the fault that injects an error; `None` for the shortage of one offering.
pub(super) fn fault(error: &NativeError) -> Option<Fault> {
    let mut all = injected().into_iter();
    all.find(|(one, _)| one.code == error.code)
        .map(|(_, fault)| fault)
}

/// Returns the limit that causes the shortage of one offering.
pub(super) fn shortage(config: &InstanceConfig, zone: Zone) -> Capacity {
    Capacity::of(0)
        .of_type(config.instance_type.clone())
        .in_zone(zone)
        .on_market(Market::OnDemand)
}
