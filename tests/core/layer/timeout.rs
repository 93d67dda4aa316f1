//! When a call is cut off, and what is then known of it.

use std::time::Duration;

use fleetwright::{
    Effect, ErrorKind, InstanceFilter, InstanceProvisioner as _, LaunchRecord, ListItem, Operation,
    RetryAdvice,
    layer::{Layered, Timeout, TimeoutPolicy},
};
use fleetwright_memory::{Fault, MemoryCloud, Phase, Rule, WireCall};
use futures_util::{StreamExt as _, stream};

use super::{
    live, make, many, millis, numbered, plain,
    script::{Answer, Script, info},
    token, with_token,
};
use crate::{
    fake::{id, secs},
    layer::slow::Slow,
};

fn over(script: Script, policy: TimeoutPolicy) -> Layered<Script, Timeout> {
    Layered::new(script, Timeout::new(policy))
}

#[tokio::test(start_paused = true)]
async fn timed_out_change_has_unknown_effect_and_read_has_none() {
    for operation in Operation::ALL {
        let timeout = over(Script::always(Answer::Hang), TimeoutPolicy::new(secs(7)));
        let error = make(&timeout, operation, &plain()).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.operation()),
            (ErrorKind::Timeout, operation)
        );
        let effect = if operation.is_read() {
            Effect::None
        } else {
            Effect::Unknown
        };
        assert_eq!(
            (error.effect(), error.retry()),
            (effect, RetryAdvice::SameToken)
        );
        assert_eq!(error.provider(), "script");
        assert_eq!(timeout.inner().age(), secs(7), "{operation}");
    }
}

#[tokio::test(start_paused = true)]
async fn results_in_time_are_unchanged() {
    for operation in Operation::ALL {
        let script = Script::new([]).taking(secs(7) - millis(1));
        let timeout = over(script, TimeoutPolicy::new(secs(7)));
        make(&timeout, operation, &plain()).await.unwrap();
        let refused = crate::fake::call(operation).forbidden("no");
        let timeout = over(Script::always(refused), TimeoutPolicy::new(secs(7)));
        let error = make(&timeout, operation, &plain()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forbidden);
    }
}

#[tokio::test(start_paused = true)]
async fn operations_can_have_their_own_timeout() {
    let policy = TimeoutPolicy::new(secs(7))
        .with(Operation::LaunchInstances, secs(30))
        .with(Operation::ListInstances, Duration::MAX);
    assert_eq!(policy.timeout(Operation::LaunchInstance), secs(7));
    for (operation, limit) in [
        (Operation::LaunchInstances, secs(30)),
        (Operation::LaunchInstance, secs(7)),
        (Operation::StreamInstances, secs(7)),
    ] {
        let timeout = over(Script::always(Answer::Hang), policy.clone());
        make(&timeout, operation, &plain()).await.unwrap_err();
        assert_eq!(timeout.inner().age(), limit);
    }
    let timeout = over(Script::new([]).taking(secs(9_999)), policy);
    make(&timeout, Operation::ListInstances, &plain())
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_batch_item_can_lower_the_rate() {
    let timeout = over(Script::always(Answer::Hang), TimeoutPolicy::new(secs(7)));
    let answers = timeout.stop_instances(&numbered(3)).await;
    assert_eq!(answers.len(), 3);
    for answer in answers {
        let error = answer.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Timeout, Effect::Unknown)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn timeout_applies_to_each_stream_item() {
    let seen = |n: usize| Ok(ListItem::from(info(&id(&format!("i-{n}")))));
    let items = stream::iter(0..).then(move |n: usize| async move {
        // The fourth one never comes.
        tokio::time::sleep(secs(if n == 3 { 9_999 } else { 6 })).await;
        seen(n)
    });
    let timeout = Layered::new(Slow::new(items), Timeout::new(TimeoutPolicy::new(secs(7))));
    let filter = InstanceFilter::new();
    let read: Vec<_> = timeout.stream_instances(&filter).collect().await;
    assert_eq!(read.len(), 4);
    assert!(read[..3].iter().all(Result::is_ok));
    let error = read[3].as_ref().unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Timeout, Effect::None)
    );
}

#[tokio::test(start_paused = true)]
async fn timed_out_launch_is_found_by_its_token() {
    for (phase, made) in [(Phase::Before, 0), (Phase::After, 1)] {
        let cloud = MemoryCloud::new();
        cloud
            .faults()
            .add(Rule::nth(WireCall::Launch, 1, Fault::Hang(phase)));
        let policy = TimeoutPolicy::new(secs(7));
        let timeout = Layered::new(cloud.provisioner(), Timeout::new(policy));
        let error = timeout
            .launch_instance(&with_token("t-1"))
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Timeout, Effect::Unknown)
        );
        assert_eq!(live(&cloud), made);
        let found = timeout.find_launch(&token("t-1")).await.unwrap();
        assert_eq!(found != LaunchRecord::NotFound, made == 1);
        // And the replay is the same launch.
        timeout
            .launch_instances(&with_token("t-1"), many(1))
            .await
            .unwrap();
        assert_eq!(live(&cloud), 1);
    }
}
