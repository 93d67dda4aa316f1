//! A whole façade on the memory cloud.

use std::{fmt, ops::Deref, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::InstanceProvisioner;
use fleetwright_compute::{
    ComputeError,
    controller::ControllerPolicy,
    facade::{Facade, FacadeRegion},
    instance::{ConditionKind, Instance, InstanceId},
    service::{InstanceDependencies, InstanceView, Instances},
};
use fleetwright_identity::{Allocation, Amounts, Defaults, Principal, QuotaKind, QuotaKinds};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    catalog::CatalogService,
    ids::{NetworkId, RegionId, SecurityGroupId, SshAuthorityId},
    monitor::Policy,
    network::{AuthorityKey, NewNetwork, NewSecurityGroup, NewSshAuthority, Rules as GroupRules},
    secret::{Keyring, ServerKeys, SshKeys},
    server::{Consent, NewServer, Phase, Plan, ServerError, ServerSpec, ServerView, Servers},
};
use fleetwright_runtime::{
    clock::{Clock, TokioClock},
    entropy::{Entropy, OsEntropy},
};
use fleetwright_store::{Kind, Query, Store, Table, Transaction, Versioned};
use serde_json::{Value, json};

use crate::{
    CATALOG, MAPPING, advance_until, memory_store, name, new_instance, new_server, north, operator,
    principals::Tenant, project_user, record_id, server_id, server_spec, tenant,
};

const KEYS: &str = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const AUTHORITY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAy6fJc6yBCQTw1DopXqb20HM2tM0UvQcjhH2mQNCtjX";

/// A façade with regions `north` and `south` on one memory cloud, the [catalog](CATALOG), server keys, and a clock that follows
/// tokio's. The monitor of `north` scans every two seconds; no loop of `south` runs.
///
/// It derefs to its [`Facade`].
pub struct TestFacade {
    facade: Facade,
    /// The cloud. A façade on another provisioner does not use it.
    pub cloud: MemoryCloud,
    /// The key pairs of servers.
    pub keys: ServerKeys,
    /// The records of instances.
    pub table: Table<Instance>,
    server_quota: u64,
}

/// Changes what a [`TestFacade`] is built from.
pub struct TestFacadeBuilder {
    cloud: MemoryCloud,
    provisioner: Option<Arc<dyn InstanceProvisioner>>,
    store: Option<Arc<dyn Store>>,
    clock: Option<Arc<dyn Clock>>,
    catalog: Option<Arc<CatalogService>>,
    mapping: String,
    server_quota: u64,
    scan_every: Duration,
    instance_policy: ControllerPolicy,
}

impl Deref for TestFacade {
    type Target = Facade;
    fn deref(&self) -> &Facade {
        &self.facade
    }
}

impl TestFacadeBuilder {
    /// On this cloud.
    #[must_use]
    pub fn cloud(mut self, cloud: &MemoryCloud) -> Self {
        self.cloud = cloud.clone();
        self
    }

    /// On this handle of a cloud.
    #[must_use]
    pub fn provisioner(mut self, provisioner: Arc<dyn InstanceProvisioner>) -> Self {
        self.provisioner = Some(provisioner);
        self
    }

    /// On this store. Without it, on an empty one in memory.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// With this mapping of region `north`.
    #[must_use]
    pub fn mapping(mut self, mapping: impl Into<String>) -> Self {
        self.mapping = mapping.into();
        self
    }

    /// With this many servers, and as many public addresses, for each organization. Without it, 1000.
    #[must_use]
    pub fn server_quota(mut self, servers: u64) -> Self {
        self.server_quota = servers;
        self
    }

    /// With scans as often as this.
    #[must_use]
    pub fn scan_every(mut self, interval: Duration) -> Self {
        self.scan_every = interval;
        self
    }

    /// With a changed policy of the controllers of instances and networks.
    #[must_use]
    pub fn instance_policy(mut self, change: impl FnOnce(&mut ControllerPolicy)) -> Self {
        change(&mut self.instance_policy);
        self
    }

