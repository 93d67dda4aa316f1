//! The rules of a security group: the traffic that it allows. Traffic that no rule allows is blocked.

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};

use super::Prefix;

/// The largest number of rules of a group.
pub const MAX_RULES: usize = 100;

/// The direction of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To the server.
    Ingress,
    /// From the server.
    Egress,
}

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// All protocols.
    Any,
    /// ICMP.
    Icmp,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// Returns whether the protocol has ports.
    pub const fn has_ports(self) -> bool {
        match self {
            Self::Tcp | Self::Udp => true,
            Self::Any | Self::Icmp => false,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Icmp => "icmp",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// A range of ports, including both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ports {
    first: u16,
    last: u16,
}

impl Ports {
    /// Returns the first port.
    pub const fn first(self) -> u16 {
        self.first
    }

    /// Returns the last port. For a single port it is the first.
    pub const fn last(self) -> u16 {
        self.last
    }
}

/// Traffic that is allowed: a direction, a protocol, and optionally ports and addresses.
///
/// In JSON a rule has the fields `direction`, `protocol`, `port`, `portMax` and `prefix`, of which the last three are
/// optional.
///
/// ```
/// use fleetwright_region::network::{Direction, Protocol, Rule};
///
/// let https = Rule::new(Direction::Ingress, Protocol::Tcp, (Some(443), None), None)?;
/// assert_eq!(https.ports().map(|ports| (ports.first(), ports.last())), Some((443, 443)));
/// assert!(Rule::new(Direction::Ingress, Protocol::Icmp, (Some(1), None), None).is_err());
/// # Ok::<(), fleetwright_region::network::InvalidRule>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "RuleJson", into = "RuleJson")]
pub struct Rule {
    direction: Direction,
    protocol: Protocol,
    ports: Option<Ports>,
    prefix: Option<Prefix>,
}

/// The JSON form of a rule, in records and APIs.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RuleJson {
    direction: Direction,
    protocol: Protocol,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    port_max: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prefix: Option<Prefix>,
}

/// Why a rule, or a list of rules, is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRule {
    /// The protocol has no ports.
    #[error("a rule for {0} cannot have ports: leave them out, or choose tcp or udp")]
    NoPorts(&'static str),
    /// The range has no first port.
    #[error("a rule has portMax {0} and no port: give the first port too")]
    NoFirstPort(u16),
    /// The last port is below the first.
    #[error("a rule has port {first} above portMax {last}: expected port at or below portMax")]
    Reversed {
        /// The first port.
        first: u16,
        /// The last port.
        last: u16,
    },
    /// Port 0 is not a port that can be used.
    #[error("a rule has port 0: expected 1 to 65535")]
    PortZero,
    /// Two rules are equal.
    #[error("rules {first} and {second} are the same: leave one out")]
    Duplicate {
        /// The position of the first, counted from 1.
        first: usize,
        /// The position of the second, counted from 1.
        second: usize,
    },
    /// There are more than [`MAX_RULES`].
    #[error("there are {0} rules: expected at most {MAX_RULES}")]
    TooMany(usize),
}

impl Rule {
    /// Creates a rule. `(None, None)` means all ports, `(Some(port), None)` one port, and no prefix means all addresses.
    ///
    /// # Errors
    ///
    /// The protocol has no ports, or the ports are not a range within 1 to 65535.
    pub fn new(
        direction: Direction,
        protocol: Protocol,
        (port, port_max): (Option<u16>, Option<u16>),
        prefix: Option<Prefix>,
    ) -> Result<Self, InvalidRule> {
        let ports = match (port, port_max) {
            (None, None) => None,
            (Some(_), _) | (None, Some(_)) if !protocol.has_ports() => {
                return Err(InvalidRule::NoPorts(protocol.as_str()));
            }
            (None, Some(last)) => return Err(InvalidRule::NoFirstPort(last)),
            (Some(0), _) => return Err(InvalidRule::PortZero),
            (Some(first), Some(last)) if first > last => {
                return Err(InvalidRule::Reversed { first, last });
            }
            (Some(first), last) => Some(Ports {
                first,
                last: last.unwrap_or(first),
            }),
        };
        Ok(Self {
            direction,
            protocol,
            ports,
            prefix,
        })
    }

