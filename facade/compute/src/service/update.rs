//! Updating an instance: the change is planned against what was last applied to its machine, and a destructive plan needs the
//! tenant's consent.

use std::collections::BTreeSet;

use fleetwright_identity::{Amounts, Principal, Resource, Verb};
use fleetwright_region::server::{Consent, Field, Plan, Power, Server};
use fleetwright_store::{Check, Revision, Transaction, Versioned};

use super::{
    ATTEMPTS, FieldScope, InstanceField, InstanceView, Instances, UpdateInstance,
    access::server_error, allocation::quota_error, change::GenerationStep, create::conflict,
    dependencies::Placement, validate,
};
use crate::{
    ComputeError,
    instance::{EventKind, Instance, InstanceId, Modification},
    loss::loss,
};

/// An update that passed its checks and is not written yet.
struct Draft {
    found: Versioned<Instance>,
    changed: BTreeSet<InstanceField>,
    checks: Vec<Check>,
    plan: Plan,
}

impl Instances {
    /// Replaces description, tags and spec of an instance, and returns it with the plan of the change. It needs the permissions to
    /// update and to read.
    ///
    /// Only changed fields are checked: a flavor or an image that was retired meanwhile does not prevent a change of another field.
    /// A plan that destroys data needs [consent](UpdateInstance::consent), which holds for this generation alone. Nothing is written
    /// if nothing changes, unless the call adds a consent that is needed.
    ///
    /// ```no_run
    /// use fleetwright_compute::prelude::*;
    ///
    /// # async fn example(instances: &Instances, ada: &Principal, id: InstanceId) -> Result<(), Box<dyn std::error::Error>> {
    /// let view = instances.read(ada, id).await?;
    /// let mut wanted = UpdateInstance::of(&view.instance);
    /// wanted.spec.image = "rocky".parse()?;
    /// wanted.if_revision = Some(view.revision);
    /// match instances.update(ada, id, &wanted).await {
    ///     Err(ComputeError::NeedsConsent { lost, .. }) => {
    ///         println!("{lost}");
    ///         wanted.consent = Consent::Destroy;
    ///         instances.update(ada, id, &wanted).await?;
    ///     }
    ///     other => drop(other?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// - [`NotFound`](ComputeError::NotFound), [`Refused`](ComputeError::Refused): not visible, or not permitted.
    /// - [`Deleting`](ComputeError::Deleting): it is being deleted.
    /// - [`NameImmutable`](ComputeError::NameImmutable): the update has another name.
    /// - [`Changed`](ComputeError::Changed): it is not at the revision that the caller expects.
    /// - [`Sealed`](ComputeError::Sealed): its user data cannot be opened, and the update has no other.
    /// - [`NeedsConsent`](ComputeError::NeedsConsent): the change destroys data; the error has the plan and the loss.
    /// - [`Ledger`](ComputeError::Ledger), [`OrganizationQuota`](ComputeError::OrganizationQuota): the new spec would exceed a quota. What
    ///   the present machine uses beyond the new spec is released once the machine has the new spec.
    /// - For changed fields, the errors of [`create`](Self::create).
    pub async fn update(
        &self,
        principal: &Principal,
        id: InstanceId,
        wanted: &UpdateInstance,
    ) -> Result<(InstanceView, Plan), ComputeError> {
        let work = async {
            for _ in 0..ATTEMPTS {
                let draft = self.draft(principal, id, wanted).await?;
                let plan = draft.plan.clone();
                match self.commit_update(principal, draft, wanted).await {
                    Ok(written) => return Ok((self.view_after_write(written).await, plan)),
                    Err(error) if conflict(&error).is_some() => {}
                    Err(error) => return Err(quota_error(principal, error)),
                }
            }
            Err(ComputeError::Busy(id))
        };
        self.measure("update", Some(id), work).await
    }

