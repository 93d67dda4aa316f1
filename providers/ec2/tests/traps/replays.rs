//! Replays through handles with other options, and attempts with another offering. EC2 compares every
//! parameter of a client token, and keeps client tokens by zone.

use std::{num::NonZeroU32, time::Duration};

use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::{
    Ec2LaunchConfig, ExtraVolume, GuestShutdown,
    fleetwright::{
        ErrorKind, InstanceId, InstanceInfo, InstanceProvisioner, LaunchRecord, Market,
        PublicAddress,
        layer::{Alternative, FallbackPolicy, Stack},
    },
};
use fleetwright_emulators::ec2::{
    Action, Capacity, Ec2Emulator, Fault, FaultRule, Market as NativeMarket, OracleInstance, Phase,
};
use fleetwright_provider_testkit::emulated::READ_LAG;
use futures_util::future::join_all;

use crate::{alive, config_with_token, emulated::Ec2Harness};

const SUBNET_A: &str = "subnet-00000000000000001";
const SUBNET_B: &str = "subnet-00000000000000002";
const SUBNET_C: &str = "subnet-00000000000000003";

/// Options that differ from `Ec2LaunchConfig::new()` in one setting each.
fn other_options() -> Vec<Ec2LaunchConfig> {
    let changes: [fn(&mut Ec2LaunchConfig); 8] = [
        |launch| launch.default_subnet = Some(SUBNET_A.parse().unwrap()),
        |launch| launch.default_subnet = Some(SUBNET_B.parse().unwrap()),
        |launch| launch.metadata.hop_limit = 3,
        |launch| launch.key_pair = Some("default".to_owned()),
        |launch| launch.instance_profile = Some("runner".to_owned()),
        |launch| launch.public_address = Some(PublicAddress::Absent),
        |launch| launch.extra_volumes = vec![ExtraVolume::new("/dev/sdf", 9)],
        |launch| launch.guest_shutdown = GuestShutdown::Terminate,
    ];
    let changed = |change: fn(&mut Ec2LaunchConfig)| {
        let mut launch = Ec2LaunchConfig::new();
        change(&mut launch);
        launch
    };
    changes.into_iter().map(changed).collect()
}

fn in_subnet(subnet: &str) -> Ec2LaunchConfig {
    let mut launch = Ec2LaunchConfig::new();
    launch.default_subnet = Some(subnet.parse().unwrap());
    launch
}

fn ids(infos: &[InstanceInfo]) -> Vec<&InstanceId> {
    infos.iter().map(|info| &info.id).collect()
}

#[tokio::test]
async fn trap_45_replay_returns_the_live_launch_whatever_the_options() {
    let three = NonZeroU32::new(3).unwrap();
    let harness = Ec2Harness::with_knobs(|_| {});
    let config = config_with_token(&harness, "t-1");
    let first = harness.open_with(in_subnet(SUBNET_A)).await;
    let first = first.launch_instances(&config, three).await.unwrap();
    for launch in other_options() {
        let handle = harness.open_with(launch.clone()).await;
        for _ in 0..2 {
            let replayed = handle.launch_instances(&config, three).await;
            let replayed = replayed.unwrap_or_else(|error| panic!("{launch:?}: {error}"));
            assert_eq!(ids(&replayed), ids(&first), "{launch:?}");
        }
    }
    assert_eq!(alive(&harness), 3);
    assert_eq!(harness.call_count("RunInstances"), 1);
}

/// EC2 keeps its tokens by zone, so only options that leave the zone as it is are protected by EC2 itself
/// while reads are stale.
#[tokio::test]
async fn trap_45_replay_with_other_options_is_no_conflict_while_reads_are_stale() {
    let changed = other_options().into_iter();
    for (index, launch) in changed
        .filter(|launch| launch.default_subnet.is_none())
        .enumerate()
    {
        let harness = Ec2Harness::with_knobs(|knobs| {
            knobs.lag.reads = READ_LAG;
            knobs.seed = index as u64;
        });
        let config = config_with_token(&harness, "t-1");
        let stale = FaultRule::always_any(Fault::StaleRead);
        harness.emulator().add_fault(stale);
        let first = harness.open().await.launch_instance(&config).await.unwrap();
        let handle = harness.open_with(launch.clone()).await;
        let replayed = handle.launch_instance(&config).await;
        let replayed = replayed.unwrap_or_else(|error| panic!("{launch:?}: {error}"));
        assert_eq!(replayed.id, first.id, "{launch:?}");
        assert_eq!(alive(&harness), 1, "{launch:?}");
    }
}

