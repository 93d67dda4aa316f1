//! The faults that the emulators can inject, and the rules that say into which calls.
//!
//! Owns only values: `service` and `inject` apply them.

use std::time::Duration;

use fleetwright_chaos as chaos;
use serde::{Deserialize, Serialize};

use super::Operation;

/// Something that goes wrong with one call.
///
/// In JSON a fault is an object with a `kind`, which is the variant's name in snake case, and its
/// fields:
///
/// ```sh
/// curl -d '{"operation": "RunInstances", "nth": 1, "fault": {"kind": "lost", "phase": "after"}}' \
///     http://127.0.0.1:4566/_emulator/faults
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Fault {
    /// The connection is closed without a response. Before the effect the request is lost, after
    /// the effect the response is lost.
    Lost {
        /// Before or after the effect.
        phase: Phase,
    },
    /// The call is executed; the connection is reset in the middle of the response's body.
    Reset,
    /// The call is executed; the HTTP message is complete, but its document ends in the middle.
    Truncated,
    /// The call is executed; the response is an HTML page with status 200, as a proxy would send.
    Malformed,
    /// The cloud's error for too many calls; nothing is changed. Few clouds send a `Retry-After`
    /// header, but proxies between them and a client may.
    Throttled {
        /// The seconds of a `Retry-After` header; without it the header is absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_secs: Option<u64>,
    },
    /// The cloud's internal error, status 500.
    ServerError {
        /// Before or after the effect.
        phase: Phase,
    },
    /// A read returns the oldest state that [`Lag::reads`](super::lag::Lag::reads) allows.
    StaleRead,
    /// The cloud's error for expired credentials; nothing is changed.
    ExpiredCredentials,
    /// The cloud's error for a missing permission; nothing is changed.
    Forbidden,
    /// The cloud's error for missing capacity; nothing is changed.
    Capacity,
    /// The cloud's error for an exhausted quota; nothing is changed.
    Quota,
    /// A page of a list is empty, and its token leads to the items that it should have had.
    EmptyPage,
    /// A page returns the token that it was requested with, so a client that follows it never ends.
    RepeatedToken,
    /// Every instance in the response has this state, which no client knows.
    UnknownState {
        /// The state's name.
        state: String,
    },
    /// The instances that the call launches fail before they run.
    LateFailure {
        /// The cloud's error code.
        code: String,
        /// The cloud's message.
        message: String,
    },
    /// The operation that the call starts fails with these errors, and nothing else happens. Only
    /// for clouds with asynchronous operations; on EC2 the rule is never applied.
    OperationError {
        /// The errors, in order. Azure uses the first one.
        errors: Vec<Failure>,
    },
    /// The operation that the call reads has expired. Only for clouds with asynchronous operations;
    /// on EC2 the rule is never applied.
    OperationExpired,
    /// The response never comes, and the connection stays open.
    Hang {
        /// Before or after the effect.
        phase: Phase,
    },
    /// The call takes longer, in real time.
    Delay {
        /// Before or after the effect.
        phase: Phase,
        /// The delay; `millis` in JSON.
        #[serde(rename = "millis", with = "super::millis")]
        by: Duration,
    },
    /// Any error response; nothing is changed.
    Refused {
        /// The HTTP status. A status outside 400..600 becomes 500.
        status: u16,
        /// The cloud's code.
        code: String,
        /// The cloud's message.
        message: String,
    },
}

/// Whether a fault happens before or after the call has had its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before: the call has no effect.
    Before,
    /// After: the call has had its effect.
    After,
}

/// The error of an asynchronous operation.
///
/// ```
/// # #[cfg(feature = "gcp")] {
/// use fleetwright_emulators::gcp::{Failure, Fault};
///
/// let shortage = Failure::new("ZONE_RESOURCE_POOL_EXHAUSTED", "the zone has no capacity");
/// let fault = Fault::OperationError { errors: vec![shortage] };
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Failure {
    /// The cloud's code.
    pub code: String,
    /// The cloud's message.
    pub message: String,
}

impl Failure {
    /// Creates a failure from a code and a message.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }
}

/// An error that a fault or a token bucket returns instead of the call's own result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedError<'a> {
    /// Too many calls.
    Throttled,
    /// The credentials have expired.
    ExpiredCredentials,
    /// A permission is missing.
    Forbidden,
    /// There is no capacity.
    Capacity,
    /// A quota is exhausted.
    Quota,
    /// The cloud's internal error.
    Internal,
    /// The error of [`Fault::Refused`].
    Custom {
        /// The HTTP status, in 400..600.
        status: u16,
        /// The cloud's code.
        code: &'a str,
        /// The cloud's message.
        message: &'a str,
    },
}

