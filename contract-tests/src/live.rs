//! The runner for real clouds: the same clauses, with a filter, a list, a cost guard and a cleanup.
//!
//! Owns the command line of a live run. It runs one clause at a time and never more than the cost
//! limits allow. A backend's `tests/live.rs` is a test with `harness = false` in its manifest, whose
//! `main` is one call of [`main`]:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use fleetwright::{InstanceConfig, InstanceId, InstanceProvisioner, async_trait};
//! # use fleetwright_contract_tests::Harness;
//! # struct MyHarness(fleetwright_memory::MemoryCloud);
//! # #[async_trait]
//! # impl Harness for MyHarness {
//! #     fn name(&self) -> String { "my cloud".to_owned() }
//! #     async fn open(&self) -> Arc<dyn InstanceProvisioner> { Arc::new(self.0.provisioner()) }
//! #     fn config(&self) -> InstanceConfig { InstanceConfig::builder("image-1", "small").build().unwrap() }
//! #     fn unknown_id(&self) -> InstanceId { InstanceId::new("i-unknown").unwrap() }
//! # }
//! use std::process::ExitCode;
//! use fleetwright_contract_tests::live;
//!
//! fn harness() -> Result<MyHarness, String> {
//!     let account = std::env::var("MY_BACKEND_ACCOUNT");
//!     let account = account.map_err(|_| "set MY_BACKEND_ACCOUNT to run it".to_owned())?;
//!     # let _ = account;
//!     Ok(MyHarness(fleetwright_memory::MemoryCloud::new()))
//! }
//!
//! fn main() -> ExitCode {
//!     live::main(harness)
//! }
//! ```
//!
//! Its arguments are those of every Rust test program, and those of the table below. Examples:
//!
//! ```text
//! cargo test -p my-backend --test live -- --list
//! cargo test -p my-backend --test live -- LAUNCH --max-live 4 --max-minutes 20
//! cargo test -p my-backend --test live -- --cleanup            # lists what interrupted runs left
//! cargo test -p my-backend --test live -- --cleanup --apply    # terminates it
//! ```
//!
//! | argument | default | meaning |
//! | --- | --- | --- |
//! | `--max-live <count>` | 8 | the most instances that exist at once; about 35 clauses need more than 8, up to 32 in real time |
//! | `--max-minutes <minutes>` | 60 | how long after the start of the run instances may be launched |
//! | `--cleanup` | | instead of running clauses, list what interrupted runs left |
//! | `--apply` | | with `--cleanup`: terminate it |
//! | `--min-age-minutes <minutes>` | 120 | with `--cleanup`: leave younger instances alone |

#[cfg(test)]
mod guard_tests;

use std::{process::ExitCode, sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright::{InstanceConfig, InstanceId, InstanceProvisioner};
use fleetwright_clause_engine::block_on;
use libtest_mimic::{Arguments, Failed, Trial};

use crate::{
    CLAUSES, CONTRACT, Clause, ExternalActor, Factory, Failure, Faults, Harness, OnMissing, Oracle,
    Status, Time, Verdict,
    cleanup::{CleanupMode, cleanup},
    cost_guard::{CostGuard, CostLimits, GuardedProvisioner},
    suite::{executor, passes, run_judge_and_report},
};

/// The arguments of a live run; see the module's table.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_contract_tests::{cost_guard::CostLimits, live::Options};
///
/// let limits = CostLimits { max_live: 8, max_time: Duration::from_secs(3600) };
/// let parse = |arguments: &str| Options::parse(arguments.split(' ').map(str::to_owned), limits);
/// assert!(parse("live LAUNCH --max-live 4").is_ok());
/// assert_eq!(parse("live --max-live four").unwrap_err(), "--max-live takes a whole number");
/// assert_eq!(parse("live --apply").unwrap_err(), "--apply needs --cleanup");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    limits: CostLimits,
    cleanup: Option<CleanupMode>,
    min_age: Duration,
    /// The arguments for the test runner itself.
    runner_arguments: Vec<String>,
}

