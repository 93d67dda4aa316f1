//! The rules that hold at every step.

mod account;
mod change;
mod consent;
mod delay;
mod destruction;
mod instance;
mod power;
mod price;
mod quota;
mod sealed;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fleetwright::{InstanceConfig, InstanceId, InstanceInfo, OptionalVerb};
use fleetwright_compute::instance::Instance;
use fleetwright_compute::schema::INSTANCE_KIND;
use fleetwright_region::schema::SERVER_KIND;
use fleetwright_region::{
    controller::tags,
    secret::{Keyring, SealedStore},
    server::{Presence, Server, ServerId},
};
use fleetwright_runtime::{clock::Clock, entropy::OsEntropy};
use fleetwright_store::{Json, Kind, MemoryStore, Query, Record, RecordId, Store, Table};
use serde::de::DeserializeOwned;

pub use change::RecordChange;
pub use delay::MIN_BACKOFF;
pub use destruction::Destruction;
pub use power::{INTERVAL as POWER_INTERVAL, PowerWatch};

use crate::{
    constants,
    environment::Environment,
    fault::FaultPoint,
    fixtures::Fixtures,
    journal::{Complete, Journal},
    oracle::Oracle,
    scenario::UserDataAtRest,
    store::Actor,
    world::SetupError,
};

/// Checks the rules that hold at every step.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The store that outlives the processes, with user data in clear.
    pub store: Arc<dyn Store>,
    /// The keys of server keys and user data.
    pub keyring: Arc<Keyring>,
    /// How the processes store user data. New rules expect it in clear.
    pub user_data: UserDataAtRest,
    /// Its servers.
    pub servers: Table<Server>,
    /// Its instances.
    pub instances: Table<Instance>,
    /// The cloud's real state.
    pub oracle: Oracle,
    /// Where a broken rule is reported.
    pub journal: Arc<Journal>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The networks and other dependencies of instances.
    pub fixtures: Arc<Fixtures>,
    /// The optional verbs that the cloud supports.
    pub verbs: Arc<BTreeSet<OptionalVerb>>,
    /// What operators set for each process.
    pub environments: Arc<[Arc<Environment>]>,
}

impl Rules {
    /// Creates the rules over the store that outlives the processes.
    pub fn new(
        store: &MemoryStore,
        oracle: Oracle,
        journal: Arc<Journal>,
        clock: Arc<dyn Clock>,
        fixtures: Arc<Fixtures>,
        verbs: BTreeSet<OptionalVerb>,
        environments: &[Arc<Environment>],
    ) -> Result<Self, SetupError> {
        let keyring: Arc<Keyring> = Arc::new(constants::KEYS.parse()?);
        let opened: Arc<dyn Store> = Arc::new(SealedStore::new(
            Arc::new(store.clone()),
            Some(Arc::clone(&keyring)),
            // Rules write nothing.
            Arc::new(OsEntropy),
            fleetwright_compute::schema::sealed_fields(),
        ));
        Ok(Self {
            servers: Table::new(Arc::clone(&opened))?,
            instances: Table::new(Arc::clone(&opened))?,
            store: opened,
            keyring,
            user_data: UserDataAtRest::Clear,
            oracle,
            journal,
            clock,
            fixtures,
            verbs: Arc::new(verbs),
            environments: environments.into(),
        })
    }

    /// Checks a commit.
    pub async fn check_commit(
        &self,
        process: usize,
        actor: Actor,
        point: FaultPoint,
        changes: &[RecordChange],
    ) {
        let list_failed = self.journal.process(process, |facts| facts.list_failed);
        if point == FaultPoint::WriteScan && list_failed {
            self.report("a scan is recorded although its list failed");
        }
        if point == FaultPoint::WriteScan {
            self.journal.process(process, |facts| {
                facts.recorded_list = facts.list.map(|(began, _)| began);
            });
        }
        for change in changes {
            match change.kind() {
                INSTANCE_KIND => self.check_instance_write(actor, change).await,
                SERVER_KIND => {
                    // The record of its instance before the commit, if the commit writes that too.
                    let instance = changes.iter().find(|other| other.kind() == INSTANCE_KIND);
                    let owner = instance.and_then(RecordChange::before_as::<Instance>);
                    self.check_server_write(process, actor, point, change, owner.as_deref())
                        .await;
                }
                quota::IMAGE_KIND => self.remember_lost_image(change),
                _ => {}
            }
        }
        if changes.iter().any(quota::concerns_charges) {
            self.check_charges().await;
        }
    }

    /// Reports a broken rule.
    fn report(&self, rule: impl Into<String>) {
        self.journal.report_violation(rule);
    }

    /// Returns all readable records of a kind.
    pub async fn all<T>(&self, kind: &str) -> Vec<Arc<T>>
    where
        T: DeserializeOwned + Send + Sync + 'static,
    {
        let values = self.values(kind).await.into_iter();
        values.filter_map(|value| value.parse().ok()).collect()
    }

    /// Returns the values of all records of a kind.
    pub async fn values(&self, kind: &str) -> Vec<Json> {
        let records = self.records(kind).await.into_iter();
        records.map(|record| record.value).collect()
    }

    /// Returns all records of a kind.
    async fn records(&self, kind: &str) -> Vec<Record> {
        let Ok(kind) = Kind::new(kind) else {
            return Vec::new();
        };
        let page = self.store.list(&Query::all(kind)).await;
        page.map(|page| page.records).unwrap_or_default()
    }

