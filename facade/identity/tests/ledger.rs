//! The rules of the ledger.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod support;

use std::sync::Arc;

use fleetwright_identity::{
    Account, Allocation, Amounts, Binding, Defaults, Exceeded, Ledger, LedgerError, Limits,
    OrganizationId, QuotaKind, QuotaKinds, RoleName, Roles, Scope, Verb,
};
use fleetwright_store::{Kind, Query, Store, Transaction};
use support::*;

const OURS: fn() -> OrganizationId = || organization(1);

fn account() -> Account {
    Account::Organization(OURS())
}

fn in_project() -> Account {
    Account::Project(OURS(), project(1))
}

async fn set(ledger: &Ledger, account: Account, limits: Limits) -> Result<(), LedgerError> {
    let operator = operator();
    let build = || ledger.set_limits(Transaction::new(), &operator, &account, &limits);
    ledger
        .commit(account.organization(), build)
        .await
        .map(|_| ())
}

#[tokio::test]
async fn exceeding_a_limit_is_refused_with_kind_total_and_limit() {
    let store = memory();
    let ledger = ledger(&store);
    for number in 0..10 {
        create(&ledger, &allocation(number, amounts(1, 0)))
            .await
            .unwrap();
    }
    let refused = create(&ledger, &allocation("late", amounts(1, 0)))
        .await
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "total servers allocation of 11 would exceed the limit of 10"
    );
    let LedgerError::Exceeded(Exceeded {
        kind, total, limit, ..
    }) = refused
    else {
        panic!("{refused}");
    };
    assert_eq!((kind, total, limit), (QuotaKind::servers(), 11, 10));
    // The instance is refused with its charge, and a released one makes room.
    assert!(store.get(&instance("late")).await.unwrap().is_none());
    delete(&ledger, &allocation(3, amounts(1, 0)))
        .await
        .unwrap();
    create(&ledger, &allocation("late", amounts(1, 0)))
        .await
        .unwrap();
}

#[tokio::test]
async fn unregistered_kind_is_an_error_and_not_unlimited() {
    let store = memory();
    let ledger = ledger(&store);
    let kind = QuotaKind::new("floating-ips").unwrap();
    // Also with the amount zero, so that a misspelt kind is found at once.
    for amount in [0, 1] {
        let wrong = allocation("a", Amounts::new().with(kind.clone(), amount));
        let refused = create(&ledger, &wrong).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "quota kind floating-ips is not registered; use one of gpus, images, networks, public-ips, servers, ssh-authorities, or register it"
        );
    }
    let refused = set(&ledger, account(), Limits::new().with(kind.clone(), 9)).await;
    assert!(matches!(refused, Err(LedgerError::UnknownKind(_))));
    create(&ledger, &allocation("a", amounts(1, 0)))
        .await
        .unwrap();
    let wrong = allocation("a", Amounts::new().with(kind.clone(), 1));
    let refused = resize(&ledger, &wrong).await;
    assert!(matches!(refused, Err(LedgerError::UnknownKind(_))));

    let kinds = QuotaKinds::standard().with(kind, Defaults::organization(1));
    let wider = Ledger::new(store, Arc::new(kinds)).unwrap();
    resize(&wider, &wrong).await.unwrap();
    let refused = create(&wider, &allocation("b", wrong.amounts))
        .await
        .unwrap_err();
    assert!(matches!(refused, LedgerError::Exceeded(_)));
}

#[tokio::test]
async fn public_addresses_are_limited_under_the_kind_they_are_charged() {
    let store = memory();
    let ledger = ledger(&store);
    let with_address = |name| {
        let kinds = [QuotaKind::servers(), QuotaKind::public_ips()];
        allocation(name, kinds.map(|kind| (kind, 1)).into_iter().collect())
    };
    for number in 0..5 {
        create(&ledger, &with_address(number)).await.unwrap();
    }
    let refused = create(&ledger, &with_address(5)).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "total public-ips allocation of 6 would exceed the limit of 5"
    );
    create(&ledger, &allocation(5, amounts(1, 0)))
        .await
        .unwrap();
}

