//! What is not there, and what only seems so.

use fleetwright_azure::fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceFilter, InstanceProvisioner as _,
};
use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::azure::{Fault, FaultRule, Operation};

use crate::{emulated::AzureHarness, running, with_token};

fn refused(status: u16, code: &str) -> Fault {
    Fault::Refused {
        status,
        code: code.to_owned(),
        message: "said so".to_owned(),
    }
}

#[tokio::test]
async fn a_machine_is_not_gone_because_somebody_else_says_not_found() {
    let harness = AzureHarness::with(|_| {});
    let azure = harness.open().await;
    let id = running(&harness, &*azure).await;
    let token = "t-1".parse().unwrap();
    for (code, kind) in [
        ("SubscriptionNotFound", ErrorKind::Forbidden),
        ("InvalidResourceType", ErrorKind::Unexpected),
        ("", ErrorKind::Unexpected),
    ] {
        let get = Operation::VirtualMachinesGet;
        let rule = FaultRule::always(get, refused(404, code));
        harness.emulator().add_fault(rule);
        let errors = [
            azure.describe_instance(&id).await.unwrap_err(),
            azure.terminate_instance(&id).await.unwrap_err(),
            azure.stop_instance(&id).await.unwrap_err(),
            azure.find_launch(&token).await.unwrap_err(),
            azure
                .launch_instance(&with_token(&harness, "t-1"))
                .await
                .unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), kind, "{code}: {error}");
            assert_eq!(error.effect(), Effect::None, "{code}: {error}");
        }
        harness.emulator().clear_faults();
    }
    let status = azure.describe_instance(&id).await.unwrap();
    assert_eq!(status.state, CloudInstanceState::Running);
    let listed = azure.list_instances(&InstanceFilter::new()).await.unwrap();
    assert_eq!(listed.len(), 1);
}
