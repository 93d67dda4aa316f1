//! Every call of every service that changes or shows something has its entry in the audit log. The calls are read from the sources, so that
//! a new one cannot be forgotten here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod audit_calls;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use fleetwright::Reboot;
use fleetwright_compute::service::{NewInstance, UpdateInstance};
use fleetwright_facade_testkit::{
    CATALOG, TestFacade, flavor, is_running, name, new_snapshot, north, operator,
    principals::{scope, with_roles},
    project_user, spec, tenant, without_entry,
};
use fleetwright_identity::{
    Account, Actor, ActorName, Limits, NewOrganization, NewProject, NewRoleBinding, Principal,
    QuotaKind, RoleName, Scope, TenantName,
};
use fleetwright_region::{
    catalog::{ImageOwner, ImageState, NewImage},
    network::{AuthorityKey, IfUsed, NewNetwork, NewSecurityGroup, NewSshAuthority, Rules},
    server::{Consent, DesiredState, NewServer, Owner, Power, ServerId},
};
use fleetwright_store::Transaction;
use uuid::Uuid;

use audit_calls::{Entries, Entry, Log, NO_SERVICES, Nothing, Reads, calls};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAy6fJc6yBCQTw1DopXqb20HM2tM0UvQcjhH2mQNCtjX";

/// Returns every public asynchronous call in the sources of the façade's layers.
fn calls_in_the_sources() -> BTreeSet<String> {
    let facade = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut folders: Vec<_> = ["identity/src", "region/src", "compute/src"]
        .map(|folder| facade.join(folder))
        .into();
    let mut calls = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let mut service = None;
            for line in fs::read_to_string(&path).unwrap().lines() {
                // A macro has them further to the right.
                let line = line.trim_start();
                let of_impl = line
                    .strip_prefix("impl ")
                    .and_then(|rest| rest.strip_suffix(" {"));
                if let Some(subject) = of_impl {
                    service = (!subject.contains(' ')).then(|| subject.to_owned());
                }
                let call = line.strip_prefix("pub async fn ");
                let call = call.and_then(|rest| rest.split(['(', '<']).next());
                if let (Some(service), Some(call)) = (&service, call) {
                    if !NO_SERVICES.contains(&service.as_str()) {
                        calls.insert(format!("{service}::{call}"));
                    }
                }
            }
        }
    }
    calls
}

#[test]
fn every_call_in_the_sources_is_known() {
    let known: BTreeSet<_> = calls().keys().map(ToString::to_string).collect();
    let found = calls_in_the_sources();
    let new: Vec<_> = found.difference(&known).collect();
    assert!(new.is_empty(), "what do these leave in the log? {new:?}");
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(gone.is_empty(), "these do not exist: {gone:?}");
}

/// Makes calls and compares what each of them adds to the log.
struct Calls<'a> {
    facade: &'a TestFacade,
    expected: BTreeMap<&'static str, Log>,
    made: BTreeSet<&'static str>,
}

impl Calls<'_> {
    async fn make<T>(
        &mut self,
        call: &'static str,
        by: &Principal,
        work: impl Future<Output = T>,
    ) -> T {
        let before = self.facade.audit_entries().await.len();
        let result = work.await;
        let added = self.facade.audit_entries().await.split_off(before);
        assert!(
            added.iter().all(|entry| entry.actor == *by.actor()),
            "{call}: {added:#?}"
        );
        let found: Vec<_> = added.iter().map(|one| (one.resource, one.verb)).collect();
        match self.expected[call] {
            Entry(resource, verb) => assert_eq!(found, [(resource, verb)], "{call}"),
            Entries(resource) => {
                assert!(
                    found.iter().any(|one| one.0 == resource),
                    "{call}: {found:?}"
                );
            }
            Reads | Nothing(_) => panic!("{call} is not expected to be in the log"),
        }
        self.made.insert(call);
        result
    }
}

