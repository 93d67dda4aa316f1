//! Azure's two states, of the latest operation and of the power, in one shared word. Pure.
//!
//! Owns what the two mean together. Neither is enough: a machine runs although its latest operation has
//! failed, and one that was never made has no power at all.

use fleetwright::CloudInstanceState;

use crate::machine::{Machine, Status};

const PROVISIONING: &str = "ProvisioningState/";
const POWER: &str = "PowerState/";

/// Off, and still held: it costs as if it ran.
pub(crate) const HELD: &str = "stopped";

/// The shared state of a machine.
pub(crate) fn normalize(machine: &Machine) -> CloudInstanceState {
    let provisioning = machine.provisioning.as_str();
    if provisioning.eq_ignore_ascii_case("Deleting") {
        return CloudInstanceState::Terminating;
    }
    // What is being made is not ready, even if it has power.
    if provisioning.eq_ignore_ascii_case("Creating") {
        return CloudInstanceState::Pending;
    }
    match power(machine) {
        Some("running") => CloudInstanceState::Running,
        Some("stopping" | "deallocating") => CloudInstanceState::Stopping,
        Some(HELD | "deallocated") => CloudInstanceState::Stopped,
        // One that nobody knows is neither ready nor gone.
        Some(_) => CloudInstanceState::Pending,
        None if never_made(machine) => CloudInstanceState::Terminating,
        None => CloudInstanceState::Pending,
    }
}

/// What Azure calls it: the power once there is any, else how its making goes.
pub(crate) fn native(machine: &Machine) -> String {
    let provisioning = &machine.provisioning;
    if provisioning.eq_ignore_ascii_case("Deleting") {
        return provisioning.clone();
    }
    power(machine).map_or_else(|| provisioning.clone(), ToOwned::to_owned)
}

/// The state of its power, such as `running`.
pub(crate) fn power(machine: &Machine) -> Option<&str> {
    let codes = machine.statuses.iter().map(|status| status.code.as_str());
    let mut powers = codes.filter_map(|code| strip(code, POWER));
    powers.next()
}

/// Whether it could not be made: its creation has failed, and it never had power. What is left of it holds
/// a name, a disk and an interface, and is no machine.
pub(crate) fn never_made(machine: &Machine) -> bool {
    let failed = machine.provisioning.eq_ignore_ascii_case("Failed");
    failed && !machine.statuses.is_empty() && power(machine).is_none()
}

/// Why its latest operation has failed: its code, and its words.
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
    // Some have no third part.
    let code = rest.split_once('/').map_or("", |(_, code)| code);
    Some((code, status.message.as_deref().unwrap_or_default()))
}

/// What comes after a prefix of any case.
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
            message: Some("words".to_owned()),
        };
        Machine {
            provisioning: provisioning.to_owned(),
            statuses: codes.iter().map(status).collect(),
            ..Machine::default()
        }
    }

    #[test]
    fn both_states_make_one() {
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
        // A view that is missing is no proof that nothing was made.
        assert_eq!(
            normalize(&machine("Failed", &[])),
            CloudInstanceState::Pending
        );
    }

    #[test]
    fn codes_of_any_number_of_parts_are_read() {
        let told = |code: &str| {
            let machine = machine("Failed", &["PowerState/running", code]);
            failure(&machine).map(|(code, words)| (code.to_owned(), words.to_owned()))
        };
        let words = "words".to_owned();
        assert_eq!(
            told("ProvisioningState/failed/AllocationFailed"),
            Some(("AllocationFailed".to_owned(), words.clone()))
        );
        assert_eq!(
            told("ProvisioningState/failed"),
            Some((String::new(), words))
        );
        assert_eq!(told("ProvisioningState/succeeded"), None);
        for odd in ["", "/", "ProvisioningState", "ProvisioningState/", "Päwer"] {
            assert_eq!(told(odd), None, "{odd}");
        }
        let deleting = machine("Deleting", &["PowerState/running"]);
        assert_eq!(native(&deleting), "Deleting");
        assert_eq!(native(&machine("Creating", &[])), "Creating");
    }
}