impl Fault {
    /// Returns the error that the fault returns instead of the call's own result, if it does.
    pub(super) fn injected_error(&self) -> Option<InjectedError<'_>> {
        match self {
            Self::Throttled { .. } => Some(InjectedError::Throttled),
            Self::ExpiredCredentials => Some(InjectedError::ExpiredCredentials),
            Self::Forbidden => Some(InjectedError::Forbidden),
            Self::Capacity => Some(InjectedError::Capacity),
            Self::Quota => Some(InjectedError::Quota),
            Self::ServerError {
                phase: Phase::Before,
            } => Some(InjectedError::Internal),
            Self::Refused {
                status,
                code,
                message,
            } => {
                let status = Some(*status).filter(|status| (400..600).contains(status));
                Some(InjectedError::Custom {
                    status: status.unwrap_or(500),
                    code,
                    message,
                })
            }
            Self::ServerError {
                phase: Phase::After,
            }
            | Self::Lost { .. }
            | Self::Reset
            | Self::Truncated
            | Self::Malformed
            | Self::StaleRead
            | Self::EmptyPage
            | Self::RepeatedToken
            | Self::UnknownState { .. }
            | Self::LateFailure { .. }
            | Self::OperationError { .. }
            | Self::OperationExpired
            | Self::Hang { .. }
            | Self::Delay { .. } => None,
        }
    }

    /// Returns the seconds of the `Retry-After` header.
    pub(super) const fn retry_after_secs(&self) -> Option<u64> {
        if let Self::Throttled { retry_after_secs } = self {
            *retry_after_secs
        } else {
            None
        }
    }

    /// Whether only a cloud with asynchronous operations can inject it.
    pub(crate) const fn needs_operations(&self) -> bool {
        matches!(self, Self::OperationError { .. } | Self::OperationExpired)
    }
}

/// A fault and the calls that it is injected into.
///
/// In JSON: `{"operation": "RunInstances", "nth": 2, "fault": {"kind": "reset"}}`.
///
/// ```
/// # #[cfg(feature = "gcp")] {
/// use fleetwright_emulators::gcp::{Fault, FaultRule, Method, Phase};
///
/// // Every insert is lost before it has an effect.
/// FaultRule::always(Method::InstancesInsert, Fault::Lost { phase: Phase::Before });
/// // The third call of any method is throttled.
/// FaultRule::nth_of_any(3, Fault::Throttled { retry_after_secs: Some(1) });
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FaultRule<O> {
    /// The operation whose calls match; `None` matches the calls of all operations.
    #[serde(default = "any", skip_serializing_if = "Option::is_none")]
    pub operation: Option<O>,
    /// The number of the matching call that gets the fault, counted from 1 since the rule was
    /// added; `None` injects the fault into every matching call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u64>,
    /// The fault.
    pub fault: Fault,
}

const fn any<O>() -> Option<O> {
    None
}

impl<O: Operation> FaultRule<O> {
    /// Injects the fault into call number `nth` (from 1) of an operation.
    pub const fn nth(operation: O, nth: u64, fault: Fault) -> Self {
        Self::new(Some(operation), Some(nth), fault)
    }

    /// Injects the fault into every call of an operation.
    pub const fn always(operation: O, fault: Fault) -> Self {
        Self::new(Some(operation), None, fault)
    }

    /// Injects the fault into call number `nth` (from 1), counting all operations.
    pub const fn nth_of_any(nth: u64, fault: Fault) -> Self {
        Self::new(None, Some(nth), fault)
    }

    /// Injects the fault into every call.
    pub const fn always_any(fault: Fault) -> Self {
        Self::new(None, None, fault)
    }

    const fn new(operation: Option<O>, nth: Option<u64>, fault: Fault) -> Self {
        Self {
            operation,
            nth,
            fault,
        }
    }
}

impl<O: Operation> From<FaultRule<O>> for chaos::Rule<Fault> {
    fn from(rule: FaultRule<O>) -> Self {
        Self {
            operation: rule.operation.map(|operation| operation.name().to_owned()),
            when: rule.nth.map_or(chaos::When::Always, chaos::When::Nth),
            fault: rule.fault,
        }
    }
}

impl<O: Operation> From<chaos::Rule<Fault>> for FaultRule<O> {
    fn from(rule: chaos::Rule<Fault>) -> Self {
        Self {
            operation: rule.operation.as_deref().and_then(O::from_name),
            nth: match rule.when {
                chaos::When::Nth(nth) => Some(nth),
                chaos::When::Always => None,
            },
            fault: rule.fault,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cloud with one operation.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    enum TestOperation {
        Run,
    }

    impl Operation for TestOperation {
        fn name(self) -> &'static str {
            "Run"
        }

        fn from_name(name: &str) -> Option<Self> {
            (name == "Run").then_some(Self::Run)
        }
    }

    fn read(text: &str) -> Result<FaultRule<TestOperation>, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn rules_parse_as_documented_in_the_readme() {
        let text = r#"{"operation":"Run","nth":2,"fault":{"kind":"lost","phase":"after"}}"#;
        let rule = read(text).unwrap();
        let phase = Phase::After;
        assert_eq!(rule.fault, Fault::Lost { phase });
        assert_eq!(serde_json::to_string(&rule).unwrap(), text);
        let back = FaultRule::from(chaos::Rule::from(rule.clone()));
        assert_eq!(back, rule);
        let rule = read(r#"{"fault":{"kind":"delay","phase":"before","millis":15}}"#).unwrap();
        let (phase, by) = (Phase::Before, Duration::from_millis(15));
        assert_eq!(rule.fault, Fault::Delay { phase, by });
        assert!(read(r#"{"fault":{"kind":"earthquake"}}"#).is_err());
        assert!(read(r#"{"operation":"Runn","fault":{"kind":"reset"}}"#).is_err());
        assert!(read(r#"{"nht":1,"fault":{"kind":"reset"}}"#).is_err());
    }

    #[test]
    fn status_that_is_not_an_error_becomes_500() {
        for (requested, returned) in [(200, 500), (409, 409)] {
            let fault = Fault::Refused {
                status: requested,
                code: "X".to_owned(),
                message: String::new(),
            };
            let any = InjectedError::Custom {
                status: returned,
                code: "X",
                message: "",
            };
            assert_eq!(fault.injected_error(), Some(any));
        }
    }
}
