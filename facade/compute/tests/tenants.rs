//! Who may do what to whose instance: a table of everybody × every call, all refused but what is listed; and what is refused to
//! those who may not know of it looks exactly like what does not exist.
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
    ids::{ImageId, NetworkId, SecurityGroupId, SshAuthorityId},
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

/// What a call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    /// The caller may, whether or not it can be done now.
    Permitted,
    /// The caller may not, and may know that.
    Refused,
    /// There is none, it is said: all that is said.
    Absent(String),
}

fn told<T>(answer: Result<T, ComputeError>) -> Told {
    match answer.map_err(|error| {
        (
            error.meaning().status(),
            format!("{error:?} {}", error_chain(&error)),
        )
    }) {
        Err((403, _)) => Told::Refused,
        Err((404, words)) => Told::Absent(words),
        Ok(_) | Err(_) => Told::Permitted,
    }
}

async fn call(
    instances: &Instances,
    who: &Principal,
    call: &str,
    id: InstanceId,
    as_it_is: &Instance,
) -> Told {
    let mut update = UpdateInstance::of(as_it_is);
    update.description = Some("changed".to_owned());
    let copy = ImageId::new(Uuid::from_u128(77).to_string()).unwrap();
    let copy = NewSnapshot::new(copy, name("copy"));
    match call {
        "read" => told(instances.read(who, id).await),
        "events" => told(instances.events(who, id).await),
        "inspect" => told(instances.inspect(who, id).await),
        "plan-update" => told(instances.plan_update(who, id, &update).await),
        "update" => told(instances.update(who, id, &update).await),
        "start" => told(instances.start(who, id).await),
        "stop" => told(instances.stop(who, id).await),
        "reboot" => told(instances.reboot(who, id, Reboot::Soft).await),
        "replace" => told(instances.replace(who, id).await),
        "console-output" => told(instances.console_output(who, id, None).await),
        "console-session" => told(instances.console_session(who, id).await),
        "ssh-key" => told(instances.ssh_key(who, id).await),
        "snapshot" => told(instances.snapshot(who, id, &copy).await),
        "delete" => told(instances.delete(who, id).await),
        other => panic!("{other} is no call"),
    }
}

