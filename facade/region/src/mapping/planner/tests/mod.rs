//! Launch configs of specs, and the errors of specs that cannot be planned.

use std::{collections::BTreeSet, sync::Arc};

use fleetwright::{LaunchToken, PublicAddress, Tags, UserData};
use fleetwright_identity::{ActorName, Scope};

use super::*;
use crate::{
    catalog::{ImageOwner, NewImage, SnapshotProgress},
    ids::{FlavorId, ImageId, RegionId, SecurityGroupId},
    name::Name,
    testing::{organization, project, store, user_with_role},
};

const CATALOG: &str = include_str!("../../../../catalog.example.toml");
const EXAMPLE: &str = include_str!("../../../../mapping.example.toml");
const NETWORK: &str = "b059b3e6-9ae5-42b7-94b4-f42fb7a6baee";
const GROUP: &str = "c0ffee00-0000-4000-8000-000000000001";

async fn service() -> Arc<CatalogService> {
    let (service, _) = CatalogService::open(store()).await.unwrap();
    service.load(CATALOG).await.unwrap();
    Arc::new(service)
}

async fn planner() -> RegionPlanner {
    RegionPlanner::new(service().await, EXAMPLE).unwrap()
}

fn spec() -> LaunchSpec {
    LaunchSpec {
        flavor: FlavorId::new("standard-4").unwrap(),
        image: ImageId::new("ubuntu-24.04").unwrap(),
        network: NetworkId::new(NETWORK).unwrap(),
        security_groups: BTreeSet::from([SecurityGroupId::new(GROUP).unwrap()]),
        public_ip: PublicAddress::Absent,
        user_data: Some(UserData::new("#!/bin/sh\n").unwrap()),
        tags: Tags::new().with("owner", "me").unwrap(),
        token: LaunchToken::new("server-1/1").unwrap(),
    }
}

async fn problems(text: &str) -> Vec<String> {
    let problems = RegionPlanner::new(service().await, text).err();
    let each = problems.iter().flat_map(|problems| problems.iter());
    each.map(ToString::to_string).collect()
}

#[tokio::test]
async fn spec_is_planned_with_native_names() {
    let planner = planner().await;
    let config = planner.plan(&spec()).unwrap();
    assert_eq!(
        serde_json::to_value(&config).unwrap(),
        serde_json::json!({
            "image": "ami-0f00000000000001",
            "instance_type": "m7i.xlarge",
            "user_data": config.user_data,
            "tags": {"owner": "me"},
            // 100 GB are 93.1 GiB, and clouds count in GiB.
            "disk_size_gb": 94,
            "launch_token": "server-1/1",
            "placement": {
                "zone": "eu-north-1a",
                "network": "subnet-0a00000000000001",
                "security_groups": ["sg-0b00000000000001", "sg-0b00000000000002"],
                "public_address": "absent",
            },
        })
    );
    assert_eq!(config.user_data, spec().user_data);
    assert_eq!(
        planner.plan(&spec()),
        Ok(config),
        "the same spec gives the same config"
    );

    let mut spec_of_network = spec();
    spec_of_network.network = NetworkId::new("a1b2c3d4-e5f6-4789-8abc-def012345678").unwrap();
    spec_of_network.security_groups.clear();
    spec_of_network.public_ip = PublicAddress::Assigned;
    let placement = planner.plan(&spec_of_network).unwrap().placement;
    assert_eq!(placement.zone.unwrap().as_str(), "eu-north-1b");
    assert!(placement.security_groups.is_empty());
    assert_eq!(placement.public_address, Some(PublicAddress::Assigned));

    spec_of_network.network = NetworkId::new("00000000-0000-4000-8000-000000000000").unwrap();
    let placement = planner.plan(&spec_of_network).unwrap().placement;
    assert_eq!(
        placement.network.unwrap().as_str(),
        "subnet-0a00000000000009"
    );
}

