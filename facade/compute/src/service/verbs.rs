//! What is asked to be done with an instance: wishes in its record, which its controller passes on.
//!
//! Each is judged by its own permission: to read an instance is not to stop it. A wish is taken before there is a server, too.

use fleetwright::Reboot;
use fleetwright_identity::{Principal, Verb};
use fleetwright_region::server::Power;

use super::{
    Accepted, Instances, RETRY_AFTER,
    change::{Raises, Wished},
};
use crate::{
    ComputeError,
    instance::{EventKind, Instance, InstanceId},
};

impl Instances {
    /// Asks for it to run. It stays asked for, also when its machine is replaced. If it is so already, nothing is written.
    pub async fn start(&self, who: &Principal, id: InstanceId) -> Result<Accepted, ComputeError> {
        let work = self.power(who, Verb::Start, id, Power::Running);
        self.metered("start", Some(id), work).await
    }

    /// Asks for it to be stopped. It stays asked for, also when its machine is replaced. If it is so already, nothing is written.
    pub async fn stop(&self, who: &Principal, id: InstanceId) -> Result<Accepted, ComputeError> {
        let work = self.power(who, Verb::Stop, id, Power::Stopped);
        self.metered("stop", Some(id), work).await
    }

    /// Asks for a reboot of one that is to run. Requests that are not carried out yet are carried out as one.
    pub async fn reboot(
        &self,
        who: &Principal,
        id: InstanceId,
        how: Reboot,
    ) -> Result<Accepted, ComputeError> {
        let wish = |instance: &mut Instance| {
            if instance.intent.power != Power::Running {
                return Err(ComputeError::NotReady {
                    id,
                    found: "it is asked to be stopped".to_owned(),
                    wanted: "asked to run: start it first".to_owned(),
                    retry_after: RETRY_AFTER,
                });
            }
            instance.intent.reboots = instance.intent.reboots.saturating_add(1);
            instance.intent.reboot_how = how;
            let words = match how {
                Reboot::Soft => "is to be rebooted, by its own system",
                Reboot::Hard => "is to be rebooted, by its plug",
            };
            Ok(asked(EventKind::Asked, words))
        };
        let work = self.change(who, Verb::Reboot, id, wish);
        self.metered("reboot", Some(id), work).await
    }

    /// Asks for another machine in place of the one there is. **Its disk and addresses are lost**: to ask for it is to agree to
    /// that. Who may change what an instance is may do this.
    pub async fn replace(&self, who: &Principal, id: InstanceId) -> Result<Accepted, ComputeError> {
        let wish = |instance: &mut Instance| {
            instance.intent.replaces = instance.intent.replaces.saturating_add(1);
            let words = "is to get another machine: its root disk and its addresses are lost";
            Ok(asked(EventKind::DestructionAgreed, words))
        };
        let work = self.change(who, Verb::Update, id, wish);
        self.metered("replace", Some(id), work).await
    }

    async fn power(
        &self,
        who: &Principal,
        verb: Verb,
        id: InstanceId,
        power: Power,
    ) -> Result<Accepted, ComputeError> {
        let wish = |instance: &mut Instance| {
            if instance.intent.power == power {
                return Ok(Wished::Already);
            }
            instance.intent.power = power;
            let words = match power {
                Power::Running => "is to run",
                Power::Stopped => "is to be stopped",
                Power::Deleted => "is to be deleted",
            };
            Ok(asked(EventKind::Asked, words))
        };
        self.change(who, verb, id, wish).await
    }
}

fn asked(kind: EventKind, words: &'static str) -> Wished {
    Wished::Told(kind, words, Raises::Generation)
}
