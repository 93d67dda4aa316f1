//! Organizations, projects, quotas, role bindings and the audit log.

use fleetwright_api::{
    AuditPage, Caller, Organization, OrganizationCreate, OrganizationPage, Project, ProjectCreate,
    ProjectPage, Quota, QuotaUpdate, RoleBinding, RoleBindingCreate, RoleBindingPage, RoleList,
    Scope,
};

use crate::{AuditFilter, Client, Error, call::Call, operation};

impl Client {
    /// One page of organizations, from `after` on. [`organizations`](Self::organizations) returns all of them.
    pub async fn list_organizations(&self, after: Option<&str>) -> Result<OrganizationPage, Error> {
        let call = Call::new(&operation::LIST_ORGANIZATIONS, &[])?;
        self.fetch(call.query("after", after)).await
    }

    /// Creates an organization.
    pub async fn create_organization(
        &self,
        new: &OrganizationCreate,
    ) -> Result<Organization, Error> {
        self.fetch(Call::new(&operation::CREATE_ORGANIZATION, &[])?.body(new)?)
            .await
    }

    /// Reads an organization.
    pub async fn read_organization(&self, id: &str) -> Result<Organization, Error> {
        self.fetch(Call::new(&operation::READ_ORGANIZATION, &[id])?)
            .await
    }

    /// Deletes an organization that has no projects.
    pub async fn delete_organization(&self, id: &str) -> Result<(), Error> {
        self.perform(Call::new(&operation::DELETE_ORGANIZATION, &[id])?)
            .await
    }

    /// One page of the projects of an organization, from `after` on. [`projects`](Self::projects) returns all of them.
    pub async fn list_projects(
        &self,
        organization: &str,
        after: Option<&str>,
    ) -> Result<ProjectPage, Error> {
        let call = Call::new(&operation::LIST_PROJECTS, &[organization])?;
        self.fetch(call.query("after", after)).await
    }

    /// Creates a project.
    pub async fn create_project(
        &self,
        organization: &str,
        new: &ProjectCreate,
    ) -> Result<Project, Error> {
        self.fetch(Call::new(&operation::CREATE_PROJECT, &[organization])?.body(new)?)
            .await
    }

    /// Reads a project.
    pub async fn read_project(&self, organization: &str, id: &str) -> Result<Project, Error> {
        self.fetch(Call::new(&operation::READ_PROJECT, &[organization, id])?)
            .await
    }

    /// Deletes a project that is empty.
    pub async fn delete_project(&self, organization: &str, id: &str) -> Result<(), Error> {
        self.perform(Call::new(&operation::DELETE_PROJECT, &[organization, id])?)
            .await
    }

    /// The quota of an organization and what it uses.
    pub async fn read_organization_quota(&self, organization: &str) -> Result<Quota, Error> {
        self.fetch(Call::new(
            &operation::READ_ORGANIZATION_QUOTA,
            &[organization],
        )?)
        .await
    }

    /// Sets limits of an organization.
    pub async fn update_organization_quota(
        &self,
        organization: &str,
        update: &QuotaUpdate,
    ) -> Result<Quota, Error> {
        self.fetch(Call::new(&operation::UPDATE_ORGANIZATION_QUOTA, &[organization])?.body(update)?)
            .await
    }

    /// The quota of a project and what it uses.
    pub async fn read_project_quota(
        &self,
        organization: &str,
        project: &str,
    ) -> Result<Quota, Error> {
        self.fetch(Call::new(
            &operation::READ_PROJECT_QUOTA,
            &[organization, project],
        )?)
        .await
    }

    /// Sets limits of a project.
    pub async fn update_project_quota(
        &self,
        organization: &str,
        project: &str,
        update: &QuotaUpdate,
    ) -> Result<Quota, Error> {
        self.fetch(
            Call::new(&operation::UPDATE_PROJECT_QUOTA, &[organization, project])?.body(update)?,
        )
        .await
    }

    /// One page of the role bindings of a scope, from `after` on. [`role_bindings`](Self::role_bindings) returns all of them.
    pub async fn list_role_bindings(
        &self,
        scope: &Scope,
        after: Option<&str>,
    ) -> Result<RoleBindingPage, Error> {
        let call = Call::new(&operation::LIST_ROLE_BINDINGS, &[])?
            .query("organizationId", scope.organization_id.as_ref())
            .query("projectId", scope.project_id.as_ref());
        self.fetch(call.query("after", after)).await
    }

    /// Gives a role to a user.
    pub async fn create_role_binding(&self, new: &RoleBindingCreate) -> Result<RoleBinding, Error> {
        self.fetch(Call::new(&operation::CREATE_ROLE_BINDING, &[])?.body(new)?)
            .await
    }

    /// Reads a role binding.
    pub async fn read_role_binding(&self, id: &str) -> Result<RoleBinding, Error> {
        self.fetch(Call::new(&operation::READ_ROLE_BINDING, &[id])?)
            .await
    }

    /// Takes a role from a user.
    pub async fn delete_role_binding(&self, id: &str) -> Result<(), Error> {
        self.perform(Call::new(&operation::DELETE_ROLE_BINDING, &[id])?)
            .await
    }

    /// The roles of the installation.
    pub async fn list_roles(&self) -> Result<RoleList, Error> {
        self.fetch(Call::new(&operation::LIST_ROLES, &[])?).await
    }

    /// Who the caller is, with its roles.
    pub async fn read_caller(&self) -> Result<Caller, Error> {
        self.fetch(Call::new(&operation::READ_CALLER, &[])?).await
    }

    /// One page of the audit log, from `after` on. [`audit_log`](Self::audit_log) returns all of it.
    pub async fn list_audit_log(
        &self,
        filter: &AuditFilter,
        after: Option<&str>,
    ) -> Result<AuditPage, Error> {
        let call = filter.add_to(Call::new(&operation::LIST_AUDIT_LOG, &[])?);
        self.fetch(call.query("after", after)).await
    }
}
