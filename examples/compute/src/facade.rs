//! The façade over one SQLite file, as the fleet process and the tenant's process open it.
//!
//! The two processes share the file and nothing else.

use std::{fs, io, path::Path, sync::Arc, time::Duration};

use fleetwright_compute::{Facade, prelude::*};
use fleetwright_region::{
    catalog::CatalogService,
    mapping::{RegionMapping, RegionPlanner},
    monitor::Policy,
};
use fleetwright_store_sqlite::{SqliteOptions, SqliteStore};

use crate::{Failure, cloud};

/// The name of the SQLite file.
pub(crate) const DATABASE: &str = "fleet.db";
const CATALOG: (&str, &str) = ("catalog.toml", include_str!("../catalog.toml"));
const MAPPING: (&str, &str) = ("mapping.toml", include_str!("../mapping.toml"));

/// Writes the catalog and the mapping into a folder, unless it has its own, and loads the catalog. Returns the loaded changes.
pub(crate) async fn prepare(folder: &Path) -> Result<Vec<String>, Failure> {
    for (name, text) in [CATALOG, MAPPING] {
        let path = folder.join(name);
        if !path.exists() {
            fs::write(&path, text).map_err(|error| unusable(&path, &error))?;
        }
    }
    let (catalog, _) = CatalogService::open(open_store(folder).await?).await?;
    let changes = catalog.load_file(&folder.join(CATALOG.0)).await?;
    Ok(changes.iter().map(ToString::to_string).collect())
}

/// Opens the façade in a prepared folder, on the emulated EC2 at `endpoint`. Its catalog is the one that the store has.
pub(crate) async fn open(folder: &Path, endpoint: &str) -> Result<Facade, Failure> {
    let mut policy = Policy::default();
    policy.tick = Duration::from_millis(50);
    let facade = Facade::builder()
        .store(open_store(folder).await?)
        .region(
            Arc::new(cloud::provisioner(endpoint)?),
            mapping_text(folder)?,
        )
        .without_server_keys()
        .monitor_policy(policy)
        .build()
        .await?;
    Ok(facade)
}

/// The native names of the folder's mapping.
pub(crate) fn mapping(folder: &Path, facade: &Facade) -> Result<Arc<RegionMapping>, Failure> {
    let planner = RegionPlanner::new(Arc::clone(&facade.catalog), &mapping_text(folder)?)?;
    Ok(planner.mapping())
}

async fn open_store(folder: &Path) -> Result<Arc<dyn Store>, Failure> {
    // Two processes have the file open: each polls for the other's commits.
    let options = SqliteOptions::default().poll_every(Duration::from_millis(10));
    let database = folder.join(DATABASE);
    let store = SqliteStore::open_with(database, Facade::schema()?, options).await?;
    Ok(Arc::new(store))
}

fn mapping_text(folder: &Path) -> Result<String, Failure> {
    let path = folder.join(MAPPING.0);
    Ok(fs::read_to_string(&path).map_err(|error| unusable(&path, &error))?)
}

fn unusable(path: &Path, error: &io::Error) -> String {
    format!("{} cannot be used: {error}", path.display())
}
