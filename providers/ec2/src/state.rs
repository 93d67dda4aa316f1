//! EC2's names of states, in the shared words. Pure.

use fleetwright::CloudInstanceState;

/// The shared state of EC2's `name`. One that nobody knows is pending: it is not ready, and not gone.
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

/// EC2's name of a shared state, for filters.
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
    fn names_go_both_ways_and_unknown_ones_are_pending() {
        for state in CloudInstanceState::ALL {
            assert_eq!(normalize(native(state)), state);
        }
        for odd in ["", "hibernating", "RUNNING", "terminated "] {
            assert_eq!(normalize(odd), CloudInstanceState::Pending, "{odd}");
        }
    }
}
