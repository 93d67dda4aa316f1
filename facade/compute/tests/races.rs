//! Concurrent calls: one instance for a name, never more than the quota, and no accepted request is lost.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::sync::Arc;

use fleetwright::{PublicAddress, Reboot, Tags};
use fleetwright_compute::{
    ComputeError, Meaning,
    service::{InstanceView, UpdateInstance},
};
use fleetwright_facade_testkit::{
    TestFacade, flavor, memory_store, new_instance, operator, project_user, sqlite_store,
    stores::{InterceptedStore, RandomDelays},
    tenant,
};
use fleetwright_identity::{Account, Actor, QuotaKind};
use fleetwright_region::{
    network::IfUsed,
    server::{Consent, Power},
};
use fleetwright_store::Store;
use futures_util::future::join_all;

/// The number of created instances. Checks that all other calls have the same meaning.
fn count_created(results: Vec<Result<InstanceView, ComputeError>>, otherwise: Meaning) -> usize {
    let mut count = 0;
    for result in results {
        match result {
            Ok(_) => count += 1,
            Err(error) => assert_eq!(error.meaning(), otherwise, "{error:?}"),
        }
    }
    count
}

/// A façade on a store whose calls take random times, with this quota of servers.
async fn slow_facade(seed: u64, servers: u64) -> TestFacade {
    let store = InterceptedStore::new(memory_store(), RandomDelays::new(seed));
    facade_on(store, servers).await
}

/// Two processes on one such store.
async fn two_slow_facades(seed: u64, servers: u64) -> (TestFacade, TestFacade) {
    let store = memory_store();
    let slow = |seed| InterceptedStore::new(store.clone(), RandomDelays::new(seed));
    let one = facade_on(slow(seed), servers).await;
    let two = one.reopen(slow(seed + 100)).await;
    (one, two)
}

async fn facade_on(store: Arc<dyn Store>, servers: u64) -> TestFacade {
    let builder = TestFacade::builder().store(store).server_quota(servers);
    builder.build().await
}

/// The numbers of records of instances and of allocations.
async fn record_counts(facade: &TestFacade) -> (usize, usize) {
    (
        facade.count("instance").await,
        facade.count("allocation").await,
    )
}

async fn fifty_of_one_name(facade: &TestFacade) {
    let blue = facade.network("blue").await;
    let alice = project_user(tenant(1, 1));
    // With two different costs, so that no allocation can be taken for another.
    let cheap = new_instance(blue, "web");
    let mut costly = cheap.clone();
    costly.spec.flavor = flavor("gpu");
    let requests = [&cheap, &costly].into_iter().cycle().take(50);
    let results = join_all(requests.map(|new| facade.instances.create(&alice, new))).await;
    assert_eq!(count_created(results, Meaning::Conflict), 1);
    assert_eq!(record_counts(facade).await, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn concurrent_creates_of_one_name_create_one_instance() {
    for seed in 0..20 {
        // With quota for one: a late call must report the name, not the quota.
        let facade = slow_facade(seed, 1).await;
        fifty_of_one_name(&facade).await;
    }
}

#[tokio::test]
async fn concurrent_creates_of_one_name_create_one_instance_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite_store(folder.path().join("store.db")).await;
    let facade = facade_on(store, 1).await;
    fifty_of_one_name(&facade).await;
}

/// Two processes share no queue of the organization's charges.
#[tokio::test(start_paused = true)]
async fn concurrent_creates_in_two_processes_create_one_instance() {
    for seed in 0..20 {
        let (one, two) = two_slow_facades(seed, 1).await;
        let blue = one.network("blue").await;
        let alice = project_user(tenant(1, 1));
        let cheap = new_instance(blue, "web");
        let mut costly = cheap.clone();
        costly.spec.flavor = flavor("gpu");
        let calls = [
            one.instances.create(&alice, &cheap),
            two.instances.create(&alice, &costly),
            one.instances.create(&alice, &costly),
            two.instances.create(&alice, &cheap),
        ];
        let results = join_all(calls).await;
        assert_eq!(count_created(results, Meaning::Conflict), 1, "seed {seed}");
        assert_eq!(record_counts(&one).await, (1, 1));
    }
}

async fn thirty_for_a_quota_of_seven(facade: &TestFacade, other: &TestFacade) {
    let blue = facade.network("blue").await;
    let alice = project_user(tenant(1, 1));
    let requests: Vec<_> = (0..30)
        .map(|number| new_instance(blue, &format!("i{number}")))
        .collect();
    let calls = requests.iter().enumerate().map(|(number, new)| {
        let facade = if number % 3 == 0 { other } else { facade };
        facade.instances.create(&alice, new)
    });
    let results = join_all(calls).await;
    assert_eq!(count_created(results, Meaning::Forbidden), 7);
    assert_eq!(record_counts(facade).await, (7, 7));
    let account = Account::Organization(tenant(1, 1).0);
    let quota = facade.ledger.quota(&operator(), &account).await.unwrap();
    let line = quota
        .lines
        .iter()
        .find(|line| line.kind == QuotaKind::servers());
    assert_eq!(line.unwrap().used, 7);
}

#[tokio::test(start_paused = true)]
async fn concurrent_creates_never_exceed_a_quota() {
    for seed in 0..10 {
        let (facade, other) = two_slow_facades(seed, 7).await;
        thirty_for_a_quota_of_seven(&facade, &other).await;
    }
}

#[tokio::test]
async fn concurrent_creates_never_exceed_a_quota_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite_store(folder.path().join("store.db")).await;
    let facade = facade_on(store.clone(), 7).await;
    let other = facade.reopen(store).await;
    thirty_for_a_quota_of_seven(&facade, &other).await;
}

