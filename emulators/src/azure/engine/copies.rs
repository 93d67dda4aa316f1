//! Snapshots of disks, and SSH keys.

use serde_json::{Value, json};

use super::{Engine, network::fill};
use crate::azure::{
    error::Refusal,
    wire::id::{Id, Kind},
};

/// The beginnings of the keys that Azure accepts.
const KEY_TYPES: [&str; 3] = ["ssh-rsa ", "ssh-ed25519 ", "ecdsa-sha2-"];

/// What a copy of a disk or snapshot has from its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopySource {
    /// The size in GiB.
    pub(super) gib: u32,
    /// The operating system, of a copy of an OS disk.
    pub(super) os_type: Option<String>,
}

impl Engine {
    /// Completes the document of a snapshot.
    ///
    /// # Errors
    ///
    /// 400 `InvalidParameter` for another create option than `Copy`, 404 for a source that does not
    /// exist, and those of the envelope.
    pub(crate) fn snapshot_document(&self, id: &Id, body: &Value) -> Result<Value, Refusal> {
        let existing = self.document(id).map(|document| document.value);
        let mut document = self.document_envelope(id, body, existing.as_ref())?;
        let mut properties = body["properties"].clone();
        if let Some(existing) = &existing {
            // A snapshot keeps its content: only tags and network access change.
            let before = &existing["properties"];
            for name in ["creationData", "diskSizeGB"] {
                properties[name] = before[name].clone();
            }
            fill(&mut properties, before);
        } else {
            let data = &properties["creationData"];
            let option = data["createOption"].as_str().unwrap_or_default();
            if !["copy", "copystart"].contains(&option.to_ascii_lowercase().as_str()) {
                let message = format!(
                    "The value '{option}' of parameter 'creationData.createOption' is not allowed."
                );
                return Err(Refusal::invalid("creationData.createOption", message));
            }
            let uri = data["sourceResourceId"]
                .as_str()
                .or_else(|| data["sourceUri"].as_str());
            let Some(uri) = uri else {
                return Err(Refusal::missing("creationData.sourceResourceId"));
            };
            let source = self.copy_source(uri)?;
            properties["diskSizeGB"] = json!(source.gib);
            if let Some(os_type) = source.os_type {
                properties["osType"] = json!(os_type);
            }
            properties["timeCreated"] = json!(self.timestamp(self.now()));
            properties["uniqueId"] =
                json!(Self::derived_guid(&format!("{}{:?}", id.key(), self.now())));
        }
        let gib = properties["diskSizeGB"].as_u64().unwrap_or_default();
        properties["diskSizeBytes"] = json!(gib << 30);
        properties["diskState"] = json!("Unattached");
        properties["provisioningState"] = json!("Succeeded");
        fill(&mut properties, &json!({ "incremental": false }));
        let sku = body["sku"]["name"].as_str().unwrap_or("Standard_LRS");
        let tier = sku.split('_').next().unwrap_or_default();
        document["sku"] = json!({ "name": sku, "tier": tier });
        document["properties"] = properties;
        Ok(document)
    }

    /// Returns what a copy of a disk or snapshot has from its source.
    ///
    /// # Errors
    ///
    /// 400 `LinkedInvalidPropertyId` for the id of another kind, 404 if it does not exist.
    pub(super) fn copy_source(&self, path: &str) -> Result<CopySource, Refusal> {
        if let Ok(id) = Id::read(Kind::Snapshot, path) {
            let document = self.document(&id).ok_or_else(|| id.not_found())?;
            let properties = &document.value["properties"];
            let gib = properties["diskSizeGB"]
                .as_u64()
                .and_then(|gib| u32::try_from(gib).ok());
            return Ok(CopySource {
                gib: gib.unwrap_or_default(),
                os_type: properties["osType"].as_str().map(str::to_owned),
            });
        }
        let id = Id::read(Kind::Disk, path)?;
        let (_, disk) = self.disks.find(&id).ok_or_else(|| id.not_found())?;
        Ok(CopySource {
            gib: disk.gib,
            os_type: disk.os_type.clone(),
        })
    }

    /// Completes the document of an SSH key.
    ///
    /// # Errors
    ///
    /// 400 `InvalidParameter` for a text that is not a public key, and those of the envelope.
    pub(crate) fn ssh_key_document(&self, id: &Id, body: &Value) -> Result<Value, Refusal> {
        let existing = self.document(id).map(|document| document.value);
        let mut document = self.document_envelope(id, body, existing.as_ref())?;
        let given = body["properties"]["publicKey"].as_str();
        let before = existing
            .as_ref()
            .and_then(|it| it["properties"]["publicKey"].as_str());
        document["properties"] = json!({});
        if let Some(key) = given.or(before) {
            if !KEY_TYPES
                .iter()
                .any(|known| key.trim_start().starts_with(known))
            {
                let message = "The value of parameter publicKey is not a public key in the format of OpenSSH.";
                return Err(Refusal::invalid("publicKey", message));
            }
            document["properties"]["publicKey"] = json!(key);
        }
        Ok(document)
    }
}
