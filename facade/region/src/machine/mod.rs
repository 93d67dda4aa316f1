//! Direct access to the machine of a server: its console, its private key, an image of it.
//!
//! Owns these calls, their permissions, and the errors while there is no machine. Changes of the desired state belong to the
//! [service](crate::server::Servers), which calls no cloud; here a call makes at most one request, to the machine that the server's record
//! names. This module never searches for a machine, and never writes to a server.
//!
//! [`MachineAccess::snapshot`] makes no request either: it records the image, and [`Snapshots`](crate::snapshot::Snapshots) creates it.

mod cloud_error;
mod console;
mod error;
mod key;
mod readiness;

use std::{collections::BTreeMap, fmt, sync::Arc};

use fleetwright::{InstanceProvisioner, OptionalVerb};
use fleetwright_identity::{
    Access, Actor, ActorName, AuditEvent, AuditLog, AuditOutcome, Ledger, Permission, Principal,
    Resource, Verb,
};
use fleetwright_runtime::clock::Clock;
use fleetwright_store::{Invalid, Store, Table};
use metrics::counter;

pub use error::MachineError;
pub(crate) use readiness::{RequiredState, ready_machine};

use crate::{
    account::{ConfirmedAccount, RegionAccount, guarded},
    catalog::CatalogService,
    ids::RegionId,
    secret::SshKeys,
    server::{Server, ServerId},
};

/// Access to the machines of servers. Clones share everything.
///
/// Every call takes the caller's principal and requires the permission of its own verb on servers. A server that is not visible to the
/// caller is reported as missing.
///
/// ```
/// use std::sync::Arc;
/// use fleetwright_memory::MemoryCloud;
/// use fleetwright_region::{
///     catalog::CatalogService, ids::RegionId, machine::{MachineAccess, MachineError}, secret::SshKeys,
/// };
/// use fleetwright_runtime::clock::SystemClock;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = fleetwright_facade_testkit::memory_store();
/// # let (admin, id) = (fleetwright_facade_testkit::server_admin(), fleetwright_facade_testkit::server_id(1));
/// let (catalog, _damaged) = CatalogService::open(store.clone()).await?;
/// let cloud = Arc::new(MemoryCloud::new().provisioner());
/// let machines = MachineAccess::new(store, Arc::new(SystemClock), catalog.into(), SshKeys::Disabled)?
///     .with_region(RegionId::new("north")?, cloud);
///
/// let error = machines.console_output(&admin, id, None).await.unwrap_err();
/// assert!(matches!(error, MachineError::NotFound(missing) if missing == id));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MachineAccess {
    servers: Table<Server>,
    pub(crate) catalog: Arc<CatalogService>,
    pub(crate) clock: Arc<dyn Clock>,
    keys: SshKeys,
    store: Arc<dyn Store>,
    accounts: Table<RegionAccount>,
    /// The handles by region. They refuse every call while the provider uses another account than the region's.
    clouds: BTreeMap<RegionId, Arc<dyn InstanceProvisioner>>,
    /// The principal of the region, for what it does after it has checked the caller's permission.
    pub(crate) own: Principal,
    pub(crate) ledger: Option<Ledger>,
    audit: Option<AuditLog>,
}

