//! What goes wrong, at which call.

use std::{
    fmt::Debug,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A fault and the calls it strikes. The fault itself is whatever the simulated cloud understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule<F> {
    /// The operation it strikes, or every one.
    pub operation: Option<String>,
    /// Which of that operation's calls, counted from when the rule was added.
    pub when: When,
    /// What happens then.
    pub fault: F,
}

impl<F> Rule<F> {
    /// Strikes call number `nth` (from 1) of `operation`.
    pub fn nth(operation: impl Into<String>, nth: u64, fault: F) -> Self {
        Self {
            operation: Some(operation.into()),
            when: When::Nth(nth),
            fault,
        }
    }

    /// Strikes every call of `operation`.
    pub fn always(operation: impl Into<String>, fault: F) -> Self {
        Self {
            operation: Some(operation.into()),
            when: When::Always,
            fault,
        }
    }

    /// Strikes call number `nth` (from 1), of whatever operation.
    pub const fn nth_of_any(nth: u64, fault: F) -> Self {
        Self {
            operation: None,
            when: When::Nth(nth),
            fault,
        }
    }
}

/// Which calls a rule strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// This one, counted from 1.
    Nth(u64),
    /// Every one.
    Always,
}

/// The rules in force. Shared by all handles of a simulated cloud.
#[derive(Debug)]
pub struct FaultPlan<F> {
    rules: Mutex<Vec<Active<F>>>,
}

#[derive(Debug)]
struct Active<F> {
    rule: Rule<F>,
    calls: u64,
    struck: u64,
}

impl<F> Default for FaultPlan<F> {
    fn default() -> Self {
        Self {
            rules: Mutex::new(Vec::new()),
        }
    }
}

impl<F: Clone> FaultPlan<F> {
    /// A plan in which nothing goes wrong.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule; where several strike one call, the one added first counts.
    pub fn add(&self, rule: Rule<F>) {
        self.rules().push(Active {
            rule,
            calls: 0,
            struck: 0,
        });
    }

    /// Takes every rule away.
    pub fn clear(&self) {
        self.rules().clear();
    }

    /// Counts a call of `operation` and answers the fault that strikes it.
    pub fn strike(&self, operation: &str) -> Option<F> {
        let mut fault = None;
        for active in self.rules().iter_mut() {
            if active
                .rule
                .operation
                .as_deref()
                .is_some_and(|name| name != operation)
            {
                continue;
            }
            active.calls += 1;
            let strikes = match active.rule.when {
                When::Nth(nth) => active.calls == nth,
                When::Always => true,
            };
            if strikes && fault.is_none() {
                active.struck += 1;
                fault = Some(active.rule.fault.clone());
            }
        }
        fault
    }

    /// The rules that have not struck yet: a test whose fault never happened proves nothing.
    pub fn unstruck(&self) -> Vec<Rule<F>> {
        self.rules()
            .iter()
            .filter(|active| active.struck == 0)
            .map(|a| a.rule.clone())
            .collect()
    }

    fn rules(&self) -> MutexGuard<'_, Vec<Active<F>>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_strikes_its_call_and_no_other() {
        let plan = FaultPlan::new();
        plan.add(Rule::nth("launch", 2, "lost"));
        assert_eq!(plan.strike("launch"), None);
        assert_eq!(plan.strike("list"), None);
        assert_eq!(plan.unstruck(), [Rule::nth("launch", 2, "lost")]);
        assert_eq!(plan.strike("launch"), Some("lost"));
        assert_eq!(plan.strike("launch"), None);
        assert_eq!(plan.unstruck(), []);
    }

    #[test]
    fn calls_are_counted_from_when_the_rule_was_added() {
        let plan = FaultPlan::new();
        plan.strike("a");
        plan.add(Rule::nth_of_any(2, 1));
        assert_eq!(plan.strike("a"), None);
        assert_eq!(plan.strike("b"), Some(1));
    }

    #[test]
    fn the_first_rule_counts_and_all_are_counted() {
        let plan = FaultPlan::new();
        plan.add(Rule::always("a", 1));
        plan.add(Rule::nth_of_any(2, 2));
        assert_eq!(plan.strike("a"), Some(1));
        assert_eq!(plan.strike("b"), Some(2));
        assert_eq!(plan.strike("a"), Some(1));
        plan.clear();
        assert_eq!(plan.strike("a"), None);
        assert_eq!(plan.unstruck(), []);
    }
}