impl Options {
    /// Parses the arguments; the first one is the program's name. `limits` are the defaults.
    ///
    /// # Errors
    /// One line that says which argument is wrong.
    pub fn parse(
        arguments: impl IntoIterator<Item = String>,
        limits: CostLimits,
    ) -> Result<Self, String> {
        let minutes = |count: u64| Duration::from_secs(count.saturating_mul(60));
        let mut options = Self {
            limits,
            cleanup: None,
            min_age: minutes(120),
            runner_arguments: Vec::new(),
        };
        let mut apply = false;
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut number = || {
                let value = arguments.next().and_then(|text| text.parse::<u64>().ok());
                value.ok_or_else(|| format!("{argument} takes a whole number"))
            };
            match argument.as_str() {
                "--max-live" => {
                    options.limits.max_live = usize::try_from(number()?).unwrap_or(usize::MAX);
                }
                "--max-minutes" => options.limits.max_time = minutes(number()?),
                "--min-age-minutes" => options.min_age = minutes(number()?),
                "--cleanup" => options.cleanup = options.cleanup.or(Some(CleanupMode::DryRun)),
                "--apply" => apply = true,
                _ => options.runner_arguments.push(argument),
            }
        }
        match (apply, options.cleanup) {
            (false, _) => Ok(options),
            (true, Some(_)) => Ok(Self {
                cleanup: Some(CleanupMode::Apply),
                ..options
            }),
            (true, None) => Err("--apply needs --cleanup".to_owned()),
        }
    }
}

/// Runs the contract against a real cloud, as the process's arguments say.
///
/// `make` returns the harness, or the reason why there is no account to run against. Without an account,
/// every clause is shown as ignored. The default limits are 8 instances at once and one hour.
///
/// ```no_run
/// # use std::process::ExitCode;
/// # use fleetwright_contract_zoo::MemoryHarness;
/// fn main() -> ExitCode {
///     fleetwright_contract_tests::live::main(|| Ok(MemoryHarness::new()))
/// }
/// ```
pub fn main<H: Harness + 'static>(make: fn() -> Result<H, String>) -> ExitCode {
    let hour = Duration::from_secs(3600);
    main_with_limits(
        make,
        CostLimits {
            max_live: 8,
            max_time: hour,
        },
    )
}

/// Like [`main`], with other default limits.
///
/// ```no_run
/// # use std::{process::ExitCode, time::Duration};
/// # use fleetwright_contract_tests::{cost_guard::CostLimits, live};
/// # use fleetwright_contract_zoo::MemoryHarness;
/// fn main() -> ExitCode {
///     let limits = CostLimits { max_live: 2, max_time: Duration::from_secs(900) };
///     live::main_with_limits(|| Ok(MemoryHarness::new()), limits)
/// }
/// ```
pub fn main_with_limits<H: Harness + 'static>(
    make: fn() -> Result<H, String>,
    limits: CostLimits,
) -> ExitCode {
    let options = match Options::parse(std::env::args(), limits) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    match options.cleanup {
        Some(mode) => run_cleanup(make, mode, options.min_age),
        None => run_clauses(make, &options),
    }
}

/// Runs the clauses that the arguments select, one test each. Without an account all are ignored.
fn run_clauses<H: Harness + 'static>(
    make: fn() -> Result<H, String>,
    options: &Options,
) -> ExitCode {
    let mut arguments = Arguments::from_iter(options.runner_arguments.iter().cloned());
    // One clause at a time: the guard counts instances, and all clauses share the cloud's limits.
    arguments.test_threads = Some(1);
    let missing = make().err();
    if let Some(reason) = &missing {
        eprintln!("no account to run against: {reason}");
    }
    let guard = Arc::new(CostGuard::new(options.limits));
    let trial = |clause: &'static Clause| {
        let guard = Arc::clone(&guard);
        let name = format!("{}::{}", clause.id, clause.name);
        Trial::test(name, move || run_trial(clause, make, &guard))
            .with_ignored_flag(missing.is_some())
    };
    libtest_mimic::run(&arguments, CLAUSES.iter().map(trial).collect()).exit_code()
}

