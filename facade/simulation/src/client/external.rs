//! External actors: what they do to machines and to the cloud.

use fleetwright::{InstanceConfig, InstanceId, TagChange, Zone};
use fleetwright_memory::{Capacity, ExternalActor};
use fleetwright_region::controller::tags;

use super::Client;
use crate::{
    constants,
    scenario::{Op, pick},
};

impl Client {
    pub(super) async fn act_externally(&mut self, op: Op) {
        match op {
            Op::ExternalStop(slot) => {
                let stop = |actor: &ExternalActor, machine: &_| actor.stop(machine);
                self.on_machine(slot, stop).await;
            }
            Op::ExternalStart(slot) => {
                let start = |actor: &ExternalActor, machine: &_| actor.start(machine);
                self.on_machine(slot, start).await;
            }
            Op::ExternalTerminate(slot) => {
                let terminate = |actor: &ExternalActor, machine: &_| actor.terminate(machine);
                if self.on_machine(slot, terminate).await {
                    self.journal.facts(|facts| facts.external_terminations += 1);
                }
            }
            Op::ExternalRetag(slot) => {
                let mut change = TagChange::new();
                change.remove = [tags::REGION, tags::SERVER].map(str::to_owned).into();
                let retag =
                    |actor: &ExternalActor, machine: &_| actor.update_tags(machine, &change);
                self.on_machine(slot, retag).await;
            }
            Op::ForeignWithServerTag(slot) => {
                // The tags of a copy in another region: only the region differs.
                let id = self.fixtures.server(slot);
                let server = self.rules.server(id).await;
                let machine = server.map_or_else(String::new, |server| server.machine_name(1));
                self.launch_foreign(&[
                    (tags::REGION, "elsewhere"),
                    (tags::SERVER, &id.to_string()),
                    (tags::MACHINE, &machine),
                ]);
            }
            Op::Foreign => self.launch_foreign(&[("owner", "another")]),
            Op::Orphan => self.launch_orphan().await,
            Op::FailBoots(count) => self.journal.facts(|facts| facts.failing_boots = count),
            Op::Capacity(machines) => {
                let limit = vec![Capacity::of(machines)];
                self.oracle.external_actor().set_capacity(limit);
                self.journal.facts(|facts| facts.limited = true);
            }
            Op::DisconnectZone => {
                in_second_zone(|zone| self.oracle.external_actor().disconnect(zone));
                self.journal.facts(|facts| facts.disconnected = true);
            }
            Op::Recover => self.recover(),
            Op::TerminateAll => self.terminate_all(),
            Op::DeleteSubnet(network) => {
                let subnet = format!("net-{network}");
                self.journal
                    .facts(|facts| facts.deleted_subnets.insert(subnet));
            }
            Op::WithdrawType(name) => {
                self.journal.facts(|facts| facts.withdrawn.insert(name));
            }
            Op::Create(_)
            | Op::CreateAllAtOnce
            | Op::Update(..)
            | Op::Race(_)
            | Op::Stop(_)
            | Op::Start(_)
            | Op::Reboot(_)
            | Op::Replace(_)
            | Op::Delete(_)
            | Op::Snapshot(_)
            | Op::DeleteImage(_)
            | Op::Pause
            | Op::ReadKeyAndConsole(_)
            | Op::Probe(_)
            | Op::DeleteNetwork(_)
            | Op::OperatorDeletesNetwork(_)
            | Op::RetireFlavor
            | Op::RetireEntry(_)
            | Op::KeepCatalog(..)
            | Op::OfferFlavor
            | Op::DeleteServer(_)
            | Op::SetCredentials(..)
            | Op::SetClock(..)
            | Op::CorrectClock(_)
            | Op::RemoveMapping(..)
            | Op::RenameMapping(..)
            | Op::BreakMapping(_)
            | Op::CorrectMapping(_) => {}
        }
    }

    /// Terminates every machine of the region.
    fn terminate_all(&self) {
        let actor = self.oracle.external_actor();
        let foreign = self.journal.facts(|facts| facts.foreign.clone());
        for (info, server) in self.oracle.live() {
            let of_region = server.is_some() && !foreign.contains(&info.id);
            if of_region && actor.terminate(&info.id).is_ok() {
                self.journal.facts(|facts| facts.external_terminations += 1);
            }
        }
    }

    /// Lets the external actor act on an instance's machine. Returns whether there is one and the
    /// cloud accepted.
    async fn on_machine(
        &self,
        slot: usize,
        act: impl FnOnce(&ExternalActor, &InstanceId) -> fleetwright::Result<()> + Send,
    ) -> bool {
        let server = self.rules.server(self.fixtures.server(slot)).await;
        match server.as_ref().and_then(|server| server.machine.as_ref()) {
            Some(machine) => act(&self.oracle.external_actor(), &machine.id).is_ok(),
            None => false,
        }
    }

    /// Makes every zone reachable, removes every limit, and offers every type and subnet again.
    pub(super) fn recover(&self) {
        let actor = self.oracle.external_actor();
        actor.set_capacity(Vec::new());
        in_second_zone(|zone| actor.reconnect(zone));
        self.journal.facts(|facts| {
            facts.failing_boots = 0;
            facts.limited = false;
            facts.disconnected = false;
            facts.deleted_subnets.clear();
            facts.withdrawn.clear();
        });
    }

    fn launch_foreign(&self, tags: &[(&str, &str)]) {
        if let Some(id) = self.launch(tags) {
            self.journal.facts(|facts| facts.foreign.insert(id));
        }
    }

    /// Launches a machine with the region's tag: an orphan whose launch the record of a server proves to be superseded; or one that belongs
    /// to somebody else, because the store has no such server or no such launch.
    async fn launch_orphan(&mut self) {
        let slot = pick(&mut self.rng, constants::SLOT_COUNT);
        let choice = pick(&mut self.rng, 3);
        let server = self.rules.server(self.fixtures.server(slot)).await;
        let region = constants::region();
        let foreign = |server: &str, machine: &str| {
            self.launch_foreign(&[
                (tags::REGION, region.as_str()),
                (tags::SERVER, server),
                (tags::MACHINE, machine),
            ]);
        };
        match server {
            Some(server) if choice == 0 && server.machine.is_some() => {
                let tags = tags::of(&server, 1);
                let tags: Vec<_> = tags.iter().collect();
                if let Some(id) = self.launch(&tags) {
                    self.journal.facts(|facts| facts.orphans.insert(id));
                }
            }
            Some(server) if choice < 2 => {
                foreign(&server.id.to_string(), &server.machine_name(999));
            }
            Some(_) | None => foreign(&uuid::Uuid::from_u128(77).to_string(), "1-1"),
        }
    }

    fn launch(&self, tags: &[(&str, &str)]) -> Option<InstanceId> {
        let mut builder = InstanceConfig::builder("debian", "small");
        for (key, value) in tags {
            builder = builder.tag(*key, *value);
        }
        let config = builder.build().ok()?;
        let launched = self.oracle.external_actor().launch(&config).ok()?;
        Some(launched.id)
    }
}

fn in_second_zone(change: impl FnOnce(Zone)) {
    // The name is a constant of this program.
    if let Ok(zone) = Zone::new("mem-b") {
        change(zone);
    }
}
