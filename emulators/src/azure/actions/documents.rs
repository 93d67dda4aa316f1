//! Resource groups, virtual networks, network security groups, snapshots and SSH keys: write,
//! read, list and delete.

use serde_json::{Value, json};

use super::{Context, list::ListScope, tasks::StartedOperation};
use crate::azure::{
    engine::{
        document::Document,
        network::{self, prefix},
        task::Work,
    },
    error::Refusal,
    wire::{
        document_members,
        id::{Id, Kind},
        response::ApiResponse,
    },
};

impl Context<'_> {
    /// Returns the id of the document that the path names.
    pub(super) fn document_id(&self, kind: Kind) -> Id {
        if kind == Kind::ResourceGroup {
            Id::of_group(self.request.subscription(), self.request.name(1))
        } else {
            self.request.id(kind)
        }
    }

    /// Returns the document that the path names.
    ///
    /// # Errors
    ///
    /// 404 `ResourceGroupNotFound` or `ResourceNotFound`.
    pub(super) fn known_document(&mut self, kind: Kind) -> Result<Document, Refusal> {
        let id = self.document_id(kind);
        if kind != Kind::ResourceGroup {
            self.engine.check_group(&id.subscription, &id.group)?;
        }
        self.engine.core.records_read += 1;
        self.engine.document(&id).ok_or_else(|| id.not_found())
    }

    /// Returns the response to a changed document, and begins its operation. `change` is not called
    /// if a fault plans a failure of the operation.
    pub(super) fn change_document(
        &mut self,
        id: &Id,
        document: &Value,
        change: impl FnOnce(&mut Self) -> bool,
    ) -> ApiResponse {
        let fails = !self.injected.planned_failures.is_empty();
        let new = !fails && change(self);
        let status = match (id.kind, new) {
            (Kind::Snapshot, _) => 202,
            (_, true) => 201,
            (_, false) => 200,
        };
        // Resource groups and keys are written at once, without an operation.
        if matches!(id.kind, Kind::ResourceGroup | Kind::SshKey) {
            return ApiResponse::document(document).status(status);
        }
        let task = self.begin_document(id, document, false);
        self.operation_response(task, StartedOperation::Document(status), document)
    }

    /// Begins the operation of a document.
    fn begin_document(&mut self, id: &Id, document: &Value, removes: bool) -> u64 {
        let location = document["location"].as_str().unwrap_or_default().to_owned();
        self.engine
            .begin_update(id, &location, Work::Document { removes })
    }

    /// Returns the response to a deleted part of a document, and begins its operation.
    pub(super) fn delete_part(&mut self, document: &Document, changed: Value) -> ApiResponse {
        if self.injected.planned_failures.is_empty() {
            self.engine.write_document(&document.id, changed);
        }
        let task = self.begin_document(&document.id, &document.value, true);
        self.operation_response(task, StartedOperation::Accepted, &Value::Null)
    }

    /// Completes the document of a request.
    fn complete(&self, id: &Id, body: &Value) -> Result<Value, Refusal> {
        match id.kind {
            Kind::ResourceGroup => self.engine.group_document(id, body),
            Kind::VirtualNetwork => self.engine.network_document(id, body),
            Kind::SecurityGroup => self.engine.security_group_document(id, body),
            Kind::Snapshot => self.engine.snapshot_document(id, body),
            Kind::SshKey => self.engine.ssh_key_document(id, body),
            Kind::VirtualMachine | Kind::Disk | Kind::Image | Kind::Nic | Kind::PublicIp => {
                Err(Refusal::internal())
            }
        }
    }
}

/// Creates or replaces a document.
pub(super) fn put(context: &mut Context<'_>, kind: Kind) -> Result<ApiResponse, Refusal> {
    let body = document_members::read(context.request, kind)?;
    let id = context.document_id(kind);
    if kind != Kind::ResourceGroup {
        context.engine.check_group(&id.subscription, &id.group)?;
    }
    network::check_document_name(&id)?;
    let document = context.complete(&id, &body)?;
    Ok(context.change_document(&id, &document, |context| {
        let new = context.engine.write_document(&id, document.clone());
        context.engine.forget_pools(&id);
        new
    }))
}

