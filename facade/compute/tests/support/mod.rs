//! A façade as tenants have it, over a simulated cloud: a catalog, networks, groups, authorities, keys, the region's controller and
//! monitor, and the controllers of instances. Instances are made as the service makes them: record and payment in one transaction.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::{InstanceConfig, InstanceProvisioner, OptionalVerb};
use fleetwright_compute::{
    ComputeError,
    controller::{Controller, Rules},
    instance::{ConditionKind, DeletionCause, Instance, InstanceId},
    networks::NetworkKeeper,
    schema,
    service::{Instances, Parts, compute_principal},
};
use fleetwright_identity::{
    Actor, ActorName, Allocation, Amounts, Binding, Defaults, Ledger, OrganizationId, Permission,
    Principal, ProjectId, QuotaKind, QuotaKinds, RoleName, Roles, Scope,
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    catalog::CatalogKeeper,
    controller as region,
    ids::{FlavorId, ImageId, NetworkId, RegionId, SecurityGroupId, SshAuthorityId},
    mapping::{LaunchPlanner, LaunchSpec, Unplannable},
    monitor::{Monitor, Policy},
    name::Name,
    network::{
        AuthorityKey, Networks, NewNetwork, NewSecurityGroup, NewSshAuthority, Rules as GroupRules,
        SecurityGroups, SshAuthorities,
    },
    secret::{ServerKeys, SshKeys},
    server::{Ground, ServerView, Servers, TenantGround},
};
use fleetwright_runtime::{
    clock::{Clock, TokioClock},
    entropy::OsEntropy,
};
use fleetwright_store::{
    Key, Kind, MemoryStore, Query, RecordId, Schema, Store, Table, Transaction, Versioned,
};
use serde_json::json;
use uuid::Uuid;

const CATALOG: &str = r#"
    [[flavor]]
    id = "small"
    cpus = 2
    memory = "4 GiB"
    disk = "20 GB"
    architecture = "x86_64"

    [[flavor]]
    id = "large"
    cpus = 8
    memory = "16 GiB"
    disk = "80 GB"
    architecture = "x86_64"

    [[image]]
    id = "debian"
    architecture = "x86_64"
    size = "10 GiB"
    virtualization = "any"
    visibility = "global"
    os = { family = "debian", distro = "debian", version = "13" }

    [[image]]
    id = "rocky"
    architecture = "x86_64"
    size = "10 GiB"
    virtualization = "any"
    visibility = "global"
    os = { family = "redhat", distro = "rocky", version = "9" }
"#;

const KEYS: &str = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

pub(crate) fn here() -> RegionId {
    RegionId::new("here").unwrap()
}

pub(crate) fn tenant() -> (OrganizationId, ProjectId) {
    let [organization, project] = [1, 2].map(Uuid::from_u128);
    (organization.into(), project.into())
}

pub(crate) fn alice() -> Actor {
    Actor::User(ActorName::new("alice").unwrap())
}

/// Whoever works in the tenant's project.
pub(crate) fn user() -> Principal {
    let scope = Scope::Project(tenant().0, tenant().1);
    let binding = Binding::new(RoleName::new("project-user").unwrap(), scope);
    Roles::built_in().principal(alice(), &[binding]).unwrap()
}

/// Whoever may do everything.
pub(crate) fn service() -> Principal {
    Principal::service(ActorName::new("compute").unwrap(), Permission::all())
}

/// Flavors and images are called in the cloud as they are here.
#[derive(Debug)]
struct SameNames;

impl LaunchPlanner for SameNames {
    fn plan(&self, spec: &LaunchSpec) -> Result<InstanceConfig, Unplannable> {
        let mut builder = InstanceConfig::builder(spec.image.as_str(), spec.flavor.as_str())
            .tags(&spec.tags)
            .launch_token(&spec.token);
        if let Some(data) = &spec.user_data {
            builder = builder.user_data(data.as_bytes());
        }
        let region = here();
        let built = builder.build();
        built.map_err(|source| Unplannable::Refused { region, source })
    }
}

pub(crate) fn memory() -> Arc<dyn Store> {
    let schema = schema::add_all_kinds(Schema::builder()).build().unwrap();
    Arc::new(MemoryStore::new(schema))
}

