//! What must hold of the record of an instance, whoever writes it.

use fleetwright_compute::instance::Instance;
use fleetwright_region::{
    network::{Network, NetworkState},
    server::{Consent, Server, ServerId},
    uses,
};
use fleetwright_store::{RecordId, Store as _};

use super::{Rules, Written};
use crate::store::Actor;

impl Rules {
    pub(super) async fn of_instance(&self, actor: Actor, write: &Written) {
        match (write.was::<Instance>(), write.now::<Instance>()) {
            (None, Some(now)) => self.made(&now).await,
            (Some(before), Some(now)) => {
                self.stays(&before, &now);
                self.asked(&before, &now);
                if actor == Actor::Service {
                    self.agreed(&before, &now);
                }
                if actor == Actor::Instances {
                    self.settles(&before, &now).await;
                }
            }
            (Some(before), None) => self.gone(&before).await,
            (None, None) => {}
        }
    }

    /// An instance stands in a network that takes it, is told of, and is alone with its name.
    async fn made(&self, now: &Instance) {
        let id = now.id;
        if self.network(&now.network.to_string()).await != Some(NetworkState::Ready) {
            self.broken(format!(
                "instance {id} is made in a network that takes nothing new"
            ));
        }
        if now.events.is_empty() {
            self.broken(format!("instance {id} is made, and no event tells of it"));
        }
        let all: Vec<Instance> = self.all(uses::INSTANCE).await;
        let same = |other: &&Instance| (other.network, &other.name) == (now.network, &now.name);
        if all.iter().filter(same).count() != 1 {
            self.broken(format!("two instances are called {}", now.name));
        }
        // It is another one than the one of the same name before.
        self.journal.notes(|notes| {
            notes.agreed.remove(&id);
            notes.agreed_ever.remove(&id);
            notes.replaces.remove(&id);
            notes.ordered.remove(&id);
        });
    }

    /// What never changes does not.
    fn stays(&self, before: &Instance, now: &Instance) {
        let fixed = |one: &Instance| {
            let tenant = (one.organization, one.project);
            let place = (one.region.clone(), one.network, one.name.clone());
            let birth = (one.created_at, one.created_by.clone());
            (one.id, one.server, tenant, place, birth)
        };
        if fixed(before) != fixed(now) {
            self.broken(format!("instance {} became another one", now.id));
        }
        if before.deletion.is_some() && before.deletion != now.deletion {
            self.broken(format!("the deletion of instance {} changes", now.id));
        }
        if now.generation < before.generation
            || now.status.observed_generation > now.generation
            || now.status.observed_generation < before.status.observed_generation
        {
            self.broken(format!("instance {} goes back in time", now.id));
        }
    }

    /// What is newly asked for is another generation, and each generation has its event.
    fn asked(&self, before: &Instance, now: &Instance) {
        let wishes = |one: &Instance| (one.wish(), one.deletion.is_some());
        let raised = now.generation > before.generation;
        if wishes(before) != wishes(now) && !raised {
            self.broken(format!(
                "something else is asked of instance {}, and its generation is the same",
                now.id
            ));
        }
        let grown =
            now.events.len() > before.events.len() || now.events.last() != before.events.last();
        if raised && !grown {
            self.broken(format!(
                "generation {} of instance {} has no event",
                now.generation, now.id
            ));
        }
    }

    /// What the tenant agrees to with this change: as the call says that brought it about.
    fn agreed(&self, before: &Instance, now: &Instance) {
        if now.generation == before.generation {
            return;
        }
        self.journal.notes(|notes| {
            let call = notes.asking.as_ref();
            let Some(call) = call.filter(|call| call.id == now.id && call.spec == now.spec) else {
                return;
            };
            let spec = untagged(now);
            match call.consent {
                Consent::Destroy => {
                    notes.agreed.insert(now.id, spec.clone());
                    notes.agreed_ever.entry(now.id).or_default().push(spec);
                }
                Consent::KeepEverything => drop(notes.agreed.remove(&now.id)),
            }
        });
    }

    /// A generation that counts as true is.
    async fn settles(&self, before: &Instance, now: &Instance) {
        if now.status.observed_generation == before.status.observed_generation {
            return;
        }
        let done = |server: &Server| {
            server.observed_generation == server.generation && now.wish().holds_for(server)
        };
        let meddled = self.journal.notes(|notes| notes.ordered.contains(&now.id));
        let server = self.server(now.server).await;
        if !meddled && !server.as_ref().is_some_and(done) {
            self.broken(format!(
                "instance {} counts as what is asked for, and its server is not",
                now.id
            ));
        }
    }

    /// What is gone was asked to go, and its server went first, with its key.
    async fn gone(&self, before: &Instance) {
        let id = before.id;
        if before.deletion.is_none() {
            self.broken(format!("instance {id} is gone, and nobody asked for that"));
        }
        if self.server(before.server).await.is_some() {
            self.broken(format!("instance {id} is gone, and its server is not"));
        }
        if self.has("server-key", &before.server.to_string()).await {
            self.broken(format!("instance {id} is gone, and its key is not"));
        }
    }

    /// A server is made for an instance that is there, is not going, and has none that is missed.
    pub(super) async fn server_made(&self, server: &Server) {
        let id: ServerId = server.id;
        let Some(instance) = self.instance(id).await else {
            self.broken(format!("server {id} is made, and has no instance"));
            return;
        };
        if instance.deletion.is_some() {
            self.broken(format!("server {id} is made for an instance that is going"));
        }
        let missed = instance.status.server;
        if missed.is_some_and(|link| instance.intent.replaces <= link.replaces) {
            self.broken(format!(
                "server {id} is made again, and nobody asked for another one"
            ));
        }
    }

    /// How far a network is, if it is there.
    pub async fn network(&self, id: &str) -> Option<NetworkState> {
        let id = RecordId::new(uses::NETWORK, id).ok()?;
        let record = self.store.get(&id).await.ok()??;
        let network: Network = serde_json::from_value(record.value).ok()?;
        Some(network.state)
    }

    /// Whether there is such a record.
    pub async fn has(&self, kind: &str, key: &str) -> bool {
        let Ok(id) = RecordId::new(kind, key) else {
            return false;
        };
        self.store.get(&id).await.is_ok_and(|found| found.is_some())
    }
}

/// What a server of an instance is asked to be, but for its tags, of which nothing is lost.
fn untagged(instance: &Instance) -> fleetwright_region::server::ServerSpec {
    let none = fleetwright::Tags::new();
    instance.spec.server(instance.network, &none)
}
