//! Random concurrent histories: the use is always the sum of the allocations, and never above a limit.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod support;

use std::{collections::BTreeMap, sync::Arc};

use fleetwright_identity::{
    Account, Allocation, Amounts, Ledger, LedgerError, Limits, QuotaKind, QuotaKinds,
};
use fleetwright_store::{Change, Interest, MemoryStore, Revision, Store, StoreExt, Transaction};
use futures_util::{FutureExt as _, future::join_all};
use proptest::prelude::*;
use support::*;

/// One step of a task.
#[derive(Clone, Debug)]
enum Step {
    Create(Allocation),
    Resize(Allocation),
    Delete(Allocation),
    Limit(Account, Limits),
    Repair(u128),
}

fn step() -> impl Strategy<Value = Step> {
    // Few names, organizations and projects, so that steps collide.
    let owner = 1..=2_u128;
    let paid = (0..5_u8, owner, 1..=2_u128, 0..5_u64, 0..9_u64).prop_map(
        |(name, owner, part, servers, gpus)| {
            // A name belongs to one project, like an instance's id.
            let (owner, part) = if name % 2 == 0 { (1, 1) } else { (owner, part) };
            let amounts = amounts(servers, gpus);
            Allocation::new(instance(name), organization(owner), project(part), amounts)
        },
    );
    let limit = (
        1..=2_u128,
        prop::option::of(1..=2_u128),
        0..12_u64,
        0..20_u64,
    )
        .prop_map(|(number, part, servers, gpus)| {
            let owner = organization(number);
            let account = part.map_or(Account::Organization(owner), |part| {
                Account::Project(owner, project(part))
            });
            let limits = Limits::new().with(QuotaKind::servers(), servers);
            Step::Limit(account, limits.with(QuotaKind::gpus(), gpus))
        });
    prop_oneof![
        4 => paid.clone().prop_map(Step::Create),
        3 => paid.clone().prop_map(Step::Resize),
        3 => paid.prop_map(Step::Delete),
        1 => limit,
        1 => (1..=2_u128).prop_map(Step::Repair),
    ]
}