#[tokio::test]
async fn duplicate_name_is_reported_before_quota() {
    let store = memory();
    let ledger = ledger(&store);
    set(
        &ledger,
        account(),
        Limits::new().with(QuotaKind::servers(), 1),
    )
    .await
    .unwrap();
    create(&ledger, &allocation("a", amounts(1, 0)))
        .await
        .unwrap();
    // The same instance again at the limit: a conflict about the instance, not a quota error.
    let refused = create(&ledger, &allocation("a", amounts(1, 0)))
        .await
        .unwrap_err();
    let LedgerError::Store(conflict) = refused else {
        panic!("{refused}");
    };
    assert!(
        conflict.to_string().contains("instance/a must be absent"),
        "{conflict}"
    );
    assert_eq!(
        used(&ledger, account()).await,
        amounts(1, 0).without_zeros()
    );
}

#[tokio::test]
async fn charging_twice_allocates_once() {
    let store = memory();
    let ledger = ledger(&store);
    let paid = allocation("a", amounts(1, 4));
    for _ in 0..2 {
        let build = || ledger.charge(Transaction::new(), &paid);
        ledger
            .commit::<_, _, LedgerError>(OURS(), build)
            .await
            .unwrap();
    }
    assert_eq!(used(&ledger, account()).await, amounts(1, 4));
    assert_eq!(
        ledger.allocation(&paid.pays_for).await.unwrap(),
        Some(paid.clone())
    );
    let again = ledger.charge(Transaction::new(), &paid).await.unwrap();
    assert_eq!((again.checks.len(), again.writes.len()), (1, 0));
    // Other amounts or another project are a different charge.
    let dearer = allocation("a", amounts(1, 8));
    let in_other_project = Allocation::new(
        paid.pays_for.clone(),
        OURS(),
        project(2),
        paid.amounts.clone(),
    );
    for other in [dearer, in_other_project] {
        let refused = ledger.charge(Transaction::new(), &other).await.unwrap_err();
        assert!(
            matches!(refused, LedgerError::AllocationMismatch { .. }),
            "{refused}"
        );
    }
    for _ in 0..2 {
        let build = || ledger.release(Transaction::new(), &paid.pays_for);
        ledger
            .commit::<_, _, LedgerError>(OURS(), build)
            .await
            .unwrap();
    }
    assert_eq!(used(&ledger, account()).await, Amounts::new());
    assert_eq!(used(&ledger, in_project()).await, Amounts::new());
    assert_eq!(ledger.allocation(&paid.pays_for).await.unwrap(), None);
    // An empty account of a project is deleted. The organization's stays, because audits compare its revision.
    let accounts = Query::all(Kind::new("quota-account").unwrap());
    let left = store.list(&accounts).await.unwrap().records;
    let left: Vec<_> = left
        .iter()
        .map(|record| record.id.key.to_string())
        .collect();
    assert_eq!(left, [OURS().to_string()]);
}

#[tokio::test]
async fn recharge_returns_the_amounts_that_undo_it() {
    let store = memory();
    let ledger = ledger(&store);
    let small = allocation("a", amounts(1, 2));
    create(&ledger, &small).await.unwrap();
    let recharge = ledger
        .recharge(Transaction::new(), &small.pays_for, &amounts(1, 8))
        .await
        .unwrap();
    assert_eq!(recharge.before, amounts(1, 2));
    store.commit(&recharge.transaction).await.unwrap();
    assert_eq!(used(&ledger, account()).await, amounts(1, 8));
    // The same again changes nothing.
    resize(&ledger, &allocation("a", amounts(1, 8)))
        .await
        .unwrap();
    assert_eq!(used(&ledger, account()).await, amounts(1, 8));
    resize(&ledger, &allocation("a", recharge.before))
        .await
        .unwrap();
    assert_eq!(used(&ledger, account()).await, amounts(1, 2));

    let refused = resize(&ledger, &allocation("a", amounts(1, 41)))
        .await
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "total gpus allocation of 41 would exceed the limit of 40"
    );
    let nowhere = ledger
        .recharge(Transaction::new(), &instance("b"), &amounts(1, 0))
        .await;
    assert!(matches!(nowhere, Err(LedgerError::NotCharged { .. })));
}

