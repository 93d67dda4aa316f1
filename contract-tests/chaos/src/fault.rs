//! A plan of faults: which fault to inject into which call.
//!
//! Owns the rules and the counting of calls. It never injects anything itself: the simulated cloud
//! requests the fault of each call and carries it out.

use std::{
    fmt::Debug,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A fault and the calls that it is injected into.
///
/// `F` is the fault, in whatever form the simulated cloud understands.
///
/// ```
/// use fleetwright_chaos::{FaultPlan, Rule};
///
/// let plan = FaultPlan::new();
/// plan.add(Rule::always("list", "slow response"));
/// plan.add(Rule::nth_of_any(2, "lost response"));
/// assert_eq!(plan.next_fault("list"), Some("slow response"));
/// assert_eq!(plan.next_fault("launch"), Some("lost response"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule<F> {
    /// The operation, or `None` for every operation.
    pub operation: Option<String>,
    /// Which calls of that operation. Only calls after the rule was added count.
    pub when: When,
    /// The fault.
    pub fault: F,
}

impl<F> Rule<F> {
    /// Injects `fault` into call number `nth` of `operation`, counted from 1.
    pub fn nth(operation: impl Into<String>, nth: u64, fault: F) -> Self {
        Self {
            operation: Some(operation.into()),
            when: When::Nth(nth),
            fault,
        }
    }

    /// Injects `fault` into every call of `operation`.
    pub fn always(operation: impl Into<String>, fault: F) -> Self {
        Self {
            operation: Some(operation.into()),
            when: When::Always,
            fault,
        }
    }

    /// Injects `fault` into call number `nth` of all calls, counted from 1.
    pub const fn nth_of_any(nth: u64, fault: F) -> Self {
        Self {
            operation: None,
            when: When::Nth(nth),
            fault,
        }
    }
}

/// Which calls a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Only this call, counted from 1.
    Nth(u64),
    /// Every call.
    Always,
}

/// The rules in force. All handles of a simulated cloud share one plan.
///
/// ```
/// use fleetwright_chaos::{FaultPlan, Rule};
///
/// let plan = FaultPlan::new();
/// plan.add(Rule::nth("launch", 2, "lost response"));
/// assert_eq!(plan.next_fault("launch"), None);
/// assert_eq!(plan.unused_rules().len(), 1, "the second launch has not been made");
/// assert_eq!(plan.next_fault("launch"), Some("lost response"));
/// assert!(plan.unused_rules().is_empty());
/// ```
#[derive(Debug)]
pub struct FaultPlan<F> {
    rules: Mutex<Vec<Active<F>>>,
}

#[derive(Debug)]
struct Active<F> {
    rule: Rule<F>,
    calls: u64,
    injected: u64,
}

impl<F> Default for FaultPlan<F> {
    fn default() -> Self {
        Self {
            rules: Mutex::new(Vec::new()),
        }
    }
}

impl<F: Clone> FaultPlan<F> {
    /// Creates a plan without rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule. If several rules apply to one call, the one that was added first is used.
    pub fn add(&self, rule: Rule<F>) {
        self.rules().push(Active {
            rule,
            calls: 0,
            injected: 0,
        });
    }

    /// Removes every rule.
    pub fn clear(&self) {
        self.rules().clear();
    }

    /// Counts a call of `operation` and returns the fault to inject into it, if any.
    ///
    /// Call it exactly once for each call of the simulated cloud: the rules count by it.
    pub fn next_fault(&self, operation: &str) -> Option<F> {
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
            let applies = match active.rule.when {
                When::Nth(nth) => active.calls == nth,
                When::Always => true,
            };
            if applies && fault.is_none() {
                active.injected += 1;
                fault = Some(active.rule.fault.clone());
            }
        }
        fault
    }

    /// Returns the rules whose fault has never been injected. A test should assert that there are
    /// none: if its fault never happened, it has proven nothing.
    pub fn unused_rules(&self) -> Vec<Rule<F>> {
        self.rules()
            .iter()
            .filter(|active| active.injected == 0)
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
    fn rule_applies_to_its_call_only() {
        let plan = FaultPlan::new();
        plan.add(Rule::nth("launch", 2, "lost"));
        assert_eq!(plan.next_fault("launch"), None);
        assert_eq!(plan.next_fault("list"), None);
        assert_eq!(plan.unused_rules(), [Rule::nth("launch", 2, "lost")]);
        assert_eq!(plan.next_fault("launch"), Some("lost"));
        assert_eq!(plan.next_fault("launch"), None);
        assert_eq!(plan.unused_rules(), []);
    }

    #[test]
    fn calls_before_the_rule_are_not_counted() {
        let plan = FaultPlan::new();
        plan.next_fault("a");
        plan.add(Rule::nth_of_any(2, 1));
        assert_eq!(plan.next_fault("a"), None);
        assert_eq!(plan.next_fault("b"), Some(1));
    }

    #[test]
    fn first_rule_wins_and_every_rule_counts_calls() {
        let plan = FaultPlan::new();
        plan.add(Rule::always("a", 1));
        plan.add(Rule::nth_of_any(2, 2));
        assert_eq!(plan.next_fault("a"), Some(1));
        assert_eq!(plan.next_fault("b"), Some(2));
        assert_eq!(plan.next_fault("a"), Some(1));
        plan.clear();
        assert_eq!(plan.next_fault("a"), None);
        assert_eq!(plan.unused_rules(), []);
    }
}