#[tokio::test]
async fn trap_45_changed_options_launch_after_a_refused_launch() {
    for launch in other_options() {
        let harness = Ec2Harness::with_knobs(|knobs| knobs.capacity = vec![Capacity::of(0)]);
        let config = config_with_token(&harness, "t-1");
        let refused = harness.open().await.launch_instance(&config).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Capacity);
        let mut knobs = harness.emulator().knobs();
        knobs.capacity.clear();
        harness.emulator().set_knobs(knobs);
        let handle = harness.open_with(launch.clone()).await;
        let launched = handle.launch_instance(&config).await;
        let launched = launched.unwrap_or_else(|error| panic!("{launch:?}: {error}"));
        let replayed = harness.open().await.launch_instance(&config).await.unwrap();
        assert_eq!((replayed.id, alive(&harness)), (launched.id, 1));
    }
}

/// Pauses the first handle at one of its requests and the second one at one of its own, so that the
/// launches overlap in every order.
#[tokio::test]
async fn trap_45_two_handles_in_different_zones_keep_one_launch() {
    let pauses = [Phase::Before, Phase::After];
    let mut cases = Vec::new();
    for (nth, phase) in [1, 2, 3, 4]
        .map(|nth| pauses.map(|phase| (nth, phase)))
        .as_flattened()
    {
        for second in [
            None,
            Some((2, 60)),
            Some((3, 60)),
            Some((2, 250)),
            Some((3, 250)),
        ] {
            cases.push(overlap((*nth, *phase), second, Duration::ZERO));
            cases.push(overlap((*nth, *phase), second, READ_LAG));
        }
    }
    join_all(cases).await;
}

