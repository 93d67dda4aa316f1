//! Documents of interfaces and public addresses, with the few fields that are read. Pure.
//!
//! Owns their parsing. One malformed address must never hide the others of a list.

use std::net::IpAddr;

use serde::{Deserialize, Deserializer};

use crate::machine::{Interface, Public};

/// A page of a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListDocument<T> {
    pub(super) value: Vec<T>,
    #[serde(default)]
    pub(super) next_link: Option<String>,
}

/// A network interface.
#[derive(Debug, Deserialize)]
pub(super) struct InterfaceDocument {
    #[serde(default)]
    properties: InterfaceProperties,
}

/// Its properties.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct InterfaceProperties {
    ip_configurations: Vec<Configuration>,
    network_security_group: Option<Reference>,
    virtual_machine: Option<Reference>,
    primary: Option<bool>,
    mac_address: Option<String>,
}

/// One of its address configurations.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Configuration {
    properties: ConfigurationProperties,
}

/// Subnet and addresses of a configuration.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ConfigurationProperties {
    primary: Option<bool>,
    #[serde(rename = "privateIPAddress", deserialize_with = "address")]
    private: Option<IpAddr>,
    #[serde(rename = "publicIPAddress")]
    public: Option<PublicDocument>,
    subnet: Option<Reference>,
}

/// A reference to another resource.
#[derive(Debug, Deserialize)]
struct Reference {
    id: String,
}

/// A public address, or only its resource id.
#[derive(Debug, Deserialize)]
pub(super) struct PublicDocument {
    pub(super) id: String,
    #[serde(default)]
    properties: PublicProperties,
}

/// The assigned address.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PublicProperties {
    #[serde(deserialize_with = "address")]
    ip_address: Option<IpAddr>,
    /// Present only if the document is expanded.
    provisioning_state: Option<String>,
}

/// Parses an address. A malformed one counts as none, so that it does not hide all others.
fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Option<IpAddr>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

impl PublicDocument {
    /// The assigned address.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.properties.ip_address
    }
}

impl InterfaceDocument {
    /// Converts an interface: its primary configuration, or its first.
    pub(super) fn interface(self) -> Interface {
        let properties = self.properties;
        let bare = Interface {
            machine: properties.virtual_machine.map(|machine| machine.id),
            primary: properties.primary == Some(true),
            mac: properties.mac_address,
            security_group: properties.network_security_group.map(|group| group.id),
            ..Interface::default()
        };
        let mut all = properties.ip_configurations;
        let primary = all
            .iter()
            .position(|one| one.properties.primary == Some(true))
            .unwrap_or_default();
        if all.is_empty() {
            return bare;
        }
        let one = all.swap_remove(primary).properties;
        let public = one.public.and_then(|public| {
            let whole = public.properties.provisioning_state.is_some();
            match public.address() {
                Some(address) => Some(Public::Address(address)),
                None if whole => None,
                None => Some(Public::At(public.id)),
            }
        });
        Interface {
            private: one.private,
            public,
            subnet: one.subnet.map(|subnet| subnet.id),
            ..bare
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(properties: &Value) -> Interface {
        let document = json!({ "properties": properties });
        let document: InterfaceDocument = serde_json::from_value(document).unwrap();
        document.interface()
    }

    #[test]
    fn primary_addresses_are_read_expanded_or_by_reference() {
        let with = |public: Value| {
            read(&json!({
                "networkSecurityGroup": { "id": "/nsg" },
                "virtualMachine": { "id": "/vm" }, "macAddress": "00-0D-3A-00-00-01",
                "ipConfigurations": [
                    { "properties": { "primary": false, "privateIPAddress": "10.0.0.9" } },
                    { "properties": { "primary": true, "privateIPAddress": "10.0.0.4",
                                      "subnet": { "id": "/subnet" }, "publicIPAddress": public } },
                ],
            }))
        };
        let whole = json!({ "id": "/pip", "properties": { "ipAddress": "203.0.113.7", "provisioningState": "Succeeded" } });
        let whole = with(whole);
        assert_eq!(whole.private.unwrap().to_string(), "10.0.0.4");
        let address = "203.0.113.7".parse().unwrap();
        assert_eq!(whole.public, Some(Public::Address(address)));
        assert_eq!(whole.subnet.as_deref(), Some("/subnet"));
        assert_eq!(whole.security_group.as_deref(), Some("/nsg"));
        assert_eq!(whole.machine.as_deref(), Some("/vm"));
        let at = with(json!({ "id": "/pip" }));
        assert_eq!(at.public, Some(Public::At("/pip".to_owned())));
        let at = with(json!({ "id": "/pip", "properties": { "deleteOption": "Delete" } }));
        assert_eq!(at.public, Some(Public::At("/pip".to_owned())));
        let empty = json!({ "id": "/pip", "properties": { "provisioningState": "Succeeded" } });
        assert_eq!(with(empty).public, None);
        assert_eq!(with(Value::Null).public, None);
        let odd = json!({ "id": "/pip", "properties": { "ipAddress": "", "provisioningState": "Updating" } });
        assert_eq!(with(odd).public, None);
        let odd = json!([{ "properties": { "primary": true, "privateIPAddress": "not yet" } }]);
        assert_eq!(read(&json!({ "ipConfigurations": odd })).private, None);
        assert!(read(&json!({ "primary": true })).primary);
        assert_eq!(read(&json!({})), Interface::default());
    }
}
