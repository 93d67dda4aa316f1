//! Building a façade: every part once, over one store.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use fleetwright::InstanceProvisioner;
use fleetwright_identity::{
    ActorName, AuditLog, AuditRetention, Ledger, Permission, Principal, QuotaKinds, Roles, Tenancy,
};
use fleetwright_region::{
    account::RegionAccounts,
    catalog::CatalogService,
    controller as servers,
    ids::RegionId,
    launch_config::LaunchConfigs,
    machine::MachineAccess,
    mapping::{LaunchPlanner, RegionPlanner},
    monitor::{self, Monitor},
    network::{Networks, SecurityGroups, SshAuthorities},
    secret::{Keyring, SealedStore, ServerKeys, SshKeys},
    server::{DependencyChecker, Servers, TenantDependencies},
    snapshot::{ImageDeleter, SnapshotPolicy, Snapshots},
};
use fleetwright_runtime::{
    clock::{Clock, SystemClock},
    entropy::{Entropy, OsEntropy},
};
use fleetwright_store::{Invalid, Schema, Store};

use super::{
    Facade, FacadeError, FacadeRegion,
    check::{check_deleters, check_policies, check_provider},
};
use crate::{
    ComputeError,
    controller::{Controller, ControllerPolicy},
    networks::NetworkDeletionController,
    schema,
    service::{InstanceDependencies, Instances, UserDataSupport, compute_principal},
};

/// Collects the parts of a [`Facade`].
///
/// | part | call | without it |
/// | --- | --- | --- |
/// | store | [`store`](Self::store) | an error |
/// | regions, one or more | [`region`](Self::region), [`region_with_planner`](Self::region_with_planner) | an error |
/// | keyring | [`keyring`](Self::keyring) | an error, unless [`without_server_keys`](Self::without_server_keys) is called: then user data is refused |
/// | catalog | [`catalog`](Self::catalog), [`shared_catalog`](Self::shared_catalog) | the one that the store has; an error if it has none |
/// | clock | [`clock`](Self::clock) | [`SystemClock`] |
/// | entropy | [`entropy`](Self::entropy) | [`OsEntropy`] |
/// | quota kinds | [`quota_kinds`](Self::quota_kinds) | [`QuotaKinds::standard`] |
/// | roles | [`roles`](Self::roles) | [`Roles::built_in`] |
/// | retention of the audit log | [`audit_retention`](Self::audit_retention) | 400 days |
/// | policies | [`instance_policy`](Self::instance_policy) and the like | their defaults |
#[derive(Default)]
#[must_use = "nothing is built before `build` is called"]
pub struct FacadeBuilder {
    store: Option<Arc<dyn Store>>,
    catalog: Option<CatalogSource>,
    regions: Vec<RegionSource>,
    keyring: Option<Arc<Keyring>>,
    key_pairs: KeyPairs,
    clock: Option<Arc<dyn Clock>>,
    entropy: Option<Arc<dyn Entropy>>,
    quota_kinds: Option<QuotaKinds>,
    roles: Option<Roles>,
    audit_retention: AuditRetention,
    instance_policy: ControllerPolicy,
    server_policy: servers::ControllerPolicy,
    monitor_policy: monitor::Policy,
    snapshot_policy: SnapshotPolicy,
    image_deleters: BTreeMap<RegionId, Arc<dyn ImageDeleter>>,
    /// The first call that repeats another one.
    repeated: Option<FacadeError>,
}

enum CatalogSource {
    Text(String),
    Shared(Arc<CatalogService>),
}

struct RegionSource {
    provisioner: Arc<dyn InstanceProvisioner>,
    planner: PlannerSource,
}

enum PlannerSource {
    Mapping(String),
    Planner(RegionId, Arc<dyn LaunchPlanner>),
}

/// Whether servers get key pairs.
#[derive(Clone, Copy, Default)]
enum KeyPairs {
    #[default]
    OnePerServer,
    Disabled,
}

impl Facade {
    /// Begins with no part.
    pub fn builder() -> FacadeBuilder {
        FacadeBuilder::default()
    }

