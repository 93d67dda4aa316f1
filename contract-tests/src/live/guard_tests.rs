//! What the runner makes of the cost guard's refusals, on the memory cloud.

use fleetwright::ErrorKind;
use fleetwright_memory::MemoryCloud;

use super::*;
use crate::{clause, dropped::drop_after, run_clause};

/// An account without oracle and faults, like most real ones.
struct Account(MemoryCloud);

#[async_trait]
impl Harness for Account {
    fn name(&self) -> String {
        "an account of the runner's tests".to_owned()
    }
    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        Arc::new(self.0.provisioner())
    }
    fn config(&self) -> InstanceConfig {
        InstanceConfig::builder("image", "small").build().unwrap()
    }
    fn unknown_id(&self) -> InstanceId {
        InstanceId::new("i-0000000000000000").unwrap()
    }
    fn time(&self) -> Time {
        Time::Virtual
    }
    fn on_missing(&self) -> OnMissing {
        OnMissing::ReportNotRun
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "an account of a real cloud may be missing"
)]
fn account() -> Result<Account, String> {
    let cloud = MemoryCloud::builder().latency(Duration::from_millis(10));
    Ok(Account(cloud.build()))
}

fn guard(max_live: usize) -> Arc<CostGuard> {
    Arc::new(CostGuard::new(CostLimits {
        max_live,
        max_time: Duration::from_secs(3600),
    }))
}

/// Runs LAUNCH-01 as the runner does, but writes no report. Returns the verdict and the result of the test.
fn run_launch_01(guard: &Arc<CostGuard>) -> (Verdict, Result<(), Failed>) {
    let factory = guarded_factory(account, guard).unwrap();
    let verdict = run_clause(clause("LAUNCH-01").unwrap(), &factory);
    let refusal = guard.take_refusal();
    let verdict = judged(verdict, refusal.as_deref());
    let result = conclude(&verdict, refusal.is_some(), factory().on_missing());
    (verdict, result)
}

#[test]
fn clause_that_the_guard_refuses_is_not_run_and_its_test_fails() {
    let (verdict, result) = run_launch_01(&guard(0));
    assert_eq!(verdict.status, Status::NotRun);
    let reason = verdict.reason.unwrap();
    assert!(
        reason.starts_with("cost guard: 0 instances exist, 1 more are requested"),
        "{reason}"
    );
    let failed = result.unwrap_err();
    let message = failed.message().unwrap();
    assert!(message.starts_with("LAUNCH-01: not run"), "{message}");
}

#[test]
fn refusal_is_not_carried_over_to_the_next_clause() {
    let guard = guard(1);
    let config = account().unwrap().config();
    let refused = block_on(executor(Time::Virtual), async {
        let handle = guarded_factory(account, &guard).unwrap()().open().await;
        let first = handle.launch_instance(&config).await.unwrap();
        let refused = handle.launch_instance(&config).await.unwrap_err();
        handle.terminate_instance(&first.id).await.unwrap();
        Ok(refused)
    });
    assert_eq!(refused.unwrap().kind(), ErrorKind::Quota);
    assert!(guard.take_refusal().is_some());
    let (verdict, result) = run_launch_01(&guard);
    assert_eq!(verdict.status, Status::Pass, "{:?}", verdict.reason);
    assert!(result.is_ok());
}

#[test]
fn missing_part_is_not_run_and_its_test_passes() {
    let missing = Err(Failure::NotRun("the harness has no oracle".to_owned()));
    let verdict = Verdict::new("LEAKS-01", missing, Duration::ZERO);
    assert!(conclude(&verdict, false, OnMissing::ReportNotRun).is_ok());
    assert!(conclude(&verdict, false, OnMissing::Fail).is_err());
}

/// CRASH-06 creates an account for each of its sequences and leaves launches of unknown outcome on most.
#[test]
fn dropped_launch_counts_until_the_next_account_is_created() {
    let guard = guard(1);
    let factory = guarded_factory(account, &guard).unwrap();
    let config = account().unwrap().config();
    let launched = block_on(executor(Time::Virtual), async {
        let handle = factory().open().await;
        let dropped = drop_after(1, handle.launch_instance(&config)).await;
        assert!(dropped.is_none(), "it returned before it was dropped");
        let refused = handle.launch_instance(&config).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Quota, "the first may exist");
        let next = factory().open().await;
        next.launch_instance(&config)
            .await
            .map_err(|error| Failure::call_failed("a launch on the next account", &error))
    });
    assert!(launched.is_ok(), "{launched:?}");
}
