//! The oracle: the cloud's real state, without read lag and faults.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use fleetwright::{InstanceId, InstanceInfo, LaunchToken};
use fleetwright_memory::{ExternalActor, MemoryCloud};
use fleetwright_region::{controller::tags, server::ServerId};

use crate::{cloud::Accounts, constants};

/// Reads and changes the account without going through a provisioner.
#[derive(Clone, Debug)]
pub struct Oracle {
    cloud: MemoryCloud,
    empty: MemoryCloud,
    other: MemoryCloud,
    tokens: Arc<Mutex<BTreeMap<LaunchToken, ServerId>>>,
}

impl Oracle {
    /// Creates the oracle of the region's account and of two others: one without and one with machines of others.
    pub fn new(cloud: MemoryCloud, empty: MemoryCloud, other: MemoryCloud) -> Self {
        Self {
            cloud,
            empty,
            other,
            tokens: Arc::default(),
        }
    }

    /// Opens a handle on each account.
    pub fn accounts(&self) -> Accounts {
        Accounts::open(&self.cloud, &self.empty, &self.other)
    }

    /// Returns the machines in another account than the region's that have not ended, each with its launch token.
    pub fn elsewhere(&self) -> Vec<(InstanceInfo, Option<LaunchToken>)> {
        let others = [&self.empty, &self.other].into_iter();
        let all = others.flat_map(|cloud| cloud.oracle().instances());
        let live = all.filter(|machine| !machine.info.state.is_ending());
        live.map(|machine| (machine.info, machine.token)).collect()
    }

    /// Returns the external actor of the other account with machines.
    pub fn external_actor_elsewhere(&self) -> ExternalActor {
        self.other.external_actor()
    }

    /// Remembers for which server a token is sent.
    pub fn launched(&self, token: &LaunchToken, server: ServerId) {
        self.tokens().insert(token.clone(), server);
    }

    fn tokens(&self) -> MutexGuard<'_, BTreeMap<LaunchToken, ServerId>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the machine exists in any account and is not terminated.
    pub fn exists(&self, id: &InstanceId) -> bool {
        self.machine(id)
            .is_some_and(|machine| !machine.state.is_final())
    }

    /// Returns whether the machine exists in the region's account and is not terminated.
    pub fn is_in_region(&self, id: &InstanceId) -> bool {
        let found = self.cloud.oracle().instance(id);
        found.is_some_and(|machine| !machine.info.state.is_final())
    }

    /// Returns the machine as it really is, in whichever account.
    pub fn machine(&self, id: &InstanceId) -> Option<InstanceInfo> {
        let mut accounts = [&self.cloud, &self.empty, &self.other].into_iter();
        let found = accounts.find_map(|cloud| cloud.oracle().instance(id));
        found.map(|machine| machine.info)
    }

    /// Returns the machines of the region's account that are neither terminating nor terminated, each with the server it
    /// was launched for.
    pub fn live(&self) -> Vec<(InstanceInfo, Option<ServerId>)> {
        let all = self.cloud.oracle().instances().into_iter();
        let live = all.filter(|machine| !machine.info.state.is_ending());
        live.map(|machine| {
            let token = machine.token.as_ref();
            let by_token = token.and_then(|token| self.tokens().get(token).copied());
            let server = by_token.or_else(|| tagged(&machine.info));
            (machine.info, server)
        })
        .collect()
    }

    /// Returns the live machines of a server.
    pub fn live_of(&self, id: ServerId) -> Vec<InstanceInfo> {
        let live = self.live().into_iter();
        live.filter(|(_, server)| *server == Some(id))
            .map(|(info, _)| info)
            .collect()
    }

    /// Returns the server that a token belongs to.
    pub fn server_of(&self, token: &LaunchToken) -> Option<ServerId> {
        self.tokens().get(token).copied()
    }

    /// Returns the names of all images of the account.
    pub fn images(&self) -> Vec<String> {
        let all = self.cloud.oracle().images().into_iter();
        all.map(|image| image.name).collect()
    }

    /// Returns the external actor of the account.
    pub fn external_actor(&self) -> ExternalActor {
        self.cloud.external_actor()
    }
}

/// Returns the server in the tags of one of the region's machines.
fn tagged(info: &InstanceInfo) -> Option<ServerId> {
    let ours = info.tags.get(tags::REGION) == Some(constants::region().as_str());
    let server = info.tags.get(tags::SERVER)?.parse().ok()?;
    ours.then_some(server)
}
