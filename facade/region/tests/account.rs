//! A region knows the account of its machines: with another one it observes, launches, changes and terminates nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use fleetwright::{
    AccountId, BoxFuture, InstanceConfig, InstanceId, InstanceProvisioner, Operation, Reboot,
    Result as CloudResult, Tags,
    layer::{Layer, Layered, Request},
};
use fleetwright_facade_testkit::{
    NamePlanner, SwitchedCloud, TestRegion, bare_server, flavor, north, operator, project_user,
    server_admin, server_id, tenant,
};
use fleetwright_memory::{Fault, MemoryCloud, Phase as When, Rule, WireCall};
use fleetwright_region::{
    account::{AcceptError, RegionAccount, RegionAccounts},
    controller::tags,
    ids::FlavorId,
    monitor::{OrphanPolicy, ScanError},
    server::{ConditionKind, Consent, Phase, Power, ServerView},
};
use fleetwright_store::{Document as _, RecordId, Store as _, Transaction};

const MINUTE: Duration = Duration::from_secs(60);

fn running(view: &ServerView) -> bool {
    view.phase == Phase::Running && view.server.observed_generation == view.server.generation
}

fn machine_of(view: &ServerView) -> InstanceId {
    view.server.machine.as_ref().unwrap().id.clone()
}

/// A region on the first of two accounts, which terminates orphans at once.
struct TwoAccounts {
    right: MemoryCloud,
    wrong: MemoryCloud,
    switch: Arc<SwitchedCloud>,
    region: TestRegion,
    accounts: RegionAccounts,
}

impl TwoAccounts {
    fn new() -> Self {
        // With other seeds, because machines of two accounts have other ids.
        let cloud = |seed| MemoryCloud::builder().seed(seed).build();
        let (right, wrong) = (cloud(1), cloud(2));
        let handles: Vec<Arc<dyn InstanceProvisioner>> =
            vec![Arc::new(right.provisioner()), Arc::new(wrong.provisioner())];
        let switch = SwitchedCloud::new(handles);
        let region = TestRegion::new(switch.clone()).policy(|policy| {
            policy.orphans = OrphanPolicy::Terminate;
            policy.orphan_age = Duration::ZERO;
        });
        let accounts = RegionAccounts::new(region.store.clone(), region.clock.clone()).unwrap();
        Self {
            right,
            wrong,
            switch,
            region,
            accounts,
        }
    }

    async fn create(&self, number: u128) {
        let new = bare_server(number);
        let created = self.region.servers.ensure(&server_admin(), &new).await;
        created.unwrap();
    }

    async fn running(&self, servers: u128) -> Vec<InstanceId> {
        let mut machines = Vec::new();
        for number in 1..=servers {
            let view = self.region.until(server_id(number), running).await;
            machines.push(machine_of(&view));
        }
        machines
    }

    async fn record(&self) -> RegionAccount {
        self.accounts.read(&north()).await.unwrap().unwrap()
    }

    /// Machines that another installation has launched for a region of the same name.
    fn populate(&self, machines: usize) {
        for _ in 0..machines {
            let config = InstanceConfig::builder("debian", "small")
                .tag(tags::REGION, "north")
                .build();
            self.wrong
                .external_actor()
                .launch(&config.unwrap())
                .unwrap();
        }
    }
}

