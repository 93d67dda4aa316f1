//! Records of one kind that belong to projects. Every read, list and deletion is authorized with a principal.

use std::{fmt, sync::Arc};

use fleetwright_identity::{
    Access, Allocation, Amounts, AuditEvent, AuditOutcome, GrantedScopes, Ledger, LedgerError,
    Principal, QuotaKind, Resource, Scope, Tenancy, Verb,
};
use fleetwright_store::{
    Check, Conflict, Damaged, Document, Found, IndexName, IndexValue, Invalid, Key, Part, Partial,
    Query, RecordId, Revision, Store, StoreError, Table, Transaction, Versioned,
};

use super::RecordError;
use crate::{
    ids::{NetworkId, RegionId},
    name::Name,
    references::{Reference, ReferenceTarget, References},
    schema::{BY_NAME, BY_PROJECT, SECURITY_GROUP_KIND, SERVER_KIND},
    server::Owner,
};

/// How often a call is tried when others write the same records.
pub(super) const ATTEMPTS: usize = 5;

/// A record that belongs to a project.
pub(super) trait TenantRecord: Document + Clone + Send + Sync {
    type Id: Copy + Eq + fmt::Display + Send + Sync;
    /// The kind of record in messages.
    const WHAT: &'static str;
    /// The resource in permissions.
    const RESOURCE: Resource;
    /// The target of references to it.
    const TARGET: ReferenceTarget;

    /// The quota that one record uses, or `None`.
    fn quota() -> Option<QuotaKind> {
        None
    }

    fn id(&self) -> Self::Id;
    fn name(&self) -> &Name;
    /// Its value in the unique index of names.
    fn unique_name(&self) -> IndexValue;
    fn scope(&self) -> Scope;
}

/// Which records a list returns. Records that are not visible to the caller are never returned. The default is all.
///
/// ```
/// use fleetwright_identity::Scope;
/// use fleetwright_region::{ids::RegionId, network::Filter};
///
/// let filter = Filter::within(Scope::Global).region(RegionId::new("north")?);
/// assert!(filter.network.is_none());
/// # Ok::<(), fleetwright_region::ids::InvalidId>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filter {
    /// The scope: all, an organization, or a project.
    pub within: Scope,
    /// The region, for networks. Default: all.
    pub region: Option<RegionId>,
    /// The network, for networks and security groups. Default: all.
    pub network: Option<NetworkId>,
}

impl Filter {
    /// Creates a filter for all records in a scope.
    pub fn within(scope: Scope) -> Self {
        Self {
            within: scope,
            region: None,
            network: None,
        }
    }

    /// Restricts the filter to a region.
    #[must_use]
    pub fn region(mut self, region: RegionId) -> Self {
        self.region = Some(region);
        self
    }

    /// Restricts the filter to a network.
    #[must_use]
    pub fn network(mut self, network: NetworkId) -> Self {
        self.network = Some(network);
        self
    }
}

impl Default for Filter {
    /// All records.
    fn default() -> Self {
        Self::within(Scope::Global)
    }
}

/// The result of a list, in the order of the ids.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordList<T> {
    /// The records.
    pub items: Vec<Versioned<T>>,
    /// What can be shown of the records that a newer version of this program wrote, and the places that cannot.
    pub newer: Vec<Partial<T>>,
    /// The records that cannot be read.
    pub damaged: Vec<Damaged>,
}

#[derive(Debug)]
pub(super) struct TenantRecords<T> {
    pub(super) table: Table<T>,
    pub(super) store: Arc<dyn Store>,
    /// The references to records of this kind.
    references: Vec<Reference>,
    /// The ledger to which records of this kind are charged, one of `T::QUOTA` each.
    pub(super) ledger: Option<Ledger>,
    /// Says which projects exist, and has the audit log.
    pub(super) tenancy: Option<Tenancy>,
}

impl<T: TenantRecord> TenantRecords<T> {
    /// Creates the table, after checking that the store's schema has the kind and matches the references.
    pub(super) fn new(store: Arc<dyn Store>, references: &References) -> Result<Self, Invalid> {
        references.check_schema(store.schema())?;
        Ok(Self {
            table: Table::new(Arc::clone(&store))?,
            store,
            references: references.to(T::TARGET).collect(),
            ledger: None,
            tenancy: None,
        })
    }

