//! The calls of tenants for networks, and their deletion in two steps.

use std::{collections::BTreeSet, sync::Arc};

use fleetwright_identity::{
    AuditEvent, AuditOutcome, GrantedScopes, Ledger, Principal, Resource, Scope, Tenancy, Verb,
};
use fleetwright_runtime::entropy::{Entropy, new_uuid};
use fleetwright_store::{
    Check, IndexName, Invalid, Query, Store, StoreError, StoreExt as _, Table, Transaction,
    Versioned,
};

use super::{
    Network, NetworkState, NewNetwork, RecordError, RecordList, SecurityGroup,
    tenant_records::{ATTEMPTS, TenantRecord as _, TenantRecords, busy, read_calls, referrer},
};
use crate::{
    ids::{NetworkId, RegionId},
    references::{Reference, ReferenceTarget, References},
    schema::BY_STATE,
};

/// How many groups one transaction deletes, with up to four checks each: a transaction has at most 128.
const GROUPS_AT_ONCE: usize = 25;

/// How to delete a network that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfUsed {
    /// Refuse, with the name of a record that uses it.
    Refuse,
    /// Mark it for deletion: it accepts nothing new, and the owner of the records in it deletes them first. Only for a caller who may
    /// delete the instances of the project; for others it is the same as [`Refuse`](Self::Refuse).
    DeleteFirst,
}

/// The progress of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Deletion {
    /// The network is deleted.
    Deleted,
    /// The network is still in use. Call [`Networks::finish`] later.
    Waiting,
}

/// The networks of all projects.
///
/// ```
/// use std::{collections::BTreeSet, sync::Arc};
/// use fleetwright_identity::{ActorName, Permission, Principal};
/// use fleetwright_region::{
///     ids::RegionId,
///     name::Name,
///     network::{Deletion, IfUsed, Networks, NewNetwork},
///     references::References,
///     schema,
/// };
/// use fleetwright_runtime::entropy::OsEntropy;
/// use fleetwright_store::{MemoryStore, Schema};
/// use uuid::Uuid;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Arc::new(MemoryStore::new(schema::add_kinds(Schema::builder()).build()?));
/// let region = RegionId::new("north")?;
/// let regions = BTreeSet::from([region.clone()]);
/// let networks = Networks::new(store, regions, Arc::new(OsEntropy), &References::default())?;
///
/// let principal = Principal::service(ActorName::new("compute")?, Permission::all());
/// let new = NewNetwork {
///     organization: Uuid::from_u128(1).into(),
///     project: Uuid::from_u128(2).into(),
///     region,
///     name: Name::new("blue")?,
///     prefix: "10.0.0.0/16".parse()?,
///     dns: Vec::new(),
/// };
/// let network = networks.create(&principal, &new).await?.value;
/// assert!(networks.create(&principal, &new).await.is_err(), "the name is taken");
/// let deletion = networks.delete(&principal, network.id, IfUsed::Refuse).await?;
/// assert_eq!(deletion, Deletion::Deleted);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Networks {
    records: TenantRecords<Network>,
    /// The references to networks, except those of security groups, which are deleted with their network.
    to_networks: Vec<Reference>,
    to_groups: Vec<Reference>,
    regions: BTreeSet<RegionId>,
    entropy: Arc<dyn Entropy>,
}

impl Networks {
    /// Creates the service over a store. Networks can be created in these regions.
    ///
    /// # Errors
    ///
    /// The store's schema lacks the kind, or does not match the references: a network in use could be deleted.
    pub fn new(
        store: Arc<dyn Store>,
        regions: BTreeSet<RegionId>,
        entropy: Arc<dyn Entropy>,
        references: &References,
    ) -> Result<Self, Invalid> {
        let to_networks = references.to(ReferenceTarget::Network);
        Ok(Self {
            to_networks: to_networks
                .filter(|reference| *reference != Reference::SECURITY_GROUP_NETWORK)
                .collect(),
            to_groups: references.to(ReferenceTarget::SecurityGroup).collect(),
            records: TenantRecords::new(store, references)?,
            regions,
            entropy,
        })
    }

    /// Sets the ledger, on the same store, that counts each network as one of
    /// [`QuotaKind::networks`](fleetwright_identity::QuotaKind::networks), until it is deleted. Without a ledger, networks are not limited.
    #[must_use]
    pub fn with_ledger(mut self, ledger: Ledger) -> Self {
        self.records.ledger = Some(ledger);
        self
    }

