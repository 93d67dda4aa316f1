//! Projects are records: nothing is created in one that does not exist, and none is deleted while it contains anything, in any race.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "tests may panic"
)]

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright_compute::{ComputeError, Meaning, service::NewInstance};
use fleetwright_facade_testkit::{
    Tenant, TestFacade, error_chain, image, is_running, name, new_snapshot, north, operator,
    principals::{create_tenant, scope, user_with, with_roles},
    project_user, record_id, spec, sqlite_store,
    stores::{InterceptedStore, RandomDelays},
    tenant,
};
use fleetwright_identity::{
    Account, Actor, ActorName, NewRoleBinding, Permission, Principal, Resource, RoleName, Scope,
    TenancyError, Verb,
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    catalog::{ImageError, ImageOwner, NewImage},
    network::{AuthorityKey, IfUsed, NewNetwork, NewSshAuthority, RecordError},
};
use fleetwright_store::{Store, Transaction};
use futures_util::future::join_all;

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAy6fJc6yBCQTw1DopXqb20HM2tM0UvQcjhH2mQNCtjX";

fn new_network((organization, project): Tenant, called: &str) -> NewNetwork {
    NewNetwork {
        organization,
        project,
        region: north(),
        name: name(called),
        prefix: "10.0.0.0/16".parse().unwrap(),
        dns: Vec::new(),
    }
}

fn new_authority((organization, project): Tenant, called: &str) -> NewSshAuthority {
    NewSshAuthority {
        organization,
        project,
        name: name(called),
        public_key: AuthorityKey::new(KEY).unwrap(),
    }
}

fn new_image((organization, project): Tenant, called: &str, at: DateTime<Utc>) -> NewImage {
    NewImage {
        name: name(called),
        owner: ImageOwner {
            organization,
            project,
        },
        region: north(),
        source: image("debian"),
        requested_at: at,
    }
}

