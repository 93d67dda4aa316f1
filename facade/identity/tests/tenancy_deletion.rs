//! Deleting projects and organizations.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod support;

use fleetwright_identity::{
    Account, AuditQuery, Limits, NewProject, NewRoleBinding, PageRequest, QuotaKind, Resource,
    Roles, Scope, ScopeClosed, TenancyError, Verb,
};
use fleetwright_store::{Check, RecordId, Transaction};
use serde_json::json;

use support::{
    amounts, ledger, member, memory, name, operator, organization_named, project_named, role,
    tenancy, tenancy_of, used, user,
};

#[tokio::test]
async fn deletion_needs_an_empty_scope_and_removes_bindings_and_accounts() {
    let store = memory();
    let tenancy = tenancy(&store);
    let ledger = ledger(&store).with_tenancy(tenancy.clone());
    let acme = organization_named(&tenancy, "acme").await;
    let web = project_named(&tenancy, acme, "web").await;
    let scope = Scope::Project(acme, web);
    let admin = Scope::Organization(acme);
    let ada = member(&tenancy, "ada", "organization-administrator", admin).await;
    // More bindings than one transaction removes.
    for number in 0..230 {
        member(&tenancy, &format!("u{number}"), "project-reader", scope).await;
    }
    let limits = Limits::new().with(QuotaKind::servers(), 5);
    for account in [Account::Organization(acme), Account::Project(acme, web)] {
        let root = operator();
        let set = ledger.set_limits(Transaction::new(), &root, &account, &limits);
        store.commit(&set.await.unwrap()).await.unwrap();
    }
    let id = support::instance("i-1");
    let allocation = fleetwright_identity::Allocation::new(id.clone(), acme, web, amounts(1, 0));
    let create = json!({"organization": acme, "project": web});
    let build = || {
        ledger.charge(
            Transaction::new().create(id.clone(), create.clone()),
            &allocation,
        )
    };
    ledger.commit(acme, build).await.unwrap();

    let refused = tenancy.delete_project(&ada, acme, web).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("project {web} is not empty: it has 1 instances; delete that first")
    );
    let refused = tenancy
        .delete_organization(&operator(), acme)
        .await
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "organization {acme} is not empty: it has 1 projects, 1 instances; delete that first"
        )
    );
    // A caller who may delete projects and may not list instances learns no number.
    let roles = Roles::built_in().with_toml(
        "[[role]]\nname = \"sweeper\"\nlevel = \"organization\"\n[role.permissions]\nprojects = [\"read\", \"delete\"]\n",
    );
    let other = tenancy_of(&store, roles.unwrap());
    let sam = member(&other, "sam", "sweeper", admin).await;
    let refused = other.delete_project(&sam, acme, web).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("it has records that the caller may not list"),
        "{refused}"
    );

    let build = || ledger.release(Transaction::new().delete(id.clone()), &id);
    ledger.commit(acme, build).await.unwrap();
    tenancy.delete_project(&ada, acme, web).await.unwrap();
    assert!(matches!(
        tenancy.check_open(&scope).await,
        Err(ScopeClosed::Missing { .. })
    ));
    let page = tenancy
        .bindings(&operator(), &scope, &PageRequest::default())
        .await
        .unwrap();
    assert_eq!(page.items.len(), 0);
    let nobody = tenancy.principal(&user("u7")).await.unwrap().principal;
    assert!(nobody.grants().is_empty());
    let account = |key: String| RecordId::new("quota-account", key).unwrap();
    assert_eq!(
        store.get(&account(format!("{acme}/{web}"))).await.unwrap(),
        None
    );
    assert!(
        store
            .get(&account(acme.to_string()))
            .await
            .unwrap()
            .is_some()
    );
    assert!(used(&ledger, Account::Organization(acme)).await.is_zero());

    tenancy
        .delete_organization(&operator(), acme)
        .await
        .unwrap();
    assert_eq!(store.get(&account(acme.to_string())).await.unwrap(), None);
    let gone = tenancy.principal(ada.actor()).await.unwrap().principal;
    assert!(gone.grants().is_empty());
    let missing = tenancy.organization(&operator(), acme).await;
    assert!(matches!(missing, Err(TenancyError::NotFound { .. })));
    // What happened stays in the log.
    let query = AuditQuery::within(Scope::Organization(acme)).resource(Resource::Projects);
    let log = tenancy
        .audit()
        .list(&operator(), &query)
        .await
        .unwrap()
        .items;
    let verbs: Vec<_> = log.iter().map(|entry| entry.verb).collect();
    assert_eq!(verbs, [Verb::Create, Verb::Delete]);
}

#[tokio::test]
async fn interrupted_deletion_is_continued() {
    let store = memory();
    let tenancy = tenancy(&store);
    let acme = organization_named(&tenancy, "acme").await;
    let web = project_named(&tenancy, acme, "web").await;
    let scope = Scope::Project(acme, web);
    member(&tenancy, "ada", "project-user", scope).await;
    // As the first transaction of a deletion leaves it.
    let id = RecordId::new("project", format!("{acme}/{web}")).unwrap();
    let mut record = store.get(&id).await.unwrap().unwrap();
    record.value["state"] = json!("deleting");
    let closed = Transaction::new()
        .check(Check::Exists(id.clone()))
        .put(id.clone(), record.value);
    store.commit(&closed).await.unwrap();
    assert!(matches!(
        tenancy.check_open(&scope).await,
        Err(ScopeClosed::Deleting { .. })
    ));
    let bind = NewRoleBinding::new(user("eve"), role("project-user"), scope);
    let refused = tenancy.bind(&operator(), &bind).await;
    assert!(matches!(refused, Err(TenancyError::Deleting { .. })));
    let again = NewProject::new(acme, name("web"));
    let refused = tenancy.create_project(&operator(), &again).await;
    assert!(matches!(refused, Err(TenancyError::NameTaken { .. })));
    assert_eq!(tenancy.finish_deletions().await.unwrap(), 1);
    assert_eq!(store.get(&id).await.unwrap(), None);
    let gone = tenancy.principal(&user("ada")).await.unwrap().principal;
    assert!(gone.grants().is_empty());
    assert_eq!(tenancy.finish_deletions().await.unwrap(), 0);
}
