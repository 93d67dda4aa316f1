//! Permissions: a table of every principal and every call, in which everything is refused that is not listed. An instance that is not
//! visible gives exactly the same error as one that does not exist.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::collections::{BTreeMap, BTreeSet};

use fleetwright::Reboot;
use fleetwright_compute::{
    ComputeError,
    instance::{Instance, InstanceId},
    service::{Instances, ListInstances, NewInstance, UpdateInstance},
};
use fleetwright_facade_testkit::{
    Tenant, TestFacade, error_chain, flavor, image, name, new_instance, north, operator,
    principals::{project_reader, scope, user_with, with_roles},
    project_user, tenant,
};
use fleetwright_identity::{Permission, Principal, Resource, Scope, Verb};
use fleetwright_region::{
    ids::{NetworkId, SecurityGroupId, SshAuthorityId},
    snapshot::NewSnapshot,
};
use uuid::Uuid;

/// Every call that names an instance. The last one deletes it.
const CALLS: [&str; 14] = [
    "read",
    "events",
    "inspect",
    "plan-update",
    "update",
    "start",
    "stop",
    "reboot",
    "replace",
    "console-output",
    "console-session",
    "ssh-key",
    "snapshot",
    "delete",
];

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// Permitted, whether or not it succeeds now.
    Permitted,
    /// Refused: the caller may know that the instance exists.
    Refused,
    /// Not found, with the complete error.
    Absent(String),
}

fn outcome<T>(result: Result<T, ComputeError>) -> Outcome {
    match result.map_err(|error| {
        (
            error.meaning().status(),
            format!("{error:?} {}", error_chain(&error)),
        )
    }) {
        Err((403, _)) => Outcome::Refused,
        Err((404, message)) => Outcome::Absent(message),
        Ok(_) | Err(_) => Outcome::Permitted,
    }
}

async fn call(
    instances: &Instances,
    principal: &Principal,
    call: &str,
    id: InstanceId,
    present: &Instance,
) -> Outcome {
    let mut update = UpdateInstance::of(present);
    update.description = Some("changed".to_owned());
    let copy = NewSnapshot::new(name("copy"));
    match call {
        "read" => outcome(instances.read(principal, id).await),
        "events" => outcome(instances.events(principal, id).await),
        "inspect" => outcome(instances.inspect(principal, id).await),
        "plan-update" => outcome(instances.plan_update(principal, id, &update).await),
        "update" => outcome(instances.update(principal, id, &update).await),
        "start" => outcome(instances.start(principal, id).await),
        "stop" => outcome(instances.stop(principal, id).await),
        "reboot" => outcome(instances.reboot(principal, id, Reboot::Soft).await),
        "replace" => outcome(instances.replace(principal, id).await),
        "console-output" => outcome(instances.console_output(principal, id, None).await),
        "console-session" => outcome(instances.console_session(principal, id).await),
        "ssh-key" => outcome(instances.ssh_key(principal, id).await),
        "snapshot" => outcome(instances.snapshot(principal, id, &copy).await),
        "delete" => outcome(instances.delete(principal, id).await),
        other => panic!("{other} is no call"),
    }
}

