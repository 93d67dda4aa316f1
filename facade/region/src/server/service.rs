//! The server service: creates, changes and reads servers. Every call takes the caller's principal.
//!
//! No call waits for a cloud: a request is one transaction, and the store's watch wakes the controller.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fleetwright::{OptionalVerb, Reboot};
use fleetwright_identity::{Access, AuditLog, Principal, Resource, Scope, Verb};
use fleetwright_runtime::clock::Clock;
use fleetwright_store::{
    Check, IndexName, IndexValue, Scalar, Store, StoreError, Table, Transaction, Versioned,
};

use super::{
    Consent, DependencyChecker, EnsuredServer, EventKind, NewServer, OWNER_INDEX, Owner, Plan,
    Power, Server, ServerError, ServerId, ServerPlacement, ServerSpec, ServerView, Writer,
    create::{
        KeyPair, check_boot_data, check_changed_boot_data, check_opened, check_size, new_record,
    },
};
use crate::{ids::RegionId, launch_config::LaunchConfigs, monitor::RegionScan, secret::SshKeys};

/// How often a request is tried when others write the same record.
const TRIES: usize = 16;

/// The server service. Clones share everything.
///
/// ```
/// use fleetwright_region::server::{Phase, Power};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use fleetwright_facade_testkit::{TestRegion, bare_server, server_admin};
/// # let cloud = fleetwright_memory::MemoryCloud::new().provisioner();
/// # let region = TestRegion::new(std::sync::Arc::new(cloud));
/// # let (servers, admin, new) = (&region.servers, server_admin(), bare_server(1));
/// let created = servers.ensure(&admin, &new).await?;
/// assert_eq!(servers.ensure(&admin, &new).await?.server.id, created.server.id, "the same server");
///
/// servers.set_power(&admin, new.id, Power::Stopped).await?;
/// assert_eq!(servers.read(&admin, new.id).await?.server.intent.power, Power::Stopped);
/// servers.delete(&admin, new.id).await?;
/// assert_eq!(servers.read(&admin, new.id).await?.phase, Phase::Deleting);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Servers {
    store: Arc<dyn Store>,
    pub(super) table: Table<Server>,
    scans: Table<RegionScan>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) dependencies: Arc<dyn DependencyChecker>,
    pub(super) keys: SshKeys,
    regions: BTreeMap<RegionId, BTreeSet<OptionalVerb>>,
    pub(super) launch_configs: BTreeMap<RegionId, LaunchConfigs>,
    pub(super) audit: Option<AuditLog>,
}

