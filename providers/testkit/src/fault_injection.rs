//! The kit's faults on an emulator.
//!
//! Owns the translation of a fault of the kit into a fault rule of an emulator.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use fleetwright::{Operation, async_trait};
use fleetwright_contract_tests::{Faults, NativeError, WireFault, WireOp};
use fleetwright_emulators::{Cloud, Emulator, Fault, FaultRule, Phase};

/// Injects the kit's faults into an emulator.
pub struct EmulatorFaults<C: Cloud> {
    emulator: Arc<Emulator<C>>,
    operations: Operations<C>,
    late_failure_code: &'static str,
    late_capacity_code: &'static str,
    native_errors: Vec<NativeError>,
    native_operations: NativeOperations<C>,
    /// Rules of which one is enough: a cloud may launch with one of several calls.
    alternatives: Mutex<Vec<Vec<FaultRule<C::Operation>>>>,
}

/// Returns the native operations that a fault affects for an operation of the kit. An empty list means any
/// operation. A fault at the nth call affects only the first operation of the list.
type Operations<C> = fn(WireOp, &WireFault) -> Vec<<C as Cloud>::Operation>;

/// Returns the native operations that a call mainly consists of. An empty list means any operation.
type NativeOperations<C> = fn(Operation) -> Vec<<C as Cloud>::Operation>;

impl<C: Cloud> EmulatorFaults<C> {
    /// Creates the faults of an emulator. `operations` returns the native operations for an operation of the
    /// kit. The codes are those of launches that fail late: any one, and that of missing capacity.
    pub fn new(
        emulator: Arc<Emulator<C>>,
        operations: Operations<C>,
        [late_failure_code, late_capacity_code]: [&'static str; 2],
    ) -> Self {
        Self {
            emulator,
            operations,
            late_failure_code,
            late_capacity_code,
            native_errors: Vec::new(),
            native_operations: |_| Vec::new(),
            alternatives: Mutex::default(),
        }
    }

    /// Sets the cloud's own errors, and the native operations that a call mainly consists of.
    #[must_use]
    pub fn with_native_errors(
        mut self,
        errors: Vec<NativeError>,
        operations: NativeOperations<C>,
    ) -> Self {
        self.native_errors = errors;
        self.native_operations = operations;
        self
    }

    /// Injects a fault into every call of the operations. One of them is enough where a call makes only some of them.
    fn add_always(&self, operations: Vec<C::Operation>, fault: &Fault, one_is_enough: bool) {
        if operations.is_empty() {
            self.add(FaultRule::always_any(fault.clone()));
        }
        let rules = operations.into_iter();
        let rules: Vec<_> = rules
            .map(|operation| FaultRule::always(operation, fault.clone()))
            .collect();
        for rule in &rules {
            self.add(rule.clone());
        }
        if one_is_enough {
            self.alternatives().push(rules);
        }
    }

    fn alternatives(&self) -> MutexGuard<'_, Vec<Vec<FaultRule<C::Operation>>>> {
        self.alternatives
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a rule once: several operations of the kit may be the same native operation.
    fn add(&self, rule: FaultRule<C::Operation>) {
        if !self.emulator.unused_faults().contains(&rule) {
            self.emulator.add_fault(rule);
        }
    }
}

impl<C: Cloud> fmt::Debug for EmulatorFaults<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmulatorFaults")
            .field("emulator", &self.emulator)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl<C: Cloud> Faults for EmulatorFaults<C> {
    fn supports(&self, _: &WireFault) -> bool {
        true
    }

    fn late_failure_code(&self) -> &str {
        self.late_failure_code
    }

    fn late_capacity_code(&self) -> Option<&str> {
        Some(self.late_capacity_code)
    }

    async fn inject(&self, operation: WireOp, nth: u64, fault: WireFault) {
        let operations = (self.operations)(operation, &fault);
        let fault = emulator_fault(&fault);
        self.add(match operations.into_iter().next() {
            Some(operation) => FaultRule::nth(operation, nth, fault),
            None => FaultRule::nth_of_any(nth, fault),
        });
    }

    fn native_errors(&self) -> Vec<NativeError> {
        self.native_errors.clone()
    }

    async fn inject_native(&self, operation: Operation, error: &NativeError) -> bool {
        let Some(status) = error.status else {
            return false; // An error of these clouds is a response.
        };
        let (code, message) = (error.code.clone(), error.message.clone());
        let fault = Fault::Refused {
            status,
            code,
            message,
        };
        self.add_always((self.native_operations)(operation), &fault, true);
        true
    }

    async fn inject_always(&self, operation: WireOp, fault: WireFault) {
        let operations = (self.operations)(operation, &fault);
        let fault = emulator_fault(&fault);
        self.add_always(operations, &fault, operation == WireOp::Launch);
    }

    async fn all_injected(&self) -> bool {
        let unused = self.emulator.unused_faults();
        let alternatives = self.alternatives();
        let is_replaced = |rule| {
            let mut groups = alternatives.iter().filter(|group| group.contains(rule));
            groups.any(|group| group.iter().any(|other| !unused.contains(other)))
        };
        unused.iter().all(is_replaced)
    }

    async fn clear(&self) -> bool {
        let all_injected = self.all_injected().await;
        self.emulator.clear_faults();
        self.alternatives().clear();
        all_injected
    }
}

/// Converts a fault of the kit to the fault of an emulator.
pub fn emulator_fault(fault: &WireFault) -> Fault {
    let (before, after) = (Phase::Before, Phase::After);
    match fault {
        WireFault::Throttled(wait) => Fault::Throttled {
            retry_after_secs: Some(wait.as_secs()),
        },
        WireFault::BadCredentials => Fault::ExpiredCredentials,
        WireFault::Forbidden => Fault::Forbidden,
        WireFault::Capacity => Fault::Capacity,
        WireFault::Quota => Fault::Quota,
        WireFault::RequestLost => Fault::Lost { phase: before },
        WireFault::ResponseLost => Fault::Lost { phase: after },
        WireFault::ServerErrorBefore => Fault::ServerError { phase: before },
        WireFault::ServerErrorAfter => Fault::ServerError { phase: after },
        WireFault::Malformed => Fault::Malformed,
        WireFault::StaleRead => Fault::StaleRead,
        WireFault::UnknownState(state) => Fault::UnknownState {
            state: state.clone(),
        },
        WireFault::FailsLate(code) => Fault::LateFailure {
            code: code.clone(),
            message: "the operation failed".to_owned(),
        },
        // To the cloud, a process that has died looks like a call that never ends.
        WireFault::Hang | WireFault::CrashBefore => Fault::Hang { phase: before },
        WireFault::CrashAfter => Fault::Hang { phase: after },
    }
}
