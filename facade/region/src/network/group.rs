//! Security groups: their records, and the calls of tenants.

use std::{collections::BTreeSet, sync::Arc};

use fleetwright_identity::{
    AuditOutcome, OrganizationId, Principal, ProjectId, Resource, Scope, Tenancy, Verb,
};
use fleetwright_runtime::entropy::{Entropy, new_uuid};
use fleetwright_store::{Check, Document, IndexValue, Invalid, Store, Transaction, Versioned};
use serde::{Deserialize, Serialize};

use super::{
    Filter, Network, Networks, RecordError, Rules,
    tenant_records::{ATTEMPTS, TenantRecord, TenantRecords, busy, read_calls},
};
use crate::{
    ids::{NetworkId, SecurityGroupId},
    name::Name,
    references::{Reference, ReferenceTarget, References},
    schema::SECURITY_GROUP_KIND,
};

/// The largest number of groups on a network.
const MAX_GROUPS: usize = 60;

/// A set of rules for the traffic of servers on a network. The rules are stored and not enforced: the region's mapping names a group of
/// the provider, whose rules the operator sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SecurityGroup {
    /// The id.
    pub id: SecurityGroupId,
    /// The network. Servers in other networks cannot have the group.
    pub network: NetworkId,
    /// The organization of the network.
    pub organization: OrganizationId,
    /// The project of the network.
    pub project: ProjectId,
    /// The name, unique on the network.
    pub name: Name,
    /// The allowed traffic.
    pub rules: Rules,
}

/// A request for a security group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSecurityGroup {
    /// The network.
    pub network: NetworkId,
    /// The name, unique on the network.
    pub name: Name,
    /// The allowed traffic. Empty: none.
    pub rules: Rules,
}

/// The security groups of all networks: at most 60 on each network.
///
/// ```
/// use fleetwright_identity::Principal;
/// use fleetwright_region::{
///     ids::NetworkId,
///     name::Name,
///     network::{Direction, NewSecurityGroup, Protocol, Rule, Rules, SecurityGroups},
/// };
///
/// async fn allow_ssh(
///     groups: &SecurityGroups,
///     principal: &Principal,
///     network: NetworkId,
/// ) -> Result<(), Box<dyn std::error::Error>> {
///     let office = "203.0.113.0/24".parse()?;
///     let ssh = Rule::new(Direction::Ingress, Protocol::Tcp, (Some(22), None), Some(office))?;
///     let new = NewSecurityGroup { network, name: Name::new("ssh")?, rules: Rules::new(vec![ssh])? };
///     let group = groups.create(principal, &new).await?.value;
///     // Close it again.
///     groups.set_rules(principal, group.id, &Rules::default()).await?;
///     groups.delete(principal, group.id).await?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct SecurityGroups {
    records: TenantRecords<SecurityGroup>,
    networks: Arc<Networks>,
    entropy: Arc<dyn Entropy>,
}

impl SecurityGroups {
    /// Creates the service over a store.
    ///
    /// # Errors
    ///
    /// The store's schema lacks the kind, or does not match the references.
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

    /// Adds an entry to the audit log for every change. Without it none is added. That the project exists follows from the network.
    #[must_use]
    pub fn with_tenancy(mut self, tenancy: Tenancy) -> Self {
        self.records.tenancy = Some(tenancy);
        self
    }

    /// Creates a group on a network.
    ///
    /// # Errors
    ///
    /// The network is not visible to the principal or is being deleted, the principal may not create groups, the name is
    /// taken, or the network has 60 groups.
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
            if let Some(created) = self.records.create(principal, transaction, group).await? {
                return Ok(created);
            }
        }
        Err(busy::<SecurityGroup>(&new.name))
    }

    /// Replaces the rules of a group.
    ///
    /// # Errors
    ///
    /// The group is not visible, or the principal may not update it.
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
            let transaction = self.records.add_entry(
                transaction,
                principal,
                Verb::Update,
                &value,
                AuditOutcome::Done,
            )?;
            match self.records.store.commit(&transaction).await {
                Ok(revision) => return Ok(found.replaced_by(revision, value)),
                Err(error) if error.conflict().is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(busy::<SecurityGroup>(id))
    }

    /// Deletes a group.
    ///
    /// # Errors
    ///
    /// [`InUse`](RecordError::InUse) if a server has it; or it is not visible, or the principal may not delete it.
    pub async fn delete(
        &self,
        principal: &Principal,
        id: SecurityGroupId,
    ) -> Result<(), RecordError> {
        self.records.delete(principal, id).await
    }

    /// Checks the groups of a server: each once, visible to the principal, and on the server's network. Returns them with the
    /// checks for the server's transaction, so that none is deleted meanwhile.
    ///
    /// # Errors
    ///
    /// A group is given twice, is not visible, or is on another network.
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
                    place: format!("network {network}"),
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

read_calls!(
    SecurityGroups,
    SecurityGroup,
    SecurityGroupId,
    "a group",
    "groups"
);

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

    fn unique_name(&self) -> IndexValue {
        [self.network.to_string(), self.name.to_string()].into()
    }

    fn scope(&self) -> Scope {
        Scope::Project(self.organization, self.project)
    }

    fn matches(&self, filter: &Filter) -> bool {
        filter.network.is_none_or(|network| network == self.network)
    }
}