impl Servers {
    /// Creates the service on a store with [the region's kinds](crate::schema::add_kinds), with a dependency checker:
    /// [`TenantDependencies`](super::TenantDependencies) for tenants, or [`NoDependencyCheck`](super::NoDependencyCheck).
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        dependencies: Arc<dyn DependencyChecker>,
        keys: SshKeys,
    ) -> Result<Self, ServerError> {
        Ok(Self {
            table: Table::new(Arc::clone(&store))?,
            scans: Table::new(Arc::clone(&store))?,
            store,
            clock,
            dependencies,
            keys,
            regions: BTreeMap::new(),
            launch_configs: BTreeMap::new(),
            audit: None,
        })
    }

    /// Adds a region with the optional verbs of its provisioner. Servers can be created in these regions only.
    #[must_use]
    pub fn with_region(mut self, region: RegionId, verbs: BTreeSet<OptionalVerb>) -> Self {
        self.regions.insert(region, verbs);
        self
    }

    /// Returns whether the cloud of a region supports a verb.
    ///
    /// # Errors
    ///
    /// [`NoRegion`](ServerError::NoRegion) if the service does not know the region.
    pub fn offers(&self, region: &RegionId, verb: OptionalVerb) -> Result<bool, ServerError> {
        let verbs = self.regions.get(region);
        let verbs = verbs.ok_or_else(|| ServerError::NoRegion(region.clone()))?;
        Ok(verbs.contains(&verb))
    }

    /// Creates the owner's server or returns the existing one. An existing server is not changed, and its dependencies are not checked.
    ///
    /// The dependencies are checked with the caller's permissions, and again in the transaction that creates the server and its key pair.
    pub async fn ensure(
        &self,
        principal: &Principal,
        new: &NewServer,
    ) -> Result<ServerView, ServerError> {
        let ensured = self.ensure_with(principal, new, |_| Ok(Transaction::new()));
        match ensured.await? {
            EnsuredServer::Created(view) | EnsuredServer::Existing(view) => Ok(view),
        }
    }

    /// Like [`ensure`](Self::ensure), and commits what `also` returns for the new server in the transaction that creates it: the owner's
    /// own record of it. For an existing server nothing is committed.
    ///
    /// ```
    /// use fleetwright_region::server::EnsuredServer;
    /// use fleetwright_store::Transaction;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use fleetwright_facade_testkit::{TestRegion, bare_server, server_admin};
    /// # let cloud = fleetwright_memory::MemoryCloud::new().provisioner();
    /// # let region = TestRegion::new(std::sync::Arc::new(cloud));
    /// # let (servers, admin, new) = (&region.servers, server_admin(), bare_server(1));
    /// let nothing = |_: &_| Ok(Transaction::new());
    /// let first = servers.ensure_with(&admin, &new, nothing).await?;
    /// assert!(matches!(first, EnsuredServer::Created(_)));
    /// let second = servers.ensure_with(&admin, &new, nothing).await?;
    /// assert!(matches!(second, EnsuredServer::Existing(_)));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ensure_with(
        &self,
        principal: &Principal,
        new: &NewServer,
        also: impl Fn(&Server) -> Result<Transaction, StoreError> + Send,
    ) -> Result<EnsuredServer, ServerError> {
        let scope = Scope::Project(new.organization, new.project);
        principal
            .authorize(Verb::Create, Resource::Servers, &scope)
            .map_err(ServerError::Refused)?;
        if !self.regions.contains_key(&new.region) {
            return Err(ServerError::NoRegion(new.region.clone()));
        }
        check_size(new.id, &new.spec)?;
        check_opened(new.id, &new.spec)?;
        let key = new.id.key()?;
        for _ in 0..TRIES {
            if let Some(found) = self.table.get(&key).await? {
                return self.same(found, new).await.map(EnsuredServer::Existing);
            }
            let tenant = (new.organization, new.project);
            let placement = ServerPlacement::new(&new.region, tenant, &new.spec);
            let mut transaction = Transaction::new();
            transaction.checks = self.dependency_checks(principal, &placement).await?;
            transaction.checks.extend(new.guards.iter().cloned());
            let (transaction, public_key) = self.add_key_pair(transaction, new)?;
            check_boot_data(new.id, &new.spec, KeyPair::of(public_key.as_ref()))?;
            let mut server = new_record(new, self.clock.now());
            server.public_key = public_key;
            let transaction = self.table.create(transaction, &key, &server)?;
            let transaction = self.add_entry(transaction, principal, Verb::Create, &server)?;
            let transaction = transaction.and(also(&server)?);
            match self.store.commit(&transaction).await {
                Ok(revision) => {
                    let created = Versioned::created(key.clone(), revision, server);
                    return self.view(created).await.map(EnsuredServer::Created);
                }
                Err(error) => self.explain_conflict(error, new).await?,
            }
        }
        Err(ServerError::Busy(new.id))
    }

    /// Changes the spec, and returns the plan. A destructive change needs consent. Changed dependencies are checked as by
    /// [`ensure`](Self::ensure); unchanged ones are not, so a retired flavor or image does not prevent a change of another field.
    pub async fn set_spec(
        &self,
        principal: &Principal,
        id: ServerId,
        spec: &ServerSpec,
        consent: Consent,
    ) -> Result<(ServerView, Plan), ServerError> {
        check_size(id, spec)?;
        check_opened(id, spec)?;
        let mut plan = Plan::default();
        let view = self
            .change(principal, Verb::Update, id, |server| {
                check_changed_boot_data(server, spec)?;
                plan = self.plan(server, spec)?;
                if consent == Consent::KeepEverything && plan.destructive().next().is_some() {
                    let plan = plan.clone();
                    return Err(ServerError::NeedsConsent { id, plan });
                }
                if server.spec == *spec {
                    return Ok(None);
                }
                server.spec = spec.clone();
                Ok(Some("requested another spec"))
            })
            .await?;
        Ok((view, plan))
    }

    /// Returns the plan or the error that [`set_spec`](Self::set_spec) would return, without changing anything. Requires the permission to
    /// read the server.
    pub async fn plan_spec(
        &self,
        principal: &Principal,
        id: ServerId,
        spec: &ServerSpec,
    ) -> Result<Plan, ServerError> {
        check_size(id, spec)?;
        let server = self.permitted(principal, Verb::Read, id).await?.value;
        if server.intent.power == Power::Deleted {
            return Err(ServerError::Deleting(id));
        }
        let tenant = (server.organization, server.project);
        let placement =
            ServerPlacement::new(&server.region, tenant, spec).changed_from(&server.spec);
        self.dependency_checks(principal, &placement).await?;
        check_changed_boot_data(&server, spec)?;
        self.plan(&server, spec)
    }

    /// Sets the desired power state, which also holds after a replacement. [`Power::Deleted`] is the same as
    /// [`delete`](Self::delete).
    pub async fn set_power(
        &self,
        principal: &Principal,
        id: ServerId,
        power: Power,
    ) -> Result<ServerView, ServerError> {
        let (verb, message) = match power {
            Power::Running => (Verb::Start, "requested it to run"),
            Power::Stopped => (Verb::Stop, "requested it to stop"),
            Power::Deleted => return self.delete(principal, id).await,
        };
        let edit = |server: &mut Server| {
            let differs = server.intent.power != power;
            server.intent.power = power;
            Ok(differs.then_some(message))
        };
        self.change(principal, verb, id, edit).await
    }

    /// Requests a reboot. Pending requests are carried out as one.
    pub async fn request_reboot(
        &self,
        principal: &Principal,
        id: ServerId,
        how: Reboot,
    ) -> Result<ServerView, ServerError> {
        let edit = |server: &mut Server| {
            match server.intent.power {
                Power::Running => {}
                Power::Stopped | Power::Deleted => {
                    let (found, wanted) = ("requested to be stopped", "requested to run");
                    return Err(ServerError::NotReady { id, found, wanted });
                }
            }
            server.intent.reboots = server.intent.reboots.saturating_add(1);
            server.intent.reboot_how = how;
            Ok(Some("requested a reboot"))
        };
        self.change(principal, Verb::Reboot, id, edit).await
    }

    /// Requests a replacement of the machine. **Its disk and addresses are lost.**
    pub async fn request_replace(
        &self,
        principal: &Principal,
        id: ServerId,
    ) -> Result<ServerView, ServerError> {
        let edit = |server: &mut Server| {
            server.intent.replaces = server.intent.replaces.saturating_add(1);
            Ok(Some("requested a replacement"))
        };
        self.change(principal, Verb::Update, id, edit).await
    }

    /// Deletes the server with its machine. The record is deleted once the cloud has confirmed the termination. Repeating the call is no
    /// error.
    pub async fn delete(
        &self,
        principal: &Principal,
        id: ServerId,
    ) -> Result<ServerView, ServerError> {
        self.delete_if(principal, id, &[]).await
    }

    /// Like [`delete`](Self::delete), with further checks in the transaction; a check that fails is returned as the store's conflict. It
    /// keeps a caller with an outdated copy of the owner from deleting the server of a new owner with the same id.
    pub async fn delete_if(
        &self,
        principal: &Principal,
        id: ServerId,
        guards: &[Check],
    ) -> Result<ServerView, ServerError> {
        self.write(principal, Verb::Delete, id, guards, |server| {
            if server.intent.power == Power::Deleted {
                return Ok(None);
            }
            server.intent.power = Power::Deleted;
            Ok(Some("requested its deletion"))
        })
        .await
    }

    /// Returns a server.
    pub async fn read(
        &self,
        principal: &Principal,
        id: ServerId,
    ) -> Result<ServerView, ServerError> {
        let found = self.permitted(principal, Verb::Read, id).await?;
        self.view(found).await
    }

    /// Returns the server of an owner.
    pub async fn read_by_owner(
        &self,
        principal: &Principal,
        owner: &Owner,
    ) -> Result<ServerView, ServerError> {
        let hidden = || ServerError::NoServerOwnedBy(owner.clone());
        let found = self.of(owner).await?.ok_or_else(hidden)?;
        match principal.access(Verb::Read, Resource::Servers, &found.value.scope()) {
            Access::Allowed => self.view(found).await,
            Access::Refused(_) | Access::NotVisible => Err(hidden()),
        }
    }

    /// Returns the plan that gives a server another spec, with the verbs of its region's cloud. Reads nothing.
    pub fn plan(&self, server: &Server, spec: &ServerSpec) -> Result<Plan, ServerError> {
        let verbs = self.regions.get(&server.region);
        let verbs = verbs.ok_or_else(|| ServerError::NoRegion(server.region.clone()))?;
        // A launch with an unknown outcome may have created a machine with the spec it was launched with. A server with neither machine
        // nor launch has nothing to lose.
        let launch = server.launch.as_ref();
        let launch = launch.filter(|launch| launch.sent_at.is_some());
        Ok(match (&server.machine, launch) {
            (Some(machine), _) => machine.plan_to(spec, verbs),
            (None, Some(launch)) => Plan::between(&launch.spec, spec, verbs),
            (None, None) => Plan::default(),
        })
    }

    /// Changes a server that is not being deleted.
    pub(super) async fn change(
        &self,
        principal: &Principal,
        verb: Verb,
        id: ServerId,
        edit: impl FnMut(&mut Server) -> Result<Option<&'static str>, ServerError> + Send,
    ) -> Result<ServerView, ServerError> {
        self.change_if(principal, verb, id, &[], edit).await
    }

    /// Like `change`, with further checks in the transaction.
    pub(super) async fn change_if(
        &self,
        principal: &Principal,
        verb: Verb,
        id: ServerId,
        guards: &[Check],
        mut edit: impl FnMut(&mut Server) -> Result<Option<&'static str>, ServerError> + Send,
    ) -> Result<ServerView, ServerError> {
        self.write(principal, verb, id, guards, |server| {
            match server.intent.power {
                Power::Running | Power::Stopped => edit(server),
                Power::Deleted => Err(ServerError::Deleting(id)),
            }
        })
        .await
    }

    async fn write(
        &self,
        principal: &Principal,
        verb: Verb,
        id: ServerId,
        guards: &[Check],
        mut edit: impl FnMut(&mut Server) -> Result<Option<&'static str>, ServerError> + Send,
    ) -> Result<ServerView, ServerError> {
        for _ in 0..TRIES {
            let found = self.permitted(principal, verb, id).await?;
            let mut server = found.value.clone();
            let Some(message) = edit(&mut server)? else {
                return self.view(found).await;
            };
            server.generation = server.generation.saturating_add(1);
            let message = format!("{} {message}", principal.actor());
            server.note(
                self.clock.now(),
                Writer::Service,
                EventKind::Requested,
                message,
            );
            let placement = ServerPlacement::new(
                &server.region,
                (server.organization, server.project),
                &server.spec,
            );
            let placement = placement.changed_from(&found.value.spec);
            let mut transaction = Transaction::new();
            transaction.checks = self.dependency_checks(principal, &placement).await?;
            transaction.checks.extend(guards.iter().cloned());
            let transaction = self.table.replace(transaction, &found, &server)?;
            let transaction = self.add_entry(transaction, principal, verb, &server)?;
            match self.store.commit(&transaction).await {
                Ok(revision) => {
                    return self.view(found.replaced_by(revision, server)).await;
                }
                Err(error) if error.conflict().is_some() && !is_guard_conflict(&error, guards) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ServerError::Busy(id))
    }

    async fn permitted(
        &self,
        principal: &Principal,
        verb: Verb,
        id: ServerId,
    ) -> Result<Versioned<Server>, ServerError> {
        let found = self.table.get(&id.key()?).await?;
        let found = found.ok_or(ServerError::NotFound(id))?;
        match principal.access(verb, Resource::Servers, &found.value.scope()) {
            Access::Allowed => Ok(found),
            Access::Refused(refused) => {
                if let Some(audit) = &self.audit {
                    audit.record_refusal(&refused, id, None).await;
                }
                Err(ServerError::Refused(refused))
            }
            Access::NotVisible => Err(ServerError::NotFound(id)),
        }
    }

    async fn of(&self, owner: &Owner) -> Result<Option<Versioned<Server>>, StoreError> {
        let parts = [&owner.kind, &owner.id].map(|part| Scalar::from(part.as_str()));
        let value = IndexValue(parts.into());
        self.table.find(&IndexName::new(OWNER_INDEX)?, value).await
    }

    async fn same(
        &self,
        found: Versioned<Server>,
        new: &NewServer,
    ) -> Result<ServerView, ServerError> {
        let server = &found.value;
        let same = server.owner == new.owner
            && server.region == new.region
            && (server.organization, server.project) == (new.organization, new.project);
        match (same, server.intent.power) {
            (false, _) => Err(taken(
                new,
                "the id belongs to another owner, region or project",
            )),
            (true, Power::Deleted) => Err(ServerError::Deleting(new.id)),
            (true, Power::Running | Power::Stopped) => self.view(found).await,
        }
    }

    /// `Ok(())` means retry.
    async fn explain_conflict(
        &self,
        error: StoreError,
        new: &NewServer,
    ) -> Result<(), ServerError> {
        if error.conflict().is_none() || is_guard_conflict(&error, &new.guards) {
            return Err(error.into());
        }
        match self.of(&new.owner).await? {
            Some(other) if other.value.id != new.id => {
                Err(taken(new, "the owner has another server"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the last scan of a region. Its date shows how old the observations of its servers are.
    pub async fn region_scan(&self, region: &RegionId) -> Result<Option<RegionScan>, ServerError> {
        let scan = self.scans.get(&RegionScan::key(region)?).await?;
        Ok(scan.map(|scan| scan.value))
    }

    async fn view(&self, found: Versioned<Server>) -> Result<ServerView, ServerError> {
        let scan = self.region_scan(&found.value.region).await?;
        Ok(ServerView::new(found, scan.as_ref(), self.clock.now()))
    }
}

/// Returns whether a commit failed by one of the caller's own checks.
fn is_guard_conflict(error: &StoreError, guards: &[Check]) -> bool {
    let conflict = error.conflict();
    conflict.is_some_and(|conflict| guards.contains(&conflict.check))
}

fn taken(new: &NewServer, reason: &'static str) -> ServerError {
    ServerError::Taken {
        id: new.id,
        owner: new.owner.clone(),
        reason,
    }
}
