//! The provided batch methods: results in request order, with a limited number of concurrent calls.

use fleetwright::{
    CloudInstanceState::{Pending, Running, Stopped},
    InstanceFilter, InstanceId, InstanceProvisioner as _, ListItem, Operation, ProvisionError,
    Result,
};
use futures_util::StreamExt as _;

use super::Plain;
use crate::fake::{call, id};

/// Returns twenty ids of which every third takes longer than the ones after it.
fn twenty() -> Vec<InstanceId> {
    let name = |n: usize| format!("{n:02}{}", if n % 3 == 0 { "-slow" } else { "" });
    (0..20).map(|n| id(&name(n))).collect()
}

fn refusal() -> ProvisionError {
    call(Operation::StopInstance).forbidden("no")
}

/// Creates a backend that refuses the first, one in the middle, and the last of the twenty.
fn plain() -> Plain {
    let mut plain = Plain::new();
    for at in [0, 7, 19] {
        plain.refused.insert(twenty()[at].clone(), refusal());
    }
    plain
}

/// Checks that exactly those three failed, with at most eight concurrent calls.
fn checked<T>(plain: &Plain, results: Vec<Result<T>>) -> Vec<(usize, T)> {
    assert_eq!(plain.max_in_flight(), 8);
    assert_eq!(results.len(), 20);
    let mut done = Vec::new();
    for (at, result) in results.into_iter().enumerate() {
        match result {
            Ok(value) => done.push((at, value)),
            Err(error) => {
                assert!([0, 7, 19].contains(&at), "{at}");
                assert_eq!(error.to_string(), refusal().to_string());
            }
        }
    }
    assert_eq!(done.len(), 17);
    done
}

#[tokio::test(start_paused = true)]
async fn each_id_has_its_result_in_order() {
    let (plain, ids) = (plain(), twenty());
    checked(&plain, plain.terminate_instances(&ids).await);
    checked(&plain, plain.stop_instances(&ids).await);
    for (at, info) in checked(&plain, plain.start_instances(&ids).await) {
        assert_eq!((info.id, info.state), (ids[at].clone(), Pending));
    }
    for (at, status) in checked(&plain, plain.describe_instances(&ids).await) {
        assert_eq!((status.id, status.state), (ids[at].clone(), Stopped));
    }
}

#[tokio::test(start_paused = true)]
async fn empty_and_repeated_ids_are_handled() {
    let plain = Plain::new();
    assert!(plain.terminate_instances(&[]).await.is_empty());
    assert!(plain.stop_instances(&[]).await.is_empty());
    assert!(plain.start_instances(&[]).await.is_empty());
    assert!(plain.describe_instances(&[]).await.is_empty());
    assert_eq!(plain.max_in_flight(), 0);
    let twice = [id("i-1"), id("i-1")];
    assert_eq!(plain.stop_instances(&twice).await.len(), 2);
}

#[tokio::test]
async fn default_stream_returns_the_whole_list() {
    let plain = Plain::new();
    let filter = InstanceFilter::new();
    let observed: Vec<_> = plain.stream_instances(&filter).collect().await;
    let names = observed.into_iter().map(|item| match item.unwrap() {
        ListItem::Instance(info) => info.id.to_string(),
        ListItem::Gap { scope, .. } => panic!("a gap: {scope}"),
    });
    assert_eq!(names.collect::<Vec<_>>(), ["i-2", "i-1", "i-3"]);
    let none = InstanceFilter::new().in_state(Stopped);
    assert_eq!(plain.stream_instances(&none).count().await, 0);
    let all = InstanceFilter::new().in_state(Running);
    assert_eq!(plain.stream_instances(&all).count().await, 3);
}

#[tokio::test]
async fn failed_list_is_streamed_as_one_error() {
    let mut plain = Plain::new();
    plain.refused.insert(id("i-1"), refusal());
    let filter = InstanceFilter::new();
    let observed: Vec<_> = plain.stream_instances(&filter).collect().await;
    let errors: Vec<_> = observed.into_iter().map(|item| item.unwrap_err()).collect();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].to_string(), refusal().to_string());
}
