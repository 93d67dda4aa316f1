//! The provided `launch_instances`: one launch for each item.

use std::num::NonZeroU32;

use fleetwright::{
    CloudInstanceState::Pending, Effect, ErrorKind, InstanceConfig, InstanceInfo,
    InstanceProvisioner as _, LaunchToken, Operation, ProvisionError, Scope,
};

use super::Plain;
use crate::fake::{call, id};

const THREE: NonZeroU32 = NonZeroU32::new(3).unwrap();

fn config() -> InstanceConfig {
    InstanceConfig::builder("image-7", "small")
        .tag("a", "1")
        .user_data("x")
        .launch_token("batch")
        .build()
        .unwrap()
}

fn names(infos: &[InstanceInfo]) -> Vec<&str> {
    infos.iter().map(|info| info.id.as_str()).collect()
}

/// Returns the error of a batch of three that is refused with `error` from item `index` on, and the
/// number of launch calls.
async fn refused_from(index: usize, error: ProvisionError) -> (ProvisionError, usize) {
    let mut plain = Plain::new();
    plain.refused_from = Some((index, error));
    let error = plain.launch_instances(&config(), THREE).await.unwrap_err();
    let requested = plain.requested.lock().unwrap().len();
    (error, requested)
}

#[tokio::test]
async fn each_item_token_is_derived_from_the_batch_token() {
    let plain = Plain::new();
    let launched = plain.launch_instances(&config(), THREE).await.unwrap();
    assert_eq!(names(&launched), ["i-0", "i-1", "i-2"]);
    let requested = plain.requested.lock().unwrap().clone();
    let batch = LaunchToken::new("batch").unwrap();
    let tokens: Vec<_> = requested
        .iter()
        .map(|config| config.launch_token.clone())
        .collect();
    assert_eq!(tokens, [0, 1, 2].map(|index| Some(batch.item(index))));
    for mut item in requested {
        assert_eq!(
            item.batch,
            Some(THREE),
            "a batch with another count is another launch"
        );
        item.launch_token = Some(batch.clone());
        item.batch = None;
        assert_eq!(item, config(), "nothing else differs");
    }
}

#[tokio::test]
async fn batch_without_token_has_no_item_tokens() {
    let plain = Plain::new();
    let mut config = config();
    config.launch_token = None;
    plain.launch_instances(&config, THREE).await.unwrap();
    let requested = plain.requested.lock().unwrap();
    assert!(
        requested
            .iter()
            .all(|item| item.launch_token.is_none() && item.tags == config.tags)
    );
    assert_eq!(requested.len(), 3);
}

#[tokio::test]
async fn first_failure_ends_the_batch_with_survivors() {
    let quota = call(Operation::LaunchInstance).quota(Scope::Account, "1 of 1");
    let (error, requested) = refused_from(1, quota.clone()).await;
    assert_eq!(requested, 2, "the third launch is not sent");
    assert_eq!(names(error.survivors()), ["i-0"]);
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Quota, Effect::Done)
    );
    let (error, requested) = refused_from(0, quota).await;
    assert_eq!((requested, error.effect()), (1, Effect::None));
    assert!(error.survivors().is_empty());
}

#[tokio::test]
async fn unknown_item_makes_the_batch_unknown() {
    let lost = call(Operation::LaunchInstance).timeout(Effect::Unknown);
    let (error, _) = refused_from(2, lost).await;
    assert_eq!(error.effect(), Effect::Unknown);
    assert_eq!(names(error.survivors()), ["i-0", "i-1"]);
}

#[tokio::test]
async fn survivors_of_the_failed_item_are_carried() {
    let left = InstanceInfo::new(id("i-half"), Pending);
    let half = call(Operation::LaunchInstance).timeout(Effect::Done);
    let half = half.with_survivors(vec![left]);
    let (error, _) = refused_from(1, half.clone()).await;
    assert_eq!(names(error.survivors()), ["i-0", "i-half"]);
    let (error, _) = refused_from(0, half).await;
    assert_eq!(names(error.survivors()), ["i-half"]);
}