    /// Returns the plan of an [`update`](Self::update): the change method of each changed field. Nothing is written.
    ///
    /// # Errors
    ///
    /// Those of [`update`](Self::update), quota included, except [`NeedsConsent`](ComputeError::NeedsConsent).
    pub async fn plan_update(
        &self,
        principal: &Principal,
        id: InstanceId,
        wanted: &UpdateInstance,
    ) -> Result<Plan, ComputeError> {
        let work = async {
            let draft = self.draft(principal, id, wanted).await?;
            let cost = self.changed_cost(&draft.found.value, wanted, &draft.changed);
            if let Some(amounts) = cost.await? {
                let charged = self.charged_record(&draft.found.value)?;
                let dry = Transaction::new();
                let amounts = self.charge_until_applied(&charged, &amounts).await?;
                let recharged = self.ledger.recharge(dry, &charged, &amounts).await;
                recharged.map_err(|error| quota_error(principal, error.into()))?;
            }
            Ok(draft.plan)
        };
        self.measure("plan-update", Some(id), work).await
    }

    async fn draft(
        &self,
        principal: &Principal,
        id: InstanceId,
        wanted: &UpdateInstance,
    ) -> Result<Draft, ComputeError> {
        validate::check(wanted.description.as_deref(), &wanted.tags, &wanted.spec)?;
        let found = self.permitted(principal, Verb::Update, id).await?;
        let instance = &found.value;
        if principal
            .authorize(Verb::Read, Resource::Instances, &instance.scope())
            .is_err()
        {
            return Err(ComputeError::NotFound(id));
        }
        if instance.deletion.is_some() {
            return Err(ComputeError::Deleting(id));
        }
        check_sealed(instance, wanted)?;
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
        let placement = Placement {
            region: &instance.region,
            tenant: (instance.organization, instance.project),
            network: instance.network,
        };
        let fields = server_fields(&changed);
        let checks = self
            .check_references(principal, &placement, &wanted.spec, &fields)
            .await?;
        let (plan, server) = self.plan(instance, wanted).await?;
        let destroys = loss(&plan).is_some();
        if !fields.is_empty() || (destroys && wanted.consent == Consent::Destroy) {
            let spec = wanted.spec.server(instance.network, &wanted.tags);
            self.check_change(instance, server.as_ref(), &spec, &plan)
                .await?;
        }
        Ok(Draft {
            found,
            changed,
            checks,
            plan,
        })
    }

    /// Plans against what was last applied, and returns the server. An instance without a server, or whose server is being deleted, has
    /// nothing to lose.
    async fn plan(
        &self,
        instance: &Instance,
        wanted: &UpdateInstance,
    ) -> Result<(Plan, Option<Server>), ComputeError> {
        let spec = wanted.spec.server(instance.network, &wanted.tags);
        match self.server_of(instance).await? {
            Some(view) if view.server.intent.power != Power::Deleted => {
                let plan = self.servers.plan(&view.server, &spec);
                let plan = plan.map_err(|error| server_error(instance.id, error))?;
                Ok((plan, Some(view.server)))
            }
            Some(_) | None => Ok((Plan::default(), None)),
        }
    }

    /// The new amounts of the allocation, or `None` if they stay the same.
    async fn changed_cost(
        &self,
        before: &Instance,
        wanted: &UpdateInstance,
        changed: &BTreeSet<InstanceField>,
    ) -> Result<Option<Amounts>, ComputeError> {
        let charged = [InstanceField::Flavor, InstanceField::PublicIp];
        if !charged.iter().any(|field| changed.contains(field)) {
            return Ok(None);
        }
        let old = self.cost(&before.spec).await?;
        let new = self.cost(&wanted.spec).await?;
        Ok((old != new).then_some(new))
    }

