//! The requests that launch configs become.

use super::*;
use crate::config::{ServiceAccount, ShieldedOptions};
use fleetwright::SecurityGroupId;

fn launch() -> GcpLaunchConfig {
    let zones = ["us-central1-a", "us-central1-b"].map(|zone| Zone::new(zone).unwrap());
    GcpLaunchConfig::new("fleet-1", zones)
}

fn config() -> InstanceConfig {
    InstanceConfig::builder("debian-12", "n2-standard-4")
        .build()
        .unwrap()
}

fn body(launch: &GcpLaunchConfig, config: &InstanceConfig) -> Instance {
    let plan = Plan::new(launch, config, NonZeroU32::MIN).unwrap();
    plan.named("fw-1")
}

#[test]
fn minimal_launch_requests_only_what_is_needed() {
    let body = body(&launch(), &config());
    assert_eq!(
        body.machine_type.as_deref(),
        Some("zones/us-central1-a/machineTypes/n2-standard-4")
    );
    let disk = &body.disks[0];
    assert_eq!((disk.boot, disk.auto_delete), (Some(true), Some(true)));
    let params = disk.initialize_params.as_ref().unwrap();
    assert_eq!(
        params.source_image.as_deref(),
        Some("projects/fleet-1/global/images/debian-12")
    );
    assert_eq!(params.disk_size_gb, None);
    assert_eq!(body.network_interfaces[0].access_configs.len(), 1);
    assert!(body.scheduling.is_none() && body.service_accounts.is_empty());
    assert_eq!(body.deletion_protection, None);
}

#[test]
fn every_option_reaches_the_request() {
    let mut launch = launch();
    launch.service_account = Some(ServiceAccount::new("ci@example.com"));
    launch.disk_type = Some("pd-ssd".to_owned());
    launch.local_ssds = 2;
    launch.shielded = ShieldedOptions {
        secure_boot: Some(true),
        ..ShieldedOptions::default()
    };
    launch.labels = [("team".to_owned(), "blue".to_owned())].into();
    launch.subnetwork = Some("fleet".to_owned());
    launch.accelerators = [("nvidia-tesla-t4".to_owned(), 1)].into();
    let mut config = config();
    config.placement.zone = Some(Zone::new("us-central1-b").unwrap());
    config.placement.public_address = Some(PublicAddress::Absent);
    config.placement.security_groups = [SecurityGroupId::new("web").unwrap()].into();
    config.tags.insert("Owner", "me").unwrap();
    config.disk_size_gb = NonZeroU32::new(20);
    let body = body(&launch, &config);
    assert_eq!(body.disks.len(), 3);
    let boot = body.disks[0].initialize_params.as_ref().unwrap();
    assert_eq!(
        boot.disk_type.as_deref(),
        Some("zones/us-central1-b/diskTypes/pd-ssd")
    );
    assert_eq!(boot.disk_size_gb, Some(20));
    assert_eq!(boot.labels.len(), 2, "disks have the same labels");
    assert!(body.disks.iter().all(|disk| disk.auto_delete == Some(true)));
    let card = &body.network_interfaces[0];
    assert_eq!(
        card.subnetwork.as_deref(),
        Some("regions/us-central1/subnetworks/fleet")
    );
    assert_eq!(
        (card.network.as_deref(), card.access_configs.len()),
        (None, 0)
    );
    assert_eq!(body.tags.as_ref().unwrap().items, ["web"]);
    assert_eq!(body.service_accounts[0].scopes.len(), 1);
    let shielded = body.shielded_instance_config.as_ref().unwrap();
    assert_eq!(
        (shielded.enable_secure_boot, shielded.enable_vtpm),
        (Some(true), None)
    );
    let maintenance = body
        .scheduling
        .as_ref()
        .unwrap()
        .on_host_maintenance
        .as_ref();
    assert_eq!(maintenance, Some(&OnHostMaintenance::Terminate));
    assert_eq!(body.guest_accelerators.len(), 1);
}

#[test]
fn spot_instance_has_the_configured_termination() {
    let mut config = config();
    config.placement.market = Some(Market::Spot);
    let mut launch = launch();
    for (end, action) in [
        (SpotEnd::Deleted, InstanceTerminationAction::Delete),
        (SpotEnd::Stopped, InstanceTerminationAction::Stop),
    ] {
        launch.spot_end = end;
        let scheduling = body(&launch, &config).scheduling.unwrap();
        assert_eq!(scheduling.instance_termination_action, Some(action));
        assert_eq!(scheduling.automatic_restart, Some(false));
        assert_eq!(
            scheduling.on_host_maintenance,
            Some(OnHostMaintenance::Terminate)
        );
    }
}

#[test]
fn images_and_networks_are_accepted_by_name_and_path() {
    assert_eq!(image_path("p", "mine"), "projects/p/global/images/mine");
    let family = "projects/debian-cloud/global/images/family/debian-12";
    assert_eq!(image_path("p", family), family);
    let mut config = config();
    config.placement.network = Some(NetworkId::new("global/networks/fleet").unwrap());
    let card = &body(&launch(), &config).network_interfaces[0];
    assert_eq!(card.network.as_deref(), Some("global/networks/fleet"));
    config.placement.network = None;
    let plain = body(&launch(), &config);
    let network = plain.network_interfaces[0].network.as_deref();
    assert_eq!(network, Some("global/networks/default"));
}

#[test]
fn unconfigured_zones_and_invalid_network_tags_are_refused() {
    let mut config = config();
    config.placement.zone = Some(Zone::new("europe-west4-a").unwrap());
    let refused = Plan::new(&launch(), &config, NonZeroU32::MIN).unwrap_err();
    assert_eq!(refused.field(), "placement.zone");
    config.placement.zone = None;
    config.placement.security_groups = [SecurityGroupId::new("sg_1").unwrap()].into();
    let refused = Plan::new(&launch(), &config, NonZeroU32::MIN).unwrap_err();
    assert_eq!(refused.field(), "placement.security_groups");
}
