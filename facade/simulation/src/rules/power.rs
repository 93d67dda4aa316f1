//! Rule: a start, a stop and a reboot take effect within a bound, whatever else is pending.

use std::{collections::BTreeMap, time::Duration};

use fleetwright::{CloudInstanceState, OptionalVerb};
use fleetwright_region::server::{Power, ServerId};

use super::Rules;
use crate::{constants::SLOT_COUNT, environment::catalog_name, journal::Facts};

/// How often the rule is checked.
pub const INTERVAL: Duration = Duration::from_secs(15);
/// How long a request may take while nothing prevents it: a few failed calls with their delays, a resize that stops the machine first,
/// and the read lag after each step.
const BOUND: Duration = Duration::from_secs(240);

/// How long the request of each instance has waited while nothing prevented it.
#[derive(Debug, Default)]
pub struct PowerWatch {
    waited: BTreeMap<ServerId, Duration>,
}

impl PowerWatch {
    /// Checks all instances, once per [`INTERVAL`]. `prevented` says that a request cannot take effect now: no process runs, or one has
    /// wrong credentials or a wrong clock.
    pub async fn check(&mut self, rules: &Rules, prevented: bool) {
        for slot in 0..SLOT_COUNT {
            let id = rules.fixtures.server(slot);
            let waits = if prevented {
                None
            } else {
                rules.waiting_power(id).await
            };
            let Some(request) = waits else {
                self.waited.remove(&id);
                continue;
            };
            let waited = self.waited.entry(id).or_default();
            *waited += INTERVAL;
            if *waited > BOUND {
                rules.report(format!(
                    "the {request} of instance {id} has no effect after {}s, and nothing prevents it",
                    waited.as_secs()
                ));
            }
        }
    }
}

impl Rules {
    /// Returns the power request of an instance that has not taken effect although it could.
    async fn waiting_power(&self, id: ServerId) -> Option<&'static str> {
        let instance = self.instance(id).await?;
        let server = self.server(id).await?;
        let machine = server.machine.as_ref()?;
        let booted = server
            .booted
            .is_some_and(|booted| booted.incarnation == machine.incarnation);
        let kept = machine.termination.is_none() && server.intent.power != Power::Deleted;
        if instance.deletion.is_some() || !booted || !kept {
            return None;
        }
        // A replacement that is requested launches another machine.
        if instance.intent.replaces > server.launch.as_ref().map_or(0, |launch| launch.replaces) {
            return None;
        }
        let info = self.oracle.machine(&machine.id)?;
        let in_second_zone = self.fixtures.networks.get(1) == Some(&instance.network);
        let unreachable = in_second_zone && self.journal.facts(|facts| facts.disconnected);
        if info.state.is_ending() || unreachable {
            return None;
        }
        let runs = info.state == CloudInstanceState::Running;
        match instance.intent.power {
            Power::Stopped => (info.state != CloudInstanceState::Stopped).then_some("stop"),
            Power::Running if !runs => {
                let native = info.instance_type.as_ref().map(AsRef::<str>::as_ref);
                let name = catalog_name(native.unwrap_or_default());
                let refused = |facts: &mut Facts| facts.limited || facts.withdrawn.contains(name);
                (!self.journal.facts(refused)).then_some("start")
            }
            Power::Running => {
                let offered = self.verbs.contains(&OptionalVerb::RebootInstance);
                let waits = machine.reboots < instance.intent.reboots;
                (offered && waits).then_some("reboot")
            }
            Power::Deleted => None,
        }
    }
}
