//! Showing records to people, also those that a newer version wrote, as far as they are understood.
//!
//! Nothing is decided on what is shown here: a binding of a newer version grants nothing, and nothing is created in a project of one.

use fleetwright_store::{Key, Partial, StoreError, Table};

use super::{
    Organization, Project, RoleBinding, RoleBindingId, Tenancy, TenancyError,
    binding::missing,
    record::{self, Closable},
};
use crate::{Access, OrganizationId, Principal, ProjectId, Resource, Scope, Verb};

impl Tenancy {
    /// Returns what can be shown of an organization: all of it, or as much as this version understands if a newer one wrote it. Then the
    /// result names the places that are not shown, and [`organization`](Self::organization) fails.
    ///
    /// # Errors
    ///
    /// As for [`organization`](Self::organization), if nothing can be shown.
    pub async fn show_organization(
        &self,
        principal: &Principal,
        id: OrganizationId,
    ) -> Result<Partial<Organization>, TenancyError> {
        let record = (&self.organizations, record::organization_key(id)?);
        let scope = Scope::Organization(id);
        self.show(principal, record, &scope, id.to_string()).await
    }

    /// Returns what can be shown of a project, as [`show_organization`](Self::show_organization) does.
    ///
    /// # Errors
    ///
    /// As for [`project`](Self::project), if nothing can be shown.
    pub async fn show_project(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        id: ProjectId,
    ) -> Result<Partial<Project>, TenancyError> {
        let record = (&self.projects, record::project_key(organization, id)?);
        let scope = Scope::Project(organization, id);
        self.show(principal, record, &scope, id.to_string()).await
    }

    /// Returns what can be shown of a binding, as [`show_organization`](Self::show_organization) does. A binding whose scope this version
    /// does not understand is visible only to those who read every binding.
    ///
    /// # Errors
    ///
    /// As for [`binding`](Self::binding), if nothing can be shown.
    pub async fn show_binding(
        &self,
        principal: &Principal,
        id: RoleBindingId,
    ) -> Result<Partial<RoleBinding>, TenancyError> {
        let may_read = |scope: &Scope| {
            let read = principal.authorize(Verb::Read, Resource::RoleBindings, scope);
            read.is_ok()
        };
        match self.bindings.show(&id.key()?).await {
            Ok(Some(shown)) => {
                let scope = match shown.shows("scope") {
                    true => shown.value.scope(),
                    false => Scope::Global,
                };
                may_read(&scope).then_some(shown).ok_or_else(|| missing(id))
            }
            Ok(None) => Err(missing(id)),
            Err(StoreError::Corrupt { .. } | StoreError::Incompatible { .. })
                if !may_read(&Scope::Global) =>
            {
                Err(missing(id))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn show<T: Closable>(
        &self,
        principal: &Principal,
        (table, key): (&Table<T>, Key),
        scope: &Scope,
        id: String,
    ) -> Result<Partial<T>, TenancyError> {
        let missing = TenancyError::NotFound { what: T::KIND, id };
        match principal.access(Verb::Read, T::RESOURCE, scope) {
            Access::Allowed => table.show(&key).await?.ok_or(missing),
            Access::NotVisible => Err(missing),
            Access::Refused(refused) => Err(refused.into()),
        }
    }
}
