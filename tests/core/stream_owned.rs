//! The owned stream, which keeps its provisioner alive.

use std::sync::{Arc, atomic::Ordering};

use fleetwright::{
    CloudInstanceState::Running, InstanceFilter, InstanceInfo, InstanceProvisioner,
    InstanceProvisionerExt as _, ListItem, Operation, Result, Scope,
};
use futures_util::StreamExt as _;

use crate::fake::{Fake, call, id, secs};

fn instance(n: usize) -> Result<ListItem> {
    let name = format!("i-{n:03}");
    Ok(InstanceInfo::new(id(&name), Running).into())
}

fn gap() -> Result<ListItem> {
    let error = call(Operation::StreamInstances).forbidden("not that zone");
    Ok(ListItem::Gap {
        scope: Scope::Region,
        error,
    })
}

/// Creates a cloud whose stream has these items.
fn streaming(items: impl IntoIterator<Item = Result<ListItem>>) -> Arc<Fake> {
    let mut fake = Fake::new(secs(0));
    fake.streamed = items.into_iter().collect();
    Arc::new(fake)
}

/// Formats an item as one word.
fn word(item: &Result<ListItem>) -> String {
    match item {
        Ok(ListItem::Instance(info)) => info.id.to_string(),
        Ok(ListItem::Gap { scope, error }) => format!("{scope}: {}", error.message()),
        Err(error) => error.message().to_owned(),
    }
}

#[tokio::test]
async fn stream_can_be_moved_to_a_task_and_keeps_the_order() {
    let fake = streaming((0..100).map(instance));
    let stream = fake.stream_owned(InstanceFilter::new());
    let task = tokio::spawn(stream.collect::<Vec<_>>());
    let observed: Vec<_> = task.await.unwrap().iter().map(word).collect();
    let expected: Vec<_> = (0..100).map(|n| format!("i-{n:03}")).collect();
    assert_eq!(observed, expected);
}

#[tokio::test]
async fn gaps_and_errors_pass_through() {
    let failed = Err(call(Operation::StreamInstances).forbidden("no more"));
    let fake = streaming([instance(1), gap(), instance(2), gap(), failed]);
    let fake: Arc<dyn InstanceProvisioner> = fake;
    let stream = fake.stream_owned(InstanceFilter::new());
    let observed: Vec<_> = stream.map(|item| word(&item)).collect().await;
    let gap = "region: not that zone";
    assert_eq!(observed, ["i-001", gap, "i-002", gap, "no more"]);
}

#[tokio::test]
async fn empty_stream_ends() {
    let mut stream = streaming([]).stream_owned(InstanceFilter::new());
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn stream_reads_at_most_two_items_ahead() {
    let fake = streaming((0..50).map(instance));
    let mut stream = Arc::clone(&fake).stream_owned(InstanceFilter::new());
    assert_eq!(fake.read.load(Ordering::Relaxed), 0, "no item was read");
    for taken in 1..=50 {
        assert!(stream.next().await.is_some());
        let read = fake.read.load(Ordering::Relaxed);
        assert!((taken..=taken + 2).contains(&read), "{read} for {taken}");
    }
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn dropping_the_stream_drops_the_provisioner() {
    let fake = streaming((0..50).map(instance));
    let kept = Arc::downgrade(&fake);
    let mut stream = fake.stream_owned(InstanceFilter::new());
    stream.next().await.unwrap().unwrap();
    assert_eq!(kept.strong_count(), 1);
    drop(stream);
    assert_eq!(kept.strong_count(), 0);
}