    /// Builds it.
    pub async fn build(self) -> TestFacade {
        let store = self.store.unwrap_or_else(memory_store);
        let clock = self.clock.unwrap_or_else(|| {
            let epoch = DateTime::<Utc>::from_timestamp(1_767_225_600, 0).unwrap();
            Arc::new(TokioClock::starting_at(epoch))
        });
        let cloud = &self.cloud;
        let provisioner = self
            .provisioner
            .unwrap_or_else(|| Arc::new(cloud.provisioner()));
        let mut policy = Policy::default();
        policy.tick = self.scan_every;
        let quota = QuotaKinds::standard()
            .with(
                QuotaKind::servers(),
                Defaults::organization(self.server_quota),
            )
            .with(
                QuotaKind::public_ips(),
                Defaults::organization(self.server_quota),
            );
        let keyring: Arc<Keyring> = Arc::new(KEYS.parse().unwrap());
        let builder = Facade::builder()
            .store(store.clone())
            .clock(clock)
            .region(provisioner.clone(), self.mapping)
            .region(provisioner, MAPPING.replace("north", "south"))
            .quota_kinds(quota)
            .keyring(keyring.clone())
            .instance_policy(self.instance_policy)
            .monitor_policy(policy);
        let builder = match self.catalog {
            Some(catalog) => builder.shared_catalog(catalog),
            None => builder.catalog(CATALOG),
        };
        TestFacade {
            facade: builder.build().await.unwrap(),
            keys: ServerKeys::new(store.clone(), keyring, Arc::new(OsEntropy)).unwrap(),
            table: Table::new(store).unwrap(),
            cloud: self.cloud,
            server_quota: self.server_quota,
        }
    }
}

impl TestFacade {
    /// On an empty store and a new memory cloud.
    pub async fn new() -> Self {
        Self::builder().build().await
    }

    /// On an empty store and this cloud.
    pub async fn on(cloud: &MemoryCloud) -> Self {
        Self::builder().cloud(cloud).build().await
    }

    /// Begins with the defaults.
    pub fn builder() -> TestFacadeBuilder {
        TestFacadeBuilder {
            cloud: MemoryCloud::new(),
            provisioner: None,
            store: None,
            clock: None,
            catalog: None,
            mapping: MAPPING.to_owned(),
            server_quota: 1000,
            scan_every: Duration::from_secs(2),
            instance_policy: ControllerPolicy::default(),
        }
    }

    /// A façade on this cloud whose instance `web` in network `net` is running.
    pub async fn running_instance(cloud: &MemoryCloud) -> (Self, NetworkId, InstanceId) {
        let facade = Self::on(cloud).await;
        let (network, id) = facade.launch_instance().await;
        (facade, network, id)
    }

    /// Creates instance `web` in network `net`, and runs every loop until it is running.
    pub async fn launch_instance(&self) -> (NetworkId, InstanceId) {
        let network = self.network("net").await;
        let id = self.create(network, "web").await.instance.id;
        self.during(self.until(id, is_running)).await;
        (network, id)
    }

    /// As another process has it, over its own view of the store, with the same clock, catalog and cloud. Reads nothing.
    pub async fn reopen(&self, store: Arc<dyn Store>) -> Self {
        let mut builder = Self::builder()
            .cloud(&self.cloud)
            .store(store)
            .server_quota(self.server_quota);
        builder.clock = Some(self.clock.clone());
        builder.catalog = Some(self.catalog.clone());
        builder.build().await
    }

    /// As [`reopen`](Self::reopen), with its own catalog and its own handle of the cloud.
    pub async fn reopen_with(
        &self,
        store: Arc<dyn Store>,
        provisioner: Arc<dyn InstanceProvisioner>,
    ) -> Self {
        let catalog = CatalogService::open(store.clone()).await.unwrap().0;
        let mut builder = Self::builder()
            .cloud(&self.cloud)
            .provisioner(provisioner)
            .store(store);
        builder.clock = Some(self.clock.clone());
        builder.catalog = Some(Arc::new(catalog));
        builder.build().await
    }

    /// A service that has no access to machines.
    pub fn without_machines(&self) -> Instances {
        let parts = InstanceDependencies::new(
            self.store.clone(),
            self.clock.clone(),
            self.dependencies.clone(),
            self.networks.clone(),
            self.catalog.clone(),
            self.ledger.clone(),
            self.servers.clone(),
        );
        Instances::new(parts).unwrap()
    }

