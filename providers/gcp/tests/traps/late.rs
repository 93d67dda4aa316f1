//! Stockouts and quotas that arrive in the operation after the launch has returned, under the fallback
//! layer.

use std::time::Duration;

use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::gcp::{Capacity, Knobs, LimitCheck};
use fleetwright_gcp::fleetwright::{
    CloudInstanceState, ErrorKind, InstanceProvisioner as _, LaunchRecord, Market,
    layer::{Alternative, Fallback, FallbackPolicy, Layered},
};
use fleetwright_provider_testkit::{
    emulated::{READ_LAG, parse_name},
    late_shortage::LateShortage,
};

use crate::{
    alive, config_with_token,
    emulated::{GcpHarness, ZONES},
    wait_for_state,
};

/// Lets the first zone run out of capacity.
fn stock_out(knobs: &mut Knobs) {
    let mut none = Capacity::of(0);
    none.zone = Some(ZONES[0].to_owned());
    knobs.capacity = vec![none];
}

#[tokio::test]
async fn late_stockout_moves_to_the_next_zone_whatever_crashes() {
    let harness = GcpHarness::with_knobs(stock_out);
    LateShortage::new(&harness, ZONES).check().await;
}

#[tokio::test]
async fn late_stockout_moves_on_although_lists_are_stale() {
    let harness = GcpHarness::with_knobs(|knobs| {
        stock_out(knobs);
        (knobs.lag.reads, knobs.lag.writes) = (READ_LAG, READ_LAG);
        knobs.timing.shortage = Duration::from_millis(100);
    });
    let shortage = LateShortage::new(&harness, ZONES);
    shortage.check_without_crash("stale lists").await;
}

#[tokio::test]
async fn late_quota_of_a_market_moves_to_the_other_one() {
    let harness = GcpHarness::with_knobs(|knobs| {
        knobs.spot_cpu_quota = Some(0);
        knobs.quota_check = LimitCheck::InOperation;
    });
    let alternatives = [
        Alternative::new("spot").market(Market::Spot),
        Alternative::new("spot elsewhere")
            .zone(ZONES[1])
            .unwrap()
            .market(Market::Spot),
        Alternative::new("on demand").market(Market::OnDemand),
    ];
    let fallback = Fallback::new(FallbackPolicy::new(alternatives));
    let gcp = Layered::new(harness.open().await, fallback);
    let config = config_with_token(&harness, "t-1");
    let launched = gcp.launch_instance(&config).await.unwrap();
    let inserts = harness.call_count("instances.insert");
    assert_eq!(
        (launched.placement.market, inserts),
        (Some(Market::OnDemand), 2)
    );
    assert_eq!(alive(&harness), 1);
}

#[tokio::test]
async fn late_failure_shows_its_kind_and_frees_the_token() {
    let harness = GcpHarness::with_knobs(stock_out);
    let gcp = harness.open().await;
    let config = config_with_token(&harness, "t-1");
    let id = gcp.launch_instance(&config).await.unwrap().id;
    let ended = wait_for_state(&*gcp, &id, CloudInstanceState::Terminated).await;
    let failure = ended.launch_failure.unwrap();
    assert_eq!(failure.kind, ErrorKind::Capacity);
    assert!(failure.scopes[0].to_string().contains(ZONES[0]));
    let token = config.launch_token.as_ref().unwrap();
    assert_eq!(
        gcp.find_launch(token).await.unwrap(),
        LaunchRecord::NotFound
    );
    // The same handle uses the token for another config at once.
    let mut other = config.clone();
    other.placement.zone = Some(parse_name(ZONES[1]));
    gcp.launch_instance(&other).await.unwrap();
    assert_eq!(alive(&harness), 1);
}
