//! A project on an emulated Compute Engine.
#![allow(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "test helpers may panic, and no test binary uses all of them"
)]

mod native_errors;

use std::{collections::BTreeMap, time::Duration};

use fleetwright_contract_tests::{NativeError, Truth, WireFault, WireOp};
use fleetwright_emulators::gcp::{
    ExternalAction, Gcp, GcpEmulator, Knobs, Method, Oracle, OracleInstance, Subnetwork, Timing,
};
use fleetwright_gcp::{
    GcpLaunchConfig, GcpOptions, GcpProvisioner,
    fleetwright::{
        CloudInstanceState, InstanceId, InstanceInfo, Market, Operation, Scope, Tags, Zone,
        async_trait,
    },
    google_cloud_auth::credentials::anonymous,
};
use fleetwright_provider_testkit::emulated::{
    CONSISTENCY_WINDOW, EmulatedAccount, EmulatedHarness, Fixtures, POLL_INTERVAL, parse_name,
};
use uuid::Uuid;

/// How long a transition takes, which takes seconds on Compute Engine.
const TRANSITION: Duration = Duration::from_millis(20);

pub(crate) const PROJECT: &str = "fleet-1";
pub(crate) const ZONES: [&str; 2] = ["us-central1-a", "us-central1-b"];
pub(crate) const IMAGE: &str = "projects/debian-cloud/global/images/family/debian-12";

/// A project on its own emulator.
pub(crate) type GcpHarness = EmulatedHarness<GcpProject>;

/// What is particular to Compute Engine.
pub(crate) struct GcpProject;

#[async_trait]
impl EmulatedAccount for GcpProject {
    type Cloud = Gcp;
    type Provisioner = GcpProvisioner;
    type LaunchConfig = GcpLaunchConfig;
    type Options = GcpOptions;
    type Instance = OracleInstance;

    const FIXTURES: Fixtures = Fixtures {
        backend: "gcp",
        image: IMAGE,
        other_image: "projects/debian-cloud/global/images/debian-12-bookworm-v20260101",
        unknown_image: "projects/debian-cloud/global/images/debian-0",
        unknown_type: "e2-unknown",
        instance_type: "e2-micro",
        other_type: "e2-small",
        zone: ZONES[1],
        network: "https://www.googleapis.com/compute/v1/projects/fleet-1/regions/us-central1/subnetworks/contract",
        security_groups: &["contract-one", "contract-two"],
        unknown_id: "gce://fleet-1/us-central1-a/fw-never-launched/18446744073709551615",
        late_failure_code: "ContractFailsLate",
        late_capacity_code: "ZONE_RESOURCE_POOL_EXHAUSTED",
    };

    fn fast_knobs() -> Knobs {
        let mut knobs = Knobs::default();
        knobs.timing = Timing::all(TRANSITION);
        knobs.timing.pending = Duration::from_millis(5);
        knobs
    }

    /// Network tags exist without being created.
    fn adjust_for_contract(knobs: &mut Knobs) {
        let range = "10.9.0.0/20".parse().expect("a range of addresses");
        let mut subnetwork = Subnetwork::new("us-central1", range);
        subnetwork.name = "contract".to_owned();
        knobs.subnetworks.push(subnetwork);
    }

    fn launch_config() -> GcpLaunchConfig {
        GcpLaunchConfig::new(PROJECT, ZONES.map(parse_name::<Zone>))
    }

    /// With another default zone.
    fn other_launch_config() -> GcpLaunchConfig {
        let mut zones = ZONES.map(parse_name::<Zone>);
        zones.reverse();
        GcpLaunchConfig::new(PROJECT, zones)
    }

    fn options(_: &GcpEmulator, wait_for_launch: bool) -> GcpOptions {
        let mut options = GcpOptions::default();
        options.consistency_window = CONSISTENCY_WINDOW;
        // A launch polls until reads show it, and the sweeps of the kit have a case for each call.
        options.poll_interval = POLL_INTERVAL * 4;
        options.page_size = std::num::NonZeroUsize::new(5).expect("five");
        options.launch_wait = if wait_for_launch {
            Duration::from_secs(5)
        } else {
            Duration::ZERO
        };
        options
    }

