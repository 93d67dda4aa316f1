//! The order of the alternatives, and the capacity memory.

use std::time::Duration;

use fleetwright::{
    BatchLaunch, Effect, ErrorKind, InstanceConfig, InstanceProvisioner as _, InstanceType, Market,
    NetworkId, Operation, ProvisionError, RetryAdvice, Scope, Zone,
    layer::{Alternative, Fallback, FallbackPolicy, Layered},
};
use fleetwright_memory::{Capacity, Fault, MemoryCloud, RefusalReason, Rule, WireCall};
use tokio::time::sleep;

use super::{live, many, millis, plain, scripted::Scripted, size, with_token};
use crate::fake::{call, id, secs};

pub(crate) fn in_zone(zone: &str) -> Alternative {
    Alternative::new(zone).zone(zone).unwrap()
}

fn of_type(name: &str) -> Alternative {
    Alternative::new(name).instance_type(name).unwrap()
}

fn zones() -> FallbackPolicy {
    FallbackPolicy::new(["mem-a", "mem-b", "mem-c"].map(in_zone))
}

pub(crate) fn none_in(zone: &str) -> Capacity {
    Capacity::of(0).in_zone(Zone::new(zone).unwrap())
}

/// Creates a cloud with three zones.
pub(crate) fn cloud(capacity: impl IntoIterator<Item = Capacity>) -> MemoryCloud {
    let zones = ["mem-a", "mem-b", "mem-c"].map(|name| Zone::new(name).unwrap());
    let builder = zones
        .into_iter()
        .fold(MemoryCloud::builder(), |builder, zone| builder.zone(zone));
    capacity
        .into_iter()
        .fold(builder, |builder, limit| builder.capacity(limit))
        .build()
}

pub(crate) fn wrap<P>(inner: P, policy: FallbackPolicy) -> Layered<P, Fallback>
where
    P: fleetwright::InstanceProvisioner,
{
    Layered::new(inner, Fallback::new(policy))
}

fn offering(instance_type: Option<&str>, zone: Option<&str>, market: Option<Market>) -> Scope {
    Scope::Offering {
        instance_type: instance_type.map(|name| InstanceType::new(name).unwrap()),
        zone: zone.map(|name| Zone::new(name).unwrap()),
        market,
    }
}

pub(crate) fn lacks(scope: Scope) -> ProvisionError {
    call(Operation::LaunchInstance).capacity(scope, "none")
}

