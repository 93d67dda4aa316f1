//! What a clause is, and what comes of running one.

use std::{fmt, future::Future, pin::Pin};

use super::{Cx, Factory, crash::Child};
use crate::StoreError;

/// A promise of the contract, with the test that holds a store to it.
pub struct Clause {
    /// Its number, never given to another promise: `WATCH-03`.
    pub id: &'static str,
    /// The name of its test.
    pub name: &'static str,
    /// What a store must do; reads after "a store must".
    pub promise: &'static str,
    /// The test.
    pub body: Body,
}

impl fmt::Debug for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.name)
    }
}

/// The test of a clause: on one store, or on as many as it likes in runtimes of its own.
#[derive(Clone, Copy)]
pub enum Body {
    /// Runs on a fresh store.
    Async(for<'a> fn(&'a Cx) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>),
    /// Makes its stores and runtimes itself.
    Sync(fn(&Factory, Option<&Child>) -> Outcome),
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Async(_) => "Async",
            Self::Sync(_) => "Sync",
        })
    }
}

/// What a body answers.
pub type Outcome = Result<Arm, Stop>;

/// Which promise was tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// The behaviour itself.
    Held,
    /// The store does not claim to do this: it forgets with its process, or cannot be full.
    NotClaimed,
}

/// Why a body ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The store broke the promise: what was seen.
    Violated(String),
    /// The suite or the harness failed, not the store.
    Kit(String),
}

impl Stop {
    /// The store broke the promise.
    pub fn violated(seen: impl Into<String>) -> Self {
        Self::Violated(seen.into())
    }

    /// A call that must succeed failed.
    pub fn failed(call: &str, error: &StoreError) -> Self {
        Self::Violated(format!("{call} must succeed, but: {error}"))
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
