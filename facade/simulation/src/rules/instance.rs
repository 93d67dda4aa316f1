//! Rules for the records of instances.

use std::sync::Arc;

use fleetwright_compute::instance::Instance;
use fleetwright_compute::schema::INSTANCE_KIND;
use fleetwright_region::schema::NETWORK_KIND;
use fleetwright_region::{
    network::{Network, NetworkState},
    server::{Consent, Server, ServerId},
};
use fleetwright_store::{RecordId, Store as _};

use super::{RecordChange, Rules};
use crate::store::Actor;

impl Rules {
    pub(super) async fn check_instance_write(&self, actor: Actor, change: &RecordChange) {
        match (
            change.before_as::<Instance>(),
            change.after_as::<Instance>(),
        ) {
            (None, Some(now)) => self.check_created(&now).await,
            (Some(before), Some(now)) => {
                self.check_immutable(&before, &now);
                self.check_generation(&before, &now);
                if actor == Actor::Service {
                    self.remember_consent(&before, &now);
                }
                if actor == Actor::InstanceController {
                    self.check_observed_generation(&before, &now).await;
                }
            }
            (Some(before), None) => self.check_removed(&before).await,
            (None, None) => {}
        }
    }

    /// Checks a new instance: its network is ready, it has an event, and its name is unique.
    async fn check_created(&self, now: &Instance) {
        let id = now.id;
        if self.network(&now.network.to_string()).await != Some(NetworkState::Ready) {
            self.report(format!(
                "instance {id} is created in a network that is not ready"
            ));
        }
        if now.events.is_empty() {
            self.report(format!("instance {id} is created without an event"));
        }
        let all: Vec<Arc<Instance>> = self.all(INSTANCE_KIND).await;
        let same =
            |other: &&Arc<Instance>| (other.network, &other.name) == (now.network, &now.name);
        if all.iter().filter(same).count() != 1 {
            self.report(format!("two instances have the name {}", now.name));
        }
        // Facts about an earlier instance of the same name do not apply.
        self.journal.facts(|facts| {
            facts.last_consent.remove(&id);
            facts.consents.remove(&id);
            facts.requested_replacements.remove(&id);
            facts.requested_deletions.remove(&id);
            facts.deleted_by_operator.remove(&id);
        });
    }

    /// Checks that immutable fields stay as they are and that generations do not fall.
    fn check_immutable(&self, before: &Instance, now: &Instance) {
        let fixed = |one: &Instance| {
            let tenant = (one.organization, one.project);
            let place = (one.region.clone(), one.network, one.name.clone());
            let creation = (one.created_at, one.created_by.clone());
            (one.id, one.server, tenant, place, creation)
        };
        if fixed(before) != fixed(now) {
            self.report(format!("an immutable field of instance {} changed", now.id));
        }
        if before.deletion.is_some() && before.deletion != now.deletion {
            self.report(format!("the deletion mark of instance {} changed", now.id));
        }
        if now.deletion.is_some() && before.deletion.is_none() && !self.tenant_deleted(now) {
            self.report(format!(
                "instance {} is being deleted although its tenant did not request that",
                now.id
            ));
        }
        if now.generation < before.generation
            || now.status.observed_generation > now.generation
            || now.status.observed_generation < before.status.observed_generation
        {
            self.report(format!(
                "a generation of instance {} fell, or was observed before it existed",
                now.id
            ));
        }
    }

    /// Checks that a changed desired state has a new generation, and each new generation an event.
    fn check_generation(&self, before: &Instance, now: &Instance) {
        let desired_states = |one: &Instance| (one.desired_state(), one.deletion.is_some());
        let raised = now.generation > before.generation;
        if desired_states(before) != desired_states(now) && !raised {
            self.report(format!(
                "the desired state of instance {} changed without a new generation",
                now.id
            ));
        }
        let grown =
            now.events.len() > before.events.len() || now.events.last() != before.events.last();
        if raised && !grown {
            self.report(format!(
                "generation {} of instance {} has no event",
                now.generation, now.id
            ));
        }
    }

    /// Remembers the consent that the tenant gave with the call that made the change.
    fn remember_consent(&self, before: &Instance, now: &Instance) {
        if now.generation == before.generation {
            return;
        }
        self.journal.facts(|facts| {
            let call = facts.pending_update.as_ref();
            let Some(call) = call.filter(|call| call.id == now.id && call.spec == now.spec) else {
                return;
            };
            let spec = without_tags(now);
            match call.consent {
                Consent::Destroy => {
                    facts.last_consent.insert(now.id, spec.clone());
                    facts.consents.entry(now.id).or_default().push(spec);
                }
                Consent::KeepEverything => drop(facts.last_consent.remove(&now.id)),
            }
        });
    }

    /// Checks that an observed generation is really applied.
    async fn check_observed_generation(&self, before: &Instance, now: &Instance) {
        if now.status.observed_generation == before.status.observed_generation {
            return;
        }
        let done = |server: &Server| {
            server.observed_generation == server.generation && now.desired_state().holds_for(server)
        };
        let deleted_by_operator = self
            .journal
            .facts(|facts| facts.deleted_by_operator.contains(&now.id));
        let server = self.server(now.server).await;
        if !deleted_by_operator && !server.as_deref().is_some_and(done) {
            self.report(format!(
                "the generation of instance {} is marked observed although its server has not applied it",
                now.id
            ));
        }
    }

    /// Checks a removed instance: its deletion was requested, and its server and key were removed
    /// before.
    async fn check_removed(&self, before: &Instance) {
        let id = before.id;
        if before.deletion.is_none() {
            self.report(format!(
                "instance {id} is removed although nobody deleted it"
            ));
        }
        if self.server(before.server).await.is_some() {
            self.report(format!("instance {id} is removed before its server"));
        }
        if self.has("server-key", &before.server.to_string()).await {
            self.report(format!("instance {id} is removed before its server's key"));
        }
    }

    /// Checks a new server: its instance exists, is not being deleted, and if it
    /// had a server before, its tenant has requested a replacement. `before` is the instance before the
    /// commit, if the commit writes it too.
    pub(super) async fn check_server_created(&self, server: &Server, before: Option<&Instance>) {
        let id: ServerId = server.id;
        let Some(instance) = self.instance(id).await else {
            self.report(format!(
                "server {id} is created although it has no instance"
            ));
            return;
        };
        if instance.deletion.is_some() {
            self.report(format!(
                "server {id} is created for an instance that is being deleted"
            ));
        }
        let missed = before.unwrap_or(&instance).status.server;
        if missed.is_some_and(|link| instance.intent.replaces <= link.replaces) {
            self.report(format!(
                "server {id} is created again although nobody requested a replacement"
            ));
        }
    }

    /// Returns the state of a network, if it exists.
    pub async fn network(&self, id: &str) -> Option<NetworkState> {
        let id = RecordId::new(NETWORK_KIND, id).ok()?;
        let network: Arc<Network> = self.read(id).await?;
        Some(network.state)
    }

    /// Returns whether a record exists.
    pub async fn has(&self, kind: &str, key: &str) -> bool {
        let Ok(id) = RecordId::new(kind, key) else {
            return false;
        };
        self.store.get(&id).await.is_ok_and(|found| found.is_some())
    }
}

/// Returns the server spec of an instance without tags, whose change destroys nothing.
fn without_tags(instance: &Instance) -> fleetwright_region::server::ServerSpec {
    let none = fleetwright::Tags::new();
    instance.spec.server(instance.network, &none)
}