async fn make_calls_of_tenancy(calls: &mut Calls<'_>) {
    let facade = calls.facade;
    let (root, tenancy) = (operator(), &facade.tenancy);
    let called = |text: &str| TenantName::new(text).unwrap();
    let user = |text: &str| Actor::User(ActorName::new(text).unwrap());
    let olga = user("olga");
    let bootstrapped = tenancy.bootstrap(&olga);
    calls
        .make("Tenancy::bootstrap", &root, bootstrapped)
        .await
        .unwrap();
    let new = NewOrganization::new(called("other"));
    let created = tenancy.create_organization(&root, &new);
    let other = calls
        .make("Tenancy::create_organization", &root, created)
        .await;
    let other = other.unwrap().id;
    let new = NewProject::new(other, called("p"));
    let created = tenancy.create_project(&root, &new);
    let child = calls
        .make("Tenancy::create_project", &root, created)
        .await
        .unwrap()
        .id;
    let role = RoleName::new("project-user").unwrap();
    let new = NewRoleBinding::new(user("bob"), role, scope((other, child)));
    let bound = calls
        .make("Tenancy::bind", &root, tenancy.bind(&root, &new))
        .await;
    let unbound = tenancy.unbind(&root, bound.unwrap().id);
    calls.make("Tenancy::unbind", &root, unbound).await.unwrap();
    let deleted = tenancy.delete_project(&root, other, child);
    calls
        .make("Tenancy::delete_project", &root, deleted)
        .await
        .unwrap();
    let deleted = tenancy.delete_organization(&root, other);
    calls
        .make("Tenancy::delete_organization", &root, deleted)
        .await
        .unwrap();

    let (organization, _) = tenant(1, 1);
    let limits = Limits::new().with(QuotaKind::servers(), 50);
    let set = async {
        let account = Account::Organization(organization);
        let set = facade
            .ledger
            .set_limits(Transaction::new(), &root, &account, &limits);
        facade.store.commit(&set.await.unwrap()).await.unwrap();
    };
    calls.make("Ledger::set_limits", &root, set).await;
    let account = organization.to_string();
    facade
        .patch("quota-account", account.as_str(), |account| {
            account["used"]["servers"] = 7.into();
        })
        .await;
    let repaired = facade.ledger.repair(&root, organization);
    let repaired = calls.make("Ledger::repair", &root, repaired).await.unwrap();
    assert_eq!(repaired.differences.len(), 1);
}

async fn make_calls_of_networks(calls: &mut Calls<'_>) {
    let facade = calls.facade;
    let ((organization, project), alice) = (tenant(1, 1), project_user(tenant(1, 1)));
    let new = NewNetwork {
        organization,
        project,
        region: north(),
        name: name("blue"),
        prefix: "10.0.0.0/16".parse().unwrap(),
        dns: Vec::new(),
    };
    let created = facade.networks.create(&alice, &new);
    let network = calls
        .make("Networks::create", &alice, created)
        .await
        .unwrap();
    let network = network.value.id;
    let (groups, authorities) = (&facade.security_groups, &facade.ssh_authorities);
    let new = NewSecurityGroup {
        network,
        name: name("web"),
        rules: Rules::default(),
    };
    let created = groups.create(&alice, &new);
    let group = calls.make("SecurityGroups::create", &alice, created).await;
    let group = group.unwrap().value.id;
    let rules = Rules::default();
    let set = groups.set_rules(&alice, group, &rules);
    calls
        .make("SecurityGroups::set_rules", &alice, set)
        .await
        .unwrap();
    let deleted = groups.delete(&alice, group);
    calls
        .make("SecurityGroups::delete", &alice, deleted)
        .await
        .unwrap();
    let deleted = facade.networks.delete(&alice, network, IfUsed::Refuse);
    let _ = calls
        .make("Networks::delete", &alice, deleted)
        .await
        .unwrap();
    let new = NewSshAuthority {
        organization,
        project,
        name: name("ca"),
        public_key: AuthorityKey::new(KEY).unwrap(),
    };
    let created = authorities.create(&alice, &new);
    let authority = calls.make("SshAuthorities::create", &alice, created).await;
    let deleted = authorities.delete(&alice, authority.unwrap().value.id);
    calls
        .make("SshAuthorities::delete", &alice, deleted)
        .await
        .unwrap();
}

