//! A small client: sends requests, and reads documents and headers of responses.

use std::io;

pub(crate) use crate::shared::http::Response;
use crate::shared::http::exchange;
use fleetwright_emulators::azure::AzureEmulator;
use serde_json::{Value, json};

/// The path of the resource group of all tests.
pub(crate) const GROUP: &str = "/subscriptions/s/resourceGroups/rg/providers";

/// The path of the virtual machines of the resource group.
pub(crate) const VMS: &str =
    "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines";

/// The API version of the requests.
pub(crate) const VERSION: &str = "api-version=2024-11-01";

pub(crate) const AUTHORIZATION: &str = "Authorization: Bearer token\r\n";

/// Returns a valid document of a virtual machine, whose interface is deleted with it.
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
    /// Returns the JSON document.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Returns the code of an error.
    pub(crate) fn code(&self) -> String {
        let code = &self.json()["error"]["code"];
        code.as_str().unwrap_or_default().to_owned()
    }

    /// Returns a header. The name is in lower case.
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

/// Sends a request with a token. Adds the API version, unless the path has a query.
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

/// Gets a URL from a response.
pub(crate) fn follow(emulator: &AzureEmulator, url: &str) -> io::Result<Response> {
    let path = url.strip_prefix(&emulator.endpoint()).unwrap();
    get(emulator, path)
}

/// Returns a document as text. Null means no body.
pub(crate) fn text(document: &Value) -> String {
    if document.is_null() {
        String::new()
    } else {
        document.to_string()
    }
}
