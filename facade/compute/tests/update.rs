//! Updates: planned against the machine, with consent where data is destroyed, charged, and checked for changed fields only.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::collections::BTreeMap;

use fleetwright::{PublicAddress, Tags, UserData};
use fleetwright_compute::{
    ComputeError, Meaning,
    instance::{EventKind, Instance, InstanceId},
    service::{FieldScope, InstanceField, UpdateInstance},
};
use fleetwright_facade_testkit::{
    CATALOG, TestFacade, error_chain, flavor, image, name, new_instance, operator,
    principals::with_roles, project_user, tenant, without_entry,
};
use fleetwright_identity::{Amounts, QuotaKind};
use fleetwright_region::server::{ChangeMethod, Consent, Field, Plan};
use fleetwright_store::{Revision, Transaction};

/// A façade with an instance that has a machine.
async fn instance_with_machine() -> (TestFacade, Instance) {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let instance = facade.create(blue, "web").await.instance;
    facade.make_machine(&instance).await;
    (facade, instance)
}

fn plan(methods: &[(Field, ChangeMethod)]) -> Plan {
    let methods: BTreeMap<_, _> = methods.iter().copied().collect();
    Plan { methods }
}

fn kinds(instance: &Instance) -> Vec<EventKind> {
    instance.events.iter().map(|event| event.kind).collect()
}

#[tokio::test(start_paused = true)]
async fn destructive_change_is_planned_refused_and_then_applied_with_consent() {
    let (facade, before) = instance_with_machine().await;
    let (id, alice) = (before.id, project_user(tenant(1, 1)));
    let mut wanted = UpdateInstance::of(&before);
    wanted.spec.image = image("rocky");
    wanted.spec.networking.public_ip = PublicAddress::Assigned;
    wanted.tags = Tags::new().with("team", "blue").unwrap();
    let revision = facade.read(id).await.revision;
    let planned = facade.instances.plan_update(&alice, id, &wanted).await;
    let planned = planned.unwrap();
    let planned_methods = plan(&[
        (Field::Image, ChangeMethod::Reimage),
        (Field::PublicIp, ChangeMethod::Replace),
        (Field::Tags, ChangeMethod::Retag),
    ]);
    assert_eq!(planned, planned_methods);

    let error = facade
        .instances
        .update(&alice, id, &wanted)
        .await
        .unwrap_err();
    let expected = "is destructive: the data on its root disk and its addresses are lost by changing image, public address; repeat it with consent, or do not make it";
    assert!(error.to_string().ends_with(expected), "{error}");
    assert_eq!(error.meaning(), Meaning::Conflict);
    assert!(matches!(&error, ComputeError::NeedsConsent { plan, .. } if *plan == planned_methods));
    // Neither the dry run nor the refusal wrote anything.
    assert_eq!(facade.read(id).await.revision, revision);
    assert_eq!(facade.allocated(id).await.of(&QuotaKind::public_ips()), 0);

    wanted.consent = Consent::Destroy;
    let (view, planned) = facade.instances.update(&alice, id, &wanted).await.unwrap();
    let after = &view.instance;
    assert_eq!(planned, planned_methods);
    assert_eq!((after.generation, after.consent), (2, Consent::Destroy));
    assert_eq!((&after.spec, &after.tags), (&wanted.spec, &wanted.tags));
    use EventKind::{Created, LossAccepted, Updated};
    assert_eq!(kinds(after), [Created, Updated, LossAccepted]);
    assert_eq!(
        after.events[1].message,
        "changed: tags, image, public address"
    );
    assert_eq!(after.status, before.status);
    assert_eq!(facade.allocated(id).await.of(&QuotaKind::public_ips()), 1);
}

