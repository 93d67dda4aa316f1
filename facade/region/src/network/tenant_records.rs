//! Records of one kind that belong to projects: found, listed and deleted for a principal, and never otherwise.

use std::{fmt, sync::Arc};

use fleetwright_identity::{Access, GrantedScopes, Principal, Resource, Scope, Verb};
use fleetwright_store::{
    Check, Conflict, Damaged, Document, Found, IndexName, Invalid, Key, Part, Query, Store,
    StoreError, Table, Transaction, Versioned,
};

use super::RecordError;
use crate::{
    ids::{NetworkId, RegionId},
    name::Name,
    references::{Reference, ReferenceTarget, References},
    schema::BY_PROJECT,
};

/// How often something is begun again because somebody else was faster.
pub(super) const ATTEMPTS: usize = 5;

/// What all these records have in common.
pub(super) trait TenantRecord: Document + Clone + Send + Sync {
    type Id: Copy + Eq + fmt::Display + Send + Sync;
    /// What it is, in a sentence.
    const WHAT: &'static str;
    /// What permissions are about.
    const RESOURCE: Resource;
    /// What references to it refer to.
    const TARGET: ReferenceTarget;

    fn id(&self) -> Self::Id;
    fn name(&self) -> &Name;
    fn scope(&self) -> Scope;
}

/// Which records are listed. What the caller may not see is not among them, whatever is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filter {
    /// Only those in here.
    pub within: Scope,
    /// Only those in this region, as far as they are in one.
    pub region: Option<RegionId>,
    /// Only those on this network, as far as they are on one.
    pub network: Option<NetworkId>,
}

impl Filter {
    /// All that lie in a scope.
    pub fn within(scope: Scope) -> Self {
        Self {
            within: scope,
            region: None,
            network: None,
        }
    }

    /// Of those, the ones in a region.
    #[must_use]
    pub fn region(mut self, region: RegionId) -> Self {
        self.region = Some(region);
        self
    }

    /// Of those, the ones on a network.
    #[must_use]
    pub fn network(mut self, network: NetworkId) -> Self {
        self.network = Some(network);
        self
    }
}

impl Default for Filter {
    /// All that there are.
    fn default() -> Self {
        Self::within(Scope::Global)
    }
}

/// Records, in the order of their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordList<T> {
    /// Those that can be read.
    pub items: Vec<Versioned<T>>,
    /// Those that cannot. They hold up none of the others.
    pub damaged: Vec<Damaged>,
}

#[derive(Debug)]
pub(super) struct TenantRecords<T> {
    pub(super) table: Table<T>,
    pub(super) store: Arc<dyn Store>,
    /// The references to records of this kind.
    references: Vec<Reference>,
}

impl<T: TenantRecord> TenantRecords<T> {
    /// Fails if the store's schema lacks the kind, or does not match the references.
    pub(super) fn new(store: Arc<dyn Store>, references: &References) -> Result<Self, Invalid> {
        references.check_schema(store.schema())?;
        Ok(Self {
            table: Table::new(Arc::clone(&store))?,
            store,
            references: references.to(T::TARGET).collect(),
        })
    }

    /// A record that the principal may do something to.
    pub(super) async fn find(
        &self,
        principal: &Principal,
        verb: Verb,
        id: T::Id,
    ) -> Result<Versioned<T>, RecordError> {
        let found = self.table.get(&key(id)?).await?;
        let found = found.ok_or_else(|| not_found::<T>(id))?;
        if found.value.id() != id {
            return Err(StoreError::from(self.disguised(&found)).into());
        }
        match principal.access(verb, T::RESOURCE, &found.value.scope()) {
            Access::Allowed => Ok(found),
            Access::Refused(refused) => Err(refused.into()),
            Access::NotVisible => Err(not_found::<T>(id)),
        }
    }

    /// The records that the principal may list, in the order of their ids.
    pub(super) async fn list(
        &self,
        principal: &Principal,
        within: &Scope,
    ) -> Result<RecordList<T>, RecordError> {
        let reach = principal.scopes_for(Verb::List, T::RESOURCE)?;
        let mut listed = RecordList {
            items: Vec::new(),
            damaged: Vec::new(),
        };
        for scope in narrowed(reach, within) {
            let page = self.table.list_all(&self.query(&scope)?).await?;
            listed.damaged.extend(page.damaged);
            for found in page.items {
                if found.key.as_str() == found.value.id().to_string() {
                    listed.items.push(found);
                } else {
                    listed.damaged.push(self.disguised(&found));
                }
            }
        }
        listed.items.sort_by(|one, two| one.key.cmp(&two.key));
        Ok(listed)
    }

    /// Deletes a record that nobody stands on.
    pub(super) async fn delete(&self, principal: &Principal, id: T::Id) -> Result<(), RecordError> {
        for _ in 0..ATTEMPTS {
            let found = self.find(principal, Verb::Delete, id).await?;
            let mut transaction = Transaction::new();
            for reference in &self.references {
                transaction = transaction.check(reference.absent(id.to_string())?);
            }
            let transaction = self.table.remove(transaction, &found);
            match self.store.commit(&transaction).await {
                Ok(_) => return Ok(()),
                Err(error) => match referrer(&error) {
                    Some(by) => return Err(in_use::<T>(id, by)),
                    None if error.conflict().is_some() => {}
                    None => return Err(error.into()),
                },
            }
        }
        Err(busy::<T>(id))
    }

    /// Commits what makes a record. Nothing is answered if somebody was faster with what was read before.
    pub(super) async fn make(
        &self,
        transaction: Transaction,
        value: T,
    ) -> Result<Option<Versioned<T>>, RecordError> {
        let key = key(value.id())?;
        let transaction = self.table.create(transaction, &key, &value)?;
        match self.store.commit(&transaction).await {
            Ok(revision) => Ok(Some(Versioned {
                key,
                revision,
                value,
            })),
            Err(error) => match error.conflict().map(|conflict| conflict.part) {
                Some(Part::Write(_)) => Err(RecordError::NameTaken {
                    what: T::WHAT,
                    name: value.name().clone(),
                }),
                Some(Part::Check(_)) => Ok(None),
                None => Err(error.into()),
            },
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

    fn disguised(&self, found: &Versioned<T>) -> Damaged {
        Damaged {
            id: self.table.id(&found.key),
            revision: found.revision,
            reason: "it says that it has another id".to_owned(),
        }
    }
}

/// Where to look for what lies both within a reach and within a scope.
fn narrowed(reach: GrantedScopes, within: &Scope) -> Vec<Scope> {
    match reach {
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

/// Who uses what was to be deleted, if that is why it was not.
pub(super) fn referrer(error: &StoreError) -> Option<String> {
    match error.conflict()? {
        Conflict {
            check: Check::Unclaimed(claim),
            found: Found::HeldBy(key),
            ..
        } => Some(format!("{} {key}", claim.kind)),
        Conflict { .. } => None,
    }
}
