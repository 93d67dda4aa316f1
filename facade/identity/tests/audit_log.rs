//! The audit log by itself: pages, filters, scopes, cost and retention.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod support;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use fleetwright_identity::{
    Actor, AuditEntry, AuditEvent, AuditLog, AuditOutcome, AuditQuery, AuditRetention, Binding,
    PageRequest, Permission, Principal, Resource, RoleName, Roles, Scope, Verb,
};
use fleetwright_runtime::{clock::Clock, entropy::OsEntropy};
use fleetwright_store::Store;
use proptest::prelude::*;

use support::{Counted, memory, operator, organization, project, user};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A clock that a test sets.
#[derive(Debug)]
struct SetClock(Mutex<DateTime<Utc>>);

impl SetClock {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(date(0))))
    }
    fn set(&self, seconds: i64) {
        *self.0.lock().unwrap() = date(seconds);
    }
}

impl Clock for SetClock {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock().unwrap()
    }
}

fn date(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_225_600, 0).unwrap() + TimeDelta::seconds(seconds)
}

fn log(store: &Arc<dyn Store>, clock: &Arc<SetClock>) -> AuditLog {
    AuditLog::new(store.clone(), clock.clone(), Arc::new(OsEntropy)).unwrap()
}

fn scopes() -> [Scope; 5] {
    let [one, two] = [1, 2].map(organization);
    [
        Scope::Global,
        Scope::Organization(one),
        Scope::Project(one, project(1)),
        Scope::Project(one, project(2)),
        Scope::Project(two, project(1)),
    ]
}

/// What one generated entry is made of.
#[derive(Clone, Debug)]
struct Made {
    scope: usize,
    actor: usize,
    resource: usize,
    record: usize,
    seconds: i64,
}

const RESOURCES: [Resource; 3] = [Resource::Instances, Resource::Networks, Resource::Projects];

fn made() -> impl Strategy<Value = Made> {
    (0..5_usize, 0..3_usize, 0..3_usize, 0..4_usize, 0..40_i64).prop_map(
        |(scope, actor, resource, record, seconds)| Made {
            scope,
            actor,
            resource,
            record,
            seconds,
        },
    )
}

async fn write(log: &AuditLog, clock: &SetClock, made: &Made) {
    clock.set(made.seconds);
    let actor = user(format!("u{}", made.actor));
    let (resource, scope) = (RESOURCES[made.resource], scopes()[made.scope]);
    let event = AuditEvent::new(
        &actor,
        Verb::Create,
        resource,
        format!("r{}", made.record),
        scope,
    );
    log.record(&event).await.unwrap();
}

async fn read_all(log: &AuditLog, query: &AuditQuery, limit: u32) -> Vec<AuditEntry> {
    let mut all = Vec::new();
    let mut query = query.clone().page(PageRequest::default().limit(limit));
    loop {
        let page = log.list(&operator(), &query).await.unwrap();
        assert!(page.items.len() <= limit as usize && page.damaged.is_empty());
        all.extend(page.items);
        match page.next {
            Some(next) => query.page = query.page.after(next),
            None => return all,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    /// Every filter returns exactly the entries that match, in the order of time, whatever the page size.
    #[test]
    fn filters_return_what_matches_in_the_order_of_time(
        entries in prop::collection::vec(made(), 0..40),
        (within, actor, resource, record) in (
            0..5_usize, prop::option::of(0..3_usize), prop::option::of(0..3_usize), prop::option::of(0..4_usize),
        ),
        range in prop::option::of((0..40_i64, 0..40_i64)),
        limit in 1_u32..7,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (store, clock) = (memory(), SetClock::new());
            let log = log(&store, &clock);
            for one in &entries {
                write(&log, &clock, one).await;
            }
            let mut query = AuditQuery::within(scopes()[within]);
            query.actor = actor.map(|number| user(format!("u{number}")));
            query.resource = resource.map(|number| RESOURCES[number]);
            query.record = record.map(|number| format!("r{number}"));
            if let Some((from, until)) = range {
                query = query.between(date(from), date(until));
            }
            let found = read_all(&log, &query, limit).await;
            let matches = |one: &&Made| {
                scopes()[within].contains(&scopes()[one.scope])
                    && actor.is_none_or(|actor| actor == one.actor)
                    && resource.is_none_or(|resource| resource == one.resource)
                    && record.is_none_or(|record| record == one.record)
                    && range.is_none_or(|(from, until)| (from..until).contains(&one.seconds))
            };
            let mut wanted: Vec<_> = entries.iter().filter(matches).collect();
            wanted.sort_by_key(|one| one.seconds);
            let describe = |at, actor: &Actor, record: &str| format!("{at} {actor} {record}");
            let found: Vec<_> = found.iter().map(|one| describe(one.at, &one.actor, &one.record)).collect();
            let wanted: Vec<_> = wanted
                .iter()
                .map(|one| describe(date(one.seconds), &user(format!("u{}", one.actor)), &format!("r{}", one.record)))
                .collect();
            assert_eq!(found, wanted);
        });
    }
}