    /// Returns the direction.
    pub const fn direction(self) -> Direction {
        self.direction
    }

    /// Returns the protocol.
    pub const fn protocol(self) -> Protocol {
        self.protocol
    }

    /// Returns the ports. `None` means all.
    pub const fn ports(self) -> Option<Ports> {
        self.ports
    }

    /// Returns the remote addresses. `None` means all.
    pub const fn prefix(self) -> Option<Prefix> {
        self.prefix
    }
}

impl TryFrom<RuleJson> for Rule {
    type Error = InvalidRule;
    fn try_from(json: RuleJson) -> Result<Self, InvalidRule> {
        let ports = (json.port, json.port_max);
        Self::new(json.direction, json.protocol, ports, json.prefix)
    }
}

impl From<Rule> for RuleJson {
    fn from(rule: Rule) -> Self {
        let several = |ports: &Ports| ports.last != ports.first;
        Self {
            direction: rule.direction,
            protocol: rule.protocol,
            port: rule.ports.map(Ports::first),
            port_max: rule.ports.filter(several).map(Ports::last),
            prefix: rule.prefix,
        }
    }
}

/// The rules of a group, in the order in which they were given, without duplicates. The default is none.
///
/// ```
/// use fleetwright_region::network::Rules;
///
/// let rules: Rules = serde_json::from_str(
///     r#"[{ "direction": "ingress", "protocol": "tcp", "port": 22, "prefix": "10.0.0.0/8" }]"#,
/// )?;
/// assert_eq!(rules.iter().count(), 1);
/// let twice: Vec<_> = rules.iter().chain(rules.iter()).collect();
/// assert!(Rules::new(twice).is_err(), "two rules are equal");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Rule>", into = "Vec<Rule>")]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Creates a list of rules.
    ///
    /// # Errors
    ///
    /// There are more than [`MAX_RULES`], or two are equal.
    pub fn new(rules: Vec<Rule>) -> Result<Self, InvalidRule> {
        if rules.len() > MAX_RULES {
            return Err(InvalidRule::TooMany(rules.len()));
        }
        let mut unique = BTreeSet::new();
        for (second, rule) in rules.iter().enumerate() {
            if !unique.insert(rule) {
                let first = rules.iter().position(|other| other == rule);
                return Err(InvalidRule::Duplicate {
                    first: first.unwrap_or(second) + 1,
                    second: second + 1,
                });
            }
        }
        Ok(Self(rules))
    }

    /// Returns the rules in their order.
    pub fn iter(&self) -> impl Iterator<Item = Rule> {
        self.0.iter().copied()
    }
}

impl TryFrom<Vec<Rule>> for Rules {
    type Error = InvalidRule;
    fn try_from(rules: Vec<Rule>) -> Result<Self, InvalidRule> {
        Self::new(rules)
    }
}

