//! Creating, reading and listing projects.

use fleetwright_runtime::entropy::new_uuid;
use fleetwright_store::{IndexName, Versioned};

use super::{ATTEMPTS, Project, Tenancy, TenancyError, TenantState, record, taken};
use crate::{
    AuditEvent, GrantedScopes, ListPage, OrganizationId, PageRequest, Principal, ProjectId,
    Resource, Scope, TenantName, Verb,
    page::{Source, page},
};

const WHAT: &str = "project";

/// A request for a project.
///
/// ```
/// use fleetwright_identity::{NewProject, TenantName};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let acme = "5ba1e150-0000-4000-8000-000000000001".parse()?;
/// let new = NewProject::new(acme, TenantName::new("web")?);
/// assert_eq!(new.id, None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewProject {
    /// The organization.
    pub organization: OrganizationId,
    /// The name, unique in the organization.
    pub name: TenantName,
    /// The id. Default: a random one. A request with an id can be repeated: it returns the project that it created.
    pub id: Option<ProjectId>,
}

impl NewProject {
    /// Requests a project with a random id.
    pub fn new(organization: OrganizationId, name: TenantName) -> Self {
        Self {
            organization,
            name,
            id: None,
        }
    }

    /// Sets the id, for instance that of the same project in another system.
    #[must_use]
    pub fn with_id(mut self, id: ProjectId) -> Self {
        self.id = Some(id);
        self
    }
}

impl Tenancy {
    /// Creates a project.
    ///
    /// # Errors
    ///
    /// The caller may not create projects in the organization, the organization does not exist or is being deleted, or the name or the id
    /// is taken. A repeated request with the same id and name returns the existing project.
    pub async fn create_project(
        &self,
        principal: &Principal,
        new: &NewProject,
    ) -> Result<Project, TenancyError> {
        let within = Scope::Organization(new.organization);
        principal.authorize(Verb::Create, Resource::Projects, &within)?;
        for _ in 0..ATTEMPTS {
            let transaction = self.begin(&within).await?;
            let id = match new.id {
                Some(id) => id,
                None => new_uuid(self.entropy())?.into(),
            };
            let key = record::project_key(new.organization, id)?;
            if let Some(found) = self.projects.get(&key).await? {
                return repeated(found, new);
            }
            let project = Project {
                id,
                organization: new.organization,
                name: new.name.clone(),
                created_at: self.clock().now(),
                created_by: principal.actor().clone(),
                state: TenantState::Open,
            };
            let actor = principal.actor();
            let event =
                AuditEvent::new(actor, Verb::Create, Resource::Projects, id, project.scope());
            let created = self.projects.create(transaction, &key, &project)?;
            match self.commit(created, &event.named(&new.name)).await {
                Ok(Some(())) => return Ok(project),
                Ok(None) => {}
                Err(error) => match taken(&error) {
                    Some(by) => {
                        let id = by.as_str().rsplit('/').next().unwrap_or_default();
                        return Err(TenancyError::NameTaken {
                            what: WHAT,
                            name: new.name.clone(),
                            id: id.to_owned(),
                        });
                    }
                    None => return Err(error.into()),
                },
            }
        }
        Err(TenancyError::Busy {
            what: WHAT,
            id: new.name.to_string(),
        })
    }

    /// Returns a project.
    ///
    /// # Errors
    ///
    /// It does not exist, or is not visible to the caller.
    pub async fn project(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        id: ProjectId,
    ) -> Result<Project, TenancyError> {
        let found = self
            .find_project(principal, Verb::Read, organization, id)
            .await?;
        Ok(found.value)
    }

    /// Returns a page of the projects of an organization that the caller may list, in the order of their ids.
    ///
    /// # Errors
    ///
    /// The caller may not list projects anywhere in the organization, whether it exists or not; or the store fails.
    pub async fn projects(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        request: &PageRequest,
    ) -> Result<ListPage<Project>, TenancyError> {
        let within = Scope::Organization(organization);
        principal.authorize_within(Verb::List, Resource::Projects, &within)?;
        let granted = principal.scopes_for(Verb::List, Resource::Projects)?;
        let source = match granted {
            granted if granted.covers(&within) => {
                let index = IndexName::new(record::PROJECTS_INDEX)?;
                Source::Range(self.projects.by(&index, organization.to_string()))
            }
            // Never: this covers every scope.
            GrantedScopes::Everywhere => Source::Keys(Vec::new()),
            GrantedScopes::Within(scopes) => {
                let mut keys = Vec::new();
                for scope in scopes {
                    match scope {
                        Scope::Project(owner, project) if owner == organization => {
                            keys.push(record::project_key(owner, project)?);
                        }
                        Scope::Project(..) | Scope::Organization(_) | Scope::Global => {}
                    }
                }
                Source::Keys(keys)
            }
        };
        Ok(page(&self.projects, self.store.schema(), source, request).await?)
    }

    pub(super) async fn find_project(
        &self,
        principal: &Principal,
        verb: Verb,
        organization: OrganizationId,
        id: ProjectId,
    ) -> Result<Versioned<Project>, TenancyError> {
        let scope = Scope::Project(organization, id);
        let record = (&self.projects, record::project_key(organization, id)?);
        self.find(principal, verb, record, &scope, id.to_string())
            .await
    }
}

/// Returns the existing project if the request is a repetition of the one that created it.
fn repeated(found: Versioned<Project>, new: &NewProject) -> Result<Project, TenancyError> {
    let id = found.value.id.to_string();
    match found.value.state {
        TenantState::Deleting => Err(TenancyError::Deleting { what: WHAT, id }),
        TenantState::Open if found.value.name == new.name => Ok(found.value),
        TenantState::Open => Err(TenancyError::IdTaken { what: WHAT, id }),
    }
}