    /// Creates a record in a project that is open. `new` returns the record, with another id for each attempt.
    pub(super) async fn create_in_project(
        &self,
        principal: &Principal,
        project: &Scope,
        new: impl Fn() -> Result<T, RecordError>,
    ) -> Result<Versioned<T>, RecordError> {
        let mut attempts = 1;
        loop {
            let open = self.begin(project).await?;
            let record = new()?;
            let name = record.name().clone();
            let created = self.create(principal, open, record).await;
            match created.map_err(|error| error.for_caller(principal))? {
                Some(created) => return Ok(created),
                None if attempts == ATTEMPTS => return Err(busy::<T>(name)),
                None => attempts += 1,
            }
        }
    }

    /// Starts a transaction that creates something in a project, with the check that the project is open.
    async fn begin(&self, project: &Scope) -> Result<Transaction, RecordError> {
        let mut transaction = Transaction::new();
        if let Some(tenancy) = &self.tenancy {
            transaction
                .checks
                .extend(tenancy.check_open(project).await?);
        }
        Ok(transaction)
    }

    /// Adds the entry of a change of a record to its transaction.
    pub(super) fn add_entry(
        &self,
        transaction: Transaction,
        principal: &Principal,
        verb: Verb,
        value: &T,
        outcome: AuditOutcome,
    ) -> Result<Transaction, StoreError> {
        let Some(tenancy) = &self.tenancy else {
            return Ok(transaction);
        };
        let (actor, scope) = (principal.actor(), value.scope());
        let event = AuditEvent::new(actor, verb, T::RESOURCE, value.id(), scope);
        let event = event.named(value.name()).outcome(outcome);
        tenancy.audit().add(transaction, &event)
    }

    /// Returns a record, if the principal has the permission for it.
    pub(super) async fn find(
        &self,
        principal: &Principal,
        verb: Verb,
        id: T::Id,
    ) -> Result<Versioned<T>, RecordError> {
        let key = key(id)?;
        let found = match self.table.get(&key).await {
            Ok(found) => found.ok_or_else(|| not_found::<T>(id))?,
            Err(error @ (StoreError::Corrupt { .. } | StoreError::Incompatible { .. })) => {
                return Err(self.unreadable(principal, id, &key, error).await);
            }
            Err(error) => return Err(error.into()),
        };
        match principal.access(verb, T::RESOURCE, &found.value.scope()) {
            Access::Allowed => {}
            Access::Refused(refused) => {
                if let Some(tenancy) = &self.tenancy {
                    let name = Some(found.value.name().as_str());
                    tenancy.audit().record_refusal(&refused, id, name).await;
                }
                return Err(refused.into());
            }
            Access::NotVisible => return Err(not_found::<T>(id)),
        }
        if found.value.id() != id {
            return Err(StoreError::from(self.mismatched(&found)).into());
        }
        Ok(found)
    }

    /// Returns the error for a record that cannot be read. Callers who may not read the records of its
    /// project get "not found". If the project cannot be read either, callers need the permission to read all records.
    async fn unreadable(
        &self,
        principal: &Principal,
        id: T::Id,
        key: &Key,
        error: StoreError,
    ) -> RecordError {
        let raw = self.store.get(&self.table.id(key)).await.ok().flatten();
        let scope = raw.and_then(|record| Scope::of_record(&record.value));
        let scope = scope.unwrap_or(Scope::Global);
        match principal.authorize(Verb::Read, T::RESOURCE, &scope) {
            Ok(()) => error.into(),
            Err(_) => not_found::<T>(id),
        }
    }

    /// Returns the records that the principal may list, in the order of their ids.
    pub(super) async fn list(
        &self,
        principal: &Principal,
        within: &Scope,
    ) -> Result<RecordList<T>, RecordError> {
        let scopes = principal.scopes_for(Verb::List, T::RESOURCE)?;
        let mut listed = RecordList {
            items: Vec::new(),
            newer: Vec::new(),
            damaged: Vec::new(),
        };
        for scope in intersect(scopes, within) {
            let page = self.table.list_all(&self.query(&scope)?).await?;
            for damaged in page.damaged {
                match self.partial(&damaged.id).await? {
                    // Its scope is that of the index, which was searched.
                    Some(shown) if damaged.is_newer => listed.newer.push(shown),
                    Some(_) | None => listed.damaged.push(damaged),
                }
            }
            for found in page.items {
                if found.key.as_str() == found.value.id().to_string() {
                    listed.items.push(found);
                } else {
                    listed.damaged.push(self.mismatched(&found));
                }
            }
        }
        listed.items.sort_by(|one, two| one.key.cmp(&two.key));
        listed.newer.sort_by(|one, two| one.key.cmp(&two.key));
        Ok(listed)
    }