impl From<Rules> for Vec<Rule> {
    fn from(rules: Rules) -> Self {
        rules.0
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rule(json: &str) -> Result<Rule, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn invalid_rule_is_refused_with_the_reason() {
        let table = [
            (
                r#"{"direction":"ingress","protocol":"icmp","port":1}"#,
                "a rule for icmp cannot have ports: leave them out, or choose tcp or udp",
            ),
            (
                r#"{"direction":"ingress","protocol":"any","portMax":1}"#,
                "a rule for any cannot have ports: leave them out, or choose tcp or udp",
            ),
            (
                r#"{"direction":"ingress","protocol":"tcp","portMax":80}"#,
                "a rule has portMax 80 and no port: give the first port too",
            ),
            (
                r#"{"direction":"egress","protocol":"tcp","port":81,"portMax":80}"#,
                "a rule has port 81 above portMax 80: expected port at or below portMax",
            ),
            (
                r#"{"direction":"egress","protocol":"udp","port":0}"#,
                "a rule has port 0: expected 1 to 65535",
            ),
            (
                r#"{"direction":"egress","protocol":"udp","port":65536}"#,
                "invalid value",
            ),
            (
                r#"{"direction":"egress","protocol":"vrrp"}"#,
                "unknown variant",
            ),
            (
                r#"{"direction":"both","protocol":"any"}"#,
                "unknown variant",
            ),
            (
                r#"{"direction":"egress","protocol":"any","prefix":"10.0.0.0"}"#,
                "is not a range of addresses",
            ),
        ];
        for (json, message) in table {
            let error = rule(json).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn equal_rules_in_different_forms_are_duplicates() {
        let one =
            rule(r#"{"direction":"ingress","protocol":"tcp","port":22,"prefix":"10.1.2.3/8"}"#);
        let two = rule(
            r#"{"direction":"ingress","protocol":"tcp","port":22,"portMax":22,"prefix":"10.0.0.0/8"}"#,
        );
        let (one, two) = (one.unwrap(), two.unwrap());
        let other = rule(r#"{"direction":"egress","protocol":"any"}"#).unwrap();
        assert_eq!(
            Rules::new(vec![one, other, two]).unwrap_err().to_string(),
            "rules 1 and 3 are the same: leave one out"
        );
        assert!(Rules::new(vec![one, other]).is_ok());
        let json = serde_json::to_value([one, other]).unwrap();
        assert_eq!(
            json.to_string(),
            r#"[{"direction":"ingress","port":22,"prefix":"10.0.0.0/8","protocol":"tcp"},{"direction":"egress","protocol":"any"}]"#
        );
        let twice = serde_json::json!([json[0], json[0]]);
        assert!(
            serde_json::from_value::<Rules>(twice).is_err(),
            "nor from a store"
        );
    }

    #[test]
    fn number_of_rules_is_limited() {
        let rule = |port: u16| {
            Rule::new(Direction::Ingress, Protocol::Tcp, (Some(port), None), None).unwrap()
        };
        assert!(Rules::new((1..=100).map(rule).collect()).is_ok());
        assert_eq!(
            Rules::new((1..=101).map(rule).collect())
                .unwrap_err()
                .to_string(),
            "there are 101 rules: expected at most 100"
        );
    }

    fn any_protocol() -> impl Strategy<Value = Protocol> {
        prop::sample::select(vec![
            Protocol::Any,
            Protocol::Icmp,
            Protocol::Tcp,
            Protocol::Udp,
        ])
    }

    proptest! {
        #[test]
        fn rule_is_valid_exactly_if_its_ports_are(
            protocol in any_protocol(), port in any::<Option<u16>>(), last in any::<Option<u16>>(),
            inward in any::<bool>(), bits in any::<u32>(), length in 0_u8..=32,
        ) {
            let direction = if inward { Direction::Ingress } else { Direction::Egress };
            let prefix: Prefix = format!("{}/{length}", std::net::Ipv4Addr::from(bits)).parse().unwrap();
            let right = match (port, last) {
                (None, None) => true,
                (None, Some(_)) => false,
                (Some(port), last) => protocol.has_ports() && port > 0 && last.is_none_or(|last| port <= last),
            };
            let rule = Rule::new(direction, protocol, (port, last), Some(prefix));
            prop_assert_eq!(rule.is_ok(), right, "{:?}", rule);
            if let Ok(rule) = rule {
                let json = serde_json::to_string(&rule).unwrap();
                prop_assert_eq!(serde_json::from_str::<Rule>(&json).unwrap(), rule);
                prop_assert!(Rules::new(vec![rule, rule]).is_err());
            }
        }
    }
}
