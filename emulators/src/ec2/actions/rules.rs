//! The rules of security groups: added, removed and described.

use super::{Call, common::tag_trees, groups::group_id};
use crate::ec2::{
    engine::{
        Engine,
        filter::Filtered,
        network::Group,
        record::Tags,
        rule::{Allows, Peer, Removal, Rule, rule_not_found},
    },
    error::Refusal,
    wire::{action::Action, params::Scope, tree::Tree},
};

/// Adds rules.
///
/// # Errors
///
/// `MissingParameter`, `InvalidParameterValue`, `InvalidGroup.NotFound` or `InvalidPermission.Duplicate`.
pub(super) fn authorize(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let egress = call.action == Action::AuthorizeSecurityGroupEgress;
    let id = group_id(call, engine)?;
    let tags = call.tags_for("security-group-rule")?;
    let rules = allowed(call)?
        .into_iter()
        .map(|(allows, description)| Rule {
            id: String::new(),
            egress,
            allows,
            description,
            tags: tags.clone(),
        });
    let rules: Vec<Rule> = rules.collect();
    let mode = call.mode()?;
    call.finish()?;
    if rules.is_empty() {
        return Err(Refusal::missing("IpPermissions"));
    }
    let rules = engine.add_rules(&id, rules, mode)?;
    let added = rules.iter().map(|rule| rule_tree(engine, &id, rule));
    let added = Tree::default()
        .text("return", true)
        .set("securityGroupRuleSet", added);
    call.respond(&added)
}

/// Removes rules, by their ids or by what they allow.
///
/// # Errors
///
/// `MissingParameter`, `InvalidParameterValue`, `InvalidGroup.NotFound`, `InvalidPermission.NotFound` or
/// `InvalidSecurityGroupRuleId.NotFound`.
pub(super) fn revoke(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let egress = call.action == Action::RevokeSecurityGroupEgress;
    let id = group_id(call, engine)?;
    let ids = call.root().list("SecurityGroupRuleId");
    let removal = if ids.is_empty() {
        let allowed: Vec<Allows> = allowed(call)?
            .into_iter()
            .map(|(allows, _)| allows)
            .collect();
        if allowed.is_empty() {
            return Err(Refusal::missing("IpPermissions"));
        }
        Removal::Allows(allowed)
    } else {
        Removal::Ids(ids)
    };
    let mode = call.mode()?;
    call.finish()?;
    engine.remove_rules(&id, egress, &removal, mode)?;
    call.success()
}

/// Parses the permissions of a call, each with its description: a list of them, or the older form with one in the call itself.
fn allowed(call: &Call<'_>) -> Result<Vec<(Allows, Option<String>)>, Refusal> {
    let root = call.root();
    let mut allowed = Vec::new();
    if root.text("IpProtocol").is_some() || root.text("CidrIp").is_some() {
        let (protocol, ports) = protocol(&root)?;
        let peer = cidr(&root, "CidrIp", Peer::V4)?;
        let peer = peer.ok_or_else(|| Refusal::missing("CidrIp"))?;
        allowed.push((
            Allows {
                protocol,
                ports,
                peer,
            },
            None,
        ));
    }
    for permission in root.groups("IpPermissions") {
        let (protocol, ports) = protocol(&permission)?;
        let mut peers = Vec::new();
        for range in permission.groups("IpRanges") {
            peers.push((cidr(&range, "CidrIp", Peer::V4)?, range.text("Description")));
        }
        for range in permission.groups("Ipv6Ranges") {
            peers.push((
                cidr(&range, "CidrIpv6", Peer::V6)?,
                range.text("Description"),
            ));
        }
        for list in permission.groups("PrefixListIds") {
            let id = list.text("PrefixListId").map(Peer::PrefixList);
            peers.push((id, list.text("Description")));
        }
        for group in permission.groups("Groups") {
            // Every group is of the one account.
            let _account = group.text("UserId");
            let id = group.text("GroupId").map(Peer::Group);
            peers.push((id, group.text("Description")));
        }
        for (peer, description) in peers {
            let peer = peer.ok_or_else(|| Refusal::missing("IpPermissions.1.IpRanges.1.CidrIp"))?;
            let description = description.filter(|description| !description.is_empty());
            let (protocol, ports) = (protocol.clone(), ports);
            allowed.push((
                Allows {
                    protocol,
                    ports,
                    peer,
                },
                description,
            ));
        }
    }
    Ok(allowed)
}

/// Parses the protocol and its ports. EC2 returns the protocols 1, 6, 17 and 58 by name, and ignores the ports of all protocols
/// (API reference, "`IpPermission`").
fn protocol(scope: &Scope<'_>) -> Result<(String, Option<(i32, i32)>), Refusal> {
    let name = scope.required("IpProtocol")?.to_ascii_lowercase();
    let name = match name.as_str() {
        "1" => "icmp",
        "6" => "tcp",
        "17" => "udp",
        "58" => "icmpv6",
        "all" => "-1",
        other => other,
    }
    .to_owned();
    let number: Option<i16> = name.parse().ok();
    let known = ["tcp", "udp", "icmp", "icmpv6"].contains(&name.as_str());
    if !known && number.is_none_or(|number| !(-1..=255).contains(&number)) {
        return Err(scope.invalid("IpProtocol", &name, "Expected a protocol name or number."));
    }
    let (from, to): (Option<i32>, Option<i32>) =
        (scope.number("FromPort")?, scope.number("ToPort")?);
    if !known {
        return Ok((name, None));
    }
    let is_port = |port: i32| (-1..=65_535).contains(&port);
    match (from, to) {
        (Some(from), Some(to)) if is_port(from) && is_port(to) => Ok((name, Some((from, to)))),
        (None, None) if name == "icmpv6" => Ok((name, Some((-1, -1)))),
        _ => {
            let message =
                "Invalid value for portRange. Must specify both from and to ports with TCP/UDP.";
            Err(Refusal::invalid(message))
        }
    }
}