#[tokio::test(start_paused = true)]
async fn reimage_message_names_only_the_root_disk() {
    let (facade, before) = instance_with_machine().await;
    let mut wanted = UpdateInstance::of(&before);
    wanted.spec.image = image("rocky");
    let refused = facade
        .instances
        .update(&project_user(tenant(1, 1)), before.id, &wanted)
        .await;
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains(": the data on its root disk is lost by changing image;"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn consent_holds_for_one_generation() {
    let (facade, before) = instance_with_machine().await;
    let (id, alice) = (before.id, project_user(tenant(1, 1)));
    let mut wanted = UpdateInstance::of(&before);
    wanted.spec.image = image("rocky");
    wanted.consent = Consent::Destroy;
    facade.instances.update(&alice, id, &wanted).await.unwrap();
    // The machine still has the old image, so the next change is destructive too.
    wanted.tags = Tags::new().with("team", "blue").unwrap();
    wanted.consent = Consent::KeepEverything;
    let error = facade
        .instances
        .update(&alice, id, &wanted)
        .await
        .unwrap_err();
    assert!(
        matches!(error, ComputeError::NeedsConsent { .. }),
        "{error}"
    );
    // A change of the record alone keeps generation and consent.
    let mut described = UpdateInstance::of(&facade.read(id).await.instance);
    described.description = Some("the web".to_owned());
    let (view, _) = facade
        .instances
        .update(&alice, id, &described)
        .await
        .unwrap();
    assert_eq!(
        (view.instance.generation, view.instance.consent),
        (2, Consent::Destroy)
    );
    // Once the machine has the image, a change that destroys nothing ends the consent.
    facade
        .patch("server", &before.server.to_string(), |server| {
            server["machine"]["applied"]["image"] = "rocky".into();
        })
        .await;
    wanted.description = described.description;
    let (view, _) = facade.instances.update(&alice, id, &wanted).await.unwrap();
    assert_eq!(
        (view.instance.generation, view.instance.consent),
        (3, Consent::KeepEverything)
    );
}

/// A change that was requested when there was nothing to lose can need consent later, without any other change.
#[tokio::test(start_paused = true)]
async fn adding_missing_consent_is_a_change() {
    let (facade, before) = instance_with_machine().await;
    let (id, alice) = (before.id, project_user(tenant(1, 1)));
    facade
        .patch("server", &before.server.to_string(), |server| {
            server["machine"]["applied"]["image"] = "rocky".into();
        })
        .await;
    let mut wanted = UpdateInstance::of(&before);
    let (view, planned) = facade.instances.update(&alice, id, &wanted).await.unwrap();
    assert_eq!(view.instance, before);
    assert_eq!(planned, plan(&[(Field::Image, ChangeMethod::Reimage)]));
    wanted.consent = Consent::Destroy;
    let (view, _) = facade.instances.update(&alice, id, &wanted).await.unwrap();
    assert_eq!(
        (view.instance.generation, view.instance.consent),
        (2, Consent::Destroy)
    );
    let events = [EventKind::Created, EventKind::LossAccepted];
    assert_eq!(kinds(&view.instance), events);
    let again = facade.instances.update(&alice, id, &wanted).await.unwrap();
    assert_eq!(again.0.revision, view.revision);
}

#[tokio::test(start_paused = true)]
async fn update_without_changes_writes_nothing() {
    let (facade, before) = instance_with_machine().await;
    let (id, alice) = (before.id, project_user(tenant(1, 1)));
    let head = facade.store.head().await.unwrap();
    let same = UpdateInstance::of(&before);
    let (view, planned) = facade.instances.update(&alice, id, &same).await.unwrap();
    assert_eq!((view.instance, planned), (before, Plan::default()));
    let mut other = same;
    other.spec.flavor = flavor("gpu");
    facade
        .instances
        .plan_update(&alice, id, &other)
        .await
        .unwrap();
    assert_eq!(facade.store.head().await.unwrap(), head);
}

#[tokio::test(start_paused = true)]
async fn allocation_follows_the_spec() {
    let facade = TestFacade::builder().server_quota(1).build().await;
    let blue = facade.network("blue").await;
    let before = facade.create(blue, "web").await.instance;
    let (id, alice) = (before.id, project_user(tenant(1, 1)));
    let small = facade.allocated(id).await;
    let mut wanted = UpdateInstance::of(&before);
    wanted.spec.flavor = flavor("gpu");
    wanted.spec.networking.public_ip = PublicAddress::Assigned;
    facade.instances.update(&alice, id, &wanted).await.unwrap();
    let large = Amounts::new()
        .with(QuotaKind::servers(), 1)
        .with(QuotaKind::gpus(), 4)
        .with(QuotaKind::public_ips(), 1);
    assert_eq!(facade.allocated(id).await, large);
    let back = UpdateInstance::of(&before);
    facade.instances.update(&alice, id, &back).await.unwrap();
    assert_eq!(facade.allocated(id).await, large, "until it is applied");
    let is_released = |instance: &Instance| instance.release_to.is_none();
    facade.during(facade.until(id, is_released)).await;
    assert_eq!(facade.allocated(id).await, small);
    // A flavor of the same cost changes no allocation, and an update beyond the limit changes nothing.
    let mut same = back.clone();
    same.spec.flavor = flavor("large");
    facade.instances.update(&alice, id, &same).await.unwrap();
    assert_eq!(facade.allocated(id).await, small);
    let mut wanted = same.clone();
    wanted.spec.networking.public_ip = PublicAddress::Assigned;
    wanted.consent = Consent::Destroy;
    let revision = facade.read(id).await.revision;
    let limits = fleetwright_identity::Limits::new().with(QuotaKind::public_ips(), 0);
    let account = fleetwright_identity::Account::Organization(tenant(1, 1).0);
    let operator = operator();
    let limited = facade
        .ledger
        .set_limits(Transaction::new(), &operator, &account, &limits);
    let limited = limited.await.unwrap();
    facade.store.commit(&limited).await.unwrap();
    for _ in 0..2 {
        let error = facade
            .instances
            .update(&alice, id, &wanted)
            .await
            .unwrap_err();
        let expected = "the organization's quota of public-ips is used up: release some, or ask an administrator of the organization";
        assert_eq!(
            (error.meaning(), error.to_string().as_str()),
            (Meaning::Forbidden, expected)
        );
        let dry = facade
            .instances
            .plan_update(&alice, id, &wanted)
            .await
            .unwrap_err();
        assert_eq!(dry.to_string(), expected);
    }
    assert_eq!(facade.read(id).await.revision, revision);
}

/// Only changed fields are checked, with the caller's permissions.
#[tokio::test(start_paused = true)]
async fn update_checks_only_changed_fields() {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let ours = facade.authority(tenant(1, 1)).await;
    let alice = project_user(tenant(1, 1));
    let mut new = new_instance(blue, "web");
    new.spec.ssh_authority = Some(ours);
    new.spec.user_data = Some(UserData::new("#!/bin/sh\n").unwrap());
    let before = facade
        .instances
        .create(&alice, &new)
        .await
        .unwrap()
        .instance;
    let left = without_entry(&without_entry(CATALOG, "small"), "debian");
    facade.catalog.load(&left).await.unwrap();
    let mut wanted = UpdateInstance::of(&before);
    wanted.tags = Tags::new().with("team", "blue").unwrap();
    facade
        .instances
        .update(&alice, before.id, &wanted)
        .await
        .unwrap();
    // From a retired image to one that is offered, on the retired flavor.
    wanted.spec.image = image("rocky");
    facade
        .instances
        .update(&alice, before.id, &wanted)
        .await
        .unwrap();
    // The retired image cannot be chosen again.
    wanted.spec.image = image("debian");
    let error = facade
        .instances
        .update(&alice, before.id, &wanted)
        .await
        .unwrap_err();
    assert_eq!(
        error_chain(&error),
        "image debian is retired: choose one that is offered"
    );
    // Instances of a network that is being deleted can still be updated.
    let operator = operator();
    let deletion = facade.networks.delete(
        &operator,
        blue,
        fleetwright_region::network::IfUsed::DeleteFirst,
    );
    let _ = deletion.await.unwrap();
    wanted.spec.image = image("rocky");
    wanted.description = Some("last words".to_owned());
    facade
        .instances
        .update(&alice, before.id, &wanted)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn user_data_is_checked_when_it_or_its_authority_changes() {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let alice = project_user(tenant(1, 1));
    let before = facade.create(blue, "web").await.instance;
    // User data that an earlier version accepted.
    facade
        .patch("instance", &before.id.to_string(), |instance| {
            instance["spec"]["user_data"] = "aHVudGVyMg==".into();
        })
        .await;
    let found = facade.read(before.id).await.instance;
    let mut wanted = UpdateInstance::of(&found);
    wanted.spec.flavor = flavor("large");
    facade
        .instances
        .update(&alice, before.id, &wanted)
        .await
        .unwrap();
    wanted.spec.ssh_authority = Some(facade.authority(tenant(1, 1)).await);
    let error = facade
        .instances
        .update(&alice, before.id, &wanted)
        .await
        .unwrap_err();
    assert_eq!(error.meaning(), Meaning::Unprocessable);
    assert!(error.to_string().starts_with("spec.userData: "), "{error}");
    assert!(!format!("{error:?} {found:?}").contains("hunter2"));
}

#[tokio::test(start_paused = true)]
async fn update_checks_run_in_order() {
    let (facade, before) = instance_with_machine().await;
    let (id, alice) = (before.id, project_user(tenant(1, 1)));
    let mut wanted = UpdateInstance::of(&before);
    wanted.name = name("other");
    wanted.if_revision = Some(Revision::ZERO);
    wanted.spec.flavor = flavor("huge");
    let refused = async |wanted: &UpdateInstance| {
        let error = facade
            .instances
            .update(&alice, id, wanted)
            .await
            .unwrap_err();
        let dry = facade
            .instances
            .plan_update(&alice, id, wanted)
            .await
            .unwrap_err();
        assert_eq!(dry.to_string(), error.to_string());
        (error.meaning().status(), error_chain(&error))
    };
    let (code, message) = refused(&wanted).await;
    assert_eq!(code, 422);
    assert!(
        message.starts_with("instance names are immutable"),
        "{message}"
    );
    wanted.name = before.name.clone();
    let (code, message) = refused(&wanted).await;
    let now = facade.read(id).await.revision;
    assert_eq!(
        (code, message),
        (
            409,
            format!(
                "instance {id} was changed since revision 0: it is at revision {now}; read it again"
            )
        )
    );
    wanted.if_revision = Some(now);
    assert_eq!(
        refused(&wanted).await,
        (
            400,
            "there is no flavor huge: choose one that is offered".to_owned()
        )
    );
    wanted.spec.flavor = flavor("small");
    wanted.description = Some("as it was read".to_owned());
    facade.instances.update(&alice, id, &wanted).await.unwrap();
    // The expected revision is no longer current.
    assert_eq!(refused(&wanted).await.0, 409);
    facade.instances.delete(&alice, id).await.unwrap();
    let (code, message) = refused(&wanted).await;
    assert_eq!(
        (code, message),
        (
            409,
            format!(
                "instance {id} is being deleted: wait until it is deleted, then create it again"
            )
        )
    );
}

#[tokio::test(start_paused = true)]
async fn update_keeps_the_creator_and_records_the_last_change() {
    let (facade, before) = instance_with_machine().await;
    let id = before.id;
    let whole = fleetwright_identity::Scope::Organization(tenant(1, 1).0);
    let ada = with_roles("ada", &[("organization-administrator", whole)]);
    facade.instances.stop(&ada, id).await.unwrap();
    let mut wanted = UpdateInstance::of(&before);
    wanted.tags = Tags::new().with("team", "blue").unwrap();
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    let (view, _) = facade.instances.update(&ada, id, &wanted).await.unwrap();
    let after = view.instance;
    assert_eq!(
        (&after.created_by, after.created_at),
        (&before.created_by, before.created_at)
    );
    let modified = after.modified.unwrap();
    assert_eq!(
        (&modified.by, modified.at),
        (ada.actor(), facade.clock.now())
    );
    // The desired power state is kept.
    assert_eq!(
        after.intent.power,
        fleetwright_region::server::Power::Stopped
    );
}

#[test]
fn every_field_has_its_scope() {
    use InstanceField::{
        AllowedSources, Description, Flavor, Image, Name, PublicIp, SecurityGroups, SshAuthority,
        Tags, UserData,
    };
    for field in InstanceField::ALL {
        let wanted = match field {
            Name => FieldScope::Immutable,
            Description | AllowedSources => FieldScope::Record,
            Tags => FieldScope::Server(Field::Tags),
            Flavor => FieldScope::Server(Field::Flavor),
            Image => FieldScope::Server(Field::Image),
            SecurityGroups => FieldScope::Server(Field::SecurityGroups),
            PublicIp => FieldScope::Server(Field::PublicIp),
            SshAuthority => FieldScope::Server(Field::SshAuthority),
            UserData => FieldScope::Server(Field::UserData),
        };
        assert_eq!(field.scope(), wanted);
    }
    // Every field of a server is covered, except the network, which no update names.
    let reached: Vec<_> = InstanceField::ALL.map(InstanceField::scope).into();
    for field in Field::ALL {
        assert_eq!(
            reached.contains(&FieldScope::Server(field)),
            field != Field::Network
        );
    }
}

#[tokio::test(start_paused = true)]
async fn plan_ignores_a_server_of_another_owner() {
    let (facade, before) = instance_with_machine().await;
    facade
        .patch("server", &before.server.to_string(), |server| {
            server["owner"]["id"] = InstanceId::from_uuid(uuid::Uuid::nil()).to_string().into();
        })
        .await;
    let mut wanted = UpdateInstance::of(&before);
    wanted.spec.image = image("rocky");
    let planned = facade
        .instances
        .plan_update(&project_user(tenant(1, 1)), before.id, &wanted)
        .await;
    assert_eq!(planned.unwrap(), Plan::default());
}