    /// Refuses what is created in a project that does not exist or is being deleted, and adds an entry to the audit log for every change.
    /// Without it neither is done.
    #[must_use]
    pub fn with_tenancy(mut self, tenancy: Tenancy) -> Self {
        self.records.tenancy = Some(tenancy);
        self
    }

    /// Creates a network.
    ///
    /// # Errors
    ///
    /// The principal may not create networks in the project, the project does not exist or is being deleted, the region does not exist, the
    /// network is not [valid](NewNetwork::check), the name is taken, or a quota would be exceeded.
    pub async fn create(
        &self,
        principal: &Principal,
        new: &NewNetwork,
    ) -> Result<Versioned<Network>, RecordError> {
        let scope = Scope::Project(new.organization, new.project);
        principal.authorize(Verb::Create, Network::RESOURCE, &scope)?;
        if !self.regions.contains(&new.region) {
            return Err(RecordError::NoRegion(new.region.clone()));
        }
        new.check()?;
        let network = || Ok(new.with_id(NetworkId::from_uuid(new_uuid(&*self.entropy)?)));
        let created = self.records.create_in_project(principal, &scope, network);
        created.await
    }

    /// Returns the check for the transaction of every new record in a network: that the network has not changed. With it, no
    /// server is created in a network that is deleted at the same time.
    ///
    /// # Errors
    ///
    /// The network is being deleted.
    pub fn check_open(&self, found: &Versioned<Network>) -> Result<Check, RecordError> {
        match found.value.state {
            NetworkState::Ready => {
                let id = self.records.table.id(&found.key);
                Ok(Check::At(id, found.revision))
            }
            NetworkState::Deleting => Err(RecordError::Deleting {
                what: Network::WHAT,
                id: found.value.id.to_string(),
            }),
        }
    }

