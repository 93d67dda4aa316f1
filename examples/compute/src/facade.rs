//! The façade over one SQLite file: what the fleet process and the one who asks in the tenant's name have in common.
//!
//! They meet in the file and in nothing else.

use std::{collections::BTreeSet, fs, io, path::Path, sync::Arc, time::Duration};

use fleetwright::OptionalVerb;
use fleetwright_compute::{
    schema,
    service::{InstanceDependencies, Instances},
};
use fleetwright_identity::{Ledger, QuotaKinds};
use fleetwright_region::{
    catalog::CatalogService,
    ids::RegionId,
    mapping::RegionPlanner,
    network::{Networks, SecurityGroups, SshAuthorities},
    secret::SshKeys,
    server::{DependencyChecker, Servers, TenantDependencies},
};
use fleetwright_runtime::{
    clock::{Clock, SystemClock},
    entropy::OsEntropy,
};
use fleetwright_store::{Schema, Store};
use fleetwright_store_sqlite::{SqliteOptions, SqliteStore};

use crate::Failure;

/// The file that everything is kept in.
pub(crate) const DATABASE: &str = "fleet.db";
const CATALOG: (&str, &str) = ("catalog.toml", include_str!("../catalog.toml"));
const MAPPING: (&str, &str) = ("mapping.toml", include_str!("../mapping.toml"));

/// The parts of a façade.
pub(crate) struct Facade {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) region: RegionId,
    pub(crate) planner: Arc<RegionPlanner>,
    pub(crate) networks: Arc<Networks>,
    pub(crate) servers: Servers,
    pub(crate) ledger: Ledger,
    pub(crate) instances: Instances,
}

/// Puts the catalog and the mapping into a folder, unless it has its own, and loads the catalog. Tells what that changed.
pub(crate) async fn prepare(folder: &Path) -> Result<Vec<String>, Failure> {
    for (name, text) in [CATALOG, MAPPING] {
        let path = folder.join(name);
        if !path.exists() {
            fs::write(&path, text).map_err(|error| unusable(&path, &error))?;
        }
    }
    let (catalog, _) = CatalogService::open(open(folder).await?).await?;
    let changes = catalog.load_file(&folder.join(CATALOG.0)).await?;
    Ok(changes.iter().map(ToString::to_string).collect())
}

async fn open(folder: &Path) -> Result<Arc<dyn Store>, Failure> {
    let schema = schema::add_all_kinds(Schema::builder()).build()?;
    // Two processes have it open: each looks for what the other has written.
    let options = SqliteOptions::default().poll_every(Duration::from_millis(10));
    let store = SqliteStore::open_with(folder.join(DATABASE), schema, options).await?;
    Ok(Arc::new(store))
}

fn unusable(path: &Path, error: &io::Error) -> String {
    format!("{} cannot be used: {error}", path.display())
}

impl Facade {
    /// As a process opens it that comes to a folder which is prepared.
    pub(crate) async fn open(
        folder: &Path,
        verbs: BTreeSet<OptionalVerb>,
    ) -> Result<Self, Failure> {
        let store = open(folder).await?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let entropy = Arc::new(OsEntropy);
        let (catalog, _) = CatalogService::open(Arc::clone(&store)).await?;
        let catalog = Arc::new(catalog);
        let path = folder.join(MAPPING.0);
        let text = fs::read_to_string(&path).map_err(|error| unusable(&path, &error))?;
        let planner = RegionPlanner::new(Arc::clone(&catalog), &text)
            .map_err(|problems| format!("{}: {problems}", path.display()))?;
        let region = planner.mapping().region.clone();

        let regions = BTreeSet::from([region.clone()]);
        let networks = Networks::new(
            Arc::clone(&store),
            regions,
            entropy.clone(),
            &fleetwright_compute::schema::references(),
        )?;
        let networks = Arc::new(networks);
        let groups = SecurityGroups::new(
            Arc::clone(&store),
            Arc::clone(&networks),
            entropy.clone(),
            &fleetwright_compute::schema::references(),
        )?;
        let authorities = SshAuthorities::new(
            Arc::clone(&store),
            entropy,
            &fleetwright_compute::schema::references(),
        )?;
        let ground: Arc<dyn DependencyChecker> = Arc::new(TenantDependencies::new(
            Arc::clone(&networks),
            Arc::new(groups),
            Arc::new(authorities),
            Arc::clone(&catalog),
        ));
        let servers = Servers::new(
            Arc::clone(&store),
            Arc::clone(&clock),
            Arc::clone(&ground),
            SshKeys::Disabled,
        )?;
        let servers = servers.with_region(region.clone(), verbs);
        let ledger = Ledger::new(Arc::clone(&store), Arc::new(QuotaKinds::standard()))?;
        let parts = InstanceDependencies::new(
            Arc::clone(&store),
            Arc::clone(&clock),
            ground,
            Arc::clone(&networks),
            catalog,
            ledger.clone(),
            servers.clone(),
        );
        Ok(Self {
            instances: Instances::new(parts)?,
            planner: Arc::new(planner),
            store,
            clock,
            region,
            networks,
            servers,
            ledger,
        })
    }
}
