//! Creating an instance: every check in its order, then one transaction with the instance, its event, its entry in the audit log, its
//! allocation, and checks that its project and its dependencies have not changed.

use fleetwright_identity::{LedgerError, Principal, Resource, Scope, Verb};
use fleetwright_region::{
    ids::RegionId,
    network::RecordError,
    server::{Consent, Field, Intent, Power},
};
use fleetwright_store::{Check, Conflict, Key, Revision, StoreError, Transaction, Versioned};

use super::{
    ATTEMPTS, InstanceView, Instances, NewInstance, RETRY_AFTER, allocation::quota_error,
    dependencies::Placement, validate,
};
use crate::{
    ComputeError,
    instance::{EventKind, Instance, InstanceId, Status},
};

impl Instances {
    /// Creates an instance. Its record exists when this returns; the controller creates its server and machine afterwards.
    ///
    /// The id is [derived](InstanceId::derive) from network and name, so a name is created once: of two concurrent calls with the same
    /// name, one succeeds. A caller whose response was lost repeats the call, gets `NameTaken` with the id, reads the instance and
    /// compares it.
    ///
    /// ```no_run
    /// use fleetwright_compute::prelude::*;
    ///
    /// # async fn example(instances: &Instances, ada: &Principal, mut new: NewInstance) -> Result<(), Box<dyn std::error::Error>> {
    /// new.description = Some("the shop's web server".to_owned());
    /// new.tags = Tags::new().with("team", "shop")?;
    /// new.spec.networking.public_ip = PublicAddress::Assigned;
    /// new.spec.user_data = Some(UserData::new("#cloud-config\npackages: [nginx]\n")?);
    /// let view = instances.create(ada, &new).await?;
    /// assert_eq!(view.provisioning, Provisioning::Pending);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// In the order of the checks:
    /// - [`BadField`](ComputeError::BadField): a field is malformed or too large.
    /// - [`Refused`](ComputeError::Refused): the caller may not create instances in the project.
    /// - [`Dependency`](ComputeError::Dependency): the project does not exist or is being deleted.
    /// - [`Dependency`](ComputeError::Dependency): network, flavor, image, security group or authority does not exist, is not visible,
    ///   is retired, or does not fit.
    /// - [`Unprocessable`](ComputeError::Unprocessable): the user data or the source addresses are not possible.
    /// - [`NameTaken`](ComputeError::NameTaken), [`NameDeleting`](ComputeError::NameDeleting): the name is in use in the network.
    /// - [`Unprocessable`](ComputeError::Unprocessable): the region cannot launch it. It has no mapping for the flavor, the image, the
    ///   network or a security group, or the provider's limits of tags or user data are exceeded.
    /// - [`Ledger`](ComputeError::Ledger), [`OrganizationQuota`](ComputeError::OrganizationQuota): a quota would be exceeded.
    /// - [`Busy`](ComputeError::Busy): other callers changed a dependency at every attempt; retry.
    pub async fn create(
        &self,
        principal: &Principal,
        new: &NewInstance,
    ) -> Result<InstanceView, ComputeError> {
        let id = InstanceId::derive(new.network, &new.name);
        let work = async {
            let created = self.create_with_id(principal, new, id).await;
            created.map_err(|error| quota_error(principal, error))
        };
        self.measure("create", Some(id), work).await
    }

    async fn create_with_id(
        &self,
        principal: &Principal,
        new: &NewInstance,
        id: InstanceId,
    ) -> Result<InstanceView, ComputeError> {
        validate::check(new.description.as_deref(), &new.tags, &new.spec)?;
        let scope = Scope::Project(new.organization, new.project);
        principal
            .authorize(Verb::Create, Resource::Instances, &scope)
            .map_err(ComputeError::Refused)?;
        let key = id.key()?;
        for _ in 0..ATTEMPTS {
            let open = self.tenancy.check_open(&scope).await;
            let open = open.map_err(RecordError::from)?;
            let (region, mut checks) = self.check_request(principal, new).await?;
            checks.extend(open);
            let instance = self.new_record(principal, new, id, region);
            self.check_launch(&instance).await?;
            let written = self.commit_new(principal, &key, &instance, checks).await;
            match written {
                Ok(revision) => {
                    let created = Versioned::created(key, revision, instance);
                    return Ok(self.view_after_write(created).await);
                }
                Err(error) => self.check_retryable(error, &instance).await?,
            }
        }
        Err(ComputeError::Busy(id))
    }

