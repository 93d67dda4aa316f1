//! Asking for something else of an instance: what it takes is planned against what was last applied to its machine, and what that
//! destroys needs the tenant's consent.

use std::collections::BTreeSet;

use fleetwright_identity::{Amounts, Principal, Resource, Verb};
use fleetwright_region::server::{Consent, Field, Plan, Power};
use fleetwright_store::{Check, Revision, Transaction, Versioned};

use super::{
    ATTEMPTS, FieldScope, InstanceField, InstanceView, Instances, UpdateInstance, access::inside,
    change::GenerationStep, create::conflict, dependencies::Placement, validate,
};
use crate::{
    ComputeError,
    instance::{EventKind, Instance, InstanceId, Modification},
    loss::loss,
};

/// An update that was looked into, and not written yet.
struct Draft {
    found: Versioned<Instance>,
    changed: BTreeSet<InstanceField>,
    checks: Vec<Check>,
    plan: Plan,
}

impl Instances {
    /// Asks for something else, and answers what that takes. Of what the instance stands on, what changes is asked about and what
    /// stays is not: a flavor or an image that was retired meanwhile is no obstacle to a change of something else.
    ///
    /// What the plan destroys needs [consent](UpdateInstance::consent), which holds for this generation alone; without it nothing is
    /// written. Where nothing changes nothing is written, unless it is the consent that was missing. Since the instance is
    /// answered, it takes the permission to read it too.
    pub async fn update(
        &self,
        who: &Principal,
        id: InstanceId,
        wanted: &UpdateInstance,
    ) -> Result<(InstanceView, Plan), ComputeError> {
        let work = async {
            for _ in 0..ATTEMPTS {
                let draft = self.draft(who, id, wanted).await?;
                let plan = draft.plan.clone();
                match self.carry_out(who, draft, wanted).await {
                    Ok(written) => return Ok((self.view_after_write(written).await, plan)),
                    Err(error) if conflict(&error).is_some() => {}
                    Err(error) => return Err(error),
                }
            }
            Err(ComputeError::Busy(id))
        };
        self.metered("update", Some(id), work).await
    }

    /// What an [`update`](Self::update) would take, after all its checks but that for consent. Nothing is written.
    pub async fn plan_update(
        &self,
        who: &Principal,
        id: InstanceId,
        wanted: &UpdateInstance,
    ) -> Result<Plan, ComputeError> {
        let work = async {
            let draft = self.draft(who, id, wanted).await?;
            if let Some(amounts) = self.reprice(&draft.found.value, wanted, &draft.changed)? {
                let paid = self.paid(&draft.found.value)?;
                let dry = Transaction::new();
                self.ledger.recharge(dry, &paid, &amounts).await?;
            }
            Ok(draft.plan)
        };
        self.metered("plan-update", Some(id), work).await
    }

    async fn draft(
        &self,
        who: &Principal,
        id: InstanceId,
        wanted: &UpdateInstance,
    ) -> Result<Draft, ComputeError> {
        validate::check(wanted.description.as_deref(), &wanted.tags, &wanted.spec)?;
        let found = self.permitted(who, Verb::Update, id).await?;
        let instance = &found.value;
        if who
            .authorize(Verb::Read, Resource::Instances, &instance.scope())
            .is_err()
        {
            return Err(ComputeError::NotFound(id));
        }
        if instance.deletion.is_some() {
            return Err(ComputeError::Deleting(id));
        }
        let changed = InstanceField::changed(instance, wanted);
        if changed.contains(&InstanceField::Name) {
            let name = instance.name.clone();
            return Err(ComputeError::NameImmutable { id, name });
        }
        if let Some(expected) = wanted.if_revision.filter(|one| *one != found.revision) {
            let found = found.revision;
            return Err(ComputeError::Changed {
                id,
                expected,
                found,
            });
        }
        let place = Placement {
            region: &instance.region,
            tenant: (instance.organization, instance.project),
            network: instance.network,
        };
        let fields = of_server(&changed);
        let checks = self.stands(who, &place, &wanted.spec, &fields).await?;
        let plan = self.plan(instance, wanted).await?;
        Ok(Draft {
            found,
            changed,
            checks,
            plan,
        })
    }

    /// Against what was last applied. An instance without a server, or whose server is going, has nothing that it would lose.
    async fn plan(
        &self,
        instance: &Instance,
        wanted: &UpdateInstance,
    ) -> Result<Plan, ComputeError> {
        let spec = wanted.spec.server(instance.network, &wanted.tags);
        match self.server_of(instance).await? {
            Some(view) if view.server.intent.power != Power::Deleted => {
                let plan = self.servers.plan(&view.server, &spec);
                plan.map_err(|error| inside(instance.id, error))
            }
            Some(_) | None => Ok(Plan::default()),
        }
    }

