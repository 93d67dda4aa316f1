//! SSH certificate authorities: their records, and the calls of tenants.

use std::sync::Arc;

use fleetwright_identity::{
    Ledger, OrganizationId, Principal, ProjectId, QuotaKind, Resource, Scope, Tenancy, Verb,
};
use fleetwright_runtime::entropy::{Entropy, new_uuid};
use fleetwright_store::{Check, Document, IndexValue, Invalid, Store, Versioned};
use serde::{Deserialize, Serialize};

use super::{
    AuthorityKey, RecordError,
    tenant_records::{TenantRecord, TenantRecords, read_calls},
};
use crate::{
    ids::SshAuthorityId,
    name::Name,
    references::{ReferenceTarget, References},
    schema::SSH_AUTHORITY_KIND,
};

/// An authority that signs the keys of users. A server that trusts it accepts their certificates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SshAuthority {
    /// The id.
    pub id: SshAuthorityId,
    /// The organization that owns it.
    pub organization: OrganizationId,
    /// The project that owns it. Servers of other projects cannot trust it.
    pub project: ProjectId,
    /// The name, unique in the project.
    pub name: Name,
    /// The public key. Its comment never reaches a machine.
    pub public_key: AuthorityKey,
}

/// A request for an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSshAuthority {
    /// The organization that will own it.
    pub organization: OrganizationId,
    /// The project that will own it.
    pub project: ProjectId,
    /// The name, unique in the project.
    pub name: Name,
    /// The public key.
    pub public_key: AuthorityKey,
}

/// The SSH certificate authorities of all projects. An authority never changes: for another key, create another authority.
///
/// ```
/// use fleetwright_identity::{OrganizationId, Principal, ProjectId};
/// use fleetwright_region::{
///     name::Name,
///     network::{AuthorityKey, NewSshAuthority, SshAuthorities},
/// };
///
/// async fn trust(
///     authorities: &SshAuthorities,
///     principal: &Principal,
///     (organization, project): (OrganizationId, ProjectId),
///     line: &str, // the content of the authority's .pub file
/// ) -> Result<(), Box<dyn std::error::Error>> {
///     let public_key = AuthorityKey::new(line)?;
///     let new = NewSshAuthority { organization, project, name: Name::new("ops")?, public_key };
///     let authority = authorities.create(principal, &new).await?.value;
///     println!("servers can trust {}", authority.id);
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct SshAuthorities {
    records: TenantRecords<SshAuthority>,
    entropy: Arc<dyn Entropy>,
}

impl SshAuthorities {
    /// Creates the service over a store.
    ///
    /// # Errors
    ///
    /// The store's schema lacks the kind, or does not match the references.
    pub fn new(
        store: Arc<dyn Store>,
        entropy: Arc<dyn Entropy>,
        references: &References,
    ) -> Result<Self, Invalid> {
        let records = TenantRecords::new(store, references)?;
        Ok(Self { records, entropy })
    }

    /// Sets the ledger, on the same store, that counts each authority as one of
    /// [`QuotaKind::ssh_authorities`](fleetwright_identity::QuotaKind::ssh_authorities), until it is deleted. Without a ledger, authorities are not limited.
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

    /// Creates an authority.
    ///
    /// # Errors
    ///
    /// The principal may not create authorities in the project, the project does not exist or is being deleted, the name is taken, or a
    /// quota would be exceeded.
    pub async fn create(
        &self,
        principal: &Principal,
        new: &NewSshAuthority,
    ) -> Result<Versioned<SshAuthority>, RecordError> {
        let scope = Scope::Project(new.organization, new.project);
        principal.authorize(Verb::Create, SshAuthority::RESOURCE, &scope)?;
        let authority = || {
            Ok(SshAuthority {
                id: SshAuthorityId::from_uuid(new_uuid(&*self.entropy)?),
                organization: new.organization,
                project: new.project,
                name: new.name.clone(),
                public_key: new.public_key.clone(),
            })
        };
        let created = self.records.create_in_project(principal, &scope, authority);
        created.await
    }

    /// Checks the authority of a server: visible to the principal, and of the server's project. Returns it with the check for
    /// the server's transaction, so that it is not deleted meanwhile.
    ///
    /// # Errors
    ///
    /// It is not visible, or belongs to another project.
    pub async fn for_server(
        &self,
        principal: &Principal,
        (organization, project): (OrganizationId, ProjectId),
        id: SshAuthorityId,
    ) -> Result<(SshAuthority, Check), RecordError> {
        let found = self.get(principal, id).await?;
        let scope = Scope::Project(organization, project);
        if found.value.scope() != scope {
            return Err(RecordError::NotIn {
                what: SshAuthority::WHAT,
                id: id.to_string(),
                place: scope.to_string(),
            });
        }
        let check = Check::Exists(self.records.table.id(&found.key));
        Ok((found.value, check))
    }

    /// Deletes an authority.
    ///
    /// # Errors
    ///
    /// [`InUse`](RecordError::InUse) if a server trusts it; or it is not visible, or the principal may not delete it.
    pub async fn delete(
        &self,
        principal: &Principal,
        id: SshAuthorityId,
    ) -> Result<(), RecordError> {
        self.records.delete(principal, id).await
    }
}

read_calls!(
    SshAuthorities,
    SshAuthority,
    SshAuthorityId,
    "an authority",
    "authorities"
);

impl Document for SshAuthority {
    const KIND: &'static str = SSH_AUTHORITY_KIND;
}

impl TenantRecord for SshAuthority {
    type Id = SshAuthorityId;
    const WHAT: &'static str = "SSH certificate authority";
    const RESOURCE: Resource = Resource::SshCertificateAuthorities;
    const TARGET: ReferenceTarget = ReferenceTarget::SshAuthority;

    fn quota() -> Option<QuotaKind> {
        Some(QuotaKind::ssh_authorities())
    }

    fn id(&self) -> SshAuthorityId {
        self.id
    }

    fn name(&self) -> &Name {
        &self.name
    }

    fn unique_name(&self) -> IndexValue {
        [
            self.organization.to_string(),
            self.project.to_string(),
            self.name.to_string(),
        ]
        .into()
    }

    fn scope(&self) -> Scope {
        Scope::Project(self.organization, self.project)
    }
}