impl MachineAccess {
    /// Creates the service on a store with [the region's kinds](crate::schema::add_kinds). The keys must be those of
    /// [`Servers`](crate::server::Servers).
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        catalog: Arc<CatalogService>,
        keys: SshKeys,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            servers: Table::new(Arc::clone(&store))?,
            accounts: Table::new(Arc::clone(&store))?,
            store,
            catalog,
            clock,
            keys,
            clouds: BTreeMap::new(),
            own: own()?,
            ledger: None,
            audit: None,
        })
    }

    /// Adds an entry to the audit log for every key, console and output that is shown to a user, before it is shown. Services of this system
    /// call for others, and record those themselves.
    #[must_use]
    pub fn with_audit(mut self, audit: AuditLog) -> Self {
        self.audit = Some(audit);
        self
    }

    /// Sets the ledger, on the same store, that counts each image as one of
    /// [`QuotaKind::images`](fleetwright_identity::QuotaKind::images), from the request until it is deleted. Without a ledger, images are not limited.
    #[must_use]
    pub fn with_ledger(mut self, ledger: Ledger) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// Adds a region with its cloud: the handle of its controller and monitor.
    #[must_use]
    pub fn with_region(self, region: RegionId, cloud: Arc<dyn InstanceProvisioner>) -> Self {
        self.with_confirmed_region(region, cloud, &ConfirmedAccount::default())
    }

    /// Adds a region that shares with its other parts when its account was last confirmed.
    #[must_use]
    pub fn with_confirmed_region(
        mut self,
        region: RegionId,
        cloud: Arc<dyn InstanceProvisioner>,
        confirmed: &ConfirmedAccount,
    ) -> Self {
        let (cloud, account) = guarded(&region, &self.store, self.accounts.clone(), cloud);
        account.share(confirmed);
        self.clouds.insert(region, cloud);
        self
    }

    /// Returns the server if the caller has the permission; otherwise the error is counted.
    pub(crate) async fn permitted(
        &self,
        principal: &Principal,
        verb: Verb,
        id: ServerId,
    ) -> Result<Server, MachineError> {
        match self.find(principal, verb, id).await {
            Ok(server) => Ok(server),
            Err(error) => Self::record_outcome(verb, id, None, Err(error)),
        }
    }

    async fn find(
        &self,
        principal: &Principal,
        verb: Verb,
        id: ServerId,
    ) -> Result<Server, MachineError> {
        let found = self.servers.get(&id.key()?).await?;
        let server = found.ok_or(MachineError::NotFound(id))?.value;
        match principal.access(verb, Resource::Servers, &server.scope()) {
            Access::Allowed => Ok(server),
            Access::Refused(refused) => {
                if let Some(audit) = &self.audit {
                    audit.record_refusal(&refused, id, None).await;
                }
                Err(MachineError::Refused(refused))
            }
            Access::NotVisible => Err(MachineError::NotFound(id)),
        }
    }

    /// Records that something of a server is about to be shown to a user.
    pub(crate) async fn record_disclosure(
        &self,
        principal: &Principal,
        verb: Verb,
        server: &Server,
    ) -> Result<(), MachineError> {
        let (Some(audit), Actor::User(_)) = (&self.audit, principal.actor()) else {
            return Ok(());
        };
        let actor = principal.actor();
        let event = AuditEvent::new(actor, verb, Resource::Servers, server.id, server.scope());
        Ok(audit
            .record(&event.outcome(AuditOutcome::Disclosed))
            .await?)
    }

    /// Returns the cloud of a server's region.
    fn cloud(&self, server: &Server) -> Result<&Arc<dyn InstanceProvisioner>, MachineError> {
        let cloud = self.clouds.get(&server.region);
        cloud.ok_or_else(|| MachineError::NoRegion(server.region.clone()))
    }

    /// Returns the cloud of a server's region if it supports the verb.
    pub(crate) fn offering(
        &self,
        server: &Server,
        verb: Verb,
        offered: OptionalVerb,
    ) -> Result<&Arc<dyn InstanceProvisioner>, MachineError> {
        let cloud = self.cloud(server)?;
        if !cloud.capabilities().supports(offered) {
            let region = server.region.clone();
            return Err(MachineError::Unsupported { region, verb });
        }
        Ok(cloud)
    }

    /// Records the outcome of a call in metrics and the log, without any content.
    pub(crate) fn record_outcome<T>(
        verb: Verb,
        id: ServerId,
        region: Option<&RegionId>,
        result: Result<T, MachineError>,
    ) -> Result<T, MachineError> {
        let outcome = result.as_ref().map_or_else(MachineError::outcome, |_| "ok");
        let labels = [
            ("region", region.map_or("none", RegionId::as_str).to_owned()),
            ("verb", verb.as_str().to_owned()),
            ("outcome", outcome.to_owned()),
        ];
        counter!("fleetwright_region_machine_calls_total", &labels).increment(1);
        match &result {
            Err(
                MachineError::Unavailable { source, .. } | MachineError::Declined { source, .. },
            ) => {
                let verb = verb.as_str();
                tracing::warn!(server = %id, verb, outcome, error = %source, "a machine call failed");
            }
            Ok(_) | Err(_) => {
                tracing::debug!(server = %id, verb = verb.as_str(), outcome, "a machine call finished");
            }
        }
        result
    }
}

/// Returns the principal of the region, which creates images and decrypts keys for permitted callers.
pub(crate) fn own() -> Result<Principal, Invalid> {
    let unfit = |error: &dyn fmt::Display| Invalid::new(error.to_string());
    let name = ActorName::new("region").map_err(|error| unfit(&error))?;
    let wanted = [
        (Verb::Create, Resource::Images),
        (Verb::Read, Resource::Images),
        (Verb::Update, Resource::NativeImages),
        (Verb::Read, Resource::Instances),
        (Verb::SshKey, Resource::Instances),
    ];
    let permissions = wanted.map(|(verb, resource)| Permission::new(verb, resource));
    let permissions: Result<Vec<_>, _> = permissions.into_iter().collect();
    Ok(Principal::service(
        name,
        permissions.map_err(|error| unfit(&error))?,
    ))
}

impl fmt::Debug for MachineAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MachineAccess")
            .field("regions", &self.clouds.keys())
            .finish_non_exhaustive()
    }
}