/// Runs one clause under the guard. After a refusal of the guard the clause is reported as not run, whatever it observed, and
/// its test fails: it may have tested less without the refused instances, and what it observed is the guard's doing.
///
/// A waived clause passes and is printed, as in a test, and the report says that the backend is not conformant. That happens
/// only on a peer: without one, which is the case on a real cloud, a waived clause fails.
fn run_trial<H: Harness + 'static>(
    clause: &'static Clause,
    make: fn() -> Result<H, String>,
    guard: &Arc<CostGuard>,
) -> Result<(), Failed> {
    let factory = guarded_factory(make, guard)?;
    let mut refusal = None;
    let verdict = run_judge_and_report(clause, &factory, |verdict| {
        refusal = guard.take_refusal();
        judged(verdict, refusal.as_deref())
    });
    guard.finish_clause();
    conclude(&verdict, refusal.is_some(), factory().on_missing())
}

/// Returns what creates the accounts of one clause. Their handles share the guard.
fn guarded_factory<H: Harness + 'static>(
    make: fn() -> Result<H, String>,
    guard: &Arc<CostGuard>,
) -> Result<Factory, String> {
    let first: Arc<dyn Harness> = Arc::new(make()?);
    let guard = Arc::clone(guard);
    Ok(Arc::new(move || {
        // A clause that creates its accounts itself has removed what it left on the one before.
        guard.finish_clause();
        // If the account is not available now, the harness from the start of the trial is used again.
        let fresh = make().map(|harness| Arc::new(harness) as Arc<dyn Harness>);
        let inner = fresh.unwrap_or_else(|_| Arc::clone(&first));
        Arc::new(GuardedHarness {
            inner,
            guard: Arc::clone(&guard),
        })
    }))
}

/// Returns the verdict about a clause, given the refusal of the guard if there was one.
fn judged(verdict: Verdict, refusal: Option<&str>) -> Verdict {
    match refusal {
        Some(refusal) => verdict.with_status(Status::NotRun, refusal),
        None => verdict,
    }
}

/// Returns the result of a clause's test. One that the guard refused fails, even where a clause that is not run passes.
fn conclude(verdict: &Verdict, refused: bool, on_missing: OnMissing) -> Result<(), Failed> {
    if refused || !passes(verdict.status, on_missing) {
        return Err(CONTRACT.message(verdict).into());
    }
    if !verdict.status.is_conformant() {
        println!("{}", CONTRACT.message(verdict));
    }
    Ok(())
}

/// Lists or terminates the instances that interrupted runs left, and prints each one.
fn run_cleanup<H: Harness + 'static>(
    make: fn() -> Result<H, String>,
    mode: CleanupMode,
    min_age: Duration,
) -> ExitCode {
    let result = make().map_err(Failure::KitError).and_then(|harness| {
        block_on(executor(Time::Real), async {
            let now = std::time::SystemTime::now().into();
            let handle = harness.open().await;
            let result = cleanup(&*handle, mode, min_age, now).await;
            result.map_err(|error| Failure::KitError(error.to_string()))
        })
    });
    match result {
        Ok(result) => {
            let word = if mode == CleanupMode::Apply {
                "terminated"
            } else {
                "would terminate"
            };
            for info in &result.leftovers {
                println!("{word} {} ({})", info.id, info.state);
            }
            println!(
                "{word} {} in total; left {} alone that are too young or of unknown age",
                result.leftovers.len(),
                result.kept.len()
            );
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("the cleanup failed: {}", failure.text());
            ExitCode::FAILURE
        }
    }
}

