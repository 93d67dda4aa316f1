//! Generated tests that are the same in every run, until somebody asks for others.

use std::{
    cell::{Cell, RefCell},
    sync::OnceLock,
};

use proptest::{
    strategy::Strategy,
    test_runner::{
        Config, FailurePersistence, FileFailurePersistence, RngAlgorithm, TestCaseError, TestError,
        TestRng, TestRunner,
    },
};

use crate::{Arm, Outcome, Stop};

/// The environment variable that chooses other cases.
const VARIABLE: &str = "FLEETWRIGHT_CONTRACT_SEED";

/// The seed where none is given.
const DEFAULT: u64 = 20_260_101;

/// How often a failing case is made smaller before it is shown.
const MOST_SHRINKS: u32 = 400;

/// Where the cases that once broke a promise are kept, to be tried first from then on.
static REGRESSIONS: OnceLock<&'static str> = OnceLock::new();

/// Keeps broken cases in `folder`: beside the backend's own tests, where its author commits them.
pub(crate) fn keep_regressions_in(folder: &'static str) {
    // The first word counts; a test binary has one folder.
    let _ = REGRESSIONS.set(folder);
}

/// The file of a clause's broken cases, as proptest reads and writes it.
fn regressions(clause: &str) -> Option<Box<dyn FailurePersistence>> {
    let path = format!("{}/contract-{clause}.txt", REGRESSIONS.get()?);
    // Once for each of two clauses in the life of a test binary.
    Some(Box::new(FileFailurePersistence::Direct(path.leak())))
}

/// Tests `cases` generated values, and shows the smallest that breaks the promise of `clause`.
pub(crate) fn for_all<S: Strategy>(
    clause: &str,
    cases: u32,
    strategy: &S,
    test: impl Fn(S::Value) -> Result<(), Stop>,
) -> Outcome {
    let seed = seed()?;
    let config = Config {
        cases,
        max_shrink_iters: MOST_SHRINKS,
        failure_persistence: regressions(clause),
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let (violated, aside) = (Cell::new(false), RefCell::new(None));
    let ran = TestRunner::new_with_rng(config, rng).run(strategy, |value| match test(value) {
        // Nothing that is no violation may end up among the regressions.
        _ if aside.borrow().is_some() => Ok(()),
        Err(Stop::Violated(seen)) => {
            violated.set(true);
            Err(TestCaseError::fail(seen))
        }
        Err(other) if !violated.get() => {
            aside.replace(Some(other));
            Ok(())
        }
        // While a violation is made smaller, what is no violation is not smaller either.
        Ok(()) | Err(_) => Ok(()),
    });
    if let Some(stop) = aside.take() {
        return Err(stop);
    }
    match ran {
        Ok(()) => Ok(Arm::Held),
        Err(TestError::Fail(seen, _)) => Err(Stop::Violated(format!(
            "{seen}\n  (seed {seed}; {VARIABLE} chooses others)"
        ))),
        Err(TestError::Abort(why)) => Err(Stop::Kit(format!("no cases: {why}"))),
    }
}

fn seed() -> Result<u64, Stop> {
    match std::env::var(VARIABLE) {
        Err(_) => Ok(DEFAULT),
        Ok(text) => {
            seed_from_env().ok_or_else(|| Stop::Kit(format!("{VARIABLE}={text} is no number")))
        }
    }
}

/// Returns the seed in `FLEETWRIGHT_CONTRACT_SEED`, or `None` if it is unset or no number.
///
/// Use it for everything else in a harness that depends on a seed, so that one variable repeats a run.
pub fn seed_from_env() -> Option<u64> {
    std::env::var(VARIABLE).ok()?.parse().ok()
}
