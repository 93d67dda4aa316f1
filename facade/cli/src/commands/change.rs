//! Updates of instances: what they would do, what is lost, and whether the caller agrees.

use fleetwright_api::{Instance, InstanceUpdate, MetadataWrite, Networking, Plan, Tag};
use fleetwright_client::{Consent, Goal, Tagged};

use super::instances::{finish, user_data, wire_name};
use crate::{
    arguments::{Changes, PlanInstance, UpdateInstance},
    confirm,
    context::Context,
    failure::{Code, Failure},
    find,
    table::{Table, Text, Tone},
};

pub(super) async fn plan(context: &Context, arguments: PlanInstance) -> Result<(), Failure> {
    let id = find::instance(context, &arguments.instance).await?;
    let read = context.client.read_instance(&id).await?;
    let update = apply(context, read.value, arguments.changes).await?;
    let plan = context
        .client
        .plan_instance(&id, &update, read.etag.as_deref())
        .await?;
    context.output.show(&plan, table)
}

pub(super) async fn update(context: &Context, arguments: UpdateInstance) -> Result<(), Failure> {
    let id = find::instance(context, &arguments.instance).await?;
    let Tagged { value, etag } = context.client.read_instance(&id).await?;
    let update = apply(context, value, arguments.changes).await?;
    let etag = etag.as_deref();
    let plan = context.client.plan_instance(&id, &update, etag).await?;
    let mut consent = Consent::KeepData;
    if plan.destructive {
        if !arguments.allow_replace {
            eprint!("{}", table(&plan).render(false));
        }
        let lost = plan.lost.as_deref().unwrap_or("data or addresses");
        let question = format!("update {} and lose: {lost}", arguments.instance);
        confirm::agreed(
            arguments.allow_replace,
            &question,
            "--allow-replace",
            Code::Conflict,
        )?;
        consent = Consent::AllowReplace;
    }
    // With the tag of the read: what was planned is what is changed.
    let updated = context
        .client
        .update_instance(&id, &update, consent, etag)
        .await?;
    finish(context, updated.value, Goal::Provisioned, arguments.waiting).await
}

/// The whole desired state: that of the instance with the changes.
async fn apply(
    context: &Context,
    instance: Instance,
    changes: Changes,
) -> Result<InstanceUpdate, Failure> {
    let Instance {
        metadata,
        mut spec,
        status,
    } = instance;
    let mut tags = metadata.tags;
    for name in &changes.remove_tag {
        let before = tags.len();
        tags.retain(|tag| tag.name != *name);
        if tags.len() == before {
            return Err(Failure::new(
                Code::NotFound,
                format!("instance {} has no tag {name}", metadata.name),
            ));
        }
    }
    for (name, value) in changes.tags {
        tags.retain(|tag| tag.name != name);
        tags.push(Tag { name, value });
    }
    let description = match changes.description {
        Some(description) => Some(description).filter(|description| !description.is_empty()),
        None => metadata.description,
    };
    spec.flavor_id = changes.flavor.unwrap_or(spec.flavor_id);
    spec.image_id = changes.image.unwrap_or(spec.image_id);
    let mut networking = spec.networking.unwrap_or_default();
    if !changes.groups.is_empty() || changes.no_groups {
        networking.security_groups.clear();
    }
    for group in &changes.groups {
        networking
            .security_groups
            .push(find::group(context, Some(&status.network_id), group).await?);
    }
    networking.public_ip = changes.public_ip.or(networking.public_ip);
    spec.networking = Some(networking).filter(|networking| *networking != Networking::default());
    match changes.authority.as_deref() {
        Some("") => spec.ssh_certificate_authority_id = None,
        Some(authority) => {
            spec.ssh_certificate_authority_id = Some(find::authority(context, authority).await?);
        }
        None => {}
    }
    if let Some(file) = &changes.user_data {
        spec.user_data = Some(user_data(file)?);
    }
    Ok(InstanceUpdate {
        metadata: MetadataWrite {
            name: metadata.name,
            description,
            tags,
        },
        spec,
    })
}

fn table(plan: &Plan) -> Table {
    if plan.changes.is_empty() {
        return Table::fields()
            .field("changes", "none of the machine")
            .field("lost", "nothing");
    }
    let rows = plan.changes.iter().map(|change| {
        vec![
            change.field.as_str().into(),
            wire_name(&change.method).into(),
        ]
    });
    let lost = match (&plan.lost, plan.destructive) {
        (Some(lost), _) => Text::toned(lost.as_str(), Tone::Bad),
        (None, true) => Text::toned("data or addresses", Tone::Bad),
        (None, false) => Text::toned("nothing", Tone::Good),
    };
    Table::fields().rows(rows).row(["lost".into(), lost])
}
