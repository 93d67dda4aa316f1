//! Records of one kind that belong to projects. Every read, list and deletion is authorized with a principal.
//!
//! Owns what networks, security groups and authorities have in common: permissions, names, quota and audit entries, and how a record of a
//! newer version is shown. It must never depend on the fields of one of them.

mod create;
mod delete;
mod list;
mod read_calls;

use std::{fmt, sync::Arc};

use fleetwright_identity::{
    Access, AuditEvent, AuditOutcome, Ledger, Principal, QuotaKind, Resource, Scope, Tenancy, Verb,
};
use fleetwright_store::{
    Document, IndexValue, Invalid, Key, Store, StoreError, Table, Transaction, Versioned,
};

pub(super) use delete::referrer;
pub use list::{Filter, RecordList};
pub(super) use read_calls::read_calls;

use super::RecordError;
use crate::{
    name::Name,
    references::{Reference, ReferenceTarget, References},
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

    /// Returns whether a filter selects it, apart from its scope.
    fn matches(&self, _: &Filter) -> bool {
        true
    }
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
            let mismatched = self.mismatched(&found.key, found.revision);
            return Err(StoreError::from(mismatched).into());
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
}

fn key(id: impl fmt::Display) -> Result<Key, Invalid> {
    Key::new(id.to_string())
}

fn not_found<T: TenantRecord>(id: T::Id) -> RecordError {
    RecordError::NotFound {
        what: T::WHAT,
        id: id.to_string(),
    }
}

pub(super) fn busy<T: TenantRecord>(id: impl fmt::Display) -> RecordError {
    RecordError::Busy {
        what: T::WHAT,
        id: id.to_string(),
    }
}
