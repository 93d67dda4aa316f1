//! `Servers::apply`: the whole desired state in one write or none, and nothing is lost without consent.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::sync::Arc;

use fleetwright::Reboot;
use fleetwright_facade_testkit::{TestRegion, bare_server, server_admin, server_id};
use fleetwright_identity::{ActorName, Permission, Principal, Resource, Verb};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    ids::{FlavorId, ImageId},
    server::{
        ChangeMethod, Consent, DesiredState, Field, Intent, Phase, Power, ServerError, ServerView,
    },
};
use fleetwright_store::{Check, RecordId, Transaction};
use proptest::prelude::*;

const KEEP: Consent = Consent::KeepEverything;

fn desired_state(view: &ServerView) -> DesiredState {
    DesiredState {
        spec: view.server.spec.clone(),
        intent: view.server.intent.clone(),
    }
}

/// A region with one server that is not launched yet.
async fn created() -> (TestRegion, ServerView) {
    let region = TestRegion::new(Arc::new(MemoryCloud::new().provisioner()));
    let created = region
        .servers
        .ensure(&server_admin(), &bare_server(1))
        .await;
    (region, created.unwrap())
}

/// A region with one server whose machine is running.
async fn running() -> (TestRegion, ServerView) {
    let (region, created) = created().await;
    let is_running = |view: &ServerView| {
        view.phase == Phase::Running && view.server.observed_generation == view.server.generation
    };
    let view = region
        .during(region.until(created.server.id, is_running))
        .await;
    (region, view)
}

#[tokio::test(start_paused = true)]
async fn same_desired_state_again_changes_nothing() {
    let (region, created) = created().await;
    let (principal, id) = (server_admin(), server_id(1));
    let mut requested = desired_state(&created);
    requested.intent.power = Power::Stopped;
    requested.intent.reboots = 2;
    requested.intent.reboot_how = Reboot::Hard;
    requested.spec.flavor = FlavorId::new("large").unwrap();
    let (first, _) = region
        .servers
        .apply(&principal, id, &requested, KEEP)
        .await
        .unwrap();
    assert_eq!(
        first.server.generation,
        created.server.generation + 1,
        "one write"
    );
    assert_eq!(desired_state(&first), requested);
    assert!(requested.holds_for(&first.server) && !requested.holds_for(&created.server));
    let (again, plan) = region
        .servers
        .apply(&principal, id, &requested, KEEP)
        .await
        .unwrap();
    assert_eq!(again.server, first.server);
    assert_eq!(again.revision, first.revision);
    assert!(
        plan.methods.is_empty(),
        "without a machine there is nothing to change"
    );
}