    /// What it costs from now on, if what is charged for changes.
    fn reprice(
        &self,
        before: &Instance,
        wanted: &UpdateInstance,
        changed: &BTreeSet<InstanceField>,
    ) -> Result<Option<Amounts>, ComputeError> {
        let charged = [InstanceField::Flavor, InstanceField::PublicIp];
        if !charged.iter().any(|field| changed.contains(field)) {
            return Ok(None);
        }
        let (now, then) = (self.price(&before.spec)?, self.price(&wanted.spec)?);
        Ok((now != then).then_some(then))
    }

    async fn carry_out(
        &self,
        who: &Principal,
        draft: Draft,
        wanted: &UpdateInstance,
    ) -> Result<Versioned<Instance>, ComputeError> {
        let found = &draft.found;
        let loss = loss(&draft.plan);
        let given = wanted.consent;
        let of_server = !of_server(&draft.changed).is_empty();
        let agrees = given == Consent::Destroy && loss.is_some();
        let agrees_late = agrees && found.value.consent == Consent::KeepEverything;
        if draft.changed.is_empty() && !agrees_late {
            return Ok(draft.found);
        }
        if let (true, Consent::KeepEverything, Some(lost)) = (of_server, given, &loss) {
            return Err(ComputeError::NeedsConsent {
                id: found.value.id,
                plan: draft.plan,
                lost: lost.clone(),
            });
        }
        let step = if of_server || agrees_late {
            GenerationStep::Increment
        } else {
            GenerationStep::Keep
        };
        let agreed = loss.filter(|_| agrees);
        let instance = self.edited(who, &draft, wanted, step, (given, agreed));
        let amounts = self.reprice(&found.value, wanted, &draft.changed)?;
        let revision = self.commit_changed(found, &instance, &draft.checks, amounts.as_ref());
        Ok(Versioned {
            revision: revision.await?,
            key: draft.found.key,
            value: instance,
        })
    }

    /// The record as it is asked for, with its events.
    fn edited(
        &self,
        who: &Principal,
        draft: &Draft,
        wanted: &UpdateInstance,
        step: GenerationStep,
        (given, agreed): (Consent, Option<String>),
    ) -> Instance {
        let before = &draft.found.value;
        let mut instance = before.clone();
        instance.description.clone_from(&wanted.description);
        instance.tags = wanted.tags.clone();
        instance.spec = wanted.spec.clone();
        instance.modified = Some(Modification {
            at: self.clock.now(),
            by: who.actor().clone(),
        });
        if !draft.changed.is_empty() {
            let fields: Vec<_> = draft.changed.iter().map(|field| field.label()).collect();
            let message = format!("changed: {}", fields.join(", "));
            self.add_event(&mut instance, who, EventKind::Updated, message);
        }
        step.increment(&mut instance);
        match step {
            GenerationStep::Increment => {
                instance.consent = given;
                if let Some(lost) = agreed {
                    self.add_event(&mut instance, who, EventKind::LossAccepted, lost);
                }
            }
            // What is in the record alone leaves the consent to what is asked of the server as it was.
            GenerationStep::Keep => {}
        }
        instance
    }

    async fn commit_changed(
        &self,
        found: &Versioned<Instance>,
        instance: &Instance,
        checks: &[Check],
        amounts: Option<&Amounts>,
    ) -> Result<Revision, ComputeError> {
        let mut standing = Transaction::new();
        standing.checks = checks.to_vec();
        let replaced = self.table.replace(standing, found, instance)?;
        let Some(amounts) = amounts else {
            return Ok(self.store.commit(&replaced).await?);
        };
        let paid = self.paid(instance)?;
        let build = || async {
            let recharged = self.ledger.recharge(replaced.clone(), &paid, amounts);
            Ok::<_, ComputeError>(recharged.await?.transaction)
        };
        self.ledger.commit(instance.organization, build).await
    }
}

/// The fields of the server among them.
fn of_server(changed: &BTreeSet<InstanceField>) -> BTreeSet<Field> {
    let fields = changed.iter().filter_map(|field| match field.scope() {
        FieldScope::Server(field) => Some(field),
        FieldScope::Immutable | FieldScope::Record => None,
    });
    fields.collect()
}