    /// The same façade, whose servers get their keys from this source of entropy.
    pub fn servers_with_key_entropy(&self, entropy: Arc<dyn Entropy>) -> Servers {
        let keyring = Arc::new(KEYS.parse().unwrap());
        let keys = ServerKeys::new(self.store.clone(), keyring, entropy).unwrap();
        let servers = Servers::new(
            self.store.clone(),
            self.clock.clone(),
            self.dependencies.clone(),
            SshKeys::OnePerServer(keys),
        );
        let verbs = self.cloud.provisioner().capabilities().verbs.clone();
        servers.unwrap().with_region(north(), verbs)
    }

    /// Region `north`.
    pub fn region(&self) -> &FacadeRegion {
        &self.regions[0]
    }

    /// Runs the controllers of instances and networks, and the loops of region `north`, until `work` is done. No snapshot is taken.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            result = work => result,
            () = self.instance_controller.run() => unreachable!("a controller runs until it is dropped"),
            () = self.network_controller.run() => unreachable!("a controller runs until it is dropped"),
            () = self.run_region() => unreachable!("a region runs until it is dropped"),
        }
    }

    /// Runs the controller and monitor of region `north` until `work` is done, and no controller of instances.
    pub async fn during_region<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            result = work => result,
            () = self.run_region() => unreachable!("a region runs until it is dropped"),
        }
    }

    /// Runs the controller and monitor of region `north`.
    pub async fn run_region(&self) {
        let region = self.region();
        tokio::join!(region.controller.run(), region.monitor.run());
    }

    /// Creates a network of a tenant.
    pub async fn network_in(&self, tenant: Tenant, region: RegionId, called: &str) -> NetworkId {
        let new = NewNetwork {
            organization: tenant.0,
            project: tenant.1,
            region,
            name: name(called),
            prefix: "10.0.0.0/16".parse().unwrap(),
            dns: Vec::new(),
        };
        let created = self.networks.create(&operator(), &new).await;
        created.unwrap().value.id
    }

    /// Creates a network of `tenant(1, 1)` in region `north`.
    pub async fn network(&self, called: &str) -> NetworkId {
        self.network_in(tenant(1, 1), north(), called).await
    }

    /// Creates a security group without rules.
    pub async fn group(&self, network: NetworkId, called: &str) -> SecurityGroupId {
        let new = NewSecurityGroup {
            network,
            name: name(called),
            rules: GroupRules::default(),
        };
        let created = self.security_groups.create(&operator(), &new).await;
        created.unwrap().value.id
    }

    /// Creates an SSH certificate authority.
    pub async fn authority(&self, tenant: Tenant) -> SshAuthorityId {
        let new = NewSshAuthority {
            organization: tenant.0,
            project: tenant.1,
            name: name("ca"),
            public_key: AuthorityKey::new(AUTHORITY).unwrap(),
        };
        let created = self.ssh_authorities.create(&operator(), &new).await;
        created.unwrap().value.id
    }

    /// Requests an instance of `tenant(1, 1)`.
    pub async fn try_create(
        &self,
        network: NetworkId,
        called: &str,
    ) -> Result<InstanceView, ComputeError> {
        let alice = project_user(tenant(1, 1));
        let new = new_instance(network, called);
        self.instances.create(&alice, &new).await
    }

    /// Creates an instance of `tenant(1, 1)`.
    pub async fn create(&self, network: NetworkId, called: &str) -> InstanceView {
        self.try_create(network, called).await.unwrap()
    }

    /// Inserts the record of an instance of `tenant(1, 1)` with its allocation, without the checks of the service.
    pub async fn insert(&self, instance: Instance) -> InstanceId {
        let (id, key) = (instance.id, instance.id.key().unwrap());
        let amounts = Amounts::new().with(QuotaKind::servers(), 1);
        let (organization, project) = tenant(1, 1);
        let allocation = Allocation::new(self.table.id(&key), organization, project, amounts);
        let build = || async {
            let transaction = self.table.create(Transaction::new(), &key, &instance)?;
            Ok::<_, ComputeError>(self.ledger.charge(transaction, &allocation).await?)
        };
        self.ledger.commit(organization, build).await.unwrap();
        id
    }

    /// Changes the desired state of an instance, without the checks of the service.
    pub async fn edit(&self, id: InstanceId, change: impl Fn(&mut Instance)) {
        loop {
            let read = self.record(id).await.unwrap();
            let mut instance = read.value.clone();
            change(&mut instance);
            instance.generation += 1;
            let replaced = self.table.replace(Transaction::new(), &read, &instance);
            match self.store.commit(&replaced.unwrap()).await {
                Ok(_) => return,
                Err(error) => assert!(error.conflict().is_some(), "{error}"),
            }
        }
    }

    /// Requests the deletion of an instance of `tenant(1, 1)`.
    pub async fn delete(&self, id: InstanceId) {
        let alice = project_user(tenant(1, 1));
        self.instances.delete(&alice, id).await.unwrap();
    }

    /// Reads an instance as an operator.
    pub async fn read(&self, id: InstanceId) -> InstanceView {
        self.instances.read(&operator(), id).await.unwrap()
    }

    /// Reads an instance's record.
    pub async fn record(&self, id: InstanceId) -> Option<Versioned<Instance>> {
        self.table.get(&id.key().unwrap()).await.unwrap()
    }

    /// Reads an instance's server.
    pub async fn server(&self, id: InstanceId) -> Option<ServerView> {
        self.servers.read(&operator(), id.server()).await.ok()
    }

    /// Waits until an instance fulfils a condition, and returns it. The loops must run meanwhile.
    pub async fn until(&self, id: InstanceId, condition: impl Fn(&Instance) -> bool) -> Instance {
        let read = async || {
            let found = self.record(id).await.unwrap().value;
            Some(found).filter(&condition)
        };
        advance_until("an instance's condition", read).await
    }

    /// Waits until an instance's record is gone. The loops must run meanwhile.
    pub async fn until_gone(&self, id: InstanceId) {
        let read = async || self.record(id).await.is_none().then_some(());
        advance_until("the end of an instance", read).await;
    }

    /// Creates the server of an instance, as its controller does.
    pub async fn make_server(&self, instance: &Instance) {
        let (owner, desired) = (instance.id.owner(), instance.desired_state());
        let tenant = (instance.organization, instance.project);
        let region = instance.region.clone();
        let mut new = NewServer::new(instance.server, owner, region, tenant, desired.spec);
        new.intent = desired.intent;
        self.servers.ensure(&operator(), &new).await.unwrap();
    }

    /// Creates the server of an instance, and records a machine for it to which everything was applied.
    pub async fn make_machine(&self, instance: &Instance) {
        self.make_server(instance).await;
        let change = |server: &mut Value| {
            server["machine"] = json!({
                "id": "i-1", "incarnation": 1, "recorded_at": server["created_at"], "applied": server["spec"],
            });
        };
        self.patch("server", &instance.server.to_string(), change)
            .await;
    }

    /// Requests server number `number` of `tenant(1, 1)`.
    pub async fn ensure(
        &self,
        principal: &Principal,
        number: u128,
        spec: &ServerSpec,
    ) -> Result<ServerView, ServerError> {
        let new = new_server(number, spec.clone());
        self.servers.ensure(principal, &new).await
    }

    /// Requests another spec of server 1, with consent.
    pub async fn set_spec(
        &self,
        principal: &Principal,
        spec: &ServerSpec,
    ) -> Result<Plan, ServerError> {
        let requested = self
            .servers
            .set_spec(principal, server_id(1), spec, Consent::Destroy);
        requested.await.map(|(_, plan)| plan)
    }

    /// Requests server 1 in a new network `blue`.
    pub async fn ensure_server(&self) {
        let network = self.network("blue").await;
        let requested = self.ensure(&operator(), 1, &server_spec(network)).await;
        requested.unwrap();
    }

    /// Requests server 1 and waits until it is running.
    pub async fn running_server(&self) -> ServerView {
        self.ensure_server().await;
        self.during_region(self.until_server(Phase::Running)).await
    }

    /// Reads server 1.
    pub async fn read_server(&self) -> ServerView {
        let read = self.servers.read(&operator(), server_id(1)).await;
        read.unwrap()
    }

    /// Waits until server 1 has applied everything and is in a phase; for `Replacing`, only until it is in that phase.
    pub async fn until_server(&self, phase: Phase) -> ServerView {
        let read = async || {
            let view = self.read_server().await;
            let settled = view.server.observed_generation == view.server.generation;
            let reached = view.phase == phase && (settled || phase == Phase::Replacing);
            reached.then_some(view)
        };
        advance_until("a phase of server 1", read).await
    }

    /// Waits until the server of an instance is in a phase. The loops of the region must run meanwhile.
    pub async fn until_server_phase(&self, id: InstanceId, phase: Phase) {
        let read = async || {
            let view = self.server(id).await.unwrap();
            (view.phase == phase).then_some(())
        };
        advance_until("a phase of a server", read).await;
    }

    /// Waits until the record of server 1 is gone.
    pub async fn until_server_gone(&self) {
        let read = async || self.servers.read(&operator(), server_id(1)).await.err();
        advance_until("the end of server 1", read).await;
    }

    /// The user data that the last launched machine booted with.
    pub fn user_data(&self) -> String {
        let machine = self.cloud.oracle().instances().pop().unwrap();
        let data = machine.user_data.unwrap();
        String::from_utf8(data.as_bytes().to_vec()).unwrap()
    }

    /// Changes a record directly in the store.
    pub async fn patch(&self, kind: &str, key: &str, change: impl FnOnce(&mut Value)) {
        let id = record_id(kind, &key);
        let mut record = self.store.get(&id).await.unwrap().unwrap();
        change(&mut record.value);
        let transaction = Transaction::new().replace(id, record.revision, record.value);
        self.store.commit(&transaction).await.unwrap();
    }

    /// Deletes a record directly in the store.
    pub async fn remove(&self, kind: &str, key: &str) {
        let transaction = Transaction::new().delete(record_id(kind, &key));
        self.store.commit(&transaction).await.unwrap();
    }

    /// Inserts an instance named `broken` whose record cannot be read, and returns its id.
    pub async fn insert_unreadable(&self, network: NetworkId) -> InstanceId {
        let id = InstanceId::derive(network, &name("broken"));
        let (organization, project) = tenant(1, 1);
        let unreadable = json!({
            "network": network, "name": "broken", "organization": organization, "project": project,
            "region": north(), "spec": "nonsense",
        });
        let written = Transaction::new().create(record_id("instance", &id), unreadable);
        self.store.commit(&written).await.unwrap();
        id
    }

    /// How many records of a kind exist.
    pub async fn count(&self, kind: &str) -> usize {
        let query = Query::all(Kind::new(kind).unwrap());
        self.store.list(&query).await.unwrap().records.len()
    }

    /// What an instance uses of its quota.
    pub async fn allocation(&self, id: InstanceId) -> Option<Allocation> {
        let id = record_id("instance", &id);
        self.ledger.allocation(&id).await.unwrap()
    }

    /// The amounts of an instance's allocation, which must exist.
    pub async fn allocated(&self, id: InstanceId) -> Amounts {
        self.allocation(id).await.unwrap().amounts
    }

    /// Checks that no instance, server, key or allocation is left, and no machine.
    pub async fn assert_empty(&self) {
        for kind in ["instance", "server", "allocation", "server-key"] {
            assert_eq!(self.count(kind).await, 0, "{kind}");
        }
        self.assert_balanced(0).await;
        let left = self.cloud.oracle().leftovers();
        assert!(left.is_empty(), "{left:?}");
    }

    /// Checks that there are this many instances, each with its allocation, and that the ledger's totals are their sum.
    pub async fn assert_balanced(&self, instances: usize) {
        let audit = self.ledger.audit(tenant(1, 1).0).await.unwrap();
        assert!(audit.differences.is_empty(), "{audit:?}");
        assert_eq!(self.count("allocation").await, instances);
        assert_eq!(self.count("instance").await, instances);
    }
}

/// Whether an instance is running and everything requested is applied.
pub fn is_running(instance: &Instance) -> bool {
    instance.status.phase == Phase::Running && is_settled(instance)
}

/// Whether everything requested of an instance is applied.
pub fn is_settled(instance: &Instance) -> bool {
    instance.status.observed_generation == instance.generation
}

/// Whether an instance has a condition.
pub fn has_condition(instance: &Instance, kind: ConditionKind) -> bool {
    instance.status.condition(kind).is_some()
}

impl fmt::Debug for TestFacade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestFacade").finish_non_exhaustive()
    }
}

impl fmt::Debug for TestFacadeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestFacadeBuilder").finish_non_exhaustive()
    }
}
