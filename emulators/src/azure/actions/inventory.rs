//! All resources of a subscription or resource group, and their tags.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Context, filter, list::ListScope};
use crate::azure::{
    catalog::same,
    engine::resource_table::Scope,
    error::Refusal,
    shapes::resources,
    wire::{
        body::Tags,
        id::{Id, Kind},
        response::ApiResponse,
    },
};

/// The names that a filter of resources may use.
const FILTER_NAMES: [&str; 6] = [
    "resourceType",
    "resourceGroup",
    "name",
    "location",
    "tagName",
    "tagValue",
];

/// The members of a document that a list of resources contains.
const MEMBERS: [&str; 9] = [
    "id",
    "name",
    "type",
    "location",
    "tags",
    "sku",
    "zones",
    "managedBy",
    "identity",
];

impl Context<'_> {
    /// Returns the documents of all resources in a scope.
    fn documents_in(&self, subscription: &str, group: Option<&str>) -> Vec<Value> {
        let engine = &*self.engine;
        let is_in = |id: &Id| {
            same(&id.subscription, subscription) && group.is_none_or(|group| same(&id.group, group))
        };
        let mut found = Vec::new();
        found.extend(
            engine
                .vms
                .iter()
                .filter(|(_, it)| is_in(&it.id))
                .map(|(_, it)| {
                    json!({
                        "id": it.id.path(), "name": it.id.name, "type": it.id.kind.name(),
                        "location": it.location, "tags": *it.tags,
                    })
                }),
        );
        found.extend(
            engine
                .nics
                .iter()
                .filter(|(_, it)| is_in(&it.id))
                .map(|(_, it)| resources::nic(it, None)),
        );
        found.extend(
            engine
                .ips
                .iter()
                .filter(|(_, it)| is_in(&it.id))
                .map(|(_, it)| resources::public_ip(it)),
        );
        found.extend(
            engine
                .disks
                .iter()
                .filter(|(_, it)| is_in(&it.id))
                .map(|(_, it)| resources::disk(engine, it)),
        );
        found.extend(
            engine
                .images
                .iter()
                .filter(|(_, it)| is_in(&it.id))
                .map(|(_, it)| resources::image(it)),
        );
        for kind in [
            Kind::VirtualNetwork,
            Kind::SecurityGroup,
            Kind::Snapshot,
            Kind::SshKey,
        ] {
            let documents = engine.documents_of(kind, subscription, group);
            found.extend(documents.into_iter().map(|document| document.value));
        }
        found
    }

    /// Returns the resource that the path of tags names, or its resource group.
    fn tagged_id(&self) -> Result<Id, Refusal> {
        let request = self.request;
        if request.names.len() == 2 {
            return Ok(Id::of_group(request.subscription(), request.name(1)));
        }
        let kind = Kind::from_name(request.name(2)).ok_or_else(|| {
            let kinds = Kind::ALL.map(Kind::name).join(", ");
            let message = format!(
                "The tags of '{}' are not emulated. Types whose tags are: {kinds}.",
                request.name(2)
            );
            Refusal::new(501, "NotEmulated", message)
        })?;
        Ok(Id::new(
            kind,
            request.subscription(),
            request.name(1),
            request.name(3),
        ))
    }

    /// Returns the tags of a resource.
    fn tags_of(&self, id: &Id) -> Result<Tags, Refusal> {
        let engine = &*self.engine;
        engine.check_group(&id.subscription, &id.group)?;
        let found = match id.kind {
            Kind::VirtualMachine => engine.vms.find(id).map(|(_, it)| (*it.tags).clone()),
            Kind::Nic => engine.nics.find(id).map(|(_, it)| it.tags.clone()),
            Kind::PublicIp => engine.ips.find(id).map(|(_, it)| it.tags.clone()),
            Kind::Disk => engine.disks.find(id).map(|(_, it)| it.tags.clone()),
            Kind::Image => engine.images.find(id).map(|(_, it)| it.tags.clone()),
            Kind::VirtualNetwork
            | Kind::SecurityGroup
            | Kind::Snapshot
            | Kind::SshKey
            | Kind::ResourceGroup => {
                let tags = engine
                    .document(id)
                    .map(|document| document.value["tags"].clone());
                tags.map(|tags| serde_json::from_value(tags).unwrap_or_default())
            }
        };
        found.ok_or_else(|| id.not_found())
    }
}

