//! Faults at every step of a launch during which the credentials are exchanged: the operator can find every machine in the other account.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod crash;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use fleetwright::{
    BoxFuture, InstanceProvisioner, Operation, Result as CloudResult,
    layer::{Layer, Layered, Request},
};
use fleetwright_facade_testkit::{
    NamePlanner, SwitchedCloud, TestRegion, memory_store, north, server_admin, server_id,
};
use fleetwright_memory::{MemoryCloud, OracleInstance, WireCall};
use fleetwright_region::{
    account::{LeakedLaunch, RegionAccounts},
    server::{Phase, ServerView},
};
use fleetwright_store::Store;

use crash::{CallSteps, Flaky, Kind, Plan};

/// For how long the credentials of the other account are configured, from the first launch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchanged {
    Never,
    ForTheCall,
    For(Duration),
}

/// Exchanges the credentials right before the first launch.
#[derive(Debug)]
struct Exchange {
    switch: Arc<SwitchedCloud>,
    exchanged: Exchanged,
    is_done: Arc<AtomicBool>,
}

impl Layer for Exchange {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, CloudResult<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, CloudResult<T>> {
        Box::pin(async move {
            let launches = request.operation() == Operation::LaunchInstance;
            if !launches || self.is_done.swap(true, Ordering::SeqCst) {
                return send().await;
            }
            match self.exchanged {
                Exchanged::Never => send().await,
                Exchanged::ForTheCall => {
                    self.switch.switch_to(1);
                    let result = send().await;
                    self.switch.switch_to(0);
                    result
                }
                Exchanged::For(time) => {
                    self.switch.switch_to(1);
                    let switch = Arc::clone(&self.switch);
                    tokio::spawn(async move {
                        tokio::time::sleep(time).await;
                        switch.switch_to(0);
                    });
                    send().await
                }
            }
        })
    }
}

/// The calls to the cloud that are steps of a launch.
const STEPS: &[Operation] = &[
    Operation::AccountId,
    Operation::LaunchInstance,
    Operation::FindLaunch,
];

/// How long a process runs without a crash: until everything has happened.
const ENOUGH: Duration = Duration::from_secs(500);

/// How a server came to its machine.
struct History {
    steps: u64,
    leaked: Vec<LeakedLaunch>,
    in_other: Vec<OracleInstance>,
    text: String,
}

/// Creates a server, and restarts the process after every crash until its machine runs.
async fn history(faults: Vec<(u64, Kind)>, exchanged: Exchanged) -> History {
    // With other seeds, because machines of two accounts have other ids.
    let cloud = |seed| MemoryCloud::builder().seed(seed).build();
    let (right, wrong) = (cloud(1), cloud(2));
    let handles: Vec<Arc<dyn InstanceProvisioner>> =
        vec![Arc::new(right.provisioner()), Arc::new(wrong.provisioner())];
    let switch = SwitchedCloud::new(handles);
    let is_done = Arc::new(AtomicBool::new(false));
    let plan = Plan::new(faults.clone());
    let store: Arc<dyn Store> = memory_store();
    let first = TestRegion::new(switch.clone());
    let clock = first.clock.clone();
    let known = TestRegion::reopened(
        switch.clone(),
        store.clone(),
        NamePlanner::identity(),
        clock.clone(),
    );
    known.create(1).await;
    loop {
        let exchange = Exchange {
            switch: switch.clone(),
            exchanged,
            is_done: Arc::clone(&is_done),
        };
        let cloud = Layered::new(switch.clone(), exchange);
        let cloud = Layered::new(cloud, CallSteps(Arc::clone(&plan), STEPS));
        let flaky: Arc<dyn Store> = Flaky::<dyn Store>::new(&plan, &store);
        let names = NamePlanner::identity();
        let process = TestRegion::reopened(Arc::new(cloud), flaky, names, clock.clone())
            .policy(|policy| policy.tick = Duration::from_secs(10));
        tokio::select! {
            biased;
            () = plan.died() => {}
            () = process.during(tokio::time::sleep(ENOUGH)) => break,
        }
    }
    let log: Vec<_> = plan.log().into_iter().take(60).collect();
    let text = format!("{faults:?}, {exchanged:?}: {log:#?}");
    let running = |view: &ServerView| view.phase == Phase::Running;
    let view = known.read(server_id(1)).await;
    assert!(running(&view), "{text}\n{view:#?}");
    let machine = &view.server.machine.as_ref().unwrap().id;
    let alive = |cloud: &MemoryCloud| {
        let mut machines = cloud.oracle().instances();
        machines.retain(|one| !one.info.state.is_ending());
        machines
    };
    let in_right = alive(&right);
    assert_eq!(in_right.len(), 1, "{text}");
    assert_eq!(in_right[0].info.id, *machine, "{text}");
    assert_eq!(wrong.oracle().call_count(WireCall::Terminate), 0, "{text}");
    let accounts = RegionAccounts::new(store, clock).unwrap();
    let account = accounts.read(&north()).await.unwrap();
    History {
        steps: plan.steps(),
        leaked: account.map(|account| account.leaked).unwrap_or_default(),
        in_other: alive(&wrong),
        text,
    }
}

