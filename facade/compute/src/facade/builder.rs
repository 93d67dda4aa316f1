//! Collecting the parts of a façade.

use std::{collections::BTreeMap, fmt, sync::Arc};

use fleetwright::InstanceProvisioner;
use fleetwright_identity::{AuditRetention, QuotaKinds, Roles};
use fleetwright_region::{
    catalog::CatalogService,
    controller as servers,
    ids::RegionId,
    mapping::LaunchPlanner,
    monitor,
    secret::Keyring,
    snapshot::{ImageDeleter, SnapshotPolicy},
};
use fleetwright_runtime::{clock::Clock, entropy::Entropy};
use fleetwright_store::{Invalid, Schema, Store};

use super::{
    Facade, FacadeError,
    sources::{CatalogSource, PlannerSource, RegionSource},
};
use crate::{controller::ControllerPolicy, schema};

/// Collects the parts of a [`Facade`].
///
/// | part | call | without it |
/// | --- | --- | --- |
/// | store | [`store`](Self::store) | an error |
/// | regions, one or more | [`region`](Self::region), [`region_with_planner`](Self::region_with_planner) | an error |
/// | keyring | [`keyring`](Self::keyring) | an error, unless [`without_server_keys`](Self::without_server_keys) is called: then user data is refused |
/// | catalog | [`catalog`](Self::catalog), [`shared_catalog`](Self::shared_catalog) | the one that the store has; an error if it has none |
/// | clock | [`clock`](Self::clock) | [`SystemClock`](fleetwright_runtime::clock::SystemClock) |
/// | entropy | [`entropy`](Self::entropy) | [`OsEntropy`](fleetwright_runtime::entropy::OsEntropy) |
/// | quota kinds | [`quota_kinds`](Self::quota_kinds) | [`QuotaKinds::standard`] |
/// | roles | [`roles`](Self::roles) | [`Roles::built_in`] |
/// | retention of the audit log | [`audit_retention`](Self::audit_retention) | 400 days |
/// | policies | [`instance_policy`](Self::instance_policy) and the like | their defaults |
#[derive(Default)]
#[must_use = "nothing is built before `build` is called"]
pub struct FacadeBuilder {
    pub(super) store: Option<Arc<dyn Store>>,
    pub(super) catalog: Option<CatalogSource>,
    pub(super) regions: Vec<RegionSource>,
    pub(super) keyring: Option<Arc<Keyring>>,
    pub(super) key_pairs: KeyPairs,
    pub(super) clock: Option<Arc<dyn Clock>>,
    pub(super) entropy: Option<Arc<dyn Entropy>>,
    pub(super) quota_kinds: Option<QuotaKinds>,
    pub(super) roles: Option<Roles>,
    pub(super) audit_retention: AuditRetention,
    pub(super) instance_policy: ControllerPolicy,
    pub(super) server_policy: servers::ControllerPolicy,
    pub(super) monitor_policy: monitor::Policy,
    pub(super) snapshot_policy: SnapshotPolicy,
    pub(super) image_deleters: BTreeMap<RegionId, Arc<dyn ImageDeleter>>,
    /// The first call that repeats another one.
    pub(super) repeated: Option<FacadeError>,
}

/// Whether servers get key pairs.
#[derive(Clone, Copy, Default)]
pub(super) enum KeyPairs {
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
}

impl fmt::Debug for FacadeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FacadeBuilder").finish_non_exhaustive()
    }
}
