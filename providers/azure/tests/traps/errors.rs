//! Error codes with several meanings.

use fleetwright_azure::fleetwright::{
    Effect, ErrorKind, InstanceFilter, InstanceProvisioner as _, Market, ProvisionError,
    RetryAdvice, Scope,
    layer::{Alternative, Fallback, FallbackPolicy, Layered},
};
use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::azure::{Fault, FaultRule, Operation};

use crate::emulated::AzureHarness;

/// Returns the error of a launch that is refused with this status, code and message.
async fn refused(status: u16, code: &str, message: &str) -> ProvisionError {
    let harness = AzureHarness::with_knobs(|_| {});
    let fault = Fault::Refused {
        status,
        code: code.to_owned(),
        message: message.to_owned(),
    };
    let create = Operation::VirtualMachinesCreateOrUpdate;
    harness
        .emulator()
        .add_fault(FaultRule::nth(create, 1, fault));
    let azure = harness.open().await;
    let mut config = harness.config();
    config.placement.zone = Some("1".parse().unwrap());
    let error = azure.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.effect(), Effect::None, "{error}");
    assert_eq!(error.native_code(), Some(code));
    assert!(error.request_id().is_some());
    error
}

#[tokio::test]
async fn trap_28_ambiguous_code_is_classified_by_status_and_message() {
    let code = "OperationNotAllowed";
    let quota = "Operation could not be completed as it results in exceeding approved Total Regional Cores quota.";
    assert_eq!(refused(409, code, quota).await.kind(), ErrorKind::Quota);
    assert_eq!(
        refused(429, code, "slow").await.kind(),
        ErrorKind::Throttled
    );
    let state = "The VM is marked for deletion.";
    assert_eq!(refused(409, code, state).await.kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn trap_29_quota_scope_is_family_or_market() {
    let message =
        |what: &str| format!("results in exceeding approved {what} quota. Current Limit: 0");
    let scope = async |what: &str| {
        let error = refused(409, "OperationNotAllowed", &message(what)).await;
        assert_eq!(error.kind(), ErrorKind::Quota, "{error}");
        error.scopes()[0].clone()
    };
    let on_demand = Scope::market(Market::OnDemand);
    assert_eq!(scope("Total Regional Cores").await, on_demand);
    let family = scope("standardDSv5Family Cores").await;
    let on_demand = Some(Market::OnDemand);
    assert!(
        matches!(family, Scope::Family { market, .. } if market == on_demand),
        "{family}"
    );
    let spot = scope("LowPriorityCores").await;
    assert_eq!(spot, Scope::market(Market::Spot));
}

#[tokio::test]
async fn trap_30_unavailable_size_is_a_capacity_error() {
    let error = refused(409, "SkuNotAvailable", "not available in location eastus").await;
    assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
    assert!(matches!(
        error.scopes()[0],
        Scope::Offering {
            instance_type: Some(_),
            zone: Some(_),
            market: Some(Market::OnDemand)
        }
    ));
}

#[tokio::test]
async fn trap_31_capacity_errors_have_different_scopes() {
    let scope = async |code: &str| refused(409, code, "no").await.scopes()[0].clone();
    let place = |scope: Scope| {
        let Scope::Offering { zone, market, .. } = scope else {
            panic!("{scope:?}")
        };
        (zone.is_some(), market.is_some())
    };
    assert_eq!(place(scope("AllocationFailed").await), (false, false));
    assert_eq!(place(scope("ZonalAllocationFailed").await), (true, false));
    assert_eq!(
        place(scope("OverconstrainedAllocationRequest").await),
        (true, true)
    );
    assert_eq!(
        place(scope("OverconstrainedZonalAllocationRequest").await),
        (true, true)
    );
}

#[tokio::test]
async fn trap_35_missing_group_lists_nothing_and_refuses_launches() {
    let harness = AzureHarness::with_knobs(|_| {});
    let mut launch = AzureHarness::launch_config();
    launch.resource_group = "nothing".to_owned();
    let azure = harness.open_with(launch).await;
    let listed = azure.list_instances(&InstanceFilter::new()).await.unwrap();
    assert!(listed.is_empty());
    let error = azure.launch_instance(&harness.config()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.message().contains("resource_group"), "{error}");
}

#[tokio::test]
async fn trap_50_code_that_is_not_listed_is_classified_by_its_form() {
    let code = "OverConstrainedAllocationRequest";
    let message = "The required VM size is not currently available in the selected location.";
    let error = refused(409, code, message).await;
    assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
    for (code, kind) in [
        ("SomethingAllocationFailed", ErrorKind::Capacity),
        ("SomethingQuotaExceeded", ErrorKind::Quota),
    ] {
        let error = refused(409, code, "no").await;
        assert_eq!(error.kind(), kind, "{error}");
    }
}

#[tokio::test]
async fn trap_50_refused_disks_are_not_sent_again() {
    for message in [
        "The maximum number of data disks allowed to be attached to a VM of this size is 4.",
        "Disk with size 8GB, which is smaller than the size 30GB of corresponding disk in Image, is not allowed.",
    ] {
        let error = refused(409, "OperationNotAllowed", message).await;
        assert_eq!(
            (error.kind(), error.retry()),
            (ErrorKind::Invalid, RetryAdvice::Never),
            "{error}"
        );
    }
}

#[tokio::test]
async fn trap_50_size_that_the_location_does_not_offer_moves_to_the_next_one() {
    let harness = AzureHarness::with_knobs(|_| {});
    let sizes = ["Standard_Unknown", "Standard_B2s"];
    let sizes = sizes.map(|size| Alternative::new(size).instance_type(size).unwrap());
    let fallback = Fallback::new(FallbackPolicy::new(sizes));
    let azure = Layered::new(harness.open().await, fallback);
    let launched = azure.launch_instance(&harness.config()).await.unwrap();
    assert_eq!(launched.instance_type.unwrap().as_str(), "Standard_B2s");
}
