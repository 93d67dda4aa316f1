//! The servers behind instances, and server 1, which has no instance.

use fleetwright_compute::instance::{Instance, InstanceId};
use fleetwright_identity::Principal;
use fleetwright_region::server::{
    Consent, NewServer, Phase, Plan, ServerError, ServerSpec, ServerView,
};
use serde_json::{Value, json};

use super::TestFacade;
use crate::{advance_until, new_server, operator, server_id, server_spec};

impl TestFacade {
    /// Creates the server of an instance, as its controller does.
    pub async fn make_server(&self, instance: &Instance) {
        let (owner, desired) = (instance.id.owner(), instance.desired_state());
        let tenant = (instance.organization, instance.project);
        let region = instance.region.clone();
        let mut new = NewServer::new(instance.server, owner, region, tenant, desired.spec);
        new.intent = desired.intent;
        self.servers.ensure(&operator(), &new).await.unwrap();
    }

    /// Creates the server of an instance, and records a machine for it to which everything was applied.
    pub async fn make_machine(&self, instance: &Instance) {
        self.make_server(instance).await;
        let change = |server: &mut Value| {
            server["machine"] = json!({
                "id": "i-1", "incarnation": 1, "recorded_at": server["created_at"], "applied": server["spec"],
            });
        };
        self.patch("server", &instance.server.to_string(), change)
            .await;
    }

    /// Requests server number `number` of `tenant(1, 1)`.
    pub async fn ensure(
        &self,
        principal: &Principal,
        number: u128,
        spec: &ServerSpec,
    ) -> Result<ServerView, ServerError> {
        let new = new_server(number, spec.clone());
        self.servers.ensure(principal, &new).await
    }

    /// Requests another spec of server 1, with consent.
    pub async fn set_spec(
        &self,
        principal: &Principal,
        spec: &ServerSpec,
    ) -> Result<Plan, ServerError> {
        let requested = self
            .servers
            .set_spec(principal, server_id(1), spec, Consent::Destroy);
        requested.await.map(|(_, plan)| plan)
    }

    /// Requests server 1 in a new network `blue`.
    pub async fn ensure_server(&self) {
        let network = self.network("blue").await;
        let requested = self.ensure(&operator(), 1, &server_spec(network)).await;
        requested.unwrap();
    }

    /// Requests server 1 and waits until it is running.
    pub async fn running_server(&self) -> ServerView {
        self.ensure_server().await;
        self.during_region(self.until_server(Phase::Running)).await
    }

    /// Reads server 1.
    pub async fn read_server(&self) -> ServerView {
        let read = self.servers.read(&operator(), server_id(1)).await;
        read.unwrap()
    }

    /// Waits until server 1 has applied everything and is in a phase; for `Replacing`, only until it is in that phase.
    pub async fn until_server(&self, phase: Phase) -> ServerView {
        let read = async || {
            let view = self.read_server().await;
            let settled = view.server.observed_generation == view.server.generation;
            let reached = view.phase == phase && (settled || phase == Phase::Replacing);
            reached.then_some(view)
        };
        advance_until("a phase of server 1", read).await
    }

    /// Replaces the machine of server 1, and waits until the next one runs. The loops of the region must run meanwhile.
    pub async fn replace_server(&self) {
        let operator = operator();
        let requested = self.servers.request_replace(&operator, server_id(1));
        requested.await.unwrap();
        self.until_server(Phase::Running).await;
    }

    /// Waits until the server of an instance is in a phase. The loops of the region must run meanwhile.
    pub async fn until_server_phase(&self, id: InstanceId, phase: Phase) {
        let read = async || {
            let view = self.server(id).await.unwrap();
            (view.phase == phase).then_some(())
        };
        advance_until("a phase of a server", read).await;
    }

    /// Waits until the record of server 1 is gone.
    pub async fn until_server_gone(&self) {
        let read = async || self.servers.read(&operator(), server_id(1)).await.err();
        advance_until("the end of server 1", read).await;
    }

    /// The user data that the last launched machine booted with.
    pub fn user_data(&self) -> String {
        let machine = self.cloud.oracle().instances().pop().unwrap();
        let data = machine.user_data.unwrap();
        String::from_utf8(data.as_bytes().to_vec()).unwrap()
    }
}
