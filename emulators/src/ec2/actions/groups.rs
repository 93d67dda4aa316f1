//! Security groups. Their rules are in `rules`.

use super::{Call, common::tag_trees, rules};
use crate::ec2::{
    catalog::VPC,
    engine::{
        Engine,
        filter::Filtered,
        network::{Group, NewGroup, group_not_found},
        read::check_ids,
        record::Tags,
        rule::Rule,
        table::Resource as _,
    },
    error::Refusal,
    wire::tree::Tree,
};

/// Creates a security group, by default in the default VPC.
///
/// # Errors
///
/// `MissingParameter` without a name or a description, `InvalidVpcID.NotFound`, `InvalidGroup.Duplicate`.
pub(super) fn create(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let group = NewGroup {
        name: root.required("GroupName")?,
        description: root.required("GroupDescription")?,
        vpc: root.text("VpcId").unwrap_or_else(|| VPC.to_owned()),
        tags: call.tags_for("security-group")?,
    };
    let mode = call.mode()?;
    call.finish()?;
    let tags = group.tags.clone();
    let id = engine.create_group(group, mode)?;
    let created = Tree::default()
        .text("return", true)
        .text("groupId", &id)
        .set("tagSet", tag_trees(&tags))
        .text("securityGroupArn", arn(engine, &id));
    call.respond(&created)
}

/// Returns the ARN of a security group.
fn arn(engine: &Engine, id: &str) -> String {
    let (region, account) = (&engine.core.knobs.region, &engine.core.knobs.account);
    format!("arn:aws:ec2:{region}:{account}:security-group/{id}")
}

/// Deletes a security group by its id, or by its name in the default VPC.
///
/// # Errors
///
/// `MissingParameter`, `InvalidGroup.NotFound`, `CannotDelete` or `DependencyViolation`.
pub(super) fn delete(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let id = group_id(call, engine)?;
    let mode = call.mode()?;
    call.finish()?;
    engine.delete_group(&id, mode)?;
    let deleted = Tree::default().text("return", true).text("groupId", id);
    call.respond(&deleted)
}

/// Returns the id of the group that a call names by `GroupId`, or by `GroupName` in the default VPC.
///
/// # Errors
///
/// `MissingParameter` or `InvalidGroup.NotFound`.
pub(super) fn group_id(call: &Call<'_>, engine: &Engine) -> Result<String, Refusal> {
    let root = call.root();
    if let Some(id) = root.text("GroupId") {
        return Ok(id);
    }
    let name = root
        .text("GroupName")
        .ok_or_else(|| Refusal::missing("GroupId"))?;
    let mut groups = engine.network.groups.iter();
    let found = groups.find(|group| group.vpc == VPC && group.name == name);
    found
        .map(|group| group.id.clone())
        .ok_or_else(|| group_not_found(&name))
}

/// Describes security groups by id, name and filters.
///
/// # Errors
///
/// `InvalidGroup.NotFound` for a missing id or name, `InvalidGroupId.Malformed` for an id of
/// another form.
pub(super) fn describe(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let (ids, names) = (root.list("GroupId"), root.list("GroupName"));
    check_ids(&ids, "sg", "InvalidGroupId.Malformed")?;
    let named = |group: &&Group| names.is_empty() || names.contains(&group.name);
    let all: Vec<Group> = engine
        .network
        .groups
        .iter()
        .filter(named)
        .cloned()
        .collect();
    if let Some(name) = names
        .iter()
        .find(|name| !all.iter().any(|group| group.name == **name))
    {
        return Err(group_not_found(name));
    }
    let (found, next) = call.select(
        engine,
        all,
        ("GroupId", |group| group.id()),
        group_not_found,
    )?;
    let tree = |group: &Group| {
        Tree::default()
            .text("ownerId", &engine.core.knobs.account)
            .text("securityGroupArn", arn(engine, &group.id))
            .text("groupId", &group.id)
            .text("groupName", &group.name)
            .text("groupDescription", &group.description)
            .text("vpcId", &group.vpc)
            .set("ipPermissions", rules::permissions(engine, group, false))
            .set(
                "ipPermissionsEgress",
                rules::permissions(engine, group, true),
            )
            .set("tagSet", tag_trees(&group.tags))
    };
    call.respond_list("securityGroupInfo", found.iter().map(tree), next)
}

/// The filters of security groups.
impl Filtered for Group {
    /// The filters that the emulator has for security groups.
    const NAMES: &'static [&'static str] = &[
        "description",
        "egress.ip-permission.cidr",
        "egress.ip-permission.from-port",
        "egress.ip-permission.group-id",
        "egress.ip-permission.protocol",
        "egress.ip-permission.to-port",
        "group-id",
        "group-name",
        "ip-permission.cidr",
        "ip-permission.from-port",
        "ip-permission.group-id",
        "ip-permission.protocol",
        "ip-permission.to-port",
        "vpc-id",
    ];

    fn values(&self, name: &str) -> Vec<String> {
        let egress = name.starts_with("egress.");
        let rules = self.rules.iter().filter(|rule| rule.egress == egress);
        let part: fn(&Rule) -> Option<String> = match name.strip_prefix("egress.").unwrap_or(name) {
            "description" => return vec![self.description.clone()],
            "group-id" => return vec![self.id.clone()],
            "group-name" => return vec![self.name.clone()],
            "vpc-id" => return vec![self.vpc.clone()],
            "ip-permission.cidr" => |rule| rule.allows.peer.cidr().map(str::to_owned),
            "ip-permission.group-id" => |rule| rule.allows.peer.group().map(str::to_owned),
            "ip-permission.protocol" => |rule| Some(rule.allows.protocol.clone()),
            "ip-permission.from-port" => |rule| Some(rule.allows.ports?.0.to_string()),
            "ip-permission.to-port" => |rule| Some(rule.allows.ports?.1.to_string()),
            _ => return Vec::new(),
        };
        rules.filter_map(part).collect()
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}
