//! What can go wrong between a client and the emulated EC2, and at which call.

use std::time::Duration;

use fleetwright_chaos as chaos;
use serde::{Deserialize, Serialize};

use super::{error::Refusal, wire::action::Action};

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
    /// `RequestLimitExceeded`, status 503; nothing is done. EC2 itself says no time to come back; what
    /// stands between it and a client may.
    Throttled {
        /// The seconds of a `Retry-After` header.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_secs: Option<u64>,
    },
    /// `InternalError`, status 500.
    ServerError {
        /// Before or after the effect.
        phase: Phase,
    },
    /// A read sees the oldest that the lag allows.
    StaleRead,
    /// `RequestExpired`, status 400, as EC2 answers credentials that ran out; nothing is done.
    ExpiredCredentials,
    /// `UnauthorizedOperation`, status 403; nothing is done.
    Forbidden,
    /// `InsufficientInstanceCapacity`, status 500; nothing is done.
    Capacity,
    /// `VcpuLimitExceeded`, status 400; nothing is done.
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
    FailsLate {
        /// The state reason's code, such as `Server.InternalError`.
        code: String,
        /// The state reason's words.
        message: String,
    },
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
        /// EC2's code.
        code: String,
        /// EC2's words.
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

impl Fault {
    /// The refusal that stands in for the call's own answer, if that is what the fault is.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Throttled { .. } => Some(Refusal::throttled()),
            Self::ExpiredCredentials => Some(Refusal::expired()),
            Self::Forbidden => Some(Refusal::unauthorized()),
            Self::Capacity => Some(Refusal::capacity("requested", "any")),
            Self::Quota => Some(Refusal::vcpu_quota(0)),
            Self::ServerError {
                phase: Phase::Before,
            } => Some(Refusal::internal()),
            Self::Refused {
                status,
                code,
                message,
            } => {
                let status = Some(*status).filter(|status| (400..600).contains(status));
                let code = code.clone();
                Some(Refusal::new(status.unwrap_or(500), code, message.as_str()))
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
            | Self::FailsLate { .. }
            | Self::Hang { .. }
            | Self::Delay { .. } => None,
        }
    }
}

/// A fault and the calls it strikes, as the control endpoint reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FaultRule {
    /// The action it strikes, or every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Action>,
    /// Which of its calls, from 1, counted from when the rule was added; every one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u64>,
    /// What happens then.
    pub fault: Fault,
}

impl FaultRule {
    /// Strikes call number `nth` (from 1) of an action.
    pub const fn nth(action: Action, nth: u64, fault: Fault) -> Self {
        Self::new(Some(action), Some(nth), fault)
    }

    /// Strikes every call of an action.
    pub const fn always(action: Action, fault: Fault) -> Self {
        Self::new(Some(action), None, fault)
    }

    /// Strikes call number `nth` (from 1), of whatever action.
    pub const fn nth_of_any(nth: u64, fault: Fault) -> Self {
        Self::new(None, Some(nth), fault)
    }

    /// Strikes every call.
    pub const fn always_any(fault: Fault) -> Self {
        Self::new(None, None, fault)
    }

    const fn new(operation: Option<Action>, nth: Option<u64>, fault: Fault) -> Self {
        Self {
            operation,
            nth,
            fault,
        }
    }
}

impl From<FaultRule> for chaos::Rule<Fault> {
    fn from(rule: FaultRule) -> Self {
        Self {
            operation: rule.operation.map(|action| action.name().to_owned()),
            when: rule.nth.map_or(chaos::When::Always, chaos::When::Nth),
            fault: rule.fault,
        }
    }
}

impl From<chaos::Rule<Fault>> for FaultRule {
    fn from(rule: chaos::Rule<Fault>) -> Self {
        Self {
            operation: rule.operation.as_deref().and_then(Action::named),
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

    #[test]
    fn rules_are_read_as_the_readme_writes_them() {
        let text =
            r#"{"operation":"RunInstances","nth":2,"fault":{"kind":"lost","phase":"after"}}"#;
        let rule: FaultRule = serde_json::from_str(text).unwrap();
        assert_eq!(
            rule.fault,
            Fault::Lost {
                phase: Phase::After
            }
        );
        assert_eq!(serde_json::to_string(&rule).unwrap(), text);
        let back = FaultRule::from(chaos::Rule::from(rule.clone()));
        assert_eq!(back, rule);
        let text = r#"{"fault":{"kind":"delay","phase":"before","millis":15}}"#;
        let rule: FaultRule = serde_json::from_str(text).unwrap();
        let by = Duration::from_millis(15);
        assert_eq!(
            rule.fault,
            Fault::Delay {
                phase: Phase::Before,
                by
            }
        );
        assert!(serde_json::from_str::<FaultRule>(r#"{"fault":{"kind":"earthquake"}}"#).is_err());
        let misspelt = r#"{"operation":"RunInstance","fault":{"kind":"reset"}}"#;
        assert!(serde_json::from_str::<FaultRule>(misspelt).is_err());
        assert!(
            serde_json::from_str::<FaultRule>(r#"{"nht":1,"fault":{"kind":"reset"}}"#).is_err()
        );
    }

    #[test]
    fn a_status_that_is_no_error_becomes_one() {
        let fault = |status| Fault::Refused {
            status,
            code: "X".to_owned(),
            message: String::new(),
        };
        assert_eq!(fault(200).refusal().unwrap().status, 500);
        assert_eq!(fault(409).refusal().unwrap().status, 409);
    }
}
