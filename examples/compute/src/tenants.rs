//! The people of the story: an operator, and a tenant with an organization and a project.

use fleetwright_compute::{Facade, prelude::*};

use crate::{Failure, story::Story};

/// The people, and the project in which they work.
pub(crate) struct People {
    pub(crate) operator: Principal,
    pub(crate) ada: Principal,
    pub(crate) tenant: (OrganizationId, ProjectId),
}

/// The operator names Olga as the first administrator. She creates an organization with a project, and binds a role in it to Ada.
pub(crate) async fn create(facade: &Facade) -> Result<People, Failure> {
    let tenancy = &facade.tenancy;
    let olga = Actor::User(ActorName::new("olga")?);
    tenancy.bootstrap(&olga).await?;
    let olga = tenancy.principal(&olga).await?.principal;

    let new = NewOrganization::new(TenantName::new("acme")?);
    let organization = tenancy.create_organization(&olga, &new).await?.id;
    let new = NewProject::new(organization, TenantName::new("shop")?);
    let project = tenancy.create_project(&olga, &new).await?.id;

    let ada = Actor::User(ActorName::new("ada")?);
    let scope = Scope::Project(organization, project);
    let binding = NewRoleBinding::new(ada.clone(), RoleName::new("project-user")?, scope);
    tenancy.bind(&olga, &binding).await?;
    println!("tenants: olga made ada a project-user of project shop of organization acme");
    Ok(People {
        operator: olga,
        ada: tenancy.principal(&ada).await?.principal,
        tenant: (organization, project),
    })
}

impl Story<'_> {
    /// Olga deletes the project and the organization, which are empty. What happened in them stays in the audit log.
    pub(crate) async fn leave(&self) -> Result<(), Failure> {
        let (organization, project) = self.tenant;
        let tenancy = &self.facade.tenancy;
        tenancy
            .delete_project(&self.operator, organization, project)
            .await?;
        tenancy
            .delete_organization(&self.operator, organization)
            .await?;
        let query = AuditQuery::within(Scope::Organization(organization));
        let query = query.page(PageRequest::default().limit(500));
        let entries = self.facade.audit.list(&self.operator, &query).await?.items;
        let hers = entries
            .iter()
            .filter(|entry| entry.actor == *self.ada.actor());
        println!(
            "audit: the organization is gone, and {} entries stay: {} about ada's requests",
            entries.len(),
            hers.count()
        );
        Ok(())
    }
}
