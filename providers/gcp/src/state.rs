//! Compute Engine's names of states, in the shared words. Pure.

use fleetwright::CloudInstanceState;

/// The shared state of Compute Engine's `name`. There, TERMINATED is a machine that is off and keeps its
/// disks; what is deleted has no state at all. One that nobody knows is pending: not ready, not gone.
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

/// Off, with its memory kept: it comes back by a resume, not by a start.
pub(crate) const SUSPENDED: &str = "SUSPENDED";

/// What the states that a filter wants are called, if all of them have names: states that nobody knows
/// are pending too, so pending cannot be asked for by name.
pub(crate) fn natives(wanted: &[CloudInstanceState]) -> Option<Vec<&'static str>> {
    let names = wanted.iter().map(|state| match state {
        CloudInstanceState::Pending => None,
        CloudInstanceState::Running => Some(&["RUNNING"][..]),
        // What is being deleted is stopping by name.
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
    fn every_native_state_has_its_word_and_unknown_ones_are_pending() {
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
    fn a_state_s_names_mean_that_state() {
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
