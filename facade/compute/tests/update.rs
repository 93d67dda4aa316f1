//! Asking for something else: planned against the machine, agreed to by its tenant, paid for, and judged by what changes alone.
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

/// A facade with an instance that has a machine.
async fn settled() -> (TestFacade, Instance) {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let instance = facade.create(blue, "web").await.instance;
    facade.make_machine(&instance).await;
    (facade, instance)
}

fn plan(ways: &[(Field, ChangeMethod)]) -> Plan {
    let ways: BTreeMap<_, _> = ways.iter().copied().collect();
    Plan { methods: ways }
}

fn kinds(instance: &Instance) -> Vec<EventKind> {
    instance.events.iter().map(|event| event.kind).collect()
}

#[tokio::test(start_paused = true)]
async fn a_destructive_change_is_planned_refused_and_then_agreed_to() {
    let (facade, before) = settled().await;
    let (id, alice) = (before.id, project_user(tenant(1, 1)));
    let mut wanted = UpdateInstance::of(&before);
    wanted.spec.image = image("rocky");
    wanted.spec.networking.public_ip = PublicAddress::Assigned;
    wanted.tags = Tags::new().with("team", "blue").unwrap();
    let revision = facade.read(id).await.revision;
    let planned = facade.instances.plan_update(&alice, id, &wanted).await;
    let planned = planned.unwrap();
    let ways = plan(&[
        (Field::Image, ChangeMethod::Reimage),
        (Field::PublicIp, ChangeMethod::Replace),
        (Field::Tags, ChangeMethod::Retag),
    ]);
    assert_eq!(planned, ways);

    let error = facade
        .instances
        .update(&alice, id, &wanted)
        .await
        .unwrap_err();
    let words = "is destructive: the data on its root disk and its addresses are lost by changing image, public address; repeat it with consent, or leave it";
    assert!(error.to_string().ends_with(words), "{error}");
    assert_eq!(error.meaning(), Meaning::Conflict);
    assert!(matches!(&error, ComputeError::NeedsConsent { plan, .. } if *plan == ways));
    // Neither the dry run nor the refusal wrote anything.
    assert_eq!(facade.read(id).await.revision, revision);
    assert_eq!(facade.allocated(id).await.of(&QuotaKind::public_ips()), 0);

    wanted.consent = Consent::Destroy;
    let (view, planned) = facade.instances.update(&alice, id, &wanted).await.unwrap();
    let after = &view.instance;
    assert_eq!(planned, ways);
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
async fn a_reimage_alone_says_that_addresses_stay() {
    let (facade, before) = settled().await;
    let mut wanted = UpdateInstance::of(&before);
    wanted.spec.image = image("rocky");
    let asked = facade
        .instances
        .update(&project_user(tenant(1, 1)), before.id, &wanted)
        .await;
    let words = asked.unwrap_err().to_string();
    assert!(
        words.contains(": the data on its root disk is lost by changing image;"),
        "{words}"
    );
}

#[tokio::test(start_paused = true)]
async fn consent_holds_for_one_generation() {
    let (facade, before) = settled().await;
    let (id, alice) = (before.id, project_user(tenant(1, 1)));
    let mut wanted = UpdateInstance::of(&before);
    wanted.spec.image = image("rocky");
    wanted.consent = Consent::Destroy;
    facade.instances.update(&alice, id, &wanted).await.unwrap();
    // The machine still has the old image, so whatever is asked of it next destroys as well.
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
    // What is in the record alone changes neither what is asked nor what was agreed to.
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
    // Once the machine is as asked, a change that destroys nothing ends the consent.
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

/// What was asked for when there was nothing to lose can need consent later, and nothing else is to be changed then.
#[tokio::test(start_paused = true)]
async fn consent_that_was_missing_is_a_change_by_itself() {
    let (facade, before) = settled().await;
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
async fn where_nothing_changes_nothing_is_written() {
    let (facade, before) = settled().await;
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
async fn what_is_charged_follows_the_spec_there_and_back() {
    let facade = TestFacade::builder().server_quota(1).build().await;
    let blue = facade.network("blue").await;
    let before = facade.create(blue, "web").await.instance;
    let (id, alice) = (before.id, project_user(tenant(1, 1)));
    let small = facade.allocated(id).await;
    let mut wanted = UpdateInstance::of(&before);
    wanted.spec.flavor = flavor("gpu");
    wanted.spec.networking.public_ip = PublicAddress::Assigned;
    facade.instances.update(&alice, id, &wanted).await.unwrap();
    let dear = Amounts::new()
        .with(QuotaKind::servers(), 1)
        .with(QuotaKind::gpus(), 4)
        .with(QuotaKind::public_ips(), 1);
    assert_eq!(facade.allocated(id).await, dear);
    let back = UpdateInstance::of(&before);
    facade.instances.update(&alice, id, &back).await.unwrap();
    assert_eq!(facade.allocated(id).await, small);
    // To a flavor of the same price nothing is charged anew, and beyond the limit nothing is changed.
    let mut same = back.clone();
    same.spec.flavor = flavor("large");
    facade.instances.update(&alice, id, &same).await.unwrap();
    assert_eq!(facade.allocated(id).await, small);
    let mut wanted = same.clone();
    wanted.spec.networking.public_ip = PublicAddress::Assigned;
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
        let words = "total public-ips allocation of 1 would exceed the limit of 0";
        assert_eq!(
            (error.meaning(), error.to_string().as_str()),
            (Meaning::Forbidden, words)
        );
        let dry = facade
            .instances
            .plan_update(&alice, id, &wanted)
            .await
            .unwrap_err();
        assert_eq!(dry.to_string(), words);
    }
    assert_eq!(facade.read(id).await.revision, revision);
}

/// Of an edit only what changes is asked about, in the name of who changes it.
#[tokio::test(start_paused = true)]
async fn what_an_instance_has_never_keeps_it_from_another_edit() {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let ours = facade.authority(tenant(1, 1)).await;
    let alice = project_user(tenant(1, 1));
    let mut asked = new_instance(blue, "web");
    asked.spec.ssh_authority = Some(ours);
    asked.spec.user_data = Some(UserData::new("#!/bin/sh\n").unwrap());
    let before = facade
        .instances
        .create(&alice, &asked)
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
    // And not back.
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
    // A network that is going takes changes of what is in it.
    let operator = operator();
    let going = facade.networks.delete(
        &operator,
        blue,
        fleetwright_region::network::IfUsed::DeleteFirst,
    );
    let _ = going.await.unwrap();
    wanted.spec.image = image("rocky");
    wanted.description = Some("last words".to_owned());
    facade
        .instances
        .update(&alice, before.id, &wanted)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn user_data_are_checked_when_they_or_their_authority_change() {
    let facade = TestFacade::new().await;
    let blue = facade.network("blue").await;
    let alice = project_user(tenant(1, 1));
    let before = facade.create(blue, "web").await.instance;
    // As an earlier version would have taken it.
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
async fn refusals_come_in_their_order() {
    let (facade, before) = settled().await;
    let (id, alice) = (before.id, project_user(tenant(1, 1)));
    let mut wanted = UpdateInstance::of(&before);
    wanted.name = name("other");
    wanted.if_revision = Some(Revision::ZERO);
    wanted.spec.flavor = flavor("huge");
    let tell = async |wanted: &UpdateInstance| {
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
    let (code, words) = tell(&wanted).await;
    assert_eq!(code, 422);
    assert!(words.starts_with("instance names are immutable"), "{words}");
    wanted.name = before.name.clone();
    let (code, words) = tell(&wanted).await;
    let now = facade.read(id).await.revision;
    assert_eq!(
        (code, words),
        (
            409,
            format!(
                "instance {id} was changed since revision 0: it is at revision {now}; read it again"
            )
        )
    );
    wanted.if_revision = Some(now);
    assert_eq!(
        tell(&wanted).await,
        (
            400,
            "there is no flavor huge: choose one that is offered".to_owned()
        )
    );
    wanted.spec.flavor = flavor("small");
    wanted.description = Some("as it was read".to_owned());
    facade.instances.update(&alice, id, &wanted).await.unwrap();
    // The same again was made against what is no more.
    assert_eq!(tell(&wanted).await.0, 409);
    facade.instances.delete(&alice, id).await.unwrap();
    let (code, words) = tell(&wanted).await;
    assert_eq!(
        (code, words),
        (
            409,
            format!(
                "instance {id} is being deleted: wait until it is deleted, then create it again"
            )
        )
    );
}

#[tokio::test(start_paused = true)]
async fn who_made_it_stays_and_who_changed_it_is_written_down_beside() {
    let (facade, before) = settled().await;
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
    // What was asked to be done with it is kept.
    assert_eq!(
        after.intent.power,
        fleetwright_region::server::Power::Stopped
    );
}

#[test]
fn every_field_reaches_as_far_as_the_one_match_says() {
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
    // All that a server can differ in is reached, but for the network, which no update names.
    let reached: Vec<_> = InstanceField::ALL.map(InstanceField::scope).into();
    for field in Field::ALL {
        assert_eq!(
            reached.contains(&FieldScope::Server(field)),
            field != Field::Network
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_whose_server_is_anothers_is_planned_as_if_it_had_none() {
    let (facade, before) = settled().await;
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