/// A process of the façade over a store and a cloud.
pub(crate) struct Place {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    catalog: Arc<CatalogKeeper>,
    pub(crate) networks: Arc<Networks>,
    pub(crate) groups: SecurityGroups,
    pub(crate) authorities: SshAuthorities,
    pub(crate) servers: Servers,
    pub(crate) ledger: Ledger,
    pub(crate) table: Table<Instance>,
    pub(crate) instances: Instances,
    pub(crate) controller: Controller,
    pub(crate) keeper: NetworkKeeper,
    pub(crate) region: region::Controller,
    pub(crate) monitor: Monitor,
    cloud: MemoryCloud,
}

impl Place {
    pub(crate) async fn new(cloud: &MemoryCloud) -> Self {
        let epoch = DateTime::<Utc>::from_timestamp(1_767_225_600, 0).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(epoch));
        Self::open(cloud, memory(), clock).await
    }

    /// As a new process opens it, with the calendar going on.
    pub(crate) async fn open(
        cloud: &MemoryCloud,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (catalog, _) = CatalogKeeper::open(Arc::clone(&store)).await.unwrap();
        catalog.load(CATALOG).await.unwrap();
        let catalog = Arc::new(catalog);
        let entropy = Arc::new(OsEntropy);
        let regions = BTreeSet::from([here()]);
        let networks = Networks::new(store.clone(), regions, entropy.clone()).unwrap();
        let networks = Arc::new(networks);
        let groups =
            || SecurityGroups::new(store.clone(), networks.clone(), entropy.clone()).unwrap();
        let authorities = || SshAuthorities::new(store.clone(), entropy.clone()).unwrap();
        let keyring = Arc::new(KEYS.parse().unwrap());
        let keys = ServerKeys::new(store.clone(), keyring, entropy.clone()).unwrap();
        let ground = TenantGround::new(
            networks.clone(),
            Arc::new(groups()),
            Arc::new(authorities()),
            catalog.clone(),
        );
        let ground: Arc<dyn Ground> = Arc::new(ground);
        let machines = cloud.clone();
        let cloud: Arc<dyn InstanceProvisioner> = Arc::new(cloud.provisioner());
        let verbs: BTreeSet<OptionalVerb> = cloud.capabilities().verbs.clone();
        let servers = Servers::new(
            store.clone(),
            clock.clone(),
            Arc::clone(&ground),
            SshKeys::OnePerServer(keys),
        );
        let servers = servers.unwrap().with_region(here(), verbs);
        let kinds = Arc::new(quota_kinds());
        let ledger = Ledger::new(store.clone(), kinds).unwrap();
        let parts = Parts::new(
            store.clone(),
            clock.clone(),
            ground,
            networks.clone(),
            catalog.clone(),
            ledger.clone(),
            servers.clone(),
        );
        let region = region::Controller::new(
            here(),
            store.clone(),
            cloud.clone(),
            Arc::new(SameNames),
            clock.clone(),
        );
        let monitor = Monitor::new(here(), store.clone(), cloud, clock.clone());
        let mut policy = Policy::default();
        policy.tick = Duration::from_secs(2);
        let controller = Controller::new(
            store.clone(),
            servers.clone(),
            ledger.clone(),
            clock.clone(),
            compute_principal().unwrap(),
        );
        let principal = compute_principal().unwrap();
        let keeper = NetworkKeeper::new(store.clone(), networks.clone(), clock.clone(), principal);
        Self {
            groups: groups(),
            authorities: authorities(),
            servers,
            ledger,
            table: Table::new(store.clone()).unwrap(),
            instances: Instances::new(parts).unwrap(),
            controller: controller.unwrap(),
            keeper: keeper.unwrap(),
            region: region.unwrap(),
            monitor: monitor.unwrap().with_policy(policy),
            cloud: machines,
            catalog,
            networks,
            store,
            clock,
        }
    }

    /// The controller of instances of another process, which sees the store in its own way.
    pub(crate) fn controller_over(&self, store: Arc<dyn Store>) -> Controller {
        let entropy = Arc::new(OsEntropy);
        let networks = self.networks_over(Arc::clone(&store));
        let groups = SecurityGroups::new(store.clone(), networks.clone(), entropy.clone());
        let authorities = SshAuthorities::new(store.clone(), entropy.clone());
        let ground = TenantGround::new(
            networks,
            Arc::new(groups.unwrap()),
            Arc::new(authorities.unwrap()),
            Arc::clone(&self.catalog),
        );
        let keyring = Arc::new(KEYS.parse().unwrap());
        let keys = ServerKeys::new(store.clone(), keyring, entropy).unwrap();
        let keys = SshKeys::OnePerServer(keys);
        let clock = Arc::clone(&self.clock);
        let servers = Servers::new(store.clone(), clock.clone(), Arc::new(ground), keys);
        let verbs = self.cloud.provisioner().capabilities().verbs.clone();
        let servers = servers.unwrap().with_region(here(), verbs);
        let kinds = Arc::new(quota_kinds());
        let ledger = Ledger::new(store.clone(), kinds).unwrap();
        let principal = compute_principal().unwrap();
        Controller::new(store, servers, ledger, clock, principal).unwrap()
    }

    pub(crate) fn networks_over(&self, store: Arc<dyn Store>) -> Arc<Networks> {
        let regions = BTreeSet::from([here()]);
        Arc::new(Networks::new(store, regions, Arc::new(OsEntropy)).unwrap())
    }

    pub(crate) fn rules(mut self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut rules = Rules::default();
        change(&mut rules);
        self.controller = self.controller.with_rules(rules.clone());
        self.keeper = self.keeper.with_rules(rules);
        self
    }

    /// Lets everybody work until `story` is over.
    pub(crate) async fn during<T>(&self, story: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            told = story => told,
            () = self.controller.run() => unreachable!("a controller works until it is dropped"),
            () = self.keeper.run() => unreachable!("a keeper works until it is dropped"),
            () = self.region.run() => unreachable!("a controller works until it is dropped"),
            () = self.monitor.run() => unreachable!("a monitor works until it is dropped"),
        }
    }

    pub(crate) async fn network(&self, name: &str) -> NetworkId {
        let new = NewNetwork {
            organization: tenant().0,
            project: tenant().1,
            region: here(),
            name: Name::new(name).unwrap(),
            prefix: "10.0.0.0/16".parse().unwrap(),
            dns: Vec::new(),
        };
        let made = self.networks.create(&service(), &new).await.unwrap();
        made.value.id
    }

    pub(crate) async fn group(&self, network: NetworkId) -> SecurityGroupId {
        let new = NewSecurityGroup {
            network,
            name: Name::new("web").unwrap(),
            rules: GroupRules::default(),
        };
        let made = self.groups.create(&service(), &new).await.unwrap();
        made.value.id
    }

    pub(crate) async fn authority(&self) -> SshAuthorityId {
        let key =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAy6fJc6yBCQTw1DopXqb20HM2tM0UvQcjhH2mQNCtjX";
        let new = NewSshAuthority {
            organization: tenant().0,
            project: tenant().1,
            name: Name::new("ca").unwrap(),
            public_key: AuthorityKey::new(key).unwrap(),
        };
        let made = self.authorities.create(&service(), &new).await.unwrap();
        made.value.id
    }

    /// Makes an instance with its payment.
    pub(crate) async fn create(&self, network: NetworkId, name: &str) -> InstanceId {
        self.create_as(instance(network, name, self.clock.now()))
            .await
    }

    pub(crate) async fn create_as(&self, instance: Instance) -> InstanceId {
        let (id, key) = (instance.id, instance.id.key().unwrap());
        let amounts = Amounts::new().with(QuotaKind::servers(), 1);
        let (organization, project) = tenant();
        let paid = self.table.id(&key);
        let allocation = Allocation::new(paid, organization, project, amounts);
        let build = || async {
            let transaction = self.table.create(Transaction::new(), &key, &instance)?;
            Ok::<_, ComputeError>(self.ledger.charge(transaction, &allocation).await?)
        };
        self.ledger.commit(organization, build).await.unwrap();
        id
    }

    /// Changes what is asked of an instance, as the service does.
    pub(crate) async fn ask(&self, id: InstanceId, change: impl Fn(&mut Instance)) {
        self.write(id, |instance| {
            change(instance);
            instance.generation += 1;
        })
        .await;
    }

    pub(crate) async fn delete(&self, id: InstanceId) {
        let now = self.clock.now();
        let mark = |instance: &mut Instance| {
            instance.mark_deleted(now, &alice(), DeletionCause::Asked);
        };
        self.write(id, mark).await;
    }

    async fn write(&self, id: InstanceId, change: impl Fn(&mut Instance)) {
        loop {
            let read = self.read(id).await.unwrap();
            let mut instance = read.value.clone();
            change(&mut instance);
            let replaced = self.table.replace(Transaction::new(), &read, &instance);
            match self.store.commit(&replaced.unwrap()).await {
                Ok(_) => return,
                Err(error) => assert!(error.conflict().is_some(), "{error}"),
            }
        }
    }

    pub(crate) async fn read(&self, id: InstanceId) -> Option<Versioned<Instance>> {
        self.table.get(&id.key().unwrap()).await.unwrap()
    }

    pub(crate) async fn server(&self, id: InstanceId) -> Option<ServerView> {
        self.servers.read(&service(), id.server()).await.ok()
    }

    /// Waits until an instance is as wished, looking every half second, for half an hour at the most.
    pub(crate) async fn until(&self, id: InstanceId, wish: impl Fn(&Instance) -> bool) -> Instance {
        for _ in 0..3600 {
            let found = self.read(id).await.unwrap().value;
            if wish(&found) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let server = self.server(id).await.map(|view| view.server);
        panic!("never came: {:#?} {server:#?}", self.read(id).await);
    }

    pub(crate) async fn until_gone(&self, id: InstanceId) {
        for _ in 0..3600 {
            if self.read(id).await.is_none() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        panic!("never went: {:#?}", self.read(id).await);
    }

    pub(crate) async fn count(&self, kind: &str) -> usize {
        let query = Query::all(Kind::new(kind).unwrap());
        self.store.list(&query).await.unwrap().records.len()
    }

    /// That no instance, server, key or payment is left, and no machine.
    pub(crate) async fn is_empty(&self, cloud: &MemoryCloud) {
        for kind in ["instance", "server", "allocation", "server-key"] {
            assert_eq!(self.count(kind).await, 0, "{kind}");
        }
        self.is_paid(0).await;
        let left = cloud.oracle().leftovers();
        assert!(left.is_nothing(), "{left:?}");
    }

    /// That the ledger says what there is.
    pub(crate) async fn is_paid(&self, instances: usize) {
        let audit = self.ledger.audit(tenant().0).await.unwrap();
        assert!(audit.differences.is_empty(), "{audit:?}");
        assert_eq!(self.count("allocation").await, instances);
        assert_eq!(self.count("instance").await, instances);
    }
}

fn quota_kinds() -> QuotaKinds {
    let servers = Defaults::organization(1_000).project(1_000);
    QuotaKinds::standard().with(QuotaKind::servers(), servers)
}

/// The record of an instance that was just asked for.
pub(crate) fn instance(network: NetworkId, name: &str, now: DateTime<Utc>) -> Instance {
    let name = Name::new(name).unwrap();
    let id = InstanceId::derive(network, &name);
    let (organization, project) = tenant();
    serde_json::from_value(json!({
        "id": id, "server": id, "name": name, "organization": organization, "project": project,
        "region": here(), "network": network, "created_at": now, "created_by": alice(),
        "spec": { "flavor": "small", "image": "debian" },
        "intent": { "power": "running", "reboot_how": "soft" },
        "consent": "keep-everything", "generation": 1,
    }))
    .unwrap()
}

pub(crate) fn flavor(id: &str) -> FlavorId {
    FlavorId::new(id).unwrap()
}

pub(crate) fn image(id: &str) -> ImageId {
    ImageId::new(id).unwrap()
}

pub(crate) fn settled(instance: &Instance) -> bool {
    instance.status.observed_generation == instance.generation
}

pub(crate) fn has(instance: &Instance, kind: ConditionKind) -> bool {
    instance.status.condition(kind).is_some()
}

pub(crate) fn record(kind: &str, key: &impl ToString) -> RecordId {
    RecordId {
        kind: Kind::new(kind).unwrap(),
        key: Key::new(key.to_string()).unwrap(),
    }
}