    async fn connect(
        endpoint: &str,
        launch: GcpLaunchConfig,
        options: GcpOptions,
    ) -> GcpProvisioner {
        let credentials = anonymous::Builder::new().build();
        let opened = GcpProvisioner::new(credentials, Some(endpoint), launch, options).await;
        opened.expect("valid settings")
    }

    fn instances(oracle: &Oracle) -> &[OracleInstance] {
        &oracle.instances
    }

    fn native_id(instance: &OracleInstance) -> &str {
        &instance.id
    }

    fn id(instance: &OracleInstance) -> InstanceId {
        let OracleInstance {
            project, zone, id, ..
        } = instance;
        parse_name(&format!("gce://{project}/{zone}/{}/{id}", instance.name))
    }

    fn holds_machine(instance: &OracleInstance) -> bool {
        instance.holds_machine
    }

    fn truth(instance: &OracleInstance, _: &Oracle) -> Option<Truth> {
        Some(Truth {
            info: info(instance),
            user_data: user_data(&instance.metadata),
            disk_size_gb: instance.boot_disk_gib,
            holds_machine: instance.holds_machine,
            boots: u32::try_from(instance.boots).ok(),
        })
    }

    fn leftovers(oracle: &Oracle, wanted: &Tags) -> Vec<String> {
        let no_metadata = BTreeMap::new();
        let instances = oracle
            .instances
            .iter()
            .filter(|instance| tags(&instance.labels, &instance.metadata).contains_all(wanted))
            .map(|instance| format!("instance {}", instance.name));
        let disks = oracle
            .disks
            .iter()
            .filter(|disk| tags(&disk.labels, &no_metadata).contains_all(wanted))
            .map(|disk| format!("disk {}", disk.name));
        instances.chain(disks).collect()
    }

    /// The tags of an image are in its labels and in its description, which the oracle does not have; the kit's tags
    /// are valid labels.
    fn images(oracle: &Oracle, wanted: &Tags) -> Vec<String> {
        let no_metadata = BTreeMap::new();
        let ours = oracle.images.iter();
        ours.filter(|image| tags(&image.labels, &no_metadata).contains_all(wanted))
            .map(|image| format!("image {}", image.name))
            .collect()
    }

    fn calls(oracle: &Oracle) -> &BTreeMap<String, u64> {
        &oracle.calls
    }

    /// Listing and looking up are one method. If a list of all zones fails, the provider lists each
    /// zone, and those lists must fail too.
    fn operations(operation: WireOp, fault: &WireFault) -> Vec<Method> {
        let server_error = matches!(
            fault,
            WireFault::ServerErrorBefore | WireFault::ServerErrorAfter
        );
        match operation {
            WireOp::Any => Vec::new(),
            WireOp::Launch => vec![Method::InstancesInsert, Method::InstancesBulkInsert],
            WireOp::Terminate => vec![Method::InstancesDelete],
            WireOp::Stop => vec![Method::InstancesStop],
            WireOp::Start => vec![Method::InstancesStart],
            WireOp::Describe => vec![Method::InstancesGet],
            WireOp::List | WireOp::FindLaunch if server_error => {
                vec![Method::InstancesAggregatedList, Method::InstancesList]
            }
            WireOp::List | WireOp::FindLaunch => vec![Method::InstancesAggregatedList],
            WireOp::UpdateTags => vec![Method::InstancesSetLabels],
        }
    }

    fn native_errors() -> Vec<NativeError> {
        native_errors::all()
    }

    /// A list of all zones that fails with a server error is repeated zone by zone.
    fn native_operations(operation: Operation) -> Vec<Method> {
        Self::operations(WireOp::from(operation), &WireFault::ServerErrorBefore)
    }