/// Parses a range of addresses, if there is one.
fn cidr(scope: &Scope<'_>, name: &str, peer: fn(String) -> Peer) -> Result<Option<Peer>, Refusal> {
    let Some(text) = scope.text(name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let Ok(net) = text.parse::<ipnet::IpNet>() else {
        return Err(Refusal::invalid(format!("CIDR block {text} is malformed")));
    };
    Ok(Some(peer(net.trunc().to_string())))
}

/// Returns the rules of a group by protocol and ports, as DescribeSecurityGroups returns them.
pub(super) fn permissions(engine: &Engine, group: &Group, egress: bool) -> Vec<Tree> {
    let mut kinds: Vec<(&str, Option<(i32, i32)>)> = Vec::new();
    let rules = || group.rules.iter().filter(|rule| rule.egress == egress);
    for rule in rules() {
        let kind = (rule.allows.protocol.as_str(), rule.allows.ports);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let permission = |(protocol, ports): (&str, Option<(i32, i32)>)| {
        let peers = |element: &'static str, name: fn(&Peer) -> Option<&str>| {
            let of_kind = |rule: &&Rule| {
                (rule.allows.protocol.as_str(), rule.allows.ports) == (protocol, ports)
            };
            let items = rules().filter(of_kind).filter_map(|rule| {
                let tree = Tree::default().text(element, name(&rule.allows.peer)?);
                let tree = if element == "groupId" {
                    tree.text("userId", &engine.core.knobs.account)
                } else {
                    tree
                };
                Some(tree.some("description", rule.description.as_ref()))
            });
            items.collect::<Vec<_>>()
        };
        Tree::default()
            .text("ipProtocol", protocol)
            .some("fromPort", ports.map(|ports| ports.0))
            .some("toPort", ports.map(|ports| ports.1))
            .set("groups", peers("groupId", Peer::group))
            .set("ipRanges", peers("cidrIp", Peer::v4))
            .set("ipv6Ranges", peers("cidrIpv6", Peer::v6))
            .set("prefixListIds", peers("prefixListId", Peer::prefix_list))
    };
    kinds.into_iter().map(permission).collect()
}

/// Returns a rule as DescribeSecurityGroupRules returns it.
fn rule_tree(engine: &Engine, group: &str, rule: &Rule) -> Tree {
    let account = &engine.core.knobs.account;
    let peer = &rule.allows.peer;
    let (from, to) = rule.allows.ports.unwrap_or((-1, -1));
    let tree = Tree::default()
        .text("securityGroupRuleId", &rule.id)
        .text("groupId", group)
        .text("groupOwnerId", account)
        .text("isEgress", rule.egress)
        .text("ipProtocol", &rule.allows.protocol)
        .text("fromPort", from)
        .text("toPort", to)
        .some("cidrIpv4", peer.v4())
        .some("cidrIpv6", peer.v6())
        .some("prefixListId", peer.prefix_list())
        .some("description", rule.description.as_ref())
        .set("tagSet", tag_trees(&rule.tags));
    match peer.group() {
        Some(id) => tree.tree(
            "referencedGroupInfo",
            Tree::default().text("groupId", id).text("userId", account),
        ),
        None => tree,
    }
}

/// A rule with its group.
struct Listed {
    /// The group.
    group: String,
    /// The rule.
    rule: Rule,
}

/// Describes rules by id and filters.
///
/// # Errors
///
/// `InvalidSecurityGroupRuleId.NotFound`
pub(super) fn describe(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let groups = engine.network.groups.iter();
    let all = groups.flat_map(|group| {
        group.rules.iter().map(|rule| Listed {
            group: group.id.clone(),
            rule: rule.clone(),
        })
    });
    let all: Vec<Listed> = all.collect();
    let by_id: (_, fn(&Listed) -> &str) = ("SecurityGroupRuleId", |listed| &listed.rule.id);
    let (found, next) = call.select(engine, all, by_id, rule_not_found)?;
    let trees = found
        .iter()
        .map(|listed| rule_tree(engine, &listed.group, &listed.rule));
    call.respond_list("securityGroupRuleSet", trees, next)
}

impl Filtered for Listed {
    /// The filters of rules.
    const NAMES: &'static [&'static str] = &["group-id", "security-group-rule-id"];

    fn values(&self, name: &str) -> Vec<String> {
        match name {
            "group-id" => vec![self.group.clone()],
            "security-group-rule-id" => vec![self.rule.id.clone()],
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.rule.tags)
    }
}
