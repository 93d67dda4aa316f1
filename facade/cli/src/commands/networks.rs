//! Networks, security groups and certificate authorities.

use fleetwright_api::{
    Network, NetworkCreate, Rule, SecurityGroup, SecurityGroupCreate, SecurityGroupUpdate,
    SshAuthority, SshAuthorityCreate,
};
use fleetwright_client::{NetworkContents, RecordFilter};
use futures_util::TryStreamExt as _;

use super::instances::wire_name;
use crate::{
    arguments::{AuthoritiesCommand, GroupsCommand, ListRecords, NetworksCommand},
    confirm,
    context::Context,
    failure::{Code, Failure},
    find,
    table::Table,
};

pub(super) async fn networks(context: &Context, command: NetworksCommand) -> Result<(), Failure> {
    let Context { client, output, .. } = context;
    match command {
        NetworksCommand::Create {
            name,
            place,
            region,
            prefix,
            dns,
        } => {
            let (organization_id, project_id) = find::project(
                context,
                place.organization.as_deref(),
                place.project.as_deref(),
            )
            .await?;
            let new = NetworkCreate {
                organization_id,
                project_id,
                region_id: region,
                name,
                prefix,
                dns_nameservers: dns,
            };
            output.show(&client.create_network(&new).await?, network_fields)
        }
        NetworksCommand::List(arguments) => {
            let all: Vec<Network> = client
                .networks(&filter(context, arguments).await?)
                .try_collect()
                .await?;
            output.show(&all, |all| {
                let rows = all.iter().map(|network| {
                    let Network {
                        id,
                        name,
                        prefix,
                        region_id,
                        ..
                    } = network;
                    vec![
                        id.as_str().into(),
                        name.as_str().into(),
                        prefix.as_str().into(),
                        region_id.as_str().into(),
                        wire_name(&network.state).into(),
                    ]
                });
                Table::list(["ID", "NAME", "PREFIX", "REGION", "STATE"]).rows(rows)
            })
        }
        NetworksCommand::Show { network } => output.show(
            &find::network(context, Some(&network)).await?,
            network_fields,
        ),
        NetworksCommand::Delete {
            network,
            with_instances,
            agreement,
        } => {
            let id = find::network(context, Some(&network)).await?.id;
            let (what, contents) = if with_instances {
                (
                    "delete network {} and its instances with their data",
                    NetworkContents::Delete,
                )
            } else {
                ("delete network {}", NetworkContents::Keep)
            };
            confirm::agreed(
                agreement.yes,
                &what.replace("{}", &network),
                "--yes",
                Code::Usage,
            )?;
            client.delete_network(&id, contents).await?;
            output.done(&format!("{network}: deletion requested"))
        }
    }
}

pub(super) async fn groups(context: &Context, command: GroupsCommand) -> Result<(), Failure> {
    let Context { client, output, .. } = context;
    match command {
        GroupsCommand::Create {
            name,
            network,
            rules,
        } => {
            let network_id = find::network(context, network.as_deref()).await?.id;
            let new = SecurityGroupCreate {
                network_id,
                name,
                rules,
            };
            output.show(&client.create_security_group(&new).await?, group_fields)
        }
        GroupsCommand::List(arguments) => {
            let all: Vec<SecurityGroup> = client
                .security_groups(&filter(context, arguments).await?)
                .try_collect()
                .await?;
            output.show(&all, |all| {
                let rows = all.iter().map(|group| {
                    let rules: Vec<_> = group.rules.iter().map(rule).collect();
                    vec![
                        group.id.as_str().into(),
                        group.name.as_str().into(),
                        group.network_id.as_str().into(),
                        rules.join(" ").into(),
                    ]
                });
                Table::list(["ID", "NAME", "NETWORK", "RULES"]).rows(rows)
            })
        }
        GroupsCommand::Show { group } => {
            let id = find::group(context, None, &group).await?;
            output.show(&client.read_security_group(&id).await?, group_fields)
        }
        GroupsCommand::Update { group, rules } => {
            let id = find::group(context, None, &group).await?;
            let updated = client
                .update_security_group(&id, &SecurityGroupUpdate { rules })
                .await?;
            output.show(&updated, group_fields)
        }
        GroupsCommand::Delete { group, agreement } => {
            let id = find::group(context, None, &group).await?;
            confirm::agreed(
                agreement.yes,
                &format!("delete security group {group}"),
                "--yes",
                Code::Usage,
            )?;
            client.delete_security_group(&id).await?;
            output.done(&format!("{group}: deleted"))
        }
    }
}

