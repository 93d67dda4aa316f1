//! Machines that do not exist, and those that only seem so.

use std::time::Duration;

use fleetwright_azure::fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceFilter, InstanceProvisioner as _,
};
use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::azure::{Fault, FaultRule, Operation};
use fleetwright_provider_testkit::canned_responses::{self, CannedResponse, Request};

use crate::{
    config_with_token,
    emulated::{AzureHarness, GROUP, SUBSCRIPTION},
    running,
};

fn refused(status: u16, code: &str) -> Fault {
    Fault::Refused {
        status,
        code: code.to_owned(),
        message: "refused by the test".to_owned(),
    }
}

#[tokio::test]
async fn foreign_not_found_response_does_not_terminate_a_machine() {
    let harness = AzureHarness::with_knobs(|_| {});
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
                .launch_instance(&config_with_token(&harness, "t-1"))
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

#[tokio::test]
async fn missing_public_address_does_not_hide_the_private_one() {
    let respond = |request: &Request| {
        let path = &request.path;
        if path.contains("/networkInterfaces/") {
            return CannedResponse::ok(
                r#"{"properties":{"ipConfigurations":[{"properties":{"primary":true,
                "privateIPAddress":"10.0.0.4","publicIPAddress":{"id":"/pip"}}}]}}"#,
            );
        }
        if path.starts_with("/pip") {
            let body = r#"{"error":{"code":"ResourceNotFound","message":"not yet"}}"#;
            return CannedResponse::new("404 Not Found", body);
        }
        let document = format!(
            r#"{{"id":"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Compute/virtualMachines/fw-1",
            "name":"fw-1","location":"eastus","properties":{{"vmId":"61ca152e-8a94-4455-b97f-c3ec52a06884",
            "timeCreated":"2026-01-02T03:04:05.678+00:00","provisioningState":"Succeeded",
            "networkProfile":{{"networkInterfaces":[{{"id":"/x/networkInterfaces/y"}}]}},
            "instanceView":{{"statuses":[{{"code":"PowerState/running"}}]}}}}}}"#
        );
        if path.contains("/virtualMachines?") {
            return CannedResponse::ok(format!(r#"{{"value":[{document}]}}"#));
        }
        if path.contains("/virtualMachines/") {
            return CannedResponse::ok(document);
        }
        CannedResponse::ok(r#"{"value":[]}"#)
    };
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = AzureHarness::open_at(
        &canned_responses::serve(respond).unwrap(),
        harness.options(),
    )
    .await;
    let listed = azure.list_instances(&InstanceFilter::new()).await.unwrap();
    let status = azure.describe_instance(&listed[0].id).await.unwrap();
    assert_eq!(status.private_ip.unwrap().to_string(), "10.0.0.4");
    assert_eq!(status.public_ip, None);
}

#[tokio::test]
async fn looping_pages_are_an_error() {
    let respond = |request: &Request| {
        let host = request.headers.iter();
        let host = host.filter_map(|line| line.strip_prefix("host: ")).next();
        let at = if request.path.contains("at=one") {
            "two"
        } else {
            "one"
        };
        let host = host.unwrap_or_default();
        let path = request.path.split('?').next().unwrap_or_default();
        let link = format!("http://{host}{path}?api-version=1&statusOnly=true&at={at}");
        CannedResponse::ok(format!(r#"{{"value":[],"nextLink":"{link}"}}"#))
    };
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = AzureHarness::open_at(
        &canned_responses::serve(respond).unwrap(),
        harness.options(),
    )
    .await;
    let filter = InstanceFilter::new();
    let listed = azure.list_instances(&filter);
    let listed = tokio::time::timeout(Duration::from_secs(60), listed).await;
    let error = listed.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unexpected, "{error}");
}

#[tokio::test]
async fn launch_returns_the_same_id_as_later_reads() {
    let document = |created: &str| {
        format!(
            r#"{{"id":"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Compute/virtualMachines/fw-1",
            "name":"fw-1","location":"eastus","properties":{{"vmId":"61ca152e-8a94-4455-b97f-c3ec52a06884",
            {created}"provisioningState":"Creating"}}}}"#
        )
    };
    let respond = move |request: &Request| {
        let dated = document(r#""timeCreated":"2026-01-02T03:04:05.678+00:00","#);
        match request.method.as_str() {
            "PUT" => CannedResponse::new("201 Created", document("")),
            _ if request.path.contains("/virtualMachines/") => CannedResponse::ok(dated),
            _ => CannedResponse::ok(format!(r#"{{"value":[{dated}]}}"#)),
        }
    };
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = AzureHarness::open_at(
        &canned_responses::serve(respond).unwrap(),
        harness.options(),
    )
    .await;
    let launched = azure.launch_instance(&harness.config()).await.unwrap();
    let listed = azure.list_instances(&InstanceFilter::new()).await.unwrap();
    assert_eq!(listed[0].id, launched.id);
}
