//! Futures that are dropped, and processes that die, at every point.

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
    calls::{self, Made, make, outcome, ready},
    support::{
        LONG, POLICY, all_blue, brisk, ids, live, many, open, pass, token, virtually, wait_for,
        with_token,
    },
};

const LATENCY: Duration = Duration::from_millis(40);

/// A future that is given up after some polls.
struct GivenUp<F> {
    future: Pin<Box<F>>,
    polls: u32,
}

impl<F: Future> Future for GivenUp<F> {
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

/// Polls `future` at most `polls` times and drops it; its output if that was enough.
async fn given_up<F: Future>(future: F, polls: u32) -> Option<F::Output> {
    GivenUp {
        future: Box::pin(future),
        polls,
    }
    .await
}

#[test]
fn a_launch_dropped_at_any_poll_is_one_launch_with_its_replay() {
    for batch in [1, 3] {
        let mut polls = 0;
        loop {
            let done = virtually(async {
                let (cloud, provisioner) = open(brisk().latency(LATENCY));
                let config = with_token("t");
                let launch = provisioner.launch_instances(&config, many(batch));
                let done = given_up(launch, polls).await.is_some();
                let settled = cloud
                    .provisioner()
                    .settle_launch(&token("t"))
                    .await
                    .unwrap();
                match settled {
                    LaunchRecord::NotFound => assert_eq!(live(&cloud), []),
                    LaunchRecord::Found(found) => assert_eq!(ids(&found), live(&cloud)),
                    LaunchRecord::Terminated(_) => panic!("nothing was terminated"),
                }
                let replay = provisioner
                    .launch_instances(&config, many(batch))
                    .await
                    .unwrap();
                assert_eq!(ids(&replay), live(&cloud), "after {polls} polls");
                assert_eq!(live(&cloud).len(), batch as usize);
                done
            });
            if done {
                break;
            }
            polls += 1;
        }
        assert!(polls >= 2, "it was dropped before and after its effect");
    }
}

#[test]
fn a_wait_dropped_at_any_poll_leaves_what_the_token_finds() {
    let mut polls = 0;
    while !virtually(async {
        let (cloud, provisioner) = open(brisk().latency(LATENCY));
        let config = with_token("t");
        let done = given_up(provisioner.launch_and_wait(&config, &POLICY), polls).await;
        let replay = provisioner.launch_and_wait(&config, &POLICY).await.unwrap();
        assert_eq!(live(&cloud), [replay.id], "after {polls} polls");
        done.is_some()
    }) {
        polls += 1;
    }
    assert!(polls > 3);
}

#[test]
fn every_call_dropped_at_any_poll_is_completed_by_its_repeat() {
    for call in calls::ALL {
        let mut polls = 0;
        while !virtually(async {
            let knobs = || brisk().latency(LATENCY);
            let twin = ready(call, knobs()).await;
            make(call, &twin.provisioner, &twin.id).await.unwrap();
            pass(LONG).await;
            let Made {
                cloud,
                provisioner,
                id,
            } = ready(call, knobs()).await;
            let done = given_up(make(call, &provisioner, &id), polls)
                .await
                .is_some();
            // A reimage that is under way can be asked for again once it is done.
            pass(LONG).await;
            make(call, &provisioner, &id).await.unwrap();
            pass(LONG).await;
            assert_eq!(outcome(&cloud), outcome(&twin.cloud), "{call}");
            done
        }) {
            polls += 1;
        }
        assert!(polls >= 2, "{call}");
    }
}

/// A small life: every kind of call that a controller makes.
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
fn a_process_that_dies_at_any_call_leaves_what_token_and_tags_find() {
    let calls = virtually(async {
        let (cloud, provisioner) = open(brisk());
        scenario(&provisioner).await.unwrap();
        assert!(cloud.oracle().leftovers().is_nothing());
        cloud.oracle().total_calls()
    });
    assert!(calls > 10);
    for nth in 1..=calls {
        for phase in [Phase::Before, Phase::After] {
            virtually(async {
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
                    cloud.oracle().leftovers().is_nothing(),
                    "call {nth} {phase:?}"
                );
            });
        }
    }
}

/// What a restarted process does: settle the launch by its token, then end it by its tags.
async fn resume(provisioner: &MemoryProvisioner, nth: u64) {
    let settled = provisioner.settle_launch(&token("t")).await.unwrap();
    let listed = provisioner.list_instances(&all_blue()).await.unwrap();
    match settled {
        LaunchRecord::NotFound => {
            assert_eq!(
                (nth, listed.len()),
                (1, 0),
                "only the launch itself can be missing"
            );
            provisioner.launch_instance(&with_token("t")).await.unwrap();
        }
        LaunchRecord::Found(found) => {
            assert_eq!(ids(&found), ids(&listed));
            let replay = provisioner.launch_instance(&with_token("t")).await.unwrap();
            assert_eq!(ids(&[replay]), ids(&listed));
        }
        LaunchRecord::Terminated(gone) => {
            assert_eq!((gone.len(), listed.len()), (1, 0));
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
