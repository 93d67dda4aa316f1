//! Azure's requests, and what is in its replies.

use std::io;

use crate::shared::http::exchange;
pub(crate) use crate::shared::http::{Response, open};
use fleetwright_emulators::azure::AzureEmulator;
use serde_json::{Value, json};

/// The resource group that everything happens in.
pub(crate) const GROUP: &str = "/subscriptions/s/resourceGroups/rg/providers";

/// The virtual machines of the resource group.
pub(crate) const VMS: &str =
    "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines";

/// The version that is asked for.
pub(crate) const VERSION: &str = "api-version=2024-11-01";

pub(crate) const AUTHORIZATION: &str = "Authorization: Bearer token\r\n";

/// A virtual machine that is asked for, with all that is needed, and an interface that goes with
/// it.
pub(crate) fn body() -> Value {
    let subnet = format!("{GROUP}/Microsoft.Network/virtualNetworks/vnet/subnets/default");
    let address = json!({ "name": "ip", "properties": { "subnet": { "id": subnet } } });
    let nic = json!({ "primary": true, "deleteOption": "Delete", "ipConfigurations": [address] });
    json!({
        "location": "eastus",
        "properties": {
            "hardwareProfile": { "vmSize": "Standard_B1s" },
            "storageProfile": {
                "imageReference": {
                    "publisher": "Canonical", "offer": "0001-com-ubuntu-server-jammy",
                    "sku": "22_04-lts-gen2", "version": "latest",
                },
                "osDisk": { "createOption": "FromImage", "deleteOption": "Delete" },
            },
            "osProfile": { "adminUsername": "me", "adminPassword": "Secret-1" },
            "networkProfile": {
                "networkApiVersion": "2020-11-01",
                "networkInterfaceConfigurations": [{ "name": "nic", "properties": nic }],
            },
        },
    })
}

impl Response {
    /// The document.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The code of an error.
    pub(crate) fn code(&self) -> String {
        let code = &self.json()["error"]["code"];
        code.as_str().unwrap_or_default().to_owned()
    }

    /// A header, in small letters.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.split("\r\n");
        let mut named = lines.filter_map(|line| line.split_once(": "));
        named.find(|(it, _)| *it == name).map(|(_, value)| value)
    }
}

pub(crate) fn put(emulator: &AzureEmulator, name: &str) -> io::Result<Response> {
    send(emulator, "PUT", &format!("{VMS}/{name}"), &body())
}

pub(crate) fn get(emulator: &AzureEmulator, path: &str) -> io::Result<Response> {
    send(emulator, "GET", path, &Value::Null)
}

/// Sends a request with a token and the version, unless its path has a query.
pub(crate) fn send(
    emulator: &AzureEmulator,
    method: &str,
    path: &str,
    body: &Value,
) -> io::Result<Response> {
    let body = text(body);
    let path = if path.contains('?') {
        path.to_owned()
    } else {
        format!("{path}?{VERSION}")
    };
    exchange(
        emulator.address(),
        method,
        &path,
        AUTHORIZATION,
        body.as_bytes(),
    )
}

/// Asks for a URL that a reply has told.
pub(crate) fn follow(emulator: &AzureEmulator, url: &str) -> io::Result<Response> {
    let path = url.strip_prefix(&emulator.endpoint()).unwrap();
    get(emulator, path)
}

/// A document on the wire; null is none at all.
pub(crate) fn text(document: &Value) -> String {
    if document.is_null() {
        String::new()
    } else {
        document.to_string()
    }
}
