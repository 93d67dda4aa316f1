//! What must hold at every step.

mod consent;
mod instance;
mod money;
mod written;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fleetwright::{InstanceConfig, InstanceId, OptionalVerb};
use fleetwright_compute::instance::Instance;
use fleetwright_region::{
    controller::tags,
    server::{Presence, Server, ServerId},
    uses,
};
use fleetwright_runtime::clock::Clock;
use fleetwright_store::{Kind, MemoryStore, Query, Store, Table};
use serde::de::DeserializeOwned;

pub use written::Written;

use crate::{
    fault::Site,
    journal::{Complete, Journal},
    store::Actor,
    town::Town,
    truth::Truth,
};

/// The shortest time between a call that failed and the next one for the same server: what the controller is told to wait at
/// least.
pub const BACKOFF: Duration = Duration::from_secs(1);

/// Checks the rules that hold all the time.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The store that outlives the processes.
    pub store: MemoryStore,
    /// The servers in it.
    pub servers: Table<Server>,
    /// The instances in it.
    pub instances: Table<Instance>,
    /// The cloud as it is.
    pub truth: Truth,
    /// Where a broken rule is told.
    pub journal: Arc<Journal>,
    /// The calendar.
    pub clock: Arc<dyn Clock>,
    /// What instances stand on.
    pub town: Arc<Town>,
    /// What the cloud can do.
    pub verbs: Arc<BTreeSet<OptionalVerb>>,
}

impl Rules {
    /// Over the store that outlives the processes.
    pub fn new(
        store: &MemoryStore,
        truth: Truth,
        journal: Arc<Journal>,
        clock: Arc<dyn Clock>,
        town: Arc<Town>,
        verbs: BTreeSet<OptionalVerb>,
    ) -> Result<Self, fleetwright_store::Invalid> {
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        Ok(Self {
            store: store.clone(),
            servers: Table::new(Arc::clone(&shared))?,
            instances: Table::new(shared)?,
            truth,
            journal,
            clock,
            town,
            verbs: Arc::new(verbs),
        })
    }

    /// Something was committed.
    pub async fn written(&self, actor: Actor, site: Site, written: &[Written]) {
        if site == Site::Beat && self.journal.notes(|notes| notes.list_failed) {
            self.broken("the pulse goes on, and nothing was looked at");
        }
        for write in written {
            match write.kind() {
                uses::INSTANCE => self.of_instance(actor, write).await,
                uses::SERVER => self.of_server(actor, site, write).await,
                _ => {}
            }
        }
        let paid = [uses::INSTANCE, "allocation", "quota-account"];
        if written.iter().any(|write| paid.contains(&write.kind())) {
            self.money().await;
        }
    }

    /// A rule is broken.
    fn broken(&self, rule: impl Into<String>) {
        self.journal.violated(rule);
    }

    /// All records of a kind.
    pub async fn all<T: DeserializeOwned>(&self, kind: &str) -> Vec<T> {
        let Ok(kind) = Kind::new(kind) else {
            return Vec::new();
        };
        let page = self.store.list(&Query::all(kind)).await;
        let records = page.map(|page| page.records).unwrap_or_default();
        let values = records.into_iter().map(|record| record.value);
        values
            .filter_map(|value| serde_json::from_value(value).ok())
            .collect()
    }

    async fn of_server(&self, actor: Actor, site: Site, write: &Written) {
        match (write.was::<Server>(), write.now::<Server>()) {
            (None, Some(server)) => self.server_made(&server).await,
            (Some(before), Some(server)) => match actor {
                Actor::Instances => self.server_asked(&before, &server).await,
                Actor::Region => self.machine_ends(&before, &server).await,
                Actor::Monitor => self.machine_seen(site, &server),
                Actor::Service
                | Actor::Operator
                | Actor::Catalog
                | Actor::Networks
                | Actor::Images => {}
            },
            (Some(_) | None, None) => {}
        }
    }

    /// The monitor says what it saw: it is true.
    fn machine_seen(&self, site: Site, server: &Server) {
        let Some(seen) = server.seen() else {
            return;
        };
        let missing = matches!(seen.presence, Presence::Missing(_));
        if site == Site::Observe && missing && self.truth.exists(&seen.instance) {
            self.broken(format!(
                "machine {} is declared missing, and exists",
                seen.instance
            ));
        }
    }

