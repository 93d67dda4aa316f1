//! Networks, for those who may.

use std::{collections::BTreeSet, sync::Arc};

use fleetwright_identity::{GrantedScopes, Principal, Scope, Verb};
use fleetwright_runtime::entropy::{Entropy, new_uuid};
use fleetwright_store::{
    Check, IndexName, Invalid, Query, Store, StoreError, StoreExt as _, Transaction, Versioned,
};

use super::{
    Filter, Network, NetworkState, NewNetwork, RecordError, RecordList,
    tenant_records::{ATTEMPTS, TenantRecord as _, TenantRecords, busy, referrer},
};
use crate::{
    ids::{NetworkId, RegionId},
    references::{Reference, ReferenceTarget, References},
    schema::BY_STATE,
};

/// How many groups one transaction deletes, with two checks each.
const GROUPS_AT_ONCE: usize = 50;

/// What to do with a network in which something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfUsed {
    /// Leave it, and say what stands in it.
    Refuse,
    /// Mark it as going: nothing new comes, and whoever keeps what stands in it deletes that first.
    DeleteFirst,
}

/// How far a deletion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Deletion {
    /// There is no such network any more.
    Deleted,
    /// Something still stands in it.
    Waiting,
}

/// The networks of all projects.
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
    /// The networks of a store, in these regions. Fails if the store's schema lacks them, or does not match the references: then a
    /// network in use could be deleted.
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

    /// Makes a network.
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
        for _ in 0..ATTEMPTS {
            let id = NetworkId::from_uuid(new_uuid(&*self.entropy)?);
            let made = self.records.make(Transaction::new(), new.with_id(id));
            if let Some(made) = made.await? {
                return Ok(made);
            }
        }
        Err(busy::<Network>(&new.name))
    }

    /// A network.
    pub async fn get(
        &self,
        principal: &Principal,
        id: NetworkId,
    ) -> Result<Versioned<Network>, RecordError> {
        self.records.find(principal, Verb::Read, id).await
    }

    /// The networks that the principal may list.
    pub async fn list(
        &self,
        principal: &Principal,
        filter: &Filter,
    ) -> Result<RecordList<Network>, RecordError> {
        let mut listed = self.records.list(principal, &filter.within).await?;
        listed.items.retain(|found| {
            let region = filter.region.as_ref();
            let network = filter.network.as_ref();
            region.is_none_or(|region| *region == found.value.region)
                && network.is_none_or(|network| *network == found.value.id)
        });
        Ok(listed)
    }

    /// The check that belongs into the transaction of everything that comes to stand in a network: that it is there
    /// and not going. With it, no server is made in a network that is deleted at the same time.
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

    /// Deletes a network, at once if nothing stands in it. Asking again for one that is going is no error.
    pub async fn delete(
        &self,
        principal: &Principal,
        id: NetworkId,
        if_used: IfUsed,
    ) -> Result<Deletion, RecordError> {
        for _ in 0..ATTEMPTS {
            let found = self.records.find(principal, Verb::Delete, id).await?;
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

    /// The networks that are going and that the principal may list: what has to be done, for whoever keeps what
    /// stands in them.
    pub async fn deleting(
        &self,
        principal: &Principal,
    ) -> Result<RecordList<Network>, RecordError> {
        let reach = principal.scopes_for(Verb::List, Network::RESOURCE)?;
        let index = IndexName::new(BY_STATE)?;
        let query = self
            .records
            .table
            .by(&index, NetworkState::Deleting.as_str());
        let page = self.records.table.list_all(&query).await?;
        let mut items = page.items;
        items.retain(|found| reach.covers(&found.value.scope()));
        // Of a record that cannot be read it is not known whose it is.
        let damaged = match reach {
            GrantedScopes::Everywhere => page.damaged,
            GrantedScopes::Within(_) => Vec::new(),
        };
        Ok(RecordList { items, damaged })
    }

    /// Lets a network that is going be gone, with its security groups, if nothing stands in it. Does nothing
    /// otherwise, and may be called at any time. One that is not going is refused.
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
            let left = match self.remove_groups(&found).await {
                Ok(left) => left,
                Err(error) if referrer(&error).is_some() => return Ok(Deletion::Waiting),
                Err(error) if error.conflict().is_some() => continue,
                Err(error) => return Err(error.into()),
            };
            let transaction = self.records.table.remove(left, &found);
            match self.records.store.commit(&transaction).await {
                Ok(_) => return Ok(Deletion::Deleted),
                Err(error) if referrer(&error).is_some() => return Ok(Deletion::Waiting),
                Err(error) if error.conflict().is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(busy::<Network>(id))
    }

    /// Begins the transaction that deletes a network with its groups, if nothing stands in it or has any of them. New
    /// groups cannot come: a network that is going takes none. More than go into one transaction are deleted before.
    async fn remove_groups(&self, found: &Versioned<Network>) -> Result<Transaction, StoreError> {
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
        // By their records, whether or not they can be read: a damaged group goes with its network too.
        let groups = self.records.store.list_all(&query).await?;
        let readable = groups
            .records
            .into_iter()
            .map(|group| (group.id, group.revision));
        let damaged = groups
            .damaged
            .into_iter()
            .map(|group| (group.id, group.revision));
        let groups: Vec<_> = readable.chain(damaged).collect();
        let mut transaction = unused()?;
        for (count, (group, revision)) in (1..).zip(groups) {
            for reference in &self.to_groups {
                transaction = transaction.check(reference.absent(group.key.as_str())?);
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
