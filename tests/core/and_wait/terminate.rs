//! `terminate_and_wait` and `terminate_matching`.

use fleetwright::{
    CloudInstanceState::{Running, Stopped, Terminated, Terminating},
    Effect, ErrorKind, InstanceFilter, InstanceInfo, InstanceProvisionerExt as _, InstanceStatus,
    Operation,
};

use super::wait_policy;
use crate::fake::{Fake, call, id, ids, secs};

#[tokio::test(start_paused = true)]
async fn terminate_and_wait_returns_when_terminated() {
    let fake = Fake::new(secs(5)).with_timeline(
        "i-1",
        [
            (0, Running.into()),
            (1, Terminating.into()),
            (3, Terminated.into()),
        ],
    );
    let status = fake.terminate_and_wait(&id("i-1"), &wait_policy()).await;
    assert_eq!(status.unwrap(), InstanceStatus::new(id("i-1"), Terminated));
    assert_eq!(fake.elapsed(), secs(3));
    assert_eq!(fake.calls(Operation::TerminateInstance)[0].targets, ["i-1"]);
}

#[tokio::test(start_paused = true)]
async fn terminate_and_wait_succeeds_without_a_record() {
    let fake = Fake::new(secs(5));
    let waited = fake.terminate_and_wait(&id("i-1"), &wait_policy()).await;
    let status = waited.unwrap();
    assert_eq!(status.state_reason.as_deref(), Some("no record kept"));
    assert_eq!(fake.elapsed(), secs(5));
}

#[tokio::test(start_paused = true)]
async fn refused_terminate_is_not_waited_for_and_hanging_one_times_out() {
    let refusal = call(Operation::TerminateInstance).not_found(&id("i-1"));
    let fake = Fake::new(secs(0)).with_refusal("i-1", refusal);
    let waited = fake.terminate_and_wait(&id("i-1"), &wait_policy()).await;
    assert_eq!(waited.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(fake.polls().is_empty());
    let fake = Fake::new(secs(0)).with_timeline("i-1", [(0, Terminating.into())]);
    let waited = fake.terminate_and_wait(&id("i-1"), &wait_policy()).await;
    let error = waited.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect(), error.operation()),
        (
            ErrorKind::Timeout,
            Effect::Done,
            Operation::TerminateInstance
        )
    );
}

/// Creates a cloud with three instances that terminate one second apart.
fn three() -> Fake {
    let mut fake = Fake::new(secs(0))
        .with_timeline("i-1", [(0, Running.into()), (1, Terminated.into())])
        .with_timeline("i-2", [(0, Stopped.into()), (2, Terminated.into())])
        .with_timeline("i-3", [(0, Running.into()), (3, Terminated.into())]);
    let infos = ["i-3", "i-1", "i-2"].map(|name| InstanceInfo::new(id(name), Running));
    fake.listed = Ok(infos.into());
    fake
}

/// Returns the instances for which `fake` got a terminate call.
fn terminated(fake: &Fake) -> Vec<String> {
    let calls = fake.calls(Operation::TerminateInstance);
    calls.into_iter().flat_map(|call| call.targets).collect()
}

#[tokio::test(start_paused = true)]
async fn matching_instances_are_terminated_and_waited_for() {
    let fake = three();
    let filter = InstanceFilter::tagged("fleet", "blue").unwrap();
    let result = fake.terminate_matching(&filter, &wait_policy()).await;
    assert_eq!(result.unwrap(), ids(&["i-3", "i-1", "i-2"]));
    assert_eq!(terminated(&fake), ["i-3", "i-1", "i-2"]);
    assert_eq!(fake.elapsed(), secs(3));
}

/// Returns a filter with a tag.
fn blue() -> InstanceFilter {
    InstanceFilter::tagged("fleet-id", "blue").unwrap()
}

#[tokio::test(start_paused = true)]
async fn filter_without_tags_is_refused_without_a_call() {
    let fake = three();
    let result = fake
        .terminate_matching(&InstanceFilter::new(), &wait_policy())
        .await;
    let error = result.unwrap_err();
    assert_eq!(error.invalid_value().unwrap().field(), "filter.tags");
    assert!(terminated(&fake).is_empty() && fake.calls(Operation::ListInstances).is_empty());
}

#[tokio::test(start_paused = true)]
async fn refusals_have_no_effect_and_unknown_stays_unknown() {
    let refusal = call(Operation::TerminateInstance).forbidden("protected");
    let lost = call(Operation::TerminateInstance).timeout(Effect::Unknown);
    let all = |last| {
        let fake = three()
            .with_refusal("i-3", refusal.clone())
            .with_refusal("i-1", refusal.clone());
        fake.with_refusal("i-2", last)
    };
    for (last, effect) in [(refusal.clone(), Effect::None), (lost, Effect::Unknown)] {
        let result = all(last).terminate_matching(&blue(), &wait_policy()).await;
        let error = result.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Forbidden, effect)
        );
        assert_eq!(error.survivors().len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn empty_selection_terminates_nothing() {
    let fake = Fake::new(secs(0));
    let filter = blue();
    let result = fake.terminate_matching(&filter, &wait_policy()).await;
    assert_eq!(result.unwrap(), []);
    assert!(terminated(&fake).is_empty() && fake.polls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn failed_list_terminates_nothing() {
    let mut fake = three();
    fake.listed = Err(call(Operation::ListInstances).incomplete([]));
    let filter = blue();
    let result = fake.terminate_matching(&filter, &wait_policy()).await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Incomplete);
    assert!(terminated(&fake).is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_failed_terminate_does_not_affect_the_others() {
    let refusal = call(Operation::TerminateInstance).forbidden("protected");
    let fake = three().with_refusal("i-3", refusal.clone());
    let filter = blue();
    let result = fake.terminate_matching(&filter, &wait_policy()).await;
    let error = result.unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (refusal.kind(), refusal.message())
    );
    let kept: Vec<_> = error
        .survivors()
        .iter()
        .map(|info| info.id.as_str())
        .collect();
    assert_eq!(
        (kept, error.effect()),
        (vec!["i-3"], Effect::Done),
        "the others are terminating"
    );
    assert_eq!(terminated(&fake), ["i-3", "i-1", "i-2"]);
}

#[tokio::test(start_paused = true)]
async fn instance_terminated_by_another_actor_counts_as_terminated() {
    let missing = call(Operation::TerminateInstance).not_found(&id("i-3"));
    let fake = three().with_refusal("i-3", missing);
    let filter = blue();
    let result = fake.terminate_matching(&filter, &wait_policy()).await;
    assert_eq!(result.unwrap(), ids(&["i-3", "i-1", "i-2"]));
}

#[tokio::test(start_paused = true)]
async fn slow_termination_is_a_timeout() {
    let fake = three().with_timeline("i-2", [(0, Terminating.into())]);
    let filter = blue();
    let result = fake.terminate_matching(&filter, &wait_policy()).await;
    let error = result.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect(), error.operation()),
        (
            ErrorKind::Timeout,
            Effect::Done,
            Operation::TerminateInstances
        )
    );
}
