//! Where the catalog and the regions of a façade come from, and reading them.

use std::sync::Arc;

use fleetwright::InstanceProvisioner;
use fleetwright_identity::{ActorName, Permission, Principal, Tenancy};
use fleetwright_region::{
    catalog::CatalogService,
    ids::RegionId,
    mapping::{LaunchPlanner, RegionPlanner},
};
use fleetwright_store::{Invalid, Store};

use super::{FacadeError, check::check_provider};

/// Where the catalog comes from.
pub(super) enum CatalogSource {
    Text(String),
    Shared(Arc<CatalogService>),
}

/// A region as the builder gets it.
pub(super) struct RegionSource {
    pub(super) provisioner: Arc<dyn InstanceProvisioner>,
    pub(super) planner: PlannerSource,
}

/// What plans the launches of a region.
pub(super) enum PlannerSource {
    Mapping(String),
    Planner(RegionId, Arc<dyn LaunchPlanner>),
}

/// Opens the catalog and loads the text, if one is given.
pub(super) async fn open_catalog(
    store: &Arc<dyn Store>,
    source: Option<CatalogSource>,
    tenancy: &Tenancy,
) -> Result<Arc<CatalogService>, FacadeError> {
    let text = match source {
        Some(CatalogSource::Shared(catalog)) => {
            catalog.set_tenancy(tenancy.clone());
            return Ok(catalog);
        }
        Some(CatalogSource::Text(text)) => Some(text),
        None => None,
    };
    let (catalog, damaged) = CatalogService::open(Arc::clone(store)).await?;
    catalog.set_tenancy(tenancy.clone());
    for damaged in damaged {
        tracing::warn!(record = %damaged.id, reason = %damaged.reason, "an entry of the catalog cannot be read");
    }
    if let Some(text) = text {
        catalog.load(&text).await?;
    }
    let name = ActorName::new("facade").map_err(|name| Invalid::new(name.to_string()))?;
    let reader = Principal::service(name, Permission::all());
    // Neither is refused to a principal that has every permission. A catalog with flavors has images, unless they cannot be read.
    let no_flavors = catalog.flavors(&reader).is_ok_and(|found| found.is_empty());
    let no_images = catalog.images(&reader).is_ok_and(|found| found.is_empty());
    if no_flavors || no_images {
        return Err(FacadeError::MissingCatalog);
    }
    Ok(Arc::new(catalog))
}

/// A region whose id and planner are known.
pub(super) struct Planned {
    pub(super) id: RegionId,
    pub(super) provisioner: Arc<dyn InstanceProvisioner>,
    pub(super) planner: Arc<dyn LaunchPlanner>,
}

/// Reads the mapping of every region.
pub(super) fn plan_regions(
    sources: Vec<RegionSource>,
    catalog: &Arc<CatalogService>,
) -> Result<Vec<Planned>, FacadeError> {
    let mut planned: Vec<Planned> = Vec::new();
    for (number, source) in (1..).zip(sources) {
        let (id, planner): (_, Arc<dyn LaunchPlanner>) = match source.planner {
            PlannerSource::Planner(id, planner) => (id, planner),
            PlannerSource::Mapping(text) => {
                let planner = RegionPlanner::new(Arc::clone(catalog), &text)
                    .map_err(|source| FacadeError::Mapping { number, source })?;
                check_provider(&planner.mapping(), &*source.provisioner)?;
                (planner.mapping().region.clone(), Arc::new(planner))
            }
        };
        if planned.iter().any(|region| region.id == id) {
            return Err(FacadeError::DuplicateRegion(id));
        }
        planned.push(Planned {
            id,
            provisioner: source.provisioner,
            planner,
        });
    }
    Ok(planned)
}