#[tokio::test(start_paused = true)]
async fn destructive_change_needs_consent_and_is_written_completely_or_not_at_all() {
    let (region, before) = running().await;
    let (principal, id) = (server_admin(), server_id(1));
    let mut requested = desired_state(&before);
    requested.spec.image = ImageId::new("rocky").unwrap();
    requested.intent.power = Power::Stopped;
    let refused = region.servers.apply(&principal, id, &requested, KEEP).await;
    let Err(ServerError::NeedsConsent { plan, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(plan.methods[&Field::Image], ChangeMethod::Reimage);
    let still = region.read(id).await;
    assert_eq!(
        still.revision, before.revision,
        "not even the power was written"
    );
    let applied = region
        .servers
        .apply(&principal, id, &requested, Consent::Destroy);
    let (view, plan) = applied.await.unwrap();
    assert_eq!(view.server.generation, before.server.generation + 1);
    assert_eq!(desired_state(&view), requested);
    assert!(plan.has(ChangeMethod::Reimage));
    // Repeating an accepted change without consent needs no new consent.
    region
        .servers
        .apply(&principal, id, &requested, KEEP)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn deleted_server_accepts_no_change_and_deletes_again() {
    let (region, created) = created().await;
    let (principal, id) = (server_admin(), server_id(1));
    let mut requested = desired_state(&created);
    requested.intent.power = Power::Deleted;
    let refused = region
        .servers
        .apply(&principal, id, &requested, Consent::Destroy)
        .await;
    assert!(
        matches!(refused, Err(ServerError::NotReady { .. })),
        "{refused:?}"
    );
    assert_eq!(region.read(id).await.revision, created.revision);
    region.servers.delete(&principal, id).await.unwrap();
    let requested = desired_state(&created);
    let refused = region.servers.apply(&principal, id, &requested, KEEP).await;
    assert!(
        matches!(refused, Err(ServerError::Deleting(_))),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn invisible_server_looks_absent_and_visible_one_is_refused() {
    let (region, created) = created().await;
    let (id, requested) = (server_id(1), desired_state(&created));
    let with = |verbs: &[Verb]| {
        let all = verbs.iter();
        let all = all.map(|verb| Permission::new(*verb, Resource::Servers).unwrap());
        Principal::service(ActorName::new("other").unwrap(), all)
    };
    let nobody = with(&[]);
    let hidden = region.servers.apply(&nobody, id, &requested, KEEP).await;
    assert!(matches!(hidden, Err(ServerError::NotFound(found)) if found == id));
    let absent = region
        .servers
        .apply(&server_admin(), server_id(9), &requested, KEEP)
        .await;
    assert!(matches!(absent, Err(ServerError::NotFound(_))));
    let reader = with(&[Verb::Read, Verb::Start, Verb::Stop, Verb::Reboot]);
    let refused = region.servers.apply(&reader, id, &requested, KEEP).await;
    assert!(matches!(refused, Err(ServerError::Refused(_))));
}

/// An owner's guards are checked in the transaction that creates, changes or deletes its server, and a failed one is returned.
#[tokio::test(start_paused = true)]
async fn failed_guard_writes_nothing() {
    let (region, created) = created().await;
    let (principal, id) = (server_admin(), server_id(1));
    let owner = RecordId::new("network", "owner").unwrap();
    let written = Transaction::new().create(owner.clone(), serde_json::json!({}));
    let revision = region.store.commit(&written).await.unwrap();
    let [holds, fails] = [
        vec![Check::At(owner.clone(), revision)],
        vec![Check::Absent(owner)],
    ];
    let conflict = |error: ServerError| {
        let ServerError::Store(error) = error else {
            panic!("{error}");
        };
        error.conflict().unwrap().check.clone()
    };
    let mut requested = desired_state(&created);
    requested.intent.power = Power::Stopped;
    let late = region
        .servers
        .apply_if(&principal, id, &requested, KEEP, &fails);
    assert_eq!(conflict(late.await.unwrap_err()), fails[0]);
    let late = region.servers.delete_if(&principal, id, &fails).await;
    assert_eq!(conflict(late.unwrap_err()), fails[0]);
    let mut new = bare_server(2);
    new.guards.clone_from(&fails);
    let late = region.servers.ensure(&principal, &new).await;
    assert_eq!(conflict(late.unwrap_err()), fails[0]);
    assert_eq!(region.read(id).await.revision, created.revision);
    region
        .servers
        .read(&principal, server_id(2))
        .await
        .unwrap_err();

    new.guards.clone_from(&holds);
    region.servers.ensure(&principal, &new).await.unwrap();
    // An existing server is returned without evaluating the guards.
    new.guards.clone_from(&fails);
    region.servers.ensure(&principal, &new).await.unwrap();
    let applied = region
        .servers
        .apply_if(&principal, id, &requested, KEEP, &holds);
    applied.await.unwrap();
    let ended = region.servers.delete_if(&principal, id, &holds).await;
    assert_eq!(ended.unwrap().phase, Phase::Deleting);
}

fn any_intent() -> impl Strategy<Value = Intent> {
    let power = prop_oneof![Just(Power::Running), Just(Power::Stopped)];
    let how = prop_oneof![Just(Reboot::Soft), Just(Reboot::Hard)];
    (power, 0_u64..5, how, 0_u64..5).prop_map(|(power, reboots, how, replaces)| {
        let mut intent = Intent::new(power);
        intent.reboots = reboots;
        intent.reboot_how = how;
        intent.replaces = replaces;
        intent
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With late writes, counts never decrease, the power state is the last requested one, and an applied state stays.
    #[test]
    fn request_counts_never_decrease(intents in prop::collection::vec(any_intent(), 1..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (region, created) = created().await;
            let (mut reboots, mut replaces) = (0, 0);
            for intent in intents {
                let requested = DesiredState { spec: created.server.spec.clone(), intent: intent.clone() };
                let principal = server_admin();
                let applied = region.servers.apply(&principal, server_id(1), &requested, KEEP);
                let (view, _) = applied.await.unwrap();
                reboots = reboots.max(intent.reboots);
                replaces = replaces.max(intent.replaces);
                let now = &view.server.intent;
                assert_eq!((now.power, now.reboots, now.replaces), (intent.power, reboots, replaces));
                assert!(requested.holds_for(&view.server));
            }
        });
    }
}
