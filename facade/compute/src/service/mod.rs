//! The tenants' service: creates, reads, lists, changes and deletes instances. Every call takes the caller's principal.
//!
//! Each call needs the permission for its own verb. An instance that is not visible to the caller gives exactly the same error as
//! one that does not exist. A change is one transaction: the record, its event, its entry in the audit log, its allocation, and checks
//! that its project and its dependencies have not changed. No call waits for a cloud, except those that use the machine: console, key and snapshot. The service never writes a
//! record's status: that is the controller's.

mod access;
mod allocation;
mod audit;
mod change;
mod create;
mod dependencies;
mod field;
mod inspect;
mod launchable;
mod list;
mod principal;
mod ranges;
mod requests;
mod summary;
mod telemetry;
mod update;
mod validate;
mod verbs;
mod view;
mod wait;

use std::{fmt, sync::Arc, time::Duration};

use fleetwright_identity::{Access, Ledger, Principal, Resource, Scope, Tenancy, Verb};
use fleetwright_region::{
    catalog::CatalogService,
    ids::NetworkId,
    machine::MachineAccess,
    name::Name,
    network::Networks,
    server::{DependencyChecker, Servers},
};
use fleetwright_runtime::clock::Clock;
use fleetwright_store::{Damaged, IndexName, Invalid, Key, Store, StoreError, Table, Versioned};

pub(crate) use audit::event;
pub use change::Accepted;
pub use field::{FieldScope, InstanceField};
pub use inspect::Inspection;
pub use list::{InstancePage, ListInstances, MAX_FILTER, MAX_PAGE};
pub use principal::{compute_permissions, compute_principal};
pub use requests::{NewInstance, UpdateInstance};
pub use summary::{InstanceSummary, ListedInstance};
pub use validate::{
    MAX_DESCRIPTION_CHARS, MAX_TAG_BYTES, MAX_TAG_KEY_CHARS, MAX_TAG_VALUE_CHARS, MAX_TAGS,
};
pub use view::{InstanceView, LastAttempt, Waiting};

use crate::{
    ComputeError,
    instance::{Instance, InstanceId},
    schema::NAME_INDEX,
};

/// The number of attempts when other callers write the same record or its dependencies.
const ATTEMPTS: usize = 16;

/// The delay before a retry if nothing better is known: about as long as a controller takes for a reconcile.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The dependencies of [`Instances`]: the parts of one façade, over one store.
///
/// [`Facade::builder`](crate::Facade::builder) fills it in. Build it by hand only to put another part in place of one.
///
/// ```
/// use fleetwright_compute::service::{InstanceDependencies, Instances};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let facade = fleetwright_facade_testkit::TestFacade::new().await;
/// let parts = InstanceDependencies::new(
///     facade.store.clone(),
///     facade.clock.clone(),
///     facade.dependencies.clone(),
///     facade.networks.clone(),
///     facade.catalog.clone(),
///     facade.ledger.clone(),
///     facade.servers.clone(),
///     facade.tenancy.clone(),
/// );
/// let without_consoles = Instances::new(parts)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct InstanceDependencies {
    /// The store of every record, with [every kind](crate::schema::add_all_kinds).
    pub store: Arc<dyn Store>,
    /// The source of every date.
    pub clock: Arc<dyn Clock>,
    /// Checks what an instance refers to, with the tenant's permissions.
    pub dependencies: Arc<dyn DependencyChecker>,
    /// The networks. An instance is in the region of its network.
    pub networks: Arc<Networks>,
    /// The flavors, which determine an instance's allocation.
    pub catalog: Arc<CatalogService>,
    /// The ledger to which instances are charged.
    pub ledger: Ledger,
    /// The servers behind the instances.
    pub servers: Servers,
    /// Which projects exist, and the audit log.
    pub tenancy: Tenancy,
    /// Consoles, keys and snapshots of machines. Default: `None`, and those calls return
    /// [`Unsupported`](ComputeError::Unsupported).
    pub machines: Option<MachineAccess>,
    /// The principal of calls to the region. Default: `None`, which means [`compute_principal`].
    pub service: Option<Principal>,
    /// Whether user data is accepted. Default: accepted; the store must be a
    /// [`SealedStore`](fleetwright_region::secret::SealedStore) then, or user data is stored in clear.
    pub user_data: UserDataSupport,
}

