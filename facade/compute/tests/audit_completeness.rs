//! Every change has exactly one entry in the audit log, in its transaction; all calls, all permissions, all crashes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fleetwright::{Reboot, UserData};
use fleetwright_compute::service::{NewInstance, UpdateInstance};
use fleetwright_facade_testkit::{
    TestFacade, commits_after, is_running, name, new_snapshot, north, operator,
    principals::{project_reader, scope, with_roles},
    project_user, spec,
    stores::{Applied, RacingStore},
    tenant,
};
use fleetwright_identity::{
    Account, Actor, ActorName, AuditEntry, AuditOutcome, Limits, NewOrganization, NewProject,
    NewRoleBinding, Permission, QuotaKind, Resource, RoleName, Scope, TenantName, Verb,
};
use fleetwright_region::{
    catalog::ImageState,
    network::{
        AuthorityKey, Direction, IfUsed, NewNetwork, NewSecurityGroup, NewSshAuthority, Protocol,
        Rule, Rules,
    },
};
use fleetwright_store::{Change, Commit, Record, Store, Transaction};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAy6fJc6yBCQTw1DopXqb20HM2tM0UvQcjhH2mQNCtjX";

/// The kinds whose records principals change. Every change of one has an entry.
const KINDS: [(&str, Resource); 10] = [
    ("instance", Resource::Instances),
    ("network", Resource::Networks),
    ("security-group", Resource::SecurityGroups),
    ("ssh-authority", Resource::SshCertificateAuthorities),
    ("image", Resource::Images),
    ("flavor", Resource::Flavors),
    ("organization", Resource::Organizations),
    ("project", Resource::Projects),
    ("role-binding", Resource::RoleBindings),
    ("region-account", Resource::Regions),
];

/// Permissions that change or show something and that no call of the façade needs: nothing can be changed with them.
const WITHOUT_CALL: [(Resource, &[Verb]); 12] = [
    (Resource::Networks, &[Verb::Update]),
    (Resource::SshCertificateAuthorities, &[Verb::Update]),
    (Resource::Regions, &[Verb::Create, Verb::Delete]),
    (Resource::Flavors, &[]),
    (Resource::Images, &[]),
    (Resource::Organizations, &[Verb::Update]),
    (Resource::Projects, &[Verb::Update]),
    (Resource::RoleBindings, &[Verb::Update]),
    (Resource::Quotas, &[Verb::Create, Verb::Delete]),
    (Resource::ProjectQuotas, &[Verb::Create, Verb::Delete]),
    (
        Resource::Allocations,
        &[Verb::Create, Verb::Update, Verb::Delete],
    ),
    // Carries out what is in the log already.
    (Resource::NativeImages, &[Verb::Update]),
];

fn entries_of(commit: &Commit) -> Vec<AuditEntry> {
    let entries = commit.changes.iter().filter_map(|change| match change {
        Change::Put(record) if record.id.kind.as_str() == "audit-entry" => {
            Some(record.value.clone().parse_owned().unwrap())
        }
        Change::Put(_) | Change::Deleted(_) => None,
    });
    entries.collect()
}

/// The records that principals change, as the log names them.
fn changed(commit: &Commit) -> Vec<(Resource, String)> {
    let named = |record: &Record| {
        let kind = record.id.kind.as_str();
        let (_, resource) = KINDS.iter().find(|(known, _)| *known == kind)?;
        let key = record.id.key.as_str();
        // The key of a project begins with its organization.
        let id = key.rsplit('/').next().unwrap_or(key);
        Some((*resource, id.to_owned()))
    };
    let changes = commit.changes.iter();
    changes
        .filter_map(|change| named(change.record()))
        .collect()
}

