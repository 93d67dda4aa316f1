//! A region as tenants have it: a catalog, networks, groups, authorities, keys, and servers that stand on them.
#![allow(
    dead_code,
    clippy::panic,
    reason = "each test binary uses a part of it, and says what is wrong by failing"
)]

pub(crate) mod live;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use fleetwright::OptionalVerb;
use fleetwright_identity::{
    Actor, ActorName, Binding, OrganizationId, Permission, Principal, ProjectId, Resource, Role,
    RoleName, Roles, Scope, Verb,
};
use fleetwright_region::{
    catalog::CatalogKeeper,
    ids::{FlavorId, ImageId, NetworkId, RegionId, SecurityGroupId, SshAuthorityId},
    name::Name,
    network::{
        AuthorityKey, Networks, NewNetwork, NewSecurityGroup, NewSshAuthority, Rules,
        SecurityGroups, SshAuthorities,
    },
    schema,
    secret::{ServerKeys, SshKeys},
    server::{
        Consent, NewServer, Owner, Plan, ServerError, ServerId, ServerSpec, ServerView, Servers,
        TenantGround,
    },
};
use fleetwright_runtime::{
    clock::{Clock, TokioClock},
    entropy::{Entropy, OsEntropy},
};
use fleetwright_store::{
    Interest, MemoryStore, Page, Query, Record, RecordId, Revision, Schema, Store, StoreError,
    Transaction, Watch,
};
use uuid::Uuid;

pub(crate) const CATALOG: &str = r#"
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

    [[flavor]]
    id = "arm"
    cpus = 2
    memory = "4 GiB"
    disk = "20 GB"
    architecture = "aarch64"

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

    [[image]]
    id = "golden"
    architecture = "x86_64"
    size = "10 GiB"
    virtualization = "any"
    visibility = "00000000-0000-0000-0000-000000000009"
    os = { family = "redhat", distro = "rocky", version = "9" }
"#;

/// The catalog's file without one of its entries.
pub(crate) fn without(catalog: &str, id: &str) -> String {
    let entries = catalog.split("[[").filter(|entry| {
        let line = format!("id = \"{id}\"");
        !entry.contains(&line)
    });
    entries.collect::<Vec<_>>().join("[[")
}

pub(crate) const KEYS: &str = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

pub(crate) fn north() -> RegionId {
    RegionId::new("north").unwrap()
}

pub(crate) fn south() -> RegionId {
    RegionId::new("south").unwrap()
}

pub(crate) type Tenant = (OrganizationId, ProjectId);

pub(crate) fn tenant(organization: u128, project: u128) -> Tenant {
    let [organization, project] = [organization, project].map(Uuid::from_u128);
    (organization.into(), project.into())
}

/// Whoever works in a project, and may have servers made there.
pub(crate) fn user(tenant: Tenant) -> Principal {
    let maker = RoleName::new("server-maker").unwrap();
    let servers = Verb::ALL.map(|verb| Permission::new(verb, Resource::Servers).unwrap());
    let scope = Scope::Project(tenant.0, tenant.1);
    let role = Role::new(maker.clone(), scope.level(), servers).unwrap();
    let bindings = [RoleName::new("project-user").unwrap(), maker];
    let bindings = bindings.map(|role| Binding::new(role, scope));
    let actor = Actor::User(ActorName::new("alice").unwrap());
    let roles = Roles::built_in().with(role).unwrap();
    roles.principal(actor, &bindings).unwrap()
}

/// Whoever may do and see everything.
pub(crate) fn service() -> Principal {
    Principal::service(ActorName::new("compute").unwrap(), Permission::all())
}

pub(crate) fn server_id(number: u128) -> ServerId {
    ServerId::from_uuid(Uuid::from_u128(0x1000 + number))
}

pub(crate) fn flavor(id: &str) -> FlavorId {
    FlavorId::new(id).unwrap()
}

pub(crate) fn image(id: &str) -> ImageId {
    ImageId::new(id).unwrap()
}

pub(crate) fn spec(network: NetworkId) -> ServerSpec {
    ServerSpec::new(flavor("small"), image("debian"), network)
}

pub(crate) fn new_server(number: u128, spec: ServerSpec) -> NewServer {
    let owner = Owner::new("instance", format!("i{number}"));
    NewServer::new(server_id(number), owner, north(), tenant(1, 1), spec)
}

pub(crate) fn memory() -> Arc<dyn Store> {
    let schema = schema::add_kinds(Schema::builder()).build().unwrap();
    Arc::new(MemoryStore::new(schema))
}

pub(crate) struct Town {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) catalog: Arc<CatalogKeeper>,
    pub(crate) networks: Arc<Networks>,
    pub(crate) groups: Arc<SecurityGroups>,
    pub(crate) authorities: Arc<SshAuthorities>,
    pub(crate) keys: ServerKeys,
    pub(crate) servers: Servers,
}

impl Town {
    pub(crate) async fn new() -> Self {
        Self::over(memory(), Arc::new(OsEntropy)).await
    }

