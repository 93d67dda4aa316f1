//! The documents that requests carry: those of disks, images, interfaces and addresses, and how any
//! of them is read.
//!
//! A member is honoured or refused. Only what Azure itself writes into its answers is passed over,
//! so that a document that was read can be sent back.

use std::collections::BTreeMap;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error as _},
};
use serde_json::Value;

use super::request::Request;
use crate::azure::error::Refusal;

/// Members that only Azure writes.
const READ_ONLY: [&str; 24] = [
    "id",
    "name",
    "type",
    "etag",
    "kind",
    "systemData",
    "managedBy",
    "resources",
    "provisioningState",
    "vmId",
    "instanceView",
    "timeCreated",
    "resourceGuid",
    "macAddress",
    "virtualMachine",
    "uniqueId",
    "diskState",
    "diskSizeBytes",
    "ipAddress",
    "ipConfiguration",
    "ipTags",
    "hostedWorkloads",
    "tapConfigurations",
    "nicType",
];

/// Tags of a resource.
pub(crate) type Tags = BTreeMap<String, String>;

/// The document of a request.
pub(crate) fn read<T: DeserializeOwned>(request: &Request) -> Result<T, Refusal> {
    let body = request.body.clone().filter(Value::is_object);
    let Some(body) = body else {
        return Err(Refusal::content("the document is not an object"));
    };
    let mut body = without_nulls(body);
    remove_read_only(&mut body);
    if let Some(properties) = body.get_mut("properties") {
        remove_read_only(properties);
    }
    serde_json::from_value(body).map_err(|error| Refusal::client("BadRequest", error.to_string()))
}

fn remove_read_only(document: &mut Value) {
    if let Value::Object(members) = document {
        members.retain(|name, _| !READ_ONLY.contains(&name.as_str()));
    }
}

/// A document without members that are null.
pub(crate) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, member)| !member.is_null());
            Value::Object(kept.map(|(name, it)| (name, without_nulls(it))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// A flag, which clients also write as text, and Azure takes it.
pub(super) fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    let value = Value::deserialize(from)?;
    let parsed = match value.as_str().map(str::to_ascii_lowercase).as_deref() {
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) | None => value.as_bool(),
    };
    parsed
        .map(Some)
        .ok_or_else(|| D::Error::custom(format!("{value} is not a flag")))
}

/// Refuses any version of the internet protocol but the fourth.
pub(crate) fn check_ip_version(version: Option<&str>) -> Result<(), Refusal> {
    match version {
        None | Some("IPv4") => Ok(()),
        Some(_) => Err(Refusal::unsupported("IPv6")),
    }
}

/// Refuses name servers of an interface's own; a document without any says nothing.
pub(crate) fn check_dns_settings(settings: Option<&Value>) -> Result<(), Refusal> {
    let empty = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    let members = settings.and_then(Value::as_object);
    if members.is_none_or(|members| members.values().all(empty)) {
        Ok(())
    } else {
        Err(Refusal::unsupported("dnsSettings"))
    }
}

/// A reference to another resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reference {
    pub(crate) id: String,
}

/// A SKU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sku {
    pub(crate) name: Option<String>,
    pub(crate) tier: Option<String>,
}

/// What becomes of something when its virtual machine is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DeleteOption {
    /// It goes too.
    #[serde(alias = "delete")]
    Delete,
    /// It is left behind.
    #[default]
    #[serde(alias = "detach")]
    Detach,
}

/// A public address to make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct IpBody {
    pub(crate) location: Option<String>,
    pub(crate) tags: Option<Tags>,
    pub(crate) zones: Option<Vec<String>>,
    pub(crate) sku: Option<Sku>,
    pub(crate) properties: Option<IpProperties>,
}

/// What a public address is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct IpProperties {
    #[serde(rename = "publicIPAllocationMethod")]
    pub(crate) allocation: Option<String>,
    #[serde(rename = "publicIPAddressVersion")]
    pub(crate) version: Option<String>,
    pub(crate) idle_timeout_in_minutes: Option<u32>,
    pub(crate) delete_option: Option<DeleteOption>,
}

/// An interface to make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NicBody {
    pub(crate) location: Option<String>,
    pub(crate) tags: Option<Tags>,
    pub(crate) properties: Option<NicProperties>,
}

