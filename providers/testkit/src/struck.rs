//! The kit's faults on an emulator.

use std::{fmt, sync::Arc};

use fleetwright::async_trait;
use fleetwright_contract_tests::{Faults, WireFault, WireOp};
use fleetwright_emulators::{Cloud, Emulator, Fault, FaultRule, Phase};

/// Makes faults happen on an emulator.
pub struct Struck<C: Cloud> {
    emulator: Arc<Emulator<C>>,
    operations: Operations<C>,
}

/// The operations of a cloud that a call of the kit's is made of and that a fault strikes; none, any of them.
/// Where there are several, only the first strikes at a certain call.
type Operations<C> = fn(WireOp, &WireFault) -> Vec<<C as Cloud>::Operation>;

impl<C: Cloud> Struck<C> {
    /// Makes faults happen where `operations` says that a call of the kit's is struck.
    pub fn new(emulator: Arc<Emulator<C>>, operations: Operations<C>) -> Self {
        Self {
            emulator,
            operations,
        }
    }

    /// Some calls of the kit's are one operation of the cloud's, so that one rule serves them all.
    fn add(&self, rule: FaultRule<C::Operation>) {
        if !self.emulator.unused_faults().contains(&rule) {
            self.emulator.add_fault(rule);
        }
    }
}

impl<C: Cloud> fmt::Debug for Struck<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Struck")
            .field("emulator", &self.emulator)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl<C: Cloud> Faults for Struck<C> {
    fn supports(&self, _: &WireFault) -> bool {
        true
    }

    async fn inject(&self, operation: WireOp, nth: u64, fault: WireFault) {
        let struck = (self.operations)(operation, &fault);
        let fault = native(&fault);
        self.add(match struck.into_iter().next() {
            Some(operation) => FaultRule::nth(operation, nth, fault),
            None => FaultRule::nth_of_any(nth, fault),
        });
    }

    async fn inject_always(&self, operation: WireOp, fault: WireFault) {
        let struck = (self.operations)(operation, &fault);
        let fault = native(&fault);
        if struck.is_empty() {
            self.add(FaultRule::always_any(fault.clone()));
        }
        for operation in struck {
            self.add(FaultRule::always(operation, fault.clone()));
        }
    }

    async fn clear(&self) -> bool {
        let struck = self.emulator.unused_faults().is_empty();
        self.emulator.clear_faults();
        struck
    }
}

/// A fault of the kit's, as emulators have it.
pub fn native(fault: &WireFault) -> Fault {
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
            message: "it failed".to_owned(),
        },
        // A process that has died neither sends nor hears anything, which to the cloud is a call that
        // never ends.
        WireFault::Hang | WireFault::CrashBefore => Fault::Hang { phase: before },
        WireFault::CrashAfter => Fault::Hang { phase: after },
    }
}