#[tokio::test]
async fn log_is_read_only_with_its_own_permission_in_the_scope() {
    let (store, clock) = (memory(), SetClock::new());
    let log = log(&store, &clock);
    let acme = organization(1);
    let web = Scope::Project(acme, project(1));
    let principal = |role: &str, scope: Scope| -> Principal {
        let binding = Binding::new(RoleName::new(role).unwrap(), scope);
        Roles::built_in()
            .principal(user("ada"), [&binding])
            .unwrap()
    };
    let may = async |principal: &Principal, scope: Scope| {
        log.list(principal, &AuditQuery::within(scope))
            .await
            .is_ok()
    };
    for role in ["organization-administrator", "organization-auditor"] {
        let reader = principal(role, Scope::Organization(acme));
        assert!(may(&reader, Scope::Organization(acme)).await && may(&reader, web).await);
        assert!(!may(&reader, Scope::Global).await);
        assert!(!may(&reader, Scope::Organization(organization(2))).await);
    }
    for role in ["project-user", "project-reader"] {
        assert!(!may(&principal(role, web), web).await, "{role}");
    }
    assert!(
        may(
            &principal("platform-administrator", Scope::Global),
            Scope::Global
        )
        .await
    );
    // There is no permission to change the log, not even for the platform.
    let verbs: BTreeSet<_> = Permission::all()
        .filter(|one| one.resource() == Resource::AuditLog)
        .map(Permission::verb)
        .collect();
    assert_eq!(verbs, BTreeSet::from([Verb::List]));
}

#[tokio::test]
async fn page_costs_the_same_in_a_long_log() {
    let counted = Counted::over(&memory());
    let store: Arc<dyn Store> = counted.clone();
    let clock = SetClock::new();
    let log = log(&store, &clock);
    let mut costs = BTreeSet::new();
    for (round, length) in [60, 2000].into_iter().enumerate() {
        for number in 0..length {
            let one = Made {
                scope: 2,
                actor: number % 3,
                resource: 0,
                record: number % 4,
                seconds: (round * 10_000 + number) as i64,
            };
            write(&log, &clock, &one).await;
        }
        let acme = AuditQuery::within(Scope::Organization(organization(1)));
        let page = PageRequest::default().limit(10);
        let last = date((round * 10_000) as i64);
        let queries = [
            acme.clone(),
            acme.clone().record("r1"),
            acme.clone().actor(user("u2")),
            acme.clone().resource(Resource::Instances),
            acme.clone().between(last, date(1_000_000)),
            AuditQuery::within(scopes()[2]),
        ];
        let mut cost = Vec::new();
        for query in queries {
            counted.reset();
            let found = log
                .list(&operator(), &query.page(page.clone()))
                .await
                .unwrap();
            assert_eq!(found.items.len(), 10);
            cost.push(counted.calls_and_records());
        }
        costs.insert(cost);
    }
    assert_eq!(costs.len(), 1, "{costs:?}");
}

#[tokio::test]
async fn rare_match_in_a_long_log_is_found_over_bounded_pages() {
    let counted = Counted::over(&memory());
    let store: Arc<dyn Store> = counted.clone();
    let clock = SetClock::new();
    let log = log(&store, &clock);
    for number in 0..3000 {
        let actor = if number == 2999 { 1 } else { 0 };
        let one = Made {
            scope: 4,
            actor,
            resource: 0,
            record: 0,
            seconds: number,
        };
        write(&log, &clock, &one).await;
    }
    // The platform has no index by actor.
    let mut query = AuditQuery::within(Scope::Global).actor(user("u1"));
    let (mut pages, mut found) = (0, 0);
    loop {
        counted.reset();
        let page = log.list(&operator(), &query).await.unwrap();
        assert!(counted.calls_and_records().1 <= 1100);
        pages += 1;
        found += page.items.len();
        match page.next {
            Some(next) => query.page = query.page.after(next),
            None => break,
        }
    }
    assert_eq!(found, 1);
    assert!((2..=4).contains(&pages), "{pages}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    /// Pruning removes exactly the entries that are older than the retention of their organization.
    #[test]
    fn pruning_removes_what_is_older_than_its_retention_and_nothing_else(
        entries in prop::collection::vec((0..5_usize, 0..40_i64), 0..250),
        (default, own) in (1..20_u32, 1..20_u32),
        now in 0..60_i64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (store, clock) = (memory(), SetClock::new());
            let retention = AuditRetention::new(DAY * default).unwrap();
            let retention = retention.with_organization(organization(2), DAY * own).unwrap();
            let log = log(&store, &clock).with_retention(retention);
            let day = 24 * 60 * 60;
            for (scope, days) in &entries {
                let one = Made { scope: *scope, actor: 0, resource: 0, record: 0, seconds: days * day };
                write(&log, &clock, &one).await;
            }
            clock.set(now * day);
            let removed = log.prune().await.unwrap();
            let left = read_all(&log, &AuditQuery::within(Scope::Global), 500).await;
            let keep = |(scope, days): &&(usize, i64)| {
                let kept = if *scope == 4 { own } else { default };
                now - days < i64::from(kept)
            };
            let mut wanted: Vec<_> = entries.iter().filter(keep).map(|(_, days)| date(days * day)).collect();
            wanted.sort();
            assert_eq!(removed, entries.len() - wanted.len());
            assert_eq!(left.iter().map(|entry| entry.at).collect::<Vec<_>>(), wanted);
            assert_eq!(log.prune().await.unwrap(), 0);
        });
    }
}