/// Checks every commit: a change has exactly one entry, about it, and an entry without a change is about what was shown or refused.
/// The second step of a deleted organization or project, which has its entry from the first one, removes the record and its bindings.
fn check_commits(commits: &[Commit]) {
    for commit in commits {
        let mut entries: Vec<_> = entries_of(commit)
            .iter()
            .map(|entry| (entry.resource, entry.record.clone(), entry.outcome))
            .collect();
        let is_quota = |resource| matches!(resource, Resource::Quotas | Resource::ProjectQuotas);
        let is_closed = commit.changes.iter().any(|change| match change {
            Change::Deleted(record) => {
                record.value["state"] == "deleting"
                    && matches!(record.id.kind.as_str(), "project" | "organization")
            }
            Change::Put(_) => false,
        });
        if is_closed {
            assert!(entries.is_empty(), "{commit:#?}");
            continue;
        }
        for (resource, id) in changed(commit) {
            let found = entries
                .iter()
                .position(|entry| entry.0 == resource && entry.1 == id);
            let found =
                found.unwrap_or_else(|| panic!("{resource:?} {id} has no entry: {commit:#?}"));
            let (.., outcome) = entries.swap_remove(found);
            assert!(matches!(
                outcome,
                AuditOutcome::Done | AuditOutcome::Requested
            ));
        }
        for (resource, id, outcome) in entries {
            let without_change = matches!(outcome, AuditOutcome::Disclosed | AuditOutcome::Refused);
            assert!(
                without_change || is_quota(resource),
                "{resource:?} {id}: {commit:#?}"
            );
        }
    }
}

async fn new_network(facade: &TestFacade, called: &str) -> fleetwright_region::ids::NetworkId {
    let (organization, project) = tenant(1, 1);
    let new = NewNetwork {
        organization,
        project,
        region: north(),
        name: name(called),
        prefix: "10.0.0.0/16".parse().unwrap(),
        dns: Vec::new(),
    };
    let alice = project_user(tenant(1, 1));
    facade.networks.create(&alice, &new).await.unwrap().value.id
}

