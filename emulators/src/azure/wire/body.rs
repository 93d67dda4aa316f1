//! The documents of disks, images, interfaces and public addresses, and the parser of all
//! documents.
//!
//! A member is applied or refused, never silently ignored. The only exception is a fixed list of
//! members that Azure itself writes into its responses: they are dropped, so that a client can send
//! back a document that it has read.

use std::collections::BTreeMap;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error as _, IgnoredAny},
};
use serde_json::Value;

use super::{
    members::Known,
    request::Request,
    schema::{Others, apply},
};
use crate::azure::error::Refusal;

/// Members that only the cloud writes. They are dropped at the top level and in `properties`.
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

/// The tags of a resource, by name. The engine checks their number, length and characters.
pub(crate) type Tags = BTreeMap<String, String>;

/// Parses the document of a request.
///
/// Drops null members and read-only members first, so that `"tags": null` is the same as no tags.
///
/// # Errors
///
/// 400 `InvalidRequestContent` without a JSON object; 400 `BadRequest` with the parser's message
/// for an unknown member or a member of the wrong type; 400 `NotSupported` for a member that Azure
/// has and the emulator does not, unless it is at its default.
pub(crate) fn read<T: DeserializeOwned + Known>(request: &Request) -> Result<T, Refusal> {
    let body = request.body.clone().filter(Value::is_object);
    let Some(body) = body else {
        return Err(Refusal::content("the document is not an object"));
    };
    let mut body = without_nulls(body);
    remove_read_only(&mut body);
    if let Some(properties) = body.get_mut("properties") {
        remove_read_only(properties);
    }
    apply(&mut body, T::MEMBERS, Others::Kept, "")?;
    serde_json::from_value(body).map_err(|error| Refusal::client("BadRequest", error.to_string()))
}

/// Removes the [`READ_ONLY`] members of one object, not of nested ones.
fn remove_read_only(document: &mut Value) {
    if let Value::Object(members) = document {
        members.retain(|name, _| !READ_ONLY.contains(&name.as_str()));
    }
}

/// Returns a document without its null members, at any depth. Items of arrays are kept.
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

/// Deserializes a flag. `true` and `"True"` are both accepted, because clients send both.
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

/// Refuses every version of the internet protocol except `IPv4`, with 400 `NotSupported`.
pub(crate) fn check_ip_version(version: Option<&str>) -> Result<(), Refusal> {
    match version {
        None | Some("IPv4") => Ok(()),
        Some(_) => Err(Refusal::unsupported("IPv6")),
    }
}

/// Refuses own name servers of an interface, with 400 `NotSupported`. A document whose lists are
/// all empty is accepted, because responses contain one.
pub(crate) fn check_dns_settings(settings: Option<&Value>) -> Result<(), Refusal> {
    let empty = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    let members = settings.and_then(Value::as_object);
    if members.is_none_or(|members| members.values().all(empty)) {
        Ok(())
    } else {
        Err(Refusal::unsupported("dnsSettings"))
    }
}

/// A reference to another resource: `{"id": "…"}`, or the whole document that a read returned. Only
/// the id counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "WholeReference")]
pub(crate) struct Reference {
    /// The resource id. Whether it exists is checked by the engine.
    pub(crate) id: String,
}

/// A reference with the members of the document that it refers to.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "all members but the id are ignored")]
struct WholeReference {
    id: String,
    name: Option<IgnoredAny>,
    r#type: Option<IgnoredAny>,
    etag: Option<IgnoredAny>,
    location: Option<IgnoredAny>,
    extended_location: Option<IgnoredAny>,
    tags: Option<IgnoredAny>,
    sku: Option<IgnoredAny>,
    zones: Option<IgnoredAny>,
    properties: Option<IgnoredAny>,
}

impl From<WholeReference> for Reference {
    fn from(whole: WholeReference) -> Self {
        Self { id: whole.id }
    }
}

