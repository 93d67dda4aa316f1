//! Nothing of a tenant's is destroyed without its word.

use fleetwright_compute::instance::{Instance, InstanceId};
use fleetwright_region::server::{CloudInstance, Field, Power, Server, ServerSpec, Why};

use super::Rules;

impl Rules {
    /// The controller of instances asks something of a server: what that destroys was agreed to, by the last word there is.
    pub(super) async fn server_asked(&self, before: &Server, now: &Server) {
        let Some(instance) = self.instance(now.id).await else {
            self.broken(format!(
                "server {} is asked for something, and has no instance",
                now.id
            ));
            return;
        };
        if now.intent.power == Power::Deleted && before.intent.power != Power::Deleted {
            if instance.deletion.is_none() {
                self.broken(format!(
                    "server {} is to go, and its instance is not",
                    now.id
                ));
            }
            return;
        }
        if now.intent.replaces > before.intent.replaces {
            self.replaces(&instance, now);
        }
        let Some(machine) = before.instance.as_ref().filter(|_| before.spec != now.spec) else {
            return;
        };
        let agreed = self
            .journal
            .notes(|notes| notes.agreed.get(&instance.id).cloned());
        if self.destroys(machine, &now.spec) && agreed != Some(untagged(&now.spec)) {
            self.broken(format!(
                "server {} is asked for what destroys its machine, and its tenant did not agree",
                now.id
            ));
        }
    }

    fn replaces(&self, instance: &Instance, now: &Server) {
        let asked = self
            .journal
            .notes(|notes| notes.replaces.get(&instance.id).copied());
        if asked.unwrap_or_default() < now.intent.replaces {
            self.broken(format!(
                "server {} is replaced, and nobody asked for it",
                now.id
            ));
        }
    }

    /// The region's controller writes down that a machine is to go, or to get another image: both lose a disk.
    pub(super) async fn machine_ends(&self, before: &Server, now: &Server) {
        let Some(machine) = &now.instance else {
            return;
        };
        let was = before.instance.as_ref().filter(|was| was.id == machine.id);
        let booted = now
            .booted
            .is_some_and(|booted| booted.incarnation == machine.incarnation);
        let ends = machine
            .ending
            .filter(|_| was.is_none_or(|was| was.ending.is_none()));
        let doubts = |one: &CloudInstance| one.doubt.fields.contains(&Field::Image);
        let reimaged = doubts(machine) && !was.is_some_and(doubts);
        let asked = match (ends.map(|ending| ending.why), reimaged) {
            (None, false) => return,
            (Some(Why::Delete), _) => self.may_go(now).await,
            (Some(Why::Missing), _) => !self.truth.exists(&machine.id),
            (Some(Why::Failed), _) => !booted,
            (Some(Why::Replace), _) | (None, true) => !booted || self.was_agreed(now),
        };
        if !asked {
            self.broken(format!(
                "machine {} of server {} is to be destroyed ({:?}), and nobody agreed to that",
                machine.id, now.id, ends
            ));
        }
    }

    async fn may_go(&self, server: &Server) -> bool {
        let instance = self.instance(server.id).await;
        let marked = instance.is_none_or(|instance| instance.deletion.is_some());
        let id = InstanceId::from_uuid(server.id.as_uuid());
        marked || self.journal.notes(|notes| notes.ordered.contains(&id))
    }

    /// Whether a tenant ever agreed to what a server is asked for, or asked for another machine.
    fn was_agreed(&self, server: &Server) -> bool {
        let launched = server.launch.as_ref().map(|launch| launch.replaces);
        if launched.is_some_and(|replaces| server.intent.replaces > replaces) {
            return true;
        }
        let id = InstanceId::from_uuid(server.id.as_uuid());
        let wanted = untagged(&server.spec);
        let ever = self
            .journal
            .notes(|notes| notes.agreed_ever.get(&id).cloned());
        ever.is_some_and(|ever| ever.contains(&wanted))
    }

    fn destroys(&self, machine: &CloudInstance, wanted: &ServerSpec) -> bool {
        let plan = machine.plan_to(wanted, &self.verbs);
        plan.destructive().next().is_some()
    }
}

fn untagged(spec: &ServerSpec) -> ServerSpec {
    let mut spec = spec.clone();
    spec.tags = fleetwright::Tags::new();
    spec
}