/// What an interface is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NicProperties {
    pub(crate) ip_configurations: Vec<IpConfiguration>,
    pub(crate) network_security_group: Option<Reference>,
    pub(crate) enable_accelerated_networking: Option<bool>,
    #[serde(rename = "enableIPForwarding")]
    pub(crate) enable_ip_forwarding: Option<bool>,
    pub(crate) primary: Option<bool>,
    pub(crate) dns_settings: Option<Value>,
}

/// An address of an interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct IpConfiguration {
    pub(crate) name: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) etag: Option<String>,
    pub(crate) r#type: Option<String>,
    pub(crate) properties: IpConfigurationProperties,
}

/// What an address of an interface is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct IpConfigurationProperties {
    pub(crate) subnet: Option<Reference>,
    pub(crate) primary: Option<bool>,
    pub(crate) provisioning_state: Option<String>,
    #[serde(rename = "privateIPAddress")]
    pub(crate) private_ip_address: Option<String>,
    #[serde(rename = "privateIPAddressVersion")]
    pub(crate) private_ip_address_version: Option<String>,
    #[serde(rename = "privateIPAllocationMethod")]
    pub(crate) private_ip_allocation_method: Option<String>,
    #[serde(rename = "publicIPAddress")]
    pub(crate) public_ip_address: Option<PublicReference>,
}

/// A public address, by its id or with all that a read shows of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PublicReference {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) properties: Option<Value>,
}

/// A disk to make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DiskBody {
    pub(crate) location: Option<String>,
    pub(crate) tags: Option<Tags>,
    pub(crate) zones: Option<Vec<String>>,
    pub(crate) sku: Option<Sku>,
    pub(crate) properties: Option<DiskProperties>,
}

/// What a disk is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DiskProperties {
    pub(crate) creation_data: Option<CreationData>,
    #[serde(rename = "diskSizeGB")]
    pub(crate) disk_size_gb: Option<u32>,
    pub(crate) os_type: Option<String>,
}

/// Where a disk comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreationData {
    pub(crate) create_option: Option<String>,
}

/// An image to make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ImageBody {
    pub(crate) location: Option<String>,
    pub(crate) tags: Option<Tags>,
    pub(crate) properties: Option<ImageProperties>,
}

/// What an image is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ImageProperties {
    pub(crate) source_virtual_machine: Option<Reference>,
    pub(crate) storage_profile: Option<ImageStorage>,
    pub(crate) hyper_v_generation: Option<String>,
}

/// The disks of an image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ImageStorage {
    pub(crate) os_disk: Option<ImageDisk>,
    pub(crate) data_disks: Vec<Value>,
    pub(crate) zone_resilient: Option<bool>,
}

/// The system's disk of an image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ImageDisk {
    pub(crate) os_type: Option<String>,
    pub(crate) os_state: Option<String>,
    pub(crate) managed_disk: Option<Reference>,
    pub(crate) caching: Option<String>,
    pub(crate) storage_account_type: Option<String>,
    #[serde(rename = "diskSizeGB")]
    pub(crate) disk_size_gb: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(body: Value) -> Request {
        Request {
            body: Some(body),
            ..Request::default()
        }
    }

    #[test]
    fn members_are_honoured_or_refused_and_read_only_ones_ignored() {
        let body = json!({ "id": "/x", "location": "eastus", "tags": null,
                           "properties": { "provisioningState": "Succeeded" } });
        let read_back: IpBody = read(&request(body)).unwrap();
        assert_eq!(read_back.location.as_deref(), Some("eastus"));
        let refusal = read::<IpBody>(&request(json!({ "colour": "red" }))).unwrap_err();
        assert_eq!(refusal.code, "BadRequest");
        assert!(refusal.message.contains("colour"));
        assert!(read::<IpBody>(&request(json!([]))).is_err());
        assert!(read::<IpBody>(&Request::default()).is_err());
    }

    #[test]
    fn nulls_are_left_out_at_any_depth() {
        let value = json!({ "a": null, "b": [{ "c": null, "d": 1 }] });
        assert_eq!(without_nulls(value), json!({ "b": [{ "d": 1 }] }));
    }
}