#[tokio::test]
async fn project_limits_apply_within_the_organization() {
    let store = memory();
    let ledger = ledger(&store);
    set(
        &ledger,
        in_project(),
        Limits::new().with(QuotaKind::servers(), 2),
    )
    .await
    .unwrap();
    create(&ledger, &allocation("a", amounts(2, 0)))
        .await
        .unwrap();
    let refused = create(&ledger, &allocation("b", amounts(1, 0)))
        .await
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "total servers allocation of 3 would exceed the project's limit of 2"
    );
    // Another project has no limit of its own, and the organization's limit covers both.
    let other =
        |name, servers| Allocation::new(instance(name), OURS(), project(2), amounts(servers, 0));
    create(&ledger, &other("c", 8)).await.unwrap();
    let refused = create(&ledger, &other("d", 1)).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "total servers allocation of 11 would exceed the limit of 10"
    );
    // A default for every project.
    let kinds =
        QuotaKinds::standard().with(QuotaKind::servers(), Defaults::organization(100).project(9));
    let ledger = Ledger::new(store, Arc::new(kinds)).unwrap();
    create(&ledger, &other("d", 1)).await.unwrap();
    assert!(create(&ledger, &other("e", 1)).await.is_err());
}

#[tokio::test]
async fn limit_cannot_be_lowered_below_use() {
    let store = memory();
    let ledger = ledger(&store);
    create(&ledger, &allocation("a", amounts(3, 0)))
        .await
        .unwrap();
    let servers = |limit| Limits::new().with(QuotaKind::servers(), limit);
    let named = [
        (
            account(),
            "organization 00000000-0000-0000-0000-000000000001",
        ),
        (
            in_project(),
            "project 00000000-0000-0000-0000-000000000065 of organization 00000000-0000-0000-0000-000000000001",
        ),
    ];
    for (account, name) in named {
        let refused = set(&ledger, account, servers(2)).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("a limit of 2 servers is below the 3 that {name} uses; release some first")
        );
        set(&ledger, account, servers(3)).await.unwrap();
    }
    // Returning to a default below the use lowers the limit too.
    set(&ledger, account(), servers(20)).await.unwrap();
    set(&ledger, in_project(), Limits::new()).await.unwrap();
    create(&ledger, &allocation("b", amounts(12, 0)))
        .await
        .unwrap();
    let refused = set(&ledger, account(), Limits::new()).await;
    assert!(matches!(
        refused,
        Err(LedgerError::LimitBelowUse { limit: 10, .. })
    ));
    // A limit of zero is a limit.
    let nothing = Limits::new()
        .with(QuotaKind::servers(), 20)
        .with(QuotaKind::gpus(), 0);
    set(&ledger, account(), nothing).await.unwrap();
    let refused = create(&ledger, &allocation("c", amounts(0, 1)))
        .await
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "total gpus allocation of 1 would exceed the limit of 0"
    );
}

#[tokio::test]
async fn account_above_a_lowered_default_can_release_but_not_charge() {
    let store = memory();
    create(&ledger(&store), &allocation("a", amounts(8, 8)))
        .await
        .unwrap();
    let kinds = QuotaKinds::standard().with(QuotaKind::servers(), Defaults::organization(2));
    let ledger = Ledger::new(Arc::clone(&store), Arc::new(kinds)).unwrap();
    assert!(
        resize(&ledger, &allocation("a", amounts(9, 8)))
            .await
            .is_err()
    );
    // Another kind may grow, and this one may stay or shrink.
    resize(&ledger, &allocation("a", amounts(8, 9)))
        .await
        .unwrap();
    resize(&ledger, &allocation("a", amounts(7, 9)))
        .await
        .unwrap();
    // An unchanged limit is no reason to refuse another one.
    set(&ledger, account(), Limits::new().with(QuotaKind::gpus(), 9))
        .await
        .unwrap();
    // Setting the limit that applies anyway lowers nothing.
    let current_use = Limits::new().with(QuotaKind::servers(), 2);
    set(&ledger, account(), current_use).await.unwrap();
    delete(&ledger, &allocation("a", Amounts::new()))
        .await
        .unwrap();
    assert_eq!(used(&ledger, account()).await, Amounts::new());
}