/// A harness whose handles the guard counts.
struct GuardedHarness {
    inner: Arc<dyn Harness>,
    guard: Arc<CostGuard>,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Harness for GuardedHarness {
    fn name(&self) -> String {
        self.inner.name()
    }
    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        Arc::new(GuardedProvisioner::new(
            self.inner.open().await,
            Arc::clone(&self.guard),
        ))
    }
    async fn open_with_other_options(&self) -> Arc<dyn InstanceProvisioner> {
        Arc::new(GuardedProvisioner::new(
            self.inner.open_with_other_options().await,
            Arc::clone(&self.guard),
        ))
    }
    fn config(&self) -> InstanceConfig {
        self.inner.config()
    }
    fn unknown_id(&self) -> InstanceId {
        self.inner.unknown_id()
    }
    fn time(&self) -> Time {
        self.inner.time()
    }
    fn budget(&self) -> Duration {
        self.inner.budget()
    }
    fn sweep_accounts(&self) -> std::num::NonZeroUsize {
        self.inner.sweep_accounts()
    }
    fn not_applicable(&self) -> Vec<crate::NotApplicable> {
        self.inner.not_applicable()
    }
    fn policy_tag_keys(&self) -> Vec<String> {
        self.inner.policy_tag_keys()
    }
    fn unknown_image(&self) -> Option<fleetwright::ImageId> {
        self.inner.unknown_image()
    }
    fn unknown_type(&self) -> Option<fleetwright::InstanceType> {
        self.inner.unknown_type()
    }
    fn other_image(&self) -> Option<fleetwright::ImageId> {
        self.inner.other_image()
    }
    fn other_type(&self) -> Option<fleetwright::InstanceType> {
        self.inner.other_type()
    }
    fn zone(&self) -> Option<fleetwright::Zone> {
        self.inner.zone()
    }
    fn placement(&self) -> fleetwright::Placement {
        self.inner.placement()
    }
    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        self.inner.oracle()
    }
    fn faults(&self) -> Option<Arc<dyn Faults>> {
        self.inner.faults()
    }
    fn external_actor(&self) -> Option<Arc<dyn ExternalActor>> {
        self.inner.external_actor()
    }
    fn on_missing(&self) -> OnMissing {
        self.inner.on_missing()
    }
    fn state_waiter(&self) -> Arc<dyn crate::StateWaiter> {
        self.inner.state_waiter()
    }
    fn secrets(&self) -> Vec<String> {
        self.inner.secrets()
    }
    fn peer(&self) -> Option<crate::waiver::Peer> {
        self.inner.peer()
    }
    fn waivers(&self) -> String {
        self.inner.waivers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: CostLimits = CostLimits {
        max_live: 1,
        max_time: Duration::ZERO,
    };

    fn parsed(arguments: &[&str]) -> Result<Options, String> {
        Options::parse(arguments.iter().map(|text| (*text).to_owned()), DEFAULTS)
    }

    #[test]
    fn own_arguments_are_parsed_and_others_passed_on() {
        let options = parsed(&[
            "live",
            "LAUNCH",
            "--max-live",
            "4",
            "--max-minutes",
            "20",
            "--list",
        ]);
        let options = options.unwrap();
        assert_eq!(options.runner_arguments, ["live", "LAUNCH", "--list"]);
        let limits = CostLimits {
            max_live: 4,
            max_time: Duration::from_secs(1200),
        };
        assert_eq!((options.limits, options.cleanup), (limits, None));
        assert_eq!(parsed(&["live"]).unwrap().limits, DEFAULTS);
    }

    #[test]
    fn cleanup_is_a_dry_run_without_apply() {
        assert_eq!(
            parsed(&["live", "--cleanup"]).unwrap().cleanup,
            Some(CleanupMode::DryRun)
        );
        assert_eq!(
            parsed(&["live", "--cleanup", "--apply"]).unwrap().cleanup,
            Some(CleanupMode::Apply)
        );
        assert_eq!(
            parsed(&["live", "--apply", "--cleanup"]).unwrap().cleanup,
            Some(CleanupMode::Apply)
        );
        assert_eq!(
            parsed(&["live"]).unwrap().min_age,
            Duration::from_secs(7200)
        );
        let alone = parsed(&["live", "--apply"]).unwrap_err();
        assert_eq!(alone, "--apply needs --cleanup");
        let young = parsed(&["live", "--min-age-minutes", "1"]).unwrap();
        assert_eq!(young.min_age, Duration::from_secs(60));
    }

    #[test]
    fn bad_number_is_refused() {
        for arguments in [&["live", "--max-live"][..], &["live", "--max-live", "many"]] {
            assert_eq!(
                parsed(arguments).unwrap_err(),
                "--max-live takes a whole number"
            );
        }
    }
}