/// Concurrent requests for one instance: every accepted request is in the record, and none is accepted after the deletion.
#[tokio::test(start_paused = true)]
async fn concurrent_changes_and_a_deletion_lose_no_accepted_request() {
    for seed in 0..30 {
        let facade = slow_facade(seed, 5).await;
        let blue = facade.network("blue").await;
        let alice = project_user(tenant(1, 1));
        let before = facade.create(blue, "web").await.instance;
        let (id, instances) = (before.id, &facade.instances);
        let updates: Vec<_> = (0..4)
            .map(|number| {
                let mut update = UpdateInstance::of(&before);
                update.tags = Tags::new().with("n", number.to_string()).unwrap();
                update.spec.networking.public_ip = PublicAddress::Assigned;
                update.consent = Consent::Destroy;
                update
            })
            .collect();
        let updates = join_all(updates.iter().map(|one| instances.update(&alice, id, one)));
        let reboots = join_all((0..5).map(|_| instances.reboot(&alice, id, Reboot::Hard)));
        let (updated, rebooted, replaced, stopped, deleted) = tokio::join!(
            updates,
            reboots,
            instances.replace(&alice, id),
            instances.stop(&alice, id),
            async {
                tokio::time::sleep(std::time::Duration::from_millis(40 * seed)).await;
                instances.delete(&alice, id).await
            },
        );
        deleted.unwrap();
        let after = facade.read(id).await.instance;
        let expect_refusal = |error: &ComputeError| {
            // Refused by the deletion or by the stop.
            let expected = matches!(
                error,
                ComputeError::Deleting(_) | ComputeError::NotReady { .. }
            );
            assert!(expected, "{error:?}");
        };
        let accepted = rebooted.iter().filter(|result| result.is_ok()).count() as u64;
        rebooted
            .iter()
            .filter_map(|result| result.as_ref().err())
            .for_each(expect_refusal);
        updated
            .iter()
            .filter_map(|result| result.as_ref().err())
            .for_each(expect_refusal);
        assert_eq!(after.intent.reboots, accepted);
        assert_eq!(after.intent.replaces, u64::from(replaced.is_ok()));
        assert_eq!(after.intent.power == Power::Stopped, stopped.is_ok());
        let changes = updated
            .iter()
            .flatten()
            .map(|(view, _)| view.instance.generation);
        let last = updated
            .iter()
            .flatten()
            .max_by_key(|(view, _)| view.instance.generation);
        if let Some((view, _)) = last {
            assert_eq!(after.spec, view.instance.spec);
        }
        let distinct: std::collections::BTreeSet<_> = changes.collect();
        let other_requests = accepted + after.intent.replaces + u64::from(stopped.is_ok());
        assert_eq!(
            after.generation,
            2 + other_requests + distinct.len() as u64,
            "seed {seed}"
        );
        // The allocation matches the spec.
        let addresses = u64::from(!distinct.is_empty());
        assert_eq!(
            facade.allocated(id).await.of(&QuotaKind::public_ips()),
            addresses
        );
        assert!(matches!(after.created_by, Actor::User(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_create_and_network_deletion_stay_consistent() {
    for seed in 0..40 {
        let facade = slow_facade(seed, 100).await;
        let blue = facade.network("blue").await;
        let (operator, alice) = (operator(), project_user(tenant(1, 1)));
        let requests: Vec<_> = (0..6)
            .map(|number| new_instance(blue, &format!("i{number}")))
            .collect();
        let creations = join_all(
            requests
                .iter()
                .map(|new| facade.instances.create(&alice, new)),
        );
        let (results, deleted) = tokio::join!(creations, async {
            tokio::time::sleep(std::time::Duration::from_millis(20 * seed)).await;
            facade
                .networks
                .delete(&operator, blue, IfUsed::Refuse)
                .await
        });
        let exists = facade.networks.get(&operator, blue).await.is_ok();
        assert_eq!(deleted.is_ok(), !exists);
        let created = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!(record_counts(&facade).await, (created, created));
        assert!(exists || created == 0, "seed {seed}");
        for error in results.into_iter().filter_map(Result::err) {
            assert_eq!(error.meaning(), Meaning::NotFound, "{error:?}");
        }
    }
}

/// An update that adds a dependency runs against that dependency's deletion: one of the two is refused.
#[tokio::test(start_paused = true)]
async fn concurrent_update_and_dependency_deletion_stay_consistent() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let facade = slow_facade(seed, 100).await;
        let blue = facade.network("blue").await;
        let (operator, alice) = (operator(), project_user(tenant(1, 1)));
        let group = facade.group(blue, "ssh").await;
        let before = facade.create(blue, "web").await.instance;
        let mut wanted = UpdateInstance::of(&before);
        wanted.spec.networking.security_groups = [group].into();
        let (updated, deleted) =
            tokio::join!(facade.instances.update(&alice, before.id, &wanted), async {
                tokio::time::sleep(std::time::Duration::from_millis(5 * seed)).await;
                facade.security_groups.delete(&operator, group).await
            },);
        let has = facade.read(before.id).await.instance.spec == wanted.spec;
        let exists = facade.security_groups.get(&operator, group).await.is_ok();
        assert_eq!((has, exists), (updated.is_ok(), deleted.is_err()));
        assert_eq!(has, exists, "seed {seed}");
        outcomes.insert(has);
    }
    assert_eq!(outcomes.len(), 2);
}