/// Returns type, zone and market of each launch that was sent.
pub(crate) fn sent(backend: &Scripted) -> Vec<String> {
    backend
        .targets()
        .iter()
        .map(|about| about[1..].join(" "))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn first_alternative_with_capacity_is_launched_and_tagged() {
    let cloud = cloud([none_in("mem-a"), none_in("mem-b")]);
    let fallback = wrap(
        cloud.provisioner(),
        zones().record_in_tag("alternative").unwrap(),
    );
    let info = fallback.launch_instance(&plain()).await.unwrap();
    assert_eq!(info.placement.zone, Some(Zone::new("mem-c").unwrap()));
    assert_eq!(
        info.tags,
        plain().tags.with("alternative", "mem-c").unwrap()
    );
    assert_eq!(cloud.oracle().call_count(WireCall::Launch), 3);
    // An offering without capacity is not tried again.
    let batch = fallback.launch_instances(&plain(), many(2)).await.unwrap();
    assert!(
        batch
            .iter()
            .all(|info| info.placement == batch[0].placement)
    );
    assert_eq!(cloud.oracle().call_count(WireCall::Launch), 4);
    assert_eq!(fallback.layer().without_capacity().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn only_listed_alternatives_are_tried_without_duplicates() {
    let alternatives = [
        Alternative::new("as requested"),
        Alternative::new("the same again"),
        Alternative::new("spot").market(Market::Spot),
        of_type("big"),
    ];
    let backend = Scripted::always(lacks(Scope::Instance(id("i-9"))));
    let fallback = wrap(backend, FallbackPolicy::new(alternatives));
    assert!(fallback.launch_instance(&plain()).await.is_err());
    assert_eq!(
        sent(fallback.inner()),
        ["small - -", "small - spot", "big - -"]
    );
    let fallback = wrap(
        Scripted::new([]),
        FallbackPolicy::new([]).record_in_tag("x").unwrap(),
    );
    fallback.launch_instance(&plain()).await.unwrap();
    assert_eq!(sent(fallback.inner()), ["small - -"]);
    assert!(
        FallbackPolicy::new([of_type("x")])
            .record_in_tag("fleetwright:x")
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn only_capacity_errors_fall_back() {
    let refusals = [
        (RefusalReason::Quota, ErrorKind::Quota),
        (RefusalReason::BadCredentials, ErrorKind::Unauthenticated),
        (RefusalReason::AccessDenied, ErrorKind::Forbidden),
        (RefusalReason::Throttled(secs(1)), ErrorKind::Throttled),
    ];
    for (refused, kind) in refusals {
        let cloud = cloud([]);
        cloud
            .faults()
            .add(Rule::nth(WireCall::Launch, 1, Fault::Refused(refused)));
        let error = wrap(cloud.provisioner(), zones())
            .launch_instance(&plain())
            .await
            .unwrap_err();
        assert_eq!((error.kind(), cloud.oracle().total_calls()), (kind, 1));
        assert_eq!(live(&cloud), 0);
    }
    let cloud = cloud([]);
    cloud
        .external_actor()
        .disconnect(Zone::new("mem-a").unwrap());
    let fallback = wrap(cloud.provisioner(), zones());
    let error = fallback.launch_instance(&plain()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let nowhere = wrap(
        cloud.provisioner(),
        FallbackPolicy::new(["x", "mem-b"].map(in_zone)),
    );
    let error = nowhere.launch_instance(&plain()).await.unwrap_err();
    assert_eq!(
        (error.kind(), cloud.oracle().call_count(WireCall::Launch)),
        (ErrorKind::Invalid, 2)
    );
    assert!(
        fallback.layer().without_capacity().is_empty()
            && nowhere.layer().without_capacity().is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn skipped_offerings_are_those_in_the_error_scope() {
    let alternatives = [
        Alternative::new("requested"),
        in_zone("a"),
        in_zone("b"),
        of_type("big").zone("a").unwrap(),
        of_type("big").zone("b").unwrap(),
        in_zone("b").market(Market::Spot),
    ];
    let all = [
        "small - -",
        "small a -",
        "small b -",
        "big a -",
        "big b -",
        "small b spot",
    ];
    let network = |name| Scope::Network(NetworkId::new(name).unwrap());
    let cases: [(Scope, &[usize]); 11] = [
        (offering(Some("small"), Some("a"), None), &[0, 2, 3, 4, 5]),
        (offering(None, Some("a"), None), &[0, 2, 4, 5]),
        (offering(Some("small"), None, None), &[0, 3, 4]),
        (offering(None, None, Some(Market::Spot)), &[0, 1, 2, 3, 4]),
        (offering(None, None, Some(Market::OnDemand)), &[0, 5]),
        (offering(Some("big"), Some("a"), None), &[0, 1, 2, 4, 5]),
        (Scope::Region, &[0]),
        (Scope::Account, &[0]),
        (network("net-1"), &[0]),
        (network("net-2"), &[0, 1, 2, 3, 4, 5]),
        // Only this config names no zone.
        (Scope::Instance(id("i-1")), &[0, 1, 2, 3, 4, 5]),
    ];
    let mut config = plain();
    config.placement.network = Some(NetworkId::new("net-1").unwrap());
    for (scope, tried) in cases {
        let backend = Scripted::new([lacks(scope.clone()).into()]).first(vec![
            lacks(
                Scope::Instance(id("i-9"))
            )
            .into();
            9
        ]);
        let fallback = wrap(backend, FallbackPolicy::new(alternatives.clone()));
        assert!(fallback.launch_instance(&config).await.is_err());
        let expected: Vec<_> = tried.iter().map(|at| all[*at]).collect();
        assert_eq!(sent(fallback.inner()), expected, "{scope}");
    }
}

#[tokio::test(start_paused = true)]
async fn capacity_error_of_a_config_without_zone_does_not_apply_to_all_zones() {
    // Without a zone, this cloud launches in its first one.
    let cloud = cloud([none_in("mem-a")]);
    let policy = FallbackPolicy::new([Alternative::new("as requested"), in_zone("mem-b")]);
    let fallback = wrap(cloud.provisioner(), policy);
    for calls in [2, 3] {
        let info = fallback.launch_instance(&plain()).await.unwrap();
        assert_eq!(info.placement.zone, Some(Zone::new("mem-b").unwrap()));
        assert_eq!(cloud.oracle().call_count(WireCall::Launch), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn shortages_are_forgotten_in_time() {
    let cloud = cloud([none_in("mem-a"), none_in("mem-b"), none_in("mem-c")]);
    let fallback = wrap(cloud.provisioner(), zones().remember_for(secs(100)));
    let error = fallback.launch_instance(&plain()).await.unwrap_err();
    assert_eq!(
        (error.retry(), cloud.oracle().total_calls()),
        (RetryAdvice::Never, 3)
    );
    sleep(secs(40)).await;
    // Refused without a call, with the remaining time as retry delay.
    let error = fallback.launch_instance(&plain()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Capacity, Effect::None)
    );
    assert_eq!(error.retry(), RetryAdvice::After(secs(60)));
    assert_eq!(error.operation(), Operation::LaunchInstance);
    assert_eq!(cloud.oracle().total_calls(), 3);
    assert_eq!(fallback.layer().without_capacity().len(), 3);
    cloud.external_actor().set_capacity(Vec::new());
    sleep(secs(60)).await;
    assert!(fallback.layer().without_capacity().is_empty());
    let info = fallback.launch_instance(&plain()).await.unwrap();
    assert_eq!(info.placement.zone, Some(Zone::new("mem-a").unwrap()));
}

#[tokio::test(start_paused = true)]
async fn retry_advice_is_the_end_of_the_first_shortage() {
    let cloud = cloud([none_in("mem-a"), none_in("mem-b"), none_in("mem-c")]);
    let fallback = wrap(cloud.provisioner(), zones().remember_for(secs(100)));
    let small = InstanceConfig::builder("image-1", "small").build().unwrap();
    assert!(fallback.launch_instance(&small).await.is_err());
    sleep(secs(30)).await;
    let mut only = small.clone();
    only.instance_type = InstanceType::new("big").unwrap();
    assert!(fallback.launch_instance(&only).await.is_err());
    let error = fallback.launch_instance(&small).await.unwrap_err();
    assert_eq!(error.retry(), RetryAdvice::After(secs(70)));
}

#[tokio::test(start_paused = true)]
async fn no_time_is_too_long_to_remember() {
    for (time, sent) in [(Duration::MAX, 3), (Duration::ZERO, 6)] {
        let cloud = cloud([none_in("mem-a"), none_in("mem-b"), none_in("mem-c")]);
        let fallback = wrap(cloud.provisioner(), zones().remember_for(time));
        for _ in 0..2 {
            assert!(fallback.launch_instance(&plain()).await.is_err());
        }
        assert_eq!(cloud.oracle().call_count(WireCall::Launch), sent);
    }
}

#[tokio::test(start_paused = true)]
async fn partial_batch_does_not_fall_back() {
    let limits = Capacity::of(2).in_zone(Zone::new("mem-a").unwrap());
    let builder = MemoryCloud::builder()
        .batch_launch(BatchLaunch::Partial)
        .capacity(limits);
    let cloud = builder.batch_size(size(9)).build();
    let fallback = wrap(
        cloud.provisioner(),
        FallbackPolicy::new(["mem-a", "mem-b"].map(in_zone)),
    );
    let error = fallback
        .launch_instances(&with_token("t-1"), many(3))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Capacity, Effect::Done)
    );
    assert_eq!((error.survivors().len(), live(&cloud)), (2, 2));
    assert_eq!(cloud.oracle().call_count(WireCall::Launch), 1);
    // All or nothing: the whole batch is refused.
    let limits = Capacity::of(2).in_zone(Zone::new("mem-a").unwrap());
    let cloud = MemoryCloud::builder().capacity(limits).build();
    let fallback = wrap(
        cloud.provisioner(),
        FallbackPolicy::new(["mem-a", "mem-b"].map(in_zone)),
    );
    let batch = fallback
        .launch_instances(&with_token("t-1"), many(3))
        .await
        .unwrap();
    assert!(
        batch
            .iter()
            .all(|info| info.placement.zone == Some(Zone::new("mem-b").unwrap()))
    );
    assert_eq!(live(&cloud), 3);
}

#[tokio::test(start_paused = true)]
async fn shortage_of_two_launches_is_remembered_once() {
    let alternatives = || FallbackPolicy::new([Alternative::new("requested"), in_zone("b")]);
    // The first error names the type in every zone, the second only that there is no capacity.
    let everywhere = lacks(offering(Some("small"), None, None));
    let narrow = lacks(Scope::Instance(id("i-9")));
    let backend = Scripted::new([everywhere.clone().into(), narrow.into()]).with_latency(secs(1));
    let fallback = wrap(backend, alternatives());
    let config = plain();
    let later = async {
        sleep(millis(1)).await;
        fallback.launch_instance(&config).await
    };
    let (first, second) = tokio::join!(fallback.launch_instance(&config), later);
    assert!(first.is_err() && second.is_err());
    assert_eq!(sent(fallback.inner()), ["small - -", "small - -"]);
    let fallback = wrap(
        Scripted::always(everywhere).with_latency(secs(1)),
        alternatives(),
    );
    let _ = tokio::join!(
        fallback.launch_instance(&config),
        fallback.launch_instance(&config)
    );
    assert_eq!(
        fallback.layer().without_capacity(),
        [offering(Some("small"), None, None)]
    );
}