pub(super) async fn authorities(
    context: &Context,
    command: AuthoritiesCommand,
) -> Result<(), Failure> {
    let Context { client, output, .. } = context;
    match command {
        AuthoritiesCommand::Create {
            name,
            place,
            public_key,
        } => {
            let text = std::fs::read_to_string(&public_key);
            let text = text.map_err(|error| {
                Failure::usage(format!(
                    "{}: it cannot be read: {error}",
                    public_key.display()
                ))
            })?;
            let (organization_id, project_id) = find::project(
                context,
                place.organization.as_deref(),
                place.project.as_deref(),
            )
            .await?;
            let new = SshAuthorityCreate {
                organization_id,
                project_id,
                name,
                public_key: text.trim().to_owned(),
            };
            output.show(&client.create_ssh_authority(&new).await?, authority_fields)
        }
        AuthoritiesCommand::List(arguments) => {
            let all: Vec<SshAuthority> = client
                .ssh_authorities(&filter(context, arguments).await?)
                .try_collect()
                .await?;
            output.show(&all, |all| {
                let rows = all.iter().map(|authority| {
                    vec![
                        authority.id.as_str().into(),
                        authority.name.as_str().into(),
                        authority.project_id.as_str().into(),
                        authority.public_key.as_str().into(),
                    ]
                });
                Table::list(["ID", "NAME", "PROJECT", "PUBLIC KEY"]).rows(rows)
            })
        }
        AuthoritiesCommand::Show { authority } => {
            let id = find::authority(context, &authority).await?;
            output.show(&client.read_ssh_authority(&id).await?, authority_fields)
        }
        AuthoritiesCommand::Delete {
            authority,
            agreement,
        } => {
            let id = find::authority(context, &authority).await?;
            confirm::agreed(
                agreement.yes,
                &format!("delete certificate authority {authority}"),
                "--yes",
                Code::Usage,
            )?;
            client.delete_ssh_authority(&id).await?;
            output.done(&format!("{authority}: deleted"))
        }
    }
}

async fn filter(context: &Context, arguments: ListRecords) -> Result<RecordFilter, Failure> {
    let mut filter = RecordFilter::default();
    filter.page_size = Some(500);
    filter.region = arguments.region;
    if arguments.project.is_some() {
        let (organization, project) = find::project(
            context,
            arguments.organization.as_deref(),
            arguments.project.as_deref(),
        )
        .await?;
        (filter.organization, filter.project) = (Some(organization), Some(project));
    } else if let Some(organization) = &arguments.organization {
        filter.organization = Some(find::organization(context, Some(organization)).await?);
    }
    if let Some(network) = &arguments.network {
        filter.network = Some(find::network(context, Some(network)).await?.id);
    }
    Ok(filter)
}

fn network_fields(network: &Network) -> Table {
    Table::fields()
        .field("id", network.id.as_str())
        .field("name", network.name.as_str())
        .field("state", wire_name(&network.state))
        .field("prefix", network.prefix.as_str())
        .field("region", network.region_id.as_str())
        .some(
            "name servers",
            Some(network.dns_nameservers.join(" ")).filter(|names| !names.is_empty()),
        )
        .field("organization", network.organization_id.as_str())
        .field("project", network.project_id.as_str())
}

fn group_fields(group: &SecurityGroup) -> Table {
    let mut table = Table::fields()
        .field("id", group.id.as_str())
        .field("name", group.name.as_str())
        .field("network", group.network_id.as_str());
    for found in &group.rules {
        table = table.field("rule", rule(found));
    }
    table
}

fn authority_fields(authority: &SshAuthority) -> Table {
    Table::fields()
        .field("id", authority.id.as_str())
        .field("name", authority.name.as_str())
        .field("organization", authority.organization_id.as_str())
        .field("project", authority.project_id.as_str())
        .field("public key", authority.public_key.as_str())
}

/// A rule as `--rule` takes it.
fn rule(rule: &Rule) -> String {
    let mut text = format!(
        "{}:{}",
        wire_name(&rule.direction),
        wire_name(&rule.protocol)
    );
    if let Some(port) = rule.port {
        text.push_str(&format!(":{port}"));
    }
    if let Some(last) = rule.port_max {
        text.push_str(&format!("-{last}"));
    }
    if let Some(prefix) = &rule.prefix {
        text.push_str(&format!(":{prefix}"));
    }
    text
}
