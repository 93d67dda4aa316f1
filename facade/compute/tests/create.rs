//! The checks of `create` in their order, with the status of each error.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use fleetwright::{PublicAddress, Tags, UserData};
use fleetwright_compute::{
    ComputeError, Meaning,
    instance::{EventKind, InstanceId, Provisioning},
    service::{MAX_DESCRIPTION_CHARS, NewInstance, UpdateInstance},
};
use fleetwright_facade_testkit::{
    CATALOG, TestFacade, error_chain, flavor, image, name, new_instance, north, operator,
    principals::scope, project_user, south, spec, tenant, without_entry,
};
use fleetwright_identity::{Amounts, QuotaKind};
use fleetwright_region::{
    ids::SecurityGroupId,
    network::{Deletion, IfUsed},
    server::MAX_USER_DATA_BYTES,
};
use fleetwright_store::{RecordId, Transaction};
use uuid::Uuid;

#[tokio::test(start_paused = true)]
async fn create_writes_instance_event_and_allocation() {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let alice = project_user(tenant(1, 1));
    let view = facade.create(blue, "web-1").await;
    let instance = &view.instance;
    assert_eq!(instance.id, InstanceId::derive(blue, &instance.name));
    assert_eq!(instance.server, instance.id.server());
    assert_eq!(
        (instance.generation, view.provisioning),
        (1, Provisioning::Pending)
    );
    assert_eq!(
        (&instance.created_by, instance.region.as_str()),
        (alice.actor(), "north")
    );
    let kinds: Vec<_> = instance.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Created]);
    let waiting = view.waiting.clone().unwrap();
    assert_eq!(
        (waiting.what.as_str(), waiting.since),
        ("its launch is being prepared", instance.created_at)
    );
    assert_eq!(facade.read(instance.id).await, view);
    let one = Amounts::new().with(QuotaKind::servers(), 1);
    assert_eq!(facade.allocated(instance.id).await, one);
    let mut two = new_instance(blue, "web-2");
    two.spec.flavor = flavor("gpu");
    two.spec.networking.public_ip = fleetwright::PublicAddress::Assigned;
    let two = facade.instances.create(&alice, &two).await.unwrap();
    let larger = one
        .with(QuotaKind::gpus(), 4)
        .with(QuotaKind::public_ips(), 1);
    assert_eq!(facade.allocated(two.instance.id).await, larger);
}

/// The status and the complete message of an error.
fn status_and_message(error: &ComputeError) -> (u16, String) {
    (error.meaning().status(), error_chain(error))
}

