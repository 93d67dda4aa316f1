//! Rule: no data is destroyed without the tenant's consent.

use fleetwright_compute::instance::{Instance, InstanceId};
use fleetwright_region::server::{Field, Machine, Power, Server, ServerSpec, TerminationReason};

use super::Rules;

impl Rules {
    /// Checks a server whose desired state the instance controller changed. A deletion and a
    /// replacement must have been requested, and the tenant's last update must have consented to a
    /// destructive change of the spec.
    pub(super) async fn check_server_change(&self, before: &Server, now: &Server) {
        let Some(instance) = self.instance(now.id).await else {
            self.report(format!(
                "the desired state of server {} changed although it has no instance",
                now.id
            ));
            return;
        };
        if now.intent.power == Power::Deleted && before.intent.power != Power::Deleted {
            if instance.deletion.is_none() {
                self.report(format!(
                    "server {} is being deleted although its instance is not",
                    now.id
                ));
            }
            return;
        }
        if now.intent.replaces > before.intent.replaces {
            self.check_replacement(&instance, now);
        }
        let Some(machine) = before.machine.as_ref().filter(|_| before.spec != now.spec) else {
            return;
        };
        let consented = self
            .journal
            .facts(|facts| facts.last_consent.get(&instance.id).cloned());
        if self.is_destructive(machine, &now.spec) && consented != Some(without_tags(&now.spec)) {
            self.report(format!(
                "server {} got a destructive change without the tenant's consent",
                now.id
            ));
        }
    }

    /// Checks a server that is to be replaced once more: somebody requested it.
    fn check_replacement(&self, instance: &Instance, now: &Server) {
        let requested = self
            .journal
            .facts(|facts| facts.requested_replacements.get(&instance.id).copied());
        if requested.unwrap_or_default() < now.intent.replaces {
            self.report(format!(
                "server {} is replaced although nobody requested it",
                now.id
            ));
        }
    }

    /// Checks a server that the server controller changed: if its machine is going to be terminated
    /// or reimaged, which loses the root disk, there must be a reason that allows it.
    pub(super) async fn check_termination(&self, before: &Server, now: &Server) {
        let Some(machine) = &now.machine else {
            return;
        };
        let machine_before = before.machine.as_ref().filter(|old| old.id == machine.id);
        let booted = now
            .booted
            .is_some_and(|booted| booted.incarnation == machine.incarnation);
        let termination = machine
            .termination
            .filter(|_| machine_before.is_none_or(|old| old.termination.is_none()));
        let image_unconfirmed =
            |machine: &Machine| machine.unconfirmed.fields.contains(&Field::Image);
        let reimaged = image_unconfirmed(machine) && !machine_before.is_some_and(image_unconfirmed);
        let allowed = match (termination.map(|marked| marked.reason), reimaged) {
            (None, false) => return,
            (Some(TerminationReason::Delete), _) => self.deletion_requested(now).await,
            (Some(TerminationReason::Missing), _) => {
                let clock_was_set = self.journal.facts(|facts| facts.clocks_were_set);
                !self.oracle.is_in_region(&machine.id) || (!booted && clock_was_set)
            }
            (Some(TerminationReason::Failed), _) => !booted,
            (Some(TerminationReason::Replace), _) | (None, true) => {
                !booted || self.has_consent(now)
            }
        };
        if !allowed {
            self.report(format!(
                "machine {} of server {} is terminated or reimaged ({:?}) without consent",
                machine.id, now.id, termination
            ));
        }
    }

    /// Returns whether the tenant requested the deletion of the instance, or an operator that of the server. An instance without a record
    /// proves nothing: its record must outlive its machine.
    pub(super) async fn deletion_requested(&self, server: &Server) -> bool {
        let instance = self.instance(server.id).await;
        let by_tenant = instance.is_some_and(|instance| self.tenant_deleted(&instance));
        let id = InstanceId::from_uuid(server.id.as_uuid());
        by_tenant
            || self
                .journal
                .facts(|facts| facts.deleted_by_operator.contains(&id))
    }

    /// Returns whether the tenant called for the deletion of the instance, or of its network with everything in it.
    pub(super) fn tenant_deleted(&self, instance: &Instance) -> bool {
        self.journal.facts(|facts| {
            facts.requested_deletions.contains(&instance.id)
                || facts.deleted_networks.contains(&instance.network)
        })
    }

    /// Returns whether the tenant ever consented to the server's spec, or requested a replacement since the
    /// last launch.
    pub(super) fn has_consent(&self, server: &Server) -> bool {
        let replaces_at_launch = server.launch.as_ref().map(|launch| launch.replaces);
        if replaces_at_launch.is_some_and(|replaces| server.intent.replaces > replaces) {
            return true;
        }
        let id = InstanceId::from_uuid(server.id.as_uuid());
        let spec = without_tags(&server.spec);
        let consents = self.journal.facts(|facts| facts.consents.get(&id).cloned());
        consents.is_some_and(|consents| consents.contains(&spec))
    }

    /// Returns whether a change of the machine to `spec` destroys data.
    fn is_destructive(&self, machine: &Machine, spec: &ServerSpec) -> bool {
        let plan = machine.plan_to(spec, &self.verbs);
        plan.destructive().next().is_some()
    }
}

/// Returns the spec without its tags, which a consent does not cover: changing them destroys nothing.
fn without_tags(spec: &ServerSpec) -> ServerSpec {
    let mut spec = spec.clone();
    spec.tags = fleetwright::Tags::new();
    spec
}