/// Lists the resources of a resource group or of a subscription, by a filter if there is one.
pub(super) fn list(
    context: &mut Context<'_>,
    list_scope: ListScope,
) -> Result<ApiResponse, Refusal> {
    // An empty list of a subscription is a scope that no resource is in.
    let empty = context.scope(list_scope)? == Scope::group(context.request.subscription(), "");
    let group = (list_scope == ListScope::Group).then(|| context.request.name(1));
    let mut found = context.documents_in(context.request.subscription(), group);
    if empty {
        found.clear();
    }
    if let Some(filter) = context.request.param("$filter") {
        let conditions = filter::read(filter, &FILTER_NAMES)?;
        found.retain(|item| filter::passes(item, &conditions));
    }
    for item in &mut found {
        if let Value::Object(members) = item {
            members.retain(|name, _| MEMBERS.contains(&name.as_str()));
        }
    }
    context.paginate(found)
}

/// Lists the tags of the resources of a subscription, with their values.
pub(super) fn tag_names(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let subscription = context.request.subscription();
    let mut counted: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for document in context.documents_in(subscription, None) {
        for (name, value) in document["tags"].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            *counted
                .entry(name.clone())
                .or_default()
                .entry(value)
                .or_default() += 1;
        }
    }
    let count = |number: u64| json!({ "type": "Total", "value": number });
    let items = counted.into_iter().map(|(name, values)| {
        let id = format!("/subscriptions/{subscription}/tagNames/{name}");
        let total = values.values().sum();
        let values = values.into_iter().map(|(value, number)| {
            json!({ "id": format!("{id}/tagValues/{value}"), "tagValue": value, "count": count(number) })
        });
        let values: Vec<Value> = values.collect();
        json!({ "id": id, "tagName": name, "count": count(total), "values": values })
    });
    let items = items.collect();
    context.paginate(items)
}

/// Returns the tags of a resource or resource group.
pub(super) fn tags(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let id = context.tagged_id()?;
    let tags = context.tags_of(&id)?;
    Ok(tags_document(&id, &tags))
}

/// Replaces the tags of a resource or resource group (`PUT`), or merges, replaces or removes some of
/// them, as `operation` says (`PATCH`).
pub(super) fn set_tags(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let id = context.tagged_id()?;
    let body = context.request.body.clone().unwrap_or_default();
    let given = crate::azure::engine::tags::read(&body["properties"]["tags"])?;
    let given = given.ok_or_else(|| Refusal::missing("properties.tags"))?;
    let current = context.tags_of(&id)?;
    let tags = match body["operation"]
        .as_str()
        .map(str::to_ascii_lowercase)
        .as_deref()
    {
        None | Some("replace") => given,
        Some("merge") => current.into_iter().chain(given).collect(),
        Some("delete") => {
            let kept = current.into_iter();
            kept.filter(|(name, value)| given.get(name) != Some(value))
                .collect()
        }
        Some(other) => {
            let message = format!("The value '{other}' of parameter 'operation' is not allowed.");
            return Err(Refusal::invalid("operation", message));
        }
    };
    context.engine.check_tags(Some(&tags))?;
    context.engine.set_tags(&id, &tags);
    Ok(tags_document(&id, &tags))
}

/// Removes the tags of a resource or resource group.
pub(super) fn delete_tags(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let id = context.tagged_id()?;
    context.tags_of(&id)?;
    context.engine.set_tags(&id, &Tags::new());
    Ok(ApiResponse::bare(200))
}

/// Returns the document of tags.
fn tags_document(id: &Id, tags: &Tags) -> ApiResponse {
    ApiResponse::document(&json!({
        "id": format!("{}/providers/Microsoft.Resources/tags/default", id.path()),
        "name": "default",
        "type": "Microsoft.Resources/tags",
        "properties": { "tags": tags },
    }))
}
