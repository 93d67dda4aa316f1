//! Compute Engine's states as shared states. Pure.
//!
//! Owns the table of states. An unknown state is never reported as ended.
//!
//! | native | shared |
//! | --- | --- |
//! | PROVISIONING, STAGING, PENDING, REPAIRING, unknown | pending |
//! | RUNNING | running |
//! | STOPPING, PENDING_STOP, SUSPENDING, DEPROVISIONING | stopping, or terminating if an operation deletes it |
//! | TERMINATED, STOPPED, SUSPENDED | stopped |

use fleetwright::CloudInstanceState;

/// Returns the shared state of a native state. TERMINATED is an instance that is off and keeps its
/// disks; a deleted one has no state at all. An unknown state is pending: not ready, and not ended.
pub(crate) fn normalize(name: &str) -> CloudInstanceState {
    match name {
        "RUNNING" => CloudInstanceState::Running,
        "STOPPING" | "PENDING_STOP" | "SUSPENDING" | "DEPROVISIONING" => {
            CloudInstanceState::Stopping
        }
        "TERMINATED" | "STOPPED" | SUSPENDED => CloudInstanceState::Stopped,
        _ => CloudInstanceState::Pending,
    }
}

/// Off, with its memory kept. A resume starts it, not a start.
pub(crate) const SUSPENDED: &str = "SUSPENDED";

/// Returns the native names of shared states, for a filter. `None` if they include pending, because
/// every unknown native state counts as pending.
pub(crate) fn natives(wanted: &[CloudInstanceState]) -> Option<Vec<&'static str>> {
    let names = wanted.iter().map(|state| match state {
        CloudInstanceState::Pending => None,
        CloudInstanceState::Running => Some(&["RUNNING"][..]),
        // An instance that is being deleted has the name of a stopping one.
        CloudInstanceState::Stopping | CloudInstanceState::Terminating => {
            Some(&["STOPPING", "PENDING_STOP", "SUSPENDING", "DEPROVISIONING"][..])
        }
        CloudInstanceState::Stopped => Some(&["TERMINATED", "STOPPED", SUSPENDED][..]),
        CloudInstanceState::Terminated => Some(&[][..]),
    });
    let names: Option<Vec<_>> = names.collect();
    let mut names = names?.concat();
    names.sort_unstable();
    names.dedup();
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_states_are_mapped_and_unknown_ones_are_pending() {
        let cases = [
            ("PROVISIONING", CloudInstanceState::Pending),
            ("STAGING", CloudInstanceState::Pending),
            ("PENDING", CloudInstanceState::Pending),
            ("REPAIRING", CloudInstanceState::Pending),
            ("RUNNING", CloudInstanceState::Running),
            ("STOPPING", CloudInstanceState::Stopping),
            ("PENDING_STOP", CloudInstanceState::Stopping),
            ("SUSPENDING", CloudInstanceState::Stopping),
            ("DEPROVISIONING", CloudInstanceState::Stopping),
            ("TERMINATED", CloudInstanceState::Stopped),
            ("STOPPED", CloudInstanceState::Stopped),
            ("SUSPENDED", CloudInstanceState::Stopped),
            ("", CloudInstanceState::Pending),
            ("running", CloudInstanceState::Pending),
            ("DEFROSTING", CloudInstanceState::Pending),
        ];
        for (name, state) in cases {
            assert_eq!(normalize(name), state, "{name}");
        }
    }

    #[test]
    fn native_names_map_back_to_their_state() {
        for state in CloudInstanceState::ALL {
            let names = natives(&[state]);
            assert_eq!(names.is_none(), state == CloudInstanceState::Pending);
            for name in names.unwrap_or_default() {
                let means = normalize(name);
                let deleted = state == CloudInstanceState::Terminating;
                assert!(means == state || deleted && means == CloudInstanceState::Stopping);
            }
        }
        let both = natives(&[
            CloudInstanceState::Stopping,
            CloudInstanceState::Terminating,
        ])
        .unwrap();
        assert_eq!(both.len(), 4, "{both:?}");
    }
}
