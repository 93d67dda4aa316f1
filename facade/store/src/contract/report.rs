//! What a run came to.

use std::fmt;

use super::{Arm, Clause, Outcome, Stop};

/// What came of one clause.
#[derive(Debug)]
pub struct Verdict {
    /// Which.
    pub clause: &'static Clause,
    /// What.
    pub outcome: Outcome,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Clause { id, promise, .. } = self.clause;
        match &self.outcome {
            Ok(Arm::Held) => write!(f, "{id} held"),
            Ok(Arm::NotClaimed) => write!(f, "{id} not claimed"),
            Err(Stop::Violated(seen)) => {
                write!(f, "{id} violated: a store must {promise}; seen: {seen}")
            }
            Err(Stop::Kit(reason)) => write!(f, "{id} not run: {reason}"),
        }
    }
}

/// What came of all clauses.
#[derive(Debug)]
pub struct Report {
    /// What the store is called.
    pub store: String,
    /// One for each clause, in the order of the document.
    pub verdicts: Vec<Verdict>,
}

impl Report {
    /// Whether nothing is violated and everything was run.
    pub fn is_conformant(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.outcome.is_ok())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for verdict in &self.verdicts {
            writeln!(f, "{verdict}")?;
        }
        let held = self
            .verdicts
            .iter()
            .filter(|one| one.outcome == Ok(Arm::Held));
        write!(
            f,
            "{}: {} of {} clauses held",
            self.store,
            held.count(),
            self.verdicts.len()
        )
    }
}
