//! The rules of security groups: which exist, and how a call names them.
//!
//! Rules are stored and returned. No packets are filtered.

use super::{Engine, Mode, record::Tags};
use crate::ec2::error::Refusal;

/// A rule: one protocol, one range of ports, one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The id.
    pub(crate) id: String,
    /// Whether it is about outgoing packets.
    pub(crate) egress: bool,
    /// What it allows.
    pub(crate) allows: Allows,
    /// The description.
    pub(crate) description: Option<String>,
    /// The tags.
    pub(crate) tags: Tags,
}

/// What a rule allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Allows {
    /// `tcp`, `udp`, `icmp`, `icmpv6`, a number, or `-1` for all protocols.
    pub(crate) protocol: String,
    /// The first and the last port, or the type and the code of ICMP; `None` for all protocols.
    pub(crate) ports: Option<(i32, i32)>,
    /// Whom it allows.
    pub(crate) peer: Peer,
}

/// Whom a rule allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A range of addresses of version 4.
    V4(String),
    /// A range of addresses of version 6.
    V6(String),
    /// A list of ranges.
    PrefixList(String),
    /// The members of a security group.
    Group(String),
}

impl Rule {
    /// Whether the rule allows the members of a group.
    pub(crate) fn names(&self, group: &str) -> bool {
        self.allows.peer == Peer::Group(group.to_owned())
    }
}

/// Rules that a call removes.
#[derive(Debug)]
pub(crate) enum Removal {
    /// By their ids.
    Ids(Vec<String>),
    /// By what they allow.
    Allows(Vec<Allows>),
}

impl Engine {
    /// Returns the rule of every new group: everything may go out.
    pub(super) fn everything_out(&mut self) -> Rule {
        Rule {
            id: self.ids.next("sgr"),
            egress: true,
            allows: Allows {
                protocol: "-1".to_owned(),
                ports: None,
                peer: Peer::V4("0.0.0.0/0".to_owned()),
            },
            description: None,
            tags: Tags::new(),
        }
    }

    /// Adds rules to a group, all or none, and returns them.
    ///
    /// # Errors
    ///
    /// `InvalidGroup.NotFound` for the group or one that a rule names, `InvalidPermission.Duplicate`.
    pub(crate) fn add_rules(
        &mut self,
        group: &str,
        mut rules: Vec<Rule>,
        mode: Mode,
    ) -> Result<Vec<Rule>, Refusal> {
        let existing = &self.group(group)?.rules;
        for (number, rule) in rules.iter().enumerate() {
            if let Peer::Group(peer) = &rule.allows.peer {
                self.group(peer)?;
            }
            let same = |other: &Rule| other.egress == rule.egress && other.allows == rule.allows;
            if existing.iter().any(same) || rules[..number].iter().any(same) {
                let message = format!(
                    "the specified rule \"peer: {}, {} {}, ALLOW\" already exists",
                    rule.allows.peer.name(),
                    rule.allows.protocol,
                    rule.allows.ports.map_or_else(
                        || "all ports".to_owned(),
                        |(from, to)| format!("from port: {from}, to port: {to}")
                    )
                );
                return Err(Refusal::client("InvalidPermission.Duplicate", message));
            }
        }
        mode.check_dry_run()?;
        for rule in &mut rules {
            rule.id = self.ids.next("sgr");
        }
        if let Some(group) = self.network.groups.get_mut(group) {
            group.rules.extend(rules.clone());
        }
        Ok(rules)
    }

    /// Removes rules of a group, all or none.
    ///
    /// # Errors
    ///
    /// `InvalidGroup.NotFound`, `InvalidPermission.NotFound` or `InvalidSecurityGroupRuleId.NotFound`.
    pub(crate) fn remove_rules(
        &mut self,
        group: &str,
        egress: bool,
        removal: &Removal,
        mode: Mode,
    ) -> Result<(), Refusal> {
        let rules = self
            .group(group)?
            .rules
            .iter()
            .filter(|rule| rule.egress == egress);
        let rules: Vec<&Rule> = rules.collect();
        let mut ids = Vec::new();
        match removal {
            Removal::Ids(named) => {
                for id in named {
                    if !rules.iter().any(|rule| rule.id == *id) {
                        return Err(rule_not_found(id));
                    }
                    ids.push(id.clone());
                }
            }
            Removal::Allows(named) => {
                for allows in named {
                    let Some(rule) = rules.iter().find(|rule| rule.allows == *allows) else {
                        let message = "The specified rule does not exist in this security group.";
                        return Err(Refusal::client("InvalidPermission.NotFound", message));
                    };
                    ids.push(rule.id.clone());
                }
            }
        }
        mode.check_dry_run()?;
        if let Some(group) = self.network.groups.get_mut(group) {
            group.rules.retain(|rule| !ids.contains(&rule.id));
        }
        Ok(())
    }
}

impl Peer {
    /// Returns the range, or the id of the list or group.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::V4(name) | Self::V6(name) | Self::PrefixList(name) | Self::Group(name) => name,
        }
    }
}

impl Peer {
    /// Returns the range of addresses of version 4.
    pub(crate) fn v4(&self) -> Option<&str> {
        matches!(self, Self::V4(_)).then(|| self.name())
    }

    /// Returns the range of addresses of version 6.
    pub(crate) fn v6(&self) -> Option<&str> {
        matches!(self, Self::V6(_)).then(|| self.name())
    }

    /// Returns the range of addresses of version 4 or 6.
    pub(crate) fn cidr(&self) -> Option<&str> {
        self.v4().or_else(|| self.v6())
    }

    /// Returns the list of ranges.
    pub(crate) fn prefix_list(&self) -> Option<&str> {
        matches!(self, Self::PrefixList(_)).then(|| self.name())
    }

    /// Returns the security group.
    pub(crate) fn group(&self) -> Option<&str> {
        matches!(self, Self::Group(_)).then(|| self.name())
    }
}

/// Returns the refusal of a rule that does not exist.
pub(crate) fn rule_not_found(id: &str) -> Refusal {
    let message = format!("The security group rule ID '{id}' does not exist");
    Refusal::client("InvalidSecurityGroupRuleId.NotFound", message)
}
