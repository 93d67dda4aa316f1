//! Azure's SDK.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use azure_core::auth::{AccessToken, Secret, TokenCredential};
use azure_mgmt_compute::package_2024_07_01::{
    Client, models::VirtualMachine, virtual_machines::Client as Machines,
};
use futures_util::{StreamExt as _, stream};
use serde_json::json;

use super::{Sdk, Seen, TAG, Token};

/// The subscription of every machine.
pub const SUBSCRIPTION: &str = "00000000-0000-0000-0000-00000000000a";
/// Their resource group.
pub const GROUP: &str = "rg";
/// Their image.
pub const IMAGE: &str = "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2:latest";
/// Their size.
pub const TYPE: &str = "Standard_B1s";
/// The key to log in with.
pub const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJfleetwrightfleetwright fleet";
/// How many calls of one batch are sent at the same time, as in the provider.
const AT_ONCE: usize = 16;

/// A token that never expires.
#[derive(Debug)]
struct AnyToken;

#[async_trait]
impl TokenCredential for AnyToken {
    async fn get_token(&self, _: &[&str]) -> azure_core::Result<AccessToken> {
        let far = azure_core::date::parse_rfc3339("9999-01-01T00:00:00Z").expect("a date");
        Ok(AccessToken::new(Secret::new("any"), far))
    }

    async fn clear_cache(&self) -> azure_core::Result<()> {
        Ok(())
    }
}

/// The client with its default settings.
#[expect(missing_debug_implementations, reason = "the SDK's client has none")]
pub struct AzureSdk {
    machines: Machines,
    document: serde_json::Value,
}

impl AzureSdk {
    /// Creates a client for an emulator.
    pub fn new(endpoint: &str) -> Self {
        let endpoint = azure_core::Url::parse(endpoint).expect("a URL");
        let client = Client::builder(Arc::new(AnyToken)).endpoint(endpoint);
        let client = client.scopes(&["https://management.azure.com/.default"]);
        let machines = client.build().expect("a client").virtual_machines_client();
        Self {
            machines,
            document: document(),
        }
    }

    async fn create(&self, name: String) -> String {
        let mut document = self.document.clone();
        document["properties"]["osProfile"]["computerName"] = json!(name);
        let cards = &mut document["properties"]["networkProfile"]["networkInterfaceConfigurations"];
        cards[0]["name"] = json!(format!("{name}-nic"));
        let addresses = &mut cards[0]["properties"]["ipConfigurations"][0]["properties"];
        addresses["publicIPAddressConfiguration"]["name"] = json!(format!("{name}-ip"));
        let machine: VirtualMachine = serde_json::from_value(document).expect("a machine");
        let call = self
            .machines
            .create_or_update(GROUP, &name, machine, SUBSCRIPTION);
        let response = call.send().await.expect("a creation");
        response
            .into_raw_response()
            .into_body()
            .collect()
            .await
            .expect("a body");
        name
    }
}

/// Returns the document of a machine without its names.
fn document() -> serde_json::Value {
    let group = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}");
    let subnet =
        format!("{group}/providers/Microsoft.Network/virtualNetworks/vnet/subnets/default");
    let parts: Vec<_> = IMAGE.split(':').collect();
    let address = json!({
        "name": "",
        "sku": { "name": "Standard" },
        "properties": { "deleteOption": "Delete", "publicIPAllocationMethod": "Static" },
    });
    let card = json!({
        "name": "",
        "properties": {
            "primary": true,
            "deleteOption": "Delete",
            "ipConfigurations": [{
                "name": "primary",
                "properties": { "subnet": { "id": subnet }, "publicIPAddressConfiguration": address },
            }],
        },
    });
    json!({
        "location": "eastus",
        "tags": { (TAG.0): TAG.1 },
        "properties": {
            "hardwareProfile": { "vmSize": TYPE },
            "storageProfile": {
                "imageReference": {
                    "publisher": parts[0], "offer": parts[1], "sku": parts[2], "version": parts[3],
                },
                "osDisk": { "createOption": "FromImage", "deleteOption": "Delete" },
            },
            "osProfile": {
                "computerName": "",
                "adminUsername": "azureuser",
                "linuxConfiguration": {
                    "disablePasswordAuthentication": true,
                    "ssh": { "publicKeys": [{
                        "path": "/home/azureuser/.ssh/authorized_keys", "keyData": KEY,
                    }] },
                },
            },
            "networkProfile": {
                "networkApiVersion": "2022-11-01",
                "networkInterfaceConfigurations": [card],
            },
        },
    })
}