/// A request in which everything is wrong is corrected step by step: each step reports the first remaining error.
#[tokio::test(start_paused = true)]
async fn create_checks_run_in_order_with_their_statuses() {
    let facade = TestFacade::builder().server_quota(1).build().await;
    let (own_project, alice) = (tenant(1, 1), project_user(tenant(1, 1)));
    let blue = facade.network("blue").await;
    let green = facade.network("green").await;
    let (on_blue, on_green) = (
        facade.group(blue, "ssh").await,
        facade.group(green, "ssh").await,
    );
    let theirs = facade.network_in(tenant(2, 1), north(), "blue").await;
    let (ours, others) = (
        facade.authority(own_project).await,
        facade.authority(tenant(1, 2)).await,
    );
    facade.create(blue, "taken").await;
    facade
        .catalog
        .load(&without_entry(CATALOG, "large"))
        .await
        .unwrap();

    let mut new = new_instance(theirs, "taken");
    new.organization = tenant(3, 3).0;
    new.project = tenant(3, 3).1;
    new.description = Some("x".repeat(MAX_DESCRIPTION_CHARS + 1));
    new.spec.flavor = flavor("huge");
    new.spec.image = image("golden");
    new.spec.networking.security_groups = [on_green].into();
    new.spec.networking.allowed_sources = ["2001:db8::/48".parse().unwrap()].into();
    new.spec.networking.public_ip = PublicAddress::Assigned;
    new.spec.user_data = Some(UserData::new("hunter2").unwrap());
    new.spec.ssh_authority = Some(others);
    let nowhere = scope(tenant(3, 3));
    let steps: Vec<(u16, String, Correction)> = vec![
        (400, "metadata.description: 1025 characters are too many: at most 1024 are allowed".into(), Box::new(|new| new.description = None)),
        (403, format!("not permitted: user alice may not create instances in {nowhere}"), Box::new(move |new| (new.organization, new.project) = own_project)),
        (404, format!("there is no network {theirs}"), Box::new(move |new| new.network = blue)),
        (400, "there is no flavor huge: choose one that is offered".into(), Box::new(|new| new.spec.flavor = flavor("large"))),
        (400, "flavor large is retired: choose one that is offered".into(), Box::new(|new| new.spec.flavor = flavor("arm"))),
        (400, "there is no image golden: choose one that is offered".into(), Box::new(|new| new.spec.image = image("debian"))),
        (400, "image debian does not boot on flavor arm: choose another image or flavor: the image is for x86_64 processors, but the flavor has aarch64".into(), Box::new(|new| (new.spec.flavor, new.spec.image) = (flavor("small"), image("wide")))),
        (400, "image wide does not boot on flavor small: choose another image or flavor: the image needs a disk of 20 GiB, but the flavor has one of 20 GB".into(), Box::new(|new| (new.spec.flavor, new.spec.image) = (flavor("metal"), image("virtual")))),
        (400, "image virtual does not boot on flavor metal: choose another image or flavor: the image needs a virtualized flavor".into(), Box::new(|new| (new.spec.flavor, new.spec.image) = (flavor("small"), image("debian")))),
        (422, format!("security group {on_green} is not in network {blue}: choose one that is"), Box::new(move |new| new.spec.networking.security_groups = [on_blue].into())),
        (422, "spec.userData: the user data is in no format that cloud-init knows".into(), Box::new(|new| new.spec.user_data = Some(UserData::new("#!/bin/sh\n").unwrap()))),
        (404, format!("there is no SSH certificate authority {others}"), Box::new(move |new| new.spec.ssh_authority = Some(ours))),
        (422, "spec.networking.allowedSourceAddresses: no region supports additional source addresses, such as the IPv6 range 2001:db8::/48: remove them".into(), Box::new(|new| new.spec.networking.allowed_sources.clear())),
        (409, format!("the network has an instance taken already, {}: choose another name", InstanceId::derive(blue, &name("taken"))), Box::new(|new| new.name = name("free"))),
        (403, "the organization's quota of servers is used up: release some".into(), Box::new(|_| ())),
    ];
    for (code, message, correct) in steps {
        let error = facade.instances.create(&alice, &new).await.unwrap_err();
        let (status, actual) = status_and_message(&error);
        assert!(
            actual.starts_with(&message),
            "{actual}\ninstead of\n{message}"
        );
        assert_eq!(status, code, "{actual}");
        assert!(!actual.contains("hunter2"), "{actual}");
        assert_eq!(
            (
                facade.count("instance").await,
                facade.count("allocation").await
            ),
            (1, 1)
        );
        correct(&mut new);
    }
}

type Correction = Box<dyn Fn(&mut NewInstance)>;

#[tokio::test(start_paused = true)]
async fn malformed_fields_are_refused_by_name() {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let alice = project_user(tenant(1, 1));
    let tags = |key: &str, value: &str| Tags::new().with(key, value).unwrap();
    let many = |count: usize| {
        let each = (0..count).map(|n| (format!("k{n}"), "v".to_owned()));
        Tags::from_observed(each)
    };
    let groups = (0..33).map(|n| SecurityGroupId::from_uuid(Uuid::from_u128(n)));
    let mut too_many_groups = spec();
    too_many_groups.networking.security_groups = groups.collect();
    let mut large = spec();
    large.user_data = Some(UserData::new(vec![b'#'; MAX_USER_DATA_BYTES + 1]).unwrap());
    let table = [
        (
            tags("fleetwright/server", "x"),
            spec(),
            "metadata.tags[\"fleetwright/server\"]: keys that begin with fleetwright and",
        ),
        (
            tags("Fleetwright-Region", "x"),
            spec(),
            "metadata.tags[\"Fleetwright-Region\"]: keys that begin with fleetwright and",
        ),
        (
            tags("a\nb", "x"),
            spec(),
            "metadata.tags[\"a\\nb\"]: it contains a control character: remove it",
        ),
        (tags(&"k".repeat(129), "x"), spec(), "metadata.tags[\"kkkk"),
        (
            tags("k", &"v".repeat(257)),
            spec(),
            "metadata.tags[\"k\"]: a value of 257 characters is too long",
        ),
        (
            many(33),
            spec(),
            "metadata.tags: 33 tags are too many: at most 32 are allowed",
        ),
        (
            tags("k", &"v".repeat(4096)),
            spec(),
            "metadata.tags: 4097 bytes are too many",
        ),
        (
            Tags::new(),
            too_many_groups,
            "spec.networking.securityGroups: 33 security groups are too many: at most 32 are allowed",
        ),
        (
            Tags::new(),
            large,
            "spec.userData: 32769 bytes are too many",
        ),
    ];
    for (tags, spec, expected) in table {
        let mut new = new_instance(blue, "web");
        (new.tags, new.spec) = (tags, spec);
        let error = facade.instances.create(&alice, &new).await.unwrap_err();
        assert_eq!(error.meaning().status(), 400, "{error}");
        assert!(
            error.to_string().starts_with(expected),
            "{error}\ninstead of\n{expected}"
        );
    }
    // Keys with the reserved prefix and a colon are not valid tags at all.
    assert!(Tags::new().with("fleetwright:token", "x").is_err());
    assert_eq!(facade.count("instance").await, 0);
}

