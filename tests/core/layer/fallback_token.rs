//! One token with several alternatives never creates two instances, whatever is lost and whichever
//! process retries.

use fleetwright::{
    Effect, ErrorKind, InstanceConfig, InstanceProvisioner, LaunchRecord, Operation, Zone,
    layer::{Alternative, Fallback, FallbackPolicy, Layered, Retry, RetryPolicy},
};
use fleetwright_memory::{Fault, MemoryCloud, MemoryProvisioner, Phase, Rule, WireCall};
use tokio::time::timeout;

use super::{
    fallback::{cloud, in_zone, lacks, none_in, sent, wrap},
    live, many, plain,
    scripted::{Response, Scripted, info},
    token, with_token,
};
use crate::fake::{call, id, secs};

fn zones() -> FallbackPolicy {
    FallbackPolicy::new(["mem-a", "mem-b", "mem-c"].map(in_zone))
        .record_in_tag("alternative")
        .unwrap()
}

/// Creates a new process with an empty capacity memory.
fn process(cloud: &MemoryCloud) -> Layered<Layered<MemoryProvisioner, Retry>, Fallback> {
    let retry = Layered::new(
        cloud.provisioner(),
        Retry::new(RetryPolicy::default().jitter_seed(3)),
    );
    wrap(retry, zones())
}

/// Creates a new process whose capacity memory contains `zone`.
async fn process_without(
    cloud: &MemoryCloud,
    zones: &[&str],
) -> Layered<Layered<MemoryProvisioner, Retry>, Fallback> {
    let process = process(cloud);
    cloud
        .external_actor()
        .set_capacity(zones.iter().map(|zone| none_in(zone)).collect());
    let other = InstanceConfig::builder("image-1", "small").build().unwrap();
    if let Ok(info) = process.launch_instance(&other).await {
        cloud.external_actor().terminate(&info.id).unwrap();
        tokio::time::sleep(secs(60)).await;
    }
    cloud.external_actor().set_capacity(Vec::new());
    process
}