async fn id_of(cloud: &MemoryCloud) -> AccountId {
    cloud.provisioner().account_id().await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn another_account_for_a_while_changes_nothing() {
    for (servers, populated) in (1..=20).map(|servers| (servers, servers % 2 == 0)) {
        let two = TwoAccounts::new();
        if populated {
            two.populate(3);
        }
        for number in 1..=servers {
            two.create(number).await;
        }
        two.region
            .during(async {
                let machines = two.running(servers).await;
                two.switch.switch_to(1);
                // A comparison is used for a second. What is requested after that waits.
                tokio::time::sleep(Duration::from_secs(1)).await;
                let (admin, first) = (server_admin(), server_id(1));
                let stopped = two.region.servers.set_power(&admin, first, Power::Stopped);
                stopped.await.unwrap();
                two.create(servers + 1).await;
                tokio::time::sleep(MINUTE).await;
                let record = two.record().await;
                assert_eq!(record.account, id_of(&two.right).await);
                assert_eq!(record.other.unwrap().account, id_of(&two.wrong).await);
                let waiting = two.region.read(server_id(servers + 1)).await;
                let condition = waiting.server.condition(ConditionKind::CloudError).unwrap();
                assert!(condition.message.contains("its operator"), "{condition:?}");
                assert!(!condition.message.contains("memory/"), "{condition:?}");
                two.switch.switch_to(0);
                let stopped = |view: &ServerView| view.phase == Phase::Stopped;
                two.region.until(server_id(1), stopped).await;
                two.region.until(server_id(servers + 1), running).await;
                for (number, machine) in (1..).zip(&machines) {
                    let view = two.region.read(server_id(number)).await;
                    assert_eq!(machine_of(&view), *machine, "of {servers} servers");
                    assert!(view.server.conditions.is_empty(), "{view:#?}");
                }
                assert_eq!(two.record().await.other, None);
            })
            .await;
        assert_eq!(two.right.oracle().call_count(WireCall::Terminate), 0);
        let launches = u128::from(two.right.oracle().call_count(WireCall::Launch));
        assert_eq!(launches, servers + 1);
        for call in [WireCall::Launch, WireCall::Terminate, WireCall::ListPage] {
            assert_eq!(
                two.wrong.oracle().call_count(call),
                0,
                "{call} in the wrong account"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn launch_right_after_the_credentials_were_exchanged_waits() {
    let two = TwoAccounts::new();
    two.create(1).await;
    let launched = |view: &ServerView| view.server.machine.is_some();
    two.region
        .during(async {
            two.region.until(server_id(1), launched).await;
            // The account was compared for the first launch at this very moment.
            two.create(2).await;
            two.switch.switch_to(1);
            tokio::time::sleep(MINUTE).await;
            assert!(!launched(&two.region.read(server_id(2)).await));
            two.switch.switch_to(0);
            two.region.until(server_id(2), running).await;
        })
        .await;
    assert_eq!(two.wrong.oracle().instances().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn machine_that_is_not_found_when_it_is_terminated_is_listed_for_the_operator() {
    let two = TwoAccounts::new();
    two.create(1).await;
    let left = two.region.during(two.running(1)).await;
    // The operator moves the region to another account without its machine.
    let (right, wrong) = (id_of(&two.right).await, id_of(&two.wrong).await);
    two.switch.switch_to(1);
    let (operator, region) = (operator(), north());
    let accepted = two.accounts.accept(&operator, &region, &right, wrong).await;
    accepted.unwrap();
    let (admin, servers) = (server_admin(), &two.region.servers);
    servers.delete(&admin, server_id(1)).await.unwrap();
    two.region.during(two.region.until_gone(server_id(1))).await;
    let listed = two.record().await.not_found;
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(
        (&listed[0].machine, listed[0].server),
        (&left[0], server_id(1))
    );
    assert_eq!(two.right.oracle().call_count(WireCall::Terminate), 0);
}

/// Switches to the second account once, right before a launch is looked up.
#[derive(Debug)]
struct SwitchBeforeLookup(Arc<SwitchedCloud>, AtomicU64);

impl Layer for SwitchBeforeLookup {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, CloudResult<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, CloudResult<T>> {
        let looks_up = request.operation() == Operation::FindLaunch;
        if looks_up && self.1.fetch_add(1, Ordering::SeqCst) == 0 {
            self.0.switch_to(1);
        }
        send()
    }
}

#[tokio::test(start_paused = true)]
async fn launch_that_another_account_does_not_have_is_not_sent_again() {
    let mut two = TwoAccounts::new();
    let layer = SwitchBeforeLookup(two.switch.clone(), AtomicU64::new(0));
    two.region = TestRegion::new(Arc::new(Layered::new(two.switch.clone(), layer)));
    two.accounts = RegionAccounts::new(two.region.store.clone(), two.region.clock.clone()).unwrap();
    let lost = Fault::Lost(When::After);
    two.right.faults().add(Rule::nth(WireCall::Launch, 1, lost));
    two.create(1).await;
    two.region
        .during(async {
            tokio::time::sleep(MINUTE).await;
            two.switch.switch_to(0);
            two.running(1).await;
        })
        .await;
    assert_eq!(two.right.oracle().instances().len(), 1);
    assert_eq!(two.wrong.oracle().call_count(WireCall::Launch), 0);
}

#[tokio::test(start_paused = true)]
async fn orphans_are_kept_until_the_account_is_recorded() {
    let two = TwoAccounts::new();
    two.populate(2);
    two.switch.switch_to(1);
    let report = two.region.monitor.scan().await.unwrap();
    let reason = report.frozen.unwrap();
    assert!(reason.contains("the first launch records it"), "{reason}");
    assert_eq!(report.orphans.len(), 2, "they are reported");
    assert_eq!(two.wrong.oracle().call_count(WireCall::Terminate), 0);
    two.switch.switch_to(0);
    two.create(1).await;
    two.region.during(two.running(1)).await;
    assert_eq!(two.region.monitor.scan().await.unwrap().frozen, None);
}

#[tokio::test(start_paused = true)]
async fn change_that_fails_on_another_account_is_made_when_the_account_is_back() {
    let two = TwoAccounts::new();
    two.create(1).await;
    let (admin, id) = (server_admin(), server_id(1));
    let servers = &two.region.servers;
    two.region
        .during(async {
            two.running(1).await;
            let stopped = servers.set_power(&admin, id, Power::Stopped);
            stopped.await.unwrap();
            let stopped = |view: &ServerView| view.phase == Phase::Stopped;
            let mut spec = two.region.until(id, stopped).await.server.spec;
            two.switch.switch_to(1);
            tokio::time::sleep(Duration::from_secs(1)).await;
            spec.flavor = FlavorId::new("large").unwrap();
            let changed = servers.set_spec(&admin, id, &spec, Consent::Destroy);
            changed.await.unwrap();
            let started = servers.set_power(&admin, id, Power::Running);
            started.await.unwrap();
            tokio::time::sleep(20 * MINUTE).await;
            two.switch.switch_to(0);
            let view = two.region.until(id, running).await;
            assert!(view.server.conditions.is_empty(), "{view:#?}");
            assert_eq!(view.server.machine.unwrap().applied.flavor, spec.flavor);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn scan_of_another_account_says_which_and_what_to_do() {
    let two = TwoAccounts::new();
    two.create(1).await;
    two.region.during(two.running(1)).await;
    two.switch.switch_to(1);
    let error = two.region.monitor.scan().await.unwrap_err();
    let text = error.to_string();
    let (right, wrong) = (id_of(&two.right).await, id_of(&two.wrong).await);
    assert!(matches!(error, ScanError::OtherAccount { .. }), "{text}");
    assert!(
        text.contains(right.as_str()) && text.contains(wrong.as_str()),
        "{text}"
    );
    assert!(text.contains("the operator accepts"), "{text}");
    two.switch.switch_to(0);
    two.region.monitor.scan().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn operator_can_accept_another_account() {
    let two = TwoAccounts::new();
    two.create(1).await;
    two.region.during(two.running(1)).await;
    let (right, wrong) = (id_of(&two.right).await, id_of(&two.wrong).await);
    two.switch.switch_to(1);
    assert!(two.region.monitor.scan().await.is_err());
    let mistaken = two
        .accounts
        .accept(&operator(), &north(), &wrong, right.clone())
        .await;
    assert!(matches!(mistaken, Err(AcceptError::Changed { .. })));
    let tenant = project_user(tenant(1, 1));
    let stranger = two
        .accounts
        .accept(&tenant, &north(), &right, wrong.clone())
        .await;
    assert!(matches!(stranger, Err(AcceptError::Refused(_))));
    let accepted = two
        .accounts
        .accept(&operator(), &north(), &right, wrong.clone())
        .await;
    assert_eq!(accepted.unwrap().account, wrong);
    two.region.monitor.scan().await.unwrap();
    two.create(2).await;
    two.region
        .during(two.region.until(server_id(2), running))
        .await;
    assert_eq!(two.wrong.oracle().call_count(WireCall::Launch), 1);
    let lost = |view: &ServerView| view.phase == Phase::Lost;
    two.region
        .during(two.region.until(server_id(1), lost))
        .await;
    assert_eq!(two.right.oracle().call_count(WireCall::Terminate), 0);
}

#[tokio::test(start_paused = true)]
async fn account_of_an_older_region_is_recorded_where_its_machines_are() {
    let two = TwoAccounts::new();
    two.create(1).await;
    two.region.during(two.running(1)).await;
    let record = RecordId::new(RegionAccount::KIND, north().as_str()).unwrap();
    let deletion = Transaction::new().delete(record);
    two.region.store.commit(&deletion).await.unwrap();
    // No list of the other account contains a machine of the region, and the region has a machine.
    two.switch.switch_to(1);
    two.region.monitor.scan().await.unwrap();
    assert_eq!(two.accounts.read(&north()).await.unwrap(), None);
    two.switch.switch_to(0);
    two.region.monitor.scan().await.unwrap();
    assert_eq!(two.record().await.account, id_of(&two.right).await);
}

/// What exchanges the credentials during a call: it switches to the other account right before or right after the call is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Before,
    After,
}

/// Switches the account at one call of an operation, and back some time later.
#[derive(Debug)]
struct Exchange {
    switch: Arc<SwitchedCloud>,
    at: Operation,
    moment: Moment,
    left: AtomicU64,
}

impl Exchange {
    fn switch(&self) {
        self.switch.switch_to(1);
        let switch = self.switch.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(20)).await;
            switch.switch_to(0);
        });
    }
}

impl Layer for Exchange {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, CloudResult<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, CloudResult<T>> {
        Box::pin(async move {
            let is_now = request.operation() == self.at && {
                let one_less = |left: u64| left.checked_sub(1);
                let (set, get) = (Ordering::SeqCst, Ordering::SeqCst);
                self.left.fetch_update(set, get, one_less).is_ok()
            };
            if is_now && self.moment == Moment::Before {
                self.switch();
            }
            let result = send().await;
            if is_now && self.moment == Moment::After {
                self.switch();
            }
            result
        })
    }
}

/// Two accounts, of which the second is used from one call on for 20 seconds.
fn exchanged_at(at: Operation, moment: Moment, calls: u64) -> TwoAccounts {
    let two = TwoAccounts::new();
    let exchange = Exchange {
        switch: two.switch.clone(),
        at,
        moment,
        left: AtomicU64::new(calls),
    };
    let cloud = Layered::new(two.switch.clone(), exchange);
    let region = TestRegion::with(
        Arc::new(cloud),
        two.region.store.clone(),
        NamePlanner::identity(),
    );
    TwoAccounts { region, ..two }
}

#[tokio::test(start_paused = true)]
async fn launch_in_another_account_is_never_lost_sight_of() {
    for moment in [Moment::Before, Moment::After] {
        let two = exchanged_at(Operation::LaunchInstance, moment, 2);
        two.create(1).await;
        two.region
            .during(async {
                tokio::time::sleep(10 * MINUTE).await;
                two.running(1).await;
                two.create(2).await;
                tokio::time::sleep(10 * MINUTE).await;
                two.running(2).await;
            })
            .await;
        let (right, wrong) = (&two.right.oracle(), &two.wrong.oracle());
        let servers: Vec<_> = [1, 2].map(server_id).into();
        let mut machines = Vec::new();
        for server in &servers {
            machines.push(machine_of(&two.region.read(*server).await));
        }
        let in_right: Vec<_> = right
            .instances()
            .iter()
            .map(|one| one.info.id.clone())
            .collect();
        assert!(machines.iter().all(|id| in_right.contains(id)));
        assert_eq!(in_right.len(), 2, "each server has one machine");
        assert_eq!(wrong.call_count(WireCall::Terminate), 0);
        // Every machine in the other account is reported with that account and its id.
        let leaked = two.record().await.leaked;
        let reported: BTreeSet<_> = leaked
            .iter()
            .filter_map(|leak| leak.machine.clone())
            .collect();
        let existing: BTreeSet<_> = wrong
            .instances()
            .iter()
            .map(|one| one.info.id.clone())
            .collect();
        assert_eq!(reported, existing, "{moment:?}");
        assert_eq!(existing.is_empty(), moment == Moment::After);
        for leak in &leaked {
            assert_eq!(leak.account, Some(id_of(&two.wrong).await));
            assert!(servers.contains(&leak.server));
        }
        // The operator has terminated it there.
        for leak in leaked {
            let resolved = two
                .accounts
                .resolve_leak(&operator(), &north(), &leak.token)
                .await;
            assert!(resolved.unwrap());
        }
        assert!(two.record().await.leaked.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn no_change_of_a_machine_is_believed_of_another_account() {
    use Operation::{
        FindLaunch, RebootInstance, ResizeInstance, StopInstance, TerminateInstance, UpdateTags,
    };
    for at in [
        StopInstance,
        RebootInstance,
        ResizeInstance,
        UpdateTags,
        TerminateInstance,
        FindLaunch,
    ] {
        for moment in [Moment::Before, Moment::After] {
            let two = exchanged_at(at, moment, 1);
            two.create(1).await;
            let (id, admin, servers) = (server_id(1), server_admin(), &two.region.servers);
            let settled =
                |view: &ServerView| view.server.observed_generation == view.server.generation;
            two.region
                .during(async {
                    let machine = machine_of(&two.region.until(id, running).await);
                    servers
                        .request_reboot(&admin, id, Reboot::Hard)
                        .await
                        .unwrap();
                    two.region.until(id, running).await;
                    let mut spec = two.region.read(id).await.server.spec;
                    spec.flavor = flavor("large");
                    spec.tags = Tags::new().with("team", "blue").unwrap();
                    let keep = Consent::KeepEverything;
                    servers.set_spec(&admin, id, &spec, keep).await.unwrap();
                    two.region.until(id, running).await;
                    servers.set_power(&admin, id, Power::Stopped).await.unwrap();
                    let stopped = |view: &ServerView| view.phase == Phase::Stopped && settled(view);
                    let view = two.region.until(id, stopped).await;
                    assert_eq!(machine_of(&view), machine, "{at} {moment:?}");
                    let truth = two.right.oracle().instance(&machine).unwrap();
                    assert_eq!(truth.info.tags.get("team"), Some("blue"), "{at} {moment:?}");
                    servers.delete(&admin, id).await.unwrap();
                    two.region.until_gone(id).await;
                })
                .await;
            let left = two.right.oracle().leftovers();
            assert!(left.is_empty(), "{at} {moment:?}: {left:?}");
            assert_eq!(
                two.right.oracle().call_count(WireCall::Launch),
                1,
                "{at} {moment:?}"
            );
            assert!(two.record().await.leaked.is_empty());
        }
    }
}
