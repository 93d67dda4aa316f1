//! The truth about the cloud, past every handle and every lag.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use fleetwright::{InstanceId, InstanceInfo, LaunchToken};
use fleetwright_memory::{MemoryCloud, Operator};
use fleetwright_region::{controller::tags, server::ServerId};

use crate::names;

/// Looks at the account from outside.
#[derive(Clone, Debug)]
pub struct Truth {
    cloud: MemoryCloud,
    tokens: Arc<Mutex<BTreeMap<LaunchToken, ServerId>>>,
}

impl Truth {
    /// About this account.
    pub fn new(cloud: MemoryCloud) -> Self {
        Self {
            cloud,
            tokens: Arc::default(),
        }
    }

    /// A launch with this token is sent for a server.
    pub fn launched(&self, token: &LaunchToken, server: ServerId) {
        self.tokens().insert(token.clone(), server);
    }

    fn tokens(&self) -> MutexGuard<'_, BTreeMap<LaunchToken, ServerId>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is such a machine.
    pub fn exists(&self, id: &InstanceId) -> bool {
        let found = self.cloud.oracle().instance(id);
        found.is_some_and(|truth| !truth.info.state.is_final())
    }

    /// A machine as it is.
    pub fn machine(&self, id: &InstanceId) -> Option<InstanceInfo> {
        self.cloud.oracle().instance(id).map(|truth| truth.info)
    }

    /// The machines that are neither destroyed nor being so, each with the server that it was launched for.
    pub fn live(&self) -> Vec<(InstanceInfo, Option<ServerId>)> {
        let all = self.cloud.oracle().instances().into_iter();
        let live = all.filter(|truth| !truth.info.state.is_ending());
        live.map(|truth| {
            let token = truth.token.as_ref();
            let by_token = token.and_then(|token| self.tokens().get(token).copied());
            let server = by_token.or_else(|| tagged(&truth.info));
            (truth.info, server)
        })
        .collect()
    }

    /// The live machines of a server.
    pub fn live_of(&self, id: ServerId) -> Vec<InstanceInfo> {
        let live = self.live().into_iter();
        live.filter(|(_, server)| *server == Some(id))
            .map(|(info, _)| info)
            .collect()
    }

    /// The server that a token was made for.
    pub fn server_of(&self, token: &LaunchToken) -> Option<ServerId> {
        self.tokens().get(token).copied()
    }

    /// The names of the images that were made here.
    pub fn images(&self) -> Vec<String> {
        let all = self.cloud.oracle().images().into_iter();
        all.map(|image| image.name).collect()
    }

    /// What others can do.
    pub fn operator(&self) -> Operator {
        self.cloud.operator()
    }
}

/// The server that a machine of the region is tagged with.
fn tagged(info: &InstanceInfo) -> Option<ServerId> {
    let ours = info.tags.get(tags::REGION) == Some(names::region().as_str());
    let server = info.tags.get(tags::SERVER)?.parse().ok()?;
    ours.then_some(server)
}