/// Whether an installation accepts user data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserDataSupport {
    /// It does.
    #[default]
    Accepted,
    /// It has no keyring to seal user data with, so requests with new user data are refused.
    NoKeyring,
}

impl InstanceDependencies {
    /// Collects the required parts. All of them must use the same store.
    #[expect(
        clippy::too_many_arguments,
        reason = "each part is required, and a builder could only report a missing one at run time"
    )]
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        dependencies: Arc<dyn DependencyChecker>,
        networks: Arc<Networks>,
        catalog: Arc<CatalogService>,
        ledger: Ledger,
        servers: Servers,
        tenancy: Tenancy,
    ) -> Self {
        Self {
            store,
            clock,
            dependencies,
            networks,
            catalog,
            ledger,
            servers,
            tenancy,
            machines: None,
            service: None,
            user_data: UserDataSupport::default(),
        }
    }

    /// Offers consoles, keys and snapshots.
    #[must_use]
    pub fn with_machines(mut self, machines: MachineAccess) -> Self {
        self.machines = Some(machines);
        self
    }

    /// Sets whether user data is accepted.
    #[must_use]
    pub fn with_user_data(mut self, support: UserDataSupport) -> Self {
        self.user_data = support;
        self
    }

    /// Sets the principal of calls to the region, instead of [`compute_principal`].
    #[must_use]
    pub fn with_service(mut self, service: Principal) -> Self {
        self.service = Some(service);
        self
    }
}

impl fmt::Debug for InstanceDependencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstanceDependencies")
            .finish_non_exhaustive()
    }
}

/// The service of instances. Clones share everything.
///
/// [`Facade::instances`](crate::Facade) is one. Every call takes the caller's [`Principal`] first and checks it before anything else is
/// read on its behalf.
///
/// ```no_run
/// use fleetwright_compute::prelude::*;
///
/// # async fn example(
/// #     instances: &Instances, ada: &Principal, network: NetworkId, tenant: (OrganizationId, ProjectId),
/// # ) -> Result<(), Box<dyn std::error::Error>> {
/// let spec = InstanceSpec::new("small".parse()?, "debian".parse()?);
/// let new = NewInstance::new("web-1".parse()?, tenant, network, spec);
/// let id = match instances.create(ada, &new).await {
///     Ok(view) => view.instance.id,
///     // The response of an earlier attempt was lost, or the name belongs to somebody else: read and compare.
///     Err(ComputeError::NameTaken { id, .. }) => id,
///     Err(error) => return Err(error.into()),
/// };
/// let running = instances.wait_until_provisioned(ada, id, Duration::from_secs(300)).await?;
/// println!("{:?}", running.instance.status.private_ip);
///
/// instances.reboot(ada, id, Reboot::Soft).await?;
/// for event in instances.events(ada, id).await? {
///     println!("{} {}", event.at, event.message);
/// }
/// instances.delete(ada, id).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Every call returns a [`ComputeError`]. Its [`meaning`](ComputeError::meaning) is the HTTP status, and its
/// [`retry_after`](ComputeError::retry_after) says whether and when a retry can succeed. Nothing was changed, unless the store reports
/// an unknown outcome.
#[derive(Clone, Debug)]
pub struct Instances {
    store: Arc<dyn Store>,
    table: Table<Instance>,
    clock: Arc<dyn Clock>,
    dependencies: Arc<dyn DependencyChecker>,
    networks: Arc<Networks>,
    catalog: Arc<CatalogService>,
    ledger: Ledger,
    servers: Servers,
    tenancy: Tenancy,
    machines: Option<MachineAccess>,
    service: Principal,
    user_data: UserDataSupport,
    by_name: IndexName,
}

impl Instances {
    /// Creates the service.
    ///
    /// # Errors
    ///
    /// [`Store`](ComputeError::Store) if the store's schema lacks the [kind of instances](crate::schema::add_kinds).
    pub fn new(parts: InstanceDependencies) -> Result<Self, ComputeError> {
        let service = match parts.service {
            Some(service) => service,
            None => compute_principal().map_err(|name| Invalid::new(name.to_string()))?,
        };
        Ok(Self {
            table: Table::new(Arc::clone(&parts.store))?,
            store: parts.store,
            clock: parts.clock,
            dependencies: parts.dependencies,
            networks: parts.networks,
            catalog: parts.catalog,
            ledger: parts.ledger,
            servers: parts.servers,
            tenancy: parts.tenancy,
            machines: parts.machines,
            service,
            user_data: parts.user_data,
            by_name: IndexName::new(NAME_INDEX)?,
        })
    }

