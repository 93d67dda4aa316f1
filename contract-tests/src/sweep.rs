//! Dividing a long sweep: in real time its cases mostly wait, so several accounts share them.
//!
//! Owns which clauses are divided, and which cases a part has. A part is the whole clause on an account of its own, except
//! that its sweep leaves out the cases of the other parts. Together the parts have every case, and a clause holds if it holds in
//! each part. It never decides what a case is: the clause numbers its cases.

use std::{num::NonZeroUsize, thread};

use fleetwright_clause_engine::panic_message;

use crate::{Clause, Failure, Harness, Outcome, Time};

/// The clauses, and families of them, that ask [`Context::has_case`](crate::Context::has_case) for every case.
const DIVIDED: [&str; 4] = ["CRASH-03", "CRASH-04", "VERBS-12", "MATRIX-"];

/// The part of a sweep that runs on one account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    number: usize,
    of: NonZeroUsize,
}

impl Part {
    /// All cases.
    pub(crate) const WHOLE: Self = Self {
        number: 0,
        of: NonZeroUsize::MIN,
    };

    /// Returns the parts of a clause on the accounts that a harness offers.
    pub(crate) fn all(clause: &Clause, harness: &dyn Harness) -> Vec<Self> {
        let divided = DIVIDED.iter().any(|id| clause.id.starts_with(id));
        let of = match harness.time() {
            Time::Real if divided => harness.sweep_accounts(),
            Time::Real | Time::Virtual => NonZeroUsize::MIN,
        };
        (0..of.get()).map(|number| Self { number, of }).collect()
    }

    /// Returns whether a case belongs to this part. A clause numbers its cases from any number, without gaps.
    pub(crate) const fn has(self, case: usize) -> bool {
        case % self.of.get() == self.number
    }
}

/// Runs all parts at the same time, each on a thread of its own, and returns their outcomes.
pub(crate) fn run_parts<T: Sync>(parts: &[T], run: impl Fn(&T) -> Outcome + Sync) -> Vec<Outcome> {
    if let [whole] = parts {
        return vec![run(whole)];
    }
    thread::scope(|scope| {
        let run = &run;
        let running: Vec<_> = parts
            .iter()
            .map(|part| scope.spawn(move || run(part)))
            .collect();
        let ended = running.into_iter().map(thread::ScopedJoinHandle::join);
        ended
            .map(|outcome| outcome.unwrap_or_else(|panic| Err(panicked(&*panic))))
            .collect()
    })
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Failure {
    Failure::KitError(format!("the clause panicked: {}", panic_message(panic)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pass;

    #[test]
    fn parts_have_every_case_once() {
        let of = NonZeroUsize::new(5).unwrap();
        let parts: Vec<_> = (0..5).map(|number| Part { number, of }).collect();
        for case in 0..40 {
            let having = parts.iter().filter(|part| part.has(case)).count();
            assert_eq!(having, 1, "case {case}");
            assert!(Part::WHOLE.has(case));
        }
    }

    #[test]
    fn panic_of_a_part_is_an_error_of_the_kit() {
        let outcomes = run_parts(&[0, 1, 2], |part| {
            assert!(*part != 1, "a bug");
            Ok(Pass::Held)
        });
        let panicked = Failure::KitError("the clause panicked: a bug".to_owned());
        assert_eq!(outcomes, [Ok(Pass::Held), Err(panicked), Ok(Pass::Held)]);
    }
}
