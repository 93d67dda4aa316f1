//! A tenant's day on emulated clouds, over HTTP, with the vendors' real SDKs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

#[path = "../../server/tests/support/mod.rs"]
mod support;

use std::time::Duration;

use fleetwright_emulators::{azure, ec2, gcp};
use serde_json::{Value, json};
use support::{Client, Files, Running, Tenant};

const STEP: Duration = Duration::from_millis(30);
const LAG: Duration = Duration::from_millis(40);
/// What every region sets, so that nothing waits for a real cloud.
const TIMES: &str = "consistency-window = '80 ms'\npoll-interval = '5 ms'\n";

/// Files for a region on an emulator.
fn files(provider: &str, settings: &str, flavor: &str, image: &str, network: &str) -> Files {
    let files = Files::with_regions(&format!(
        "scan-interval = '200 ms'\nkeyring = 'keys'\n\
        [[region]]\nprovider = '{provider}'\nmapping = 'mapping.toml'\n[region.{provider}]\n{TIMES}{settings}\n"
    ));
    let mapping = format!(
        "region = 'north'\nprovider = '{provider}'\n[flavors]\nstandard-2 = '{flavor}'\n[images]\ndebian-13 = '{image}'\n\
        [networks.default]\nsubnet = '{network}'\n"
    );
    let write = |name: &str, text: &str| std::fs::write(files.folder.path().join(name), text);
    write("mapping.toml", &mapping).unwrap();
    // Azure's images need a disk of 30 GB.
    let catalog = std::fs::read_to_string(files.folder.path().join("catalog.toml")).unwrap();
    write("catalog.toml", &catalog.replace("20 GiB", "40 GiB")).unwrap();
    write("keys", "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n").unwrap();
    files
}

/// Lives through a tenant's day: create, run, stop, start, copy the disk, delete.
fn live_through_a_day(files: &Files, environment: &[(&str, &str)], may_copy: bool) {
    let [olga, ada] = ["olga", "ada"].map(|actor| files.token(actor));
    let running = Running::with_environment(&files.folder.path().join("server.toml"), environment);
    let (olga, ada) = (running.client(&olga), running.client(&ada));
    let tenant = Tenant::create(&olga, "acme", "ada");

    let created = ada.post("/api/v2/instances", &tenant.instance("web-1"));
    let id = created.expect(201).json()["metadata"]["id"].clone();
    let address = format!("/api/v2/instances/{}", id.as_str().unwrap());
    assert_eq!(
        wait_for(&ada, &address, "running")["status"]["powerState"],
        "running"
    );
    let verb = |name: &str| {
        ada.post(&format!("{address}/{name}"), &json!({}))
            .expect(202)
    };
    verb("stop");
    assert_eq!(
        wait_for(&ada, &address, "stopped")["status"]["powerState"],
        "stopped"
    );
    verb("start");
    wait_for(&ada, &address, "running");
    if may_copy {
        let image = json!({"metadata": {"name": "copy"}});
        let copied = ada.post(&format!("{address}/snapshot"), &image).expect(201);
        let image = copied.json()["id"].as_str().unwrap().to_owned();
        let path = format!("/api/v2/images/{image}");
        eventually("the image is ready", || {
            ada.get(&path).expect(200).json()["state"] == "ready"
        });
        ada.delete(&path).expect(202);
        eventually("the image is gone", || ada.get(&path).status == 404);
    }
    ada.delete(&address).expect(202);
    let gone = (0..20).find_map(|_| {
        let read = ada.get(&format!("{address}?waitFor=deleted"));
        (read.status == 404).then_some(())
    });
    assert!(gone.is_some(), "{:?}", ada.get(&address));
    let inspected = olga.get("/api/v2/operator/regions").expect(200).json();
    assert_eq!(
        inspected["items"].as_array().map(Vec::len),
        Some(1),
        "{inspected}"
    );
    assert_eq!(running.terminate(), Some(0));
}

/// Asks until the condition holds.
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let holds = (0..1200).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        condition()
    });
    assert!(holds, "{what}");
}

/// Waits until an instance has a state.
fn wait_for(client: &Client, address: &str, state: &str) -> Value {
    let wanted = if state == "stopped" {
        "stopped"
    } else {
        "running"
    };
    let found = (0..20).find_map(|_| {
        let read = client
            .get(&format!("{address}?waitFor={state}"))
            .expect(200)
            .json();
        (read["status"]["powerState"] == wanted).then_some(read)
    });
    found.unwrap_or_else(|| panic!("not {state}: {:?}", client.get(address)))
}