#[tokio::test(start_paused = true)]
async fn source_address_ranges_are_refused_by_family() {
    let facade = TestFacade::new().await;
    let alice = project_user(tenant(1, 1));
    for region in [north(), south()] {
        let blue = facade.network_in(tenant(1, 1), region, "blue").await;
        let existing = facade.create(blue, "existing").await.instance;
        for (range, family) in [("10.1.0.0/16", "IPv4"), ("2001:db8::/64", "IPv6")] {
            let mut new = new_instance(blue, "web");
            new.spec.networking.allowed_sources = [range.parse().unwrap()].into();
            let mut update = UpdateInstance::of(&existing);
            update.spec.networking = new.spec.networking.clone();
            let created = facade.instances.create(&alice, &new).await.map(drop);
            let updated = facade.instances.update(&alice, existing.id, &update);
            for refused in [created, updated.await.map(drop)] {
                let error = refused.unwrap_err();
                assert_eq!(error.meaning(), Meaning::Unprocessable);
                let expected = format!("such as the {family} range {range}");
                assert!(error.to_string().contains(&expected), "{error}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn name_stays_taken_until_its_instance_is_deleted() {
    let facade = TestFacade::builder().server_quota(1).build().await;
    let blue = facade.network("blue").await;
    let alice = project_user(tenant(1, 1));
    let id = facade.create(blue, "web").await.instance.id;
    // The name is reported even without quota.
    let error = facade.try_create(blue, "web").await.unwrap_err();
    assert!(
        matches!(&error, ComputeError::NameTaken { id: found, .. } if *found == id),
        "{error}"
    );
    assert_eq!(error.retry_after(), None);
    facade.instances.delete(&alice, id).await.unwrap();
    let error = facade.try_create(blue, "web").await.unwrap_err();
    assert_eq!(error.meaning(), Meaning::Conflict);
    assert!(
        error.retry_after().is_some() && error.to_string().contains("is being deleted"),
        "{error}"
    );
    // In another network the name is free, and the quota is reported.
    let green = facade.network("green").await;
    let error = facade.try_create(green, "web").await.unwrap_err();
    assert_eq!(error.meaning(), Meaning::Forbidden, "{error}");
}

/// A record that was not created by the service is in the index of names too, whatever its id is.
#[tokio::test(start_paused = true)]
async fn name_is_taken_by_an_instance_with_another_id() {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let created = facade.create(blue, "web").await.instance;
    let other = InstanceId::from_uuid(Uuid::from_u128(0xabc));
    let mut value = serde_json::to_value(&created).unwrap();
    (value["id"], value["server"]) = (other.to_string().into(), other.to_string().into());
    let record = |id: InstanceId| RecordId::new("instance", id.to_string()).unwrap();
    let moved = Transaction::new()
        .delete(record(created.id))
        .create(record(other), value);
    facade.store.commit(&moved).await.unwrap();
    let error = facade.try_create(blue, "web").await.unwrap_err();
    assert!(
        matches!(error, ComputeError::NameTaken { id, .. } if id == other),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn network_being_deleted_accepts_no_instance() {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    facade.create(blue, "web").await;
    let operator = operator();
    let deletion = facade.networks.delete(&operator, blue, IfUsed::DeleteFirst);
    assert_eq!(deletion.await.unwrap(), Deletion::Waiting);
    let error = facade.try_create(blue, "another").await.unwrap_err();
    assert_eq!(
        status_and_message(&error),
        (
            409,
            format!("network {blue} is being deleted: choose another network")
        )
    );
    assert_eq!(facade.count("instance").await, 1);
}
