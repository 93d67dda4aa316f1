//! Valid and invalid launch configs.

use super::*;

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ fleet";

fn config() -> AzureLaunchConfig {
    let subnet = NetworkId::new("vnet/default").unwrap();
    let subscription = "00000000-0000-0000-0000-00000000000a";
    AzureLaunchConfig::new(subscription, "rg", "eastus", subnet, KEY)
}

fn invalid_field(change: impl FnOnce(&mut AzureLaunchConfig)) -> String {
    let mut config = config();
    change(&mut config);
    config.check().unwrap_err().field().to_owned()
}

#[test]
fn check_names_the_invalid_field() {
    assert_eq!(config().check(), Ok(()));
    assert_eq!(
        invalid_field(|config| config.subscription = "mine".to_owned()),
        "subscription"
    );
    for odd in ["", "a.", "a/b", "a b", &"a".repeat(91)] {
        let field = invalid_field(|config| config.resource_group = odd.to_owned());
        assert_eq!(field, "resource_group", "{odd}");
    }
    assert_eq!(
        invalid_field(|config| config.location = "East US".to_owned()),
        "location"
    );
    for odd in ["default", "a/b/c", "/subscriptions/x", "../default"] {
        let field = invalid_field(|config| config.subnet = NetworkId::new(odd).unwrap());
        assert_eq!(field, "subnet", "{odd}");
    }
    let odd = Some(SecurityGroupId::new("a/b").unwrap());
    assert_eq!(
        invalid_field(|config| config.network_security_group = odd),
        "network_security_group"
    );
    assert_eq!(
        invalid_field(|config| config.admin_user.clear()),
        "admin_user"
    );
    for odd in [
        "",
        "ssh-rsa",
        "password",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5A\nx",
    ] {
        let field = invalid_field(|config| config.ssh_public_key = odd.to_owned());
        assert_eq!(field, "ssh_public_key", "{odd}");
    }
    let odd = ["mine".to_owned()].into();
    assert_eq!(
        invalid_field(|config| config.user_identities = odd),
        "user_identities"
    );
    let ephemeral = |config: &mut AzureLaunchConfig| {
        config.system_disk = SystemDisk::EphemeralCache;
        config.eviction = Eviction::Deallocated;
    };
    assert_eq!(invalid_field(ephemeral), "eviction");
    let odd = [("a/b".to_owned(), String::new())].into();
    assert!(invalid_field(|config| config.tags = odd).starts_with("tag"));
}

#[test]
fn config_loads_from_json_and_refuses_unknown_fields() {
    let text = format!(
        r#"{{"subscription":"00000000-0000-0000-0000-00000000000a","resource_group":"rg","location":"eastus",
        "subnet":"vnet/default","ssh_public_key":"{KEY}","eviction":"deallocated","system_identity":"assigned",
        "user_data":"user-data","plan":{{"name":"a","publisher":"b","product":"c"}}}}"#
    );
    let config: AzureLaunchConfig = serde_json::from_str(&text).unwrap();
    assert_eq!(config.eviction, Eviction::Deallocated);
    assert_eq!(config.plan, Some(MarketplacePlan::new("a", "b", "c")));
    assert_eq!(config.admin_user, "azureuser");
    let back = serde_json::to_string(&config).unwrap();
    assert_eq!(
        serde_json::from_str::<AzureLaunchConfig>(&back).unwrap(),
        config
    );
    let typo = text.replace("eviction", "evicted");
    assert!(serde_json::from_str::<AzureLaunchConfig>(&typo).is_err());
}
