//! The resources of an instance: machine, disk, network card, addresses.

use std::collections::BTreeSet;

use fleetwright::{
    CloudInstanceState::{Stopped, Stopping, Terminated},
    InstanceProvisioner as _, PublicAddress,
};

use crate::support::{brisk, ids, many, open, pass, plain, running, seconds, truth};

#[tokio::test(start_paused = true)]
async fn start_after_stop_assigns_another_public_address() {
    let (cloud, provisioner) = open(brisk());
    let first = running(&provisioner).await;
    let (public, private) = (first.public_ip.unwrap(), first.private_ip.unwrap());
    assert!(public.to_string().starts_with("198.18."), "{public}");
    assert!(private.to_string().starts_with("10."), "{private}");
    provisioner.stop_instance(&first.id).await.unwrap();
    for expected in [Stopping, Stopped] {
        let status = provisioner.describe_instance(&first.id).await.unwrap();
        assert_eq!(status.state, expected);
        assert_eq!((status.public_ip, status.private_ip), (None, Some(private)));
        assert_eq!(status.mac_address, first.mac_address);
        assert_eq!(cloud.oracle().leftovers().addresses, [private]);
        pass(seconds(1)).await;
    }
    // A released address is not the next one to be allocated.
    running(&provisioner).await;
    let again = provisioner.start_instance(&first.id).await.unwrap();
    assert_eq!(again.private_ip, Some(private));
    assert_ne!(again.public_ip.unwrap(), public);
    assert_eq!(again.tags, first.tags);
    let truth = truth(&cloud, &first.id);
    assert_eq!(truth.info.public_ip, again.public_ip);
    assert_eq!(cloud.oracle().leftovers().addresses.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn start_assigns_no_public_address_if_the_launch_requested_none() {
    let (cloud, provisioner) = open(brisk());
    let mut config = plain();
    config.placement.public_address = Some(PublicAddress::Absent);
    let id = &provisioner.launch_instance(&config).await.unwrap().id;
    provisioner.stop_instance(id).await.unwrap();
    pass(seconds(1)).await;
    let started = provisioner.start_instance(id).await.unwrap();
    assert_eq!(started.public_ip, None);
    assert_eq!(cloud.oracle().leftovers().addresses.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn stop_releases_only_machine_and_public_address() {
    let (cloud, provisioner) = open(brisk());
    let info = running(&provisioner).await;
    let before = truth(&cloud, &info.id);
    assert!(before.holds_machine);
    provisioner.stop_instance(&info.id).await.unwrap();
    assert!(
        truth(&cloud, &info.id).holds_machine,
        "until it has stopped"
    );
    pass(seconds(1)).await;
    let after = truth(&cloud, &info.id);
    assert!(!after.holds_machine);
    assert_eq!(after.disk, before.disk);
    assert_eq!((after.boots, before.boots), (1, 1));
    provisioner.start_instance(&info.id).await.unwrap();
    assert!(truth(&cloud, &info.id).holds_machine);
    pass(seconds(1)).await;
    assert_eq!(truth(&cloud, &info.id).boots, 2);
}

#[tokio::test(start_paused = true)]
async fn terminated_instance_has_no_resources_and_stays_visible() {
    let (cloud, provisioner) = open(brisk());
    let oracle = cloud.oracle();
    assert_eq!(oracle.leftovers().to_string(), "nothing left");
    let info = running(&provisioner).await;
    let left = oracle.leftovers();
    assert_eq!(
        left.to_string(),
        "still existing: 1 instances, 1 disks, 1 network cards, 2 addresses"
    );
    assert_eq!(left.instances, std::slice::from_ref(&info.id));
    assert_eq!(left.network_cards, [info.mac_address.unwrap()]);
    let disk = truth(&cloud, &info.id).disk.unwrap();
    assert_eq!(left.disks, [disk.name]);
    let addresses = [info.private_ip.unwrap(), info.public_ip.unwrap()];
    assert_eq!(left.addresses, addresses);
    assert_eq!(oracle.leftovers_with_tags(&info.tags), left);
    let other = fleetwright::Tags::new().with("fleet", "green").unwrap();
    assert!(oracle.leftovers_with_tags(&other).is_empty());
    provisioner.terminate_instance(&info.id).await.unwrap();
    assert_eq!(oracle.leftovers(), left, "until it is terminated");
    pass(seconds(1)).await;
    assert!(oracle.leftovers().is_empty());
    assert!(oracle.leftovers_with_tags(&info.tags).is_empty());
    let end = truth(&cloud, &info.id);
    assert_eq!((end.info.state, end.holds_machine), (Terminated, false));
    assert_eq!((end.info.private_ip, end.info.public_ip), (None, None));
    assert_eq!((end.info.mac_address, end.disk), (None, None));
    assert_eq!(end.info.tags, info.tags);
}

#[tokio::test(start_paused = true)]
async fn ids_and_names_are_never_reused() {
    let (cloud, provisioner) = open(brisk().terminated_visible(seconds(1)));
    let mut earlier = BTreeSet::new();
    for _ in 0..40 {
        let launched = provisioner
            .launch_instances(&plain(), many(5))
            .await
            .unwrap();
        for info in &launched {
            let disk = truth(&cloud, &info.id).disk.unwrap().name;
            assert!(earlier.insert(info.id.to_string()), "{}", info.id);
            assert!(earlier.insert(info.mac_address.unwrap().to_string()));
            assert!(earlier.insert(disk));
        }
        for result in provisioner.terminate_instances(&ids(&launched)).await {
            result.unwrap();
        }
        pass(seconds(2)).await;
        assert_eq!(
            cloud.oracle().instances().len(),
            0,
            "all instances are purged"
        );
    }
}
