//! Resource groups: their documents, and their deletion with everything in them.

use serde_json::{Value, json};

use super::Engine;
use crate::azure::{
    catalog::same,
    error::Refusal,
    wire::id::{Id, Kind},
};

impl Engine {
    /// Completes the document of a resource group.
    ///
    /// # Errors
    ///
    /// Those of the envelope.
    pub(crate) fn group_document(&self, id: &Id, body: &Value) -> Result<Value, Refusal> {
        let existing = self.document(id).map(|document| document.value);
        let mut document = self.document_envelope(id, body, existing.as_ref())?;
        document["properties"] = json!({ "provisioningState": "Succeeded" });
        if let Some(owner) = body["managedBy"].as_str() {
            document["managedBy"] = json!(owner);
        }
        Ok(document)
    }

    /// Begins to delete a resource group with everything in it, and returns the operation.
    ///
    /// # Errors
    ///
    /// 404 `ResourceGroupNotFound`.
    pub(crate) fn delete_group(&mut self, id: &Id) -> Result<u64, Refusal> {
        let document = self.document(id).ok_or_else(|| id.not_found())?;
        self.remove_content(id);
        self.remove_document(id);
        let location = document.value["location"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let work = super::task::Work::Document { removes: true };
        Ok(self.begin_update(id, &location, work))
    }

    /// Removes everything in a resource group: machines before what they use.
    fn remove_content(&mut self, group: &Id) {
        let is_in =
            |id: &Id| same(&id.subscription, &group.subscription) && same(&id.group, &group.name);
        let vms = self.vms.iter().filter(|(_, vm)| is_in(&vm.id));
        for seq in vms.map(|(seq, _)| seq).collect::<Vec<_>>() {
            if let Some(task) = self.vms.get(seq).and_then(|vm| vm.task) {
                self.close(task, None);
            }
            self.remove_vm(seq);
        }
        let nics = self
            .nics
            .iter()
            .filter(|(_, nic)| is_in(&nic.id) && nic.attached.is_none());
        for seq in nics.map(|(seq, _)| seq).collect::<Vec<_>>() {
            self.remove_nic(seq);
        }
        let ips = self
            .ips
            .iter()
            .filter(|(_, ip)| is_in(&ip.id) && ip.attached.is_none());
        for seq in ips.map(|(seq, _)| seq).collect::<Vec<_>>() {
            self.remove_ip(seq);
        }
        let disks = self
            .disks
            .iter()
            .filter(|(_, disk)| is_in(&disk.id) && disk.attached.is_none());
        for seq in disks.map(|(seq, _)| seq).collect::<Vec<_>>() {
            self.remove_disk(seq);
        }
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        let images = self.images.iter().filter(|(_, image)| is_in(&image.id));
        for seq in images.map(|(seq, _)| seq).collect::<Vec<_>>() {
            self.images.remove(seq, now, window);
        }
        for kind in [
            Kind::VirtualNetwork,
            Kind::SecurityGroup,
            Kind::Snapshot,
            Kind::SshKey,
        ] {
            for document in self.documents_of(kind, &group.subscription, Some(&group.name)) {
                self.remove_document(&document.id);
            }
        }
    }
}
