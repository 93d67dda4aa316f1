//! A fault injector for backends whose test environment has none of its own: a table of rules, and a
//! seam that the backend passes at each of its native steps.
//!
//! Owns the counting. It does not know what a native step is: the backend calls the seam around each
//! one, and turns a fault into the error that its own native layer would return. That way the mapping
//! of errors is tested, too. An emulator with fault rules does not need this module.
//!
//! The seam belongs around every native step, not around every call of the trait: if a launch writes
//! a record and then creates a disk, these are two steps, and a process can die between them.

use std::{
    future::pending,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use fleetwright::Operation;

use crate::{Faults, WireFault, WireOp};

/// The rules of one account, shared by all of its handles. A harness returns it from
/// [`Harness::faults`](crate::Harness::faults).
///
/// ```
/// use fleetwright_contract_tests::{FaultTable, Faults as _, WireFault, WireOp};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let table = FaultTable::new();
/// let seam = table.seam(); // one for each handle
/// table.inject(WireOp::Launch, 2, WireFault::ServerErrorBefore).await;
///
/// assert_eq!(seam.before(WireOp::Launch).await, Ok(()));
/// // The native step happens here.
/// assert_eq!(seam.after(WireOp::Launch).await, Ok(()));
/// // The second launch must not be carried out.
/// assert_eq!(seam.before(WireOp::Launch).await, Err(WireFault::ServerErrorBefore));
/// assert!(table.clear().await, "the fault was injected");
/// assert_eq!(table.calls(), 2);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FaultTable {
    rules: Arc<Mutex<Rules>>,
    also: fn(&WireFault) -> bool,
}

#[derive(Debug, Default)]
struct Rules {
    rules: Vec<Rule>,
    calls: u64,
}

#[derive(Debug)]
struct Rule {
    operation: WireOp,
    /// `None` is every call.
    nth: Option<u64>,
    fault: WireFault,
    /// How many calls of the operation have passed since the rule was added.
    passed: u64,
    injected: bool,
}

/// When the seam looks at a rule.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Before,
    After,
    Content,
}

impl Moment {
    const fn of(fault: &WireFault) -> Self {
        match fault {
            WireFault::Throttled(_)
            | WireFault::BadCredentials
            | WireFault::Forbidden
            | WireFault::Capacity
            | WireFault::Quota
            | WireFault::RequestLost
            | WireFault::ServerErrorBefore
            | WireFault::Hang
            | WireFault::CrashBefore => Self::Before,
            WireFault::ResponseLost
            | WireFault::ServerErrorAfter
            | WireFault::Malformed
            | WireFault::CrashAfter => Self::After,
            WireFault::StaleRead | WireFault::UnknownState(_) | WireFault::FailsLate(_) => {
                Self::Content
            }
        }
    }
}

impl FaultTable {
    /// Creates a table without rules. It supports what every native layer can meet: lost requests and
    /// responses, server errors, responses that cannot be parsed, calls that hang, and crashes.
    pub fn new() -> Self {
        Self {
            rules: Arc::default(),
            also: |_| false,
        }
    }

    /// Adds faults that this backend can meet as well: refusals for which its native layer has an error,
    /// and faults in the content of a response, if it calls [`FaultSeam::content`].
    ///
    /// ```
    /// use fleetwright_contract_tests::{FaultTable, Faults as _, WireFault};
    ///
    /// let table = FaultTable::new().also(|fault| matches!(fault, WireFault::Forbidden));
    /// assert!(table.supports(&WireFault::Forbidden));
    /// assert!(!table.supports(&WireFault::Quota));
    /// ```
    #[must_use]
    pub fn also(mut self, supports: fn(&WireFault) -> bool) -> Self {
        self.also = supports;
        self
    }

    /// Returns the seam of a new handle. Handles must not share one: a crash ends all calls of its
    /// handle and of no other.
    pub fn seam(&self) -> FaultSeam {
        FaultSeam {
            table: self.clone(),
            is_dead: Arc::default(),
        }
    }

    /// Returns how many native steps all handles have begun: what
    /// [`Oracle::calls`](crate::Oracle::calls) returns.
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    fn lock(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, operation: WireOp, nth: Option<u64>, fault: WireFault) {
        self.lock().rules.push(Rule {
            operation,
            nth,
            fault,
            passed: 0,
            injected: false,
        });
    }

