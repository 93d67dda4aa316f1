//! How tenants ask for instances and are told of them. Every call takes the caller's principal; there is no other way in.
//!
//! A call is judged by the permission for its own verb. What its caller may not know of answers exactly as what does not exist.
//! A wish is one transaction: the record, the event and what pays for it, with what must still hold of the ground it stands on.
//! Nothing here waits for a cloud, but for the calls that show something of a machine: the console, the key, a snapshot.
//! It never writes a record's status, which is the controller's.

mod access;
mod allocation;
mod change;
mod create;
mod dependencies;
mod field;
mod inspect;
mod list;
mod principal;
mod ranges;
mod requests;
mod telemetry;
mod update;
mod validate;
mod verbs;
mod view;
mod wait;

use std::{fmt, sync::Arc, time::Duration};

use fleetwright_identity::{Access, Ledger, Principal, Resource, Verb};
use fleetwright_region::{
    catalog::CatalogService,
    ids::NetworkId,
    machine::MachineAccess,
    name::Name,
    network::Networks,
    server::{DependencyChecker, Servers},
};
use fleetwright_runtime::clock::Clock;
use fleetwright_store::{Damaged, IndexName, Invalid, Store, StoreError, Table, Versioned};

pub use change::Accepted;
pub use field::{FieldScope, InstanceField};
pub use inspect::Inspection;
pub use list::{InstancePage, ListInstances, MAX_FILTER, MAX_PAGE};
pub use principal::{compute_permissions, compute_principal};
pub use requests::{NewInstance, UpdateInstance};
pub use validate::{
    MAX_DESCRIPTION_CHARS, MAX_TAG_BYTES, MAX_TAG_KEY_CHARS, MAX_TAG_VALUE_CHARS, MAX_TAGS,
};
pub use view::{InstanceView, LastAttempt, Waiting};

use crate::{
    ComputeError,
    instance::{Instance, InstanceId},
    schema::NAME_INDEX,
};

/// How often a wish is tried when others write the same record, or what it stands on.
const ATTEMPTS: usize = 16;

/// When to ask again for what is not so now: about as long as a controller takes to see to it.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(5);

/// What the service is made of: the parts of one façade, over one store.
#[derive(Clone)]
#[non_exhaustive]
pub struct InstanceDependencies {
    /// Where everything is kept, with [every kind](crate::schema::add_all_kinds).
    pub store: Arc<dyn Store>,
    /// What tells the date.
    pub clock: Arc<dyn Clock>,
    /// What says whether an instance may stand where it is asked to. It is asked in the tenant's name.
    pub ground: Arc<dyn DependencyChecker>,
    /// The networks, one of which says where an instance is.
    pub networks: Arc<Networks>,
    /// The flavors, by which instances are charged.
    pub catalog: Arc<CatalogService>,
    /// What instances are charged to.
    pub ledger: Ledger,
    /// The servers behind them.
    pub servers: Servers,
    /// What is asked of machines at once: consoles, keys, images. Without it none of that is offered.
    pub machines: Option<MachineAccess>,
    /// In whose name servers are asked for; [`compute_principal`] if that is not said.
    pub service: Option<Principal>,
}

impl InstanceDependencies {
    /// InstanceDependencies that all stand on the same store.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ground: Arc<dyn DependencyChecker>,
        networks: Arc<Networks>,
        catalog: Arc<CatalogService>,
        ledger: Ledger,
        servers: Servers,
    ) -> Self {
        Self {
            store,
            clock,
            ground,
            networks,
            catalog,
            ledger,
            servers,
            machines: None,
            service: None,
        }
    }

    /// With what shows consoles and keys and makes images.
    #[must_use]
    pub fn with_machines(mut self, machines: MachineAccess) -> Self {
        self.machines = Some(machines);
        self
    }

    /// With another principal than [`compute_principal`] to ask for servers in the name of.
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

/// The service of instances. Clones are the same.
#[derive(Clone, Debug)]
pub struct Instances {
    store: Arc<dyn Store>,
    table: Table<Instance>,
    clock: Arc<dyn Clock>,
    ground: Arc<dyn DependencyChecker>,
    networks: Arc<Networks>,
    catalog: Arc<CatalogService>,
    ledger: Ledger,
    servers: Servers,
    machines: Option<MachineAccess>,
    service: Principal,
    by_name: IndexName,
}

impl Instances {
    /// The instances of a store. Fails if its schema lacks [their kind](crate::schema::add_kinds).
    pub fn new(parts: InstanceDependencies) -> Result<Self, ComputeError> {
        let service = match parts.service {
            Some(service) => service,
            None => compute_principal().map_err(|name| Invalid::new(name.to_string()))?,
        };
        Ok(Self {
            table: Table::new(Arc::clone(&parts.store))?,
            store: parts.store,
            clock: parts.clock,
            ground: parts.ground,
            networks: parts.networks,
            catalog: parts.catalog,
            ledger: parts.ledger,
            servers: parts.servers,
            machines: parts.machines,
            service,
            by_name: IndexName::new(NAME_INDEX)?,
        })
    }

    /// An instance as it is now.
    pub async fn read(
        &self,
        who: &Principal,
        id: InstanceId,
    ) -> Result<InstanceView, ComputeError> {
        self.metered("read", Some(id), async {
            let found = self.permitted(who, Verb::Read, id).await?;
            self.seen(found).await
        })
        .await
    }

    /// A record that the caller may do something to.
    async fn permitted(
        &self,
        who: &Principal,
        verb: Verb,
        id: InstanceId,
    ) -> Result<Versioned<Instance>, ComputeError> {
        let found = self.table.get(&id.key()?).await?;
        let found = found.ok_or(ComputeError::NotFound(id))?;
        let found = self.check_id(found).map_err(StoreError::from)?;
        let scope = found.value.scope();
        match who.access(verb, Resource::Instances, &scope) {
            Access::Allowed => Ok(found),
            Access::Refused(refused) => Err(ComputeError::Refused(refused)),
            Access::NotVisible => Err(ComputeError::NotFound(id)),
        }
    }

    /// That a record is the one that its key says.
    fn check_id(&self, found: Versioned<Instance>) -> Result<Versioned<Instance>, Damaged> {
        if found.key.as_str() == found.value.id.to_string() {
            return Ok(found);
        }
        Err(Damaged {
            id: self.table.id(&found.key),
            revision: found.revision,
            reason: "it says that it has another id".to_owned(),
        })
    }

    /// The instance of this name in a network, whatever its id is.
    async fn named(
        &self,
        network: NetworkId,
        name: &Name,
    ) -> Result<Option<Versioned<Instance>>, ComputeError> {
        let value = [network.to_string(), name.to_string()];
        Ok(self.table.find(&self.by_name, value).await?)
    }
}
