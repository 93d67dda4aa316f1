//! A façade as tenants have it: a catalog, networks, groups, authorities, a ledger, servers, machines, and the instances on them.
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod people;
pub(crate) mod shop;
pub(crate) mod stores;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::InstanceProvisioner;
use fleetwright_compute::{
    ComputeError,
    instance::{Instance, InstanceId, InstanceSpec},
    schema,
    service::{InstanceView, Instances, NewInstance, Parts},
};
use fleetwright_identity::{
    Allocation, Amounts, Defaults, Ledger, Principal, QuotaKind, QuotaKinds,
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    catalog::CatalogKeeper,
    controller::Controller,
    ids::{FlavorId, ImageId, NetworkId, RegionId, SecurityGroupId, SshAuthorityId},
    machine::Machines,
    mapping::RegionPlanner,
    monitor::{Monitor, Policy},
    name::Name,
    network::{
        AuthorityKey, Networks, NewNetwork, NewSecurityGroup, NewSshAuthority, Rules,
        SecurityGroups, SshAuthorities,
    },
    secret::{ServerKeys, SshKeys},
    server::{Ground, NewServer, Phase, Servers, TenantGround},
};
use fleetwright_runtime::{
    clock::{Clock, TokioClock},
    entropy::OsEntropy,
};
use fleetwright_store::{MemoryStore, Query, RecordId, Schema, Store, Transaction};
use serde_json::{Value, json};

pub(crate) use people::{Tenant, everybody, tenant, user};
#[allow(unused_imports, reason = "each test binary uses a part of it")]
pub(crate) use shop::{CATALOG, MAPPING, without};

const KEYS: &str = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

pub(crate) fn north() -> RegionId {
    RegionId::new("north").unwrap()
}

pub(crate) fn south() -> RegionId {
    RegionId::new("south").unwrap()
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn flavor(id: &str) -> FlavorId {
    FlavorId::new(id).unwrap()
}

pub(crate) fn image(id: &str) -> ImageId {
    ImageId::new(id).unwrap()
}

pub(crate) fn spec() -> InstanceSpec {
    InstanceSpec::new(flavor("small"), image("debian"))
}

/// An instance of the first tenant.
pub(crate) fn new(network: NetworkId, called: &str) -> NewInstance {
    NewInstance::new(name(called), tenant(1, 1), network, spec())
}

pub(crate) fn schema() -> Schema {
    schema::add_all_kinds(Schema::builder()).build().unwrap()
}

pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(schema()))
}

/// Limits that no test reaches unless it wants to.
pub(crate) fn kinds(servers: u64) -> QuotaKinds {
    QuotaKinds::standard()
        .with(QuotaKind::servers(), Defaults::organization(servers))
        .with(QuotaKind::public_ips(), Defaults::organization(servers))
}

pub(crate) struct Town {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) catalog: Arc<CatalogKeeper>,
    pub(crate) networks: Arc<Networks>,
    pub(crate) groups: Arc<SecurityGroups>,
    pub(crate) authorities: Arc<SshAuthorities>,
    pub(crate) keys: ServerKeys,
    pub(crate) ledger: Ledger,
    pub(crate) servers: Servers,
    pub(crate) ground: Arc<dyn Ground>,
    pub(crate) cloud: MemoryCloud,
    pub(crate) instances: Instances,
}

impl Town {
    pub(crate) async fn new() -> Self {
        Self::over(memory(), 1000).await
    }

