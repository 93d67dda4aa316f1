//! Making an instance: every check in its order, then one transaction with the instance, its event, its payment, and what must
//! still hold of its ground.

use fleetwright_identity::{LedgerError, Principal, Resource, Scope, Verb};
use fleetwright_region::{
    ids::RegionId,
    server::{Consent, Field, Intent, Power},
};
use fleetwright_store::{Check, Conflict, Key, Revision, StoreError, Transaction, Versioned};

use super::{
    ATTEMPTS, InstanceView, Instances, NewInstance, RETRY_AFTER, dependencies::Placement, validate,
};
use crate::{
    ComputeError,
    instance::{EventKind, Instance, InstanceId, Status},
};

impl Instances {
    /// Makes an instance. It is there when this answers, and its server is made afterwards.
    ///
    /// The id follows from network and name. Two who ask for one name at once get one instance, and one of them
    /// [`NameTaken`](ComputeError::NameTaken). So does who asks again after an answer that was lost, or after a store that did not know
    /// whether it had committed: the error has the id of the instance that there is, to be read and compared.
    pub async fn create(
        &self,
        who: &Principal,
        new: &NewInstance,
    ) -> Result<InstanceView, ComputeError> {
        let id = InstanceId::derive(new.network, &new.name);
        let work = self.create_with_id(who, new, id);
        self.metered("create", Some(id), work).await
    }

    async fn create_with_id(
        &self,
        who: &Principal,
        new: &NewInstance,
        id: InstanceId,
    ) -> Result<InstanceView, ComputeError> {
        validate::check(new.description.as_deref(), &new.tags, &new.spec)?;
        let scope = Scope::Project(new.organization, new.project);
        who.authorize(Verb::Create, Resource::Instances, &scope)
            .map_err(ComputeError::Refused)?;
        let key = id.key()?;
        for _ in 0..ATTEMPTS {
            let (region, checks) = self.ground_of(who, new).await?;
            let instance = self.made(who, new, id, region);
            let written = self.commit_new(&key, &instance, checks).await;
            match written {
                Ok(revision) => {
                    let value = instance;
                    let made = Versioned {
                        key,
                        revision,
                        value,
                    };
                    return Ok(self.view_after_write(made).await);
                }
                Err(error) => self.why_not_made(error, &instance).await?,
            }
        }
        Err(ComputeError::Busy(id))
    }

    /// Everything that is asked before something is written, in its order.
    async fn ground_of(
        &self,
        who: &Principal,
        new: &NewInstance,
    ) -> Result<(RegionId, Vec<Check>), ComputeError> {
        let tenant = (new.organization, new.project);
        let network = self.network(who, tenant, new.network).await?;
        let region = network.value.region;
        let place = Placement {
            region: &region,
            tenant,
            network: new.network,
        };
        let mut checks = self.open(who, &place, &new.spec).await?;
        let all = Field::ALL.into();
        checks.extend(self.stands(who, &place, &new.spec, &all).await?);
        self.free(new).await?;
        Ok((region, checks))
    }

    /// That no instance in the network has the name, also none that is going.
    async fn free(&self, new: &NewInstance) -> Result<(), ComputeError> {
        match self.named(new.network, &new.name).await? {
            Some(found) => Err(taken(&found.value)),
            None => Ok(()),
        }
    }

    async fn commit_new(
        &self,
        key: &Key,
        instance: &Instance,
        checks: Vec<Check>,
    ) -> Result<Revision, ComputeError> {
        let mut standing = Transaction::new();
        standing.checks = checks;
        let payment = self.payment(instance)?;
        let organization = instance.organization;
        let made = self.table.create(standing, key, instance)?;
        let build = || async { Ok(self.ledger.charge(made.clone(), &payment).await?) };
        self.ledger.commit(organization, build).await
    }

    /// Nothing if it may be tried again.
    async fn why_not_made(
        &self,
        error: ComputeError,
        instance: &Instance,
    ) -> Result<(), ComputeError> {
        // Quota, or a payment of another size, is told only of a name that is free: another may have taken it since.
        let about_ledger = matches!(
            &error,
            ComputeError::Ledger(LedgerError::Exceeded(_) | LedgerError::AllocationMismatch { .. })
        );
        if !about_ledger && conflict(&error).is_none() {
            return Err(error);
        }
        if let Some(found) = self.named(instance.network, &instance.name).await? {
            return Err(taken(&found.value));
        }
        if about_ledger {
            return Err(error);
        }
        Ok(())
    }

    fn made(
        &self,
        who: &Principal,
        new: &NewInstance,
        id: InstanceId,
        region: RegionId,
    ) -> Instance {
        let now = self.clock.now();
        let mut instance = Instance {
            id,
            server: id.server(),
            name: new.name.clone(),
            organization: new.organization,
            project: new.project,
            region,
            network: new.network,
            created_at: now,
            created_by: who.actor().clone(),
            description: new.description.clone(),
            tags: new.tags.clone(),
            spec: new.spec.clone(),
            intent: Intent::new(Power::Running),
            consent: Consent::KeepEverything,
            generation: 1,
            modified: None,
            deletion: None,
            status: Status::new(),
            events: Vec::new(),
        };
        let message = format!("created in network {}", new.network);
        self.add_event(&mut instance, who, EventKind::Created, message);
        instance
    }
}

/// The conflict behind an error, whoever met it.
pub(super) fn conflict(error: &ComputeError) -> Option<&Conflict> {
    match error {
        ComputeError::Store(error) | ComputeError::Ledger(LedgerError::Store(error)) => {
            StoreError::conflict(error)
        }
        ComputeError::BadField { .. }
        | ComputeError::Unprocessable { .. }
        | ComputeError::NotFound(_)
        | ComputeError::Refused(_)
        | ComputeError::DependencyChecker(_)
        | ComputeError::NameTaken { .. }
        | ComputeError::NameDeleting { .. }
        | ComputeError::Deleting(_)
        | ComputeError::NameImmutable { .. }
        | ComputeError::NeedsConsent { .. }
        | ComputeError::Changed { .. }
        | ComputeError::NotReady { .. }
        | ComputeError::Unsupported { .. }
        | ComputeError::Unavailable { .. }
        | ComputeError::NoKey(_)
        | ComputeError::ImageTaken(_)
        | ComputeError::Machine { .. }
        | ComputeError::Ledger(_)
        | ComputeError::Server(_)
        | ComputeError::Busy(_)
        | ComputeError::FlavorMissing(_) => None,
    }
}

fn taken(found: &Instance) -> ComputeError {
    let name = found.name.clone();
    match found.deletion {
        None => ComputeError::NameTaken { name, id: found.id },
        Some(_) => ComputeError::NameDeleting {
            name,
            retry_after: RETRY_AFTER,
        },
    }
}