    async fn commit_update(
        &self,
        principal: &Principal,
        draft: Draft,
        wanted: &UpdateInstance,
    ) -> Result<Versioned<Instance>, ComputeError> {
        let found = &draft.found;
        let loss = loss(&draft.plan);
        let given = wanted.consent;
        let changes_server = !server_fields(&draft.changed).is_empty();
        let consents = given == Consent::Destroy && loss.is_some();
        let adds_consent = consents && found.value.consent == Consent::KeepEverything;
        if draft.changed.is_empty() && !adds_consent {
            return Ok(draft.found);
        }
        if let (true, Consent::KeepEverything, Some(lost)) = (changes_server, given, &loss) {
            return Err(ComputeError::NeedsConsent {
                id: found.value.id,
                plan: draft.plan,
                lost: lost.clone(),
            });
        }
        let step = if changes_server || adds_consent {
            GenerationStep::Increment
        } else {
            GenerationStep::Keep
        };
        let accepted_loss = loss.filter(|_| consents);
        let mut instance =
            self.updated_record(principal, &draft, wanted, step, (given, accepted_loss));
        let amounts = self
            .changed_cost(&found.value, wanted, &draft.changed)
            .await?;
        if amounts.is_some() {
            instance.release_to.clone_from(&amounts);
        }
        let mut transaction = Transaction::new();
        transaction.checks.clone_from(&draft.checks);
        let transaction = self.add_entry(transaction, principal, Verb::Update, &instance)?;
        let revision = self.commit_changed(found, &instance, transaction, amounts.as_ref());
        let revision = revision.await?;
        Ok(draft.found.replaced_by(revision, instance))
    }

    /// The updated record, with its events.
    fn updated_record(
        &self,
        principal: &Principal,
        draft: &Draft,
        wanted: &UpdateInstance,
        step: GenerationStep,
        (given, accepted_loss): (Consent, Option<String>),
    ) -> Instance {
        let before = &draft.found.value;
        let mut instance = before.clone();
        instance.description.clone_from(&wanted.description);
        instance.tags = wanted.tags.clone();
        instance.spec = wanted.spec.clone();
        // An update with user data that cannot be opened is refused: here it is replaced.
        instance.spec.sealed_user_data = None;
        instance.modified = Some(Modification {
            at: self.clock.now(),
            by: principal.actor().clone(),
        });
        if !draft.changed.is_empty() {
            let fields: Vec<_> = draft.changed.iter().map(|field| field.label()).collect();
            let message = format!("changed: {}", fields.join(", "));
            self.add_event(&mut instance, principal, EventKind::Updated, message);
        }
        step.increment(&mut instance);
        match step {
            GenerationStep::Increment => {
                instance.consent = given;
                if let Some(lost) = accepted_loss {
                    self.add_event(&mut instance, principal, EventKind::LossAccepted, lost);
                }
            }
            // A change of the record alone keeps the consent to the server's pending change.
            GenerationStep::Keep => {}
        }
        instance
    }

    async fn commit_changed(
        &self,
        found: &Versioned<Instance>,
        instance: &Instance,
        transaction: Transaction,
        amounts: Option<&Amounts>,
    ) -> Result<Revision, ComputeError> {
        let replaced = self.table.replace(transaction, found, instance)?;
        let Some(amounts) = amounts else {
            return Ok(self.store.commit(&replaced).await?);
        };
        let charged = self.charged_record(instance)?;
        let build = || async {
            let amounts = self.charge_until_applied(&charged, amounts).await?;
            let recharged = self.ledger.recharge(replaced.clone(), &charged, &amounts);
            Ok::<_, ComputeError>(recharged.await?.transaction)
        };
        self.ledger.commit(instance.organization, build).await
    }
}

/// Refuses an update that would lose user data because nobody could read it. Other user data can be given instead.
fn check_sealed(instance: &Instance, wanted: &UpdateInstance) -> Result<(), ComputeError> {
    let sealed = instance.spec.sealed_user_data.as_ref();
    match sealed.or(wanted.spec.sealed_user_data.as_ref()) {
        Some(unopened) if wanted.spec.user_data.is_none() => Err(ComputeError::Sealed {
            id: instance.id,
            key: unopened.key.clone(),
        }),
        Some(_) | None => Ok(()),
    }
}

/// The server's fields among the changed ones.
fn server_fields(changed: &BTreeSet<InstanceField>) -> BTreeSet<Field> {
    let fields = changed.iter().filter_map(|field| match field.scope() {
        FieldScope::Server(field) => Some(field),
        FieldScope::Immutable | FieldScope::Record => None,
    });
    fields.collect()
}
