//! Creating, reading and listing organizations.

use fleetwright_runtime::entropy::new_uuid;
use fleetwright_store::{Key, Versioned};

use super::{ATTEMPTS, Organization, Tenancy, TenancyError, TenantState, record, taken};
use crate::{
    AuditEvent, GrantedScopes, ListPage, OrganizationId, PageRequest, Principal, Resource, Scope,
    TenantName, Verb,
    page::{Source, page},
};

const WHAT: &str = "organization";

/// A request for an organization.
///
/// ```
/// use fleetwright_identity::{NewOrganization, TenantName};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let id = "5ba1e150-0000-4000-8000-000000000001".parse()?;
/// let repeatable = NewOrganization::new(TenantName::new("acme")?).with_id(id);
/// assert_eq!(repeatable.id, Some(id));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewOrganization {
    /// The name, unique in the installation.
    pub name: TenantName,
    /// The id. Default: a random one. A request with an id can be repeated: it returns the organization that it created.
    pub id: Option<OrganizationId>,
}

impl NewOrganization {
    /// Requests an organization with a random id.
    pub fn new(name: TenantName) -> Self {
        Self { name, id: None }
    }

    /// Sets the id, for instance that of the same organization in another system.
    #[must_use]
    pub fn with_id(mut self, id: OrganizationId) -> Self {
        self.id = Some(id);
        self
    }
}

impl Tenancy {
    /// Creates an organization. Only roles of the platform can have the permission.
    ///
    /// # Errors
    ///
    /// The caller may not create organizations, or the name or the id is taken. A repeated request with the same id and name returns the
    /// existing organization.
    pub async fn create_organization(
        &self,
        principal: &Principal,
        new: &NewOrganization,
    ) -> Result<Organization, TenancyError> {
        principal.authorize(Verb::Create, Resource::Organizations, &Scope::Global)?;
        for _ in 0..ATTEMPTS {
            let id = match new.id {
                Some(id) => id,
                None => new_uuid(self.entropy())?.into(),
            };
            let key = record::organization_key(id)?;
            if let Some(found) = self.organizations.get(&key).await? {
                return repeated(found, new);
            }
            let organization = Organization {
                id,
                name: new.name.clone(),
                created_at: self.clock().now(),
                created_by: principal.actor().clone(),
                state: TenantState::Open,
            };
            let scope = Scope::Organization(id);
            let event = AuditEvent::new(
                principal.actor(),
                Verb::Create,
                Resource::Organizations,
                id,
                scope,
            );
            let transaction = self.begin(&Scope::Global).await?;
            let created = self
                .organizations
                .create(transaction, &key, &organization)?;
            match self.commit(created, &event.named(&new.name)).await {
                Ok(Some(())) => return Ok(organization),
                Ok(None) => {}
                Err(error) => match taken(&error) {
                    Some(by) => {
                        return Err(TenancyError::NameTaken {
                            what: WHAT,
                            name: new.name.clone(),
                            id: by.to_string(),
                        });
                    }
                    None => return Err(error.into()),
                },
            }
        }
        Err(busy(&new.name))
    }

    /// Returns an organization.
    ///
    /// # Errors
    ///
    /// It does not exist, or is not visible to the caller.
    pub async fn organization(
        &self,
        principal: &Principal,
        id: OrganizationId,
    ) -> Result<Organization, TenancyError> {
        let found = self.find_organization(principal, Verb::Read, id).await?;
        Ok(found.value)
    }

    /// Returns a page of the organizations that the caller may list, in the order of their ids.
    ///
    /// # Errors
    ///
    /// The caller may not list organizations anywhere, or the store fails.
    pub async fn organizations(
        &self,
        principal: &Principal,
        request: &PageRequest,
    ) -> Result<ListPage<Organization>, TenancyError> {
        let source = match principal.scopes_for(Verb::List, Resource::Organizations)? {
            GrantedScopes::Everywhere => Source::Range(self.organizations.all()),
            GrantedScopes::Within(scopes) => {
                let mut keys = Vec::<Key>::new();
                for scope in scopes {
                    // A permission in a project does not apply to its organization.
                    if let Scope::Organization(organization) = scope {
                        keys.push(record::organization_key(organization)?);
                    }
                }
                Source::Keys(keys)
            }
        };
        Ok(page(&self.organizations, self.store.schema(), source, request).await?)
    }

    pub(super) async fn find_organization(
        &self,
        principal: &Principal,
        verb: Verb,
        id: OrganizationId,
    ) -> Result<Versioned<Organization>, TenancyError> {
        let scope = Scope::Organization(id);
        let record = (&self.organizations, record::organization_key(id)?);
        self.find(principal, verb, record, &scope, id.to_string())
            .await
    }
}

/// Returns the existing organization if the request is a repetition of the one that created it.
fn repeated(
    found: Versioned<Organization>,
    new: &NewOrganization,
) -> Result<Organization, TenancyError> {
    let Organization {
        id, name, state, ..
    } = &found.value;
    let id = id.to_string();
    match state {
        TenantState::Deleting => Err(TenancyError::Deleting { what: WHAT, id }),
        TenantState::Open if *name == new.name => Ok(found.value),
        TenantState::Open => Err(TenancyError::IdTaken { what: WHAT, id }),
    }
}

fn busy(name: &TenantName) -> TenancyError {
    TenancyError::Busy {
        what: WHAT,
        id: name.to_string(),
    }
}