    /// Counts a step for every rule of a moment, and returns the fault of the first rule that strikes.
    fn strike(&self, operation: WireOp, moment: Moment) -> Option<WireFault> {
        let mut table = self.lock();
        table.calls += u64::from(moment == Moment::Before);
        let mut struck = None;
        for rule in &mut table.rules {
            let concerns = matches!(rule.operation, WireOp::Any) || rule.operation == operation;
            if !concerns || Moment::of(&rule.fault) != moment {
                continue;
            }
            rule.passed += 1;
            if struck.is_none() && rule.nth.is_none_or(|nth| nth == rule.passed) {
                rule.injected = true;
                struck = Some(rule.fault.clone());
            }
        }
        struck
    }
}

impl Default for FaultTable {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Faults for FaultTable {
    fn supports(&self, fault: &WireFault) -> bool {
        let always = matches!(
            fault,
            WireFault::RequestLost
                | WireFault::ResponseLost
                | WireFault::ServerErrorBefore
                | WireFault::ServerErrorAfter
                | WireFault::Malformed
                | WireFault::Hang
                | WireFault::CrashBefore
                | WireFault::CrashAfter
        );
        always || (self.also)(fault)
    }

    async fn inject(&self, operation: WireOp, nth: u64, fault: WireFault) {
        self.add(operation, Some(nth), fault);
    }

    async fn inject_always(&self, operation: WireOp, fault: WireFault) {
        self.add(operation, None, fault);
    }

    async fn all_injected(&self) -> bool {
        self.lock().rules.iter().all(|rule| rule.injected)
    }

    async fn clear(&self) -> bool {
        let all = self.all_injected().await;
        self.lock().rules.clear();
        all
    }
}

/// The seam of one handle, which its backend passes before and after each native step.
///
/// ```
/// use std::io;
/// use fleetwright_contract_tests::{FaultSeam, FaultTable, Faults as _, WireFault, WireOp};
///
/// /// A native step of a backend whose native layer is a file.
/// async fn write(seam: &FaultSeam, file: &mut Vec<u8>) -> io::Result<()> {
///     seam.before(WireOp::Launch).await?;
///     file.extend(b"a record");
///     Ok(seam.after(WireOp::Launch).await?)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let (table, mut file) = (FaultTable::new(), Vec::new());
/// table.inject(WireOp::Launch, 1, WireFault::ResponseLost).await;
/// let error = write(&table.seam(), &mut file).await.unwrap_err();
/// assert_eq!(error.kind(), io::ErrorKind::TimedOut);
/// assert_eq!(file, b"a record", "it was written although the response was lost");
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FaultSeam {
    table: FaultTable,
    is_dead: Arc<AtomicBool>,
}

impl FaultSeam {
    /// Call it before a native step. It does not return if the step hangs or if the process has died.
    ///
    /// # Errors
    /// The fault because of which the step must not be carried out.
    pub async fn before(&self, operation: WireOp) -> Result<(), WireFault> {
        self.end_if_dead().await;
        match self.table.strike(operation, Moment::Before) {
            None => Ok(()),
            Some(WireFault::Hang) => pending().await,
            Some(WireFault::CrashBefore) => self.die().await,
            Some(fault) => Err(fault),
        }
    }

    /// Call it after a native step. It does not return if the process has died.
    ///
    /// # Errors
    /// The fault because of which the response did not arrive, although the step was carried out.
    pub async fn after(&self, operation: WireOp) -> Result<(), WireFault> {
        self.end_if_dead().await;
        match self.table.strike(operation, Moment::After) {
            None => Ok(()),
            Some(WireFault::CrashAfter) => self.die().await,
            Some(fault) => Err(fault),
        }
    }

    /// Call it when a response is put together. Returns what its content must show: an
    /// [unknown state](WireFault::UnknownState), a [stale read](WireFault::StaleRead), which without a
    /// consistency window is an ordinary one, or a launch that [fails late](WireFault::FailsLate).
    pub fn content(&self, operation: WireOp) -> Option<WireFault> {
        self.table.strike(operation, Moment::Content)
    }

    async fn die<T>(&self) -> T {
        self.is_dead.store(true, Ordering::SeqCst);
        pending().await
    }

