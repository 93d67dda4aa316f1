//! Checks that every accepted request came true, or that the instance has a condition that says why
//! not.

use std::sync::Arc;

use fleetwright::OptionalVerb;
use fleetwright_compute::{
    instance::{Condition, ConditionKind, Instance, InstanceId, InstanceSpec, Provisioning},
    service::InstanceView,
};
use fleetwright_region::server::{Consent, Health, Phase, Power};

use super::{Check, describe_server};
use crate::constants::MAX_USER_DATA;

impl Check<'_> {
    /// Checks every instance against what its tenant may expect.
    pub(super) async fn check_instances(&self) -> Result<(), String> {
        for (id, (spec, power)) in &self.expected.live {
            let found = self.instance_view(id.server()).await;
            let view =
                found.ok_or_else(|| format!("instance {id} was accepted and does not exist"))?;
            self.check_instance(&view, spec, *power)
                .await
                .map_err(|problem| {
                    format!("instance {id} {problem}; {}", describe_instance(&view))
                })?;
        }
        let all: Vec<Arc<Instance>> = self.rules.all("instance").await;
        for instance in all {
            if instance.deletion.is_some() {
                let view = self.instance_view(instance.server).await;
                let view = view.as_ref().map(describe_instance).unwrap_or_default();
                return Err(format!("instance {} still exists; {view}", instance.id));
            }
            if !self.expected.live.contains_key(&instance.id) {
                return Err(format!(
                    "instance {} exists although nobody expects it",
                    instance.id
                ));
            }
        }
        Ok(())
    }

    async fn check_instance(
        &self,
        view: &InstanceView,
        spec: &InstanceSpec,
        power: Power,
    ) -> Result<(), String> {
        let instance = &view.instance;
        if instance.spec != *spec || instance.intent.power != power {
            return Err("does not have the requested desired state".to_owned());
        }
        let mut stuck = instance.status.conditions.iter();
        if let Some(condition) = stuck.find(|held| held.kind.needs_decision()) {
            return self.check_condition(instance, condition).await;
        }
        let phase = match power {
            Power::Running => Phase::Running,
            Power::Stopped | Power::Deleted => Phase::Stopped,
        };
        let server = self.rules.server(instance.server).await;
        let server = server.ok_or("has no server")?;
        let observed = server.current_observation();
        let status = &instance.status;
        let rules = [
            (
                status.observed_generation == instance.generation,
                "has not applied its generation",
            ),
            (
                instance.desired_state().holds_for(&server),
                "has not applied its desired state to its server",
            ),
            (status.phase == phase, "is in another phase"),
            (
                view.provisioning == Provisioning::Provisioned,
                "is not provisioned",
            ),
            (view.health == Health::Healthy, "is not healthy"),
            (
                view.waiting.is_none() || only_next_launch(instance),
                "still waits",
            ),
            (
                status.private_ip == observed.and_then(|observed| observed.private_ip)
                    && status.public_ip == observed.and_then(|observed| observed.public_ip),
                "shows other addresses",
            ),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, problem)) => Err(format!("{problem}: {}", describe_server(&server))),
            None => Ok(()),
        }
    }

    /// Checks that a condition which needs a decision of the tenant has a cause.
    async fn check_condition(
        &self,
        instance: &Instance,
        condition: &Condition,
    ) -> Result<(), String> {
        let (terminations, deleted_by_operator) = self.rules.journal.facts(|facts| {
            (
                facts.failed_boots(),
                facts.deleted_by_operator.contains(&instance.id),
            )
        });
        let server = self.rules.server(instance.server).await;
        let has_cause = match condition.kind {
            ConditionKind::Lost => terminations > 0,
            ConditionKind::AttemptsExhausted => terminations >= 3,
            ConditionKind::MachineRemoved => deleted_by_operator && server.is_none(),
            ConditionKind::ConsentNeeded => {
                instance.consent == Consent::KeepEverything && server.is_some()
            }
            ConditionKind::Unsupported => {
                let offered = self.rules.verbs.contains(&OptionalVerb::RebootInstance);
                !offered && instance.intent.reboots > 0
            }
            // A change that the cloud refused is tried again only if the tenant stops the instance, or if it fits.
            ConditionKind::Refused => self.is_refused(instance),
            // The catalog is complete again, and invalid requests were refused at once.
            ConditionKind::IdConflict
            | ConditionKind::NoCapacity
            | ConditionKind::AccountLimit
            | ConditionKind::CloudError
            | ConditionKind::NextLaunch
            | ConditionKind::MachineDeleting
            | ConditionKind::NetworkDeleting => false,
        };
        if has_cause {
            return Ok(());
        }
        Err(format!(
            "has given up without a cause: {}",
            condition.message
        ))
    }
}

impl Check<'_> {
    /// Returns whether the provider refuses the spec of an instance, or failed a change to it.
    fn is_refused(&self, instance: &Instance) -> bool {
        let data = instance.spec.user_data.as_ref();
        let too_long = data.is_some_and(|data| data.as_bytes().len() > MAX_USER_DATA);
        let failed = self
            .rules
            .journal
            .facts(|facts| facts.failed_changes.contains(&instance.server));
        too_long || failed
    }
}

/// Returns whether the instance only has changes that wait for the next launch.
fn only_next_launch(instance: &Instance) -> bool {
    let mut conditions = instance.status.conditions.iter();
    conditions.all(|held| held.kind == ConditionKind::NextLaunch)
}

/// Returns an instance in one line.
fn describe_instance(view: &InstanceView) -> String {
    let instance = &view.instance;
    let last = instance.events.iter().rev().take(4).rev();
    let events: Vec<_> = last.map(|event| event.message.as_str()).collect();
    let id: InstanceId = instance.id;
    format!(
        "instance {id}: generation {}/{}/{}, {:?} {:?}; {}",
        instance.status.observed_generation,
        instance.status.applied_generation,
        instance.generation,
        instance.status.phase,
        view.provisioning,
        events.join("; ")
    )
}