    /// A launch is about to be sent: it is written down, no machine is, and none of this life has booted.
    pub async fn launching(&self, config: &InstanceConfig) -> Option<ServerId> {
        let id: ServerId = config.tags.get(tags::SERVER)?.parse().ok()?;
        let Some(server) = self.server(id).await else {
            self.journal
                .violated(format!("server {id} is launched, and has no record"));
            return Some(id);
        };
        let stored = server.launch.as_ref().map(|launch| &launch.token);
        if stored != config.launch_token.as_ref() {
            self.journal.violated(format!(
                "server {id} is launched with a token that is not stored"
            ));
        }
        if server.has_booted() {
            self.journal
                .violated(format!("server {id} had booted, and is launched again"));
        }
        Some(id)
    }

    /// A machine is about to be swept.
    pub fn sweeping(&self, id: &InstanceId) {
        let (orphan, list) = self
            .journal
            .notes(|notes| (notes.orphans.contains(id), notes.list));
        if !orphan {
            self.journal
                .violated(format!("machine {id} is swept, and is nobody's orphan"));
        }
        if list.is_none_or(|(_, complete)| complete == Complete::No) {
            self.journal
                .violated(format!("machine {id} is swept after an incomplete list"));
        }
    }

    /// A call of the controller about a server is made.
    pub async fn called(&self, about: Option<ServerId>) {
        let Some(id) = about else { return };
        let failed = self
            .journal
            .notes(|notes| notes.failed.get(&id.to_string()).copied());
        let Some(failed) = failed else { return };
        let Some(server) = self.server(id).await else {
            return;
        };
        // A failure that could not be written down, or something newly asked for, is no reason to wait.
        let waits = server
            .retry
            .as_ref()
            .is_some_and(|retry| retry.generation == server.generation);
        let passed = self.clock.now().signed_duration_since(failed);
        if waits && passed.to_std().unwrap_or_default() < BACKOFF {
            self.journal.violated(format!(
                "server {id}: a call that failed is repeated at once"
            ));
        }
    }

    /// A call of the controller about a server failed.
    pub fn failed(&self, about: Option<ServerId>) {
        let now = self.clock.now();
        if let Some(id) = about {
            self.journal
                .notes(|notes| notes.failed.insert(id.to_string(), now));
        }
    }

    /// A call had its effect.
    pub fn after(&self, site: Site) {
        if site != Site::Launch {
            return;
        }
        for id in self.town.servers() {
            let orphans = self.journal.notes(|notes| notes.orphans.clone());
            let mut live = self.truth.live_of(id);
            live.retain(|info| !orphans.contains(&info.id));
            if live.len() > 1 {
                let machines: Vec<_> = live.iter().map(|info| info.id.as_str()).collect();
                let machines = machines.join(" and ");
                self.journal
                    .violated(format!("server {id} has two machines: {machines}"));
            }
        }
    }

    /// Whose a machine is, by the records.
    pub async fn owner(&self, machine: &InstanceId) -> Option<ServerId> {
        for id in self.town.servers() {
            let server = self.server(id).await;
            let named = server.and_then(|server| server.instance);
            if named.is_some_and(|named| named.id == *machine) {
                return Some(id);
            }
        }
        None
    }

    /// A machine is about to be destroyed by the region's controller: that it is to go is written down.
    pub async fn destroying(&self, machine: &InstanceId, about: Option<ServerId>) {
        let server = match about {
            Some(id) => self.server(id).await,
            None => None,
        };
        let ending = server.and_then(|server| server.instance);
        if ending.is_none_or(|ending| ending.ending.is_none()) {
            self.broken(format!(
                "machine {machine} is destroyed, and no record says that it is to go"
            ));
        }
    }

    /// An instance as it is.
    pub async fn instance(&self, server: ServerId) -> Option<Instance> {
        let key = server.key().ok()?;
        let read = self.instances.get(&key).await.ok().flatten();
        read.map(|read| read.value)
    }

    /// A record as it is.
    pub async fn server(&self, id: ServerId) -> Option<Server> {
        let read = self.servers.get(&id.key().ok()?).await.ok().flatten();
        read.map(|read| read.value)
    }
}
