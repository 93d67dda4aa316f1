//! The same seed and the same calls give identical results.

use std::fmt::Write as _;

use fleetwright::{InstanceFilter, InstanceProvisioner as _};
use fleetwright_memory::{Fault, Phase, Rule, WireCall};

use crate::{
    calls::{self, send, snapshot_state},
    support::{block_on_paused, brisk, existing_ids, many, open, pass, plain, seconds},
};

/// Returns a transcript of all results of a cloud with lag, latency and faults.
async fn transcript(seed: u64) -> String {
    let knobs = brisk().seed(seed).read_lag(seconds(3)).latency(seconds(1));
    let (cloud, provisioner) = open(knobs);
    for (nth, call) in (1..).zip(calls::ALL) {
        cloud
            .faults()
            .add(Rule::nth(call, nth % 4 + 1, Fault::Lost(Phase::After)));
    }
    cloud.faults().add(Rule::nth(
        WireCall::ListPage,
        30,
        Fault::UnknownState("ODD".into()),
    ));
    let mut text = String::new();
    let batch = provisioner.launch_instances(&plain(), many(20)).await;
    writeln!(text, "{batch:?}").unwrap();
    for round in 0..4 {
        for (number, call) in calls::ALL.into_iter().enumerate() {
            let all = existing_ids(&cloud);
            let id = &all[(number * 7 + round) % all.len()];
            let result = send(call, &provisioner, id).await;
            writeln!(text, "{call} {id} {result:?}").unwrap();
            let list = provisioner
                .list_instances(&InstanceFilter::new().in_any_state())
                .await;
            writeln!(text, "{list:?}").unwrap();
            let session = provisioner.console_session(id).await;
            writeln!(text, "{:?}", session.map(|session| session.url)).unwrap();
        }
        pass(seconds(2)).await;
        text += &snapshot_state(&cloud);
    }
    writeln!(
        text,
        "{:?} {}",
        cloud.oracle().calls(),
        cloud.oracle().records_touched()
    )
    .unwrap();
    text
}

#[test]
fn same_seed_and_calls_give_the_same_transcript() {
    for seed in [0, 1, u64::MAX] {
        let (one, two) = (
            block_on_paused(transcript(seed)),
            block_on_paused(transcript(seed)),
        );
        assert!(one == two, "seed {seed}");
        let (length, odd) = (one.len(), one.contains("ODD"));
        assert!(
            length > 100_000 && odd && one.contains("Timeout"),
            "{length} {odd}"
        );
    }
}

#[test]
fn another_seed_gives_other_ids_lags_and_sessions() {
    let world = |seed| {
        block_on_paused(async move {
            let (cloud, provisioner) = open(brisk().seed(seed).read_lag(seconds(30)));
            let id = cloud.external_actor().launch(&plain()).unwrap().id;
            let mut observed = Vec::new();
            for _ in 0..30 {
                pass(seconds(1)).await;
                observed.push(provisioner.describe_instance(&id).await.is_ok());
            }
            let session = provisioner.console_session(&id).await.unwrap().url;
            let key = session.split_once("key=").unwrap().1.to_owned();
            (id, observed, key)
        })
    };
    let (one, two) = (world(1), world(2));
    assert_ne!(one.0, two.0);
    assert_ne!(one.1, two.1);
    assert_ne!(one.2, two.2);
}

#[test]
fn reads_do_not_change_later_ids() {
    let ids = |reads: u32| {
        block_on_paused(async move {
            let (cloud, provisioner) = open(brisk().read_lag(seconds(3)));
            for _ in 0..5 {
                let id = provisioner.launch_instance(&plain()).await.unwrap().id;
                pass(seconds(1)).await;
                for _ in 0..reads {
                    provisioner
                        .list_instances(&InstanceFilter::new())
                        .await
                        .unwrap();
                    provisioner.console_session(&id).await.unwrap();
                }
            }
            existing_ids(&cloud)
        })
    };
    assert_eq!(ids(0), ids(7));
}
