//! What a clause is, and what comes of running one.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use fleetwright::ProvisionError;

use crate::{Cx, Harness};

/// A promise of the contract, with the test that holds a backend to it.
pub struct Clause {
    /// Its number, never given to another promise: `LAUNCH-03`.
    pub id: &'static str,
    /// The name of its test.
    pub name: &'static str,
    /// What a backend must do; reads after "a backend must".
    pub promise: &'static str,
    /// What the harness or the backend must offer for the behaviour itself to be tested.
    pub needs: &'static str,
    /// The test.
    pub body: Body,
}

impl fmt::Debug for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.name)
    }
}

/// The test of a clause: on one account, or on as many as it likes in runtimes of its own.
#[derive(Clone, Copy)]
pub enum Body {
    /// Runs on a fresh account.
    Async(for<'a> fn(&'a Cx) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>),
    /// Makes its accounts and runtimes itself.
    Sync(fn(&Factory) -> Outcome),
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Async(_) => "Async",
            Self::Sync(_) => "Sync",
        })
    }
}

/// Makes a fresh account.
pub type Factory = Arc<dyn Fn() -> Arc<dyn Harness> + Send + Sync>;

/// What a body answers.
pub type Outcome = Result<Arm, Stop>;

/// Which promise was tested. There is no skipping: what is not declared is tested to be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// The behaviour itself.
    Held,
    /// The capability is not declared, and its use is refused without effect.
    Refused,
    /// A weaker promise is declared, and that one holds.
    Weaker,
}

/// Why a body ended early.
#[derive(Clone, Debug)]
pub enum Stop {
    /// The backend broke the promise: what was seen.
    Violated(String),
    /// The harness does not offer what the clause needs.
    NotRun(String),
    /// The kit or the harness failed, not the backend.
    Kit(String),
}

impl Stop {
    /// The backend broke the promise.
    pub fn violated(seen: impl Into<String>) -> Self {
        Self::Violated(seen.into())
    }

    /// A call that must succeed failed.
    pub fn failed(call: &str, error: &ProvisionError) -> Self {
        Self::Violated(format!("{call} failed: {error}"))
    }
}

/// Ends the body with a violation unless `holds`.
pub fn require(holds: bool, seen: impl FnOnce() -> String) -> Result<(), Stop> {
    if holds {
        Ok(())
    } else {
        Err(Stop::Violated(seen()))
    }
}
