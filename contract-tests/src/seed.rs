//! Generated test cases that depend on a seed alone.
//!
//! Owns the seed, the generator and the files of failing cases. The cases are the same in every run
//! unless `FLEETWRIGHT_CONTRACT_SEED` selects others.
//!
//! Only violations and leaks are shrunk and stored. If a case ends for another reason, such as a part that
//! the harness does not offer, no further case is run and that reason is the outcome of the clause.

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

use crate::{Failure, Outcome, Pass};

/// The environment variable that selects other cases.
const VARIABLE: &str = "FLEETWRIGHT_CONTRACT_SEED";

/// The default seed.
const DEFAULT: u64 = 20_260_101;

/// The most attempts to shrink a failing case.
const MAX_SHRINKS: u32 = 400;

/// The folder of cases that once broke a promise, which later runs try first.
static REGRESSIONS: OnceLock<&'static str> = OnceLock::new();

/// Sets the folder for failing cases: next to the backend's tests, where its author commits them.
pub(crate) fn keep_regressions_in(folder: &'static str) {
    // Only the first call counts: a test binary has one folder.
    let _ = REGRESSIONS.set(folder);
}

/// Returns the file of a clause's failing cases, which proptest reads and writes.
fn regressions(clause: &str) -> Option<Box<dyn FailurePersistence>> {
    let path = format!("{}/contract-{clause}.txt", REGRESSIONS.get()?);
    // Leaked once for each of two clauses in a test binary.
    Some(Box::new(FileFailurePersistence::Direct(path.leak())))
}

/// Tests `cases` generated values, and reports the smallest one that breaks the promise of `clause`.
pub(crate) fn for_all<S: Strategy>(
    clause: &str,
    cases: u32,
    strategy: &S,
    test: impl Fn(S::Value) -> Result<(), Failure>,
) -> Outcome {
    let seed = seed()?;
    let config = Config {
        cases,
        max_shrink_iters: MAX_SHRINKS,
        failure_persistence: regressions(clause),
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let (violated, other_failure) = (Cell::new(false), RefCell::new(None));
    let (leaks, failed_cleanups) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let result = TestRunner::new_with_rng(config, rng).run(strategy, |value| match test(value) {
        // Only violations may be kept as regressions.
        _ if other_failure.borrow().is_some() => Ok(()),
        Err(Failure::Violated(observed)) => {
            violated.set(true);
            Err(TestCaseError::fail(observed))
        }
        Err(Failure::Leaked(observed)) => {
            violated.set(true);
            leaks.borrow_mut().push(observed.clone());
            Err(TestCaseError::fail(observed))
        }
        Err(Failure::CleanupFailed(observed)) => {
            violated.set(true);
            failed_cleanups.borrow_mut().push(observed.clone());
            Err(TestCaseError::fail(observed))
        }
        Err(other) if !violated.get() => {
            other_failure.replace(Some(other));
            Ok(())
        }
        // While proptest shrinks a violation, other failures do not count as the same failure.
        Ok(()) | Err(_) => Ok(()),
    });
    if let Some(failure) = other_failure.take() {
        return Err(failure);
    }
    match result {
        Ok(()) => Ok(Pass::Held),
        Err(TestError::Fail(observed, _)) => {
            let text = format!("{observed}\n  (seed {seed}; {VARIABLE} selects others)");
            let is_one_of = |found: &RefCell<Vec<String>>| {
                let found = found.borrow();
                found.iter().any(|one| one == observed.message())
            };
            if is_one_of(&leaks) {
                Err(Failure::Leaked(text))
            } else if is_one_of(&failed_cleanups) {
                Err(Failure::CleanupFailed(text))
            } else {
                Err(Failure::Violated(text))
            }
        }
        Err(TestError::Abort(reason)) => Err(Failure::KitError(format!("no cases: {reason}"))),
    }
}

fn seed() -> Result<u64, Failure> {
    match std::env::var(VARIABLE) {
        Err(_) => Ok(DEFAULT),
        Ok(text) => seed_from_env()
            .ok_or_else(|| Failure::KitError(format!("{VARIABLE}={text} is not a number"))),
    }
}

/// Returns the seed in `FLEETWRIGHT_CONTRACT_SEED`, or `None` if it is unset or not a number.
///
/// Use it for everything else in a harness that depends on a seed, so that one variable repeats a run.
///
/// ```
/// let seed = fleetwright_contract_tests::seed_from_env().unwrap_or(1);
/// let cloud = fleetwright_memory::MemoryCloud::builder().seed(seed).build();
/// ```
pub fn seed_from_env() -> Option<u64> {
    std::env::var(VARIABLE).ok()?.parse().ok()
}