    pub(crate) async fn over(store: Arc<dyn Store>, for_keys: Arc<dyn Entropy>) -> Self {
        let epoch = DateTime::<Utc>::from_timestamp(1_767_225_600, 0).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(epoch));
        let (catalog, damaged) = CatalogKeeper::open(Arc::clone(&store)).await.unwrap();
        assert_eq!(damaged, []);
        catalog.load(CATALOG).await.unwrap();
        let catalog = Arc::new(catalog);
        let entropy = Arc::new(OsEntropy);
        let regions = BTreeSet::from([north(), south()]);
        let networks = Networks::new(
            Arc::clone(&store),
            regions,
            entropy.clone(),
            &fleetwright_region::references::References::default(),
        );
        let networks = Arc::new(networks.unwrap());
        let groups = SecurityGroups::new(
            store.clone(),
            networks.clone(),
            entropy.clone(),
            &fleetwright_region::references::References::default(),
        );
        let groups = Arc::new(groups.unwrap());
        let authorities = SshAuthorities::new(
            Arc::clone(&store),
            entropy,
            &fleetwright_region::references::References::default(),
        )
        .unwrap();
        let authorities = Arc::new(authorities);
        let keyring = Arc::new(KEYS.parse().unwrap());
        let keys = ServerKeys::new(Arc::clone(&store), keyring, for_keys).unwrap();
        let ground = TenantGround::new(
            networks.clone(),
            groups.clone(),
            authorities.clone(),
            catalog.clone(),
        );
        let servers = Servers::new(
            store.clone(),
            clock.clone(),
            Arc::new(ground),
            SshKeys::OnePerServer(keys.clone()),
        );
        let verbs: BTreeSet<_> = OptionalVerb::ALL.into();
        let servers = servers.unwrap().with_region(north(), verbs.clone());
        Self {
            servers: servers.with_region(south(), verbs),
            store,
            clock,
            catalog,
            networks,
            groups,
            authorities,
            keys,
        }
    }

    pub(crate) async fn network_in(
        &self,
        tenant: Tenant,
        region: RegionId,
        name: &str,
    ) -> NetworkId {
        let new = NewNetwork {
            organization: tenant.0,
            project: tenant.1,
            region,
            name: Name::new(name).unwrap(),
            prefix: "10.0.0.0/16".parse().unwrap(),
            dns: Vec::new(),
        };
        let made = self.networks.create(&service(), &new).await.unwrap();
        made.value.id
    }

    pub(crate) async fn network(&self, name: &str) -> NetworkId {
        self.network_in(tenant(1, 1), north(), name).await
    }

    pub(crate) async fn group(&self, network: NetworkId, name: &str) -> SecurityGroupId {
        let new = NewSecurityGroup {
            network,
            name: Name::new(name).unwrap(),
            rules: Rules::default(),
        };
        self.groups.create(&service(), &new).await.unwrap().value.id
    }

    pub(crate) async fn authority(&self, tenant: Tenant) -> SshAuthorityId {
        let key =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAy6fJc6yBCQTw1DopXqb20HM2tM0UvQcjhH2mQNCtjX";
        let new = NewSshAuthority {
            organization: tenant.0,
            project: tenant.1,
            name: Name::new("ca").unwrap(),
            public_key: AuthorityKey::new(key).unwrap(),
        };
        let made = self.authorities.create(&service(), &new).await.unwrap();
        made.value.id
    }

    /// Asks for a server.
    pub(crate) async fn ensure(
        &self,
        who: &Principal,
        number: u128,
        spec: &ServerSpec,
    ) -> Result<ServerView, ServerError> {
        let new = new_server(number, spec.clone());
        self.servers.ensure(who, &new).await
    }

    /// Asks for another spec of the first server, whatever is lost by it.
    pub(crate) async fn set(
        &self,
        who: &Principal,
        spec: &ServerSpec,
    ) -> Result<Plan, ServerError> {
        let asked = self
            .servers
            .set_spec(who, server_id(1), spec, Consent::Destroy);
        asked.await.map(|(_, plan)| plan)
    }

    /// How many records of a kind there are.
    pub(crate) async fn count(&self, kind: &str) -> usize {
        let kind = fleetwright_store::Kind::new(kind).unwrap();
        self.store
            .list(&Query::all(kind))
            .await
            .unwrap()
            .records
            .len()
    }
}

/// A store whose every call takes a while, for each seed another one: others come between a look and a write.
#[derive(Debug)]
pub(crate) struct Slow {
    inner: Arc<dyn Store>,
    state: AtomicU64,
}

impl Slow {
    pub(crate) fn new(inner: Arc<dyn Store>, seed: u64) -> Self {
        let state = AtomicU64::new(seed);
        Self { inner, state }
    }

    async fn pause(&self) {
        let step = |state: u64| {
            state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407)
        };
        let before = self
            .state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
                Some(step(state))
            });
        let chosen = before.unwrap() >> 40;
        tokio::time::sleep(Duration::from_millis(chosen % 40)).await;
    }
}

#[async_trait]
impl Store for Slow {
    fn schema(&self) -> &Schema {
        self.inner.schema()
    }
    async fn get(&self, id: &RecordId) -> Result<Option<Record>, StoreError> {
        self.pause().await;
        self.inner.get(id).await
    }
    async fn list(&self, query: &Query) -> Result<Page, StoreError> {
        self.pause().await;
        self.inner.list(query).await
    }
    async fn commit(&self, transaction: &Transaction) -> Result<Revision, StoreError> {
        self.pause().await;
        self.inner.commit(transaction).await
    }
    async fn head(&self) -> Result<Revision, StoreError> {
        self.inner.head().await
    }
    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch, StoreError> {
        self.inner.watch(after, interest).await
    }
    async fn compact(&self, through: Revision) -> Result<(), StoreError> {
        self.inner.compact(through).await
    }
}