/// Replaces the tags of a document, and changes properties of an SSH key or a snapshot.
///
/// # Errors
///
/// 400 `BadRequest` for any other member.
pub(super) fn patch(context: &mut Context<'_>, kind: Kind) -> Result<ApiResponse, Refusal> {
    let change = document_members::read(context.request, kind)?;
    let document = context.known_document(kind)?;
    let mut body = document.value.clone();
    for (name, value) in change.as_object().into_iter().flatten() {
        match (name.as_str(), kind) {
            ("tags", _) => body["tags"] = value.clone(),
            ("properties", Kind::SshKey | Kind::Snapshot) => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    body["properties"][name] = value.clone();
                }
            }
            (name, _) => {
                let message = format!("unknown field `{name}`, expected `tags`");
                return Err(Refusal::client("BadRequest", message));
            }
        }
    }
    let completed = context.complete(&document.id, &body)?;
    Ok(
        context.change_document(&document.id, &completed, |context| {
            context
                .engine
                .write_document(&document.id, completed.clone());
            false
        }),
    )
}

/// Returns a document.
pub(super) fn get(context: &mut Context<'_>, kind: Kind) -> Result<ApiResponse, Refusal> {
    let document = context.known_document(kind)?;
    Ok(ApiResponse::document(&document.value))
}

/// Returns 204 if a resource group exists, otherwise 404 `ResourceGroupNotFound`.
pub(super) fn group_exists(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    context.known_document(Kind::ResourceGroup)?;
    Ok(ApiResponse::bare(204))
}

/// Lists the documents of a kind.
pub(super) fn list(
    context: &mut Context<'_>,
    kind: Kind,
    list_scope: ListScope,
) -> Result<ApiResponse, Refusal> {
    if kind != Kind::ResourceGroup {
        context.scope(list_scope)?;
    }
    let group = (list_scope == ListScope::Group).then(|| context.request.name(1));
    let found = context
        .engine
        .documents_of(kind, context.request.subscription(), group);
    let mut items: Vec<Value> = found.into_iter().map(|document| document.value).collect();
    if kind == Kind::ResourceGroup {
        if let Some(filter) = context.request.param("$filter") {
            let conditions = super::filter::read(filter, &["tagName", "tagValue"])?;
            items.retain(|item| super::filter::passes(item, &conditions));
        }
    }
    context.paginate(items)
}

/// Begins to delete a document (202). A missing one is a success too (204), except a resource
/// group, which is 404.
pub(super) fn delete(context: &mut Context<'_>, kind: Kind) -> Result<ApiResponse, Refusal> {
    let id = context.document_id(kind);
    if kind != Kind::ResourceGroup {
        context.engine.check_group(&id.subscription, &id.group)?;
    }
    context.engine.core.records_read += 1;
    let Some(document) = context.engine.document(&id) else {
        if kind == Kind::ResourceGroup {
            return Err(id.not_found());
        }
        return Ok(ApiResponse::bare(204));
    };
    check_unused(context, &document)?;
    let failure = context.injected.planned_failures.first().cloned();
    let fails = failure.is_some();
    if kind == Kind::ResourceGroup {
        let task = match failure {
            None => context.engine.delete_group(&document.id)?,
            Some(failure) => {
                let task = context.begin_document(&document.id, &document.value, true);
                context.engine.plan_failure(task, failure);
                task
            }
        };
        return Ok(context.group_response(task));
    }
    if !fails {
        context.engine.remove_document(&document.id);
        context.engine.forget_pools(&document.id);
    }
    if kind == Kind::SshKey {
        return Ok(ApiResponse::bare(200));
    }
    let task = context.begin_document(&document.id, &document.value, true);
    Ok(context.operation_response(task, StartedOperation::Accepted, &Value::Null))
}

/// Refuses to delete a network or a security group that something uses.
fn check_unused(context: &Context<'_>, document: &Document) -> Result<(), Refusal> {
    match document.id.kind {
        Kind::SecurityGroup => context.engine.check_security_group_unused(&document.id),
        Kind::VirtualNetwork => {
            let subnets = document.value["properties"]["subnets"].as_array();
            for subnet in subnets.into_iter().flatten() {
                context
                    .engine
                    .check_subnet_unused(subnet["id"].as_str().unwrap_or_default())?;
            }
            Ok(())
        }
        Kind::VirtualMachine
        | Kind::Disk
        | Kind::Image
        | Kind::Nic
        | Kind::PublicIp
        | Kind::Snapshot
        | Kind::SshKey
        | Kind::ResourceGroup => Ok(()),
    }
}

/// The parts of a document that have paths of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The subnets of a virtual network.
    Subnet,
    /// The rules of a network security group.
    Rule,
    /// The rules that every network security group has.
    DefaultRule,
}