/// Checks that the operator can find every machine in the other account.
fn check(history: &History) {
    for machine in &history.in_other {
        let names = |leak: &&LeakedLaunch| {
            leak.machine.as_ref() == Some(&machine.info.id)
                || machine.token.as_ref() == Some(&leak.token)
        };
        let found = history.leaked.iter().find(names);
        assert!(found.is_some(), "{}\n{:#?}", history.text, history.leaked);
    }
}

#[tokio::test(start_paused = true)]
async fn fault_at_every_step_of_a_launch_hides_no_machine_in_another_account() {
    let (short, long) = (Duration::from_secs(10), Duration::from_secs(90));
    for exchanged in [
        Exchanged::ForTheCall,
        Exchanged::For(short),
        Exchanged::For(long),
    ] {
        let clean = history(Vec::new(), exchanged).await;
        check(&clean);
        assert_eq!(clean.in_other.len(), 1, "the exchange has an effect");
        let mut hidden_by_a_crash = 0;
        for kind in Kind::ALL {
            // The first steps are those of the launch and of what settles it.
            for step in 1..=clean.steps.min(16) {
                let found = history(vec![(step, kind)], exchanged).await;
                // Two comparisons agree, and no machine was reported: see the documentation of the module.
                let is_known_limit =
                    exchanged == Exchanged::ForTheCall && kind == Kind::LostResponse;
                if !is_known_limit {
                    check(&found);
                }
                hidden_by_a_crash += found.in_other.len();
            }
        }
        assert!(hidden_by_a_crash > 30, "{hidden_by_a_crash}");
    }
}

#[tokio::test(start_paused = true)]
async fn launch_is_suspected_only_if_its_result_is_unknown() {
    let clean = history(Vec::new(), Exchanged::Never).await;
    assert!(clean.leaked.is_empty(), "{:#?}", clean.leaked);
    let mut suspicions = 0;
    for kind in Kind::ALL {
        for step in 1..=clean.steps.min(12) {
            let found = history(vec![(step, kind)], Exchanged::Never).await;
            assert!(found.in_other.is_empty());
            let (leaked, text) = (&found.leaked, &found.text);
            assert!(leaked.len() <= 1, "{text}\n{leaked:#?}");
            let suspected = leaked.iter().all(LeakedLaunch::is_suspected);
            assert!(suspected, "{text}\n{leaked:#?}");
            suspicions += leaked.len();
        }
    }
    // A process that ends, or does not learn that the launch is stored, between storing it and its effect.
    assert!((1..=6).contains(&suspicions), "{suspicions}");
}

#[tokio::test(start_paused = true)]
async fn machine_that_was_shown_and_ended_outside_is_not_in_another_account() {
    let cloud = MemoryCloud::builder()
        .terminated_visible(Duration::ZERO)
        .build();
    let region = TestRegion::new(Arc::new(cloud.provisioner()));
    let id = region.create(1).await;
    let running = |view: &ServerView| view.phase == Phase::Running;
    region
        .during(async {
            let machine = region.until(id, running).await.server.machine.unwrap().id;
            cloud.external_actor().terminate(&machine).unwrap();
            let lost = |view: &ServerView| view.phase == Phase::Lost;
            region.until(id, lost).await;
            region.servers.delete(&server_admin(), id).await.unwrap();
            region.until_gone(id).await;
        })
        .await;
    let accounts = RegionAccounts::new(region.store.clone(), region.clock.clone()).unwrap();
    let account = accounts.read(&north()).await.unwrap().unwrap();
    assert!(account.leaked.is_empty(), "{:?}", account.leaked);
}