    /// Makes every check that comes before the write, in their order. Returns the region, and the checks for the transaction.
    async fn check_request(
        &self,
        principal: &Principal,
        new: &NewInstance,
    ) -> Result<(RegionId, Vec<Check>), ComputeError> {
        let tenant = (new.organization, new.project);
        let network = self.network(principal, tenant, new.network).await?;
        let region = network.value.region;
        let placement = Placement {
            region: &region,
            tenant,
            network: new.network,
        };
        let mut checks = self
            .check_network_open(principal, &placement, &new.spec)
            .await?;
        let all = Field::ALL.into();
        checks.extend(
            self.check_references(principal, &placement, &new.spec, &all)
                .await?,
        );
        self.check_name_free(new).await?;
        Ok((region, checks))
    }

    /// Checks that no instance in the network has the name, not even one that is being deleted.
    async fn check_name_free(&self, new: &NewInstance) -> Result<(), ComputeError> {
        match self.find_by_name(new.network, &new.name).await? {
            Some(found) => Err(name_taken(&found.value)),
            None => Ok(()),
        }
    }

    async fn commit_new(
        &self,
        principal: &Principal,
        key: &Key,
        instance: &Instance,
        checks: Vec<Check>,
    ) -> Result<Revision, ComputeError> {
        let mut transaction = Transaction::new();
        transaction.checks = checks;
        let allocation = self.allocation(instance).await?;
        let created = self.table.create(transaction, key, instance)?;
        let created = self.add_entry(created, principal, Verb::Create, instance)?;
        Ok(self.ledger.commit_charge(created, &allocation).await?)
    }

    /// `Ok(())` means retry.
    async fn check_retryable(
        &self,
        error: ComputeError,
        instance: &Instance,
    ) -> Result<(), ComputeError> {
        // A ledger error is returned only if the name is free: another caller may have used the name since it was checked.
        let about_ledger = matches!(
            &error,
            ComputeError::Ledger(LedgerError::Exceeded(_) | LedgerError::AllocationMismatch { .. })
        );
        if !about_ledger && conflict(&error).is_none() {
            return Err(error);
        }
        if let Some(found) = self.find_by_name(instance.network, &instance.name).await? {
            return Err(name_taken(&found.value));
        }
        if about_ledger {
            return Err(error);
        }
        Ok(())
    }

    fn new_record(
        &self,
        principal: &Principal,
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
            created_by: principal.actor().clone(),
            description: new.description.clone(),
            tags: new.tags.clone(),
            spec: new.spec.clone(),
            intent: Intent::new(Power::Running),
            consent: Consent::KeepEverything,
            generation: 1,
            release_to: None,
            modified: None,
            deletion: None,
            status: Status::new(),
            events: Vec::new(),
        };
        let message = format!("created in network {}", new.network);
        self.add_event(&mut instance, principal, EventKind::Created, message);
        instance
    }
}

/// The store conflict that caused an error, in this crate or in the ledger.
pub(super) fn conflict(error: &ComputeError) -> Option<&Conflict> {
    match error {
        ComputeError::Store(error) | ComputeError::Ledger(LedgerError::Store(error)) => {
            StoreError::conflict(error)
        }
        ComputeError::BadField { .. }
        | ComputeError::Unprocessable { .. }
        | ComputeError::NotFound(_)
        | ComputeError::Refused(_)
        | ComputeError::Dependency(_)
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
        | ComputeError::ImageNameTaken(_)
        | ComputeError::OrganizationQuota(_)
        | ComputeError::Internal(_)
        | ComputeError::Ledger(_)
        | ComputeError::Server(_)
        | ComputeError::Busy(_)
        | ComputeError::Sealed { .. }
        | ComputeError::FlavorMissing(_) => None,
    }
}

fn name_taken(found: &Instance) -> ComputeError {
    let name = found.name.clone();
    match found.deletion {
        None => ComputeError::NameTaken { name, id: found.id },
        Some(_) => ComputeError::NameDeleting {
            name,
            retry_after: RETRY_AFTER,
        },
    }
}
