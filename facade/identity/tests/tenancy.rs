//! Organizations, projects and role bindings: who may do what, names, pages, deletion, and what it costs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod support;

use std::sync::Arc;

use fleetwright_identity::{
    Account, Actor, ActorName, AuditLog, Limits, NewOrganization, NewProject, NewRoleBinding,
    PageRequest, Principal, QuotaKind, Resource, Roles, Scope, ScopeClosed, Tenancy, TenancyError,
    Verb,
};
use fleetwright_runtime::{clock::SystemClock, entropy::OsEntropy};
use fleetwright_store::{Store, Transaction};

use support::{
    Counted, Mixed, ledger, member, memory, name, operator, organization, organization_named,
    project, project_named, role, tenancy, tenancy_of, user,
};

#[tokio::test]
async fn names_are_unique_in_their_scope_and_ids_can_be_repeated() {
    let tenancy = tenancy(&memory());
    let acme = organization_named(&tenancy, "acme").await;
    let again = NewOrganization::new(name("acme"));
    match tenancy.create_organization(&operator(), &again).await {
        Err(TenancyError::NameTaken { id, .. }) => assert_eq!(id, acme.to_string()),
        other => panic!("{other:?}"),
    }
    let other = organization_named(&tenancy, "other").await;
    let web = project_named(&tenancy, acme, "web").await;
    project_named(&tenancy, other, "web").await;
    let again = NewProject::new(acme, name("web"));
    match tenancy.create_project(&operator(), &again).await {
        Err(TenancyError::NameTaken { id, .. }) => assert_eq!(id, web.to_string()),
        other => panic!("{other:?}"),
    }

    // A request with an id can be repeated, and its id is taken for another name.
    let new = NewProject::new(acme, name("batch")).with_id(project(7));
    let first = tenancy.create_project(&operator(), &new).await.unwrap();
    let again = tenancy.create_project(&operator(), &new).await.unwrap();
    assert_eq!(first, again);
    let renamed = NewProject::new(acme, name("else")).with_id(project(7));
    let refused = tenancy.create_project(&operator(), &renamed).await;
    assert!(matches!(refused, Err(TenancyError::IdTaken { .. })));
    let new = NewOrganization::new(name("third")).with_id(organization(3));
    let first = tenancy
        .create_organization(&operator(), &new)
        .await
        .unwrap();
    let again = tenancy
        .create_organization(&operator(), &new)
        .await
        .unwrap();
    assert_eq!(first, again);
    // The same project id in another organization is another project.
    let new = NewProject::new(organization(3), name("batch")).with_id(project(7));
    tenancy.create_project(&operator(), &new).await.unwrap();
}

#[tokio::test]
async fn strangers_get_the_same_for_what_exists_and_what_does_not() {
    let tenancy = tenancy(&memory());
    let acme = organization_named(&tenancy, "acme").await;
    let web = project_named(&tenancy, acme, "web").await;
    let other = organization_named(&tenancy, "other").await;
    let admin = Scope::Organization(other);
    let eve = member(&tenancy, "eve", "organization-administrator", admin).await;
    let (no_organization, no_project) = (organization(99), project(99));
    let hide = |error: TenancyError| {
        let text = format!("{error}: {:?}", std::error::Error::source(&error));
        text.replace(&acme.to_string(), "O")
            .replace(&web.to_string(), "P")
            .replace(&no_organization.to_string(), "O")
            .replace(&no_project.to_string(), "P")
    };
    let mut found = Vec::new();
    for (organization, project) in [
        (acme, web),
        (acme, no_project),
        (no_organization, no_project),
    ] {
        let scope = Scope::Project(organization, project);
        let new = NewProject::new(organization, name("mine"));
        let bind = NewRoleBinding::new(user("eve"), role("project-user"), scope);
        let page = PageRequest::default();
        found.push([
            hide(tenancy.organization(&eve, organization).await.unwrap_err()),
            hide(
                tenancy
                    .delete_organization(&eve, organization)
                    .await
                    .unwrap_err(),
            ),
            hide(
                tenancy
                    .project(&eve, organization, project)
                    .await
                    .unwrap_err(),
            ),
            hide(
                tenancy
                    .delete_project(&eve, organization, project)
                    .await
                    .unwrap_err(),
            ),
            hide(tenancy.create_project(&eve, &new).await.unwrap_err()),
            hide(
                tenancy
                    .projects(&eve, organization, &page)
                    .await
                    .unwrap_err(),
            ),
            hide(tenancy.bind(&eve, &bind).await.unwrap_err()),
            hide(tenancy.bindings(&eve, &scope, &page).await.unwrap_err()),
        ]);
    }
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0], found[2]);
    // A member who may read a project may know that it may not delete it.
    let bob = member(&tenancy, "bob", "project-user", Scope::Project(acme, web)).await;
    let refused = tenancy.delete_project(&bob, acme, web).await;
    assert!(matches!(refused, Err(TenancyError::Refused(_))));
}