#[tokio::test(start_paused = true)]
async fn replay_returns_the_same_instance_whatever_is_skipped() {
    let refusing: [&[&str]; 4] = [
        &[],
        &["mem-a"],
        &["mem-a", "mem-b"],
        &["mem-a", "mem-b", "mem-c"],
    ];
    for count in [1, 2] {
        for launched_with in &refusing[..3] {
            for replayed_with in refusing {
                let cloud = cloud([]);
                let config = with_token("t-1");
                let first = process_without(&cloud, launched_with).await;
                let launched = first.launch_instances(&config, many(count)).await.unwrap();
                let again = process_without(&cloud, replayed_with).await;
                let same = again.launch_instances(&config, many(count)).await.unwrap();
                let ids = |infos: Vec<fleetwright::InstanceInfo>| {
                    infos.into_iter().map(|i| i.id).collect::<Vec<_>>()
                };
                assert_eq!(
                    ids(same),
                    ids(launched),
                    "{launched_with:?} {replayed_with:?}"
                );
                assert_eq!(live(&cloud), count as usize);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn token_of_another_config_is_a_conflict() {
    let cloud = cloud([]);
    process(&cloud)
        .launch_instance(&with_token("t-1"))
        .await
        .unwrap();
    let mut other = with_token("t-1");
    other.tags.insert("fleet", "red").unwrap();
    for lacking in [&[][..], &["mem-a"], &["mem-a", "mem-b", "mem-c"]] {
        let process = process_without(&cloud, lacking).await;
        let error = process.launch_instance(&other).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TokenConflict);
        assert_eq!(error.operation(), Operation::LaunchInstance);
    }
    assert_eq!(live(&cloud), 1);
}

#[tokio::test(start_paused = true)]
async fn alternatives_with_the_same_name_are_distinct() {
    let cloud = cloud([]);
    let named = |zone: &str| Alternative::new("").zone(zone).unwrap();
    let policy = FallbackPolicy::new(["mem-a", "mem-b"].map(named));
    let config = with_token("t-1");
    let mut second = config.clone();
    second.placement.zone = Some(Zone::new("mem-b").unwrap());
    let launched = cloud.provisioner().launch_instance(&second).await.unwrap();
    let same = wrap(cloud.provisioner(), policy)
        .launch_instance(&config)
        .await
        .unwrap();
    assert_eq!(same.id, launched.id);
}

/// All faults of one call.
fn faults() -> Vec<Fault> {
    let phases = [Phase::Before, Phase::After].into_iter();
    let mut faults: Vec<_> = phases
        .flat_map(|phase| {
            [
                Fault::Lost(phase),
                Fault::ServerError(phase),
                Fault::Hang(phase),
                Fault::Crash(phase),
            ]
        })
        .collect();
    faults.push(Fault::Malformed);
    faults
}

#[tokio::test(start_paused = true)]
async fn lost_messages_never_cause_a_second_instance() {
    for fault in faults() {
        for (wire_call, nth) in [
            (WireCall::Launch, 1),
            (WireCall::Launch, 2),
            (WireCall::Launch, 3),
            (WireCall::FindLaunch, 1),
        ] {
            for config in [plain(), with_token("t-1")] {
                for repeating in [true, false] {
                    let cloud = cloud([none_in("mem-a")]);
                    cloud.faults().add(Rule::nth(wire_call, nth, fault.clone()));
                    let what = format!(
                        "{fault:?} at {wire_call:?} {nth}, {:?}",
                        config.launch_token
                    );
                    let launch = async {
                        if repeating {
                            process(&cloud).launch_instance(&config).await
                        } else {
                            wrap(cloud.provisioner(), zones())
                                .launch_instance(&config)
                                .await
                        }
                    };
                    // A hanging process is killed.
                    let result = timeout(secs(900), launch).await;
                    assert!(live(&cloud) <= 1, "{what}");
                    if let Ok(Ok(info)) = &result {
                        assert_eq!(
                            cloud.oracle().leftovers().instances,
                            std::slice::from_ref(&info.id),
                            "{what}"
                        );
                    }
                    cloud.faults().clear();
                    let Some(token) = &config.launch_token else {
                        continue;
                    };
                    // The next process retries with another capacity memory.
                    let next = process_without(&cloud, &["mem-a", "mem-b"]).await;
                    let info = next.launch_instance(&config).await.unwrap();
                    assert_eq!(
                        cloud.oracle().leftovers().instances,
                        std::slice::from_ref(&info.id),
                        "{what}"
                    );
                    let found = next.find_launch(token).await.unwrap();
                    assert!(matches!(found, LaunchRecord::Found(all) if all[0].id == info.id));
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_outcome_is_settled_before_the_next_alternative() {
    let unknown = || {
        Response::from(lacks(fleetwright::Scope::Instance(id("i-9"))).with_effect(Effect::Unknown))
    };
    let done = || Response::from(lacks(fleetwright::Scope::Region).with_effect(Effect::Done));
    let found = || Response::Found(LaunchRecord::Found(vec![info(&id("i-1"))]));
    let terminated = || Response::Found(LaunchRecord::Terminated(Vec::new()));
    let down = || Response::from(call(Operation::FindLaunch).unavailable(Effect::None, "down"));
    let cases = [
        (with_token("t-1"), vec![unknown(), Response::Success], true),
        (with_token("t-1"), vec![unknown(), found()], false),
        (with_token("t-1"), vec![unknown(), terminated()], false),
        (with_token("t-1"), vec![unknown(), down()], false),
        (with_token("t-1"), vec![done()], false),
        (plain(), vec![unknown()], false),
    ];
    for (config, results, goes_on) in cases {
        let fallback = wrap(Scripted::new(results.clone()), zones());
        let result = fallback.launch_instance(&config).await;
        assert_eq!(result.is_ok(), goes_on, "{results:?}");
        let calls = fallback.inner().calls();
        let launches = calls
            .iter()
            .filter(|call| call.operation == Operation::LaunchInstance);
        assert_eq!(launches.count(), 1 + usize::from(goes_on));
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::Capacity);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_outcome_is_settled_after_the_window() {
    let unknown = lacks(fleetwright::Scope::Instance(id("i-9"))).with_effect(Effect::Unknown);
    let mut backend = Scripted::new([unknown.into()]);
    backend.capabilities.consistency_window = secs(5);
    let fallback = wrap(backend, zones());
    fallback
        .launch_instances(&with_token("t-1"), many(2))
        .await
        .unwrap();
    let calls = fallback.inner().calls();
    assert_eq!(calls.last().unwrap().at, secs(5));
    // The items of a batch may only be found by their own tokens.
    let lookups: Vec<_> = calls[calls.len() - 3..]
        .iter()
        .map(|call| call.targets[0].clone())
        .collect();
    assert_eq!(
        lookups[..2],
        [
            token("t-1").item(0).to_string(),
            token("t-1").item(1).to_string()
        ]
    );
    assert_eq!(sent_last(fallback.inner()), "small mem-b -");
}

#[tokio::test(start_paused = true)]
async fn only_an_attempt_of_unknown_outcome_waits_for_the_window() {
    let unknown = lacks(fleetwright::Scope::Instance(id("i-9"))).with_effect(Effect::Unknown);
    let lagging = |responses: Vec<Response>| {
        let mut backend = Scripted::new(responses);
        backend.capabilities.consistency_window = secs(50);
        backend.capabilities.usual_lag = Some(secs(2));
        backend
    };
    let backend = lagging(vec![unknown.into()]);
    let fallback = wrap(backend, zones());
    fallback.launch_instance(&with_token("t-1")).await.unwrap();
    assert_eq!(fallback.inner().calls().last().unwrap().at, secs(50));
    // All alternatives are skipped, so nothing is launched, and nothing must be proved.
    let refused = ["mem-a", "mem-b", "mem-c"]
        .map(|zone| lacks(fleetwright::Scope::zone(Zone::new(zone).unwrap())).into());
    let fallback = wrap(lagging(refused.into()), zones());
    fallback
        .launch_instance(&with_token("t-1"))
        .await
        .unwrap_err();
    let refused_at = fallback.inner().calls().last().unwrap().at;
    let error = fallback.launch_instance(&with_token("t-2")).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Capacity);
    let last = fallback.inner().calls().last().unwrap().clone();
    assert_eq!(last.targets, ["t-2"]);
    assert_eq!(last.at, refused_at + secs(2));
}

fn sent_last(backend: &Scripted) -> String {
    sent(backend).pop().unwrap()
}

#[tokio::test(start_paused = true)]
async fn token_is_looked_up_if_any_alternative_was_skipped() {
    // A backend that checks capacity before the token.
    let zone_lacks = |zone| lacks(fleetwright::Scope::zone(Zone::new(zone).unwrap()));
    let found = Response::Found(LaunchRecord::Found(vec![info(&id("i-1"))]));
    let backend = Scripted::new([zone_lacks("mem-a").into(), Response::Success]).first([
        zone_lacks("mem-b").into(),
        zone_lacks("mem-c").into(),
        found,
        Response::Success,
    ]);
    let fallback = wrap(backend, zones());
    fallback.launch_instance(&plain()).await.unwrap();
    let info = fallback.launch_instance(&with_token("t-1")).await.unwrap();
    assert_eq!(info.id, id("i-1"));
    let all = sent(fallback.inner());
    assert_eq!(
        all[..4],
        [
            "small mem-a -",
            "small mem-b -",
            "small mem-b -",
            "small mem-c -"
        ]
    );
    assert_eq!(all[5], "small mem-a -");
}

#[tokio::test(start_paused = true)]
async fn failed_look_up_names_the_launch() {
    let down = call(Operation::FindLaunch).unavailable(Effect::None, "down");
    let backend = Scripted::new([lacks(fleetwright::Scope::Region).into()]).first([down.into()]);
    let fallback = wrap(backend, zones());
    fallback.launch_instance(&plain()).await.unwrap_err();
    let error = fallback
        .launch_instance(&with_token("t-1"))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.operation()),
        (ErrorKind::Unavailable, Operation::LaunchInstance)
    );
    // A launch with an unused token is refused without a call.
    let error = fallback
        .launch_instance(&with_token("t-1"))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Capacity, Effect::None)
    );
    let calls = fallback.inner().calls();
    assert_eq!(
        calls
            .iter()
            .filter(|call| call.operation == Operation::LaunchInstance)
            .count(),
        1
    );
}
