//! Conversion between EC2's state names and [`CloudInstanceState`]. Pure.
//!
//! EC2 has exactly one name for each shared state. A name that EC2 adds later must not end a wait,
//! neither as success nor as failure.

use fleetwright::CloudInstanceState;

/// Returns the shared state for an EC2 state name. An unknown name is `Pending`: neither ready nor terminated.
pub(crate) fn normalize(name: &str) -> CloudInstanceState {
    match name {
        "running" => CloudInstanceState::Running,
        "stopping" => CloudInstanceState::Stopping,
        "stopped" => CloudInstanceState::Stopped,
        "shutting-down" => CloudInstanceState::Terminating,
        "terminated" => CloudInstanceState::Terminated,
        _ => CloudInstanceState::Pending,
    }
}

/// Returns EC2's name of a shared state, for filters.
pub(crate) const fn native(state: CloudInstanceState) -> &'static str {
    match state {
        CloudInstanceState::Pending => "pending",
        CloudInstanceState::Running => "running",
        CloudInstanceState::Stopping => "stopping",
        CloudInstanceState::Stopped => "stopped",
        CloudInstanceState::Terminating => "shutting-down",
        CloudInstanceState::Terminated => "terminated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_convert_both_ways_and_unknown_names_are_pending() {
        for state in CloudInstanceState::ALL {
            assert_eq!(normalize(native(state)), state);
        }
        for unknown in ["", "hibernating", "RUNNING", "terminated "] {
            assert_eq!(normalize(unknown), CloudInstanceState::Pending, "{unknown}");
        }
    }
}
