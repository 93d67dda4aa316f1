//! Every call that was accepted has come true, or the instance says why not.

use fleetwright::OptionalVerb;
use fleetwright_compute::{
    instance::{Condition, ConditionKind, Instance, InstanceId, InstanceSpec, Provisioning},
    service::InstanceView,
};
use fleetwright_region::server::{Consent, Health, Phase, Power};

use super::{Check, why};

impl Check<'_> {
    /// Whether every instance is what its tenant was promised.
    pub(super) async fn instances(&self) -> Result<(), String> {
        for (id, (spec, power)) in &self.promised.live {
            let found = self.instance(id.server()).await;
            let view = found.ok_or_else(|| format!("instance {id} was promised, and is gone"))?;
            self.one(&view, spec, *power)
                .await
                .map_err(|problem| format!("instance {id} {problem}; {}", told(&view)))?;
        }
        let all: Vec<Instance> = self.rules.all("instance").await;
        for instance in all {
            if instance.deletion.is_some() {
                let view = self.instance(instance.server).await;
                let view = view.as_ref().map(told).unwrap_or_default();
                return Err(format!("instance {} is not gone; {view}", instance.id));
            }
            if !self.promised.live.contains_key(&instance.id) {
                return Err(format!("instance {} was promised to nobody", instance.id));
            }
        }
        Ok(())
    }

    async fn one(
        &self,
        view: &InstanceView,
        spec: &InstanceSpec,
        power: Power,
    ) -> Result<(), String> {
        let instance = &view.instance;
        if instance.spec != *spec || instance.intent.power != power {
            return Err("is not asked for as its tenant asked for it".to_owned());
        }
        let mut stuck = instance.status.conditions.iter();
        if let Some(condition) = stuck.find(|held| held.kind.needs_a_word()) {
            return self.says_why(instance, condition).await;
        }
        let phase = match power {
            Power::Running => Phase::Running,
            Power::Stopped | Power::Deleted => Phase::Stopped,
        };
        let server = self.rules.server(instance.server).await;
        let server = server.ok_or("has no server")?;
        let seen = server.seen();
        let status = &instance.status;
        let rules = [
            (
                status.observed_generation == instance.generation,
                "is not done",
            ),
            (
                instance.wish().holds_for(&server),
                "did not tell its server",
            ),
            (status.phase == phase, "is in another phase"),
            (
                view.provisioning == Provisioning::Provisioned,
                "is not provisioned",
            ),
            (view.health == Health::Healthy, "is not healthy"),
            (
                view.waiting.is_none() || next_launch(instance),
                "waits for something",
            ),
            (
                status.private_ip == seen.and_then(|seen| seen.private_ip)
                    && status.public_ip == seen.and_then(|seen| seen.public_ip),
                "shows other addresses",
            ),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, problem)) => Err(format!("{problem}: {}", why(&server))),
            None => Ok(()),
        }
    }

    /// Whether what needs a word has a cause.
    async fn says_why(&self, instance: &Instance, condition: &Condition) -> Result<(), String> {
        let (destroyed, ordered) = self
            .rules
            .journal
            .notes(|notes| (notes.destroyed, notes.ordered.contains(&instance.id)));
        let server = self.rules.server(instance.server).await;
        let caused = match condition.kind {
            ConditionKind::Lost => destroyed > 0,
            ConditionKind::AttemptsUsed => destroyed >= 3,
            ConditionKind::ServerMissing => ordered && server.is_none(),
            ConditionKind::ConsentNeeded => {
                instance.consent == Consent::KeepEverything && server.is_some()
            }
            ConditionKind::Unsupported => {
                let offered = self.rules.verbs.contains(&OptionalVerb::RebootInstance);
                !offered && instance.intent.reboots > 0
            }
            // The catalog is whole again, and everything else was refused when it was asked for.
            ConditionKind::Refused
            | ConditionKind::ServerTaken
            | ConditionKind::NoCapacity
            | ConditionKind::AccountLimit
            | ConditionKind::CloudTrouble
            | ConditionKind::NextLaunch
            | ConditionKind::ServerGoing
            | ConditionKind::NetworkGoing => false,
        };
        if caused {
            return Ok(());
        }
        Err(format!(
            "is given up without a cause: {}",
            condition.message
        ))
    }
}

/// What takes effect with the next launch is waited for by nobody.
fn next_launch(instance: &Instance) -> bool {
    let mut conditions = instance.status.conditions.iter();
    conditions.all(|held| held.kind == ConditionKind::NextLaunch)
}

/// An instance in one line.
fn told(view: &InstanceView) -> String {
    let instance = &view.instance;
    let last = instance.events.iter().rev().take(4).rev();
    let events: Vec<_> = last.map(|event| event.message.as_str()).collect();
    let id: InstanceId = instance.id;
    format!(
        "instance {id}: generation {}/{}/{}, {:?} {:?}; {}",
        instance.status.observed_generation,
        instance.status.passed_generation,
        instance.generation,
        instance.status.phase,
        view.provisioning,
        events.join("; ")
    )
}
