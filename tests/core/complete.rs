//! A list that stands on a stream: complete, or an error that names every gap.

use std::error::Error as _;

use fleetwright::{
    CloudInstanceState::Running, Effect, ErrorKind, InstanceInfo, ListItem, Operation,
    ProvisionError, Result, RetryAdvice, Scope, Zone, collect_complete,
};
use futures_util::{StreamExt as _, stream};

use crate::fake::{call, id};

fn instance(name: &str) -> Result<ListItem> {
    Ok(InstanceInfo::new(id(name), Running).into())
}

fn zone(name: &str) -> Scope {
    Scope::zone(Zone::new(name).unwrap())
}

fn gap(name: &str) -> Result<ListItem> {
    let error = call(Operation::StreamInstances).forbidden(&format!("not {name}"));
    let scope = zone(name);
    Ok(ListItem::Gap { scope, error })
}

/// What becomes of `items` as a list, and how many of them were looked at.
async fn collected(items: Vec<Result<ListItem>>) -> (Result<Vec<InstanceInfo>>, usize) {
    let mut looked = 0;
    let stream = stream::iter(items).inspect(|_| looked += 1);
    let list = collect_complete(&call(Operation::ListInstances), stream).await;
    (list, looked)
}

#[tokio::test]
async fn without_gaps_it_is_all_there_is_in_order() {
    let (list, _) = collected(vec![instance("i-2"), instance("i-1"), instance("i-3")]).await;
    let names: Vec<_> = list.unwrap().into_iter().map(|info| info.id).collect();
    assert_eq!(names, ["i-2", "i-1", "i-3"].map(id));
    assert_eq!(collected(vec![]).await.0.unwrap(), []);
}

#[tokio::test]
async fn every_gap_is_named_and_the_first_one_is_the_source() {
    let items = vec![gap("a"), instance("i-1"), gap("b"), gap("a")];
    let (list, looked) = collected(items).await;
    let error = list.unwrap_err();
    assert_eq!(looked, 4, "all gaps are named, so all of it is read");
    assert_eq!(error.scopes(), [zone("a"), zone("b"), zone("a")]);
    assert_eq!(
        (error.kind(), error.effect(), error.retry()),
        (ErrorKind::Incomplete, Effect::None, RetryAdvice::SameToken)
    );
    assert_eq!(error.operation(), Operation::ListInstances);
    let source = error.source().unwrap();
    let source = source.downcast_ref::<ProvisionError>().unwrap();
    assert_eq!(source.message(), "not a");
    assert!(error.survivors().is_empty(), "a part is no answer");
}

#[tokio::test]
async fn an_error_ends_it_whatever_was_seen_before() {
    let failed = call(Operation::StreamInstances).unauthenticated("expired");
    let items = vec![instance("i-1"), gap("a"), Err(failed), instance("i-2")];
    let (list, looked) = collected(items).await;
    let error = list.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    assert_eq!(error.operation(), Operation::StreamInstances);
    assert_eq!(looked, 3);
}

#[test]
fn an_instance_is_seen_as_it_is() {
    let info = InstanceInfo::new(id("i-1"), Running);
    let ListItem::Instance(seen) = ListItem::from(info.clone()) else {
        panic!("an instance is no gap");
    };
    assert_eq!(*seen, info);
}