/// The SKU of a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sku {
    /// The name, for example `Standard_LRS` of a disk or `Standard` of a public address.
    pub(crate) name: Option<String>,
    /// Accepted and ignored: responses derive it from the name.
    pub(crate) tier: Option<String>,
}

/// What happens to a disk, an interface or an address when its owner is deleted. The default is
/// `Detach`. Both are also accepted in lower case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DeleteOption {
    /// It is deleted too.
    #[serde(alias = "delete")]
    Delete,
    /// It stays, without an owner.
    #[default]
    #[serde(alias = "detach")]
    Detach,
}

/// The document of a public address: what `PublicIPAddresses_CreateOrUpdate` accepts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct IpBody {
    /// The location. Required.
    pub(crate) location: Option<String>,
    /// The tags. A `PUT` without tags removes them.
    pub(crate) tags: Option<Tags>,
    /// The availability zones. Stored and returned only.
    pub(crate) zones: Option<Vec<String>>,
    /// `Basic` (default) or `Standard`. Never changes.
    pub(crate) sku: Option<Sku>,
    /// Everything else.
    pub(crate) properties: Option<IpProperties>,
}

/// The `properties` of a public address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct IpProperties {
    /// `Static` or `Dynamic`. The default follows from the SKU; it never changes.
    #[serde(rename = "publicIPAllocationMethod")]
    pub(crate) allocation: Option<String>,
    /// `IPv4`. Anything else is refused with 400 `NotSupported`.
    #[serde(rename = "publicIPAddressVersion")]
    pub(crate) version: Option<String>,
    /// The idle timeout in minutes. Stored and returned; default 4.
    pub(crate) idle_timeout_in_minutes: Option<u32>,
    /// Written by the cloud into documents of interfaces. Accepted and ignored.
    pub(crate) delete_option: Option<DeleteOption>,
}

/// The document of an interface: what `NetworkInterfaces_CreateOrUpdate` accepts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NicBody {
    /// The location. Required.
    pub(crate) location: Option<String>,
    /// The tags. A `PUT` without tags removes them.
    pub(crate) tags: Option<Tags>,
    /// Everything else.
    pub(crate) properties: Option<NicProperties>,
}

/// The `properties` of an interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NicProperties {
    /// The addresses. At least one is required to create; they never change.
    pub(crate) ip_configurations: Vec<IpConfiguration>,
    /// The network security group, which must exist. Can be changed.
    pub(crate) network_security_group: Option<Reference>,
    /// Stored and returned only. Default `false`.
    pub(crate) enable_accelerated_networking: Option<bool>,
    /// Stored and returned only. Default `false`.
    #[serde(rename = "enableIPForwarding")]
    pub(crate) enable_ip_forwarding: Option<bool>,
    /// Written by the cloud. Accepted and ignored.
    pub(crate) primary: Option<bool>,
    /// Not emulated: own name servers are refused with 400 `NotSupported`.
    pub(crate) dns_settings: Option<Value>,
}

/// An address of an interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct IpConfiguration {
    /// The name of the configuration. Default `ipconfig` and a number from 1.
    pub(crate) name: Option<String>,
    /// Written by the cloud. Accepted and ignored.
    pub(crate) id: Option<String>,
    /// Written by the cloud. Accepted and ignored.
    pub(crate) etag: Option<String>,
    /// Written by the cloud. Accepted and ignored.
    pub(crate) r#type: Option<String>,
    /// The properties of the address.
    pub(crate) properties: IpConfigurationProperties,
}