    async fn end_if_dead(&self) {
        if self.is_dead.load(Ordering::SeqCst) {
            pending::<()>().await;
        }
    }
}

impl From<WireFault> for io::Error {
    /// Returns the error of the operating system that is nearest to a fault, for backends whose native
    /// layer is a file or a socket.
    fn from(fault: WireFault) -> Self {
        let kind = match fault {
            WireFault::RequestLost | WireFault::ResponseLost => io::ErrorKind::TimedOut,
            WireFault::Malformed => io::ErrorKind::InvalidData,
            WireFault::BadCredentials | WireFault::Forbidden => io::ErrorKind::PermissionDenied,
            WireFault::Capacity => io::ErrorKind::StorageFull,
            WireFault::Quota => io::ErrorKind::QuotaExceeded,
            WireFault::Throttled(_) => io::ErrorKind::ResourceBusy,
            WireFault::ServerErrorBefore
            | WireFault::ServerErrorAfter
            | WireFault::StaleRead
            | WireFault::UnknownState(_)
            | WireFault::FailsLate(_)
            | WireFault::Hang
            | WireFault::CrashBefore
            | WireFault::CrashAfter => io::ErrorKind::Other,
        };
        Self::new(
            kind,
            format!("injected: {}", crate::shown::in_words(&fault)),
        )
    }
}

impl From<Operation> for WireOp {
    /// Returns the native call that an operation mainly consists of, for backends whose native steps
    /// are those of the trait. Optional calls without a fault of their own are [`WireOp::Any`].
    fn from(operation: Operation) -> Self {
        match operation {
            Operation::LaunchInstance | Operation::LaunchInstances => Self::Launch,
            Operation::TerminateInstance | Operation::TerminateInstances => Self::Terminate,
            Operation::StopInstance | Operation::StopInstances => Self::Stop,
            Operation::StartInstance | Operation::StartInstances => Self::Start,
            Operation::DescribeInstance | Operation::DescribeInstances => Self::Describe,
            Operation::ListInstances | Operation::StreamInstances => Self::List,
            Operation::FindLaunch => Self::FindLaunch,
            Operation::UpdateTags => Self::UpdateTags,
            Operation::AccountId
            | Operation::RebootInstance
            | Operation::ResizeInstance
            | Operation::ReimageInstance
            | Operation::ConsoleOutput
            | Operation::ConsoleSession
            | Operation::SnapshotImage
            | Operation::DeleteImage
            | _ => Self::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// Returns whether a step returns at all.
    async fn returns(step: impl Future<Output = Result<(), WireFault>>) -> bool {
        timeout(Duration::from_secs(1), step).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn rules_count_the_steps_of_their_operation() {
        let table = FaultTable::new();
        let seam = table.seam();
        table.inject(WireOp::Stop, 1, WireFault::RequestLost).await;
        table.inject(WireOp::Any, 2, WireFault::Malformed).await;
        assert_eq!(seam.before(WireOp::Launch).await, Ok(()));
        assert_eq!(seam.after(WireOp::Launch).await, Ok(()));
        assert_eq!(
            seam.before(WireOp::Stop).await,
            Err(WireFault::RequestLost),
            "the first stop, although it is the second step"
        );
        assert!(!table.all_injected().await);
        assert_eq!(
            seam.after(WireOp::List).await,
            Err(WireFault::Malformed),
            "the second step that was carried out"
        );
        assert!(table.clear().await);
        assert_eq!(seam.before(WireOp::Stop).await, Ok(()));
        assert_eq!(table.calls(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn rule_without_number_strikes_always_and_only_once_per_step() {
        let table = FaultTable::new();
        let seam = table.seam();
        let error = WireFault::ServerErrorBefore;
        table.inject_always(WireOp::List, error.clone()).await;
        table
            .inject_always(WireOp::Any, WireFault::RequestLost)
            .await;
        for _ in 0..3 {
            assert_eq!(seam.before(WireOp::List).await, Err(error.clone()));
        }
        assert!(!table.clear().await, "the second rule never struck");
    }

    #[tokio::test(start_paused = true)]
    async fn crash_ends_one_handle_and_a_hang_one_call() {
        let table = FaultTable::new();
        let (dying, other) = (table.seam(), table.seam());
        table.inject(WireOp::Launch, 1, WireFault::CrashAfter).await;
        assert!(returns(dying.before(WireOp::Launch)).await);
        assert!(!returns(dying.after(WireOp::Launch)).await);
        assert!(!returns(dying.before(WireOp::List)).await, "it is dead");
        assert!(returns(other.before(WireOp::List)).await);
        table.inject(WireOp::Stop, 1, WireFault::Hang).await;
        assert!(!returns(other.before(WireOp::Stop)).await);
        assert!(returns(other.before(WireOp::Stop)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn content_is_told_where_the_backend_can_act_it_out() {
        let table = FaultTable::new().also(|fault| matches!(fault, WireFault::StaleRead));
        assert!(table.supports(&WireFault::StaleRead));
        assert!(!table.supports(&WireFault::Quota));
        let seam = table.seam();
        table.inject(WireOp::List, 1, WireFault::StaleRead).await;
        assert_eq!(seam.content(WireOp::Describe), None);
        assert_eq!(seam.content(WireOp::List), Some(WireFault::StaleRead));
        assert_eq!(seam.content(WireOp::List), None);
    }
}
