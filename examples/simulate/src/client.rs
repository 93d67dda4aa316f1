//! Whoever asks for servers, and all those who meddle.

use std::{sync::Arc, time::Duration};

use fleetwright::{InstanceConfig, InstanceId, PublicAddress, Reboot, TagChange, Zone};
use fleetwright_chaos::Dice;
use fleetwright_identity::Principal;
use fleetwright_memory::{Capacity, Operator};
use fleetwright_region::{
    controller::tags,
    server::{Consent, Power, ServerError, ServerId, ServerSpec, Servers},
};
use fleetwright_store::Advice;
use tokio::time::sleep;

use crate::{
    ledger::Ledger,
    names,
    rules::Rules,
    scenario::{Op, Scenario, pick},
    truth::Truth,
};

/// How long a wish that the store did not take waits.
const AGAIN: Duration = Duration::from_secs(1);

/// Goes through a scenario. It outlives the processes, as people do.
#[derive(Debug)]
pub struct Client {
    /// How far it is.
    pub done: usize,
    /// Who it is.
    pub who: Principal,
    /// The cloud, past every handle.
    pub truth: Truth,
    /// The records as they are.
    pub rules: Rules,
    /// Where it is told.
    pub ledger: Arc<Ledger>,
    /// Its own chance.
    pub dice: Dice,
}

impl Client {
    /// Asks for everything that is left of a scenario, through the service of a process.
    pub async fn ask(&mut self, scenario: &Scenario, servers: &Servers) {
        while let Some((gap, op)) = scenario.ops.get(self.done).copied() {
            sleep(gap).await;
            self.ledger.tell(&format!("{op:?}"));
            loop {
                match self.one(op, servers).await {
                    Err(ServerError::Store(error)) if error.advice() != Advice::GiveUp => {
                        sleep(AGAIN).await;
                    }
                    // It cannot be asked for now: nobody insists.
                    Err(error) => break self.ledger.tell(&format!("  {error}")),
                    Ok(()) => break,
                }
            }
            self.done += 1;
        }
    }

    async fn one(&mut self, op: Op, servers: &Servers) -> Result<(), ServerError> {
        let who = &self.who;
        let id = names::server_id;
        match op {
            Op::Make(n) => drop(servers.ensure(who, &names::new_server(n)).await?),
            Op::Stop(n) => drop(servers.set_power(who, id(n), Power::Stopped).await?),
            Op::Start(n) => drop(servers.set_power(who, id(n), Power::Running).await?),
            Op::Reboot(n) => drop(servers.request_reboot(who, id(n), Reboot::Soft).await?),
            Op::Replace(n) => drop(servers.request_replace(who, id(n)).await?),
            Op::Delete(n) => drop(servers.delete(who, id(n)).await?),
            Op::Flavor(n) => {
                let large = |spec: &mut ServerSpec| {
                    spec.flavor = names::flavor(spec.flavor == names::flavor(false));
                };
                self.respec(servers, id(n), large).await?;
            }
            Op::Image(n) => {
                let other = |spec: &mut ServerSpec| {
                    spec.image = names::image(spec.image == names::image(false));
                };
                self.respec(servers, id(n), other).await?;
            }
            Op::Tags(n) => {
                let more = |spec: &mut ServerSpec| {
                    let count = spec.tags.len();
                    // The key is neither empty nor reserved.
                    let _ = spec.tags.insert("mark", count.to_string());
                };
                self.respec(servers, id(n), more).await?;
            }
            Op::Address(n) => {
                let toggled = |spec: &mut ServerSpec| {
                    spec.public_ip = match spec.public_ip {
                        PublicAddress::Assigned => PublicAddress::Absent,
                        PublicAddress::Absent => PublicAddress::Assigned,
                    };
                };
                self.respec(servers, id(n), toggled).await?;
            }
            Op::OutsideStop(n) => {
                let stop = |operator: &Operator, machine: &_| operator.stop(machine);
                self.meddle(id(n), stop).await;
            }
            Op::OutsideStart(n) => {
                let start = |operator: &Operator, machine: &_| operator.start(machine);
                self.meddle(id(n), start).await;
            }
            Op::OutsideTerminate(n) => {
                let terminate = |operator: &Operator, machine: &_| operator.terminate(machine);
                if self.meddle(id(n), terminate).await {
                    self.ledger.notes(|notes| notes.destroyed += 1);
                }
            }
            Op::OutsideRetag(n) => {
                let mut change = TagChange::new();
                change.remove = [tags::REGION, tags::SERVER].map(str::to_owned).into();
                let retag =
                    |operator: &Operator, machine: &_| operator.update_tags(machine, &change);
                self.meddle(id(n), retag).await;
            }
            Op::Decoy(n) => {
                let server = id(n).to_string();
                self.foreign(&[(tags::REGION, "elsewhere"), (tags::SERVER, &server)]);
            }
            Op::Foreign => self.foreign(&[("somebody", "else")]),
            Op::Orphan => self.orphan(),
            Op::Doom(count) => self.ledger.notes(|notes| notes.doomed = count),
            Op::Capacity(machines) => {
                let limit = vec![Capacity::of(machines)];
                self.truth.operator().set_capacity(limit);
            }
            Op::CutOff => self.zone(|zone| self.truth.operator().cut_off(zone)),
            Op::Recover => self.recover(),
        }
        Ok(())
    }

    async fn respec(
        &self,
        servers: &Servers,
        id: ServerId,
        change: impl FnOnce(&mut ServerSpec) + Send,
    ) -> Result<(), ServerError> {
        let view = servers.read(&self.who, id).await?;
        let mut spec = view.server.spec;
        change(&mut spec);
        let asked = servers.set_spec(&self.who, id, &spec, Consent::Destroy);
        asked.await.map(drop)
    }

    /// What others do to a server's machine. A cloud that refuses it to them is no news; whether it did not.
    async fn meddle(
        &self,
        id: ServerId,
        act: impl FnOnce(&Operator, &InstanceId) -> fleetwright::Result<()> + Send,
    ) -> bool {
        match self.machine(id).await {
            Some(machine) => act(&self.truth.operator(), &machine).is_ok(),
            None => false,
        }
    }

    /// Everything can be reached, and there is room.
    pub fn recover(&self) {
        let operator = self.truth.operator();
        operator.set_capacity(Vec::new());
        self.zone(|zone| operator.reconnect(zone));
        self.ledger.notes(|notes| notes.doomed = 0);
    }

    fn zone(&self, change: impl FnOnce(Zone)) {
        // A constant of this program.
        if let Ok(zone) = Zone::new("mem-b") {
            change(zone);
        }
    }

    fn foreign(&self, tags: &[(&str, &str)]) {
        if let Some(id) = self.launch(tags) {
            self.ledger.notes(|notes| notes.foreign.insert(id));
        }
    }

    /// An orphan of a server that never was, or of a machine that a server no longer has.
    fn orphan(&mut self) {
        let server = match pick(&mut self.dice, 2) {
            0 => names::server_id(pick(&mut self.dice, 3)),
            _ => names::server_id(77),
        };
        let (region, server) = (names::region(), server.to_string());
        let tags = [
            (tags::REGION, region.as_str()),
            (tags::SERVER, &server),
            (tags::MACHINE, "999"),
        ];
        if let Some(id) = self.launch(&tags) {
            self.ledger.notes(|notes| notes.orphans.insert(id));
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

    async fn machine(&self, id: ServerId) -> Option<InstanceId> {
        let server = self.rules.server(id).await?;
        server.instance.map(|machine| machine.id)
    }
}
