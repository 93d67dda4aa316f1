//! Dropped futures and crashed processes, at every point of a call.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use fleetwright::{
    ErrorKind, InstanceProvisioner as _, InstanceProvisionerExt as _, LaunchRecord, Result,
    TagChange,
};
use fleetwright_memory::{Fault, MemoryProvisioner, Phase, Rule};
use tokio::time::timeout;

use crate::{
    calls::{self, Prepared, outcome, prepare, send},
    support::{
        LONG, POLICY, all_blue, block_on_paused, brisk, existing_ids, ids, many, open, pass, token,
        wait_for, with_token,
    },
};

const LATENCY: Duration = Duration::from_millis(40);

/// A future that is dropped after a number of polls.
struct DroppedAfter<F> {
    future: Pin<Box<F>>,
    polls: u32,
}

impl<F: Future> Future for DroppedAfter<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls == 0 {
            return Poll::Ready(None);
        }
        self.polls -= 1;
        match self.future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.polls == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Polls `future` at most `polls` times and drops it. Returns its output if it completed.
async fn poll_at_most<F: Future>(future: F, polls: u32) -> Option<F::Output> {
    DroppedAfter {
        future: Box::pin(future),
        polls,
    }
    .await
}

#[test]
fn launch_dropped_at_any_poll_and_replayed_creates_one_instance() {
    for batch in [1, 3] {
        let mut polls = 0;
        loop {
            let done = block_on_paused(async {
                let (cloud, provisioner) = open(brisk().latency(LATENCY));
                let config = with_token("t");
                let launch = provisioner.launch_instances(&config, many(batch));
                let done = poll_at_most(launch, polls).await.is_some();
                let settled = cloud
                    .provisioner()
                    .settle_launch(&token("t"))
                    .await
                    .unwrap();
                match settled {
                    LaunchRecord::NotFound => assert_eq!(existing_ids(&cloud), []),
                    LaunchRecord::Found(found) => assert_eq!(ids(&found), existing_ids(&cloud)),
                    LaunchRecord::Terminated(_) => panic!("nothing was terminated"),
                }
                let replay = provisioner
                    .launch_instances(&config, many(batch))
                    .await
                    .unwrap();
                assert_eq!(ids(&replay), existing_ids(&cloud), "after {polls} polls");
                assert_eq!(existing_ids(&cloud).len(), batch as usize);
                done
            });
            if done {
                break;
            }
            polls += 1;
        }
        assert!(
            polls >= 2,
            "it must be dropped both before and after its effect"
        );
    }
}

#[test]
fn wait_dropped_at_any_poll_leaves_an_instance_that_the_token_finds() {
    let mut polls = 0;
    while !block_on_paused(async {
        let (cloud, provisioner) = open(brisk().latency(LATENCY));
        let config = with_token("t");
        let done = poll_at_most(provisioner.launch_and_wait(&config, &POLICY), polls).await;
        let replay = provisioner.launch_and_wait(&config, &POLICY).await.unwrap();
        assert_eq!(existing_ids(&cloud), [replay.id], "after {polls} polls");
        done.is_some()
    }) {
        polls += 1;
    }
    assert!(polls > 3);
}

#[test]
fn call_dropped_at_any_poll_is_completed_by_repeating_it() {
    for call in calls::ALL {
        let mut polls = 0;
        while !block_on_paused(async {
            let knobs = || brisk().latency(LATENCY);
            let twin = prepare(call, knobs()).await;
            send(call, &twin.provisioner, &twin.id).await.unwrap();
            pass(LONG).await;
            let Prepared {
                cloud,
                provisioner,
                id,
            } = prepare(call, knobs()).await;
            let done = poll_at_most(send(call, &provisioner, &id), polls)
                .await
                .is_some();
            // A reimage can be repeated only after the previous one is complete.
            pass(LONG).await;
            send(call, &provisioner, &id).await.unwrap();
            pass(LONG).await;
            assert_eq!(outcome(&cloud), outcome(&twin.cloud), "{call}");
            done
        }) {
            polls += 1;
        }
        assert!(polls >= 2, "{call}");
    }
}

/// Runs every kind of call that a controller makes, for one instance.
async fn scenario(provisioner: &MemoryProvisioner) -> Result<()> {
    let info = provisioner.launch_instance(&with_token("t")).await?;
    wait_for(
        provisioner,
        &info.id,
        fleetwright::CloudInstanceState::Running,
    )
    .await;
    let change = TagChange::new().set("step", "1").unwrap();
    provisioner.update_tags(&info.id, &change).await?;
    provisioner.stop_and_wait(&info.id, &POLICY).await?;
    provisioner.start_and_wait(&info.id, &POLICY).await?;
    provisioner.list_instances(&all_blue()).await?;
    provisioner.terminate_matching(&all_blue(), &POLICY).await?;
    Ok(())
}

#[test]
fn after_a_crash_at_any_call_token_and_tags_find_everything() {
    let calls = block_on_paused(async {
        let (cloud, provisioner) = open(brisk());
        scenario(&provisioner).await.unwrap();
        assert!(cloud.oracle().leftovers().is_empty());
        cloud.oracle().total_calls()
    });
    assert!(calls > 10);
    for nth in 1..=calls {
        for phase in [Phase::Before, Phase::After] {
            block_on_paused(async {
                let (cloud, provisioner) = open(brisk());
                cloud
                    .faults()
                    .add(Rule::nth_of_any(nth, Fault::Crash(phase)));
                let life = timeout(LONG, scenario(&provisioner)).await;
                assert!(life.is_err(), "call {nth} {phase:?}");
                assert_eq!(cloud.faults().unused_rules(), []);
                drop(provisioner);
                resume(&cloud.provisioner(), nth).await;
                assert!(
                    cloud.oracle().leftovers().is_empty(),
                    "call {nth} {phase:?}"
                );
            });
        }
    }
}

/// Recovers as a restarted process does: settles the launch by its token, then terminates by tags.
async fn resume(provisioner: &MemoryProvisioner, nth: u64) {
    let settled = provisioner.settle_launch(&token("t")).await.unwrap();
    let listed = provisioner.list_instances(&all_blue()).await.unwrap();
    match settled {
        LaunchRecord::NotFound => {
            assert_eq!(
                (nth, listed.len()),
                (1, 0),
                "only the launch itself may be missing"
            );
            provisioner.launch_instance(&with_token("t")).await.unwrap();
        }
        LaunchRecord::Found(found) => {
            assert_eq!(ids(&found), ids(&listed));
            let replay = provisioner.launch_instance(&with_token("t")).await.unwrap();
            assert_eq!(ids(&[replay]), ids(&listed));
        }
        LaunchRecord::Terminated(instances) => {
            assert_eq!((instances.len(), listed.len()), (1, 0));
            let error = provisioner
                .launch_instance(&with_token("t"))
                .await
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TokenSpent);
        }
    }
    provisioner
        .terminate_matching(&all_blue(), &POLICY)
        .await
        .unwrap();
}
