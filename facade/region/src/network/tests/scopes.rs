//! Permissions as a table: a record that a principal may not read looks absent.

use super::*;

/// `Hidden`: the record looks absent. `Refused`: the record is visible, but the call is not allowed. `Done`: the call succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Hidden,
    Refused,
    Done,
}
use Outcome::{Done, Hidden, Refused};

fn outcome<T>(result: Result<T, RecordError>) -> Outcome {
    match result {
        Ok(_) => Done,
        Err(RecordError::NotFound { .. }) => Hidden,
        Err(RecordError::Refused(_)) => Refused,
        Err(error) => panic!("{error}"),
    }
}

fn everybody() -> Vec<(&'static str, Principal, [Outcome; 3])> {
    let [one, two] = [1, 2].map(organization);
    let nobody = Principal::service(ActorName::new("nobody").unwrap(), []);
    let at = |role: &str, scope| user_with_role(role, scope);
    // Each row: principal, then the results of reading, changing and creating.
    vec![
        (
            "user",
            at("project-user", Scope::Project(one, project(1))),
            [Done, Done, Done],
        ),
        (
            "reader",
            at("project-reader", Scope::Project(one, project(1))),
            [Done, Refused, Refused],
        ),
        (
            "administrator",
            at("organization-administrator", Scope::Organization(one)),
            [Done, Done, Done],
        ),
        (
            "auditor",
            at("organization-auditor", Scope::Organization(one)),
            [Done, Refused, Refused],
        ),
        (
            "platform",
            at("platform-administrator", Scope::Global),
            [Done, Done, Done],
        ),
        (
            "neighbour",
            at("project-user", Scope::Project(one, project(2))),
            [Hidden, Hidden, Refused],
        ),
        (
            "namesake",
            at("project-user", Scope::Project(two, project(1))),
            [Hidden, Hidden, Refused],
        ),
        (
            "stranger",
            at("organization-administrator", Scope::Organization(two)),
            [Hidden, Hidden, Refused],
        ),
        ("nobody", nobody, [Hidden, Hidden, Refused]),
    ]
}

#[tokio::test]
async fn every_principal_has_exactly_the_listed_permissions() {
    for (label, principal, [reads, changes, makes]) in everybody() {
        let world = world();
        let blue = world.network("blue").await;
        let group = world.group(blue, "ssh").await;
        let authority = world.authority("ours").await;
        let p = &principal;

        assert_eq!(outcome(world.networks.get(p, blue).await), reads, "{label}");
        assert_eq!(outcome(world.groups.get(p, group).await), reads, "{label}");
        assert_eq!(
            outcome(world.authorities.get(p, authority).await),
            reads,
            "{label}"
        );
        assert_eq!(
            outcome(world.groups.set_rules(p, group, &Rules::default()).await),
            changes,
            "{label}"
        );
        assert_eq!(
            outcome(world.networks.create(p, &new_network("mine")).await),
            makes,
            "{label}"
        );
        assert_eq!(
            outcome(world.authorities.create(p, &new_authority("mine")).await),
            makes,
            "{label}"
        );
        let new = new_group(blue, "mine");
        let created = outcome(world.groups.create(p, &new).await);
        assert_eq!(
            created,
            if reads == Hidden { Hidden } else { makes },
            "{label}"
        );

        assert_eq!(
            outcome(world.groups.delete(p, group).await),
            changes,
            "{label}"
        );
        assert_eq!(
            outcome(world.authorities.delete(p, authority).await),
            changes,
            "{label}"
        );
        assert_eq!(
            outcome(world.networks.delete(p, blue, IfUsed::DeleteFirst).await),
            changes,
            "{label}"
        );
    }
}

#[tokio::test]
async fn hidden_and_missing_records_give_the_same_error() {
    let world = world();
    let blue = world.network("blue").await;
    let stranger = user_with_role(
        "organization-administrator",
        Scope::Organization(organization(2)),
    );
    let absent = NetworkId::new("00000000-0000-4000-8000-000000000000").unwrap();
    let message_of =
        |id: NetworkId, error: RecordError| error.to_string().replace(&id.to_string(), "X");
    let network = |id| world.networks.get(&stranger, id);
    assert_eq!(
        message_of(blue, network(blue).await.unwrap_err()),
        message_of(absent, network(absent).await.unwrap_err())
    );
    let delete = |id| world.networks.delete(&stranger, id, IfUsed::DeleteFirst);
    assert_eq!(
        message_of(blue, delete(blue).await.unwrap_err()),
        message_of(absent, delete(absent).await.unwrap_err())
    );
    // Finishing the deletion of an invisible network has the same result as for a deleted one.
    for id in [blue, absent] {
        assert_eq!(
            world.networks.finish(&stranger, id).await.unwrap(),
            Deletion::Deleted
        );
    }
    assert!(
        world.networks.get(&user(), blue).await.is_ok(),
        "the network still exists"
    );
}

#[tokio::test]
async fn lists_contain_only_what_the_caller_may_list() {
    let world = world();
    let administrator = user_with_role("platform-administrator", Scope::Global);
    for (org, proj) in [(1, 1), (1, 2), (2, 1), (2, 3)] {
        let mut new = new_network("blue");
        (new.organization, new.project) = (organization(org), project(proj));
        world.networks.create(&administrator, &new).await.unwrap();
    }
    let in_org = |org| Scope::Organization(organization(org));
    let in_project = |org, proj| Scope::Project(organization(org), project(proj));
    let auditor = |scope| user_with_role("organization-auditor", scope);
    let reader = |scope| user_with_role("project-reader", scope);
    // Each row: principal, scope, and the number of visible records.
    let table = [
        (administrator.clone(), Scope::Global, 4),
        (administrator, in_org(2), 2),
        (auditor(in_org(1)), Scope::Global, 2),
        (auditor(in_org(1)), in_org(1), 2),
        (auditor(in_org(1)), in_project(1, 2), 1),
        (auditor(in_org(1)), in_org(2), 0),
        (auditor(in_org(1)), in_project(2, 1), 0),
        (reader(in_project(1, 1)), Scope::Global, 1),
        (reader(in_project(1, 1)), in_org(1), 1),
        (reader(in_project(1, 1)), in_org(2), 0),
        (reader(in_project(9, 9)), Scope::Global, 0),
    ];
    for (principal, within, count) in table {
        let listed = world
            .networks
            .list(&principal, &Filter::within(within))
            .await
            .unwrap();
        assert_eq!(listed.items.len(), count, "{principal:?} in {within}");
    }
    let nobody = Principal::service(ActorName::new("nobody").unwrap(), []);
    let refused = world.networks.list(&nobody, &Filter::default()).await;
    assert!(matches!(refused, Err(RecordError::Refused(_))));
    assert!(matches!(
        world.networks.deleting(&nobody).await,
        Err(RecordError::Refused(_))
    ));
}

#[tokio::test]
async fn deletions_of_others_are_not_visible() {
    let world = world();
    let blue = world.network("blue").await;
    world.server("s-1", json!({ "network": blue })).await;
    assert_eq!(
        world.delete(blue, IfUsed::DeleteFirst).await.unwrap(),
        Deletion::Waiting
    );
    let stranger = user_with_role("project-user", Scope::Project(organization(1), project(2)));
    assert_eq!(world.networks.deleting(&stranger).await.unwrap().items, []);
    assert_eq!(
        world.networks.deleting(&user()).await.unwrap().items.len(),
        1
    );
}