async fn make_calls_of_instances(calls: &mut Calls<'_>) {
    let facade = calls.facade;
    let (alice, instances) = (project_user(tenant(1, 1)), &facade.instances);
    let network = facade.network("net").await;
    let new = NewInstance::new(name("web"), tenant(1, 1), network, spec());
    let created = instances.create(&alice, &new);
    let created = calls
        .make("Instances::create", &alice, created)
        .await
        .unwrap();
    let id = created.instance.id;
    facade.during(facade.until(id, is_running)).await;
    let view = instances.read(&alice, id).await.unwrap();
    let mut wanted = UpdateInstance::of(&view.instance);
    wanted.description = Some("a web server".to_owned());
    let updated = instances.update(&alice, id, &wanted);
    calls
        .make("Instances::update", &alice, updated)
        .await
        .unwrap();
    let shown = instances.console_output(&alice, id, None);
    calls
        .make("Instances::console_output", &alice, shown)
        .await
        .unwrap();
    let shown = instances.console_session(&alice, id);
    calls
        .make("Instances::console_session", &alice, shown)
        .await
        .unwrap();
    let shown = instances.ssh_key(&alice, id);
    calls
        .make("Instances::ssh_key", &alice, shown)
        .await
        .unwrap();
    let rebooted = instances.reboot(&alice, id, Reboot::Soft);
    calls
        .make("Instances::reboot", &alice, rebooted)
        .await
        .unwrap();
    let new = new_snapshot();
    let image = instances.snapshot(&alice, id, &new);
    let image = calls
        .make("Instances::snapshot", &alice, image)
        .await
        .unwrap();
    make_calls_of_servers(calls, id.server()).await;
    calls
        .make("Instances::stop", &alice, instances.stop(&alice, id))
        .await
        .unwrap();
    calls
        .make("Instances::start", &alice, instances.start(&alice, id))
        .await
        .unwrap();
    let replaced = instances.replace(&alice, id);
    calls
        .make("Instances::replace", &alice, replaced)
        .await
        .unwrap();
    calls
        .make("Instances::delete", &alice, instances.delete(&alice, id))
        .await
        .unwrap();

    let catalog = &facade.catalog;
    let (organization, project) = tenant(1, 1);
    let new = NewImage {
        name: name("made-by-hand"),
        owner: ImageOwner {
            organization,
            project,
        },
        region: north(),
        source: fleetwright_facade_testkit::image("debian"),
        requested_at: facade.clock.now(),
    };
    let root = operator();
    let added = catalog.add_image(&root, &new, &facade.ledger);
    let added = calls.make("CatalogService::add_image", &root, added).await;
    added.unwrap();
    let role = [(
        "organization-administrator",
        Scope::Organization(organization),
    )];
    let admin = with_roles("ada", &role);
    let shared = catalog.share_image(&admin, &image.id);
    calls
        .make("CatalogService::share_image", &admin, shared)
        .await
        .unwrap();
    let retired = catalog.retire_image(&alice, &image.id);
    calls
        .make("CatalogService::retire_image", &alice, retired)
        .await
        .unwrap();
    facade
        .patch("image", image.id.as_str(), |image| {
            image["state"] = serde_json::to_value(ImageState::Ready).unwrap();
        })
        .await;
    let deleted = catalog.delete_image(&alice, &image.id);
    calls
        .make("CatalogService::delete_image", &alice, deleted)
        .await
        .unwrap();
}

