//! The runner for real clouds: the same clauses, with a filter, a list, a cost guard and a sweep.
//!
//! A backend's `tests/live.rs` is a test with `harness = false` whose `main` is one call of [`main`].
//!
//! ```text
//! cargo test -p my-backend --test live -- --list
//! cargo test -p my-backend --test live -- LAUNCH --max-live 4 --max-minutes 20
//! cargo test -p my-backend --test live -- --sweep            # tells what runs that died left behind
//! cargo test -p my-backend --test live -- --sweep --apply    # and terminates it
//! ```

use std::{process::ExitCode, sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright::{InstanceConfig, InstanceId, InstanceProvisioner};
use libtest_mimic::{Arguments, Failed, Trial};

use crate::{
    CLAUSES, Clause, Factory, Faults, Harness, Oracle, Outsider, Status, Stop, Time,
    guard::{Allowance, Guard, Guarded},
    suite::{block_on, run_and_report},
    sweep::{Sweep, sweep},
};

/// What the command line asked for beside what every test program understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    allowance: Allowance,
    sweep: Option<Sweep>,
    min_age: Duration,
    rest: Vec<String>,
}

impl Options {
    /// Reads the arguments; the first one is the program's name.
    pub fn parse(
        arguments: impl IntoIterator<Item = String>,
        allowance: Allowance,
    ) -> Result<Self, String> {
        let minutes = |count: u64| Duration::from_secs(count.saturating_mul(60));
        let mut options = Self {
            allowance,
            sweep: None,
            min_age: minutes(120),
            rest: Vec::new(),
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
                    options.allowance.max_live = usize::try_from(number()?).unwrap_or(usize::MAX);
                }
                "--max-minutes" => options.allowance.max_time = minutes(number()?),
                "--min-age-minutes" => options.min_age = minutes(number()?),
                "--sweep" => options.sweep = options.sweep.or(Some(Sweep::DryRun)),
                "--apply" => apply = true,
                _ => options.rest.push(argument),
            }
        }
        match (apply, options.sweep) {
            (false, _) => Ok(options),
            (true, Some(_)) => Ok(Self {
                sweep: Some(Sweep::Apply),
                ..options
            }),
            (true, None) => Err("--apply goes with --sweep".to_owned()),
        }
    }
}

/// Runs the contract against a real cloud as the arguments say. `make` answers the harness, or why
/// there is none here: without an account, every clause is shown as ignored, and none as passed.
///
/// Unless the arguments allow more, 8 instances live at once, and nothing is launched after an hour.
pub fn main<H: Harness + 'static>(make: fn() -> Result<H, String>) -> ExitCode {
    let hour = Duration::from_secs(3600);
    main_allowing(
        make,
        Allowance {
            max_live: 8,
            max_time: hour,
        },
    )
}

/// The same with another allowance where the arguments give none.
pub fn main_allowing<H: Harness + 'static>(
    make: fn() -> Result<H, String>,
    allowance: Allowance,
) -> ExitCode {
    let options = match Options::parse(std::env::args(), allowance) {
        Ok(options) => options,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::from(2);
        }
    };
    match options.sweep {
        Some(how) => run_sweep(make, how, options.min_age),
        None => run_clauses(make, &options),
    }
}

fn run_clauses<H: Harness + 'static>(
    make: fn() -> Result<H, String>,
    options: &Options,
) -> ExitCode {
    let mut arguments = Arguments::from_iter(options.rest.iter().cloned());
    // One after the other: the guard counts what lives, and a cloud's limits are shared.
    arguments.test_threads = Some(1);
    let missing = make().err();
    if let Some(why) = &missing {
        eprintln!("no account to run against: {why}");
    }
    let guard = Arc::new(Guard::new(options.allowance));
    let trial = |clause: &'static Clause| {
        let guard = Arc::clone(&guard);
        let name = format!("{}::{}", clause.id, clause.name);
        Trial::test(name, move || judge(clause, make, &guard)).with_ignored_flag(missing.is_some())
    };
    libtest_mimic::run(&arguments, CLAUSES.iter().map(trial).collect()).exit_code()
}

