//! Azure's two states, of the latest operation and of the power, as one shared state. Pure.
//!
//! Owns the meaning of their combinations. Neither is enough: a machine can run although its latest
//! operation failed, and one that was never created has no power state at all.
//!
//! | provisioning | power | shared |
//! | --- | --- | --- |
//! | Deleting | any | terminating |
//! | Creating | any | pending |
//! | Failed | none | terminating: it was never created |
//! | other | running | running |
//! | other | starting, none, unknown | pending |
//! | other | stopping, deallocating | stopping |
//! | other | stopped, deallocated | stopped |

use fleetwright::CloudInstanceState;

use crate::machine::{Machine, Status};

/// The prefix of the code of the latest operation.
const PROVISIONING: &str = "ProvisioningState/";
/// The prefix of the code of the power.
const POWER: &str = "PowerState/";

/// Off, but still allocated and billed.
pub(crate) const POWERED_OFF: &str = "stopped";

/// Returns the shared state of a machine.
pub(crate) fn normalize(machine: &Machine) -> CloudInstanceState {
    let provisioning = machine.provisioning.as_str();
    if provisioning.eq_ignore_ascii_case("Deleting") {
        return CloudInstanceState::Terminating;
    }
    // A machine that is being created is not ready, even if it has power.
    if provisioning.eq_ignore_ascii_case("Creating") {
        return CloudInstanceState::Pending;
    }
    match power(machine) {
        Some("running") => CloudInstanceState::Running,
        Some("stopping" | "deallocating") => CloudInstanceState::Stopping,
        Some(POWERED_OFF | "deallocated") => CloudInstanceState::Stopped,
        // An unknown state is neither ready nor ended.
        Some(_) => CloudInstanceState::Pending,
        None if never_created(machine) => CloudInstanceState::Terminating,
        None => CloudInstanceState::Pending,
    }
}

/// Returns the native state: that of the power if there is one, else that of the latest operation.
pub(crate) fn native(machine: &Machine) -> String {
    let provisioning = &machine.provisioning;
    if provisioning.eq_ignore_ascii_case("Deleting") {
        return provisioning.clone();
    }
    power(machine).map_or_else(|| provisioning.clone(), ToOwned::to_owned)
}

/// Returns the power state, such as `running`.
pub(crate) fn power(machine: &Machine) -> Option<&str> {
    let codes = machine.statuses.iter().map(|status| status.code.as_str());
    let mut powers = codes.filter_map(|code| strip(code, POWER));
    powers.next()
}

/// Whether the creation failed and the machine never had power. It holds a name, a disk and an
/// interface, and is not an instance. A missing instance view proves nothing.
pub(crate) fn never_created(machine: &Machine) -> bool {
    let failed = machine.provisioning.eq_ignore_ascii_case("Failed");
    failed && !machine.statuses.is_empty() && power(machine).is_none()
}

/// Returns why the latest operation failed: code and message.
pub(crate) fn failure(machine: &Machine) -> Option<(&str, &str)> {
    let of_operation = |status: &'_ Status| -> bool {
        strip(&status.code, PROVISIONING).is_some_and(|rest| {
            let first = rest.split('/').next().unwrap_or_default();
            first.eq_ignore_ascii_case("failed")
        })
    };
    let status = machine
        .statuses
        .iter()
        .find(|status| of_operation(status))?;
    let rest = strip(&status.code, PROVISIONING)?;
    // Some codes have no third part.
    let code = rest.split_once('/').map_or("", |(_, code)| code);
    Some((code, status.message.as_deref().unwrap_or_default()))
}

/// Returns the text after a prefix, which can have any letter case.
fn strip<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(provisioning: &str, codes: &[&str]) -> Machine {
        let status = |code: &&str| Status {
            code: (*code).to_owned(),
            message: Some("no capacity".to_owned()),
        };
        Machine {
            provisioning: provisioning.to_owned(),
            statuses: codes.iter().map(status).collect(),
            ..Machine::default()
        }
    }

    #[test]
    fn both_states_decide_the_shared_state() {
        let cases: [(&str, &[&str], CloudInstanceState); 16] = [
            ("Creating", &[], CloudInstanceState::Pending),
            (
                "Creating",
                &["PowerState/running"],
                CloudInstanceState::Pending,
            ),
            (
                "Succeeded",
                &["PowerState/running"],
                CloudInstanceState::Running,
            ),
            (
                "Updating",
                &["PowerState/running"],
                CloudInstanceState::Running,
            ),
            (
                "Failed",
                &["PowerState/running"],
                CloudInstanceState::Running,
            ),
            (
                "Succeeded",
                &["powerstate/running"],
                CloudInstanceState::Running,
            ),
            (
                "Succeeded",
                &["PowerState/starting"],
                CloudInstanceState::Pending,
            ),
            (
                "Updating",
                &["PowerState/stopping"],
                CloudInstanceState::Stopping,
            ),
            (
                "Updating",
                &["PowerState/deallocating"],
                CloudInstanceState::Stopping,
            ),
            (
                "Succeeded",
                &["PowerState/stopped"],
                CloudInstanceState::Stopped,
            ),
            (
                "Succeeded",
                &["PowerState/deallocated"],
                CloudInstanceState::Stopped,
            ),
            (
                "Failed",
                &["PowerState/deallocated"],
                CloudInstanceState::Stopped,
            ),
            (
                "Deleting",
                &["PowerState/running"],
                CloudInstanceState::Terminating,
            ),
            (
                "Succeeded",
                &["PowerState/defrosting"],
                CloudInstanceState::Pending,
            ),
            (
                "Failed",
                &["ProvisioningState/failed/X"],
                CloudInstanceState::Terminating,
            ),
            ("Succeeded", &[], CloudInstanceState::Pending),
        ];
        for (provisioning, codes, state) in cases {
            let machine = machine(provisioning, codes);
            assert_eq!(normalize(&machine), state, "{provisioning} {codes:?}");
        }
        // A missing instance view does not prove that the machine was never created.
        assert_eq!(
            normalize(&machine("Failed", &[])),
            CloudInstanceState::Pending
        );
    }

    #[test]
    fn codes_with_any_number_of_parts_are_read() {
        let failure_of = |code: &str| {
            let machine = machine("Failed", &["PowerState/running", code]);
            failure(&machine).map(|(code, message)| (code.to_owned(), message.to_owned()))
        };
        let message = "no capacity".to_owned();
        assert_eq!(
            failure_of("ProvisioningState/failed/AllocationFailed"),
            Some(("AllocationFailed".to_owned(), message.clone()))
        );
        assert_eq!(
            failure_of("ProvisioningState/failed"),
            Some((String::new(), message))
        );
        assert_eq!(failure_of("ProvisioningState/succeeded"), None);
        for odd in ["", "/", "ProvisioningState", "ProvisioningState/", "Päwer"] {
            assert_eq!(failure_of(odd), None, "{odd}");
        }
        let deleting = machine("Deleting", &["PowerState/running"]);
        assert_eq!(native(&deleting), "Deleting");
        assert_eq!(native(&machine("Creating", &[])), "Creating");
    }
}