async fn run_step(ledger: &Ledger, step: &Step) {
    let result = match step {
        Step::Create(paid) => create(ledger, paid).await.map(|_| ()),
        Step::Resize(paid) => resize(ledger, paid).await.map(|_| ()),
        Step::Delete(paid) => delete(ledger, &recorded_allocation(ledger, paid).await)
            .await
            .map(|_| ()),
        Step::Limit(account, limits) => {
            let operator = operator();
            let build = || ledger.set_limits(Transaction::new(), &operator, account, limits);
            let done = ledger.commit::<_, _, LedgerError>(account.organization(), build);
            done.await.map(|_| ())
        }
        Step::Repair(number) => {
            // Other tasks write meanwhile, and there must be nothing to repair at any moment.
            let found = ledger
                .repair(&operator(), organization(*number))
                .await
                .map(|audit| audit.differences);
            found.map(|differences| assert_eq!(differences, []))
        }
    };
    match result {
        Ok(())
        | Err(
            LedgerError::Exceeded(_)
            | LedgerError::LimitBelowUse { .. }
            | LedgerError::AllocationMismatch { .. }
            | LedgerError::NotCharged { .. },
        ) => {}
        Err(LedgerError::Store(error)) => {
            // The conflict concerns the instance only: it exists already, or does not exist.
            let conflict = error.conflict().unwrap_or_else(|| panic!("{error}"));
            assert!(conflict.check.to_string().contains("instance/"), "{error}");
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns the recorded allocation of an instance, whose organization selects the queue. With another organization, the commit
/// would only be slower.
async fn recorded_allocation(ledger: &Ledger, paid: &Allocation) -> Allocation {
    let found = ledger.allocation(&paid.pays_for).await.unwrap();
    found.unwrap_or_else(|| paid.clone())
}

/// Sums all allocations without the ledger.
async fn sums(store: &Arc<dyn Store>) -> BTreeMap<Account, Amounts> {
    let kind = fleetwright_store::Kind::new("allocation").unwrap();
    let query = fleetwright_store::Query::all(kind);
    let mut sums = BTreeMap::<Account, Amounts>::new();
    for record in store.list_all(&query).await.unwrap().records {
        let paid: Allocation = record.value.parse_owned().unwrap();
        assert!(
            store.get(&paid.pays_for).await.unwrap().is_some(),
            "the record that is paid for does not exist"
        );
        let payers = [
            Account::Organization(paid.organization),
            Account::Project(paid.organization, paid.project),
        ];
        for payer in payers {
            let sum = sums.entry(payer).or_default();
            *sum = [QuotaKind::servers(), QuotaKind::gpus()]
                .into_iter()
                .map(|kind| (kind.clone(), sum.of(&kind) + paid.amounts.of(&kind)))
                .collect::<Amounts>()
                .without_zeros();
        }
    }
    sums
}

async fn check_sums(store: &Arc<dyn Store>) {
    let ledger = ledger(store);
    let mut sums = sums(store).await;
    for number in 1..=2 {
        let owner = organization(number);
        let accounts = [
            Account::Organization(owner),
            Account::Project(owner, project(1)),
            Account::Project(owner, project(2)),
        ];
        for account in accounts {
            let sum = sums.remove(&account).unwrap_or_default().without_zeros();
            assert_eq!(used(&ledger, account).await, sum, "{account}");
        }
        assert_eq!(ledger.audit(owner).await.unwrap().differences, []);
    }
    let instances = fleetwright_store::Kind::new("instance").unwrap();
    let instances = fleetwright_store::Query::all(instances);
    for record in store.list_all(&instances).await.unwrap().records {
        let paid = ledger.allocation(&record.id).await.unwrap();
        assert!(paid.is_some(), "{} is not paid for", record.id);
    }
}

/// Returns whether no commit left an account above its limit.
async fn check_limits(store: &Arc<dyn Store>) {
    let interest = Interest::all();
    let mut watch = store.watch(Revision::ZERO, interest).await.unwrap();
    let kinds = QuotaKinds::standard();
    let mut accounts = 0;
    while let Some(commit) = watch.next().now_or_never() {
        for change in &commit.unwrap().changes {
            let Change::Put(record) = change else {
                continue;
            };
            if record.id.kind.as_str() != "quota-account" {
                continue;
            }
            accounts += 1;
            let number =
                |field: &str, kind: &QuotaKind| record.value[field][kind.as_str()].as_u64();
            for (kind, defaults) in kinds.iter() {
                let is_project = !record.value["project"].is_null();
                let default = (!is_project).then_some(defaults.organization);
                let limit = number("limits", kind).or(default);
                let used = number("used", kind).unwrap_or(0);
                assert!(
                    limit.is_none_or(|limit| used <= limit),
                    "{:?}",
                    record.value
                );
            }
        }
    }
    // Otherwise nothing was checked.
    let sums = sums(store).await;
    assert!(accounts > 0 || sums.values().all(Amounts::is_zero));
}

/// Each task has its own ledger, so that only the store coordinates them.
async fn run(store: &Arc<dyn Store>, tasks: &[Vec<Step>], seed: u64) {
    let running = tasks.iter().zip(seed..).map(|(steps, seed)| async move {
        let ledger = ledger(&Mixed::over(Arc::clone(store), seed));
        for step in steps {
            run_step(&ledger, step).await;
        }
    });
    join_all(running).await;
    check_sums(store).await;
}

fn block_on(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(work);
}

fn tasks() -> impl Strategy<Value = Vec<Vec<Step>>> {
    prop::collection::vec(prop::collection::vec(step(), 1..14), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn usage_is_the_sum_of_live_allocations_and_never_above_the_limit(tasks in tasks(), seed: u64) {
        block_on(async {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::new(whole_schema()));
            run(&store, &tasks, seed).await;
            check_limits(&store).await;
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn usage_is_the_sum_of_live_allocations_on_sqlite(tasks in tasks(), seed: u64) {
        block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("ledger.db");
            let store = fleetwright_store_sqlite::SqliteStore::open(&file, whole_schema()).await.unwrap();
            let store: Arc<dyn Store> = Arc::new(store);
            run(&store, &tasks, seed).await;
        });
    }
}

/// Forty concurrent creations for a quota of ten: exactly ten succeed.
#[tokio::test]
async fn concurrent_creates_never_exceed_a_quota() {
    let store = memory();
    let creates = (0..40).map(|number| {
        let store = Mixed::over(Arc::clone(&store), number);
        async move { create(&ledger(&store), &allocation(number, amounts(1, 0))).await }
    });
    let results = join_all(creates).await;
    let created = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(created, 10);
    for refused in results.iter().filter_map(|result| result.as_ref().err()) {
        assert!(matches!(refused, LedgerError::Exceeded(_)), "{refused}");
    }
    check_sums(&store).await;
}

/// Like two processes: the file is opened twice, and nothing else is shared.
#[tokio::test]
async fn two_handles_of_one_file_never_exceed_a_quota() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ledger.db");
    let open = async || {
        let store = fleetwright_store_sqlite::SqliteStore::open(&file, whole_schema()).await;
        let store: Arc<dyn Store> = Arc::new(store.unwrap());
        store
    };
    let (one, two) = (open().await, open().await);
    let ledgers = [ledger(&one), ledger(&two)];
    let creates = (0..30_usize).map(|number| {
        let ledger = &ledgers[number % 2];
        async move { create(ledger, &allocation(number, amounts(1, 0))).await }
    });
    let results = join_all(creates).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 10);
    check_sums(&one).await;
    check_sums(&two).await;
}

/// With one ledger each creation commits once. With separate ledgers some are retried.
#[tokio::test]
async fn callers_of_one_process_queue_instead_of_retrying() {
    for (processes, are_repeated) in [(1, false), (10, true)] {
        let store = Mixed::counting(memory(), 7);
        let shared: Arc<dyn Store> = Arc::clone(&store) as _;
        let ledgers: Vec<_> = (0..processes).map(|_| ledger(&shared)).collect();
        let creates = (0..10).map(|number| {
            let ledger = ledgers[number % processes].clone();
            async move { create(&ledger, &allocation(number, amounts(1, 0))).await }
        });
        for result in join_all(creates).await {
            result.unwrap();
        }
        assert_eq!(store.commits() > 10, are_repeated, "{}", store.commits());
    }
}

/// A charge reads and writes the same amount with ten thousand allocations as with none.
#[tokio::test]
async fn cost_of_a_charge_does_not_grow_with_the_fleet() {
    let store = memory();
    let ledger = ledger(&store);
    let operator = operator();
    let account = Account::Organization(organization(1));
    let many = Limits::new().with(QuotaKind::servers(), 1_000_000);
    let limit = ledger.set_limits(Transaction::new(), &operator, &account, &many);
    store.commit(&limit.await.unwrap()).await.unwrap();
    let size = |transaction: &Transaction| {
        let written = transaction
            .writes
            .iter()
            .map(|write| format!("{write:?}").len());
        (
            transaction.checks.len(),
            transaction.writes.len(),
            written.sum::<usize>(),
        )
    };
    create(&ledger, &allocation(100_000, amounts(1, 0)))
        .await
        .unwrap();
    let next = allocation(100_001, amounts(1, 0));
    let first = ledger.charge(Transaction::new(), &next);
    let (checks, writes, bytes) = size(&first.await.unwrap());
    assert_eq!((checks, writes), (3, 3));
    for number in 0..10_000 {
        create(&ledger, &allocation(number, amounts(1, 0)))
            .await
            .unwrap();
    }
    let last = ledger.charge(Transaction::new(), &next);
    let (checks, writes, more_bytes) = size(&last.await.unwrap());
    assert_eq!((checks, writes), (3, 3));
    // Only the digits of the two counters may grow.
    assert!(more_bytes <= bytes + 2 * 4, "{bytes} became {more_bytes}");
}