fn seen(machine: &VirtualMachine) -> Seen {
    let view = machine.properties.as_ref();
    let view = view.and_then(|one| one.instance_view.as_ref());
    let codes = view
        .map(|view| view.statuses.as_slice())
        .unwrap_or_default();
    let running = |code: &Option<String>| code.as_deref() == Some("PowerState/running");
    if codes.iter().any(|status| running(&status.code)) {
        Seen::Running
    } else {
        Seen::Changing
    }
}

#[async_trait]
impl Sdk for AzureSdk {
    /// Azure has no token: the name of the machine is one.
    async fn launch(&self, name: &str, _: Token, count: u32) -> Vec<String> {
        let names = (0..count).map(|number| self.create(format!("{name}-{number}")));
        let names: Vec<_> = names.collect();
        stream::iter(names).buffered(AT_ONCE).collect().await
    }

    async fn describe(&self, id: &str) -> Seen {
        let call = self.machines.get(GROUP, id, SUBSCRIPTION);
        let read = async {
            let response = call.expand("instanceView").send().await?;
            response.into_body().await
        };
        match read.await {
            Ok(machine) => seen(&machine),
            Err(error) => {
                let status = error.as_http_error().map(|error| error.status());
                assert_eq!(status, Some(azure_core::StatusCode::NotFound), "{error}");
                Seen::Gone
            }
        }
    }

    async fn poll(&self, ids: &[String]) -> Vec<Seen> {
        let call = self.machines.list_all(SUBSCRIPTION).status_only("true");
        let mut pages = call.into_stream();
        let mut found = BTreeMap::new();
        while let Some(page) = pages.next().await {
            for one in page.expect("a page").value {
                let name = one.resource.name.clone().unwrap_or_default();
                found.insert(name.to_lowercase(), seen(&one));
            }
        }
        let states = ids.iter().filter_map(|id| found.get(id));
        states.copied().collect()
    }

    /// Lists the machines, and then their states, which Azure has in a list of their own.
    async fn list(&self) -> (usize, Duration) {
        let (began, mut first, mut count) = (Instant::now(), None, 0);
        let mut pages = self.machines.list(GROUP, SUBSCRIPTION).into_stream();
        while let Some(page) = pages.next().await {
            let page = page.expect("a page").value.into_iter();
            let tagged = page.filter(|one| {
                let tags = one.resource.tags.as_ref();
                tags.and_then(|tags| tags.get(TAG.0)?.as_str()) == Some(TAG.1)
            });
            count += tagged.count();
            first.get_or_insert_with(|| began.elapsed());
        }
        self.poll(&[]).await;
        (count, first.unwrap_or_default())
    }

    async fn stop(&self, id: &str) {
        let call = self.machines.deallocate(GROUP, id, SUBSCRIPTION);
        call.send().await.expect("a stop");
    }

    async fn start(&self, id: &str) {
        let call = self.machines.start(GROUP, id, SUBSCRIPTION);
        call.send().await.expect("a start");
    }

    async fn terminate(&self, ids: &[String]) {
        let calls = ids.iter().map(|id| async move {
            let call = self.machines.delete(GROUP, id, SUBSCRIPTION);
            call.send().await.expect("a deletion");
        });
        let calls: Vec<_> = calls.collect();
        stream::iter(calls)
            .buffered(AT_ONCE)
            .collect::<Vec<()>>()
            .await;
    }
}
