//! The faults of the kit on the wire.

use std::time::Duration;

use fleetwright_contract_tests::{WireFault, WireOp};
use serde::Deserialize;
use serde_json::{Value, json};

/// The kinds of faults, by the names that a backend declares and a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FaultKind {
    Throttled,
    BadCredentials,
    Forbidden,
    Capacity,
    Quota,
    RequestLost,
    ResponseLost,
    ServerErrorBefore,
    ServerErrorAfter,
    Malformed,
    StaleRead,
    UnknownState,
    FailsLate,
    Hang,
    CrashBefore,
    CrashAfter,
}

impl FaultKind {
    /// Returns the kind of a fault.
    pub(crate) const fn of(fault: &WireFault) -> Self {
        match fault {
            WireFault::Throttled(_) => Self::Throttled,
            WireFault::BadCredentials => Self::BadCredentials,
            WireFault::Forbidden => Self::Forbidden,
            WireFault::Capacity => Self::Capacity,
            WireFault::Quota => Self::Quota,
            WireFault::RequestLost => Self::RequestLost,
            WireFault::ResponseLost => Self::ResponseLost,
            WireFault::ServerErrorBefore => Self::ServerErrorBefore,
            WireFault::ServerErrorAfter => Self::ServerErrorAfter,
            WireFault::Malformed => Self::Malformed,
            WireFault::StaleRead => Self::StaleRead,
            WireFault::UnknownState(_) => Self::UnknownState,
            WireFault::FailsLate(_) => Self::FailsLate,
            WireFault::Hang => Self::Hang,
            WireFault::CrashBefore => Self::CrashBefore,
            WireFault::CrashAfter => Self::CrashAfter,
        }
    }

    /// Returns whether the fault is the death of the process.
    pub(crate) const fn is_crash(self) -> bool {
        matches!(self, Self::CrashBefore | Self::CrashAfter)
    }

    /// Returns the name on the wire.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Throttled => "throttled",
            Self::BadCredentials => "bad_credentials",
            Self::Forbidden => "forbidden",
            Self::Capacity => "capacity",
            Self::Quota => "quota",
            Self::RequestLost => "request_lost",
            Self::ResponseLost => "response_lost",
            Self::ServerErrorBefore => "server_error_before",
            Self::ServerErrorAfter => "server_error_after",
            Self::Malformed => "malformed",
            Self::StaleRead => "stale_read",
            Self::UnknownState => "unknown_state",
            Self::FailsLate => "fails_late",
            Self::Hang => "hang",
            Self::CrashBefore => "crash_before",
            Self::CrashAfter => "crash_after",
        }
    }
}

/// Returns a fault as a request has it: its kind, and what the kind needs.
pub(crate) fn fault_form(fault: &WireFault) -> Value {
    let mut form = json!({ "kind": FaultKind::of(fault).name() });
    match fault {
        WireFault::Throttled(delay) => form["delay_ms"] = json!(millis(*delay)),
        WireFault::UnknownState(state) => form["state"] = json!(state),
        WireFault::FailsLate(code) => form["code"] = json!(code),
        WireFault::BadCredentials
        | WireFault::Forbidden
        | WireFault::Capacity
        | WireFault::Quota
        | WireFault::RequestLost
        | WireFault::ResponseLost
        | WireFault::ServerErrorBefore
        | WireFault::ServerErrorAfter
        | WireFault::Malformed
        | WireFault::StaleRead
        | WireFault::Hang
        | WireFault::CrashBefore
        | WireFault::CrashAfter => {}
    }
    form
}

/// Returns the name of the calls that a fault is injected into.
pub(crate) const fn operation_name(operation: WireOp) -> &'static str {
    match operation {
        WireOp::Any => "any",
        WireOp::Launch => "launch",
        WireOp::Terminate => "terminate",
        WireOp::Stop => "stop",
        WireOp::Start => "start",
        WireOp::Describe => "describe",
        WireOp::List => "list",
        WireOp::FindLaunch => "find_launch",
        WireOp::UpdateTags => "update_tags",
    }
}

/// Returns whole milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_a_declaration_has() {
        for fault in WireFault::AMBIGUOUS {
            let kind = FaultKind::of(&fault);
            let declared: FaultKind = serde_json::from_value(json!(kind.name())).unwrap();
            assert_eq!(declared, kind);
        }
        let late = fault_form(&WireFault::FailsLate("Server.InternalError".to_owned()));
        assert_eq!(
            late,
            json!({"kind": "fails_late", "code": "Server.InternalError"})
        );
        let throttled = fault_form(&WireFault::Throttled(Duration::from_secs(7)));
        assert_eq!(throttled, json!({"kind": "throttled", "delay_ms": 7000}));
    }
}