    /// Stores tags that do not fit into labels in the metadata, as the provider does.
    fn external_launch(tags: &Tags) -> ExternalAction {
        let fits = |text: &str| {
            let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
            text.len() <= 63 && text.chars().all(valid)
        };
        let pairs = tags
            .iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let (mut labels, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            pairs.partition(|(key, value)| fits(key) && fits(value));
        labels.extend(
            others
                .iter()
                .map(|(key, value)| placeholder_label(key, value)),
        );
        let metadata = (!others.is_empty()).then(|| {
            let text = serde_json::to_string(&others).expect("a map of strings");
            ("fleetwright-tags".to_owned(), text)
        });
        ExternalAction::LaunchExternal {
            project: PROJECT.to_owned(),
            zone: None,
            name: Some(format!("external-{}", Uuid::new_v4().simple())),
            machine_type: None,
            count: 1,
            labels,
            metadata: metadata.into_iter().collect(),
        }
    }

    fn external_stop(id: &InstanceId) -> ExternalAction {
        let instance = path_of(id);
        ExternalAction::Stop { instance }
    }

    fn external_termination(id: &InstanceId) -> ExternalAction {
        let instance = path_of(id);
        ExternalAction::Delete { instance }
    }

    fn disconnect(knobs: &mut Knobs, id: &InstanceId) -> Option<Scope> {
        let zone = id.as_str().split('/').nth(3)?;
        knobs.unreachable_zones.insert(zone.to_owned());
        Some(Scope::zone(parse_name(zone)))
    }

    fn reconnect(knobs: &mut Knobs) {
        knobs.unreachable_zones.clear();
    }
}

/// Returns the path of an instance, which external actions use.
pub(crate) fn path_of(id: &InstanceId) -> String {
    let text = id.as_str().trim_start_matches("gce://");
    let parts: Vec<_> = text.split('/').collect();
    format!(
        "projects/{}/zones/{}/instances/{}",
        parts[0], parts[1], parts[2]
    )
}

/// Returns the tags in labels and metadata, read without the provider's code.
fn tags(labels: &BTreeMap<String, String>, metadata: &BTreeMap<String, String>) -> Tags {
    let originals = metadata.get("fleetwright-tags");
    let originals = originals.map(|text| serde_json::from_str(text).expect("a JSON object"));
    let mut tags: BTreeMap<String, String> = originals.unwrap_or_default();
    let plain = labels.iter().filter(|(key, _)| !key.starts_with("fwx-"));
    tags.extend(plain.map(|(key, value)| (key.clone(), value.clone())));
    Tags::from_observed(tags)
}

/// Returns the label that stands in for a tag that no label can hold, built without the provider's
/// code.
fn placeholder_label(key: &str, value: &str) -> (String, String) {
    let slug = |text: &str, most: usize| {
        let words: Vec<_> = text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_ascii_lowercase)
            .collect();
        words.join("-").chars().take(most).collect::<String>()
    };
    let both = format!("{}:{key}{value}", key.len());
    let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, both.as_bytes())
        .simple()
        .to_string();
    let label = format!("fwx-{}-{}", slug(key, 40), &digest[..16]);
    (label, slug(value, 63))
}

fn info(instance: &OracleInstance) -> InstanceInfo {
    let mut info = InstanceInfo::new(GcpProject::id(instance), state(&instance.status));
    info.tags = tags(&instance.labels, &instance.metadata);
    info.private_ip = instance.internal_ip.map(Into::into);
    info.public_ip = instance.nat_ip.map(Into::into);
    let image = instance.metadata.get("fleetwright-image");
    info.image = image.map(|text| parse_name(text));
    info.instance_type = Some(parse_name(&instance.machine_type));
    info.placement.zone = Some(parse_name(&instance.zone));
    info.placement.network = Some(parse_name(&format!(
        "https://www.googleapis.com/compute/v1/projects/{}/regions/us-central1/subnetworks/{}",
        instance.project, instance.subnetwork
    )));
    let tags = instance.network_tags.iter();
    info.placement.security_groups = tags.map(|tag| parse_name(tag)).collect();
    info.placement.market = Some(if instance.spot {
        Market::Spot
    } else {
        Market::OnDemand
    });
    info
}

fn state(native: &str) -> CloudInstanceState {
    match native {
        "PROVISIONING" | "STAGING" | "REPAIRING" | "PENDING" => CloudInstanceState::Pending,
        "RUNNING" => CloudInstanceState::Running,
        "STOPPING" | "SUSPENDING" => CloudInstanceState::Stopping,
        "TERMINATED" | "SUSPENDED" => CloudInstanceState::Stopped,
        other => panic!("the emulator has no state {other}"),
    }
}

fn user_data(metadata: &BTreeMap<String, String>) -> Option<Vec<u8>> {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    let text = metadata.get("user-data")?;
    Some(
        match metadata.get("user-data-encoding").map(String::as_str) {
            Some("base64") => BASE64_STANDARD.decode(text).expect("base64"),
            Some(other) => panic!("there is no encoding {other}"),
            None => text.clone().into_bytes(),
        },
    )
}