    /// The schema that a façade's store needs: the kinds of identity, region and compute.
    ///
    /// # Errors
    ///
    /// Only if two of the crates have a kind of the same name.
    pub fn schema() -> Result<Schema, Invalid> {
        schema::add_all_kinds(Schema::builder()).build()
    }
}

impl FacadeBuilder {
    /// Keeps every record in this store, whose schema is [`Facade::schema`]. Required.
    ///
    /// [`MemoryStore`](fleetwright_store::MemoryStore) loses everything with the process and is for tests; the crate
    /// `fleetwright-store-sqlite` keeps records in a file that several processes can open.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.once("store", self.store.is_some());
        self.store = Some(store);
        self
    }

    /// Loads this catalog, in the format of a catalog file, into the store.
    ///
    /// Flavors and images that it no longer has are retired: existing instances keep them, and new ones cannot use them.
    pub fn catalog(mut self, text: impl Into<String>) -> Self {
        self.once("catalog", self.catalog.is_some());
        self.catalog = Some(CatalogSource::Text(text.into()));
        self
    }

    /// Uses a catalog that this process has open already. Then a build reads and writes nothing.
    pub fn shared_catalog(mut self, catalog: Arc<CatalogService>) -> Self {
        self.once("catalog", self.catalog.is_some());
        self.catalog = Some(CatalogSource::Shared(catalog));
        self
    }

    /// Adds a region: the handle of its cloud, and its mapping file's text, which has the region's id. At least one is required.
    ///
    /// The mapping translates flavors, images and networks into the cloud's own names. Two regions cannot have the same id.
    pub fn region(
        mut self,
        provisioner: Arc<dyn InstanceProvisioner>,
        mapping: impl Into<String>,
    ) -> Self {
        let planner = PlannerSource::Mapping(mapping.into());
        self.regions.push(RegionSource {
            provisioner,
            planner,
        });
        self
    }

    /// Adds a region whose launches are planned by something else than a mapping file.
    pub fn region_with_planner(
        mut self,
        id: RegionId,
        provisioner: Arc<dyn InstanceProvisioner>,
        planner: Arc<dyn LaunchPlanner>,
    ) -> Self {
        let planner = PlannerSource::Planner(id, planner);
        self.regions.push(RegionSource {
            provisioner,
            planner,
        });
        self
    }

    /// Seals secrets with this keyring: user data, and the private key of the SSH key pair that each server gets.
    ///
    /// To rotate keys, add a line above the others, call [`Facade::reseal`], and remove the old lines when it finds nothing more to
    /// seal. Without the key of a record, the instance behind it cannot be read or changed, and nothing happens to its machine.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use fleetwright_compute::{Facade, prelude::Keyring};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A name and 32 bytes in base64, from a secret of the process.
    /// let keyring: Keyring = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=".parse()?;
    /// let builder = Facade::builder().keyring(Arc::new(keyring));
    /// # drop(builder);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keyring(mut self, keyring: Arc<Keyring>) -> Self {
        self.once("keyring", self.keyring.is_some());
        self.keyring = Some(keyring);
        self
    }

    /// Gives servers no SSH key pair: `ssh_key` then fails for every new instance. Without a [keyring](Self::keyring), user data is
    /// refused too, because it is never stored in clear.
    pub fn without_server_keys(mut self) -> Self {
        self.key_pairs = KeyPairs::Disabled;
        self
    }

    /// Takes dates from another clock than the system's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.once("clock", self.clock.is_some());
        self.clock = Some(clock);
        self
    }

    /// Takes ids and keys from another source of entropy than the system's. For tests.
    pub fn entropy(mut self, entropy: Arc<dyn Entropy>) -> Self {
        self.once("entropy", self.entropy.is_some());
        self.entropy = Some(entropy);
        self
    }

    /// Sets the kinds of quota and their default limits. Default: [`QuotaKinds::standard`].
    pub fn quota_kinds(mut self, kinds: QuotaKinds) -> Self {
        self.once("quota_kinds", self.quota_kinds.is_some());
        self.quota_kinds = Some(kinds);
        self
    }

    /// Sets the roles that can be bound to users. Default: [`Roles::built_in`].
    pub fn roles(mut self, roles: Roles) -> Self {
        self.roles = Some(roles);
        self
    }

    /// Sets how long the audit log is kept. Default: 400 days.
    pub fn audit_retention(mut self, retention: AuditRetention) -> Self {
        self.audit_retention = retention;
        self
    }

    /// Sets the policy of the controllers of instances and of networks that are being deleted.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fleetwright_compute::{Facade, controller::ControllerPolicy};
    ///
    /// let mut policy = ControllerPolicy::default();
    /// policy.refused_backoff = Duration::from_secs(60);
    /// let builder = Facade::builder().instance_policy(policy);
    /// # drop(builder);
    /// ```
    pub fn instance_policy(mut self, policy: ControllerPolicy) -> Self {
        self.instance_policy = policy;
        self
    }

    /// Sets the policy of every region's server controller: timeouts of launches and terminations, and the delays of retries.
    pub fn server_policy(mut self, policy: servers::ControllerPolicy) -> Self {
        self.server_policy = policy;
        self
    }

    /// Sets the policy of every region's monitor: how often it scans, and when it reports a machine as stuck.
    pub fn monitor_policy(mut self, policy: monitor::Policy) -> Self {
        self.monitor_policy = policy;
        self
    }

    /// What deletes tenants' images at the cloud of a region. Default: its provisioner, if that declares
    /// [`delete_image`](InstanceProvisioner::delete_image); otherwise a deleted image stays at the cloud, *deleting* and charged.
    pub fn image_deleter(mut self, region: RegionId, deleter: Arc<dyn ImageDeleter>) -> Self {
        let id = region.clone();
        if self.image_deleters.insert(region, deleter).is_some() {
            self.repeated
                .get_or_insert(FacadeError::DuplicateDeleter(id));
        }
        self
    }

    /// Sets the policy of every region's snapshot loop.
    pub fn snapshot_policy(mut self, policy: SnapshotPolicy) -> Self {
        self.snapshot_policy = policy;
        self
    }

    /// Remembers that a part was given twice.
    fn once(&mut self, call: &'static str, given: bool) {
        if given {
            self.repeated.get_or_insert(FacadeError::Repeated(call));
        }
    }

    /// Builds every service and loop. No loop runs yet, and no cloud is called.
    ///
    /// # Errors
    ///
    /// [`FacadeError`] says which part is missing or wrong, and what to do:
    /// - a required part is missing: [`MissingStore`](FacadeError::MissingStore), [`MissingRegion`](FacadeError::MissingRegion),
    ///   [`MissingKeyring`](FacadeError::MissingKeyring), [`MissingCatalog`](FacadeError::MissingCatalog);
    /// - a part would be ignored: [`Repeated`](FacadeError::Repeated), [`DuplicateDeleter`](FacadeError::DuplicateDeleter),
    ///   [`NoRegionForDeleter`](FacadeError::NoRegionForDeleter), [`OtherProvider`](FacadeError::OtherProvider);
    /// - a policy has a setting that cannot be used: [`Policy`](FacadeError::Policy);
    /// - the catalog or a mapping has problems: [`Catalog`](FacadeError::Catalog), [`Mapping`](FacadeError::Mapping),
    ///   [`DuplicateRegion`](FacadeError::DuplicateRegion);
    /// - the store does not fit or fails: [`Schema`](FacadeError::Schema), [`Store`](FacadeError::Store).
    pub async fn build(self) -> Result<Facade, FacadeError> {
        if let Some(repeated) = self.repeated {
            return Err(repeated);
        }
        check_policies(
            &self.instance_policy,
            &self.server_policy,
            &self.monitor_policy,
            &self.snapshot_policy,
        )?;
        let store = self.store.ok_or(FacadeError::MissingStore)?;
        if self.regions.is_empty() {
            return Err(FacadeError::MissingRegion);
        }
        let keyring = self.keyring;
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock));
        let entropy = self.entropy.unwrap_or_else(|| Arc::new(OsEntropy));
        let user_data = match keyring {
            Some(_) => UserDataSupport::Accepted,
            None => UserDataSupport::NoKeyring,
        };
        let sealed_store = Arc::new(SealedStore::new(
            store,
            keyring.clone(),
            entropy.clone(),
            schema::sealed_fields(),
        ));
        let store: Arc<dyn Store> = sealed_store.clone();
        let server_keys = match (self.key_pairs, keyring) {
            (KeyPairs::Disabled, _) => SshKeys::Disabled,
            (KeyPairs::OnePerServer, None) => return Err(FacadeError::MissingKeyring),
            (KeyPairs::OnePerServer, Some(keyring)) => {
                let keys = ServerKeys::new(store.clone(), keyring, entropy.clone())?;
                SshKeys::OnePerServer(keys)
            }
        };
        let audit = AuditLog::new(store.clone(), clock.clone(), entropy.clone())?
            .with_retention(self.audit_retention);
        let roles = Arc::new(self.roles.unwrap_or_else(Roles::built_in));
        let tenancy = Tenancy::new(store.clone(), roles, audit.clone())?
            .with_contents(crate::schema::contents())?;
        let accounts = RegionAccounts::new(store.clone(), clock.clone())?.with_audit(audit.clone());
        let catalog = open_catalog(&store, self.catalog, &tenancy).await?;
        let planned = plan_regions(self.regions, &catalog)?;
        let region_ids: Vec<_> = planned.iter().map(|region| &region.id).collect();
        check_deleters(&self.image_deleters, &region_ids)?;

        let ids: BTreeSet<_> = planned.iter().map(|region| region.id.clone()).collect();
        let kinds = self.quota_kinds.unwrap_or_else(QuotaKinds::standard);
        let ledger = Ledger::new(store.clone(), Arc::new(kinds))?.with_tenancy(tenancy.clone());
        let networks = Networks::new(
            store.clone(),
            ids,
            entropy.clone(),
            &crate::schema::references(),
        )?;
        let networks = networks
            .with_ledger(ledger.clone())
            .with_tenancy(tenancy.clone());
        let networks = Arc::new(networks);
        let security_groups = SecurityGroups::new(
            store.clone(),
            networks.clone(),
            entropy.clone(),
            &crate::schema::references(),
        )?;
        let security_groups = Arc::new(security_groups.with_tenancy(tenancy.clone()));
        let ssh_authorities =
            SshAuthorities::new(store.clone(), entropy.clone(), &crate::schema::references())?;
        let ssh_authorities = ssh_authorities
            .with_ledger(ledger.clone())
            .with_tenancy(tenancy.clone());
        let ssh_authorities = Arc::new(ssh_authorities);
        let dependencies: Arc<dyn DependencyChecker> = Arc::new(TenantDependencies::new(
            networks.clone(),
            security_groups.clone(),
            ssh_authorities.clone(),
            catalog.clone(),
        ));
        let mut servers = Servers::new(
            store.clone(),
            clock.clone(),
            dependencies.clone(),
            server_keys.clone(),
        )
        .map_err(ComputeError::from)?;
        let mut machines = MachineAccess::new(
            store.clone(),
            clock.clone(),
            catalog.clone(),
            server_keys.clone(),
        )?;
        machines = machines
            .with_ledger(ledger.clone())
            .with_audit(audit.clone());
        let mut deleters = self.image_deleters;
        let mut regions = Vec::new();
        for Planned {
            id,
            provisioner,
            planner,
        } in planned
        {
            let verbs = provisioner.capabilities().verbs.clone();
            let configs = LaunchConfigs::new(store.clone(), provisioner.clone(), planner.clone())?;
            servers = servers
                .with_region(id.clone(), verbs)
                .with_launch_configs(id.clone(), configs);
            machines = machines.with_region(id.clone(), provisioner.clone());
            let controller = servers::Controller::new(
                id.clone(),
                store.clone(),
                provisioner.clone(),
                planner.clone(),
                clock.clone(),
            )?;
            let monitor = Monitor::new(
                id.clone(),
                store.clone(),
                provisioner.clone(),
                clock.clone(),
            )?;
            let snapshots = Snapshots::new(
                id.clone(),
                store.clone(),
                catalog.clone(),
                provisioner.clone(),
                clock.clone(),
            )?;
            let mut snapshots = snapshots
                .with_ledger(ledger.clone())
                .with_references(&crate::schema::references());
            if let Some(deleter) = deleters.remove(&id) {
                snapshots = snapshots.with_deleter(deleter);
            }
            regions.push(FacadeRegion {
                id,
                provisioner,
                planner,
                controller: controller.with_policy(self.server_policy.clone()),
                monitor: monitor.with_policy(self.monitor_policy.clone()),
                snapshots: snapshots.with_policy(self.snapshot_policy.clone()),
            });
        }
        let service = compute_principal().map_err(|name| Invalid::new(name.to_string()))?;
        let parts = InstanceDependencies::new(
            store.clone(),
            clock.clone(),
            dependencies.clone(),
            networks.clone(),
            catalog.clone(),
            ledger.clone(),
            servers.clone(),
            tenancy.clone(),
        );
        let parts = parts.with_machines(machines.clone());
        let instances = Instances::new(parts.with_user_data(user_data))?;
        let instance_controller = Controller::new(
            store.clone(),
            servers.clone(),
            ledger.clone(),
            clock.clone(),
            service.clone(),
        )?;
        let network_controller = NetworkDeletionController::new(
            store.clone(),
            networks.clone(),
            clock.clone(),
            service,
        )?;
        Ok(Facade {
            instance_controller: instance_controller.with_policy(self.instance_policy.clone()),
            network_controller: network_controller
                .with_audit(audit.clone())
                .with_policy(self.instance_policy),
            tenancy,
            audit,
            accounts: Arc::new(accounts),
            store,
            sealed_store,
            clock,
            catalog,
            networks,
            security_groups,
            ssh_authorities,
            ledger,
            instances,
            servers,
            machines,
            server_keys,
            dependencies,
            regions: regions.into(),
        })
    }
}

