//! The sample: a simulated cloud, a catalog, an organization with a project and a network, so that the first instance is one request away.

use fleetwright_compute::{
    Facade,
    prelude::{
        NewNetwork, NewOrganization, NewProject, OrganizationId, PageRequest, ProjectId, TenantName,
    },
};
use fleetwright_identity::{Actor, ActorName, Principal};
use fleetwright_region::{ids::NetworkId, network::Filter};

use crate::error::ServerError;

pub(crate) const CATALOG: &str = include_str!("catalog.toml");
pub(crate) const MAPPING: &str = include_str!("mapping.toml");
/// Who administers the sample.
pub(crate) const ADMINISTRATOR: &str = "olga";

/// What the sample has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) organization: OrganizationId,
    pub(crate) project: ProjectId,
    pub(crate) network: NetworkId,
}

/// Creates what the sample has, or finds it.
pub(crate) async fn prepare(facade: &Facade) -> Result<Sample, ServerError> {
    let olga = Actor::User(ActorName::new(ADMINISTRATOR).map_err(ServerError::internal)?);
    let olga = facade
        .tenancy
        .principal(&olga)
        .await
        .map_err(ServerError::internal)?
        .principal;
    find_or_create(facade, &olga)
        .await
        .map_err(ServerError::internal)
}

async fn find_or_create(
    facade: &Facade,
    olga: &Principal,
) -> Result<Sample, Box<dyn std::error::Error + Send + Sync>> {
    let tenancy = &facade.tenancy;
    let (acme, shop) = (TenantName::new("acme")?, TenantName::new("shop")?);
    let request = PageRequest::default();
    let found = tenancy.organizations(olga, &request).await?.items;
    let organization = match found.iter().find(|organization| organization.name == acme) {
        Some(found) => found.id,
        None => {
            tenancy
                .create_organization(olga, &NewOrganization::new(acme))
                .await?
                .id
        }
    };
    let found = tenancy.projects(olga, organization, &request).await?.items;
    let project = match found.iter().find(|project| project.name == shop) {
        Some(found) => found.id,
        None => {
            tenancy
                .create_project(olga, &NewProject::new(organization, shop))
                .await?
                .id
        }
    };
    let scope = fleetwright_identity::Scope::Project(organization, project);
    let found = facade
        .networks
        .list(olga, &Filter::within(scope))
        .await?
        .items;
    let network = match found.first() {
        Some(found) => found.value.id,
        None => {
            let new = NewNetwork {
                organization,
                project,
                region: "north".parse()?,
                name: "blue".parse()?,
                prefix: "10.0.0.0/16".parse()?,
                dns: Vec::new(),
            };
            facade.networks.create(olga, &new).await?.value.id
        }
    };
    Ok(Sample {
        organization,
        project,
        network,
    })
}

/// The text that the program prints: a token, requests that can be pasted, and pages.
pub(crate) fn greeting(address: &str, token: &str, sample: &Sample) -> String {
    let Sample {
        organization,
        project,
        network,
    } = sample;
    format!(
        r#"fleetwright-server is ready at {address}

The token of {ADMINISTRATOR}, who may do everything, is valid until the program ends:

export TOKEN={token}

Create an instance, wait until it runs, and list all:

curl -sS -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' {address}/api/v2/instances -d '{{"metadata":{{"name":"web-1"}},"spec":{{"organizationId":"{organization}","projectId":"{project}","networkId":"{network}","flavorId":"standard-2","imageId":"debian-13"}}}}'
curl -sS -H "Authorization: Bearer $TOKEN" '{address}/api/v2/instances/{id}?waitFor=running'
curl -sS -H "Authorization: Bearer $TOKEN" {address}/api/v2/instances

The console, where the token signs in: {address}/console
Every operation: {address}/docs
The OpenAPI document: {address}/openapi.json
"#,
        id = fleetwright_compute::instance::InstanceId::derive(*network, &web_1(),),
    )
}

#[expect(
    clippy::expect_used,
    reason = "the text is a constant and a test prints it"
)]
fn web_1() -> fleetwright_region::name::Name {
    "web-1".parse().expect("web-1 is a name")
}
