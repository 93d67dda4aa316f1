//! Capacity: which machines it counts, and that a refusal changes nothing.

use fleetwright::{
    CloudInstanceState::Stopped, Effect, ErrorKind, InstanceConfig, InstanceProvisioner as _,
    InstanceType, Market, Operation, Scope, Zone,
};
use fleetwright_memory::{Capacity, Fault, MemoryCloud, Rule, WireCall};

use crate::support::{
    blue, brisk, existing_ids, fill, open, pass, plain, running, seconds, state, stopped, truth,
    zone,
};

fn kind(name: &str, zone_name: &str, market: Market) -> InstanceConfig {
    let mut config = plain();
    config.instance_type = InstanceType::new(name).unwrap();
    config.placement.zone = Some(zone(zone_name));
    config.placement.market = Some(market);
    config
}

/// Whether `limit` applies to machines of this kind.
fn fits(limit: &Capacity, (name, zone_name, market): (&str, &str, Market)) -> bool {
    limit
        .instance_type
        .as_ref()
        .is_none_or(|limited| limited.as_str() == name)
        && limit
            .zone
            .as_ref()
            .is_none_or(|limited| limited.as_str() == zone_name)
        && limit.market.is_none_or(|limited| limited == market)
}

/// Returns all combinations of two types, two zones and both markets.
fn kinds() -> Vec<(&'static str, &'static str, Market)> {
    let mut all = Vec::new();
    for name in ["a", "b"] {
        for zone_name in ["mem-a", "mem-b"] {
            all.extend([Market::OnDemand, Market::Spot].map(|market| (name, zone_name, market)));
        }
    }
    all
}

#[tokio::test(start_paused = true)]
async fn capacity_limits_apply_by_type_zone_and_market() {
    for set in 0..8_u8 {
        let mut limit = Capacity::of(9);
        if set & 1 != 0 {
            limit = limit.of_type(InstanceType::new("a").unwrap());
        }
        if set & 2 != 0 {
            limit = limit.in_zone(zone("mem-a"));
        }
        if set & 4 != 0 {
            limit = limit.on_market(Market::Spot);
        }
        let (_, provisioner) = open(brisk().capacity(limit.clone()));
        let mut taken = 0;
        for (name, zone_name, market) in kinds() {
            let config = kind(name, zone_name, market);
            provisioner.launch_instance(&config).await.unwrap();
            taken += u32::from(fits(&limit, (name, zone_name, market)));
        }
        assert_eq!(taken, 8 >> set.count_ones());
        let (free, error) = fill(&provisioner, &kind("a", "mem-a", Market::Spot)).await;
        assert_eq!(free, 9 - taken, "{limit:?}");
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Capacity, Effect::None)
        );
        let scope = Scope::Offering {
            instance_type: Some(InstanceType::new("a").unwrap()),
            zone: Some(zone("mem-a")),
            market: Some(Market::Spot),
        };
        assert_eq!(error.scopes(), [scope]);
        for (name, zone_name, market) in kinds() {
            let result = provisioner
                .launch_instance(&kind(name, zone_name, market))
                .await;
            let refused = fits(&limit, (name, zone_name, market));
            assert_eq!(
                result.is_err(),
                refused,
                "{limit:?} {name} {zone_name} {market:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tightest_of_several_limits_applies() {
    let (_, provisioner) = open(
        brisk()
            .capacity(Capacity::of(3))
            .capacity(Capacity::of(2).in_zone(zone("mem-a")))
            .capacity(Capacity::of(0).of_type(InstanceType::new("huge").unwrap())),
    );
    let on_demand = Market::OnDemand;
    assert_eq!(
        fill(&provisioner, &kind("huge", "mem-b", on_demand))
            .await
            .0,
        0
    );
    assert_eq!(
        fill(&provisioner, &kind("a", "mem-a", on_demand)).await.0,
        2
    );
    assert_eq!(
        fill(&provisioner, &kind("a", "mem-b", on_demand)).await.0,
        1
    );
}

#[tokio::test(start_paused = true)]
async fn stop_releases_the_machine_and_start_may_lack_capacity() {
    let (cloud, provisioner) = open(brisk().capacity(Capacity::of(1)));
    let first = stopped(&provisioner).await;
    let second = running(&provisioner).await;
    let before = format!("{:?}", cloud.oracle().instances());
    let left = cloud.oracle().leftovers();
    let error = provisioner.start_instance(&first.id).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Capacity, Effect::None)
    );
    assert_eq!(error.operation(), Operation::StartInstance);
    assert_eq!(format!("{:?}", cloud.oracle().instances()), before);
    assert_eq!(cloud.oracle().leftovers(), left);
    assert_eq!(state(&provisioner, &first.id).await, Stopped);
    provisioner.terminate_instance(&second.id).await.unwrap();
    provisioner.start_instance(&first.id).await.unwrap_err();
    pass(seconds(1)).await;
    provisioner.start_instance(&first.id).await.unwrap();
    assert_eq!(fill(&provisioner, &plain()).await.0, 0);
}

