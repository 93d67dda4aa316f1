//! What EC2's capacity and quota errors are about. Pure.
//!
//! Owns how a launch and EC2's message become a [`Scope`]. It must never be wider than the error, because
//! callers avoid everything inside it: a subnet belongs to one zone, so missing capacity in it says
//! nothing about other zones, and a vCPU quota is that of one group of types on one market.

use fleetwright::{InstanceType, Market, NetworkId, Scope, TypeFamily, Zone};
use fleetwright_provider_support::ErrorContext;

/// Returns the offering of a launch, for a capacity error; the region if the call was not a launch.
///
/// EC2 names the zone in its message, also if only the subnet chose it. The request's own zone comes
/// second, because a subnet overrides it. Without any zone, the subnet says where capacity is missing.
pub(crate) fn offering(context: &ErrorContext<'_>, message: &str) -> Scope {
    let Some(config) = context.config else {
        return Scope::Region;
    };
    let instance_type = config.instance_type.clone();
    let market = Some(config.placement.market.unwrap_or(Market::OnDemand));
    let zone = zone_in(message).or_else(|| context.zone.cloned());
    match (zone, context.network) {
        (None, Some(network)) => Scope::OfferingInNetwork {
            instance_type,
            network: network.clone(),
            market,
        },
        (zone, _) => Scope::Offering {
            instance_type: Some(instance_type),
            zone,
            market,
        },
    }
}

/// Returns the zone of a launch for every type and market, for capacity that is not that of a type, such as
/// disks; the offering if the zone is unknown.
pub(crate) fn zone(context: &ErrorContext<'_>, message: &str) -> Scope {
    let zone = zone_in(message).or_else(|| context.zone.cloned());
    match zone {
        Some(zone) => Scope::Offering {
            instance_type: None,
            zone: Some(zone),
            market: None,
        },
        None => offering(context, message),
    }
}

/// Returns the subnet of a launch, whose addresses are used up for every instance type.
pub(crate) fn subnet(context: &ErrorContext<'_>, message: &str) -> Scope {
    let named = || {
        let at = message.find("subnet-")?;
        let name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let end = message[at..].find(|c| !name(c));
        let end = end.map_or(message.len(), |end| at + end);
        NetworkId::new(&message[at..end]).ok()
    };
    let subnet = context.network.cloned().or_else(named);
    subnet.map_or_else(|| offering(context, message), Scope::Network)
}

/// Returns the scope of a vCPU quota: the types that share it, on one market; the region if the call was
/// not a launch.
pub(crate) fn vcpu_quota(context: &ErrorContext<'_>, market: Option<Market>) -> Scope {
    let Some(config) = context.config else {
        return Scope::Region;
    };
    let requested = config.placement.market.unwrap_or(Market::OnDemand);
    Scope::Family {
        family: family(&config.instance_type),
        zones: None,
        market: Some(market.unwrap_or(requested)),
    }
}

/// Returns the scope of a limit on the instances of one type.
pub(crate) fn type_quota(context: &ErrorContext<'_>) -> Scope {
    let Some(config) = context.config else {
        return Scope::Region;
    };
    Scope::Offering {
        instance_type: Some(config.instance_type.clone()),
        zone: None,
        market: Some(config.placement.market.unwrap_or(Market::OnDemand)),
    }
}

/// Returns the types that share a vCPU quota with this one: one quota for the types A, C, D, H, I, M, R,
/// T and Z, one for G and VT, and one for each other letter ("Amazon EC2 instance type quotas").
fn family(instance_type: &InstanceType) -> TypeFamily {
    let name = instance_type.as_str();
    let end = name.find(|c: char| !c.is_ascii_alphabetic());
    let letters = &name[..end.unwrap_or(name.len())];
    match letters {
        "a" | "c" | "d" | "h" | "i" | "im" | "is" | "m" | "r" | "t" | "z" => TypeFamily::new([
            "a#*", "c#*", "d#*", "h#*", "i#*", "im#*", "is#*", "m#*", "r#*", "t#*", "z#*",
        ]),
        "g" | "gr" | "vt" => TypeFamily::new(["g#*", "gr#*", "vt#*"]),
        // High memory: `u-6tb1.metal`, `u7i-12tb.224xlarge`.
        "u" => TypeFamily::new(["u-*", "u#*"]),
        letters => TypeFamily::new([format!("{letters}#*")]),
    }
}

