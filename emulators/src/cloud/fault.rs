//! What can go wrong between a client and an emulated cloud, and at which call.

use std::time::Duration;

use fleetwright_chaos as chaos;
use serde::{Deserialize, Serialize};

use super::Operation;

/// Something that goes wrong with one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Fault {
    /// The connection is closed without a reply: before the effect the request is lost, after it the
    /// reply.
    Lost {
        /// Before or after the effect.
        phase: Phase,
    },
    /// The call is carried out; the connection is reset in the middle of the reply's body.
    Reset,
    /// The call is carried out; the reply's document ends in the middle, in a whole HTTP message.
    Truncated,
    /// The call is carried out; the reply is a page of HTML with status 200.
    Malformed,
    /// Refused as one call too many; nothing is done. Few clouds say a time to come back; what stands
    /// between them and a client may.
    Throttled {
        /// The seconds of a `Retry-After` header.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_secs: Option<u64>,
    },
    /// The cloud's internal error.
    ServerError {
        /// Before or after the effect.
        phase: Phase,
    },
    /// A read sees the oldest that the lag allows.
    StaleRead,
    /// Refused as the cloud refuses credentials that ran out; nothing is done.
    ExpiredCredentials,
    /// Refused for want of a right; nothing is done.
    Forbidden,
    /// Refused for want of machines; nothing is done.
    Capacity,
    /// Refused for a quota; nothing is done.
    Quota,
    /// A page holds nothing, and its token leads on.
    EmptyPage,
    /// A page's token is the one it was asked for with, so that whoever follows it goes in circles.
    RepeatedToken,
    /// Every instance in the reply is in this state, which nobody knows.
    UnknownState {
        /// The state's name.
        state: String,
    },
    /// What is launched fails before it runs.
    LateFailure {
        /// The code of the reason.
        code: String,
        /// The words of the reason.
        message: String,
    },
    /// The operation that the call begins ends with these errors. For clouds that answer with
    /// operations; elsewhere it never strikes.
    OperationError {
        /// The errors, in order.
        errors: Vec<Failure>,
    },
    /// The operation that is asked for is not remembered any more. For clouds that answer with
    /// operations; elsewhere it never strikes.
    OperationExpired,
    /// The call never ends.
    Hang {
        /// Before or after the effect.
        phase: Phase,
    },
    /// The call takes longer.
    Delay {
        /// Before or after the effect.
        phase: Phase,
        /// By so much.
        #[serde(rename = "millis", with = "super::millis")]
        by: Duration,
    },
    /// Any refusal; nothing is done.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The cloud's code.
        code: String,
        /// The cloud's words.
        message: String,
    },
}

/// When a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The call has no effect.
    Before,
    /// The call has had its effect.
    After,
}

/// Why something that was begun fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Failure {
    /// The cloud's code.
    pub code: String,
    /// The cloud's words.
    pub message: String,
}

impl Failure {
    /// A failure.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }
}

/// A refusal that is not a call's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedError<'a> {
    /// One call too many.
    Throttled,
    /// The credentials have expired.
    ExpiredCredentials,
    /// A right is missing.
    Forbidden,
    /// There are no machines.
    Capacity,
    /// A quota is used up.
    Quota,
    /// The cloud's fault.
    Internal,
    /// Any error that a test asks for.
    Custom {
        /// The HTTP status, of an error.
        status: u16,
        /// The cloud's code.
        code: &'a str,
        /// The cloud's words.
        message: &'a str,
    },
}

impl Fault {
    /// The refusal that stands in for the call's own answer, if that is what the fault is.
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

    /// When a call that is refused is told to come back.
    pub(super) const fn retry_after_secs(&self) -> Option<u64> {
        if let Self::Throttled { retry_after_secs } = self {
            *retry_after_secs
        } else {
            None
        }
    }

    /// Whether only a cloud that answers with operations can do it.
    pub(crate) const fn needs_operations(&self) -> bool {
        matches!(self, Self::OperationError { .. } | Self::OperationExpired)
    }
}

/// A fault and the calls it strikes, as the control endpoint reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FaultRule<O> {
    /// The operation it strikes, or every one.
    #[serde(default = "any", skip_serializing_if = "Option::is_none")]
    pub operation: Option<O>,
    /// Which of its calls, from 1, counted from when the rule was added; every one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u64>,
    /// What happens then.
    pub fault: Fault,
}

const fn any<O>() -> Option<O> {
    None
}

impl<O: Operation> FaultRule<O> {
    /// Strikes call number `nth` (from 1) of an operation.
    pub const fn nth(operation: O, nth: u64, fault: Fault) -> Self {
        Self::new(Some(operation), Some(nth), fault)
    }

    /// Strikes every call of an operation.
    pub const fn always(operation: O, fault: Fault) -> Self {
        Self::new(Some(operation), None, fault)
    }

    /// Strikes call number `nth` (from 1), of whatever operation.
    pub const fn nth_of_any(nth: u64, fault: Fault) -> Self {
        Self::new(None, Some(nth), fault)
    }

    /// Strikes every call.
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
            operation: rule.operation.as_deref().and_then(O::named),
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

    /// A cloud's operations, of which there is one.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    enum Only {
        Run,
    }

    impl Operation for Only {
        fn name(self) -> &'static str {
            "Run"
        }

        fn named(name: &str) -> Option<Self> {
            (name == "Run").then_some(Self::Run)
        }
    }

    fn read(text: &str) -> Result<FaultRule<Only>, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn rules_are_read_as_the_readme_writes_them() {
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
    fn a_status_that_is_no_error_becomes_one() {
        for (asked, answered) in [(200, 500), (409, 409)] {
            let fault = Fault::Refused {
                status: asked,
                code: "X".to_owned(),
                message: String::new(),
            };
            let any = InjectedError::Custom {
                status: answered,
                code: "X",
                message: "",
            };
            assert_eq!(fault.injected_error(), Some(any));
        }
    }
}