/// Principals by name, each with its permitted calls.
type Principals = BTreeMap<String, (Principal, BTreeSet<&'static str>)>;

/// Every principal of the table.
fn principals() -> Principals {
    let (own, sibling, foreign) = (tenant(1, 1), tenant(1, 2), tenant(2, 1));
    let all_but_inspect = || {
        CALLS
            .into_iter()
            .filter(|call| *call != "inspect")
            .collect()
    };
    let reading = || BTreeSet::from(["read", "events"]);
    let whole = |tenant: Tenant| Scope::Organization(tenant.0);
    let administrator =
        |tenant| with_roles("ada", &[("organization-administrator", whole(tenant))]);
    let auditor = |tenant| with_roles("otto", &[("organization-auditor", whole(tenant))]);
    let mut principals = BTreeMap::from([
        (
            "nobody".to_owned(),
            (with_roles("nobody", &[]), BTreeSet::new()),
        ),
        ("user".to_owned(), (project_user(own), all_but_inspect())),
        ("reader".to_owned(), (project_reader(own), reading())),
        (
            "user of another project".to_owned(),
            (project_user(sibling), BTreeSet::new()),
        ),
        (
            "reader of another project".to_owned(),
            (project_reader(sibling), BTreeSet::new()),
        ),
        (
            "user of another organization".to_owned(),
            (project_user(foreign), BTreeSet::new()),
        ),
        (
            "administrator".to_owned(),
            (administrator(own), all_but_inspect()),
        ),
        ("auditor".to_owned(), (auditor(own), reading())),
        (
            "administrator of another organization".to_owned(),
            (administrator(foreign), BTreeSet::new()),
        ),
        (
            "auditor of another organization".to_owned(),
            (auditor(foreign), BTreeSet::new()),
        ),
        ("operator".to_owned(), (operator(), CALLS.into())),
    ]);
    // Principals with one permission alone, with one and the permission to read, and with all permissions in another project.
    let table: [(Verb, &[&str]); 12] = [
        (Verb::Create, &[]),
        (Verb::Read, &["read", "events"]),
        (Verb::List, &[]),
        // An update returns the instance, so it needs the permission to read too.
        (Verb::Update, &["replace"]),
        (Verb::Delete, &["delete"]),
        (Verb::Start, &["start"]),
        (Verb::Stop, &["stop"]),
        (Verb::Reboot, &["reboot"]),
        (Verb::ConsoleOutput, &["console-output"]),
        (Verb::ConsoleSession, &["console-session"]),
        (Verb::SshKey, &["ssh-key"]),
        (Verb::Snapshot, &["snapshot"]),
    ];
    let on = |verb, resource| Permission::new(verb, resource).unwrap();
    for (verb, alone) in table {
        let one = on(verb, Resource::Instances);
        let principal = user_with(scope(own), [one]);
        principals.insert(
            format!("{} alone", verb.as_str()),
            (principal, alone.iter().copied().collect()),
        );
        let principal = user_with(scope(own), [one, on(Verb::Read, Resource::Instances)]);
        let mut may: BTreeSet<_> = alone.iter().copied().collect();
        may.extend(["read", "events"]);
        if verb == Verb::Update {
            may.extend(["plan-update", "update"]);
        }
        principals.insert(format!("{} and read", verb.as_str()), (principal, may));
    }
    let every = |verb| on(verb, Resource::Instances);
    let principal = user_with(scope(foreign), Verb::ALL.map(every));
    principals.insert(
        "every permission in another organization".to_owned(),
        (principal, BTreeSet::new()),
    );
    let servers = [on(Verb::Read, Resource::Servers), every(Verb::Read)];
    let may = ["read", "events", "inspect"].into();
    principals.insert(
        "inspector".to_owned(),
        (user_with(scope(own), servers), may),
    );
    let principal = user_with(scope(own), [on(Verb::Read, Resource::Servers)]);
    principals.insert(
        "reader of servers alone".to_owned(),
        (principal, BTreeSet::new()),
    );
    principals
}

/// The cells of the table with a wrong outcome.
async fn differences(facade: &TestFacade, principals: Principals) -> Vec<String> {
    let instances = &facade.instances;
    let blue = facade.network("blue").await;
    let mut found = Vec::new();
    for (number, (called, (principal, may))) in principals.into_iter().enumerate() {
        let created = new_instance(blue, &format!("i{number}"));
        let created = facade
            .instances
            .create(&operator(), &created)
            .await
            .unwrap();
        let instance = created.instance;
        facade.make_machine(&instance).await;
        let may_read = may.contains("read");
        for verb in CALLS {
            let actual = call(instances, &principal, verb, instance.id, &instance).await;
            let absent = InstanceId::from_uuid(Uuid::from_u128(0xa000 + number as u128));
            let missing = call(instances, &principal, verb, absent, &instance).await;
            let Outcome::Absent(missing) = missing else {
                panic!("{called} gets a result for an instance that does not exist: {missing:?}");
            };
            let missing = missing.replace(&absent.to_string(), &instance.id.to_string());
            let wanted = match (may.contains(verb), may_read) {
                (true, _) => Outcome::Permitted,
                (false, true) => Outcome::Refused,
                (false, false) => Outcome::Absent(missing),
            };
            if actual != wanted {
                found.push(format!(
                    "{called}: {verb}: {actual:?} instead of {wanted:?}"
                ));
            }
        }
        let key = instance.server.to_string();
        facade.remove("server", &key).await;
    }
    found
}

#[tokio::test(start_paused = true)]
async fn every_principal_has_exactly_the_listed_permissions() {
    let facade = TestFacade::new().await;
    assert_eq!(
        differences(&facade, principals()).await,
        Vec::<String>::new()
    );
}

/// The table reports a principal that may do too much, and one that sees too much.
#[tokio::test(start_paused = true)]
async fn table_reports_wrong_permissions() {
    let own = tenant(1, 1);
    let wrong = [
        (
            "reader",
            project_user(own),
            "reader: stop: Permitted instead of Refused",
        ),
        (
            "user of another organization",
            project_reader(own),
            "user of another organization: stop: Refused instead of Absent",
        ),
    ];
    for (called, principal, expected) in wrong {
        let facade = TestFacade::new().await;
        let mut principals = principals();
        principals.retain(|name, _| name == called);
        principals.get_mut(called).unwrap().0 = principal;
        let found = differences(&facade, principals).await;
        assert!(
            found.iter().any(|line| line.starts_with(expected)),
            "{found:#?}"
        );
    }
}

/// The errors of `create` do not distinguish another tenant's records from records that do not exist.
#[tokio::test(start_paused = true)]
async fn create_reveals_nothing_about_other_tenants() {
    let facade = TestFacade::new().await;
    let (own, foreign, alice) = (tenant(1, 1), tenant(2, 1), project_user(tenant(1, 1)));
    let blue = facade.network("blue").await;
    let theirs = facade.network_in(foreign, north(), "blue").await;
    let sibling = facade.network_in(tenant(1, 2), north(), "blue").await;
    let group = facade.group(theirs, "ssh").await;
    let authority = facade.authority(foreign).await;
    let missing = Uuid::from_u128(0xdead);
    let create_with = async |change: &dyn Fn(&mut NewInstance)| {
        let mut requested = new_instance(blue, "web");
        change(&mut requested);
        let error = facade
            .instances
            .create(&alice, &requested)
            .await
            .unwrap_err();
        let id = |text: String| {
            let ids = [theirs.to_string(), sibling.to_string(), group.to_string()];
            let ids = ids
                .into_iter()
                .chain([authority.to_string(), missing.to_string()]);
            ids.fold(text, |text, id| text.replace(&id, "ID"))
                .replace("golden", "ID")
                .replace("nothing", "ID")
        };
        (
            error.meaning(),
            id(format!("{error:?} {}", error_chain(&error))),
        )
    };
    let absent = create_with(&|new| new.network = NetworkId::from_uuid(missing)).await;
    for hidden in [theirs, sibling] {
        assert_eq!(create_with(&|new| new.network = hidden).await, absent);
    }
    // Also a network in which the name is taken, and one that is being deleted.
    let mut taken = new_instance(theirs, "web");
    (taken.organization, taken.project) = foreign;
    facade
        .instances
        .create(&project_user(foreign), &taken)
        .await
        .unwrap();
    assert_eq!(create_with(&|new| new.network = theirs).await, absent);
    assert_eq!(
        create_with(&|new| new.spec.image = image("golden")).await,
        create_with(&|new| new.spec.image = image("nothing")).await
    );
    let with_group =
        |id| move |new: &mut NewInstance| new.spec.networking.security_groups = [id].into();
    assert_eq!(
        create_with(&with_group(group)).await,
        create_with(&with_group(SecurityGroupId::from_uuid(missing))).await
    );
    let with_authority = |id| move |new: &mut NewInstance| new.spec.ssh_authority = Some(id);
    assert_eq!(
        create_with(&with_authority(authority)).await,
        create_with(&with_authority(SshAuthorityId::from_uuid(missing))).await
    );
    // A principal that cannot see flavors gets the same error whether or not the flavor exists.
    let only = [
        (Verb::Create, Resource::Instances),
        (Verb::Read, Resource::Networks),
    ];
    let only = only.map(|(verb, resource)| Permission::new(verb, resource).unwrap());
    let blind = user_with(scope(own), only);
    let mut messages = Vec::new();
    for id in ["small", "nothing"] {
        let mut requested = new_instance(blue, "web");
        requested.spec.flavor = flavor(id);
        let error = facade
            .instances
            .create(&blind, &requested)
            .await
            .unwrap_err();
        messages.push(error_chain(&error).replace(id, "ID"));
    }
    assert_eq!(messages[0], messages[1]);
}

/// A network of another project gives the same error as a missing one, even to a principal that sees both projects.
#[tokio::test(start_paused = true)]
async fn network_of_another_project_is_not_found_even_if_visible() {
    let facade = TestFacade::new().await;
    let sibling = facade.network_in(tenant(1, 2), north(), "blue").await;
    let absent = NetworkId::from_uuid(Uuid::from_u128(0xdead));
    let organization = Scope::Organization(tenant(1, 1).0);
    let ada = with_roles("ada", &[("organization-administrator", organization)]);
    facade.networks.get(&ada, sibling).await.unwrap();
    let mut messages = Vec::new();
    for network in [sibling, absent] {
        let requested = new_instance(network, "web");
        let error = facade.instances.create(&ada, &requested).await.unwrap_err();
        assert_eq!(error.meaning().status(), 404);
        messages.push(error_chain(&error).replace(&network.to_string(), "ID"));
    }
    assert_eq!(messages[0], messages[1]);
}

#[tokio::test(start_paused = true)]
async fn list_returns_only_what_the_caller_may_list() {
    let facade = TestFacade::new().await;
    let (own, foreign) = (tenant(1, 1), tenant(2, 1));
    let blue = facade.network("blue").await;
    let theirs = facade.network_in(foreign, north(), "blue").await;
    let ours = facade.create(blue, "web").await.instance.id;
    let mut other = new_instance(theirs, "web");
    (other.organization, other.project) = foreign;
    let other = facade
        .instances
        .create(&project_user(foreign), &other)
        .await
        .unwrap();
    let ids = async |principal: &Principal, wanted: &ListInstances| {
        let page = facade.instances.list(principal, wanted).await.unwrap();
        page.instances
            .iter()
            .map(|view| view.instance.id)
            .collect::<BTreeSet<_>>()
    };
    let all = ListInstances::default();
    assert_eq!(ids(&project_user(own), &all).await, [ours].into());
    assert_eq!(
        ids(&project_user(foreign), &all).await,
        [other.instance.id].into()
    );
    assert_eq!(
        ids(&operator(), &all).await,
        [ours, other.instance.id].into()
    );
    let mut of_others = ListInstances::default();
    of_others.organizations = [foreign.0].into();
    assert_eq!(ids(&project_user(own), &of_others).await, [].into());
    let mut in_theirs = ListInstances::default();
    in_theirs.networks = [theirs].into();
    assert_eq!(ids(&project_user(own), &in_theirs).await, [].into());
    let nobody = with_roles("nobody", &[]);
    let error = facade.instances.list(&nobody, &all).await.unwrap_err();
    assert_eq!(error.meaning().status(), 403);
}