async fn open_catalog(
    store: &Arc<dyn Store>,
    source: Option<CatalogSource>,
    tenancy: &Tenancy,
) -> Result<Arc<CatalogService>, FacadeError> {
    let text = match source {
        Some(CatalogSource::Shared(catalog)) => {
            catalog.set_tenancy(tenancy.clone());
            return Ok(catalog);
        }
        Some(CatalogSource::Text(text)) => Some(text),
        None => None,
    };
    let (catalog, damaged) = CatalogService::open(Arc::clone(store)).await?;
    catalog.set_tenancy(tenancy.clone());
    for damaged in damaged {
        tracing::warn!(record = %damaged.id, reason = %damaged.reason, "an entry of the catalog cannot be read");
    }
    if let Some(text) = text {
        catalog.load(&text).await?;
    }
    let name = ActorName::new("facade").map_err(|name| Invalid::new(name.to_string()))?;
    let reader = Principal::service(name, Permission::all());
    // Neither is refused to a principal that has every permission. A catalog with flavors has images, unless they cannot be read.
    let no_flavors = catalog.flavors(&reader).is_ok_and(|found| found.is_empty());
    let no_images = catalog.images(&reader).is_ok_and(|found| found.is_empty());
    if no_flavors || no_images {
        return Err(FacadeError::MissingCatalog);
    }
    Ok(Arc::new(catalog))
}