/// Principals by name, each with the calls that it may make.
type People = BTreeMap<String, (Principal, BTreeSet<&'static str>)>;

/// Every principal of the table.
fn people() -> People {
    let (here, beside, away) = (tenant(1, 1), tenant(1, 2), tenant(2, 1));
    let all_but_inspect = || {
        CALLS
            .into_iter()
            .filter(|call| *call != "inspect")
            .collect()
    };
    let looking = || BTreeSet::from(["read", "events"]);
    let whole = |tenant: Tenant| Scope::Organization(tenant.0);
    let administrator =
        |tenant| with_roles("ada", &[("organization-administrator", whole(tenant))]);
    let auditor = |tenant| with_roles("otto", &[("organization-auditor", whole(tenant))]);
    let mut people = BTreeMap::from([
        (
            "nobody".to_owned(),
            (with_roles("nobody", &[]), BTreeSet::new()),
        ),
        (
            "user here".to_owned(),
            (project_user(here), all_but_inspect()),
        ),
        ("reader here".to_owned(), (project_reader(here), looking())),
        (
            "user beside".to_owned(),
            (project_user(beside), BTreeSet::new()),
        ),
        (
            "reader beside".to_owned(),
            (project_reader(beside), BTreeSet::new()),
        ),
        (
            "user away".to_owned(),
            (project_user(away), BTreeSet::new()),
        ),
        (
            "administrator".to_owned(),
            (administrator(here), all_but_inspect()),
        ),
        ("auditor".to_owned(), (auditor(here), looking())),
        (
            "administrator away".to_owned(),
            (administrator(away), BTreeSet::new()),
        ),
        ("auditor away".to_owned(), (auditor(away), BTreeSet::new())),
        ("operator".to_owned(), (operator(), CALLS.into())),
    ]);
    // Whoever has one permission alone, or one and that to read, or all of another project's.
    let table: [(Verb, &[&str]); 12] = [
        (Verb::Create, &[]),
        (Verb::Read, &["read", "events"]),
        (Verb::List, &[]),
        // What is answered is the instance, so it takes more than the permission to update.
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
        let who = user_with(scope(here), [one]);
        people.insert(
            format!("{} alone", verb.as_str()),
            (who, alone.iter().copied().collect()),
        );
        let who = user_with(scope(here), [one, on(Verb::Read, Resource::Instances)]);
        let mut may: BTreeSet<_> = alone.iter().copied().collect();
        may.extend(["read", "events"]);
        if verb == Verb::Update {
            may.extend(["plan-update", "update"]);
        }
        people.insert(format!("{} and read", verb.as_str()), (who, may));
    }
    let every = |verb| on(verb, Resource::Instances);
    let who = user_with(scope(away), Verb::ALL.map(every));
    people.insert("everything away".to_owned(), (who, BTreeSet::new()));
    let servers = [on(Verb::Read, Resource::Servers), every(Verb::Read)];
    let may = ["read", "events", "inspect"].into();
    people.insert(
        "inspector".to_owned(),
        (user_with(scope(here), servers), may),
    );
    let who = user_with(scope(here), [on(Verb::Read, Resource::Servers)]);
    people.insert("of servers alone".to_owned(), (who, BTreeSet::new()));
    people
}

/// Every place in the table that is not as it should be.
async fn differences(facade: &TestFacade, people: People) -> Vec<String> {
    let instances = &facade.instances;
    let blue = facade.network("blue").await;
    let mut found = Vec::new();
    for (number, (called, (who, may))) in people.into_iter().enumerate() {
        let made = new_instance(blue, &format!("i{number}"));
        let made = facade.instances.create(&operator(), &made).await.unwrap();
        let instance = made.instance;
        facade.make_machine(&instance).await;
        let knows = may.contains("read");
        for verb in CALLS {
            let answer = call(instances, &who, verb, instance.id, &instance).await;
            let absent = InstanceId::from_uuid(Uuid::from_u128(0xa000 + number as u128));
            let of_none = call(instances, &who, verb, absent, &instance).await;
            let Told::Absent(of_none) = of_none else {
                panic!("{called} is told of an instance that is not there: {of_none:?}");
            };
            let of_none = of_none.replace(&absent.to_string(), &instance.id.to_string());
            let wanted = match (may.contains(verb), knows) {
                (true, _) => Told::Permitted,
                (false, true) => Told::Refused,
                (false, false) => Told::Absent(of_none),
            };
            if answer != wanted {
                found.push(format!(
                    "{called}: {verb}: {answer:?} instead of {wanted:?}"
                ));
            }
        }
        let key = instance.server.to_string();
        facade.remove("server", &key).await;
    }
    found
}

#[tokio::test(start_paused = true)]
async fn everybody_may_what_the_table_says_and_nothing_else() {
    let facade = TestFacade::new().await;
    assert_eq!(differences(&facade, people()).await, Vec::<String>::new());
}

/// The table notices a principal that may do more than it should, and one that knows what it should not.
#[tokio::test(start_paused = true)]
async fn table_reports_wrong_permissions() {
    let here = tenant(1, 1);
    let wrong = [
        (
            "reader here",
            project_user(here),
            "reader here: stop: Permitted instead of Refused",
        ),
        (
            "user away",
            project_reader(here),
            "user away: stop: Refused instead of Absent",
        ),
    ];
    for (called, principal, expected) in wrong {
        let facade = TestFacade::new().await;
        let mut people = people();
        people.retain(|name, _| name == called);
        people.get_mut(called).unwrap().0 = principal;
        let found = differences(&facade, people).await;
        assert!(
            found.iter().any(|line| line.starts_with(expected)),
            "{found:#?}"
        );
    }
}

/// What another tenant has is told apart from what nobody has by nothing that a creation answers.
#[tokio::test(start_paused = true)]
async fn a_creation_tells_nothing_of_what_others_have() {
    let facade = TestFacade::new().await;
    let (here, away, alice) = (tenant(1, 1), tenant(2, 1), project_user(tenant(1, 1)));
    let blue = facade.network("blue").await;
    let theirs = facade.network_in(away, north(), "blue").await;
    let beside = facade.network_in(tenant(1, 2), north(), "blue").await;
    let group = facade.group(theirs, "ssh").await;
    let authority = facade.authority(away).await;
    let no = Uuid::from_u128(0xdead);
    let ask = async |change: &dyn Fn(&mut NewInstance)| {
        let mut asked = new_instance(blue, "web");
        change(&mut asked);
        let error = facade.instances.create(&alice, &asked).await.unwrap_err();
        let id = |text: String| {
            let ids = [theirs.to_string(), beside.to_string(), group.to_string()];
            let ids = ids
                .into_iter()
                .chain([authority.to_string(), no.to_string()]);
            ids.fold(text, |text, id| text.replace(&id, "ID"))
                .replace("golden", "ID")
                .replace("nothing", "ID")
        };
        (
            error.meaning(),
            id(format!("{error:?} {}", error_chain(&error))),
        )
    };
    let absent = ask(&|new| new.network = NetworkId::from_uuid(no)).await;
    for hidden in [theirs, beside] {
        assert_eq!(ask(&|new| new.network = hidden).await, absent);
    }
    // Also one in which the name is taken, and one that is going.
    let mut taken = new_instance(theirs, "web");
    (taken.organization, taken.project) = away;
    facade
        .instances
        .create(&project_user(away), &taken)
        .await
        .unwrap();
    assert_eq!(ask(&|new| new.network = theirs).await, absent);
    assert_eq!(
        ask(&|new| new.spec.image = image("golden")).await,
        ask(&|new| new.spec.image = image("nothing")).await
    );
    let with_group =
        |id| move |new: &mut NewInstance| new.spec.networking.security_groups = [id].into();
    assert_eq!(
        ask(&with_group(group)).await,
        ask(&with_group(SecurityGroupId::from_uuid(no))).await
    );
    let with_authority = |id| move |new: &mut NewInstance| new.spec.ssh_authority = Some(id);
    assert_eq!(
        ask(&with_authority(authority)).await,
        ask(&with_authority(SshAuthorityId::from_uuid(no))).await
    );
    // Who sees no flavors is told of none, whether or not there is one.
    let only = [
        (Verb::Create, Resource::Instances),
        (Verb::Read, Resource::Networks),
    ];
    let only = only.map(|(verb, resource)| Permission::new(verb, resource).unwrap());
    let blind = user_with(scope(here), only);
    let mut words = Vec::new();
    for id in ["small", "nothing"] {
        let mut asked = new_instance(blue, "web");
        asked.spec.flavor = flavor(id);
        let error = facade.instances.create(&blind, &asked).await.unwrap_err();
        words.push(error_chain(&error).replace(id, "ID"));
    }
    assert_eq!(words[0], words[1]);
}

/// The network is the root of an instance's scope: one of another project is none, also to somebody who sees both.
#[tokio::test(start_paused = true)]
async fn a_network_of_another_project_is_none_also_to_who_sees_it() {
    let facade = TestFacade::new().await;
    let beside = facade.network_in(tenant(1, 2), north(), "blue").await;
    let absent = NetworkId::from_uuid(Uuid::from_u128(0xdead));
    let organization = Scope::Organization(tenant(1, 1).0);
    let ada = with_roles("ada", &[("organization-administrator", organization)]);
    facade.networks.get(&ada, beside).await.unwrap();
    let mut words = Vec::new();
    for network in [beside, absent] {
        let asked = new_instance(network, "web");
        let error = facade.instances.create(&ada, &asked).await.unwrap_err();
        assert_eq!(error.meaning().status(), 404);
        words.push(error_chain(&error).replace(&network.to_string(), "ID"));
    }
    assert_eq!(words[0], words[1]);
}

#[tokio::test(start_paused = true)]
async fn lists_show_what_the_caller_may_list_and_no_error_for_the_rest() {
    let facade = TestFacade::new().await;
    let (here, away) = (tenant(1, 1), tenant(2, 1));
    let blue = facade.network("blue").await;
    let theirs = facade.network_in(away, north(), "blue").await;
    let ours = facade.create(blue, "web").await.instance.id;
    let mut other = new_instance(theirs, "web");
    (other.organization, other.project) = away;
    let other = facade
        .instances
        .create(&project_user(away), &other)
        .await
        .unwrap();
    let ids = async |who: &Principal, wanted: &ListInstances| {
        let page = facade.instances.list(who, wanted).await.unwrap();
        page.instances
            .iter()
            .map(|view| view.instance.id)
            .collect::<BTreeSet<_>>()
    };
    let all = ListInstances::default();
    assert_eq!(ids(&project_user(here), &all).await, [ours].into());
    assert_eq!(
        ids(&project_user(away), &all).await,
        [other.instance.id].into()
    );
    assert_eq!(
        ids(&operator(), &all).await,
        [ours, other.instance.id].into()
    );
    let mut of_others = ListInstances::default();
    of_others.organizations = [away.0].into();
    assert_eq!(ids(&project_user(here), &of_others).await, [].into());
    let mut in_theirs = ListInstances::default();
    in_theirs.networks = [theirs].into();
    assert_eq!(ids(&project_user(here), &in_theirs).await, [].into());
    let nobody = with_roles("nobody", &[]);
    let error = facade.instances.list(&nobody, &all).await.unwrap_err();
    assert_eq!(error.meaning().status(), 403);
}