#[tokio::test]
async fn lists_have_pages_and_show_only_what_the_caller_may_list() {
    let store = memory();
    let tenancy = tenancy(&store);
    let acme = organization_named(&tenancy, "acme").await;
    let other = organization_named(&tenancy, "other").await;
    let mut ids = Vec::new();
    for number in 0..7 {
        ids.push(project_named(&tenancy, acme, &format!("p{number}")).await);
        project_named(&tenancy, other, &format!("p{number}")).await;
    }
    ids.sort();
    let admin = Scope::Organization(acme);
    let ada = member(&tenancy, "ada", "organization-administrator", admin).await;
    let mut listed = Vec::new();
    let mut request = PageRequest::default().limit(3);
    loop {
        let page = tenancy.projects(&ada, acme, &request).await.unwrap();
        assert!(page.items.len() <= 3);
        listed.extend(page.items.into_iter().map(|project| project.id));
        match page.next {
            Some(next) => request = request.after(next),
            None => break,
        }
    }
    assert_eq!(listed, ids);
    let organizations = |principal: Principal, request: PageRequest| {
        let tenancy = tenancy.clone();
        async move {
            let page = tenancy.organizations(&principal, &request).await.unwrap();
            let ids: Vec<_> = page.items.iter().map(|one| one.id).collect();
            (ids, page.next)
        }
    };
    assert_eq!(
        organizations(ada, PageRequest::default()).await,
        (vec![acme], None)
    );
    let mut both = [acme, other];
    both.sort();
    let (first, next) = organizations(operator(), PageRequest::default().limit(1)).await;
    let request = PageRequest::default().limit(1).after(next.unwrap());
    assert_eq!(
        (first, organizations(operator(), request).await),
        (vec![both[0]], (vec![both[1]], None))
    );

    // A role with the permission in single projects lists these.
    let roles = Roles::built_in().with_toml(
        "[[role]]\nname = \"lister\"\nlevel = \"project\"\n[role.permissions]\nprojects = [\"list\"]\n",
    );
    let tenancy = tenancy_of(&store, roles.unwrap());
    for id in [ids[1], ids[4]] {
        member(&tenancy, "lou", "lister", Scope::Project(acme, id)).await;
    }
    let lou = tenancy.principal(&user("lou")).await.unwrap().principal;
    let page = tenancy
        .projects(&lou, acme, &PageRequest::default().limit(1))
        .await
        .unwrap();
    assert_eq!(page.items[0].id, ids[1]);
    let rest = PageRequest::default().after(page.next.unwrap());
    let page = tenancy.projects(&lou, acme, &rest).await.unwrap();
    assert_eq!(
        (page.items.len(), page.items[0].id, page.next),
        (1, ids[4], None)
    );
    assert!(
        tenancy
            .projects(&lou, other, &PageRequest::default())
            .await
            .is_err()
    );
}

#[tokio::test]
async fn nothing_is_created_where_nothing_exists() {
    let store = memory();
    let tenancy = tenancy(&store);
    let ledger = ledger(&store).with_tenancy(tenancy.clone());
    let acme = organization_named(&tenancy, "acme").await;
    for scope in [
        Scope::Organization(organization(9)),
        Scope::Project(acme, project(9)),
    ] {
        let closed = tenancy.check_open(&scope).await;
        assert!(
            matches!(closed, Err(ScopeClosed::Missing { .. })),
            "{scope}"
        );
    }
    let new = NewProject::new(organization(9), name("web"));
    let refused = tenancy.create_project(&operator(), &new).await;
    assert!(matches!(
        refused,
        Err(TenancyError::NotFound {
            what: "organization",
            ..
        })
    ));
    let missing = Scope::Project(acme, project(9));
    let bind = NewRoleBinding::new(user("eve"), role("project-user"), missing);
    let refused = tenancy.bind(&operator(), &bind).await;
    assert!(matches!(
        refused,
        Err(TenancyError::NotFound {
            what: "project",
            ..
        })
    ));
    let limits = Limits::new().with(QuotaKind::servers(), 1);
    let account = Account::Project(acme, project(9));
    let refused = ledger
        .set_limits(Transaction::new(), &operator(), &account, &limits)
        .await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        format!("there is no project {}", project(9))
    );
}