#[test]
fn a_tenants_day_on_ec2() {
    let mut knobs = ec2::Knobs::default();
    knobs.timing.boot = STEP;
    knobs.timing.stop = STEP;
    knobs.timing.terminate = STEP;
    knobs.lag.reads = LAG;
    knobs.lag.writes = LAG;
    let emulator = ec2::Ec2Emulator::start(knobs).unwrap();
    let subnet = "subnet-00000000000000001";
    let settings = format!("region = 'us-east-1'\nendpoint = '{}'", emulator.endpoint());
    let files = files(
        "ec2",
        &settings,
        "t3.micro",
        "ami-00000000000000001",
        subnet,
    );
    let keys = [
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
    ];
    live_through_a_day(&files, &keys, true);
    let left = emulator.oracle();
    let instances = left.instances.iter();
    let alive: Vec<_> = instances
        .filter(|truth| truth.state != "terminated")
        .collect();
    assert!(
        alive.is_empty() && left.volumes.is_empty(),
        "{alive:?} {:?}",
        left.volumes
    );
    let copies: Vec<_> = left
        .images
        .iter()
        .filter(|image| image.source.is_some())
        .collect();
    assert!(
        copies.is_empty() && left.snapshots.is_empty(),
        "{copies:?} {:?}",
        left.snapshots
    );
}

#[test]
fn a_tenants_day_on_compute_engine() {
    let mut knobs = gcp::Knobs::default();
    knobs.timing = gcp::Timing::all(STEP);
    knobs.lag.reads = LAG;
    knobs.lag.writes = LAG;
    let emulator = gcp::GcpEmulator::start(knobs).unwrap();
    let settings = format!(
        "project = 'fleet-1'\nzones = ['us-central1-a']\ncredentials = 'anonymous'\nendpoint = '{}'",
        emulator.endpoint()
    );
    let image = "projects/debian-cloud/global/images/family/debian-12";
    let files = files("gcp", &settings, "e2-micro", image, "default");
    live_through_a_day(&files, &[], true);
    let left = emulator.oracle();
    assert!(left.instances.is_empty(), "{:?}", left.instances);
}

#[test]
fn a_tenants_day_on_azure() {
    let mut knobs = azure::Knobs::default();
    knobs.timing = azure::Timing::all(STEP);
    knobs.lag.reads = LAG;
    knobs.lag.writes = LAG;
    let emulator = azure::AzureEmulator::start(knobs).unwrap();
    let settings = format!(
        "subscription = '00000000-0000-0000-0000-00000000000a'\nresource-group = 'rg'\nlocation = 'eastus'\nsubnet = 'vnet/default'\n\
        ssh-public-key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJfleetwrightfleetwright'\naccess-token-variable = 'AZURE_TOKEN'\n\
        endpoint = '{}'",
        emulator.endpoint()
    );
    let image = "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2:latest";
    let files = files("azure", &settings, "Standard_B1s", image, "vnet/default");
    live_through_a_day(&files, &[("AZURE_TOKEN", "x")], true);
    let left = emulator.oracle();
    assert!(left.vms.is_empty(), "{:?}", left.vms);
    let parts = [left.nics.len(), left.disks.len(), left.public_ips.len()];
    assert_eq!(parts, [0; 3]);
}

#[test]
fn every_mistake_of_a_cloud_has_its_position() {
    let files = Files::with_regions(
        "[[region]]\nprovider = 'ec2'\nmapping = 'mapping.toml'\n[region.ec2]\nregoin = 'x'\nendpoint = 'http://ec2.example.com'\n\
        metadata-hop-limit = 65\npublic-address = 'yes'\n[region.ec2.subnets]\n'' = 'subnet-1'\n\
        [[region]]\nprovider = 'gcp'\nmapping = 'mapping.toml'\n[region.gcp]\nzones = []\ncredentials = 'anonymous'\n\
        [[region]]\nprovider = 'azure'\nmapping = 'mapping.toml'\n[region.azure]\nsubscription = 'x'\nresource-group = 'rg'\n\
        location = 'eastus'\nsubnet = 'vnet/default'\nssh-public-key = 'ssh-ed25519 AAAA'\nconsistency-window = '80'\n[region.ec2]\n\
        [[region]]\nprovider = 'gcp'\nmapping = 'mapping.toml'\n",
    );
    files.token("olga");
    let found = files.check();
    let text = String::from_utf8(found.stderr).unwrap();
    assert!(!found.status.success());
    for expected in [
        "\"regoin\" is unknown",
        "endpoint of ec2 of region 1: expected https",
        "metadata-hop-limit of ec2 of region 1",
        "public-address of ec2 of region 1",
        "subnets of ec2 of region 1",
        "project is missing",
        "credentials of gcp of region 2",
        "subscription of azure of region 3",
        "consistency-window of azure of region 3",
        "ec2 of region 3: the provider of the region is azure",
        "gcp is missing: expected a table [region.gcp]",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}
