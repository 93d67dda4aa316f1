//! Missing capacity that arrives in the operation after the launch has returned, under the fallback layer.

use std::time::Duration;

use fleetwright_azure::{
    AzureProvisioner,
    fleetwright::{
        ErrorKind, InstanceConfig, InstanceId, InstanceProvisioner as _, LaunchRecord, Market,
        layer::{Alternative, Fallback, FallbackPolicy, Layered, Retry, RetryPolicy},
    },
};
use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::azure::{Capacity, Knobs, LimitCheck};
use fleetwright_provider_testkit::{
    emulated::{POLL_INTERVAL, READ_LAG, parse_name},
    late_shortage::LateShortage,
};
use futures_util::future::join_all;

use crate::{config_with_token, count_resources, emulated::AzureHarness};

/// Lets the first zone run out of capacity.
fn stock_out(knobs: &mut Knobs) {
    let mut none = Capacity::of(0);
    none.zone = Some("1".to_owned());
    knobs.capacity = vec![none];
}

fn zones() -> FallbackPolicy {
    FallbackPolicy::new(["1", "2"].map(|zone| Alternative::new(zone).zone(zone).unwrap()))
}

#[tokio::test]
async fn late_shortage_moves_to_the_next_zone_whatever_crashes() {
    let harness = AzureHarness::with_knobs(stock_out);
    LateShortage::new(&harness, ["1", "2"]).check().await;
}

#[tokio::test]
async fn late_shortage_moves_on_although_reads_are_stale() {
    let harness = AzureHarness::with_knobs(|knobs| {
        stock_out(knobs);
        (knobs.lag.reads, knobs.lag.writes) = (READ_LAG, READ_LAG);
        knobs.timing.shortage = Duration::from_millis(100);
    });
    let retry = Layered::new(harness.open().await, Retry::new(RetryPolicy::default()));
    let azure = Layered::new(retry, Fallback::new(zones()));
    let config = config_with_token(&harness, "t-1");
    let launched = azure.launch_instance(&config).await.unwrap();
    assert_eq!(launched.placement.zone.unwrap().as_str(), "2");
    assert_eq!(count_resources(&harness)[..3], [1, 1, 1]);
    let token = config.launch_token.as_ref().unwrap();
    let found = azure.find_launch(token).await.unwrap();
    assert!(matches!(found, LaunchRecord::Found(all) if all[0].id == launched.id));
}

/// Launches with one token in the first zone, which is short, and then in the second one. Returns the ids of both.
async fn launch_in_both_zones(
    azure: &AzureProvisioner,
    mut config: InstanceConfig,
) -> [InstanceId; 2] {
    config.placement.zone = Some(parse_name("1"));
    let failed = azure.launch_instance(&config).await.unwrap();
    config.placement.zone = Some(parse_name("2"));
    loop {
        match azure.launch_instance(&config).await {
            Ok(launched) => return [failed.id, launched.id],
            // The first launch is pending, or its remains are being deleted.
            Err(error) => assert!(
                [ErrorKind::TokenConflict, ErrorKind::Conflict].contains(&error.kind()),
                "{error}"
            ),
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Reads are stale for longer than the handle assumes: what has failed is not the result of another launch, however
/// old the read is that shows it.
#[tokio::test]
async fn stale_remains_are_not_the_result_of_another_launch() {
    let harness = AzureHarness::with_knobs(|knobs| {
        stock_out(knobs);
        knobs.lag.reads = READ_LAG * 8;
    });
    let mut options = harness.options();
    options.consistency_window = POLL_INTERVAL;
    let launch = AzureHarness::launch_config();
    let azure = harness.open_with_options(launch, options).await;
    let tokens = (0..20).map(|number| format!("t-{number}"));
    let launches =
        tokens.map(|token| launch_in_both_zones(&azure, config_with_token(&harness, &token)));
    for [failed, launched] in join_all(launches).await {
        assert_ne!(failed, launched);
    }
}

#[tokio::test]
async fn shortage_within_the_wait_of_the_launch_moves_on() {
    let harness = AzureHarness::with_knobs(stock_out).wait_for_launch();
    let retry = Layered::new(harness.open().await, Retry::new(RetryPolicy::default()));
    let azure = Layered::new(retry, Fallback::new(zones()));
    let config = config_with_token(&harness, "t-1");
    let launched = azure.launch_instance(&config).await.unwrap();
    assert_eq!(launched.placement.zone.unwrap().as_str(), "2");
    assert_eq!(count_resources(&harness)[..3], [1, 1, 1]);
}

#[tokio::test]
async fn late_quota_of_a_market_moves_to_the_other_one() {
    let harness = AzureHarness::with_knobs(|knobs| {
        knobs.spot_vcpu_quota = Some(0);
        knobs.quota_check = LimitCheck::InOperation;
    });
    let alternatives = [
        Alternative::new("spot").market(Market::Spot),
        Alternative::new("spot elsewhere")
            .zone("2")
            .unwrap()
            .market(Market::Spot),
        Alternative::new("on demand").market(Market::OnDemand),
    ];
    let retry = Layered::new(harness.open().await, Retry::new(RetryPolicy::default()));
    let azure = Layered::new(retry, Fallback::new(FallbackPolicy::new(alternatives)));
    let config = config_with_token(&harness, "t-1");
    let launched = azure.launch_instance(&config).await.unwrap();
    assert_eq!(launched.placement.market, Some(Market::OnDemand));
    assert_eq!(count_resources(&harness)[..3], [1, 1, 1]);
    assert_eq!(azure.layer().without_capacity().len(), 1);
}

#[tokio::test]
async fn late_failure_shows_its_kind() {
    let harness = AzureHarness::with_knobs(stock_out);
    let azure = harness.open().await;
    let mut config = config_with_token(&harness, "t-1");
    config.placement.zone = Some(parse_name("1"));
    let id = azure.launch_instance(&config).await.unwrap().id;
    let failure = loop {
        let status = azure.describe_instance(&id).await.unwrap();
        if let Some(failure) = status.launch_failure {
            break failure;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(failure.kind, ErrorKind::Capacity);
}