fn judge<H: Harness + 'static>(
    clause: &'static Clause,
    make: fn() -> Result<H, String>,
    guard: &Arc<Guard>,
) -> Result<(), Failed> {
    let first: Arc<dyn Harness> = Arc::new(make()?);
    let guard_of_all = Arc::clone(guard);
    let factory: Factory = Arc::new(move || {
        // An account that could be had a moment ago can be had still.
        let fresh = make().map(|harness| Arc::new(harness) as Arc<dyn Harness>);
        let inner = fresh.unwrap_or_else(|_| Arc::clone(&first));
        Arc::new(GuardedHarness {
            inner,
            guard: Arc::clone(&guard_of_all),
        })
    });
    let verdict = run_and_report(clause, &factory);
    guard.clause_is_over();
    if let Some(refusal) = guard.take_refusal() {
        return Err(refusal.into());
    }
    let excused = factory().when_missing() == crate::Missing::StaysNotRun;
    match verdict.status {
        Status::Pass | Status::Refused | Status::Waived => Ok(()),
        Status::NotRun if excused => Ok(()),
        Status::NotRun | Status::Fail | Status::KitError => Err(verdict.message(clause).into()),
    }
}

fn run_sweep<H: Harness + 'static>(
    make: fn() -> Result<H, String>,
    how: Sweep,
    min_age: Duration,
) -> ExitCode {
    let swept = make().map_err(Stop::Kit).and_then(|harness| {
        block_on(Time::Real, async {
            let now = std::time::SystemTime::now().into();
            let handle = harness.open().await;
            let swept = sweep(&*handle, how, min_age, now).await;
            swept.map_err(|error| Stop::Kit(error.to_string()))
        })
    });
    match swept {
        Ok(swept) => {
            let word = if how == Sweep::Apply {
                "terminated"
            } else {
                "would terminate"
            };
            for info in &swept.leftovers {
                println!("{word} {} ({})", info.id, info.state);
            }
            println!(
                "{} {word}, {} spared as too young",
                swept.leftovers.len(),
                swept.spared.len()
            );
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            eprintln!("the sweep failed: {wrong:?}");
            ExitCode::FAILURE
        }
    }
}

/// A harness whose handles are under the guard.
struct GuardedHarness {
    inner: Arc<dyn Harness>,
    guard: Arc<Guard>,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Harness for GuardedHarness {
    fn name(&self) -> String {
        self.inner.name()
    }
    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        Arc::new(Guarded::new(
            self.inner.open().await,
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
    fn unknown_image(&self) -> Option<fleetwright::ImageId> {
        self.inner.unknown_image()
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
    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        self.inner.oracle()
    }
    fn faults(&self) -> Option<Arc<dyn Faults>> {
        self.inner.faults()
    }
    fn outsider(&self) -> Option<Arc<dyn Outsider>> {
        self.inner.outsider()
    }
    fn when_missing(&self) -> crate::Missing {
        self.inner.when_missing()
    }
    fn waiter(&self) -> Arc<dyn crate::Waiter> {
        self.inner.waiter()
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

    const NOTHING: Allowance = Allowance {
        max_live: 1,
        max_time: Duration::ZERO,
    };

    fn parsed(arguments: &[&str]) -> Result<Options, String> {
        Options::parse(arguments.iter().map(|text| (*text).to_owned()), NOTHING)
    }

    #[test]
    fn the_runner_s_own_arguments_are_taken_and_the_rest_handed_on() {
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
        assert_eq!(options.rest, ["live", "LAUNCH", "--list"]);
        let allowance = Allowance {
            max_live: 4,
            max_time: Duration::from_secs(1200),
        };
        assert_eq!((options.allowance, options.sweep), (allowance, None));
        assert_eq!(parsed(&["live"]).unwrap().allowance, NOTHING);
    }

    #[test]
    fn a_sweep_is_a_dry_run_unless_it_is_told_to_apply() {
        assert_eq!(
            parsed(&["live", "--sweep"]).unwrap().sweep,
            Some(Sweep::DryRun)
        );
        assert_eq!(
            parsed(&["live", "--sweep", "--apply"]).unwrap().sweep,
            Some(Sweep::Apply)
        );
        assert_eq!(
            parsed(&["live", "--apply", "--sweep"]).unwrap().sweep,
            Some(Sweep::Apply)
        );
        assert_eq!(
            parsed(&["live"]).unwrap().min_age,
            Duration::from_secs(7200)
        );
        let alone = parsed(&["live", "--apply"]).unwrap_err();
        assert_eq!(alone, "--apply goes with --sweep");
        let young = parsed(&["live", "--min-age-minutes", "1"]).unwrap();
        assert_eq!(young.min_age, Duration::from_secs(60));
    }

    #[test]
    fn a_number_that_is_none_is_told() {
        for arguments in [&["live", "--max-live"][..], &["live", "--max-live", "many"]] {
            assert_eq!(
                parsed(arguments).unwrap_err(),
                "--max-live takes a whole number"
            );
        }
    }
}