#[tokio::test]
async fn last_administrator_stays() {
    let store = memory();
    let tenancy = tenancy(&store);
    let acme = organization_named(&tenancy, "acme").await;
    let scope = Scope::Organization(acme);
    let bind = |called: &str, with: &str| NewRoleBinding::new(user(called), role(with), scope);
    let ada = member(&tenancy, "ada", "organization-administrator", scope).await;
    let hers = bind("ada", "organization-administrator");
    let hers = tenancy.bind(&operator(), &hers).await.unwrap().id;
    member(&tenancy, "aud", "organization-auditor", scope).await;
    let refused = tenancy.unbind(&ada, hers).await;
    assert!(matches!(refused, Err(TenancyError::LastAdministrator(_))));
    let bob = member(&tenancy, "bob", "organization-administrator", scope).await;
    tenancy.unbind(&ada, hers).await.unwrap();
    let his = bind("bob", "organization-administrator");
    let his = tenancy.bind(&operator(), &his).await.unwrap().id;
    let refused = tenancy.unbind(&bob, his).await;
    assert!(matches!(refused, Err(TenancyError::LastAdministrator(_))));
    // An administrator of the platform can remove the last one of an organization.
    tenancy.unbind(&operator(), his).await.unwrap();

    // Of two administrators who remove each other at the same time, one stays.
    for round in 0..50 {
        let mut ids = Vec::new();
        for called in ["one", "two"] {
            let new = bind(called, "organization-administrator");
            ids.push(tenancy.bind(&operator(), &new).await.unwrap().id);
        }
        let [one, two] = ["one", "two"].map(user);
        let one = tenancy.principal(&one).await.unwrap().principal;
        let two = tenancy.principal(&two).await.unwrap().principal;
        let (first, second) = (ids[round % 2], ids[1 - round % 2]);
        // Other calls run between the reads and the commit of each.
        let mixed: Arc<dyn Store> = Mixed::counting(store.clone(), round as u64);
        let racing = tenancy_of(&mixed, Roles::built_in());
        let results = tokio::join!(racing.unbind(&one, first), racing.unbind(&two, second));
        let removed = [results.0.is_ok(), results.1.is_ok()];
        assert_eq!(removed.iter().filter(|ok| **ok).count(), 1, "{results:?}");
    }
}

#[tokio::test]
async fn first_administrator_is_named_once() {
    let tenancy = tenancy(&memory());
    let [olga, eve] = ["olga", "eve"].map(user);
    let first = tenancy.bootstrap(&olga).await.unwrap();
    assert_eq!(tenancy.bootstrap(&olga).await.unwrap(), first);
    let refused = tenancy.bootstrap(&eve).await;
    assert!(matches!(refused, Err(TenancyError::AlreadyBootstrapped)));
    let service = Actor::Service(ActorName::new("compute").unwrap());
    let refused = tenancy.bootstrap(&service).await;
    assert!(matches!(refused, Err(TenancyError::NotAUser(_))));
    let olga = tenancy.principal(&olga).await.unwrap().principal;
    olga.authorize(Verb::Create, Resource::Organizations, &Scope::Global)
        .unwrap();
    // She cannot remove herself, and nobody above her could undo it.
    let refused = tenancy.unbind(&olga, first.id).await;
    assert!(matches!(
        refused,
        Err(TenancyError::LastAdministrator(Scope::Global))
    ));
}

#[tokio::test]
async fn role_that_is_no_longer_defined_grants_nothing_and_locks_nobody_out() {
    let store = memory();
    let tenancy = tenancy(&store);
    let acme = organization_named(&tenancy, "acme").await;
    let scope = Scope::Organization(acme);
    let roles = Roles::built_in().with_toml(
        "[[role]]\nname = \"old\"\nlevel = \"organization\"\n[role.permissions]\nprojects = [\"create\"]\n",
    );
    let before = tenancy_of(&store, roles.unwrap());
    member(&before, "ada", "old", scope).await;
    member(&before, "ada", "organization-auditor", scope).await;
    let resolved = tenancy.principal(&user("ada")).await.unwrap();
    assert_eq!(
        (resolved.principal.grants().len(), resolved.ignored.len()),
        (1, 1)
    );
    assert!(
        resolved
            .principal
            .authorize(Verb::Create, Resource::Projects, &scope)
            .is_err()
    );
}

#[tokio::test]
async fn bindings_of_one_user_in_an_organization_are_limited() {
    let tenancy = tenancy(&memory());
    let acme = organization_named(&tenancy, "acme").await;
    for number in 0..100 {
        let id = project_named(&tenancy, acme, &format!("p{number}")).await;
        member(&tenancy, "ada", "project-reader", Scope::Project(acme, id)).await;
    }
    let id = project_named(&tenancy, acme, "more").await;
    let more = NewRoleBinding::new(
        user("ada"),
        role("project-reader"),
        Scope::Project(acme, id),
    );
    let refused = tenancy.bind(&operator(), &more).await;
    assert!(matches!(
        refused,
        Err(TenancyError::TooManyBindings { limit: 100, .. })
    ));
    // Another organization is not affected.
    let other = organization_named(&tenancy, "other").await;
    member(
        &tenancy,
        "ada",
        "organization-auditor",
        Scope::Organization(other),
    )
    .await;
}

#[tokio::test]
async fn principal_costs_one_read_however_many_actors_there_are() {
    let counted = Counted::over(&memory());
    let store: Arc<dyn Store> = counted.clone();
    let audit = AuditLog::new(store.clone(), Arc::new(SystemClock), Arc::new(OsEntropy)).unwrap();
    let tenancy = Tenancy::new(store, Arc::new(Roles::built_in()), audit).unwrap();
    let acme = organization_named(&tenancy, "acme").await;
    let scope = Scope::Organization(acme);
    member(&tenancy, "ada", "organization-auditor", scope).await;
    for others in [10, 300] {
        for number in 0..others {
            member(
                &tenancy,
                &format!("u{number}"),
                "organization-auditor",
                scope,
            )
            .await;
        }
        counted.reset();
        tenancy.principal(&user("ada")).await.unwrap();
        assert_eq!(counted.calls_and_records(), (1, 1), "among {others} others");
    }
}
