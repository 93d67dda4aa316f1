//! Audit and repair of the ledger.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod support;

use std::sync::Arc;

use fleetwright_identity::{
    Account, Allocation, Amounts, Audit, Difference, LedgerError, Limits, QuotaKind,
};
use fleetwright_store::{RecordId, Transaction};
use serde_json::json;
use support::{
    flaky::{CommitFault, Flaky},
    *,
};

fn account() -> Account {
    Account::Organization(organization(1))
}

fn in_project() -> Account {
    Account::Project(organization(1), project(1))
}

fn differences(result: Result<Audit, LedgerError>) -> Vec<Difference> {
    result.unwrap().differences
}

#[tokio::test]
async fn audit_finds_tampering_and_repair_corrects_it() {
    let store = memory();
    let ledger = ledger(&store);
    for number in 0..3 {
        create(&ledger, &allocation(number, amounts(1, 2)))
            .await
            .unwrap();
    }
    let clean = ledger.audit(organization(1)).await.unwrap();
    assert_eq!(
        (
            clean.allocations,
            clean.differences.len(),
            clean.unused.len()
        ),
        (3, 0, 0)
    );

    // Somebody deletes an allocation and an instance without the ledger.
    let allocation = RecordId::new("allocation", "instance/0").unwrap();
    let tampering = Transaction::new().delete(allocation).delete(instance(1));
    store.commit(&tampering).await.unwrap();
    let found = ledger.audit(organization(1)).await.unwrap();
    assert_eq!(found.unused, [instance(1)]);
    let message: Vec<_> = found
        .differences
        .iter()
        .map(|d| (d.account, d.kind.as_str(), d.recorded, d.allocated))
        .collect();
    let expected = [
        (account(), "gpus", 6, 4),
        (account(), "servers", 3, 2),
        (in_project(), "gpus", 6, 4),
        (in_project(), "servers", 3, 2),
    ];
    assert_eq!(message, expected);
    assert_eq!(
        ledger.repair(&operator(), organization(1)).await.unwrap(),
        found
    );
    assert_eq!(used(&ledger, account()).await, amounts(2, 4));
    assert!(differences(ledger.audit(organization(1)).await).is_empty());
    assert!(differences(ledger.repair(&operator(), organization(1)).await).is_empty());
}

#[tokio::test]
async fn too_small_recorded_use_blocks_release_until_repaired() {
    let store = memory();
    let ledger = ledger(&store);
    create(&ledger, &allocation("a", amounts(1, 0)))
        .await
        .unwrap();
    let key = RecordId::new("quota-account", organization(1).to_string()).unwrap();
    store.commit(&Transaction::new().delete(key)).await.unwrap();
    let stopped = delete(&ledger, &allocation("a", Amounts::new()))
        .await
        .unwrap_err();
    assert!(
        matches!(stopped, LedgerError::Inconsistent { .. }),
        "{stopped}"
    );
    assert_eq!(
        differences(ledger.repair(&operator(), organization(1)).await).len(),
        1
    );
    delete(&ledger, &allocation("a", Amounts::new()))
        .await
        .unwrap();
}

#[tokio::test]
async fn repair_corrects_more_accounts_than_fit_into_one_transaction() {
    let store = memory();
    let ledger = ledger(&store);
    let limits = Limits::new().with(QuotaKind::servers(), 1000);
    let (operator, ours) = (operator(), account());
    let wide = ledger.set_limits(Transaction::new(), &operator, &ours, &limits);
    store.commit(&wide.await.unwrap()).await.unwrap();
    let mut tampering = Vec::new();
    for number in 0..250 {
        let project = project(number);
        let paid = Allocation::new(instance(number), organization(1), project, amounts(1, 0));
        create(&ledger, &paid).await.unwrap();
        let key = format!("{}/{project}", organization(1));
        tampering.push(RecordId::new("quota-account", key).unwrap());
    }
    for id in tampering {
        store.commit(&Transaction::new().delete(id)).await.unwrap();
    }
    assert_eq!(
        differences(ledger.repair(&operator, organization(1)).await).len(),
        250
    );
    assert!(differences(ledger.audit(organization(1)).await).is_empty());
}

#[tokio::test]
async fn unreadable_allocation_is_reported_and_nothing_is_repaired() {
    let store = memory();
    let ledger = ledger(&store);
    create(&ledger, &allocation("a", amounts(1, 0)))
        .await
        .unwrap();
    let id = RecordId::new("allocation", "instance/a").unwrap();
    let unreadable =
        json!({"organization": organization(1), "project": project(1), "amounts": "secret"});
    store
        .commit(&Transaction::new().put(id, unreadable))
        .await
        .unwrap();
    let message = ledger
        .repair(&operator(), organization(1))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("allocation/instance/a") && !message.contains("secret"),
        "{message}"
    );
    assert_eq!(
        used(&ledger, account()).await,
        amounts(1, 0).without_zeros()
    );
}

/// A repair corrects only what was wrong, whatever is charged and released meanwhile.
#[tokio::test]
async fn repair_is_exact_during_concurrent_writes() {
    for seed in 0..300_u64 {
        let store = memory();
        for number in 0..3 {
            create(&ledger(&store), &allocation(number, amounts(1, 2)))
                .await
                .unwrap();
        }
        for key in [
            organization(1).to_string(),
            format!("{}/{}", organization(1), project(1)),
        ] {
            let id = RecordId::new("quota-account", key).unwrap();
            let mut value = store.get(&id).await.unwrap().unwrap().value;
            value["used"] = json!({"servers": 5, "gpus": 9});
            store
                .commit(&Transaction::new().put(id, value))
                .await
                .unwrap();
        }
        let replica = |number: u64| ledger(&Mixed::over(Arc::clone(&store), seed + number));
        let (repairing, creating, deleting) = (replica(0), replica(1000), replica(2000));
        let operator = operator();
        let (repaired, (), ()) = tokio::join!(
            repairing.repair(&operator, organization(1)),
            async {
                for number in 10..13 {
                    create(&creating, &allocation(number, amounts(1, 0)))
                        .await
                        .unwrap();
                }
            },
            async {
                for number in 0..2 {
                    delete(&deleting, &allocation(number, amounts(0, 0)))
                        .await
                        .unwrap();
                }
            },
        );
        assert_eq!(repaired.unwrap().differences.len(), 4, "seed {seed}");
        assert_eq!(used(&ledger(&store), account()).await, amounts(4, 2));
        assert_eq!(used(&ledger(&store), in_project()).await, amounts(4, 2));
        let audit = ledger(&store).audit(organization(1)).await.unwrap();
        assert_eq!(audit.differences, [], "seed {seed}");
    }
}

#[tokio::test]
async fn unavailable_store_is_reported_at_once() {
    let store = memory();
    create(&ledger(&store), &allocation("a", amounts(1, 0)))
        .await
        .unwrap();
    let id = RecordId::new("quota-account", organization(1).to_string()).unwrap();
    for fault in CommitFault::ALL {
        let tampering = Transaction::new().delete(id.clone());
        store.commit(&tampering).await.unwrap();
        let flaky = ledger(&Flaky::over(&store, 0, fault));
        let message = flaky
            .repair(&operator(), organization(1))
            .await
            .unwrap_err()
            .to_string();
        assert!(message.contains("the disk cannot be read"), "{message}");
        // Whether or not it was committed, the next repair completes it.
        ledger(&store)
            .repair(&operator(), organization(1))
            .await
            .unwrap();
        let audit = ledger(&store).audit(organization(1)).await.unwrap();
        assert!(audit.differences.is_empty(), "{audit:?}");
    }
}