    /// Returns an instance as it is now. It needs the permission to read.
    ///
    /// The record is as new as the store. What is reported of the machine is as old as
    /// [`observed_at`](InstanceView::observed_at) says: no cloud is called.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ComputeError::NotFound) if it does not exist or is not visible to the caller.
    pub async fn read(
        &self,
        principal: &Principal,
        id: InstanceId,
    ) -> Result<InstanceView, ComputeError> {
        self.measure("read", Some(id), async {
            match self.permitted(principal, Verb::Read, id).await {
                Ok(found) => self.view(found).await,
                Err(error) => self.partial_view(principal, id, error).await,
            }
        })
        .await
    }

    /// Returns a record of a newer version, as far as this version understands it, or the error with which it could not be read.
    async fn partial_view(
        &self,
        principal: &Principal,
        id: InstanceId,
        error: ComputeError,
    ) -> Result<InstanceView, ComputeError> {
        if !matches!(error, ComputeError::Store(StoreError::Incompatible { .. })) {
            return Err(error);
        }
        let Some(shown) = self.table.show(&id.key()?).await? else {
            return Err(ComputeError::NotFound(id));
        };
        let unknown = shown.unknown;
        let found = Versioned::created(shown.key, shown.revision, shown.value);
        let found = self.check_id(found).map_err(StoreError::from)?;
        match principal.access(Verb::Read, Resource::Instances, &found.value.scope()) {
            Access::Allowed => {}
            Access::Refused(refused) => return Err(ComputeError::Refused(refused)),
            Access::NotVisible => return Err(ComputeError::NotFound(id)),
        }
        let scan = self.region_scan(&found.value.region).await?;
        let view = InstanceView::new(found, scan.as_ref(), self.clock.now());
        Ok(view.with_unknown(unknown))
    }

    /// Returns a record if the caller has the permission for `verb` on it.
    async fn permitted(
        &self,
        principal: &Principal,
        verb: Verb,
        id: InstanceId,
    ) -> Result<Versioned<Instance>, ComputeError> {
        let key = id.key()?;
        let found = match self.table.get(&key).await {
            Ok(found) => found.ok_or(ComputeError::NotFound(id))?,
            Err(error @ (StoreError::Corrupt { .. } | StoreError::Incompatible { .. })) => {
                return Err(self.unreadable(principal, id, &key, error).await);
            }
            Err(error) => return Err(error.into()),
        };
        match principal.access(verb, Resource::Instances, &found.value.scope()) {
            Access::Allowed => {}
            Access::Refused(refused) => {
                let name = Some(found.value.name.as_str());
                let audit = self.tenancy.audit();
                audit.record_refusal(&refused, id, name).await;
                return Err(ComputeError::Refused(refused));
            }
            Access::NotVisible => return Err(ComputeError::NotFound(id)),
        }
        Ok(self.check_id(found).map_err(StoreError::from)?)
    }

    /// Returns the error for a record that cannot be read. Callers who may not read the instances of its
    /// project get "not found". If the project cannot be read either, callers need the permission to read all instances.
    async fn unreadable(
        &self,
        principal: &Principal,
        id: InstanceId,
        key: &Key,
        error: StoreError,
    ) -> ComputeError {
        let raw = self.store.get(&self.table.id(key)).await.ok().flatten();
        let scope = raw.and_then(|record| Scope::of_record(&record.value));
        let scope = scope.unwrap_or(Scope::Global);
        match principal.authorize(Verb::Read, Resource::Instances, &scope) {
            Ok(()) => error.into(),
            Err(_) => ComputeError::NotFound(id),
        }
    }

    /// Checks that a record has the id that its key names.
    fn check_id(&self, found: Versioned<Instance>) -> Result<Versioned<Instance>, Damaged> {
        if found.key.as_str() == found.value.id.to_string() {
            return Ok(found);
        }
        let id = self.table.id(&found.key);
        let reason = "its id differs from its key";
        Err(Damaged::new(id, found.revision, reason))
    }

    /// Finds the instance of this name in a network by the index, whatever its id is.
    async fn find_by_name(
        &self,
        network: NetworkId,
        name: &Name,
    ) -> Result<Option<Versioned<Instance>>, ComputeError> {
        let value = [network.to_string(), name.to_string()];
        Ok(self.table.find(&self.by_name, value).await?)
    }
}