    async fn check_server_write(
        &self,
        process: usize,
        actor: Actor,
        point: FaultPoint,
        change: &RecordChange,
        owner: Option<&Instance>,
    ) {
        if actor == Actor::Monitor && !change.has("/observed/presence/missing") {
            return;
        }
        match (change.before_as::<Server>(), change.after_as::<Server>()) {
            (None, Some(server)) => self.check_server_created(&server, owner).await,
            (Some(before), Some(server)) => match actor {
                Actor::InstanceController => self.check_server_change(&before, &server).await,
                Actor::ServerController => {
                    self.check_delay_is_kept(process, &before, &server);
                    self.check_termination(&before, &server).await;
                }
                Actor::Monitor => self.check_observation(point, &server),
                Actor::Service
                | Actor::Operator
                | Actor::Catalog
                | Actor::NetworkController
                | Actor::SnapshotController => {}
            },
            (Some(_) | None, None) => {}
        }
    }

    /// Checks an observation: a machine that is reported missing does not exist.
    fn check_observation(&self, point: FaultPoint, server: &Server) {
        let Some(observed) = server.current_observation() else {
            return;
        };
        // The consistency window of a launch is measured with dates. If a clock is set meanwhile, the window may seem to be over: then a
        // machine that nobody has used yet is replaced.
        let excused = !server.has_booted() && self.journal.facts(|facts| facts.clocks_were_set);
        let missing = matches!(observed.presence, Presence::Missing(_)) && !excused;
        if point == FaultPoint::WriteObservation
            && missing
            && self.oracle.is_in_region(&observed.machine)
        {
            self.report(format!(
                "machine {} is reported missing although it exists",
                observed.machine
            ));
        }
    }

    /// Checks a launch that is about to be sent: its token is stored, and no machine of this life
    /// has booted.
    pub async fn check_launch(&self, config: &InstanceConfig) -> Option<ServerId> {
        let id: ServerId = config.tags.get(tags::SERVER)?.parse().ok()?;
        let Some(server) = self.server(id).await else {
            self.journal
                .report_violation(format!("server {id} is launched although it has no record"));
            return Some(id);
        };
        let stored = server.launch.as_ref().map(|launch| &launch.token);
        if stored != config.launch_token.as_ref() {
            self.journal.report_violation(format!(
                "server {id} is launched with a token that is not stored"
            ));
        }
        if server.has_booted() {
            self.journal.report_violation(format!(
                "server {id} is launched again although its machine had booted"
            ));
        }
        Some(id)
    }

    /// Checks a machine that the monitor is about to terminate: it is an orphan, and the list was
    /// complete.
    pub fn check_orphan_termination(&self, process: usize, id: &InstanceId) {
        let orphan = self.journal.facts(|facts| facts.orphans.contains(id));
        let list = self.journal.process(process, |facts| facts.list);
        if !orphan {
            self.journal.report_violation(format!(
                "the monitor terminates machine {id}, which is not an orphan"
            ));
        }
        if list.is_none_or(|(_, complete)| complete == Complete::No) {
            self.journal.report_violation(format!(
                "the monitor terminates machine {id} after an incomplete list"
            ));
        }
    }

    /// Checks after a launch that no server has two machines.
    pub fn check_single_machine(&self, point: FaultPoint) {
        if point != FaultPoint::Launch {
            return;
        }
        let mut live_of: BTreeMap<ServerId, Vec<InstanceInfo>> = BTreeMap::new();
        for (info, server) in self.oracle.live() {
            let of_others = self.journal.facts(|facts| facts.is_of_others(&info.id));
            if let Some(server) = server.filter(|_| !of_others) {
                live_of.entry(server).or_default().push(info);
            }
        }
        for (id, live) in live_of {
            if live.len() > 1 {
                let machines: Vec<_> = live.iter().map(|info| info.id.as_str()).collect();
                let machines = machines.join(" and ");
                self.journal
                    .report_violation(format!("server {id} has two machines: {machines}"));
            }
        }
    }

    /// Returns the server whose record names a machine.
    pub async fn owner_of(&self, machine: &InstanceId) -> Option<ServerId> {
        for id in self.fixtures.servers() {
            let server = self.server(id).await;
            let named = server.as_ref().and_then(|server| server.machine.as_ref());
            if named.is_some_and(|named| named.id == *machine) {
                return Some(id);
            }
        }
        None
    }

    /// Checks a machine that the server controller is about to terminate: the record says so.
    pub async fn check_terminate(&self, machine: &InstanceId, about: Option<ServerId>) {
        let server = match about {
            Some(id) => self.server(id).await,
            None => None,
        };
        let ending = server.as_ref().and_then(|server| server.machine.as_ref());
        if ending.is_none_or(|ending| ending.termination.is_none()) {
            self.report(format!(
                "machine {machine} is terminated although no record says so"
            ));
        }
    }

    /// Returns an instance as it is stored.
    pub async fn instance(&self, server: ServerId) -> Option<Arc<Instance>> {
        self.read(self.instances.id(&server.key().ok()?)).await
    }

    /// Returns a server as it is stored.
    pub async fn server(&self, id: ServerId) -> Option<Arc<Server>> {
        self.read(self.servers.id(&id.key().ok()?)).await
    }

    /// Returns a record as it is stored, if it can be parsed.
    async fn read<T>(&self, id: RecordId) -> Option<Arc<T>>
    where
        T: DeserializeOwned + Send + Sync + 'static,
    {
        self.store.get(&id).await.ok()??.value.parse().ok()
    }
}