    /// Deletes a network, at once if it is not in use. A repeated call for a network that is being deleted continues the
    /// deletion.
    ///
    /// # Errors
    ///
    /// [`InUse`](RecordError::InUse) with [`IfUsed::Refuse`], or if the principal may not delete the instances in it; or it is not
    /// visible, or the principal may not delete it.
    pub async fn delete(
        &self,
        principal: &Principal,
        id: NetworkId,
        if_used: IfUsed,
    ) -> Result<Deletion, RecordError> {
        for _ in 0..ATTEMPTS {
            let found = self.records.find(principal, Verb::Delete, id).await?;
            let scope = found.value.scope();
            let may_delete = principal.authorize(Verb::Delete, Resource::Instances, &scope);
            let if_used = match if_used {
                IfUsed::DeleteFirst if may_delete.is_ok() => IfUsed::DeleteFirst,
                IfUsed::DeleteFirst | IfUsed::Refuse => IfUsed::Refuse,
            };
            match (found.value.state, if_used) {
                (NetworkState::Deleting, _) => return self.finish(principal, id).await,
                (NetworkState::Ready, IfUsed::Refuse) => {
                    self.records.delete(principal, id).await?;
                    return Ok(Deletion::Deleted);
                }
                (NetworkState::Ready, IfUsed::DeleteFirst) => {
                    let mut value = found.value.clone();
                    value.state = NetworkState::Deleting;
                    let table = &self.records.table;
                    let marked = table.replace(Transaction::new(), &found, &value)?;
                    let marked = self.records.add_entry(
                        marked,
                        principal,
                        Verb::Delete,
                        &value,
                        AuditOutcome::Requested,
                    )?;
                    match self.records.store.commit(&marked).await {
                        Ok(_) => return self.finish(principal, id).await,
                        Err(error) if error.conflict().is_some() => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        Err(busy::<Network>(id))
    }

    /// Returns the networks that are being deleted and that the principal may list, for the owner of the records in them.
    ///
    /// # Errors
    ///
    /// The principal may not list networks anywhere, or the store fails.
    pub async fn deleting(
        &self,
        principal: &Principal,
    ) -> Result<RecordList<Network>, RecordError> {
        let scopes = principal.scopes_for(Verb::List, Network::RESOURCE)?;
        let index = IndexName::new(BY_STATE)?;
        let query = self
            .records
            .table
            .by(&index, NetworkState::Deleting.as_str());
        let page = self.records.table.list_all(&query).await?;
        let mut items = page.items;
        items.retain(|found| scopes.covers(&found.value.scope()));
        // The owner of a record that cannot be read is unknown.
        let damaged = match scopes {
            GrantedScopes::Everywhere => page.damaged,
            GrantedScopes::Within(_) => Vec::new(),
        };
        Ok(RecordList {
            items,
            newer: Vec::new(),
            damaged,
        })
    }

    /// Deletes a network that is being deleted, with its security groups, if it is no longer in use. Otherwise nothing
    /// happens; call it at any time, and again.
    ///
    /// # Errors
    ///
    /// [`NotDeleting`](RecordError::NotDeleting) if its deletion was not requested.
    pub async fn finish(
        &self,
        principal: &Principal,
        id: NetworkId,
    ) -> Result<Deletion, RecordError> {
        for _ in 0..ATTEMPTS {
            let found = match self.records.find(principal, Verb::Delete, id).await {
                Ok(found) => found,
                Err(RecordError::NotFound { .. }) => return Ok(Deletion::Deleted),
                Err(error) => return Err(error),
            };
            if found.value.state == NetworkState::Ready {
                return Err(RecordError::NotDeleting(id));
            }
            let left = match self.remove_groups(principal, &found).await {
                Ok(left) => left,
                Err(error) if referrer(&error).is_some() => return Ok(Deletion::Waiting),
                Err(error) if error.conflict().is_some() => continue,
                Err(error) => return Err(error.into()),
            };
            let transaction = self.records.table.remove(left, &found);
            let transaction = self.records.add_entry(
                transaction,
                principal,
                Verb::Delete,
                &found.value,
                AuditOutcome::Done,
            )?;
            match self.records.commit_removal(&found, transaction).await {
                Ok(()) => return Ok(Deletion::Deleted),
                Err(RecordError::Store(error)) if referrer(&error).is_some() => {
                    return Ok(Deletion::Waiting);
                }
                Err(RecordError::Store(error)) if error.conflict().is_some() => {}
                Err(error) => return Err(error),
            }
        }
        Err(busy::<Network>(id))
    }

    /// Returns the transaction that deletes the groups of a network, with the checks that nothing refers to the network or to
    /// a group. If there are too many groups for one transaction, the first ones are deleted here. No groups are added
    /// meanwhile: a network that is being deleted accepts none.
    async fn remove_groups(
        &self,
        principal: &Principal,
        found: &Versioned<Network>,
    ) -> Result<Transaction, StoreError> {
        let id = found.value.id.to_string();
        let unused = || {
            let mut transaction = Transaction::new();
            for reference in &self.to_networks {
                transaction = transaction.check(reference.absent(id.as_str())?);
            }
            Ok::<_, StoreError>(transaction)
        };
        let (kind, index) = Reference::SECURITY_GROUP_NETWORK.names()?;
        let query = Query::by(kind, index, id.as_str());
        // By their records, readable or not: a damaged group is deleted with its network too. One of a newer version may stand for something
        // at the cloud, and waits for that version.
        let groups = self.records.store.list_all(&query).await?;
        for group in &groups.records {
            match Table::<SecurityGroup>::read(group.clone()) {
                Err(damaged) if damaged.is_newer => return Err(damaged.into()),
                Ok(_) | Err(_) => {}
            }
        }
        let readable = groups
            .records
            .into_iter()
            .map(|group| (group.id, group.revision, group.value.get("name").cloned()));
        let damaged = groups
            .damaged
            .into_iter()
            .map(|group| (group.id, group.revision, None));
        let groups: Vec<_> = readable.chain(damaged).collect();
        let mut transaction = unused()?;
        for (count, (group, revision, name)) in (1..).zip(groups) {
            for reference in &self.to_groups {
                transaction = transaction.check(reference.absent(group.key.as_str())?);
            }
            if let Some(tenancy) = &self.records.tenancy {
                let (actor, scope) = (principal.actor(), found.value.scope());
                let resource = Resource::SecurityGroups;
                let event = AuditEvent::new(actor, Verb::Delete, resource, &group.key, scope);
                let event = match name.as_ref().and_then(serde_json::Value::as_str) {
                    Some(name) => event.named(name),
                    None => event,
                };
                transaction = tenancy.audit().add(transaction, &event)?;
            }
            transaction = transaction.remove(group, revision);
            if count % GROUPS_AT_ONCE == 0 {
                self.records.store.commit(&transaction).await?;
                transaction = unused()?;
            }
        }
        Ok(transaction)
    }
}

read_calls!(Networks, Network, NetworkId, "a network", "networks");