    /// Returns what can be shown of a record, for people: all of it, or as much as this version understands of a newer one.
    pub(super) async fn show(
        &self,
        principal: &Principal,
        id: T::Id,
    ) -> Result<Partial<T>, RecordError> {
        match self.find(principal, Verb::Read, id).await {
            // The caller may read it: otherwise it would not be found.
            Ok(_) | Err(RecordError::Store(StoreError::Incompatible { .. })) => {}
            Err(error) => return Err(error),
        }
        let shown = self.partial(&self.table.id(&key(id)?)).await?;
        let is_readable = |shown: &Partial<T>| {
            let read = principal.authorize(Verb::Read, T::RESOURCE, &shown.value.scope());
            read.is_ok()
        };
        match shown.filter(is_readable) {
            Some(shown) => Ok(shown),
            // It requires a newer reader, or it was changed meanwhile.
            None => Err(self
                .find(principal, Verb::Read, id)
                .await
                .map_or_else(|error| error, |_| busy::<T>(id))),
        }
    }

    /// Returns what this version understands of a record, if its id fits.
    async fn partial(&self, id: &RecordId) -> Result<Option<Partial<T>>, StoreError> {
        let record = self.store.get(id).await?;
        let shown = record.and_then(|record| Table::<T>::partial(&record));
        Ok(shown.filter(|shown| shown.key.as_str() == shown.value.id().to_string()))
    }

    /// Deletes a record to which no other refers.
    pub(super) async fn delete(&self, principal: &Principal, id: T::Id) -> Result<(), RecordError> {
        for _ in 0..ATTEMPTS {
            let found = self.find(principal, Verb::Delete, id).await?;
            let mut transaction = Transaction::new();
            for reference in &self.references {
                transaction = transaction.check(reference.absent(id.to_string())?);
            }
            let transaction = self.table.remove(transaction, &found);
            let transaction = self.add_entry(
                transaction,
                principal,
                Verb::Delete,
                &found.value,
                AuditOutcome::Done,
            )?;
            match self.commit_removal(&found, transaction).await {
                Ok(()) => return Ok(()),
                Err(RecordError::Store(error)) => match referrer(&error) {
                    Some(by) => {
                        let scope = found.value.scope();
                        let by = self.visible_name(principal, &scope, &by).await;
                        return Err(in_use::<T>(id, by));
                    }
                    None if error.conflict().is_some() => {}
                    None => return Err(error.into()),
                },
                Err(error) => return Err(error),
            }
        }
        Err(busy::<T>(id))
    }

    /// Commits the removal of a record together with the release of its quota.
    pub(super) async fn commit_removal(
        &self,
        found: &Versioned<T>,
        transaction: Transaction,
    ) -> Result<(), RecordError> {
        match (&self.ledger, found.value.scope()) {
            (Some(ledger), Scope::Project(organization, _)) if T::quota().is_some() => {
                let charged = self.table.id(&found.key);
                let build = || async {
                    let transaction = transaction.clone();
                    Ok::<_, RecordError>(ledger.release(transaction, &charged).await?)
                };
                ledger.commit(organization, build).await?;
            }
            _ => {
                self.store.commit(&transaction).await?;
            }
        }
        Ok(())
    }

    /// Commits the creation of a record together with the charge of its quota.
    async fn commit_creation(
        &self,
        key: &Key,
        value: &T,
        transaction: Transaction,
    ) -> Result<Revision, RecordError> {
        match (&self.ledger, value.scope(), T::quota()) {
            (Some(ledger), Scope::Project(organization, project), Some(kind)) => {
                let amounts = Amounts::new().with(kind, 1);
                let charged = self.table.id(key);
                let allocation = Allocation::new(charged, organization, project, amounts);
                let build = || async {
                    let transaction = transaction.clone();
                    Ok::<_, RecordError>(ledger.charge(transaction, &allocation).await?)
                };
                ledger.commit(organization, build).await
            }
            _ => Ok(self.store.commit(&transaction).await?),
        }
    }

