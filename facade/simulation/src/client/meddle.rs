//! What others do to machines and to the cloud.

use fleetwright::{InstanceConfig, InstanceId, TagChange, Zone};
use fleetwright_memory::{Capacity, Operator};
use fleetwright_region::controller::tags;

use super::Client;
use crate::{
    names,
    scenario::{Op, pick},
};

impl Client {
    pub(super) async fn meddle(&mut self, op: Op) {
        match op {
            Op::OutsideStop(slot) => {
                let stop = |operator: &Operator, machine: &_| operator.stop(machine);
                self.touch(slot, stop).await;
            }
            Op::OutsideStart(slot) => {
                let start = |operator: &Operator, machine: &_| operator.start(machine);
                self.touch(slot, start).await;
            }
            Op::OutsideTerminate(slot) => {
                let terminate = |operator: &Operator, machine: &_| operator.terminate(machine);
                if self.touch(slot, terminate).await {
                    self.journal.notes(|notes| notes.destroyed += 1);
                }
            }
            Op::OutsideRetag(slot) => {
                let mut change = TagChange::new();
                change.remove = [tags::REGION, tags::SERVER].map(str::to_owned).into();
                let retag =
                    |operator: &Operator, machine: &_| operator.update_tags(machine, &change);
                self.touch(slot, retag).await;
            }
            Op::Decoy(slot) => {
                let server = self.town.server(slot).to_string();
                self.foreign(&[(tags::REGION, "elsewhere"), (tags::SERVER, &server)]);
            }
            Op::Foreign => self.foreign(&[("somebody", "else")]),
            Op::Orphan => self.orphan(),
            Op::Doom(count) => self.journal.notes(|notes| notes.doomed = count),
            Op::Capacity(machines) => {
                let limit = vec![Capacity::of(machines)];
                self.truth.operator().set_capacity(limit);
            }
            Op::CutOff => zone(|zone| self.truth.operator().cut_off(zone)),
            Op::Recover => self.recover(),
            Op::Create(_)
            | Op::Crowd
            | Op::Update(..)
            | Op::Race(_)
            | Op::Stop(_)
            | Op::Start(_)
            | Op::Reboot(_)
            | Op::Replace(_)
            | Op::Delete(_)
            | Op::Snapshot(_)
            | Op::Look(_)
            | Op::Probe(_)
            | Op::Condemn(_)
            | Op::Retire
            | Op::Offer
            | Op::Order(_) => {}
        }
    }

    /// What others do to an instance's machine. A cloud that refuses it to them is no news; whether it did not.
    async fn touch(
        &self,
        slot: usize,
        act: impl FnOnce(&Operator, &InstanceId) -> fleetwright::Result<()> + Send,
    ) -> bool {
        let server = self.rules.server(self.town.server(slot)).await;
        match server.and_then(|server| server.instance) {
            Some(machine) => act(&self.truth.operator(), &machine.id).is_ok(),
            None => false,
        }
    }

    /// Everything can be reached, and there is room.
    pub(super) fn recover(&self) {
        let operator = self.truth.operator();
        operator.set_capacity(Vec::new());
        zone(|zone| operator.reconnect(zone));
        self.journal.notes(|notes| notes.doomed = 0);
    }

    fn foreign(&self, tags: &[(&str, &str)]) {
        if let Some(id) = self.launch(tags) {
            self.journal.notes(|notes| notes.foreign.insert(id));
        }
    }

    /// An orphan of a server that never was, or of a machine that a server no longer has.
    fn orphan(&mut self) {
        let server = match pick(&mut self.dice, 2) {
            0 => self
                .town
                .server(pick(&mut self.dice, names::SLOTS))
                .to_string(),
            _ => uuid::Uuid::from_u128(77).to_string(),
        };
        let region = names::region();
        let tags = [
            (tags::REGION, region.as_str()),
            (tags::SERVER, &server),
            (tags::MACHINE, "999"),
        ];
        if let Some(id) = self.launch(&tags) {
            self.journal.notes(|notes| notes.orphans.insert(id));
        }
    }

    fn launch(&self, tags: &[(&str, &str)]) -> Option<InstanceId> {
        let mut builder = InstanceConfig::builder("linux", "small");
        for (key, value) in tags {
            builder = builder.tag(*key, *value);
        }
        let config = builder.build().ok()?;
        let launched = self.truth.operator().launch(&config).ok()?;
        Some(launched.id)
    }
}

fn zone(change: impl FnOnce(Zone)) {
    // A constant of this program.
    if let Ok(zone) = Zone::new("mem-b") {
        change(zone);
    }
}
