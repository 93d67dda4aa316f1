//! Fingerprints: equal for equal configs, different for all others.

use std::collections::BTreeSet;

use super::*;

fn digest(config: &InstanceConfig, instances: u32) -> String {
    config.fingerprint(count(instances)).as_uuid().to_string()
}

#[test]
fn fingerprint_is_frozen() {
    let minimal = builder().build().unwrap();
    assert_eq!(
        digest(&minimal, 1),
        "c0561f83-b6ab-5352-9864-c33d4d92b921",
        "by Python's uuid"
    );
    let mut config = full();
    assert_eq!(digest(&config, 3), "f7b012d5-e769-5ca4-8aae-7aa42e0b59fb");
    config.placement.public_address = Some(PublicAddress::Absent);
    config.placement.market = Some(Market::OnDemand);
    assert_eq!(digest(&config, 3), "2dd030ef-e274-5ec6-bc3f-14c328ee84d0");
}

#[test]
fn fingerprint_does_not_depend_on_build_order_or_token() {
    let other_order = builder()
        .placement(placed())
        .disk_size_gb(20)
        .tag("Größe", "")
        .tag("ManagedBy", "my-fleet")
        .user_data(b"#!/bin/sh\n\0\xff")
        .build()
        .unwrap();
    assert_ne!(other_order, full(), "it has no token");
    assert_eq!(digest(&other_order, 1), digest(&full(), 1));
}

/// Changes one field of a config.
type Change = fn(&mut InstanceConfig);

#[test]
fn fingerprint_depends_on_every_field() {
    // When this no longer compiles, the new field needs its place in the fingerprint and below.
    let InstanceConfig {
        image: _,
        instance_type: _,
        user_data: _,
        tags: _,
        disk_size_gb: _,
        launch_token: _,
        batch: _,
        placement:
            Placement {
                zone: _,
                network: _,
                security_groups: _,
                public_address: _,
                market: _,
            },
    } = full();
    let changes: [Change; 23] = [
        |_| {},
        |config| config.image = ImageId::new("image-8").unwrap(),
        |config| config.instance_type = InstanceType::new("smal").unwrap(),
        |config| config.user_data = None,
        |config| config.user_data = Some(UserData::new("#!/bin/sh\n").unwrap()),
        |config| config.tags = Tags::new(),
        |config| drop(config.tags.remove("Größe")),
        |config| drop(config.tags.insert("Größe", " ").unwrap()),
        |config| drop(config.tags.insert("größe", "").unwrap()),
        |config| config.disk_size_gb = None,
        |config| config.disk_size_gb = Some(count(21)),
        |config| config.placement.zone = None,
        |config| config.placement.zone = Some(Zone::new("eu-1b").unwrap()),
        |config| config.placement.network = None,
        |config| config.placement.network = Some(NetworkId::new("net-2").unwrap()),
        |config| config.placement.security_groups.clear(),
        |config| drop(config.placement.security_groups.pop_first()),
        |config| config.placement.public_address = None,
        |config| config.placement.public_address = Some(PublicAddress::Absent),
        |config| config.batch = Some(count(1)),
        |config| config.batch = Some(count(2)),
        |config| config.placement.market = None,
        |config| config.placement.market = Some(Market::OnDemand),
    ];
    let mut digests = vec![digest(&full(), 2)];
    for change in changes {
        let mut config = full();
        change(&mut config);
        digests.push(digest(&config, 1));
    }
    let different = BTreeSet::from_iter(&digests);
    assert_eq!(different.len(), digests.len(), "{digests:?}");
}

#[test]
fn fingerprint_can_be_stored() {
    let print = full().fingerprint(count(1));
    assert_eq!(Fingerprint::from_uuid(print.as_uuid()), print);
    let json = serde_json::to_string(&print).unwrap();
    assert_eq!(json, format!("\"{}\"", print.as_uuid()));
    assert_eq!(serde_json::from_str::<Fingerprint>(&json).unwrap(), print);
}
