//! A region whose provisioner can be switched to another account of the cloud.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use fleetwright::{
    AccountId, BoxFuture, InstanceConfig, InstanceId, InstanceProvisioner, Operation,
    Result as CloudResult,
    layer::{Layer, Layered, Request},
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    account::{RegionAccount, RegionAccounts},
    controller::tags,
    monitor::OrphanPolicy,
};

use crate::{
    NamePlanner, SwitchedCloud, TestRegion, is_server_running, machine_of, north, server_id,
};

/// A region on the first of two accounts, which terminates orphans at once.
#[derive(Debug)]
pub struct TwoAccounts {
    /// The cloud of the region's account.
    pub right: MemoryCloud,
    /// The cloud of the other account.
    pub wrong: MemoryCloud,
    /// Selects the account: 0 is right, 1 is wrong.
    pub switch: Arc<SwitchedCloud>,
    /// The region.
    pub region: TestRegion,
    /// The record of the region's account.
    pub accounts: RegionAccounts,
}

impl TwoAccounts {
    /// A new region on the right account.
    #[must_use]
    pub fn new() -> Self {
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

    /// A new region. The first `calls` calls of an operation switch it to the wrong account, each for 20 seconds.
    #[must_use]
    pub fn exchanged_at(at: Operation, moment: Moment, calls: u64) -> Self {
        let two = Self::new();
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
        Self { region, ..two }
    }

    /// Creates the server with this number.
    pub async fn create(&self, number: u128) {
        self.region.create(number).await;
    }

    /// Waits until the first servers run, and returns their machines. The loops must run meanwhile.
    pub async fn running(&self, servers: u128) -> Vec<InstanceId> {
        let mut machines = Vec::new();
        for number in 1..=servers {
            let view = self
                .region
                .until(server_id(number), is_server_running)
                .await;
            machines.push(machine_of(&view));
        }
        machines
    }

    /// Reads the record of the region's account.
    pub async fn record(&self) -> RegionAccount {
        self.accounts.read(&north()).await.unwrap().unwrap()
    }

    /// Launches machines in the wrong account, as another installation does for a region of the same name.
    pub fn populate(&self, machines: usize) {
        for _ in 0..machines {
            let config = InstanceConfig::builder("debian", "small")
                .tag(tags::REGION, "north")
                .build();
            let actor = self.wrong.external_actor();
            actor.launch(&config.unwrap()).unwrap();
        }
    }
}

impl Default for TwoAccounts {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the id of a cloud's account.
pub async fn account_of(cloud: &MemoryCloud) -> AccountId {
    cloud.provisioner().account_id().await.unwrap().unwrap()
}

/// When credentials are exchanged: right before or right after a call is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The call reaches the wrong account.
    Before,
    /// The call has reached the right account.
    After,
}

/// Switches to the wrong account at the first calls of an operation, and back 20 seconds later.
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
