//! What must hold at every step.

use std::{sync::Arc, time::Duration};

use fleetwright::{InstanceConfig, InstanceId};
use fleetwright_region::{
    clock::Clock,
    controller::tags,
    server::{Server, ServerId},
};
use fleetwright_store::{MemoryStore, Store, Table};

use crate::{
    fault::Site,
    ledger::{Complete, Ledger},
    names,
    truth::Truth,
};

/// The shortest time between a call that failed and the next one for the same server: what the controller is told to wait at
/// least.
pub const BACKOFF: Duration = Duration::from_secs(1);

/// Checks the rules that hold all the time.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The records as they are.
    pub servers: Table<Server>,
    /// The cloud as it is.
    pub truth: Truth,
    /// Where a broken rule is told.
    pub ledger: Arc<Ledger>,
    /// The calendar.
    pub clock: Arc<dyn Clock>,
}

impl Rules {
    /// Over the store that outlives the processes.
    pub fn new(
        store: &MemoryStore,
        truth: Truth,
        ledger: Arc<Ledger>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, fleetwright_store::Invalid> {
        let store: Arc<dyn Store> = Arc::new(store.clone());
        Ok(Self {
            servers: Table::new(store)?,
            truth,
            ledger,
            clock,
        })
    }

    /// A launch is about to be sent: it is written down, no machine is, and none of this life has booted.
    pub async fn launching(&self, config: &InstanceConfig) -> Option<ServerId> {
        let id: ServerId = config.tags.get(tags::SERVER)?.parse().ok()?;
        let Some(server) = self.server(id).await else {
            self.ledger
                .violated(format!("server {id} is launched, and has no record"));
            return Some(id);
        };
        let stored = server.launch.as_ref().map(|launch| &launch.token);
        if stored != config.launch_token.as_ref() {
            self.ledger.violated(format!(
                "server {id} is launched with a token that is not stored"
            ));
        }
        if server.has_booted() {
            self.ledger
                .violated(format!("server {id} had booted, and is launched again"));
        }
        Some(id)
    }

    /// A machine is about to be swept.
    pub fn sweeping(&self, id: &InstanceId) {
        let (orphan, list) = self
            .ledger
            .notes(|notes| (notes.orphans.contains(id), notes.list));
        if !orphan {
            self.ledger
                .violated(format!("machine {id} is swept, and is nobody's orphan"));
        }
        if list.is_none_or(|(_, complete)| complete == Complete::No) {
            self.ledger
                .violated(format!("machine {id} is swept after an incomplete list"));
        }
    }

    /// A call of the controller about a server is made.
    pub async fn called(&self, about: Option<ServerId>) {
        let Some(id) = about else { return };
        let failed = self
            .ledger
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
            self.ledger.violated(format!(
                "server {id}: a call that failed is repeated at once"
            ));
        }
    }

    /// A call of the controller about a server failed.
    pub fn failed(&self, about: Option<ServerId>) {
        let now = self.clock.now();
        if let Some(id) = about {
            self.ledger
                .notes(|notes| notes.failed.insert(id.to_string(), now));
        }
    }

    /// A call had its effect.
    pub fn after(&self, site: Site) {
        if site != Site::Launch {
            return;
        }
        for id in names::server_ids() {
            let orphans = self.ledger.notes(|notes| notes.orphans.clone());
            let mut live = self.truth.live_of(id);
            live.retain(|info| !orphans.contains(&info.id));
            if live.len() > 1 {
                let machines: Vec<_> = live.iter().map(|info| info.id.as_str()).collect();
                let machines = machines.join(" and ");
                self.ledger
                    .violated(format!("server {id} has two machines: {machines}"));
            }
        }
    }

    /// Whose a machine is, by the records.
    pub async fn owner(&self, machine: &InstanceId) -> Option<ServerId> {
        for id in names::server_ids() {
            let server = self.server(id).await;
            let named = server.and_then(|server| server.instance);
            if named.is_some_and(|named| named.id == *machine) {
                return Some(id);
            }
        }
        None
    }

    /// A record as it is.
    pub async fn server(&self, id: ServerId) -> Option<Server> {
        let read = self.servers.get(&id.key().ok()?).await.ok().flatten();
        read.map(|read| read.value)
    }
}
