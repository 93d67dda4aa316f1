//! Stale reads: they lag by up to the declared window and never by more.

use std::time::Duration;

use fleetwright::{
    CloudInstanceState::Terminated, ErrorKind, InstanceFilter, InstanceInfo,
    InstanceProvisioner as _, InstanceStatus, LaunchRecord, RetryAdvice, TagChange,
};
use fleetwright_memory::{Fault, MemoryCloud, Rule, WireCall};

use crate::support::{
    all_blue, block_on_paused, brisk, existing_ids, open, pass, seconds, token, truth, with_token,
};

const WINDOW: Duration = seconds(5);

/// The true state of one instance at each second.
struct History(Vec<Option<InstanceInfo>>);

impl History {
    fn note(&mut self, cloud: &MemoryCloud) {
        let all = cloud.oracle().instances();
        self.0.push(all.into_iter().next().map(|truth| truth.info));
    }

    /// Returns every state that a read may return now: the true states within the window.
    fn visible(&self) -> &[Option<InstanceInfo>] {
        let length = usize::try_from(WINDOW.as_secs()).unwrap() + 1;
        &self.0[self.0.len().saturating_sub(length)..]
    }
}

/// Changes one instance every few seconds; `step` is the current second.
async fn change_instance(cloud: &MemoryCloud, step: u64) {
    let actor = cloud.external_actor();
    let id = cloud
        .oracle()
        .instances()
        .first()
        .map(|t| t.info.id.clone());
    let number = TagChange::new().set("number", step.to_string()).unwrap();
    match (step, id) {
        (2, _) => drop(actor.launch(&with_token("t")).unwrap()),
        (10, Some(id)) => actor.stop(&id).unwrap(),
        (17, Some(id)) => actor.start(&id).unwrap(),
        (25, Some(id)) => actor.terminate(&id).unwrap(),
        (3..=24, Some(id)) if step % 2 == 0 => actor.update_tags(&id, &number).unwrap(),
        _ => {}
    }
}

/// Reads one instance for 40 seconds with the lags of `seed`. Returns the numbers of current and
/// stale reads.
async fn count_reads(seed: u64) -> (u32, u32) {
    let cloud = brisk().seed(seed).read_lag(WINDOW).build();
    let mut history = History(vec![None; 6]);
    let (mut fresh, mut stale) = (0, 0);
    for step in 0..40 {
        change_instance(&cloud, step).await;
        history.note(&cloud);
        // A new handle each time, because a handle retries its own recent launches.
        let (reader, visible) = (cloud.provisioner(), history.visible());
        let everything = InstanceFilter::new().in_any_state();
        let listed = reader.list_instances(&everything).await.unwrap();
        let observed = listed.into_iter().next();
        assert!(
            visible.contains(&observed),
            "seed {seed} step {step}: {observed:?}"
        );
        if observed == *history.0.last().unwrap() {
            fresh += 1;
        } else {
            stale += 1;
        }
        let live = reader.list_instances(&InstanceFilter::new()).await.unwrap();
        let possible = |info: &InstanceInfo| info.state != Terminated;
        match live.first() {
            Some(info) => assert!(possible(info) && visible.contains(&Some(info.clone()))),
            None => assert!(!visible.iter().all(|v| v.as_ref().is_some_and(possible))),
        }
        if let Some(id) = cloud
            .oracle()
            .instances()
            .first()
            .map(|t| t.info.id.clone())
        {
            let observed = reader.describe_instance(&id).await;
            match observed {
                Ok(status) => {
                    let shows = |v: &InstanceInfo| InstanceStatus::from(v.clone()) == status;
                    assert!(
                        visible.iter().flatten().any(shows),
                        "step {step}: {status:?}"
                    );
                }
                Err(error) => {
                    assert!(visible.contains(&None), "seed {seed} step {step}: {error}");
                    assert_eq!(error.kind(), ErrorKind::NotFound);
                    assert_eq!(error.retry(), RetryAdvice::Never);
                }
            }
        }
        match reader.find_launch(&token("t")).await.unwrap() {
            LaunchRecord::NotFound => assert!(visible.contains(&None)),
            LaunchRecord::Found(observed) | LaunchRecord::Terminated(observed) => {
                assert!(visible.contains(&observed.into_iter().next()));
            }
        }
        pass(seconds(1)).await;
    }
    (fresh, stale)
}

#[test]
fn read_returns_only_states_from_within_the_window() {
    let mut all = (0, 0);
    for seed in 0..40 {
        let (fresh, stale) = block_on_paused(count_reads(seed));
        all = (all.0 + fresh, all.1 + stale);
    }
    assert!(
        all.0 > 100 && all.1 > 100,
        "both kinds of read must occur: {all:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_window_every_read_is_current() {
    let (cloud, provisioner) = open(brisk());
    for step in 0..40 {
        change_instance(&cloud, step).await;
        let everything = InstanceFilter::new().in_any_state();
        let listed = provisioner.list_instances(&everything).await.unwrap();
        let truths = cloud.oracle().instances();
        let infos: Vec<_> = truths.into_iter().map(|truth| truth.info).collect();
        assert_eq!(listed, infos);
        pass(seconds(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn stale_read_returns_the_state_one_window_ago() {
    let (cloud, provisioner) = open(brisk().read_lag(WINDOW));
    let stale = |call: WireCall| Rule::always(call, Fault::StaleRead);
    for call in [WireCall::Describe, WireCall::ListPage, WireCall::FindLaunch] {
        cloud.faults().add(stale(call));
    }
    let mut history = Vec::new();
    cloud.external_actor().launch(&with_token("t")).unwrap();
    let id = existing_ids(&cloud)[0].clone();
    for step in 0..30_usize {
        let number = TagChange::new().set("number", step.to_string()).unwrap();
        cloud.external_actor().update_tags(&id, &number).unwrap();
        history.push(truth(&cloud, &id).info);
        let then = step.checked_sub(5).map(|then| history[then].clone());
        let listed = provisioner.list_instances(&all_blue()).await.unwrap();
        assert_eq!(listed, then.clone().into_iter().collect::<Vec<_>>());
        let described = provisioner.describe_instance(&id).await.ok();
        assert_eq!(described, then.clone().map(InstanceStatus::from));
        let found = provisioner.find_launch(&token("t")).await.unwrap();
        let record = then.map_or(LaunchRecord::NotFound, |then| {
            LaunchRecord::Found(vec![then])
        });
        assert_eq!(found, record);
        pass(seconds(1)).await;
    }
    assert_eq!(cloud.faults().unused_rules(), []);
}