/// Every call that changes or shows something, once with an effect, and once more where a repetition has none.
async fn make_every_call(facade: &TestFacade) {
    let (organization, project) = tenant(1, 1);
    let (alice, root) = (project_user(tenant(1, 1)), operator());
    let admin = with_roles(
        "ada",
        &[(
            "organization-administrator",
            Scope::Organization(organization),
        )],
    );
    // Organizations, projects, bindings and quota.
    let tenancy = &facade.tenancy;
    let called = |text: &str| TenantName::new(text).unwrap();
    let other = NewOrganization::new(called("other"));
    let other = tenancy.create_organization(&root, &other).await.unwrap().id;
    let new = NewProject::new(other, called("p"));
    let child = tenancy.create_project(&root, &new).await.unwrap().id;
    let bob = Actor::User(ActorName::new("bob").unwrap());
    let role = RoleName::new("project-user").unwrap();
    let new = NewRoleBinding::new(bob, role, scope((other, child)));
    let bound = tenancy.bind(&root, &new).await.unwrap();
    assert_eq!(tenancy.bind(&root, &new).await.unwrap(), bound);
    tenancy.unbind(&root, bound.id).await.unwrap();
    tenancy.bind(&root, &new).await.unwrap();
    let limits = Limits::new().with(QuotaKind::servers(), 50);
    for account in [
        Account::Organization(organization),
        Account::Project(organization, project),
    ] {
        let set = facade
            .ledger
            .set_limits(Transaction::new(), &root, &account, &limits);
        facade.store.commit(&set.await.unwrap()).await.unwrap();
    }
    tenancy.delete_project(&root, other, child).await.unwrap();
    tenancy.delete_organization(&root, other).await.unwrap();
    tenancy.delete_organization(&root, other).await.unwrap_err();

    // Networks, groups and authorities.
    let network = new_network(facade, "blue").await;
    let new = NewSecurityGroup {
        network,
        name: name("web"),
        rules: Rules::default(),
    };
    let group = facade
        .security_groups
        .create(&alice, &new)
        .await
        .unwrap()
        .value
        .id;
    let ssh = Rule::new(Direction::Ingress, Protocol::Tcp, (Some(22), None), None).unwrap();
    let rules = Rules::new(vec![ssh]).unwrap();
    facade
        .security_groups
        .set_rules(&alice, group, &rules)
        .await
        .unwrap();
    facade.security_groups.delete(&alice, group).await.unwrap();
    facade
        .security_groups
        .delete(&alice, group)
        .await
        .unwrap_err();
    // A group that is deleted with its network.
    let emptied = new_network(facade, "red").await;
    let on_red = NewSecurityGroup {
        network: emptied,
        ..new
    };
    facade
        .security_groups
        .create(&alice, &on_red)
        .await
        .unwrap();
    let _ = facade
        .networks
        .delete(&alice, emptied, IfUsed::DeleteFirst)
        .await
        .unwrap();
    let unused = new_network(facade, "green").await;
    let _ = facade
        .networks
        .delete(&alice, unused, IfUsed::Refuse)
        .await
        .unwrap();
    let new = NewSshAuthority {
        organization,
        project,
        name: name("ca"),
        public_key: AuthorityKey::new(KEY).unwrap(),
    };
    let authority = facade
        .ssh_authorities
        .create(&alice, &new)
        .await
        .unwrap()
        .value
        .id;
    facade
        .ssh_authorities
        .create(&alice, &new)
        .await
        .unwrap_err();
    facade
        .ssh_authorities
        .delete(&alice, authority)
        .await
        .unwrap();

    // Instances, with everything that shows something.
    let instances = &facade.instances;
    let mut with_data = spec();
    with_data.user_data = Some(UserData::new("#!/bin/sh\n# pass-phrase-of-ada\n").unwrap());
    let new = NewInstance::new(name("web"), tenant(1, 1), network, with_data);
    let id = instances.create(&alice, &new).await.unwrap().instance.id;
    instances.create(&alice, &new).await.unwrap_err();
    facade.during(facade.until(id, is_running)).await;
    let view = instances.read(&alice, id).await.unwrap();
    let mut wanted = UpdateInstance::of(&view.instance);
    wanted.description = Some("a web server".to_owned());
    instances.update(&alice, id, &wanted).await.unwrap();
    instances.update(&alice, id, &wanted).await.unwrap();
    instances.console_output(&alice, id, None).await.unwrap();
    instances.console_session(&alice, id).await.unwrap();
    instances.ssh_key(&alice, id).await.unwrap();
    let image = instances
        .snapshot(&alice, id, &new_snapshot())
        .await
        .unwrap();
    instances
        .snapshot(&alice, id, &new_snapshot())
        .await
        .unwrap();
    instances.reboot(&alice, id, Reboot::Soft).await.unwrap();
    instances.stop(&alice, id).await.unwrap();
    instances.stop(&alice, id).await.unwrap();
    instances.start(&alice, id).await.unwrap();
    instances.replace(&alice, id).await.unwrap();
    let reader = project_reader(tenant(1, 1));
    instances.ssh_key(&reader, id).await.unwrap_err();
    instances.delete(&alice, id).await.unwrap();
    instances.delete(&alice, id).await.unwrap();

    // Images.
    facade.catalog.share_image(&admin, &image.id).await.unwrap();
    facade
        .catalog
        .retire_image(&alice, &image.id)
        .await
        .unwrap();
    facade
        .catalog
        .delete_image(&alice, &image.id)
        .await
        .unwrap_err();
    facade
        .patch("image", image.id.as_str(), |image| {
            image["state"] = serde_json::to_value(ImageState::Ready).unwrap();
        })
        .await;
    facade
        .catalog
        .delete_image(&alice, &image.id)
        .await
        .unwrap();

    // The operator's account.
    let north = north();
    let account = facade.accounts.read(&north).await.unwrap().unwrap().account;
    let accepted = facade
        .accounts
        .accept(&root, &north, &account, account.clone())
        .await;
    accepted.unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_change_has_exactly_one_entry_and_every_permission_to_change_is_covered() {
    let facade = TestFacade::new().await;
    let catalog_before = facade.store.head().await.unwrap();
    make_every_call(&facade).await;
    // The catalog file: flavors are added, changed and retired by it.
    let smaller =
        fleetwright_facade_testkit::without_entry(fleetwright_facade_testkit::CATALOG, "large");
    facade.catalog.load(&smaller).await.unwrap();
    facade
        .catalog
        .load(fleetwright_facade_testkit::CATALOG)
        .await
        .unwrap();
    let commits = commits_after(&*facade.store, catalog_before).await;
    let by_services: Vec<_> = commits
        .into_iter()
        .filter(|commit| !is_by_a_controller(commit))
        .collect();
    check_commits(&by_services);

    let entries = facade.audit_entries().await;
    let covered: BTreeSet<_> = entries
        .iter()
        .map(|entry| (entry.resource, entry.verb))
        .collect();
    let without: BTreeSet<_> = WITHOUT_CALL
        .iter()
        .flat_map(|(resource, verbs)| verbs.iter().map(|verb| (*resource, *verb)))
        .collect();
    // Flavors are created with the first load of a file, which is before the log.
    let by_file = BTreeSet::from([(Resource::Flavors, Verb::Create)]);
    let all: BTreeSet<_> = Permission::all()
        .filter(|one| !matches!(one.verb(), Verb::Read | Verb::List))
        // Servers are behind instances; the next test is about operators who use them.
        .filter(|one| one.resource() != Resource::Servers)
        .map(|one| (one.resource(), one.verb()))
        .collect();
    let missing: Vec<_> = all
        .iter()
        .filter(|one| !covered.contains(one) && !without.contains(one) && !by_file.contains(one))
        .collect();
    assert!(missing.is_empty(), "no entry for {missing:?}");
    let unexpected: Vec<_> = covered.intersection(&without).collect();
    assert!(unexpected.is_empty(), "{unexpected:?}");

    // Nothing of the user data, the key or the console is in the log.
    let text = serde_json::to_string(&entries).unwrap();
    for secret in ["pass-phrase-of-ada", "PRIVATE KEY", "ssh-ed25519", "http"] {
        assert!(!text.contains(secret), "{secret}");
    }
}

/// Whether a commit is one of a controller, which carries out what a principal requested: the status of an instance, a server, the state of an image.
fn is_by_a_controller(commit: &Commit) -> bool {
    let has = |kind: &str| {
        commit
            .changes
            .iter()
            .any(|change| change.id().kind.as_str() == kind)
    };
    let only_status = commit.changes.iter().all(|change| {
        let kind = change.id().kind.as_str();
        matches!(
            kind,
            "instance"
                | "server"
                | "server-key"
                | "region-scan"
                | "region-account"
                | "allocation"
                | "quota-account"
                | "image"
                | "audit-prune-date"
        )
    });
    !has("audit-entry") && only_status
}

#[tokio::test(start_paused = true)]
async fn crash_at_any_call_leaves_no_change_without_entry_and_no_entry_without_change() {
    let mut call = 1;
    loop {
        let mut reached = false;
        for done in [Applied::No, Applied::Yes] {
            let facade = TestFacade::new().await;
            let before = facade.store.head().await.unwrap();
            let store = Arc::new(RacingStore::new(facade.store.clone()).dying_at(call, done));
            let dying = facade.reopen(store.clone() as Arc<dyn Store>).await;
            let alice = project_user(tenant(1, 1));
            let work = async {
                let network = new_network(&dying, "blue").await;
                let new = NewSecurityGroup {
                    network,
                    name: name("web"),
                    rules: Rules::default(),
                };
                dying.security_groups.create(&alice, &new).await.unwrap();
                let id = dying.create(network, "web").await.instance.id;
                dying.instances.stop(&alice, id).await.unwrap();
                dying.instances.delete(&alice, id).await.unwrap();
                let root = operator();
                let new = NewOrganization::new(TenantName::new("other").unwrap());
                let other = dying
                    .tenancy
                    .create_organization(&root, &new)
                    .await
                    .unwrap()
                    .id;
                let new = NewProject::new(other, TenantName::new("p").unwrap());
                let child = dying.tenancy.create_project(&root, &new).await.unwrap().id;
                dying
                    .tenancy
                    .delete_project(&root, other, child)
                    .await
                    .unwrap();
            };
            let _ = tokio::time::timeout(Duration::from_secs(60), work).await;
            reached |= store.is_dead();
            check_commits(&commits_after(&*facade.store, before).await);
        }
        if !reached {
            assert!(call > 20, "{call}: fewer than twenty calls");
            return;
        }
        call += 1;
    }
}