#[tokio::test(start_paused = true)]
async fn failed_boot_releases_its_machine() {
    let (cloud, provisioner) = open(brisk().capacity(Capacity::of(1)));
    let fails = Fault::FailsLate {
        code: "Broken".into(),
        message: "no".into(),
    };
    cloud.faults().add(Rule::nth(WireCall::Launch, 1, fails));
    provisioner.launch_instance(&plain()).await.unwrap();
    assert_eq!(fill(&provisioner, &plain()).await.0, 0);
    pass(seconds(1)).await;
    assert_eq!(fill(&provisioner, &plain()).await.0, 1);
}

#[tokio::test(start_paused = true)]
async fn resized_instance_uses_capacity_of_its_new_type() {
    let (small, large) = (
        InstanceType::new("small").unwrap(),
        InstanceType::new("large").unwrap(),
    );
    let (cloud, provisioner) = open(
        brisk()
            .capacity(Capacity::of(1).of_type(small.clone()))
            .capacity(Capacity::of(1).of_type(large.clone())),
    );
    let first = stopped(&provisioner).await;
    provisioner
        .resize_instance(&first.id, &large)
        .await
        .unwrap();
    provisioner.start_instance(&first.id).await.unwrap();
    let mut config = plain();
    config.instance_type = large;
    assert_eq!(fill(&provisioner, &config).await.0, 0);
    config.instance_type = small;
    assert_eq!(fill(&provisioner, &config).await.0, 1);
    provisioner.stop_instance(&first.id).await.unwrap();
    pass(seconds(1)).await;
    assert!(!truth(&cloud, &first.id).holds_machine);
    config.instance_type = InstanceType::new("large").unwrap();
    assert_eq!(fill(&provisioner, &config).await.0, 1);
}

#[tokio::test(start_paused = true)]
async fn capacity_can_shrink_while_machines_run() {
    let (cloud, provisioner): (MemoryCloud, _) = open(brisk());
    for _ in 0..3 {
        running(&provisioner).await;
    }
    cloud.external_actor().set_capacity(vec![Capacity::of(1)]);
    let (free, error) = fill(&provisioner, &plain()).await;
    assert_eq!((free, error.kind()), (0, ErrorKind::Capacity));
    assert_eq!(existing_ids(&cloud).len(), 3);
    cloud.external_actor().set_capacity(vec![Capacity::of(4)]);
    assert_eq!(fill(&provisioner, &plain()).await.0, 1);
    cloud.external_actor().set_capacity(Vec::new());
    provisioner.launch_instance(&plain()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn refused_launch_uses_no_capacity_or_quota() {
    let zone_b: Zone = zone("mem-b");
    let (cloud, provisioner) = open(brisk().capacity(Capacity::of(0).in_zone(zone_b.clone())));
    let mut config = blue().launch_token("t").build().unwrap();
    config.placement.zone = Some(zone_b);
    let error = provisioner.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capacity);
    assert!(cloud.oracle().leftovers().is_empty());
    config.placement.zone = Some(zone("mem-a"));
    provisioner.launch_instance(&config).await.unwrap();
}