async fn overlap(first: (u64, Phase), second: Option<(u64, u64)>, lag: Duration) {
    let harness = Ec2Harness::with_knobs(|knobs| knobs.lag.reads = lag);
    let emulator = harness.emulator();
    let case = format!("the first pauses at {first:?}, the second at {second:?}, lag {lag:?}");
    let config = config_with_token(&harness, "t-1");
    let (nth, phase) = first;
    let (one, two) = (
        harness.open_with(in_subnet(SUBNET_A)).await,
        harness.open_with(in_subnet(SUBNET_B)).await,
    );
    emulator.add_fault(FaultRule::nth_of_any(nth, delay(phase, 150)));
    let later = async {
        // Until the first handle pauses, or has finished without that request.
        for _ in 0..200 {
            if emulator.unused_faults().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if let Some((nth, millis)) = second {
            emulator.add_fault(FaultRule::nth_of_any(nth, delay(Phase::Before, millis)));
        }
        two.launch_instance(&config).await
    };
    let (launched, other) = tokio::join!(one.launch_instance(&config), later);
    let launched = launched.unwrap_or_else(|error| panic!("{case}: {error}"));
    let other = other.unwrap_or_else(|error| panic!("{case}: {error}"));
    assert_eq!(launched.id, other.id, "{case}");
    assert_eq!(live(emulator), [launched.id.as_str()], "{case}");
    tokio::time::sleep(lag).await;
    let token = config.launch_token.as_ref().unwrap();
    let record = harness.open().await.find_launch(token).await.unwrap();
    assert!(
        matches!(&record, LaunchRecord::Found(found) if ids(found) == [&launched.id]),
        "{case}: {record:?}"
    );
}

/// Returns the instances that are neither terminating nor terminated.
fn live(emulator: &Ec2Emulator) -> Vec<String> {
    let truths = emulator.oracle().instances.into_iter();
    let is_alive =
        |truth: &OracleInstance| !["shutting-down", "terminated"].contains(&truth.state.as_str());
    truths.filter(is_alive).map(|truth| truth.id).collect()
}

/// Launches with one token in each of these subnets at the same moment, eight times, mostly within one second. Requires that one
/// launch stays, and that every call returns it.
async fn race(subnets: &[&str], faults: &[FaultRule]) {
    let race = async || {
        let harness = Ec2Harness::with_knobs(|_| {});
        let emulator = harness.emulator();
        // All of them launch before any of them looks the token up again.
        let all_launch = delay(Phase::After, 100);
        emulator.add_fault(FaultRule::always(Action::RunInstances, all_launch));
        for fault in faults {
            emulator.add_fault(fault.clone());
        }
        let config = config_with_token(&harness, "t-1");
        let launches = subnets.iter().map(async |subnet| {
            let handle = harness.open_with(in_subnet(subnet)).await;
            handle.launch_instance(&config).await.unwrap().id
        });
        let returned = join_all(launches).await;
        let stays = live(emulator);
        assert!(
            stays.len() == 1 && returned.iter().all(|id| id.as_str() == stays[0]),
            "{returned:?} were returned, and there are {stays:?}"
        );
    };
    join_all((0..8).map(|_| race())).await;
}

fn delay(phase: Phase, millis: u64) -> Fault {
    let by = Duration::from_millis(millis);
    Fault::Delay { phase, by }
}

/// The termination of the launch that yields takes longer than the consistency window: the other one must not conclude that it
/// has to yield too.
#[tokio::test]
async fn trap_45_slow_termination_does_not_end_both_launches() {
    let slow = FaultRule::always(Action::TerminateInstances, delay(Phase::Before, 300));
    race(&[SUBNET_A, SUBNET_B], &[slow]).await;
}

/// A look-up that takes longer than a decision may take: the launch that must yield waits for the other one. A late read is repeated,
/// but not for ever.
#[tokio::test]
async fn trap_45_slow_reads_do_not_end_both_launches() {
    let slow = FaultRule::always(Action::DescribeInstances, delay(Phase::After, 2500));
    race(&[SUBNET_A, SUBNET_B], &[slow]).await;
}

/// A launch has returned before the second one, whose first look-up is stale. Reads that fail while the second one waits for the first
/// to yield do not make both stay.
#[tokio::test]
async fn trap_45_failed_read_while_waiting_keeps_one_launch() {
    let race = async |others: usize| {
        let harness = Ec2Harness::with_knobs(|_| {});
        let emulator = harness.emulator();
        let config = config_with_token(&harness, "t-1");
        let (one, two) = (
            harness.open_with(in_subnet(SUBNET_A)).await,
            harness.open_with(in_subnet(SUBNET_B)).await,
        );
        // The emulator's ids are a fixed sequence; the second launch waits only if its id is higher.
        for number in 0..others {
            let other = config_with_token(&harness, &format!("other-{number}"));
            one.launch_instance(&other).await.unwrap();
        }
        let first = one.launch_instance(&config).await.unwrap();
        let mut knobs = emulator.knobs();
        knobs.lag.reads = Duration::from_secs(3600);
        emulator.set_knobs(knobs.clone());
        let (read, phase) = (Action::DescribeInstances, Phase::Before);
        emulator.add_fault(FaultRule::nth(read, 1, Fault::StaleRead));
        for nth in [4, 5] {
            emulator.add_fault(FaultRule::nth(read, nth, Fault::ServerError { phase }));
        }
        let launch = async {
            let second = two.launch_instance(&config).await.unwrap();
            assert_eq!(second.id, first.id);
        };
        let consistent = async {
            while emulator.oracle().instances.len() < others + 2 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            knobs.lag.reads = Duration::ZERO;
            emulator.set_knobs(knobs.clone());
        };
        tokio::join!(launch, consistent);
        let live = live(emulator);
        assert!(live.len() == others + 1 && live.contains(&first.id.to_string()));
    };
    join_all((0..8).map(race)).await;
}

#[tokio::test]
async fn trap_45_three_launches_of_one_second_leave_one() {
    race(&[SUBNET_A, SUBNET_B, SUBNET_C], &[]).await;
}

/// A process that dies between its launch and the second look-up leaves its instance. It is found by the token,
/// and every handle returns the older one.
#[tokio::test]
async fn trap_45_launches_of_a_dead_process_are_found_and_the_oldest_is_returned() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let config = config_with_token(&harness, "t-1");
    let first = harness.open_with(in_subnet(SUBNET_A)).await;
    let first = first.launch_instance(&config).await.unwrap();
    let hidden = Fault::StaleRead;
    let mut knobs = harness.emulator().knobs();
    knobs.lag.reads = Duration::from_secs(3600);
    harness.emulator().set_knobs(knobs.clone());
    harness.emulator().add_fault(FaultRule::always_any(hidden));
    let second = harness.open_with(in_subnet(SUBNET_B)).await;
    let second = second.launch_instance(&config).await.unwrap();
    assert_ne!(first.id, second.id, "no read shows the first launch");
    harness.emulator().clear_faults();
    knobs.lag.reads = Duration::ZERO;
    harness.emulator().set_knobs(knobs);
    let handle = harness.open().await;
    let token = config.launch_token.as_ref().unwrap();
    let LaunchRecord::Found(found) = handle.find_launch(token).await.unwrap() else {
        panic!("both are alive");
    };
    assert_eq!(found.len(), 2);
    let oldest = &found[0].id;
    for launch in [in_subnet(SUBNET_A), in_subnet(SUBNET_B)] {
        let handle = harness.open_with(launch).await;
        let replayed = handle.launch_instance(&config).await.unwrap();
        assert_eq!(&replayed.id, oldest);
    }
    assert_eq!(alive(&harness), 2, "a replay terminates nothing");
}

