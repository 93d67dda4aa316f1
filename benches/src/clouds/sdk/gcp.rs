//! Compute Engine's SDK.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use fleetwright_gcp::google_cloud_auth::credentials::anonymous;
use futures_util::{StreamExt as _, stream};
use google_cloud_compute_v1::{
    client::Instances,
    model::{
        AccessConfig, AttachedDisk, AttachedDiskInitializeParams, Instance, NetworkInterface,
        access_config, instance::Status,
    },
};
use google_cloud_gax::paginator::Paginator as _;

use super::{Sdk, Seen, TAG, Token};

/// The project of every instance.
pub const PROJECT: &str = "fleet-1";
/// Their zone.
pub const ZONE: &str = "us-central1-a";
/// Their image.
pub const IMAGE: &str = "projects/debian-cloud/global/images/family/debian-12";
/// Their type.
pub const TYPE: &str = "e2-micro";
/// How many calls of one batch are sent at the same time, as in the provider.
const AT_ONCE: usize = 16;

/// The client with its default settings.
#[derive(Debug)]
pub struct GcpSdk(Instances);

impl GcpSdk {
    /// Creates a client for an emulator.
    pub async fn new(endpoint: &str) -> Self {
        let client = Instances::builder()
            .with_endpoint(endpoint)
            .with_credentials(anonymous::Builder::new().build());
        Self(client.build().await.expect("a client"))
    }

    async fn insert(&self, name: String, token: Token) -> String {
        let access = AccessConfig::new()
            .set_type(access_config::Type::OneToOneNat)
            .set_name("External NAT");
        let card = NetworkInterface::new()
            .set_network("global/networks/default")
            .set_access_configs([access]);
        let disk = AttachedDisk::new()
            .set_boot(true)
            .set_auto_delete(true)
            .set_initialize_params(AttachedDiskInitializeParams::new().set_source_image(IMAGE));
        let body = Instance::new()
            .set_name(&name)
            .set_machine_type(format!("zones/{ZONE}/machineTypes/{TYPE}"))
            .set_labels([TAG])
            .set_disks([disk])
            .set_network_interfaces([card]);
        let call = self.0.insert().set_project(PROJECT).set_zone(ZONE);
        // Any UUID will do: the names differ.
        let id = (token == Token::Sent).then(|| {
            let number: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
            let digits = format!("{number:0>32}");
            let digits = &digits[digits.len() - 32..];
            format!(
                "{}-{}-4{}-8{}-{}",
                &digits[..8],
                &digits[8..12],
                &digits[13..16],
                &digits[17..20],
                &digits[20..]
            )
        });
        let call = call.set_or_clear_request_id(id).set_body(body);
        call.send().await.expect("an insert");
        name
    }
}

fn seen(instance: &Instance) -> Seen {
    match instance.status {
        Some(Status::Running) => Seen::Running,
        _ => Seen::Changing,
    }
}

#[async_trait]
impl Sdk for GcpSdk {
    async fn launch(&self, name: &str, token: Token, count: u32) -> Vec<String> {
        let names = (0..count).map(|number| self.insert(format!("{name}-{number}"), token));
        let names: Vec<_> = names.collect();
        stream::iter(names).buffered(AT_ONCE).collect().await
    }

    async fn describe(&self, id: &str) -> Seen {
        let call = self.0.get().set_project(PROJECT).set_zone(ZONE);
        match call.set_instance(id).send().await {
            Ok(instance) => seen(&instance),
            Err(error) if error.http_status_code() == Some(404) => Seen::Gone,
            Err(error) => unreachable!("a read fails: {error}"),
        }
    }

    async fn poll(&self, ids: &[String]) -> Vec<Seen> {
        let call = self.0.list().set_project(PROJECT).set_zone(ZONE);
        let mut pages = call.set_max_results(500_u32).by_page();
        let mut found = BTreeMap::new();
        while let Some(page) = pages.next().await {
            for one in page.expect("a page").items {
                found.insert(one.name.clone().unwrap_or_default(), seen(&one));
            }
        }
        let states = ids.iter().filter_map(|id| found.get(id));
        states.copied().collect()
    }

    async fn list(&self) -> (usize, Duration) {
        let (began, mut first, mut count) = (Instant::now(), None, 0);
        let call = self.0.list().set_project(PROJECT).set_zone(ZONE);
        let call = call.set_filter(format!("labels.{}={}", TAG.0, TAG.1));
        let mut pages = call.set_max_results(500_u32).by_page();
        while let Some(page) = pages.next().await {
            count += page.expect("a page").items.len();
            first.get_or_insert_with(|| began.elapsed());
        }
        (count, first.unwrap_or_default())
    }

    async fn stop(&self, id: &str) {
        let call = self.0.stop().set_project(PROJECT).set_zone(ZONE);
        call.set_instance(id).send().await.expect("a stop");
    }

    async fn start(&self, id: &str) {
        let call = self.0.start().set_project(PROJECT).set_zone(ZONE);
        call.set_instance(id).send().await.expect("a start");
    }

    async fn terminate(&self, ids: &[String]) {
        let calls = ids.iter().map(|id| async move {
            let call = self.0.delete().set_project(PROJECT).set_zone(ZONE);
            call.set_instance(id).send().await.expect("a delete");
        });
        let calls: Vec<_> = calls.collect();
        stream::iter(calls)
            .buffered(AT_ONCE)
            .collect::<Vec<()>>()
            .await;
    }
}
