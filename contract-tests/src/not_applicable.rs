//! What a cloud may lack, so that the clauses about it do not apply.
//!
//! Owns the closed list of these parts. It has only what some clouds really do not have. Lost
//! responses, server errors, crashes and the like are not in it: every backend can meet them, so
//! every harness has to inject them.

use fleetwright::Capabilities;
use serde::Deserialize;

use crate::{Faults, WireFault};

/// A part that most clouds have and some do not.
///
/// A harness declares what its cloud lacks; the clauses about it are then reported as not applicable,
/// and the backend is conformant without them. A declaration that contradicts itself is an error: if
/// the harness can inject the fault, or the backend declares the opposite, the clause fails.
///
/// ```
/// use std::sync::Arc;
/// use fleetwright::{InstanceConfig, InstanceId, InstanceProvisioner, async_trait};
/// use fleetwright_contract_tests::{Factory, Harness, NotApplicable, Status, clause, run_clause};
/// use fleetwright_memory::MemoryCloud;
///
/// /// A rack in the next room: no accounts, and nobody counts calls.
/// struct Rack(MemoryCloud);
///
/// #[async_trait]
/// impl Harness for Rack {
///     fn name(&self) -> String {
///         "rack".to_owned()
///     }
///     async fn open(&self) -> Arc<dyn InstanceProvisioner> {
///         Arc::new(self.0.provisioner())
///     }
///     fn config(&self) -> InstanceConfig {
///         InstanceConfig::builder("image", "small").build().unwrap()
///     }
///     fn unknown_id(&self) -> InstanceId {
///         "i-0000000000000000".parse().unwrap()
///     }
///     fn not_applicable(&self) -> Vec<NotApplicable> {
///         vec![NotApplicable::Throttling, NotApplicable::Credentials]
///     }
/// }
///
/// let factory: Factory = Arc::new(|| Arc::new(Rack(MemoryCloud::new())));
/// let verdict = run_clause(clause("ERRORS-04").unwrap(), &factory);
/// assert_eq!(verdict.status, Status::NotApplicable);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotApplicable {
    /// The cloud never refuses a call because of too many calls.
    Throttling,
    /// Calls carry no credentials that can expire.
    Credentials,
    /// Every caller may make every call.
    Permissions,
    /// The account has no limit.
    Quota,
    /// The cloud never runs out of machines: an instance needs none, or they are not counted.
    Capacity,
    /// A launch that was accepted never fails later.
    LateFailures,
}

impl NotApplicable {
    /// Returns the part that a cloud has if this fault can occur, or `None` if the fault can occur with
    /// every cloud.
    pub(crate) const fn of(fault: &WireFault) -> Option<Self> {
        match fault {
            WireFault::Throttled(_) => Some(Self::Throttling),
            WireFault::BadCredentials => Some(Self::Credentials),
            WireFault::Forbidden => Some(Self::Permissions),
            WireFault::Quota => Some(Self::Quota),
            WireFault::Capacity => Some(Self::Capacity),
            WireFault::FailsLate(_) => Some(Self::LateFailures),
            WireFault::RequestLost
            | WireFault::ResponseLost
            | WireFault::ServerErrorBefore
            | WireFault::ServerErrorAfter
            | WireFault::Malformed
            | WireFault::StaleRead
            | WireFault::UnknownState(_)
            | WireFault::Hang
            | WireFault::CrashBefore
            | WireFault::CrashAfter => None,
        }
    }

    /// Returns the reason in a report.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Throttling => "the harness declares that the cloud never throttles calls",
            Self::Credentials => "the harness declares that calls carry no credentials",
            Self::Permissions => "the harness declares that every caller may make every call",
            Self::Quota => "the harness declares that the account has no limit",
            Self::Capacity => "the harness declares that the cloud never lacks capacity",
            Self::LateFailures => "the harness declares that no accepted launch fails later",
        }
    }

    /// Returns why the declaration is false, if the harness or the backend shows that it is.
    pub(crate) fn contradiction(
        self,
        declared: &Capabilities,
        faults: Option<&dyn Faults>,
    ) -> Option<String> {
        let fault = match self {
            Self::Throttling => WireFault::Throttled(std::time::Duration::from_secs(1)),
            Self::Credentials => WireFault::BadCredentials,
            Self::Permissions => WireFault::Forbidden,
            Self::Quota => WireFault::Quota,
            Self::Capacity => WireFault::Capacity,
            Self::LateFailures => {
                let code = faults.map_or("", |faults| faults.late_failure_code());
                WireFault::FailsLate(code.to_owned())
            }
        };
        if faults.is_some_and(|faults| faults.supports(&fault)) {
            return Some(format!(
                "{}, but it can inject {}: remove the declaration",
                self.reason(),
                crate::shown::in_words(&fault)
            ));
        }
        if self == Self::LateFailures && !declared.late_failures.is_zero() {
            let time = declared.late_failures;
            return Some(format!(
                "{}, but the backend declares late failures for {time:?}",
                self.reason()
            ));
        }
        None
    }
}
