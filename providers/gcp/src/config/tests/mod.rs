//! Valid and invalid launch configs.

use super::*;

fn config() -> GcpLaunchConfig {
    let zones = ["us-central1-a", "us-central1-b"].map(|zone| Zone::new(zone).unwrap());
    GcpLaunchConfig::new("fleet-1", zones)
}

fn invalid_field(change: impl FnOnce(&mut GcpLaunchConfig)) -> String {
    let mut config = config();
    change(&mut config);
    config.check().unwrap_err().field().to_owned()
}

#[test]
fn check_names_the_invalid_field() {
    config().check().unwrap();
    assert_eq!(
        invalid_field(|config| config.project = "My Project".to_owned()),
        "project"
    );
    assert_eq!(invalid_field(|config| config.zones.clear()), "zones");
    let url = Zone::new("https://example.com/zones/us-central1-a").unwrap();
    assert_eq!(invalid_field(|config| config.zones[1] = url), "zones[1]");
    assert_eq!(
        invalid_field(|config| config.zones[1] = config.zones[0].clone()),
        "zones[1]"
    );
    assert_eq!(
        invalid_field(|config| config.subnetwork = Some(" ".to_owned())),
        "subnetwork"
    );
    let label = ("Team".to_owned(), "blue".to_owned());
    assert_eq!(
        invalid_field(|config| config.labels = [label].into()),
        "labels[\"Team\"]"
    );
    let item = ("user-data".to_owned(), String::new());
    assert_eq!(
        invalid_field(|config| config.metadata = [item].into()),
        "metadata[\"user-data\"]"
    );
    let account = ServiceAccount::new("");
    assert_eq!(
        invalid_field(|config| config.service_account = Some(account)),
        "service_account.email"
    );
    let tag = SecurityGroupId::new("Web").unwrap();
    assert_eq!(
        invalid_field(|config| config.network_tags = [tag].into()),
        "network_tags"
    );
}

#[test]
fn config_loads_from_json_and_refuses_unknown_fields() {
    let text = r#"{"project":"fleet-1","zones":["us-central1-a"],"spot_end":"stopped",
        "service_account":{"email":"ci@fleet-1.iam.gserviceaccount.com"},
        "shielded":{"secure_boot":true},"user_data":"startup-script"}"#;
    let config: GcpLaunchConfig = serde_json::from_str(text).unwrap();
    assert_eq!(config.spot_end, SpotEnd::Stopped);
    assert_eq!(config.public_address, PublicAddress::Assigned);
    assert_eq!(config.service_account.as_ref().unwrap().scopes.len(), 1);
    let back = serde_json::to_string(&config).unwrap();
    assert_eq!(
        serde_json::from_str::<GcpLaunchConfig>(&back).unwrap(),
        config
    );
    let typo = r#"{"project":"fleet-1","zones":["us-central1-a"],"label":{}}"#;
    assert!(serde_json::from_str::<GcpLaunchConfig>(typo).is_err());
    assert!(serde_json::from_str::<GcpLaunchConfig>(r#"{"project":"fleet-1"}"#).is_err());
}
