//! Listing and showing records, also those that a newer version wrote, as far as they are understood.

use fleetwright_identity::{GrantedScopes, Principal, Scope, Verb};
use fleetwright_store::{
    Damaged, IndexName, Invalid, Key, Partial, Query, Revision, StoreError, Versioned,
};

use super::{RecordError, TenantRecord, TenantRecords, key, not_found};
use crate::{
    ids::{NetworkId, RegionId},
    schema::BY_PROJECT,
};

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

impl<T: TenantRecord> TenantRecords<T> {
    /// Returns the records that match the filter and that the principal may list, in the order of their ids.
    pub(in crate::network) async fn list(
        &self,
        principal: &Principal,
        filter: &Filter,
    ) -> Result<RecordList<T>, RecordError> {
        let scopes = principal.scopes_for(Verb::List, T::RESOURCE)?;
        let mut listed = RecordList {
            items: Vec::new(),
            newer: Vec::new(),
            damaged: Vec::new(),
        };
        for scope in intersect(scopes, &filter.within) {
            let mut page = self.table.list_all(&self.query(&scope)?).await?;
            // Their scope is that of the index, which was searched.
            for shown in page.take_newer() {
                if is_of_its_key(&shown) {
                    listed.newer.push(shown);
                } else {
                    listed
                        .damaged
                        .push(self.mismatched(&shown.key, shown.revision));
                }
            }
            listed.damaged.extend(page.damaged);
            for found in page.items {
                if found.key.as_str() == found.value.id().to_string() {
                    listed.items.push(found);
                } else {
                    listed
                        .damaged
                        .push(self.mismatched(&found.key, found.revision));
                }
            }
        }
        listed.items.retain(|found| found.value.matches(filter));
        listed.newer.retain(|shown| shown.value.matches(filter));
        listed.items.sort_by(|one, two| one.key.cmp(&two.key));
        listed.newer.sort_by(|one, two| one.key.cmp(&two.key));
        Ok(listed)
    }

    /// Returns what can be shown of a record, for people: all of it, or as much as this version understands of a newer one.
    pub(in crate::network) async fn show(
        &self,
        principal: &Principal,
        id: T::Id,
    ) -> Result<Partial<T>, RecordError> {
        match self.find(principal, Verb::Read, id).await {
            // The caller may read it: otherwise it would not be found.
            Ok(_) | Err(RecordError::Store(StoreError::Incompatible { .. })) => {}
            Err(error) => return Err(error),
        }
        let shown = self.table.show(&key(id)?).await?;
        let shown = shown.ok_or_else(|| not_found::<T>(id))?;
        // It may have been changed meanwhile.
        let read = principal.authorize(Verb::Read, T::RESOURCE, &shown.value.scope());
        if read.is_err() {
            return Err(not_found::<T>(id));
        }
        if !is_of_its_key(&shown) {
            let mismatched = self.mismatched(&shown.key, shown.revision);
            return Err(StoreError::from(mismatched).into());
        }
        Ok(shown)
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

    pub(super) fn mismatched(&self, key: &Key, revision: Revision) -> Damaged {
        Damaged::new(
            self.table.id(key),
            revision,
            "its id does not match its key",
        )
    }
}

fn is_of_its_key<T: TenantRecord>(shown: &Partial<T>) -> bool {
    shown.key.as_str() == shown.value.id().to_string()
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
