//! SSH certificate authorities, for those who may.

use std::sync::Arc;

use fleetwright_identity::{OrganizationId, Principal, ProjectId, Resource, Scope, Verb};
use fleetwright_runtime::entropy::{Entropy, new_uuid};
use fleetwright_store::{Check, Document, Invalid, Store, Transaction, Versioned};
use serde::{Deserialize, Serialize};

use super::{
    AuthorityKey, Filter, RecordError, RecordList,
    tenant_records::{ATTEMPTS, TenantRecord, TenantRecords, busy},
};
use crate::{
    ids::SshAuthorityId,
    name::Name,
    references::{ReferenceTarget, References},
    schema::SSH_AUTHORITY_KIND,
};

/// Who signs the keys of those who log in to the servers of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SshAuthority {
    /// What it is found by.
    pub id: SshAuthorityId,
    /// Whose it is.
    pub organization: OrganizationId,
    /// In which project. Servers of other projects do not trust it.
    pub project: ProjectId,
    /// What it is called: one in its project.
    pub name: Name,
    /// Its public key.
    pub public_key: AuthorityKey,
}

/// An authority that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSshAuthority {
    /// Whose it is to be.
    pub organization: OrganizationId,
    /// In which project.
    pub project: ProjectId,
    /// What it is to be called.
    pub name: Name,
    /// Its public key.
    pub public_key: AuthorityKey,
}

/// The SSH certificate authorities of all projects. One does not change: another key is another authority.
#[derive(Debug)]
pub struct SshAuthorities {
    records: TenantRecords<SshAuthority>,
    entropy: Arc<dyn Entropy>,
}

impl SshAuthorities {
    /// The authorities of a store. Fails if its schema lacks them, or does not match the references.
    pub fn new(
        store: Arc<dyn Store>,
        entropy: Arc<dyn Entropy>,
        references: &References,
    ) -> Result<Self, Invalid> {
        let records = TenantRecords::new(store, references)?;
        Ok(Self { records, entropy })
    }

    /// Makes an authority.
    pub async fn create(
        &self,
        principal: &Principal,
        new: &NewSshAuthority,
    ) -> Result<Versioned<SshAuthority>, RecordError> {
        let scope = Scope::Project(new.organization, new.project);
        principal.authorize(Verb::Create, SshAuthority::RESOURCE, &scope)?;
        for _ in 0..ATTEMPTS {
            let authority = SshAuthority {
                id: SshAuthorityId::from_uuid(new_uuid(&*self.entropy)?),
                organization: new.organization,
                project: new.project,
                name: new.name.clone(),
                public_key: new.public_key.clone(),
            };
            if let Some(made) = self.records.make(Transaction::new(), authority).await? {
                return Ok(made);
            }
        }
        Err(busy::<SshAuthority>(&new.name))
    }

    /// An authority.
    pub async fn get(
        &self,
        principal: &Principal,
        id: SshAuthorityId,
    ) -> Result<Versioned<SshAuthority>, RecordError> {
        self.records.find(principal, Verb::Read, id).await
    }

    /// The authorities that the principal may list.
    pub async fn list(
        &self,
        principal: &Principal,
        filter: &Filter,
    ) -> Result<RecordList<SshAuthority>, RecordError> {
        self.records.list(principal, &filter.within).await
    }

    /// The authority that a server of a project is to trust: seen by the principal and of that very project. Answers
    /// it with the check that belongs into the server's transaction, so that it is not deleted meanwhile.
    pub async fn for_server(
        &self,
        principal: &Principal,
        (organization, project): (OrganizationId, ProjectId),
        id: SshAuthorityId,
    ) -> Result<(SshAuthority, Check), RecordError> {
        let found = self.get(principal, id).await?;
        let wanted = Scope::Project(organization, project);
        if found.value.scope() != wanted {
            return Err(RecordError::NotIn {
                what: SshAuthority::WHAT,
                id: id.to_string(),
                wanted: wanted.to_string(),
            });
        }
        let check = Check::Exists(self.records.table.id(&found.key));
        Ok((found.value, check))
    }

    /// Deletes an authority that no server trusts.
    pub async fn delete(
        &self,
        principal: &Principal,
        id: SshAuthorityId,
    ) -> Result<(), RecordError> {
        self.records.delete(principal, id).await
    }
}

impl Document for SshAuthority {
    const KIND: &'static str = SSH_AUTHORITY_KIND;
}

impl TenantRecord for SshAuthority {
    type Id = SshAuthorityId;
    const WHAT: &'static str = "SSH certificate authority";
    const RESOURCE: Resource = Resource::SshCertificateAuthorities;
    const TARGET: ReferenceTarget = ReferenceTarget::SshAuthority;

    fn id(&self) -> SshAuthorityId {
        self.id
    }

    fn name(&self) -> &Name {
        &self.name
    }

    fn scope(&self) -> Scope {
        Scope::Project(self.organization, self.project)
    }
}