fn spot_first() -> FallbackPolicy {
    FallbackPolicy::new([
        Alternative::new("spot").market(Market::Spot),
        Alternative::new("on demand").market(Market::OnDemand),
        Alternative::new("small")
            .market(Market::OnDemand)
            .instance_type("t3.small")
            .unwrap(),
        Alternative::new("zone")
            .market(Market::OnDemand)
            .zone("us-east-1c")
            .unwrap(),
    ])
    .remember_for(Duration::ZERO)
}

fn with_fallback(inner: impl InstanceProvisioner + 'static) -> impl InstanceProvisioner {
    let mut stack = Stack::default();
    stack.fallback = Some(spot_first());
    stack.wrap(inner)
}

fn no_capacity(market: Option<NativeMarket>, instance_type: Option<&str>) -> Capacity {
    let mut rule = Capacity::of(0);
    rule.market = market;
    rule.instance_type = instance_type.map(str::to_owned);
    rule
}

#[tokio::test]
async fn trap_46_other_offering_launches_after_missing_capacity() {
    let cases = [
        (
            vec![no_capacity(Some(NativeMarket::Spot), None)],
            "t3.micro",
        ),
        (vec![no_capacity(None, Some("t3.micro"))], "t3.small"),
    ];
    for (capacity, launched_type) in cases {
        let harness = Ec2Harness::with_knobs(|knobs| knobs.capacity = capacity);
        let config = config_with_token(&harness, "t-1");
        let ec2 = with_fallback(harness.open().await);
        let launched = ec2.launch_instance(&config).await.unwrap();
        assert_eq!(launched.instance_type.unwrap().as_str(), launched_type);
        let calls = harness.emulator().calls();
        let codes: Vec<_> = calls
            .iter()
            .filter_map(|call| call.code.as_deref())
            .collect();
        assert!(!codes.contains(&"IdempotentParameterMismatch"), "{codes:?}");
        let replayed = with_fallback(harness.open().await);
        let replayed = replayed.launch_instance(&config).await.unwrap();
        assert_eq!((replayed.id, alive(&harness)), (launched.id, 1));
    }
}

/// The outcome of one request of a launch that falls back from spot to on demand is lost, before or after its
/// effect. Another process repeats the launch, with or without spot capacity.
#[tokio::test]
async fn trap_46_lost_request_during_a_fallback_leaves_one_instance() {
    let mut cases = Vec::new();
    for nth in 1..=7 {
        for phase in [Phase::Before, Phase::After] {
            for spot_returns in [false, true] {
                cases.push(crash_during_fallback(nth, phase, spot_returns));
            }
        }
    }
    join_all(cases).await;
}

async fn crash_during_fallback(nth: u64, phase: Phase, spot_returns: bool) {
    let case = format!("request {nth} is lost {phase:?}; spot returns: {spot_returns}");
    let harness = Ec2Harness::with_knobs(|knobs| {
        knobs.capacity = vec![no_capacity(Some(NativeMarket::Spot), None)];
    });
    let emulator = harness.emulator();
    let config = config_with_token(&harness, "t-1");
    emulator.add_fault(FaultRule::nth_of_any(nth, Fault::Hang { phase }));
    let first = with_fallback(harness.open().await);
    let call = first.launch_instance(&config);
    // The process dies as soon as the request hangs, or has finished before.
    let died = async {
        while !emulator.unused_faults().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    futures_util::future::select(Box::pin(call), Box::pin(died)).await;
    drop(first);
    emulator.clear_faults();
    if spot_returns {
        let mut knobs = emulator.knobs();
        knobs.capacity.clear();
        emulator.set_knobs(knobs);
    }
    let second = with_fallback(harness.open().await);
    let launched = second.launch_instance(&config).await;
    let launched = launched.unwrap_or_else(|error| panic!("{case}: {error}"));
    assert_eq!(alive(&harness), 1, "{case}");
    let token = config.launch_token.as_ref().unwrap();
    let record = second.find_launch(token).await.unwrap();
    assert!(
        matches!(&record, LaunchRecord::Found(found) if ids(found) == [&launched.id]),
        "{case}: {record:?}"
    );
}

/// Two handles try different offerings of one token in turn: only one may launch.
#[tokio::test]
async fn trap_46_another_market_of_a_live_launch_is_a_conflict() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let mut spot = config_with_token(&harness, "t-1");
    spot.placement.market = Some(Market::Spot);
    let on_demand = config_with_token(&harness, "t-1");
    harness.open().await.launch_instance(&spot).await.unwrap();
    let error = crate::launch_error(&harness, &on_demand).await;
    assert_eq!(error.kind(), ErrorKind::TokenConflict, "{error}");
    assert_eq!(alive(&harness), 1);
}