/// The properties of an address of an interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct IpConfigurationProperties {
    /// The subnet, which must be in the interface's location. Required.
    pub(crate) subnet: Option<Reference>,
    /// Whether it is the primary address. Default: the first one is.
    pub(crate) primary: Option<bool>,
    /// Written by the cloud. Accepted and ignored.
    pub(crate) provisioning_state: Option<String>,
    /// Written by the cloud. Accepted and ignored, because the address is dynamic.
    #[serde(rename = "privateIPAddress")]
    pub(crate) private_ip_address: Option<String>,
    /// `IPv4`. Anything else is refused with 400 `NotSupported`.
    #[serde(rename = "privateIPAddressVersion")]
    pub(crate) private_ip_address_version: Option<String>,
    /// `Dynamic`. Anything else is refused with 400 `NotSupported`.
    #[serde(rename = "privateIPAllocationMethod")]
    pub(crate) private_ip_allocation_method: Option<String>,
    /// The public address to attach, if any. It must not be attached elsewhere.
    #[serde(rename = "publicIPAddress")]
    pub(crate) public_ip_address: Option<Reference>,
}

/// The document of a disk: what `Disks_CreateOrUpdate` accepts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DiskBody {
    /// The location. Required.
    pub(crate) location: Option<String>,
    /// The tags. A `PUT` without tags removes them.
    pub(crate) tags: Option<Tags>,
    /// The availability zone, as a list. Only the first one counts.
    pub(crate) zones: Option<Vec<String>>,
    /// The SKU. Default `Standard_LRS`.
    pub(crate) sku: Option<Sku>,
    /// Everything else.
    pub(crate) properties: Option<DiskProperties>,
}

/// The `properties` of a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DiskProperties {
    /// Where the content comes from. Required to create.
    pub(crate) creation_data: Option<CreationData>,
    /// The size in GiB, 1 to 65,536. Required to create; it can only grow.
    #[serde(rename = "diskSizeGB")]
    pub(crate) disk_size_gb: Option<u32>,
    /// Not emulated for separate disks: refused with 400 `NotSupported`.
    pub(crate) os_type: Option<String>,
}

/// Where the content of a disk comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreationData {
    /// `Empty`, or `Copy` of a disk or snapshot. Anything else is refused with 400
    /// `InvalidParameter`.
    pub(crate) create_option: Option<String>,
    /// The disk or snapshot to copy.
    pub(crate) source_resource_id: Option<String>,
}

/// The document that changes the tags of a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TagsBody {
    /// The tags, which replace the existing ones.
    pub(crate) tags: Option<Tags>,
}

/// The document of an image: what `Images_CreateOrUpdate` accepts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ImageBody {
    /// The location. Required.
    pub(crate) location: Option<String>,
    /// The tags, which are all that can be changed later.
    pub(crate) tags: Option<Tags>,
    /// Everything else.
    pub(crate) properties: Option<ImageProperties>,
}

/// The `properties` of an image. Either a source machine or an OS disk is required, never both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ImageProperties {
    /// The generalized virtual machine that the image is created from.
    pub(crate) source_virtual_machine: Option<Reference>,
    /// The disk that the image is created from.
    pub(crate) storage_profile: Option<ImageStorage>,
    /// `V1` or `V2`. Stored and returned; default `V2`.
    pub(crate) hyper_v_generation: Option<String>,
}

/// The disks of an image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ImageStorage {
    /// The OS disk.
    pub(crate) os_disk: Option<ImageDisk>,
    /// Not emulated: a list that is not empty is refused with 400 `NotSupported`.
    pub(crate) data_disks: Vec<Value>,
    /// Not emulated: `true` is refused with 400 `NotSupported`.
    pub(crate) zone_resilient: Option<bool>,
}

/// The OS disk of an image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ImageDisk {
    /// `Linux` (default) or `Windows`.
    pub(crate) os_type: Option<String>,
    /// `Generalized` or `Specialized`. Required.
    pub(crate) os_state: Option<String>,
    /// The disk to copy. Required.
    pub(crate) managed_disk: Option<Reference>,
    /// The host caching. Accepted and ignored.
    pub(crate) caching: Option<String>,
    /// The SKU. Default: the SKU of the disk.
    pub(crate) storage_account_type: Option<String>,
    /// The size in GiB. Default, and at least, the size of the disk.
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