#[tokio::test]
async fn huge_amounts_do_not_overflow() {
    let store = memory();
    let ledger = ledger(&store);
    set(
        &ledger,
        account(),
        Limits::new().with(QuotaKind::servers(), u64::MAX),
    )
    .await
    .unwrap();
    create(&ledger, &allocation("a", amounts(u64::MAX - 1, 0)))
        .await
        .unwrap();
    let refused = create(&ledger, &allocation("b", amounts(u64::MAX - 1, 0))).await;
    assert!(matches!(refused, Err(LedgerError::Exceeded(_))));
    delete(&ledger, &allocation("a", Amounts::new()))
        .await
        .unwrap();
    assert_eq!(used(&ledger, account()).await, Amounts::new());
}

#[tokio::test]
async fn several_charges_fit_into_one_transaction() {
    let store = memory();
    let ledger = ledger(&store);
    create(&ledger, &allocation("old", amounts(1, 0)))
        .await
        .unwrap();
    let mut together = ledger
        .release(Transaction::new(), &instance("old"))
        .await
        .unwrap();
    for name in ["a", "b", "c"] {
        together = ledger
            .charge(together, &allocation(name, amounts(3, 0)))
            .await
            .unwrap();
    }
    let refused = ledger
        .charge(together.clone(), &allocation("d", amounts(2, 0)))
        .await;
    assert!(matches!(
        refused,
        Err(LedgerError::Exceeded(Exceeded { total: 11, .. }))
    ));
    store.commit(&together).await.unwrap();
    assert_eq!(
        used(&ledger, account()).await,
        amounts(9, 0).without_zeros()
    );
    assert!(ledger.audit(OURS()).await.unwrap().differences.is_empty());
}

#[tokio::test]
async fn reading_and_setting_quota_requires_permission() {
    let store = memory();
    let ledger = ledger(&store);
    let bound = |role: &str, scope| {
        let actor = operator().actor().clone();
        let binding = Binding::new(RoleName::new(role).unwrap(), scope);
        Roles::built_in().principal(actor, [&binding]).unwrap()
    };
    let administrator = bound("organization-administrator", Scope::Organization(OURS()));
    let user = bound("project-user", Scope::Project(OURS(), project(1)));
    let outsider = bound(
        "organization-administrator",
        Scope::Organization(organization(2)),
    );
    let limits = Limits::new().with(QuotaKind::servers(), 5);
    let rows = [
        // The caller; whether it reads and sets the organization's quota; whether it reads and sets the project's.
        (&administrator, [true, false, true, true]),
        (&user, [false, false, true, false]),
        (&outsider, [false; 4]),
    ];
    for (principal, expected) in rows {
        let set = |account| {
            let ledger = &ledger;
            let limits = &limits;
            async move {
                ledger
                    .set_limits(Transaction::new(), principal, &account, limits)
                    .await
            }
        };
        let found = [
            ledger.quota(principal, &account()).await.is_ok(),
            set(account()).await.is_ok(),
            ledger.quota(principal, &in_project()).await.is_ok(),
            set(in_project()).await.is_ok(),
        ];
        assert_eq!(found, expected, "{principal:?}");
    }
    let refused = set(&ledger, account(), limits.clone()).await;
    assert!(refused.is_ok());
    let refused = ledger.quota(&user, &account()).await.unwrap_err();
    let LedgerError::Refused(refused) = refused else {
        panic!("{refused}");
    };
    assert_eq!(
        (refused.verb, refused.scope),
        (Verb::Read, account().scope())
    );
}
