//! What EC2 has, from its service model: the names of its actions, and the parameters of those that are emulated.
//!
//! A parameter that EC2 has is never called unknown. At its default it is accepted, because a request without it means the
//! same; otherwise it is refused as not emulated. `emulators/models/ec2` writes the names.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use super::action::Action;

/// The names, as `emulators/models/ec2` writes them.
const NAMES: &str = include_str!("../../../models/ec2_parameters.txt");

/// Defaults that are not false, zero or empty: the parameter in any action, and its values that change nothing. From the Amazon
/// EC2 API reference, at the types "`InstanceMaintenanceOptionsRequest`", "`CapacityReservationSpecification`",
/// "`PrivateDnsNameOptionsRequest`", "`InstanceNetworkInterfaceSpecification`", "`InstanceMetadataOptionsRequest`", "`Placement`",
/// "`InstanceNetworkPerformanceOptionsRequest`", "`CreateVpc`", "`AllocateAddress`", "`CpuOptionsRequest`".
const DEFAULTS: [(&str, &[&str]); 17] = [
    (
        "CapacityReservationSpecification.CapacityReservationPreference",
        &["open"],
    ),
    ("CpuOptions.AmdSevSnp", &["disabled"]),
    ("CpuOptions.NestedVirtualization", &["disabled"]),
    ("Domain", &["vpc"]),
    ("EnaSupport.Value", &["true"]),
    ("EnableDnsSupport.Value", &["true"]),
    ("InstanceTenancy", &["default"]),
    ("MaintenanceOptions.AutoRecovery", &["default"]),
    ("MaintenanceOptions.RebootMigration", &["default"]),
    ("MetadataOptions.HttpProtocolIpv6", &["disabled"]),
    ("HttpProtocolIpv6", &["disabled"]),
    ("NetworkInterface.N.InterfaceType", &["interface"]),
    ("NetworkPerformanceOptions.BandwidthWeighting", &["default"]),
    ("Operator.Principal", &[""]),
    ("Placement.Affinity", &["default"]),
    ("PrivateDnsNameOptions.HostnameType", &["ip-name"]),
    ("Type", &["ipv4"]),
];

/// The types of the parameters of an action, by name.
type Names = BTreeMap<&'static str, &'static str>;

/// The names of all actions of EC2.
static ACTIONS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
    NAMES
        .lines()
        .next()
        .unwrap_or_default()
        .split(' ')
        .collect()
});

/// The parameters of the emulated actions.
static PARAMETERS: LazyLock<BTreeMap<&str, Names>> = LazyLock::new(|| {
    let (mut all, mut action) = (BTreeMap::new(), "");
    for line in NAMES.lines().skip(1) {
        match line.split_once(' ') {
            None => action = line,
            Some((name, kind)) => {
                all.entry(action)
                    .or_insert_with(Names::new)
                    .insert(name, kind);
            }
        }
    }
    all
});

/// What the emulator makes of a parameter that its action does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    /// EC2 has it, and a request without it means the same.
    Default,
    /// EC2 has it, and the emulator has not.
    NotEmulated,
    /// EC2 does not have it.
    Unknown,
}

/// Whether EC2 has an action.
pub(crate) fn is_action(name: &str) -> bool {
    ACTIONS.contains(name)
}

/// Returns what the emulator makes of a parameter that its action does not read.
pub(crate) fn parameter(action: Action, name: &str, value: &str) -> Parameter {
    let pattern = pattern(name);
    let names = PARAMETERS.get(action.name());
    let Some(kind) = names.and_then(|names| names.get(pattern.as_str())) else {
        return Parameter::Unknown;
    };
    let listed = DEFAULTS.iter().find(|(known, _)| *known == pattern);
    let is_default = match (listed, *kind) {
        (Some((_, values)), _) => value.is_empty() || values.contains(&value),
        (None, "b") => value.eq_ignore_ascii_case("false") || value == "0",
        (None, "n") => value == "0",
        (None, _) => value.is_empty(),
    };
    if is_default {
        Parameter::Default
    } else {
        Parameter::NotEmulated
    }
}

/// Returns a name with `N` for the numbers in it.
fn pattern(name: &str) -> String {
    let part = |part: &'_ str| {
        let number: Option<u32> = part.parse().ok();
        // `01` and `+1` are no numbers in EC2's protocol.
        let is_number = number.is_some_and(|number| number.to_string() == part);
        if is_number {
            "N".to_owned()
        } else {
            part.to_owned()
        }
    };
    name.split('.').map(part).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_accepted_at_their_default_refused_by_name_or_unknown() {
        let run = |name: &str, value: &str| parameter(Action::RunInstances, name, value);
        for (name, value) in [
            ("HibernationOptions.Configured", "false"),
            ("EnclaveOptions.Enabled", "False"),
            ("MaintenanceOptions.AutoRecovery", "default"),
            ("NetworkInterface.1.Ipv6AddressCount", "0"),
            ("KernelId", ""),
        ] {
            assert_eq!(run(name, value), Parameter::Default, "{name}");
        }
        for (name, value) in [
            ("HibernationOptions.Configured", "true"),
            ("MaintenanceOptions.AutoRecovery", "disabled"),
            ("NetworkInterface.1.Ipv6AddressCount", "1"),
            ("LicenseSpecification.3.LicenseConfigurationArn", "arn"),
        ] {
            assert_eq!(run(name, value), Parameter::NotEmulated, "{name}");
        }
        for name in [
            "Colour",
            "NetworkInterface.Ipv6AddressCount",
            "NetworkInterface.01.Ipv6AddressCount",
        ] {
            assert_eq!(run(name, "0"), Parameter::Unknown, "{name}");
        }
    }

    #[test]
    fn model_has_every_action_of_ec2_that_is_emulated() {
        for action in Action::ALL {
            let of_ec2 = action != Action::GetCallerIdentity;
            assert_eq!(is_action(action.name()), of_ec2, "{action:?}");
            assert_eq!(PARAMETERS.contains_key(action.name()), of_ec2, "{action:?}");
        }
        assert!(is_action("CreateFleet") && !is_action("CreatePonies"));
    }
}