/// An operator works on the server of an instance, past its tenant.
async fn make_calls_of_servers(calls: &mut Calls<'_>, id: ServerId) {
    let facade = calls.facade;
    let olga = with_roles("olga", &[("platform-administrator", Scope::Global)]);
    let (servers, machines) = (&facade.servers, &facade.machines);
    let shown = machines.console_output(&olga, id, None);
    calls
        .make("MachineAccess::console_output", &olga, shown)
        .await
        .unwrap();
    let shown = machines.console_session(&olga, id);
    calls
        .make("MachineAccess::console_session", &olga, shown)
        .await
        .unwrap();
    let shown = machines.ssh_key(&olga, id);
    calls
        .make("MachineAccess::ssh_key", &olga, shown)
        .await
        .unwrap();
    let mut new = new_snapshot();
    new.name = name("copy");
    let image = machines.snapshot(&olga, id, &new);
    calls
        .make("MachineAccess::snapshot", &olga, image)
        .await
        .unwrap();

    let owned = servers.read(&olga, id).await.unwrap().server;
    let owner = Owner::new("test", "1");
    let own = ServerId::from_uuid(Uuid::from_u128(77));
    let new = NewServer::new(own, owner, north(), tenant(1, 1), owned.spec.clone());
    let created = servers.ensure(&olga, &new);
    let server = calls
        .make("Servers::ensure", &olga, created)
        .await
        .unwrap()
        .server;
    let rebooted = servers.request_reboot(&olga, own, Reboot::Hard);
    calls
        .make("Servers::request_reboot", &olga, rebooted)
        .await
        .unwrap();
    let replaced = servers.request_replace(&olga, own);
    calls
        .make("Servers::request_replace", &olga, replaced)
        .await
        .unwrap();
    let stopped = servers.set_power(&olga, own, Power::Stopped);
    calls
        .make("Servers::set_power", &olga, stopped)
        .await
        .unwrap();
    let mut larger = server.spec.clone();
    larger.flavor = flavor("large");
    let set = servers.set_spec(&olga, own, &larger, Consent::Destroy);
    calls.make("Servers::set_spec", &olga, set).await.unwrap();
    let desired = DesiredState {
        spec: server.spec.clone(),
        intent: server.intent.clone(),
    };
    let applied = servers.apply(&olga, own, &desired, Consent::Destroy);
    calls.make("Servers::apply", &olga, applied).await.unwrap();
    calls
        .make("Servers::delete", &olga, servers.delete(&olga, own))
        .await
        .unwrap();
    // Services record what they do for others by themselves.
    let before = facade.audit_entries().await.len();
    servers
        .set_power(&operator(), id, Power::Stopped)
        .await
        .unwrap();
    assert_eq!(facade.audit_entries().await.len(), before);
}

async fn make_calls_of_operators(calls: &mut Calls<'_>) {
    let facade = calls.facade;
    let (root, north) = (operator(), north());
    let account = facade.accounts.read(&north).await.unwrap().unwrap().account;
    let accepted = facade
        .accounts
        .accept(&root, &north, &account, account.clone());
    calls
        .make("RegionAccounts::accept", &root, accepted)
        .await
        .unwrap();
    let token = fleetwright::LaunchToken::new("lost").unwrap();
    facade
        .patch("region-account", north.as_str(), |record| {
            record["leaked"] = serde_json::json!([{
                "account": null, "machine": null, "token": token, "at": "2026-01-01T00:00:00Z",
                "server": Uuid::from_u128(1),
            }]);
        })
        .await;
    let resolved = facade.accounts.resolve_leak(&root, &north, &token);
    assert!(
        calls
            .make("RegionAccounts::resolve_leak", &root, resolved)
            .await
            .unwrap()
    );
    calls
        .make("Facade::reseal", &root, facade.reseal(&root))
        .await
        .unwrap();
    let tenant = project_user(tenant(1, 1));
    facade.reseal(&tenant).await.unwrap_err();
    // A file is loaded by the installation itself.
    let catalog = &facade.catalog;
    let installation = Principal::service(ActorName::new("catalog-file").unwrap(), []);
    let smaller = without_entry(CATALOG, "large");
    let loaded = catalog.load(&smaller);
    calls
        .make("CatalogService::load", &installation, loaded)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_call_that_changes_or_shows_something_has_its_entry() {
    let facade = TestFacade::new().await;
    let mut calls = Calls {
        facade: &facade,
        expected: calls(),
        made: BTreeSet::new(),
    };
    make_calls_of_tenancy(&mut calls).await;
    make_calls_of_networks(&mut calls).await;
    make_calls_of_instances(&mut calls).await;
    make_calls_of_operators(&mut calls).await;
    let Calls { expected, made, .. } = calls;
    let missing: Vec<_> = expected
        .iter()
        .filter(|(call, log)| matches!(log, Entry(..) | Entries(_)) && !made.contains(*call))
        .map(|(call, _)| call)
        .collect();
    assert!(missing.is_empty(), "not called: {missing:?}");
}