/// Returns the zone that a message names in brackets after the words "Availability Zone", such as
/// "in the Availability Zone you requested (us-east-1a)". What follows lists other zones.
fn zone_in(message: &str) -> Option<Zone> {
    let (_, rest) = message.split_once("vailability Zone")?;
    let sentence = rest.split(". ").next()?;
    let (_, rest) = sentence.split_once('(')?;
    let (name, _) = rest.split_once(')')?;
    let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name = name.chars().all(valid) && name.contains('-');
    Zone::new(name).ok().filter(|_| is_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::InstanceConfig;

    const NO_CAPACITY: &str = "We currently do not have sufficient m7i.large capacity in the \
        Availability Zone you requested (us-east-1b). Our system will be working on provisioning \
        additional capacity. You can currently get m7i.large capacity by not specifying an Availability \
        Zone in your request or choosing us-east-1a, us-east-1c.";

    #[test]
    fn zone_of_a_message_is_the_one_without_capacity() {
        let not_offered = "Your requested instance type (t3.micro) is not supported in your \
            requested Availability Zone (us-east-1e). Please retry your request by not specifying an \
            Availability Zone or choosing us-east-1a.";
        for (message, zone) in [
            (NO_CAPACITY, Some("us-east-1b")),
            (not_offered, Some("us-east-1e")),
            ("no capacity in zones with support for 'gp2' volumes", None),
            ("in the Availability Zone. (us-east-1a)", None),
            ("in the Availability Zone (of your choice)", None),
            ("in the Availability Zone (", None),
            ("", None),
        ] {
            assert_eq!(
                zone_in(message).as_ref().map(Zone::as_str),
                zone,
                "{message}"
            );
        }
    }

    #[test]
    fn missing_capacity_is_about_the_zone_or_else_the_subnet() {
        let mut config = InstanceConfig::builder("ami-1", "m7i.large")
            .build()
            .unwrap();
        config.placement.market = Some(Market::Spot);
        let (zone, subnet): (Zone, NetworkId) =
            ("us-east-1a".parse().unwrap(), "subnet-1".parse().unwrap());
        let context = |zone, network| ErrorContext {
            config: Some(&config),
            zone,
            network,
            ..ErrorContext::default()
        };
        let in_zone = |zone: Option<&str>| Scope::Offering {
            instance_type: Some(config.instance_type.clone()),
            zone: zone.map(|zone| zone.parse().unwrap()),
            market: Some(Market::Spot),
        };
        let cases = [
            (
                Some(&zone),
                Some(&subnet),
                NO_CAPACITY,
                in_zone(Some("us-east-1b")),
            ),
            (Some(&zone), Some(&subnet), "", in_zone(Some("us-east-1a"))),
            (None, None, "", in_zone(None)),
            (
                None,
                Some(&subnet),
                "",
                Scope::OfferingInNetwork {
                    instance_type: config.instance_type.clone(),
                    network: subnet.clone(),
                    market: Some(Market::Spot),
                },
            ),
        ];
        for (zone, subnet, message, scope) in cases {
            assert_eq!(
                offering(&context(zone, subnet), message),
                scope,
                "{message}"
            );
        }
        assert_eq!(
            offering(&ErrorContext::default(), NO_CAPACITY),
            Scope::Region
        );
        let full = "There are not enough free addresses in subnet 'subnet-9f' to satisfy it";
        let named = Scope::Network("subnet-9f".parse().unwrap());
        assert_eq!(super::subnet(&context(None, None), full), named);
        assert_eq!(
            super::subnet(&context(None, Some(&subnet)), full),
            Scope::Network(subnet.clone())
        );
        assert_eq!(super::subnet(&context(None, None), ""), in_zone(None));
    }

    #[test]
    fn types_of_one_vcpu_quota_are_one_family() {
        let groups: [&[&str]; 5] = [
            &[
                "m7i.large",
                "c5.large",
                "t3.micro",
                "im4gn.large",
                "z1d.large",
            ],
            &["g5.xlarge", "vt1.3xlarge", "gr6.4xlarge"],
            &["u-6tb1.metal", "u7i-12tb.224xlarge"],
            &["trn1.2xlarge"],
            &["mac2.metal"],
        ];
        let types = |names: &[&str]| -> Vec<InstanceType> {
            names.iter().map(|name| name.parse().unwrap()).collect()
        };
        for (at, group) in groups.iter().enumerate() {
            for one in types(group) {
                let family = family(&one);
                for (other_at, others) in groups.iter().enumerate() {
                    for other in types(others) {
                        assert_eq!(family.contains(&other), at == other_at, "{one} {other}");
                    }
                }
            }
        }
    }
}