    /// Returns the name of a referring record for a message to the caller. A server is named as its instance. If the caller may not
    /// read the record, the name has no id.
    async fn visible_name(&self, principal: &Principal, scope: &Scope, by: &RecordId) -> String {
        let (resource, some) = match by.kind.as_str() {
            SECURITY_GROUP_KIND => (Resource::SecurityGroups, "a security group"),
            // Servers belong to instances, and other crates keep records of what instances are made of.
            _ => (Resource::Instances, "an instance"),
        };
        if principal.authorize(Verb::Read, resource, scope).is_err() {
            return some.to_owned();
        }
        if by.kind.as_str() != SERVER_KIND {
            return format!("{} {}", by.kind, by.key);
        }
        let found = self.store.get(by).await.ok().flatten();
        let owner = found.and_then(|record| record.value.get("owner").cloned());
        let owner = owner.and_then(|owner| serde_json::from_value::<Owner>(owner).ok());
        owner.map_or_else(|| "an instance".to_owned(), |owner| owner.to_string())
    }

    /// Adds the creation of a record and its audit entry to a transaction and commits it. Returns `None` if a check of the transaction failed, so that the
    /// caller can read again and retry.
    pub(super) async fn create(
        &self,
        principal: &Principal,
        transaction: Transaction,
        value: T,
    ) -> Result<Option<Versioned<T>>, RecordError> {
        let key = key(value.id())?;
        let transaction = self.table.create(transaction, &key, &value)?;
        let transaction = self.add_entry(
            transaction,
            principal,
            Verb::Create,
            &value,
            AuditOutcome::Done,
        )?;
        match self.commit_creation(&key, &value, transaction).await {
            Ok(revision) => Ok(Some(Versioned::created(key, revision, value))),
            Err(RecordError::Store(error)) => {
                match error.conflict().map(|conflict| conflict.part) {
                    Some(Part::Write(_)) => Err(RecordError::NameTaken {
                        what: T::WHAT,
                        name: value.name().clone(),
                    }),
                    Some(Part::Check(_)) => Ok(None),
                    None => Err(error.into()),
                }
            }
            // A caller whose first response was lost learns that the name is taken, also if the quota is used up.
            Err(error @ RecordError::Ledger(LedgerError::Exceeded(_))) => {
                let index = IndexName::new(BY_NAME)?;
                match self.table.find(&index, value.unique_name()).await? {
                    Some(_) => Err(RecordError::NameTaken {
                        what: T::WHAT,
                        name: value.name().clone(),
                    }),
                    None => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn query(&self, scope: &Scope) -> Result<Query, Invalid> {
        let index = IndexName::new(BY_PROJECT)?;
        Ok(match scope {
            Scope::Global => self.table.all(),
            Scope::Organization(organization) => self.table.by(&index, organization.to_string()),
            Scope::Project(organization, project) => self
                .table
                .by(&index, [organization.to_string(), project.to_string()]),
        })
    }

    fn mismatched(&self, found: &Versioned<T>) -> Damaged {
        let id = self.table.id(&found.key);
        Damaged::new(id, found.revision, "its id does not match its key")
    }
}

/// Returns the scopes that are both granted and within a scope.
fn intersect(granted: GrantedScopes, within: &Scope) -> Vec<Scope> {
    match granted {
        GrantedScopes::Everywhere => vec![*within],
        GrantedScopes::Within(scopes) if scopes.iter().any(|outer| outer.contains(within)) => {
            vec![*within]
        }
        GrantedScopes::Within(scopes) => {
            let inner = scopes.into_iter().filter(|scope| within.contains(scope));
            inner.collect()
        }
    }
}

pub(super) fn key(id: impl fmt::Display) -> Result<Key, Invalid> {
    Key::new(id.to_string())
}

pub(super) fn not_found<T: TenantRecord>(id: T::Id) -> RecordError {
    RecordError::NotFound {
        what: T::WHAT,
        id: id.to_string(),
    }
}

pub(super) fn in_use<T: TenantRecord>(id: T::Id, by: String) -> RecordError {
    RecordError::InUse {
        what: T::WHAT,
        id: id.to_string(),
        by,
    }
}

pub(super) fn busy<T: TenantRecord>(id: impl fmt::Display) -> RecordError {
    RecordError::Busy {
        what: T::WHAT,
        id: id.to_string(),
    }
}

/// Returns a record that refers to the one to delete, if that is why the commit failed.
pub(super) fn referrer(error: &StoreError) -> Option<RecordId> {
    match error.conflict()? {
        Conflict {
            check: Check::Unclaimed(claim),
            found: Found::HeldBy(key),
            ..
        } => Some(RecordId {
            kind: claim.kind.clone(),
            key: key.clone(),
        }),
        Conflict { .. } => None,
    }
}
