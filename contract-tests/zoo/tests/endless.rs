//! Backends that never come to an end: a clause detects them, and the kit always ends.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use async_trait::async_trait;
use fleetwright::{
    BoxStream, CloudInstanceState, InstanceFilter, InstanceId, InstanceInfo, InstanceStatus,
    ListItem, Operation, Result,
};
use fleetwright_contract_tests::{Status, clause, run_clause};
use fleetwright_contract_zoo::{CallContext, Factory, Override, OverrideHarness};
use futures_util::{StreamExt as _, stream};

/// After an error, the stream returns the same error again and again.
#[derive(Default)]
struct RepeatsItsError;

impl Override for RepeatsItsError {
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let items = at.inner.stream_instances(filter);
        let items = items.flat_map(|item| match item {
            Ok(item) => stream::iter([Ok(item)]).boxed(),
            Err(error) => stream::repeat_with(move || Err(error.clone())).boxed(),
        });
        items.boxed()
    }
}

/// The stream begins again after its last page.
#[derive(Default)]
struct BeginsAgain;

impl Override for BeginsAgain {
    fn stream_instances<'a>(
        &'a self,
        _: CallContext<'a>,
        _: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let again = || {
            let id = InstanceId::new("i-1").unwrap();
            let info = InstanceInfo::new(id, CloudInstanceState::Running);
            Ok(ListItem::from(info))
        };
        stream::repeat_with(again).boxed()
    }
}

/// A description of a terminating instance polls for ever, without a pause.
#[derive(Default)]
struct NeverWaits;

#[async_trait]
impl Override for NeverWaits {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        while at.state(id) == Some(CloudInstanceState::Terminating) {
            tokio::task::yield_now().await;
        }
        at.inner.describe_instance(id).await
    }
}

/// A stop that is never possible always advises an immediate retry.
#[derive(Default)]
struct AdvisesAnImmediateRetry;

#[async_trait]
impl Override for AdvisesAnImmediateRetry {
    async fn stop_instance(&self, at: CallContext<'_>, _: &InstanceId) -> Result<()> {
        let advice = fleetwright::RetryAdvice::SameToken;
        Err(at.call(Operation::StopInstance).conflict("busy", advice))
    }
}

/// Runs a clause and requires that it fails because of `expected`.
fn assert_violates(factory: &Factory, id: &str, expected: &str) {
    let verdict = run_clause(clause(id).unwrap(), factory);
    assert_eq!(verdict.status, Status::Fail, "{id}: {:?}", verdict.reason);
    let reason = verdict.reason.unwrap();
    assert!(reason.contains(expected), "{id}: {reason}");
}

#[test]
fn stream_that_repeats_its_error_ends() {
    let factory = OverrideHarness::factory::<RepeatsItsError>();
    assert_violates(&factory, "ERRORS-11", "does not end: so far it returned");
}

#[test]
fn stream_that_begins_again_ends() {
    let factory = OverrideHarness::factory::<BeginsAgain>();
    for id in ["LIST-13", "LIST-14"] {
        assert_violates(&factory, id, "does not end: so far it returned");
    }
}

#[test]
fn call_that_polls_for_ever_ends() {
    let factory = OverrideHarness::factory::<NeverWaits>();
    for id in ["TERMINATE-01", "LAUNCH-01"] {
        assert_violates(&factory, id, "never returns, and never waits either");
    }
}

#[test]
fn retries_without_a_delay_end() {
    let factory = OverrideHarness::factory::<AdvisesAnImmediateRetry>();
    assert_violates(&factory, "CRASH-03", "a stop, despite all retries failed");
}