#[tokio::test]
async fn spec_that_cannot_be_launched_is_refused_with_the_fix() {
    let planner = planner().await;
    let text = EXAMPLE.replace(
        "[networks.default]\nsubnet = \"subnet-0a00000000000009\"\n",
        "",
    );
    planner.load(&text).unwrap();
    let message_of = |change: fn(&mut LaunchSpec)| {
        let mut spec = spec();
        change(&mut spec);
        planner.plan(&spec).unwrap_err().to_string()
    };
    assert_eq!(
        message_of(|spec| spec.flavor = FlavorId::new("huge").unwrap()),
        "flavor huge is not in the catalog of region eu-north: choose one that is"
    );
    assert_eq!(
        message_of(|spec| spec.image = ImageId::new("beos").unwrap()),
        "image beos is not in the catalog of region eu-north: choose one that is"
    );
    assert_eq!(
        message_of(|spec| spec.flavor = FlavorId::new("metal-64").unwrap()),
        "region eu-north has no mapping for flavor metal-64: choose another, or ask an operator to add it under [flavors]"
    );
    assert_eq!(
        message_of(|spec| spec.image = ImageId::new("acme-golden-7").unwrap()),
        "region eu-north has no mapping for image acme-golden-7: choose another, or ask an operator to add it under [images]"
    );
    let other = "00000000-0000-4000-8000-000000000000";
    assert_eq!(
        message_of(
            |spec| spec.network = NetworkId::new("00000000-0000-4000-8000-000000000000").unwrap()
        ),
        format!(
            "region eu-north has no mapping for network {other}: choose another, or ask an operator to add it under [networks.{other}]"
        )
    );
    let group = |spec: &mut LaunchSpec| {
        let id = SecurityGroupId::new("00000000-0000-4000-8000-000000000000").unwrap();
        spec.security_groups.insert(id);
    };
    assert_eq!(
        message_of(group),
        format!(
            "region eu-north has no mapping for security group {other}: choose another, or ask an operator to add it under [security-groups]"
        )
    );
    assert_eq!(
        message_of(|spec| spec.flavor = FlavorId::new("arm-2").unwrap()),
        "image ubuntu-24.04 does not boot on flavor arm-2: choose another image or flavor"
    );
}

#[tokio::test]
async fn retired_entries_are_still_launched() {
    let planner = planner().await;
    let before = planner.plan(&spec()).unwrap();
    // All entries of the spec are removed from the file; one other entry of each kind stays.
    let text = CATALOG
        .replace("id = \"standard-4\"", "id = \"standard-5\"")
        .replace("id = \"ubuntu-24.04\"", "id = \"ubuntu-25.04\"");
    planner.catalog.load(&text).await.unwrap();
    let catalog = planner.catalog.current();
    assert!(catalog.flavor(&spec().flavor).unwrap().retired);
    assert!(catalog.image(&spec().image).unwrap().retired);
    assert_eq!(planner.plan(&spec()), Ok(before));
    // The mapping can be loaded again.
    assert_eq!(planner.load(EXAMPLE), Ok(()));
}

#[tokio::test]
async fn bare_metal_requests_no_disk_size() {
    let planner = planner().await;
    planner
        .load(&EXAMPLE.replace("[flavors]", "[flavors]\nmetal-64 = \"m7i.metal\""))
        .unwrap();
    let mut spec = spec();
    spec.flavor = FlavorId::new("metal-64").unwrap();
    assert_eq!(planner.plan(&spec).unwrap().disk_size_gb, None);
    let huge = CATALOG.replace("disk = \"100 GB\"", "disk = \"9000000 TiB\"");
    planner.catalog.load(&huge).await.unwrap();
    spec.flavor = FlavorId::new("standard-4").unwrap();
    assert_eq!(
        planner.plan(&spec).unwrap_err().to_string(),
        "the disk of flavor standard-4, 9000000 TiB, is larger than any provider accepts: choose another flavor"
    );
}