impl Part {
    /// Returns the kind of the document that the part is in.
    const fn owner(self) -> Kind {
        match self {
            Self::Subnet => Kind::VirtualNetwork,
            Self::Rule | Self::DefaultRule => Kind::SecurityGroup,
        }
    }

    /// Returns the member of `properties` that lists the parts.
    const fn member(self) -> &'static str {
        match self {
            Self::Subnet => "subnets",
            Self::Rule => "securityRules",
            Self::DefaultRule => "defaultSecurityRules",
        }
    }
}

/// Returns the parts of a document.
fn parts(document: &Document, part: Part) -> Vec<Value> {
    let parts = document.value["properties"][part.member()].as_array();
    parts.cloned().unwrap_or_default()
}

/// Lists the parts of a document.
pub(super) fn list_parts(context: &mut Context<'_>, part: Part) -> Result<ApiResponse, Refusal> {
    let document = context.known_document(part.owner())?;
    context.paginate(parts(&document, part))
}

/// Returns a part of a document, or 404 `NotFound`.
pub(super) fn get_part(context: &mut Context<'_>, part: Part) -> Result<ApiResponse, Refusal> {
    let document = context.known_document(part.owner())?;
    let wanted = json!({ "name": context.request.name(3) });
    let parts = parts(&document, part);
    let found = parts.iter().find(|it| network::same_name(it, &wanted));
    let found = found.ok_or_else(|| {
        let message = format!("Resource {} not found.", context.request.path);
        Refusal::new(404, "NotFound", message)
    })?;
    Ok(ApiResponse::document(found))
}

/// Creates or replaces a part of a document, and begins an operation.
pub(super) fn put_part(context: &mut Context<'_>, part: Part) -> Result<ApiResponse, Refusal> {
    let mut body = document_members::read_part(context.request, part == Part::Subnet)?;
    body["name"] = json!(context.request.name(3));
    let document = context.known_document(part.owner())?;
    let completed = match part {
        Part::Subnet => context.engine.subnet_document(&document.id, &body)?,
        Part::Rule | Part::DefaultRule => network::rule_document(&document.id, &body)?,
    };
    let mut parts = parts(&document, part);
    let same = |it: &Value| network::same_name(it, &completed);
    let place = parts.iter().position(same);
    match place.and_then(|place| parts.get_mut(place)) {
        Some(existing) => *existing = completed.clone(),
        None => parts.push(completed.clone()),
    }
    match part {
        Part::Subnet => {
            let network = &document.value["properties"]["addressSpace"]["addressPrefixes"];
            let space = network.as_array().into_iter().flatten();
            let space: Vec<_> = space
                .map(|it| prefix(it, &document.id.name))
                .collect::<Result<_, _>>()?;
            network::check_ranges(&document.id.name, &space, &parts)?;
            context
                .engine
                .check_range_unused(&document.value, &completed)?;
        }
        Part::Rule | Part::DefaultRule => network::check_priorities(&parts)?,
    }
    let mut changed = document.value.clone();
    changed["properties"][part.member()] = Value::Array(parts);
    let fails = !context.injected.planned_failures.is_empty();
    if !fails {
        context.engine.write_document(&document.id, changed);
        context.engine.forget_pools(&document.id);
    }
    let task = context.begin_document(&document.id, &document.value, false);
    let status = if place.is_none() { 201 } else { 200 };
    Ok(context.operation_response(task, StartedOperation::Document(status), &completed))
}

/// Begins to delete a part of a document (202). A missing one is a success too (204).
pub(super) fn delete_part(context: &mut Context<'_>, part: Part) -> Result<ApiResponse, Refusal> {
    let document = context.known_document(part.owner())?;
    let wanted = json!({ "name": context.request.name(3) });
    let mut parts = parts(&document, part);
    let same = |it: &Value| network::same_name(it, &wanted);
    let Some(place) = parts.iter().position(same) else {
        return Ok(ApiResponse::bare(204));
    };
    let removed = parts.remove(place);
    if part == Part::Subnet {
        context
            .engine
            .check_subnet_unused(removed["id"].as_str().unwrap_or_default())?;
    }
    let mut changed = document.value.clone();
    changed["properties"][part.member()] = Value::Array(parts);
    let response = context.delete_part(&document, changed);
    context.engine.forget_pools(&document.id);
    Ok(response)
}
