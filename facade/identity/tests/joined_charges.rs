//! Charges that are committed together: the outcome is that of one after the other.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod support;

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use fleetwright_identity::{Account, Allocation, Ledger, LedgerError};
use fleetwright_store::{Check, Query, Revision, Store, Transaction};
use futures_util::future::join_all;
use serde_json::json;
use support::{flaky::*, *};

type Outcome = Result<Revision, LedgerError>;

fn created(allocation: &Allocation) -> Transaction {
    Transaction::new().create(allocation.pays_for.clone(), json!({}))
}

/// Charges for a number of instances that arrive in this order.
async fn charge_all(ledger: &Ledger, allocations: &[Allocation]) -> Vec<Outcome> {
    let charges = allocations
        .iter()
        .map(|allocation| ledger.commit_charge(created(allocation), allocation));
    join_all(charges).await
}

fn gpus(count: u64) -> Vec<Allocation> {
    let each = |number| allocation(format!("i-{number:02}"), amounts(0, 1 + number % 2));
    (0..count).map(each).collect()
}

/// Requires that the accounts are the sum of the instances that exist, and returns how many there are.
async fn assert_consistent(store: &Arc<dyn Store>, ledger: &Ledger) -> usize {
    let kind = instance("any").kind;
    let stored = store.list(&Query::all(kind)).await.unwrap().records;
    let mut sum = amounts(0, 0);
    for record in &stored {
        let charged = ledger.allocation(&record.id).await.unwrap().unwrap();
        for (kind, amount) in charged.amounts.iter() {
            let before = sum.of(kind);
            sum = sum.with(kind.clone(), before + amount);
        }
    }
    let sum = sum.without_zeros();
    for account in [
        Account::Organization(organization(1)),
        Account::Project(organization(1), project(1)),
    ] {
        assert_eq!(used(ledger, account).await, sum);
    }
    stored.len()
}

#[tokio::test]
async fn waiting_charges_share_commits() {
    let store = memory();
    let counting = Mixed::counting(Arc::clone(&store), 7);
    let ledger = ledger(&(Arc::clone(&counting) as Arc<dyn Store>));
    let outcomes = charge_all(&ledger, &gpus(8)).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(assert_consistent(&store, &ledger).await, 8);
    // The first one does not wait for the others, which arrive while it is committed.
    assert_eq!(counting.commits(), 2);
}

#[tokio::test]
async fn limit_is_reached_in_the_order_of_arrival() {
    let store = memory();
    let ledger = ledger(&Mixed::over(Arc::clone(&store), 3));
    let servers: Vec<_> = (0..15)
        .map(|number| allocation(number, amounts(1, 0)))
        .collect();
    let outcomes = charge_all(&ledger, &servers).await;
    for (number, outcome) in outcomes.iter().enumerate() {
        match outcome {
            Ok(_) => assert!(number < 10, "{outcomes:?}"),
            Err(error) => {
                assert!(matches!(error, LedgerError::Exceeded(_)), "{error}");
                assert!(number >= 10, "{outcomes:?}");
            }
        }
    }
    assert_eq!(assert_consistent(&store, &ledger).await, 10);
}

#[tokio::test]
async fn conflict_concerns_one_charge() {
    let store = memory();
    let ledger = ledger(&Mixed::over(Arc::clone(&store), 5));
    let mut allocations = gpus(6);
    // The fourth has the name of the second.
    allocations[3] = allocation("i-01", amounts(0, 2));
    let outcomes = charge_all(&ledger, &allocations).await;
    let failed: Vec<_> = (0..6).filter(|number| outcomes[*number].is_err()).collect();
    assert_eq!(failed, [3], "{outcomes:?}");
    let Err(LedgerError::Store(error)) = &outcomes[3] else {
        panic!("{outcomes:?}");
    };
    let conflict = error.conflict().unwrap();
    assert_eq!(conflict.check, Check::Absent(instance("i-01")));
    assert_eq!(assert_consistent(&store, &ledger).await, 5);
}

#[tokio::test]
async fn charge_sees_what_an_earlier_one_deleted() {
    let store = memory();
    let ledger = ledger(&Mixed::over(Arc::clone(&store), 5));
    let network = instance("network");
    let put = Transaction::new().put(network.clone(), json!({}));
    store.commit(&put).await.unwrap();
    let charges = gpus(3);
    let transactions = [
        created(&charges[0]),
        created(&charges[1]).delete(network.clone()),
        created(&charges[2]).check(Check::Exists(network.clone())),
    ];
    let both = transactions.into_iter().zip(&charges);
    let both = both.map(|(created, charge)| ledger.commit_charge(created, charge));
    let outcomes = join_all(both).await;
    assert!(outcomes[0].is_ok() && outcomes[1].is_ok(), "{outcomes:?}");
    let Err(LedgerError::Store(error)) = &outcomes[2] else {
        panic!("{outcomes:?}");
    };
    let conflict = error.conflict().unwrap();
    assert_eq!(conflict.check, Check::Exists(network));
    assert_eq!(assert_consistent(&store, &ledger).await, 2);
}

#[tokio::test]
async fn dropped_caller_stops_no_other() {
    for (polls, victim) in (0..12).flat_map(|polls| (0..5).map(move |victim| (polls, victim))) {
        let store = memory();
        let ledger = ledger(&Mixed::over(Arc::clone(&store), polls));
        let allocations = gpus(5);
        let mut charges: Vec<Pin<Box<dyn Future<Output = Outcome>>>> = Vec::new();
        for allocation in &allocations {
            let charge = ledger.commit_charge(created(allocation), allocation);
            charges.push(Box::pin(charge));
        }
        let mut done = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..polls {
            charges.retain_mut(|charge| match charge.as_mut().poll(&mut context) {
                Poll::Ready(outcome) => {
                    done.push(outcome);
                    false
                }
                Poll::Pending => true,
            });
        }
        if victim < charges.len() {
            drop(charges.remove(victim));
        }
        done.extend(join_all(charges).await);
        assert!(done.iter().all(Result::is_ok), "{done:?}");
        let stored = assert_consistent(&store, &ledger).await;
        assert!((4..=5).contains(&stored), "{stored} after {polls} polls");
    }
}

#[tokio::test]
async fn store_fault_leaves_accounts_and_instances_equal() {
    for fault in CommitFault::ALL {
        for at in 0..3 {
            let store = memory();
            let flaky = Flaky::over(&store, at, fault);
            let faulty = ledger(&Mixed::over(flaky, 11));
            let outcomes = charge_all(&faulty, &gpus(8)).await;
            let stored = assert_consistent(&store, &ledger(&store)).await;
            let succeeded = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            match fault {
                CommitFault::Unavailable | CommitFault::UnknownAndNot => {
                    assert_eq!(stored, succeeded, "{outcomes:?}");
                }
                CommitFault::UnknownAndDone => assert_eq!(stored, 8, "{outcomes:?}"),
            }
        }
    }
}