#[tokio::test]
async fn broken_mapping_is_reported_with_positions_and_changes_nothing() {
    let wrong = "\
region = \"EU\"
provider = \"ec3\"
zone = 7
colour = \"red\"
[flavors]
standard-4 = 4
standard-9 = \"x\"
ubuntu-24.04 = \"x\"
arm-2 = \"\"
[images]
acme-golden-7 = \"a b\"
[networks.blue]
subnet = \"s\"
[networks.default]
subnets = \"s\"
security-groups = [\"ok\", 3]
[security-groups]
x = \"sg\"
";
    assert_eq!(
        problems(wrong).await,
        [
            "line 1, column 10: region: \"EU\" is not a valid region id: expected 1 to 63 of a-z, 0-9, '-', '.' and '_', beginning and ending with a letter or digit",
            "line 2, column 12: provider: \"ec3\" is unknown: expected one of ec2, gcp, azure, memory; did you mean ec2?",
            "line 3, column 8: zone: found a number: expected a name in quotes",
            "line 4, column 1: \"colour\" is unknown: expected region, provider, zone, flavors, images, networks, security-groups",
            "line 6, column 1: standard-4 of flavors: found a number: expected a name in quotes",
            "line 7, column 1: standard-9 of flavors: it is not in the catalog: expected an id of the catalog",
            "line 8, column 1: ubuntu-24 of flavors: found a table: expected a name in quotes; if the id has a dot, put it in quotes too: \"ubuntu-24...\"",
            "line 9, column 1: arm-2 of flavors: instance type: is empty; give a value or leave the field out",
            "line 11, column 1: acme-golden-7 of images: image: contains ' '; use only characters that are neither space nor control",
            "line 12, column 1: blue of networks: \"blue\" is not a valid network id: expected a UUID with hyphens, or default",
            "line 14, column 1: default of networks: subnet is missing: expected a name in quotes",
            "line 15, column 1: default of networks: \"subnets\" is unknown: expected subnet, security-groups, zone; did you mean subnet?",
            "line 16, column 26: security-groups of default of networks: found a number: expected a name in quotes",
            "line 18, column 1: x of security-groups: \"x\" is not a valid security group id: expected a UUID with hyphens",
        ]
    );
    let planner = planner().await;
    let before = planner.mapping();
    assert!(planner.load(wrong).is_err());
    let other = planner
        .load(&EXAMPLE.replace("eu-north\"", "us-west\""))
        .unwrap_err();
    assert_eq!(
        other.to_string(),
        "1 problem: line 1, column 1: it is the mapping of region us-west: expected that of region eu-north"
    );
    assert_eq!(planner.mapping(), before);
}

#[tokio::test]
async fn unmapped_entries_are_listed() {
    let planner = planner().await;
    let unmapped = planner.unmapped();
    let unmapped: Vec<_> = unmapped.iter().map(ToString::to_string).collect();
    assert_eq!(unmapped, ["flavor metal-64", "image acme-golden-7"]);
    let administrator = user_with_role("platform-administrator", Scope::Global);
    assert_eq!(planner.catalog.flavors(&administrator).unwrap().len(), 4);
    assert_eq!(planner.flavors(&administrator).unwrap().len(), 3);
    assert_eq!(planner.catalog.images(&administrator).unwrap().len(), 3);
    assert_eq!(planner.images(&administrator).unwrap().len(), 2);
    let nobody = Principal::service(ActorName::new("nobody").unwrap(), []);
    assert!(planner.flavors(&nobody).is_err() && planner.images(&nobody).is_err());
}

#[tokio::test]
async fn tenant_image_is_launched_only_in_its_region() {
    let planner = planner().await;
    let administrator = user_with_role("platform-administrator", Scope::Global);
    let new = NewImage {
        name: Name::new("golden").unwrap(),
        owner: ImageOwner {
            organization: organization(1),
            project: project(1),
        },
        requested_at: chrono::DateTime::UNIX_EPOCH,
        region: RegionId::new("eu-north").unwrap(),
        source: ImageId::new("ubuntu-24.04").unwrap(),
    };
    planner
        .catalog
        .add_uncharged(&administrator, &new)
        .await
        .unwrap();
    let mut spec = spec();
    let id = new.id().unwrap();
    spec.image = id.clone();
    assert_eq!(
        planner.plan(&spec).unwrap_err().to_string(),
        format!("image {id} is pending, not ready: wait until it is ready, or choose another")
    );
    let native = fleetwright::ImageId::new("ami-7").unwrap();
    for making in [SnapshotProgress::Started(native), SnapshotProgress::Ready] {
        planner
            .catalog
            .set_progress(&crate::machine::own().unwrap(), &id, &making)
            .await
            .unwrap();
    }
    assert_eq!(planner.plan(&spec).unwrap().image.as_str(), "ami-7");
    assert!(
        planner
            .images(&administrator)
            .unwrap()
            .iter()
            .any(|image| image.id == id)
    );

    let other_region = EXAMPLE.replace("eu-north\"", "us-west\"");
    let other_region = RegionPlanner::new(Arc::clone(&planner.catalog), &other_region).unwrap();
    assert_eq!(
        other_region.plan(&spec).unwrap_err().to_string(),
        format!("image {id} was created in region eu-north: choose an image of region us-west")
    );
    assert!(
        other_region
            .images(&administrator)
            .unwrap()
            .iter()
            .all(|image| image.id != id)
    );
    assert!(!planner.unmapped().contains(&id.into()));
}

proptest::proptest! {
    #[test]
    fn no_mapping_causes_a_panic(text in "[\\[\\]a-z0-9.=\"{}\n -]{0,80}") {
        let _ = RegionMapping::parse(&text, &Catalog::default());
    }
}