/// A region whose id and planner are known.
struct Planned {
    id: RegionId,
    provisioner: Arc<dyn InstanceProvisioner>,
    planner: Arc<dyn LaunchPlanner>,
}

fn plan_regions(
    sources: Vec<RegionSource>,
    catalog: &Arc<CatalogService>,
) -> Result<Vec<Planned>, FacadeError> {
    let mut planned: Vec<Planned> = Vec::new();
    for (number, source) in (1..).zip(sources) {
        let (id, planner): (_, Arc<dyn LaunchPlanner>) = match source.planner {
            PlannerSource::Planner(id, planner) => (id, planner),
            PlannerSource::Mapping(text) => {
                let planner = RegionPlanner::new(Arc::clone(catalog), &text)
                    .map_err(|source| FacadeError::Mapping { number, source })?;
                check_provider(&planner.mapping(), &*source.provisioner)?;
                (planner.mapping().region.clone(), Arc::new(planner))
            }
        };
        if planned.iter().any(|region| region.id == id) {
            return Err(FacadeError::DuplicateRegion(id));
        }
        planned.push(Planned {
            id,
            provisioner: source.provisioner,
            planner,
        });
    }
    Ok(planned)
}

impl fmt::Debug for FacadeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FacadeBuilder").finish_non_exhaustive()
    }
}
