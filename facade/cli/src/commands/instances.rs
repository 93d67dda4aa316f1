//! Instances.

use std::{io::Read as _, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fleetwright_api::{
    Event, HealthStatus, Instance, InstanceCreate, InstanceCreateSpec, InstanceMetadata,
    InstanceStatus, InstanceSummary, MetadataWrite, Networking, ProvisioningStatus, SnapshotCreate,
    Tag, UserDataText,
};
use fleetwright_client::{Goal, InstanceFilter, Reboot};
use futures_util::TryStreamExt as _;
use serde::Serialize;

use super::{change, watch};
use crate::{
    arguments::{
        CreateInstance, DeleteInstances, InstancesCommand, ListInstances, PowerInstances,
        ReplaceInstance, Waiting,
    },
    confirm,
    context::Context,
    failure::{Code, Failure},
    find, progress, ssh,
    table::{Table, Text, Tone},
};

pub(crate) async fn run(context: &Context, command: InstancesCommand) -> Result<u8, Failure> {
    let Context { client, output, .. } = context;
    match command {
        InstancesCommand::Create(arguments) => create(context, arguments).await?,
        InstancesCommand::List(arguments) => list(context, arguments).await?,
        InstancesCommand::Show(arguments) => {
            let id = find::instance(context, &arguments.instance).await?;
            show(context, &client.read_instance(&id).await?.value)?;
        }
        InstancesCommand::Plan(arguments) => change::plan(context, arguments).await?,
        InstancesCommand::Update(arguments) => change::update(context, arguments).await?,
        InstancesCommand::Start(arguments) => power(context, arguments, Goal::Running).await?,
        InstancesCommand::Stop(arguments) => power(context, arguments, Goal::Stopped).await?,
        InstancesCommand::Reboot { instance, hard } => {
            let id = find::instance(context, &instance).await?;
            let how = if hard { Reboot::Hard } else { Reboot::Soft };
            let accepted = client.reboot_instance(&id, how).await?;
            accept(context, &accepted, &format!("{instance}: reboot requested"))?;
        }
        InstancesCommand::Replace(arguments) => replace(context, arguments).await?,
        InstancesCommand::Delete(arguments) => delete(context, arguments).await?,
        InstancesCommand::Watch { from } => watch::run(context, from).await?,
        InstancesCommand::Events(arguments) => {
            let id = find::instance(context, &arguments.instance).await?;
            let events = client.list_instance_events(&id).await?.items;
            output.show(&events, |events| events_table(events))?;
        }
        InstancesCommand::Console {
            instance,
            log,
            length,
        } => {
            let id = find::instance(context, &instance).await?;
            if log {
                let console = client.read_instance_console(&id, length).await?;
                if output.is_json() {
                    output.json(&console)?;
                } else {
                    output.foreign(&console.contents)?;
                }
            } else {
                let session = client.open_instance_console(&id).await?;
                output.show(&session, |session| {
                    let expires = session.expires_at.map(|at| at.to_rfc3339());
                    Table::fields()
                        .field("address", session.url.clone())
                        .some("expires", expires)
                })?;
            }
        }
        InstancesCommand::Ssh(arguments) => {
            let id = find::instance(context, &arguments.instance).await?;
            let instance = client.read_instance(&id).await?.value;
            let key = client.read_instance_ssh_key(&id).await?;
            return ssh::run(&instance, &key, &arguments).await;
        }
        InstancesCommand::Snapshot {
            instance,
            name,
            description,
            tags,
        } => {
            let id = find::instance(context, &instance).await?;
            let metadata = MetadataWrite {
                name,
                description,
                tags: tags_of(tags),
            };
            let image = client
                .snapshot_instance(&id, &SnapshotCreate { metadata })
                .await?;
            output.show(&image, super::catalog::image_fields)?;
        }
    }
    Ok(0)
}

async fn create(context: &Context, arguments: CreateInstance) -> Result<(), Failure> {
    let network = find::network(context, arguments.network.as_deref()).await?;
    let mut groups = Vec::new();
    for group in &arguments.groups {
        groups.push(find::group(context, Some(&network.id), group).await?);
    }
    let authority = match &arguments.authority {
        Some(authority) => Some(find::authority(context, authority).await?),
        None => None,
    };
    let has_networking = !groups.is_empty() || arguments.public_ip;
    let new = InstanceCreate {
        metadata: MetadataWrite {
            name: arguments.name,
            description: arguments.description,
            tags: tags_of(arguments.tags),
        },
        spec: InstanceCreateSpec {
            organization_id: network.organization_id,
            project_id: network.project_id,
            network_id: network.id,
            flavor_id: arguments.flavor,
            image_id: arguments.image,
            networking: has_networking.then(|| Networking {
                security_groups: groups,
                public_ip: arguments.public_ip.then_some(true),
                allowed_source_addresses: Vec::new(),
            }),
            ssh_certificate_authority_id: authority,
            user_data: arguments.user_data.as_deref().map(user_data).transpose()?,
        },
    };
    let client = match &arguments.idempotency_key {
        Some(key) => context.client.with_idempotency_key(key)?,
        None => context.client.clone(),
    };
    let created = client.create_instance(&new).await?.value;
    finish(context, created, Goal::Running, arguments.waiting).await
}

/// Shows an instance. With a goal, waits until the instance has reached it.
pub(super) async fn finish(
    context: &Context,
    instance: Instance,
    goal: Goal,
    waiting: Waiting,
) -> Result<(), Failure> {
    if !waiting.wait {
        return show(context, &instance);
    }
    match progress::wait(context, &instance.metadata.id, goal, waiting.timeout).await? {
        Some(instance) => show(context, &instance),
        None => Ok(()),
    }
}

async fn list(context: &Context, arguments: ListInstances) -> Result<(), Failure> {
    let mut filter = InstanceFilter::default();
    filter.page_size = Some(500);
    filter.tags = arguments.tags;
    filter.regions = arguments.region;
    filter.power_states = arguments.states;
    filter.provisioning = arguments.statuses;
    if arguments.project.is_some() {
        let (organization, project) = find::project(
            context,
            arguments.organization.as_deref(),
            arguments.project.as_deref(),
        )
        .await?;
        filter.organizations.push(organization);
        filter.projects.push(project);
    } else if let Some(organization) = &arguments.organization {
        filter
            .organizations
            .push(find::organization(context, Some(organization)).await?);
    }
    if let Some(network) = &arguments.network {
        filter
            .networks
            .push(find::network(context, Some(network)).await?.id);
    }
    let all: Vec<InstanceSummary> = context.client.instances(&filter).try_collect().await?;
    context.output.show(&all, |all| {
        let rows = all.iter().map(|found| {
            let addresses = [&found.status.public_ip, &found.status.private_ip]
                .into_iter()
                .flatten();
            let addresses: Vec<_> = addresses.map(String::as_str).collect();
            vec![
                found.metadata.id.as_str().into(),
                found.metadata.name.as_str().into(),
                state(&found.metadata, &found.status),
                found.spec.flavor_id.as_str().into(),
                found.status.region_id.as_str().into(),
                addresses.join(" ").into(),
                trouble(&found.status).into(),
            ]
        });
        Table::list([
            "ID",
            "NAME",
            "STATE",
            "FLAVOR",
            "REGION",
            "ADDRESS",
            "CONDITION",
        ])
        .rows(rows)
    })
}

async fn power(context: &Context, arguments: PowerInstances, goal: Goal) -> Result<(), Failure> {
    let mut ids = Vec::new();
    for name in &arguments.instances {
        ids.push(find::instance(context, name).await?);
    }
    for (id, name) in ids.iter().zip(&arguments.instances) {
        let (accepted, what) = if goal == Goal::Stopped {
            (context.client.stop_instance(id).await?, "stop")
        } else {
            (context.client.start_instance(id).await?, "start")
        };
        if !arguments.waiting.wait {
            accept(context, &accepted, &format!("{name}: {what} requested"))?;
        }
    }
    if arguments.waiting.wait {
        for id in &ids {
            if let Some(instance) =
                progress::wait(context, id, goal, arguments.waiting.timeout).await?
            {
                show(context, &instance)?;
            }
        }
    }
    Ok(())
}

async fn replace(context: &Context, arguments: ReplaceInstance) -> Result<(), Failure> {
    let id = find::instance(context, &arguments.instance).await?;
    let question = format!(
        "replace the machine of {} and lose the data on its disk and its addresses",
        arguments.instance
    );
    confirm::agreed(arguments.agreement.yes, &question, "--yes", Code::Usage)?;
    let accepted = context.client.replace_instance(&id).await?;
    if !arguments.waiting.wait {
        return accept(
            context,
            &accepted,
            &format!("{}: replacement requested", arguments.instance),
        );
    }
    match progress::wait(context, &id, Goal::Provisioned, arguments.waiting.timeout).await? {
        Some(instance) => show(context, &instance),
        None => Ok(()),
    }
}

async fn delete(context: &Context, arguments: DeleteInstances) -> Result<(), Failure> {
    let mut ids = Vec::new();
    for name in &arguments.instances {
        ids.push(find::instance(context, name).await?);
    }
    let question = format!("delete {} with the data", arguments.instances.join(", "));
    confirm::agreed(arguments.agreement.yes, &question, "--yes", Code::Usage)?;
    for id in &ids {
        context.client.delete_instance(id).await?;
    }
    for (id, name) in ids.iter().zip(&arguments.instances) {
        if arguments.waiting.wait {
            progress::wait(context, id, Goal::Deleted, arguments.waiting.timeout).await?;
            context.output.done(&format!("{name}: deleted"))?;
        } else {
            context
                .output
                .done(&format!("{name}: deletion requested"))?;
        }
    }
    Ok(())
}

fn accept(context: &Context, accepted: &impl Serialize, text: &str) -> Result<(), Failure> {
    if context.output.is_json() {
        return context.output.json(accepted);
    }
    context.output.done(text)
}

fn show(context: &Context, instance: &Instance) -> Result<(), Failure> {
    context.output.show(instance, |instance| {
        let Instance {
            metadata,
            spec,
            status,
        } = instance;
        let tags: Vec<_> = metadata
            .tags
            .iter()
            .map(|tag| format!("{}={}", tag.name, tag.value))
            .collect();
        let networking = spec.networking.as_ref();
        let groups = networking
            .map(|networking| networking.security_groups.join(" "))
            .filter(|groups| !groups.is_empty());
        let mut table = Table::fields()
            .field("id", metadata.id.as_str())
            .field("name", metadata.name.as_str())
            .some("description", metadata.description.as_deref())
            .some("tags", Some(tags.join(" ")).filter(|tags| !tags.is_empty()))
            .field("state", state(metadata, status))
            .field("health", health(metadata.health_status))
            .field("flavor", spec.flavor_id.as_str())
            .field("image", spec.image_id.as_str())
            .field("region", status.region_id.as_str())
            .field("network", status.network_id.as_str())
            .some("groups", groups)
            .some("authority", spec.ssh_certificate_authority_id.as_deref())
            .some("private address", status.private_ip.as_deref())
            .some("public address", status.public_ip.as_deref())
            .field("organization", metadata.organization_id.as_str())
            .field("project", metadata.project_id.as_str())
            .field(
                "created",
                format!(
                    "{} by {}",
                    metadata.creation_time.to_rfc3339(),
                    metadata.created_by
                ),
            )
            .field(
                "generation",
                format!(
                    "{}, applied: {}",
                    metadata.generation, status.observed_generation
                ),
            );
        for condition in &status.conditions {
            table = table.field(
                "condition",
                Text::toned(condition.message.as_str(), Tone::Bad),
            );
        }
        if let Some(pending) = &status.pending_action {
            table = table.field("pending", pending.reason.as_str());
        }
        table.some(
            "waiting",
            status.waiting.as_ref().map(|waiting| waiting.what.as_str()),
        )
    })
}

fn events_table(events: &[Event]) -> Table {
    let rows = events.iter().map(|event| {
        vec![
            event.at.to_rfc3339().into(),
            event.by.as_str().into(),
            event.kind.as_str().into(),
            event.message.as_str().into(),
        ]
    });
    Table::list(["TIME", "BY", "KIND", "MESSAGE"]).rows(rows)
}

/// The state of an instance in a few words, for a progress line.
pub(crate) fn words(instance: &Instance) -> String {
    let waiting = instance
        .status
        .waiting
        .as_ref()
        .map(|waiting| waiting.what.clone());
    let trouble = Some(trouble(&instance.status)).filter(|trouble| !trouble.is_empty());
    let more = trouble
        .or(waiting)
        .map_or_else(String::new, |more| format!(" ({more})"));
    format!(
        "{}{more}",
        state_words(&instance.metadata, &instance.status)
    )
}

fn state_words(metadata: &InstanceMetadata, status: &InstanceStatus) -> String {
    let power = wire_name(&status.power_state);
    match metadata.provisioning_status {
        ProvisioningStatus::Provisioned => power,
        progress @ (ProvisioningStatus::Pending
        | ProvisioningStatus::Provisioning
        | ProvisioningStatus::Deprovisioning
        | ProvisioningStatus::Error) => {
            let progress = wire_name(&progress);
            if progress == power {
                power
            } else {
                format!("{power}, {progress}")
            }
        }
    }
}

/// The state of an instance with its tone.
pub(super) fn state(metadata: &InstanceMetadata, status: &InstanceStatus) -> Text {
    let tone = match (metadata.provisioning_status, metadata.health_status) {
        (ProvisioningStatus::Error, _) | (_, HealthStatus::Error) => Tone::Bad,
        (ProvisioningStatus::Provisioned, HealthStatus::Healthy) => Tone::Good,
        (ProvisioningStatus::Provisioned, HealthStatus::Unknown) => Tone::Plain,
        (_, HealthStatus::Degraded)
        | (
            ProvisioningStatus::Pending
            | ProvisioningStatus::Provisioning
            | ProvisioningStatus::Deprovisioning,
            _,
        ) => Tone::Busy,
    };
    Text::toned(state_words(metadata, status), tone)
}

fn health(status: HealthStatus) -> Text {
    let tone = match status {
        HealthStatus::Healthy => Tone::Good,
        HealthStatus::Unknown => Tone::Plain,
        HealthStatus::Degraded => Tone::Busy,
        HealthStatus::Error => Tone::Bad,
    };
    Text::toned(wire_name(&status), tone)
}

fn trouble(status: &InstanceStatus) -> String {
    let texts: Vec<_> = status
        .conditions
        .iter()
        .map(|condition| condition.message.as_str())
        .collect();
    texts.join("; ")
}

/// The name of a state in the service's interface.
pub(super) fn wire_name(state: &(impl Serialize + std::fmt::Debug)) -> String {
    match serde_json::to_value(state) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(_) | Err(_) => format!("{state:?}"),
    }
}

pub(super) fn tags_of(tags: Vec<(String, String)>) -> Vec<Tag> {
    tags.into_iter()
        .map(|(name, value)| Tag { name, value })
        .collect()
}

/// The user data in a file.
pub(super) fn user_data(file: &Path) -> Result<UserDataText, Failure> {
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| {
        Failure::usage(format!("{}: it cannot be read: {error}", file.display()))
    })?;
    Ok(UserDataText(STANDARD.encode(bytes)))
}
