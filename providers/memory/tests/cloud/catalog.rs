//! Refusal of types, images, zones and placement fields that the cloud does not have.

use fleetwright::{
    Effect, ErrorKind, ImageId, InstanceConfig, InstanceProvisioner as _, InstanceType, Market,
    NetworkId, PlacementField, Problem, PublicAddress, SecurityGroupId, Zone,
};
use fleetwright_memory::WireCall;

use crate::{
    bad_input::refused,
    calls::{send, snapshot_state},
    support::{brisk, builder, open, plain, stopped, zone},
};

/// Makes a config invalid.
type Change = fn(&mut InstanceConfig);

#[tokio::test(start_paused = true)]
async fn error_for_an_unknown_offering_lists_the_known_ones() {
    let changes: [(Change, &str, &str); 3] = [
        (
            |config| config.image = ImageId::new("image-9").unwrap(),
            "image",
            "choose one of: image-1, image-2",
        ),
        (
            |config| config.instance_type = InstanceType::new("huge").unwrap(),
            "instance type",
            "choose one of: large, small",
        ),
        (
            |config| config.placement.zone = Some(Zone::new("moon").unwrap()),
            "placement.zone",
            "choose one of: mem-a, mem-b",
        ),
    ];
    for (change, field, instead) in changes {
        let mut config = plain();
        change(&mut config);
        let wrong = refused(&config).await;
        assert_eq!(wrong.field(), field);
        let instead = instead.to_owned();
        assert_eq!(*wrong.problem(), Problem::NotOffered { instead });
    }
}

#[tokio::test(start_paused = true)]
async fn resize_and_reimage_check_the_catalog() {
    let (cloud, provisioner) = open(
        brisk()
            .offer_image(ImageId::new("image-1").unwrap())
            .offer_type(InstanceType::new("small").unwrap()),
    );
    let id = stopped(&provisioner).await.id;
    let before = snapshot_state(&cloud);
    for (call, field) in [
        (WireCall::Resize, "instance type"),
        (WireCall::Reimage, "image"),
    ] {
        let error = send(call, &provisioner, &id).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Invalid, Effect::None)
        );
        assert_eq!(error.invalid_value().unwrap().field(), field);
    }
    assert_eq!(snapshot_state(&cloud), before);
    let small = InstanceType::new("small").unwrap();
    provisioner.resize_instance(&id, &small).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn undeclared_placement_field_is_refused() {
    let set: [(PlacementField, Change); 5] = [
        (PlacementField::Zone, |config| {
            config.placement.zone = Some(zone("mem-a"));
        }),
        (PlacementField::Network, |config| {
            config.placement.network = Some(NetworkId::new("n").unwrap());
        }),
        (PlacementField::SecurityGroups, |config| {
            config.placement.security_groups = [SecurityGroupId::new("g").unwrap()].into();
        }),
        (PlacementField::PublicAddress, |config| {
            config.placement.public_address = Some(PublicAddress::Absent);
        }),
        (PlacementField::Spot, |config| {
            config.placement.market = Some(Market::Spot);
        }),
    ];
    for (left_out, _) in set {
        let (cloud, provisioner) = open(builder().without_placement(left_out));
        for (field, change) in set {
            let mut config = plain();
            change(&mut config);
            let result = provisioner.launch_instance(&config).await;
            if field != left_out {
                result.unwrap();
                continue;
            }
            let error = result.unwrap_err();
            assert_eq!(
                (error.kind(), error.effect()),
                (ErrorKind::Invalid, Effect::None)
            );
            assert_eq!(error.invalid_value().unwrap().field(), field.path());
        }
        assert_eq!(cloud.oracle().instances().len(), 4);
    }
}