/// The errors of creating one of everything in a project, with its id hidden.
async fn errors_in(facade: &TestFacade, principal: &Principal, one: Tenant) -> Vec<String> {
    let network = facade
        .networks
        .create(principal, &new_network(one, "net"))
        .await;
    let authority = new_authority(one, "ca");
    let authority = facade.ssh_authorities.create(principal, &authority).await;
    let picture = new_image(one, "copy", facade.clock.now());
    let picture = facade
        .catalog
        .add_image(principal, &picture, &facade.ledger)
        .await;
    // In a network of another project, which is not looked at before the project.
    let elsewhere = facade.network("elsewhere").await;
    let new = NewInstance::new(name("web"), one, elsewhere, spec());
    let instance = facade.instances.create(principal, &new).await;
    let user = Actor::User(ActorName::new("u").unwrap());
    let role = RoleName::new("project-reader").unwrap();
    let binding = NewRoleBinding::new(user, role, scope(one));
    let binding = facade.tenancy.bind(principal, &binding).await;
    let texts = [
        error_chain(&network.unwrap_err()),
        error_chain(&authority.unwrap_err()),
        error_chain(&picture.unwrap_err()),
        error_chain(&instance.unwrap_err()),
        error_chain(&binding.unwrap_err()),
    ];
    let _ = facade
        .networks
        .delete(&operator(), elsewhere, IfUsed::Refuse)
        .await
        .unwrap();
    let hidden = texts.map(|text| {
        text.replace(&one.0.to_string(), "O")
            .replace(&one.1.to_string(), "P")
    });
    hidden.into()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_created_in_a_project_that_does_not_exist_or_is_being_deleted() {
    let facade = TestFacade::new().await;
    for missing in [tenant(1, 7), tenant(70, 7)] {
        for text in errors_in(&facade, &operator(), missing).await {
            assert_eq!(text, "there is no project P");
        }
    }
    let closing = tenant(1, 3);
    create_tenant(&facade.tenancy, closing).await;
    let key = format!("{}/{}", closing.0, closing.1);
    facade
        .patch("project", &key, |project| {
            project["state"] = "deleting".into();
        })
        .await;
    for text in errors_in(&facade, &operator(), closing).await {
        assert_eq!(text, "project P is being deleted: choose another project");
    }
    // Nor is a quota of its own.
    let limits = fleetwright_identity::Limits::new();
    let account = Account::Project(closing.0, closing.1);
    let root = operator();
    let set = facade
        .ledger
        .set_limits(Transaction::new(), &root, &account, &limits);
    assert!(set.await.is_err());
    let missing = NewInstance::new(
        name("web"),
        tenant(1, 7),
        facade.network("net").await,
        spec(),
    );
    let refused = facade.instances.create(&operator(), &missing).await;
    assert_eq!(refused.unwrap_err().meaning(), Meaning::NotFound);
}

#[tokio::test(start_paused = true)]
async fn stranger_does_not_learn_whether_a_project_exists() {
    let facade = TestFacade::new().await;
    let (exists, missing) = (tenant(1, 11), tenant(1, 8));
    create_tenant(&facade.tenancy, exists).await;
    let nowhere = tenant(80, 8);
    let stranger = with_roles(
        "eve",
        &[(
            "organization-administrator",
            Scope::Organization(tenant(2, 2).0),
        )],
    );
    let found = errors_in(&facade, &stranger, exists).await;
    assert_eq!(found, errors_in(&facade, &stranger, missing).await);
    assert_eq!(found, errors_in(&facade, &stranger, nowhere).await);
}

#[tokio::test(start_paused = true)]
async fn project_with_contents_is_not_deleted_and_the_refusal_counts_what_the_caller_may_list() {
    let cloud = MemoryCloud::new();
    let (facade, network, id) = TestFacade::running_instance(&cloud).await;
    let one = tenant(1, 1);
    let alice = project_user(one);
    facade.authority(one).await;
    facade
        .instances
        .snapshot(&alice, id, &new_snapshot())
        .await
        .unwrap();
    let admin = with_roles(
        "ada",
        &[("organization-administrator", Scope::Organization(one.0))],
    );
    let refusal = async |principal: &Principal| {
        let refused = facade.tenancy.delete_project(principal, one.0, one.1).await;
        match refused.unwrap_err() {
            TenancyError::NotEmpty { remaining, .. } => remaining.to_string(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        refusal(&admin).await,
        "1 networks, 1 ssh-certificate-authorities, 1 images, 1 instances"
    );
    // Who may not list instances does not learn how many there are.
    let some = [
        (Verb::Delete, Resource::Projects),
        (Verb::Read, Resource::Projects),
        (Verb::List, Resource::Networks),
    ];
    let some = some.map(|(verb, resource)| Permission::new(verb, resource).unwrap());
    assert_eq!(refusal(&user_with(scope(one), some)).await, "1 networks");
    assert!(refusal(&operator()).await.contains("1 servers"));

    facade.during(facade.until(id, is_running)).await;
    facade
        .during(async {
            facade.delete(id).await;
            facade.until_gone(id).await;
        })
        .await;
    assert_eq!(
        refusal(&admin).await,
        "1 networks, 1 ssh-certificate-authorities, 1 images"
    );
    let _ = facade
        .networks
        .delete(&alice, network, IfUsed::Refuse)
        .await
        .unwrap();
}

/// One attempt to create something in a project, with the result of the façade.
async fn create_one(racing: &TestFacade, one: Tenant, kind: usize, called: &str) -> bool {
    let root = operator();
    let refused = match kind % 4 {
        0 => {
            let new = new_network(one, called);
            racing.networks.create(&root, &new).await.err()
        }
        1 => {
            let new = new_authority(one, called);
            racing.ssh_authorities.create(&root, &new).await.err()
        }
        2 => {
            let new = new_image(one, called, racing.clock.now());
            match racing.catalog.add_image(&root, &new, &racing.ledger).await {
                Ok(_) => None,
                Err(ImageError::Closed(closed)) => Some(closed.into()),
                Err(other) => panic!("{other:?}"),
            }
        }
        _ => {
            let user = Actor::User(ActorName::new(called).unwrap());
            let role = RoleName::new("project-reader").unwrap();
            let new = NewRoleBinding::new(user, role, scope(one));
            match racing.tenancy.bind(&root, &new).await {
                Ok(_) => None,
                Err(TenancyError::NotFound { what, id }) => {
                    Some(RecordError::NotFound { what, id })
                }
                Err(TenancyError::Deleting { what, id }) => {
                    Some(RecordError::Deleting { what, id })
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    };
    match refused {
        None => true,
        Some(RecordError::NotFound { what, .. } | RecordError::Deleting { what, .. }) => {
            assert_eq!(what, "project");
            false
        }
        Some(other) => panic!("{other:?}"),
    }
}

/// Fifty calls at once, each after a random delay: in each of five projects nine create something and one deletes the project. Afterwards
/// a project that is gone has left nothing behind. Returns how many creations succeeded, how many were refused, and how many projects
/// were deleted.
async fn race(store: Arc<dyn Store>, seed: u64) -> [usize; 3] {
    let facade = TestFacade::builder().store(store.clone()).build().await;
    let delayed = InterceptedStore::new(store.clone(), RandomDelays::below(8, seed));
    let racing = facade.reopen(delayed).await;
    let mut counts = [0; 3];
    let root = operator();
    let mut random = seed;
    let mut delay = move || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis((random >> 33) % 40)
    };
    for round in 0..4 {
        let projects: Vec<Tenant> = (0..5).map(|number| tenant(1, 50 + number)).collect();
        for one in &projects {
            create_tenant(&facade.tenancy, *one).await;
        }
        let creations = projects
            .iter()
            .enumerate()
            .flat_map(|(number, one)| (0..9).map(move |task| (number, *one, task)));
        let creations: Vec<_> = creations.map(|task| (task, delay())).collect();
        let creations = creations.into_iter().map(|((number, one, task), wait)| {
            let racing = &racing;
            async move {
                tokio::time::sleep(wait).await;
                let called = format!("r{round}-{number}-{task}");
                create_one(racing, one, round + number, &called).await
            }
        });
        let deletions: Vec<_> = projects.iter().map(|one| (*one, delay())).collect();
        let deletions = deletions.into_iter().map(|(one, wait)| {
            let (racing, root) = (&racing, &root);
            async move {
                tokio::time::sleep(wait).await;
                racing.tenancy.delete_project(root, one.0, one.1).await
            }
        });
        let (made, gone) = tokio::join!(join_all(creations), join_all(deletions));
        counts[0] += made.iter().filter(|created| **created).count();
        counts[1] += made.iter().filter(|created| !**created).count();
        for (one, outcome) in projects.iter().zip(gone) {
            let is_gone = facade.tenancy.project(&root, one.0, one.1).await.is_err();
            assert_eq!(is_gone, outcome.is_ok(), "{outcome:?}");
            counts[2] += usize::from(is_gone);
            if is_gone {
                assert_nothing_left(&facade, *one).await;
            }
            empty(&facade, *one).await;
            if !is_gone {
                facade
                    .tenancy
                    .delete_project(&root, one.0, one.1)
                    .await
                    .unwrap();
                assert_nothing_left(&facade, *one).await;
            }
        }
    }
    counts
}

/// A project that is gone has left nothing behind.
async fn assert_nothing_left(facade: &TestFacade, one: Tenant) {
    let place = format!("{}/{}", one.0, one.1);
    for (kind, path) in [
        ("network", "/project"),
        ("ssh-authority", "/project"),
        ("image", "/origin/snapshot/owner/project"),
        ("allocation", "/project"),
        ("role-binding", "/place"),
        ("quota-account", "/project"),
        ("project", "/id"),
    ] {
        let query = fleetwright_store::Query::all(fleetwright_store::Kind::new(kind).unwrap());
        let records = facade.store.list(&query).await.unwrap().records;
        let left: Vec<_> = records
            .iter()
            .filter(|record| {
                let found = record
                    .value
                    .pointer(path)
                    .and_then(serde_json::Value::as_str);
                found == Some(&one.1.to_string()) || found == Some(&place)
            })
            .collect();
        assert!(left.is_empty(), "{left:#?}");
    }
}

/// Deletes everything in a project.
async fn empty(facade: &TestFacade, one: Tenant) {
    let filter = fleetwright_region::network::Filter::within(scope(one));
    for found in facade
        .networks
        .list(&operator(), &filter)
        .await
        .unwrap()
        .items
    {
        let id = found.value.id;
        let _ = facade
            .networks
            .delete(&operator(), id, IfUsed::Refuse)
            .await
            .unwrap();
    }
    for found in facade
        .ssh_authorities
        .list(&operator(), &filter)
        .await
        .unwrap()
        .items
    {
        facade
            .ssh_authorities
            .delete(&operator(), found.value.id)
            .await
            .unwrap();
    }
    let query = fleetwright_store::Query::all(fleetwright_store::Kind::new("image").unwrap());
    for record in facade.store.list(&query).await.unwrap().records {
        if record
            .value
            .pointer("/origin/snapshot/owner/project")
            .is_some()
        {
            let id = record_id("image", &record.id.key);
            let build = || async {
                let deletion = Transaction::new().delete(id.clone());
                Ok::<_, ComputeError>(facade.ledger.release(deletion, &id).await?)
            };
            facade.ledger.commit(one.0, build).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn creations_and_deletions_at_the_same_time_leave_nothing_behind_in_memory() {
    let mut total = [0; 3];
    for seed in 1..=12 {
        let counts = race(fleetwright_facade_testkit::memory_store(), seed).await;
        total = [0, 1, 2].map(|which| total[which] + counts[which]);
    }
    // Both sides won often.
    assert!(total.iter().all(|count| *count > 40), "{total:?}");
}

#[tokio::test]
async fn creations_and_deletions_at_the_same_time_leave_nothing_behind_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite_store(folder.path().join("race.db")).await;
    let counts = race(store, 1).await;
    assert!(counts[0] > 0, "{counts:?}");
}