    /// With so many servers and public addresses for each organization.
    pub(crate) async fn over(store: Arc<dyn Store>, servers: u64) -> Self {
        let epoch = DateTime::<Utc>::from_timestamp(1_767_225_600, 0).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(epoch));
        let (catalog, damaged) = CatalogKeeper::open(store.clone()).await.unwrap();
        assert_eq!(damaged, []);
        catalog.load(CATALOG).await.unwrap();
        let catalog = Arc::new(catalog);
        Self::reopened(store, clock, catalog, servers)
    }

    /// As another process has it, in the same time.
    pub(crate) fn reopened(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        catalog: Arc<CatalogKeeper>,
        servers: u64,
    ) -> Self {
        let entropy = Arc::new(OsEntropy);
        let regions = BTreeSet::from([north(), south()]);
        let networks = Networks::new(store.clone(), regions, entropy.clone());
        let networks = Arc::new(networks.unwrap());
        let groups = SecurityGroups::new(store.clone(), networks.clone(), entropy.clone());
        let groups = Arc::new(groups.unwrap());
        let authorities = SshAuthorities::new(store.clone(), entropy.clone());
        let authorities = Arc::new(authorities.unwrap());
        let keyring = Arc::new(KEYS.parse().unwrap());
        let keys = ServerKeys::new(store.clone(), keyring, entropy).unwrap();
        let ground: Arc<dyn Ground> = Arc::new(TenantGround::new(
            networks.clone(),
            groups.clone(),
            authorities.clone(),
            catalog.clone(),
        ));
        let cloud = MemoryCloud::new();
        let verbs = cloud.provisioner().capabilities().verbs.clone();
        let ssh = SshKeys::OnePerServer(keys.clone());
        let made = Servers::new(store.clone(), clock.clone(), ground.clone(), ssh.clone());
        let made = made.unwrap().with_region(north(), verbs.clone());
        let made = made.with_region(south(), verbs);
        let ledger = Ledger::new(store.clone(), Arc::new(kinds(servers))).unwrap();
        let machines = Machines::new(store.clone(), clock.clone(), catalog.clone(), ssh);
        let machines = machines.unwrap();
        let machines = machines.with_region(north(), Arc::new(cloud.provisioner()));
        let parts = Parts::new(
            store.clone(),
            clock.clone(),
            ground.clone(),
            networks.clone(),
            catalog.clone(),
            ledger.clone(),
            made.clone(),
        );
        Self {
            instances: Instances::new(parts.with_machines(machines)).unwrap(),
            store,
            clock,
            catalog,
            networks,
            groups,
            authorities,
            keys,
            ledger,
            servers: made,
            ground,
            cloud,
        }
    }

    /// A service that was not told how machines are asked.
    pub(crate) fn without_machines(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        catalog: Arc<CatalogKeeper>,
    ) -> Instances {
        let town = Self::reopened(store, clock, catalog, 1000);
        let parts = Parts::new(
            town.store,
            town.clock,
            town.ground,
            town.networks,
            town.catalog,
            town.ledger,
            town.servers,
        );
        Instances::new(parts).unwrap()
    }

    pub(crate) async fn network_in(
        &self,
        tenant: Tenant,
        region: RegionId,
        called: &str,
    ) -> NetworkId {
        let new = NewNetwork {
            organization: tenant.0,
            project: tenant.1,
            region,
            name: name(called),
            prefix: "10.0.0.0/16".parse().unwrap(),
            dns: Vec::new(),
        };
        let made = self.networks.create(&everybody(), &new).await.unwrap();
        made.value.id
    }

    pub(crate) async fn network(&self, called: &str) -> NetworkId {
        self.network_in(tenant(1, 1), north(), called).await
    }

    pub(crate) async fn group(&self, network: NetworkId, called: &str) -> SecurityGroupId {
        let new = NewSecurityGroup {
            network,
            name: name(called),
            rules: Rules::default(),
        };
        let made = self.groups.create(&everybody(), &new).await.unwrap();
        made.value.id
    }

    pub(crate) async fn authority(&self, tenant: Tenant) -> SshAuthorityId {
        let key =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAy6fJc6yBCQTw1DopXqb20HM2tM0UvQcjhH2mQNCtjX";
        let new = NewSshAuthority {
            organization: tenant.0,
            project: tenant.1,
            name: name("ca"),
            public_key: AuthorityKey::new(key).unwrap(),
        };
        let made = self.authorities.create(&everybody(), &new).await;
        made.unwrap().value.id
    }

    /// Asks for an instance of the first tenant.
    pub(crate) async fn create(
        &self,
        network: NetworkId,
        called: &str,
    ) -> Result<InstanceView, ComputeError> {
        let alice = user(tenant(1, 1));
        self.instances.create(&alice, &new(network, called)).await
    }

    pub(crate) async fn read(&self, id: InstanceId) -> InstanceView {
        self.instances.read(&everybody(), id).await.unwrap()
    }

    /// Makes the server of an instance, as its controller does.
    pub(crate) async fn make_server(&self, instance: &Instance) {
        let (owner, wish) = (instance.id.owner(), instance.wish());
        let tenant = (instance.organization, instance.project);
        let region = instance.region.clone();
        let mut new = NewServer::new(instance.server, owner, region, tenant, wish.spec);
        new.intent = wish.intent;
        self.servers.ensure(&everybody(), &new).await.unwrap();
    }

    /// Makes the server of an instance, with a machine that has what is asked.
    pub(crate) async fn make_machine(&self, instance: &Instance) {
        self.make_server(instance).await;
        let change = |server: &mut Value| {
            server["instance"] = json!({
                "id": "i-1", "incarnation": 1, "recorded_at": server["created_at"], "applied": server["spec"],
            });
        };
        self.patch("server", &instance.server.to_string(), change)
            .await;
    }

    /// Changes a record behind everybody's back.
    pub(crate) async fn patch(&self, kind: &str, key: &str, change: impl FnOnce(&mut Value)) {
        let id = RecordId::new(kind, key).unwrap();
        let mut record = self.store.get(&id).await.unwrap().unwrap();
        change(&mut record.value);
        let transaction = Transaction::new().replace(id, record.revision, record.value);
        self.store.commit(&transaction).await.unwrap();
    }

    /// Deletes records behind everybody's back.
    pub(crate) async fn remove(&self, kind: &str, key: &str) {
        let transaction = Transaction::new().delete(RecordId::new(kind, key).unwrap());
        self.store.commit(&transaction).await.unwrap();
    }

    /// How many records of a kind there are.
    pub(crate) async fn count(&self, kind: &str) -> usize {
        let kind = fleetwright_store::Kind::new(kind).unwrap();
        let page = self.store.list(&Query::all(kind)).await.unwrap();
        page.records.len()
    }

    pub(crate) async fn allocation(&self, id: InstanceId) -> Option<Allocation> {
        let id = RecordId::new("instance", id.to_string()).unwrap();
        self.ledger.allocation(&id).await.unwrap()
    }

    pub(crate) async fn paid(&self, id: InstanceId) -> Amounts {
        self.allocation(id).await.unwrap().amounts
    }

    /// Lets the region of servers work until `story` is over.
    pub(crate) async fn during<T>(&self, story: impl Future<Output = T>) -> T {
        let cloud: Arc<dyn InstanceProvisioner> = Arc::new(self.cloud.provisioner());
        let planner = Arc::new(RegionPlanner::new(self.catalog.clone(), MAPPING).unwrap());
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let controller = Controller::new(north(), store, cloud.clone(), planner, clock);
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let mut policy = Policy::default();
        policy.tick = Duration::from_secs(2);
        let monitor = Monitor::new(north(), store, cloud, clock).unwrap();
        let (controller, monitor) = (controller.unwrap(), monitor.with_policy(policy));
        tokio::select! {
            biased;
            told = story => told,
            () = controller.run() => panic!("a controller works until it is dropped"),
            () = monitor.run() => panic!("a monitor works until it is dropped"),
        }
    }

    /// Waits until the server of an instance is in a phase.
    pub(crate) async fn until(&self, id: InstanceId, phase: Phase) {
        let who: Principal = everybody();
        for _ in 0..900 {
            let view = self.servers.read(&who, id.server()).await.unwrap();
            if view.phase == phase {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("never {phase:?}");
    }
}

/// An error with all its causes, as an interface would log it.
pub(crate) fn whole(error: &dyn std::error::Error) -> String {
    let said = error.to_string();
    error.source().map_or(said.clone(), |cause| {
        let cause = whole(cause);
        format!("{said}: {cause}")
    })
}