#[tokio::test(start_paused = true)]
async fn clock_that_jumps_does_not_prune_young_entries() {
    /// A clock that follows the timers, and jumps.
    #[derive(Debug)]
    struct Jumping(fleetwright_runtime::clock::TokioClock, Mutex<TimeDelta>);
    impl Clock for Jumping {
        fn now(&self) -> DateTime<Utc> {
            self.0.now() + *self.1.lock().unwrap()
        }
    }
    let store = memory();
    let follow = fleetwright_runtime::clock::TokioClock::starting_at(date(0));
    let clock = Arc::new(Jumping(follow, Mutex::new(TimeDelta::zero())));
    let log = AuditLog::new(store, clock.clone(), Arc::new(OsEntropy)).unwrap();
    let event = AuditEvent::new(
        &user("ada"),
        Verb::Create,
        Resource::Networks,
        "n",
        Scope::Global,
    );
    log.record(&event.outcome(AuditOutcome::Requested))
        .await
        .unwrap();
    let loops = log.clone();
    let running = tokio::spawn(async move { loops.run().await });
    tokio::time::sleep(Duration::from_secs(7200)).await;
    *clock.1.lock().unwrap() = TimeDelta::days(500);
    tokio::time::sleep(DAY / 2).await;
    *clock.1.lock().unwrap() = TimeDelta::zero();
    tokio::time::sleep(DAY * 3).await;
    let left = async || {
        log.list(&operator(), &AuditQuery::within(Scope::Global))
            .await
            .unwrap()
            .items
            .len()
    };
    assert_eq!(left().await, 1);
    tokio::time::sleep(DAY * 400).await;
    assert_eq!(left().await, 0);
    running.abort();
}

/// A process whose clock is wrong from its start sees no jump.
#[tokio::test(start_paused = true)]
async fn process_that_starts_with_a_wrong_clock_does_not_prune_young_entries() {
    let clock = |days| {
        let start = date(0) + TimeDelta::days(days);
        Arc::new(fleetwright_runtime::clock::TokioClock::starting_at(start))
    };
    let store = memory();
    let open = |clock: Arc<fleetwright_runtime::clock::TokioClock>| {
        AuditLog::new(store.clone(), clock, Arc::new(OsEntropy)).unwrap()
    };
    let right = open(clock(0));
    let (resource, verb) = (Resource::Networks, Verb::Create);
    let event = AuditEvent::new(&user("ada"), verb, resource, "n", Scope::Global);
    right.record(&event).await.unwrap();
    let left = async || {
        let query = AuditQuery::within(Scope::Global);
        let page = right.list(&operator(), &query).await;
        page.unwrap().items.len()
    };
    let first = right.clone();
    let first = tokio::spawn(async move { first.run().await });
    tokio::time::sleep(DAY * 2).await;
    // It ends before its clock is corrected, again and again.
    for days in [500, -500, 2000] {
        let wrong = open(clock(days));
        let run = tokio::time::timeout(DAY / 2, wrong.run());
        assert!(run.await.is_err());
        assert_eq!(left().await, 1, "{days}");
    }
    // Its clock stays wrong, beside a process whose clock is right.
    let wrong = open(clock(500));
    assert!(tokio::time::timeout(DAY * 3, wrong.run()).await.is_err());
    assert_eq!(left().await, 1);
    first.abort();
    // A restart after a short time removes what is old without a delay.
    tokio::time::sleep(DAY / 4).await;
    let later = open(clock(6));
    let old = AuditRetention::new(DAY).unwrap();
    let later = later.with_retention(old);
    let run = tokio::time::timeout(Duration::from_secs(60), later.run());
    assert!(run.await.is_err());
    assert_eq!(left().await, 0);
}
