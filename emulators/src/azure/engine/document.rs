//! Resources that are documents: resource groups, virtual networks, network security groups,
//! snapshots and SSH keys.
//!
//! A client writes the document, the engine completes it, and reads return it. The catalog has
//! documents too: they exist in every subscription until a client replaces or deletes them there.
//! Reads of documents are always current.

use serde_json::{Value, json};

use super::Engine;
use crate::{
    azure::{
        catalog::same,
        error::Refusal,
        shapes::catalog as shapes,
        wire::{
            body::Tags,
            id::{Id, Kind},
        },
    },
    cloud::index::Seq,
};

/// A resource that is a document.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// The resource id.
    pub(crate) id: Id,
    /// The number that orders lists. 0 for a document of the catalog.
    pub(crate) seq: Seq,
    /// What a read returns.
    pub(crate) value: Value,
}

impl Engine {
    /// Returns a document that a client wrote or that the catalog has.
    pub(crate) fn document(&self, id: &Id) -> Option<Document> {
        let key = id.key();
        match self.documents.get(&key) {
            Some(document) => Some(document.clone()),
            None if self.removed.contains(&key) => None,
            None => self.catalog_document(id),
        }
    }

    /// Whether no client has written or deleted a document, so that only the catalog may have it.
    pub(super) fn is_catalog(&self, id: &Id) -> bool {
        if self.documents.is_empty() && self.removed.is_empty() {
            return true;
        }
        let key = id.key();
        !self.documents.contains_key(&key) && !self.removed.contains(&key)
    }

    /// Whether a document exists.
    pub(crate) fn has_document(&self, id: &Id) -> bool {
        let key = id.key();
        self.documents.contains_key(&key)
            || (!self.removed.contains(&key) && self.catalog_document(id).is_some())
    }

    /// Returns the documents of a kind in a subscription, or in one of its resource groups: those
    /// of the catalog first, then in the order of creation.
    pub(crate) fn documents_of(
        &self,
        kind: Kind,
        subscription: &str,
        group: Option<&str>,
    ) -> Vec<Document> {
        let in_scope = |id: &Id| {
            id.kind == kind
                && same(&id.subscription, subscription)
                && group.is_none_or(|group| same(&id.group, group))
        };
        let mut found: Vec<Document> = self
            .catalog_ids(kind, subscription)
            .into_iter()
            .filter(|id| in_scope(id) && !self.documents.contains_key(&id.key()))
            .filter_map(|id| self.document(&id))
            .collect();
        let written = self.documents.values();
        let mut written: Vec<_> = written.filter(|it| in_scope(&it.id)).cloned().collect();
        written.sort_by_key(|document| document.seq);
        found.append(&mut written);
        found
    }

    /// Writes a document, and returns whether it is new.
    pub(crate) fn write_document(&mut self, id: &Id, value: Value) -> bool {
        let existing = self.document(id);
        let seq = match &existing {
            Some(document) if document.seq > 0 => document.seq,
            Some(_) | None => self.next_seq(),
        };
        // The case of the first creation stays.
        let id = existing
            .as_ref()
            .map_or_else(|| id.clone(), |it| it.id.clone());
        self.removed.remove(&id.key());
        self.documents.insert(id.key(), Document { id, seq, value });
        existing.is_none()
    }

    /// Removes a document.
    pub(crate) fn remove_document(&mut self, id: &Id) {
        let key = id.key();
        self.documents.remove(&key);
        if self.catalog_document(id).is_some() {
            self.removed.insert(key);
        }
    }

    /// Replaces the tags of an existing resource of any kind.
    pub(crate) fn set_tags(&mut self, id: &Id, tags: &Tags) {
        match id.kind {
            Kind::VirtualMachine => {
                if let Some(seq) = self.vms.seq(id) {
                    self.edit_vm(seq, |vm| vm.tags = tags.clone().into());
                }
            }
            Kind::Nic => {
                if let Some(seq) = self.nics.seq(id) {
                    self.edit_nic(seq, |nic| nic.tags.clone_from(tags));
                }
            }
            Kind::PublicIp => {
                if let Some(seq) = self.ips.seq(id) {
                    self.edit_ip(seq, |ip| ip.tags.clone_from(tags));
                }
            }
            Kind::Disk => {
                if let Some(seq) = self.disks.seq(id) {
                    self.edit_disk(seq, |disk| disk.tags.clone_from(tags));
                }
            }
            Kind::Image => {
                if let Some(seq) = self.images.seq(id) {
                    self.edit_image(seq, |image| image.tags.clone_from(tags));
                }
            }
            Kind::VirtualNetwork
            | Kind::SecurityGroup
            | Kind::Snapshot
            | Kind::SshKey
            | Kind::ResourceGroup => {
                if let Some(mut document) = self.document(id) {
                    document.value["tags"] = json!(tags);
                    self.write_document(id, document.value);
                }
            }
        }
    }

