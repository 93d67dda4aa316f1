//! Security groups, for those who may.

use std::{collections::BTreeSet, sync::Arc};

use fleetwright_identity::{OrganizationId, Principal, ProjectId, Resource, Scope, Verb};
use fleetwright_runtime::entropy::{Entropy, new_uuid};
use fleetwright_store::{Check, Document, Invalid, Store, Transaction, Versioned};
use serde::{Deserialize, Serialize};

use super::{
    Filter, Network, Networks, RecordError, RecordList, Rules,
    tenant_records::{ATTEMPTS, TenantRecord, TenantRecords, busy},
};
use crate::{
    ids::{NetworkId, SecurityGroupId},
    name::Name,
    references::{Reference, ReferenceTarget, References},
    schema::SECURITY_GROUP_KIND,
};

/// How many groups a network may have: all of them go in one transaction with it.
const MAX_GROUPS: usize = 60;

/// What is let through to and from servers on a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SecurityGroup {
    /// What it is found by.
    pub id: SecurityGroupId,
    /// On which network. Servers of other networks do not have it.
    pub network: NetworkId,
    /// Whose it is: the network's.
    pub organization: OrganizationId,
    /// In which project: the network's.
    pub project: ProjectId,
    /// What it is called: one on its network.
    pub name: Name,
    /// What is let through.
    pub rules: Rules,
}

/// A security group that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSecurityGroup {
    /// On which network.
    pub network: NetworkId,
    /// What it is to be called.
    pub name: Name,
    /// What is let through.
    pub rules: Rules,
}

/// The security groups of all networks.
#[derive(Debug)]
pub struct SecurityGroups {
    records: TenantRecords<SecurityGroup>,
    networks: Arc<Networks>,
    entropy: Arc<dyn Entropy>,
}

impl SecurityGroups {
    /// The groups of a store. Fails as [`Networks::new`] does.
    pub fn new(
        store: Arc<dyn Store>,
        networks: Arc<Networks>,
        entropy: Arc<dyn Entropy>,
        references: &References,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            records: TenantRecords::new(store, references)?,
            networks,
            entropy,
        })
    }

    /// Makes a group on a network that the principal may read.
    pub async fn create(
        &self,
        principal: &Principal,
        new: &NewSecurityGroup,
    ) -> Result<Versioned<SecurityGroup>, RecordError> {
        for _ in 0..ATTEMPTS {
            let network = self.networks.get(principal, new.network).await?;
            principal.authorize(
                Verb::Create,
                SecurityGroup::RESOURCE,
                &network.value.scope(),
            )?;
            let open = self.networks.check_open(&network)?;
            self.check_room(new.network).await?;
            let Network {
                organization,
                project,
                ..
            } = network.value;
            let group = SecurityGroup {
                id: SecurityGroupId::from_uuid(new_uuid(&*self.entropy)?),
                network: new.network,
                organization,
                project,
                name: new.name.clone(),
                rules: new.rules.clone(),
            };
            let transaction = Transaction::new().check(open);
            if let Some(made) = self.records.make(transaction, group).await? {
                return Ok(made);
            }
        }
        Err(busy::<SecurityGroup>(&new.name))
    }

    /// A group.
    pub async fn get(
        &self,
        principal: &Principal,
        id: SecurityGroupId,
    ) -> Result<Versioned<SecurityGroup>, RecordError> {
        self.records.find(principal, Verb::Read, id).await
    }

    /// The groups that the principal may list.
    pub async fn list(
        &self,
        principal: &Principal,
        filter: &Filter,
    ) -> Result<RecordList<SecurityGroup>, RecordError> {
        let mut listed = self.records.list(principal, &filter.within).await?;
        let network = filter.network.as_ref();
        listed
            .items
            .retain(|found| network.is_none_or(|network| *network == found.value.network));
        Ok(listed)
    }

    /// Replaces the rules of a group.
    pub async fn set_rules(
        &self,
        principal: &Principal,
        id: SecurityGroupId,
        rules: &Rules,
    ) -> Result<Versioned<SecurityGroup>, RecordError> {
        for _ in 0..ATTEMPTS {
            let found = self.records.find(principal, Verb::Update, id).await?;
            let mut value = found.value.clone();
            value.rules = rules.clone();
            let table = &self.records.table;
            let transaction = table.replace(Transaction::new(), &found, &value)?;
            match self.records.store.commit(&transaction).await {
                Ok(revision) => {
                    let key = found.key;
                    return Ok(Versioned {
                        key,
                        revision,
                        value,
                    });
                }
                Err(error) if error.conflict().is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(busy::<SecurityGroup>(id))
    }

    /// Deletes a group that no server has.
    pub async fn delete(
        &self,
        principal: &Principal,
        id: SecurityGroupId,
    ) -> Result<(), RecordError> {
        self.records.delete(principal, id).await
    }

    /// The groups that a server on a network is to have: each once, each seen by the principal, each on that network.
    /// Answers them with the checks that belong into the server's transaction, so that none is deleted meanwhile.
    pub async fn for_server(
        &self,
        principal: &Principal,
        network: NetworkId,
        ids: &[SecurityGroupId],
    ) -> Result<(BTreeSet<SecurityGroupId>, Vec<Check>), RecordError> {
        let (mut groups, mut checks) = (BTreeSet::new(), Vec::new());
        for id in ids {
            let what = SecurityGroup::WHAT;
            if !groups.insert(*id) {
                let id = id.to_string();
                return Err(RecordError::Duplicate { what, id });
            }
            let found = self.get(principal, *id).await?;
            if found.value.network != network {
                return Err(RecordError::NotIn {
                    what,
                    id: id.to_string(),
                    wanted: format!("network {network}"),
                });
            }
            checks.push(Check::Exists(self.records.table.id(&found.key)));
        }
        Ok((groups, checks))
    }

    async fn check_room(&self, network: NetworkId) -> Result<(), RecordError> {
        let (_, index) = Reference::SECURITY_GROUP_NETWORK.names()?;
        let table = &self.records.table;
        let page = table.list(&table.by(&index, network.to_string())).await?;
        if page.items.len() + page.damaged.len() >= MAX_GROUPS {
            return Err(RecordError::TooMany {
                what: format!("network {network}"),
                of: "security groups",
                limit: MAX_GROUPS,
            });
        }
        Ok(())
    }
}

impl Document for SecurityGroup {
    const KIND: &'static str = SECURITY_GROUP_KIND;
}

impl TenantRecord for SecurityGroup {
    type Id = SecurityGroupId;
    const WHAT: &'static str = "security group";
    const RESOURCE: Resource = Resource::SecurityGroups;
    const TARGET: ReferenceTarget = ReferenceTarget::SecurityGroup;

    fn id(&self) -> SecurityGroupId {
        self.id
    }

    fn name(&self) -> &Name {
        &self.name
    }

    fn scope(&self) -> Scope {
        Scope::Project(self.organization, self.project)
    }
}
