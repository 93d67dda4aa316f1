//! `launch_next_attempt`: launches with the first token that is not spent.

use std::{num::NonZeroU32, time::Duration};

use fleetwright::{ErrorKind, LaunchToken, prelude::*};
use fleetwright_memory::{Fault, MemoryCloud, Phase, RefusalReason, Rule, WireCall};

fn config() -> InstanceConfig {
    InstanceConfig::builder("image-1", "small")
        .launch_token("slot-1")
        .build()
        .unwrap()
}

fn token(attempt: u32) -> LaunchToken {
    let token = LaunchToken::new("slot-1").unwrap();
    token.attempt(NonZeroU32::new(attempt).unwrap())
}

/// Returns how many launches reached the cloud.
fn launches(cloud: &MemoryCloud) -> u64 {
    cloud.oracle().call_count(WireCall::Launch)
}

#[tokio::test(start_paused = true)]
async fn first_attempt_uses_the_token_itself() {
    let provisioner = MemoryCloud::new().provisioner();
    let launched = provisioner.launch_next_attempt(&config(), 1..=3).await;
    let launched = launched.unwrap();
    assert_eq!((launched.attempt, &launched.token), (1, &token(1)));
    let plain = provisioner.launch_instance(&config()).await.unwrap();
    assert_eq!(plain.id, launched.instance.id);
}

#[tokio::test(start_paused = true)]
async fn spent_attempts_are_skipped_and_a_living_one_is_replayed() {
    let cloud = MemoryCloud::new();
    let provisioner = cloud.provisioner();
    let mut ids = Vec::new();
    for attempt in 1..=4 {
        let launched = provisioner.launch_next_attempt(&config(), 1..=9).await;
        let launched = launched.unwrap();
        assert_eq!(
            (launched.attempt, &launched.token),
            (attempt, &token(attempt))
        );
        let replay = provisioner.launch_next_attempt(&config(), 1..=9).await;
        assert_eq!(replay.unwrap().instance.id, launched.instance.id);
        ids.push(launched.instance.id.clone());
        provisioner
            .terminate_instance(&launched.instance.id)
            .await
            .unwrap();
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4, "every attempt has its own instance");
}

#[tokio::test(start_paused = true)]
async fn restarted_process_finds_the_instance_of_a_lost_launch() {
    let cloud = MemoryCloud::new();
    let before = cloud.provisioner();
    let first = before.launch_next_attempt(&config(), 1..=9).await.unwrap();
    before.terminate_instance(&first.instance.id).await.unwrap();
    // The launch of attempt 2 happens, its response is lost, and the process dies.
    let lost = Rule::nth(WireCall::Launch, 2, Fault::Lost(Phase::After));
    cloud.faults().add(lost);
    let error = before
        .launch_next_attempt(&config(), 1..=9)
        .await
        .unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown);
    drop(before);

    let after = cloud.provisioner();
    let again = after.launch_next_attempt(&config(), 1..=9).await.unwrap();
    assert_eq!(again.attempt, 2);
    let record = after.settle_launch(&token(2)).await.unwrap();
    let LaunchRecord::Found(found) = record else {
        panic!("{record:?}");
    };
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id, again.instance.id);
    // A stored attempt saves the calls for the attempts before it.
    let sent = launches(&cloud);
    let resumed = after
        .launch_next_attempt(&config(), again.attempt..=9)
        .await;
    assert_eq!(resumed.unwrap().instance.id, again.instance.id);
    assert_eq!(launches(&cloud), sent + 1);
}

#[tokio::test(start_paused = true)]
async fn number_of_attempts_is_bounded() {
    let cloud = MemoryCloud::new();
    let provisioner = cloud.provisioner();
    for _ in 1..=3 {
        let launched = provisioner.launch_next_attempt(&config(), 1..=3).await;
        let id = launched.unwrap().instance.id;
        provisioner.terminate_instance(&id).await.unwrap();
    }
    let sent = launches(&cloud);
    let error = provisioner
        .launch_next_attempt(&config(), 1..=3)
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::TokenSpent, Effect::None)
    );
    assert!(error.message().contains(token(3).as_str()), "{error}");
    assert_eq!(launches(&cloud), sent + 3);
}

#[tokio::test(start_paused = true)]
async fn other_errors_end_it_at_once() {
    let cloud = MemoryCloud::new();
    let throttled = Fault::Refused(RefusalReason::Throttled(Duration::from_secs(1)));
    cloud
        .faults()
        .add(Rule::nth(WireCall::Launch, 1, throttled));
    let provisioner = cloud.provisioner();
    let launched = provisioner.launch_next_attempt(&config(), 1..=9).await;
    assert_eq!(launched.unwrap_err().kind(), ErrorKind::Throttled);
    assert_eq!(launches(&cloud), 1);
}

#[tokio::test(start_paused = true)]
async fn missing_token_and_missing_attempts_are_refused_without_a_call() {
    let cloud = MemoryCloud::new();
    let provisioner = cloud.provisioner();
    let mut without_token = config();
    without_token.launch_token = None;
    #[expect(
        clippy::reversed_empty_ranges,
        reason = "the test needs an empty range"
    )]
    let cases = [
        (without_token, 1..=9, "launch token"),
        (config(), 0..=9, "attempts"),
        (config(), 9..=1, "attempts"),
    ];
    for (config, attempts, field) in cases {
        let launched = provisioner.launch_next_attempt(&config, attempts).await;
        let error = launched.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(error.invalid_value().unwrap().field(), field);
    }
    assert_eq!(launches(&cloud), 0);
}
