//! What a security group lets through.

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};

use super::Prefix;

/// How many rules a group may have.
pub const MAX_RULES: usize = 100;

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To the server.
    Ingress,
    /// From the server.
    Egress,
}

/// What.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Everything.
    Any,
    /// ICMP.
    Icmp,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// Whether it has ports.
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

/// Ports from one to another, both of them included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ports {
    first: u16,
    last: u16,
}

impl Ports {
    /// The first.
    pub const fn first(self) -> u16 {
        self.first
    }

    /// The last. With one port, it is the first.
    pub const fn last(self) -> u16 {
        self.last
    }
}

/// One thing that is let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Rule {
    direction: Direction,
    protocol: Protocol,
    ports: Option<Ports>,
    prefix: Option<Prefix>,
}

/// A rule as records and wires have it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    direction: Direction,
    protocol: Protocol,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    port_max: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prefix: Option<Prefix>,
}

/// Why something is no rule, or rules do not go together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRule {
    /// The protocol has no ports.
    #[error("a rule for {0} has no ports: leave them out, or choose tcp or udp")]
    NoPorts(&'static str),
    /// The range has no beginning.
    #[error("a rule has portMax {0} and no port: give the first port too")]
    NoFirstPort(u16),
    /// The range ends before it begins.
    #[error("a rule has port {first} above portMax {last}: want it the other way round")]
    Backwards {
        /// The first port.
        first: u16,
        /// The last.
        last: u16,
    },
    /// Nothing listens there.
    #[error("a rule has port 0: want 1 to 65535")]
    PortZero,
    /// The same rule twice.
    #[error("rules {first} and {second} are the same: leave one out")]
    Duplicate {
        /// Which, from 1.
        first: usize,
        /// Which, from 1.
        second: usize,
    },
    /// There are more than a group may have.
    #[error("there are {0} rules, and a group has {MAX_RULES} at the most")]
    TooMany(usize),
}

impl Rule {
    /// Checks a rule. Without ports, all of them are meant; with one, that one; without a prefix, everywhere.
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
                return Err(InvalidRule::Backwards { first, last });
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

    /// Which way.
    pub const fn direction(self) -> Direction {
        self.direction
    }

    /// What.
    pub const fn protocol(self) -> Protocol {
        self.protocol
    }

    /// Which ports; all of them if there are none.
    pub const fn ports(self) -> Option<Ports> {
        self.ports
    }

    /// From or to where; everywhere if there is none.
    pub const fn prefix(self) -> Option<Prefix> {
        self.prefix
    }
}

impl TryFrom<Written> for Rule {
    type Error = InvalidRule;
    fn try_from(written: Written) -> Result<Self, InvalidRule> {
        let ports = (written.port, written.port_max);
        Self::new(written.direction, written.protocol, ports, written.prefix)
    }
}

impl From<Rule> for Written {
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

/// The rules of a group, in the order in which they were given, none of them twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Rule>", into = "Vec<Rule>")]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Checks that they go together.
    pub fn new(rules: Vec<Rule>) -> Result<Self, InvalidRule> {
        if rules.len() > MAX_RULES {
            return Err(InvalidRule::TooMany(rules.len()));
        }
        let mut seen = BTreeSet::new();
        for (second, rule) in rules.iter().enumerate() {
            if !seen.insert(rule) {
                let first = rules.iter().position(|other| other == rule);
                return Err(InvalidRule::Duplicate {
                    first: first.unwrap_or(second) + 1,
                    second: second + 1,
                });
            }
        }
        Ok(Self(rules))
    }

    /// Each of them.
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
    fn what_is_no_rule_is_told_why() {
        let table = [
            (
                r#"{"direction":"ingress","protocol":"icmp","port":1}"#,
                "a rule for icmp has no ports: leave them out, or choose tcp or udp",
            ),
            (
                r#"{"direction":"ingress","protocol":"any","portMax":1}"#,
                "a rule for any has no ports: leave them out, or choose tcp or udp",
            ),
            (
                r#"{"direction":"ingress","protocol":"tcp","portMax":80}"#,
                "a rule has portMax 80 and no port: give the first port too",
            ),
            (
                r#"{"direction":"egress","protocol":"tcp","port":81,"portMax":80}"#,
                "a rule has port 81 above portMax 80: want it the other way round",
            ),
            (
                r#"{"direction":"egress","protocol":"udp","port":0}"#,
                "a rule has port 0: want 1 to 65535",
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
                "is no range of addresses",
            ),
        ];
        for (json, message) in table {
            let told = rule(json).unwrap_err();
            assert!(told.contains(message), "{told}");
        }
    }

    #[test]
    fn the_same_rule_in_two_forms_is_the_same() {
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
    fn a_group_has_so_many_rules_and_no_more() {
        let rule = |port: u16| {
            Rule::new(Direction::Ingress, Protocol::Tcp, (Some(port), None), None).unwrap()
        };
        assert!(Rules::new((1..=100).map(rule).collect()).is_ok());
        assert_eq!(
            Rules::new((1..=101).map(rule).collect())
                .unwrap_err()
                .to_string(),
            "there are 101 rules, and a group has 100 at the most"
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
        fn a_rule_is_right_exactly_if_its_ports_are(
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