    /// Returns a GUID that a resource keeps, without a random number.
    pub(crate) fn derived_guid(text: &str) -> String {
        uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, text.as_bytes()).to_string()
    }

    /// Returns the members that every document has, and its properties. `body` is the document of
    /// the request.
    ///
    /// # Errors
    ///
    /// 400 without a known location; 409 `InvalidResourceLocation` for another location than the
    /// existing resource has; those of tags.
    pub(crate) fn document_envelope(
        &self,
        id: &Id,
        body: &Value,
        existing: Option<&Value>,
    ) -> Result<Value, Refusal> {
        let location = self.location(body["location"].as_str())?;
        if existing.is_some_and(|it| it["location"].as_str() != Some(&location)) {
            return Err(moved(id, existing, &location));
        }
        let tags = super::tags::read(&body["tags"])?;
        self.check_tags(tags.as_ref())?;
        let mut document = json!({
            "id": id.path(),
            "name": id.name,
            "type": id.kind.name(),
            "location": location,
        });
        if let Some(tags) = tags.filter(|tags| !tags.is_empty()) {
            document["tags"] = json!(tags);
        }
        Ok(document)
    }

    /// Returns the document of the catalog with this id.
    fn catalog_document(&self, id: &Id) -> Option<Document> {
        let knobs = &self.core.knobs;
        let subscription = &id.subscription;
        let value = match id.kind {
            Kind::ResourceGroup => {
                let mut known = knobs.resource_groups.iter();
                let group = known.find(|it| same(&it.name, &id.name))?;
                shapes::group(subscription, group)
            }
            Kind::VirtualNetwork => {
                let known = knobs.virtual_networks.iter();
                let mut known = known.filter(|it| same(&it.resource_group, &id.group));
                let network = known.find(|it| same(&it.name, &id.name))?;
                shapes::network(subscription, network)
            }
            Kind::SecurityGroup => {
                let known = knobs.network_security_groups.iter();
                let mut known = known.filter(|it| same(&it.resource_group, &id.group));
                let group = known.find(|it| same(&it.name, &id.name))?;
                shapes::security_group(subscription, group)
            }
            Kind::VirtualMachine
            | Kind::Disk
            | Kind::Image
            | Kind::Nic
            | Kind::PublicIp
            | Kind::Snapshot
            | Kind::SshKey => return None,
        };
        let mut id = id.clone();
        if let Some(name) = value["name"].as_str() {
            name.clone_into(&mut id.name);
        }
        Some(Document { id, seq: 0, value })
    }

    /// Returns the ids of the catalog's documents of a kind in a subscription.
    fn catalog_ids(&self, kind: Kind, subscription: &str) -> Vec<Id> {
        let knobs = &self.core.knobs;
        let id = |group: &str, name: &str| Id::new(kind, subscription, group, name);
        match kind {
            Kind::ResourceGroup => {
                let known = knobs.resource_groups.iter();
                known.map(|it| id(&it.name, &it.name)).collect()
            }
            Kind::VirtualNetwork => {
                let known = knobs.virtual_networks.iter();
                known.map(|it| id(&it.resource_group, &it.name)).collect()
            }
            Kind::SecurityGroup => {
                let known = knobs.network_security_groups.iter();
                known.map(|it| id(&it.resource_group, &it.name)).collect()
            }
            Kind::VirtualMachine
            | Kind::Disk
            | Kind::Image
            | Kind::Nic
            | Kind::PublicIp
            | Kind::Snapshot
            | Kind::SshKey => Vec::new(),
        }
    }
}

/// Returns 409 for a document whose resource exists in another location.
fn moved(id: &Id, existing: Option<&Value>, location: &str) -> Refusal {
    let current = existing
        .and_then(|it| it["location"].as_str())
        .unwrap_or_default();
    if id.kind == Kind::ResourceGroup {
        let message = format!(
            "Invalid resource group location '{location}'. The Resource group already exists in location '{current}'."
        );
        return Refusal::new(409, "InvalidResourceGroupLocation", message);
    }
    let message = format!(
        "The resource '{}' already exists in location '{current}' in resource group '{}'. A resource with the same name \
         cannot be created in location '{location}'. Please select a new resource name.",
        id.name, id.group
    );
    Refusal::new(409, "InvalidResourceLocation", message)
}
