//! Why a façade could not be built.

use fleetwright_region::{
    catalog::LoadError, file::Problems, ids::RegionId, mapping::Provider, setting::InvalidSetting,
};
use fleetwright_store::{Invalid, StoreError};

use crate::ComputeError;

/// Why [`FacadeBuilder::build`](super::FacadeBuilder::build) failed: which part is missing or wrong, and what to do.
///
/// A build writes nothing but the catalog, and a refused catalog is not written at all. The builder can be repeated with the missing
/// part.
///
/// ```
/// use fleetwright_compute::{Facade, facade::FacadeError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let error = Facade::builder().without_server_keys().build().await.unwrap_err();
/// assert!(matches!(error, FacadeError::MissingStore));
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FacadeError {
    /// No store was given.
    #[error("the façade has no store: pass one to `store`, with the schema of `Facade::schema`")]
    MissingStore,
    /// No region was given.
    #[error("the façade has no region: pass a provisioner and a mapping to `region`")]
    MissingRegion,
    /// Neither a keyring nor the decision to do without SSH key pairs was given.
    #[error(
        "the façade has no keyring: pass one to `keyring`, or call `without_server_keys` if servers get no SSH key pair and no user data"
    )]
    MissingKeyring,
    /// The builder has no catalog, and the store has no flavor or no image.
    #[error("the store has no catalog: pass one to `catalog`")]
    MissingCatalog,
    /// Two regions have the same id.
    #[error("region {0} was added twice: give each mapping its own `region`")]
    DuplicateRegion(RegionId),
    /// A part that a façade has once was given twice.
    #[error("`{0}` was called twice: call it once")]
    Repeated(&'static str),
    /// A region got two image deleters.
    #[error("region {0} got two image deleters: call `image_deleter` once for each region")]
    DuplicateDeleter(RegionId),
    /// An image deleter is for a region that was not added.
    #[error(
        "an image deleter is for region {0}, which the façade does not have: add the region, or correct its id"
    )]
    NoRegionForDeleter(RegionId),
    /// The mapping of a region is for another provider than that of its provisioner.
    #[error("the mapping of region {region} is for {}, and its provisioner is {provisioner}: pass the mapping with its own provisioner", mapping.as_str())]
    OtherProvider {
        /// The region.
        region: RegionId,
        /// The provider of the mapping.
        mapping: Provider,
        /// The provider of the provisioner.
        provisioner: String,
    },
    /// A setting of a policy cannot be used.
    #[error("`{policy}` cannot be used")]
    Policy {
        /// The call that set it.
        policy: &'static str,
        /// The setting, and what to set instead.
        source: InvalidSetting,
    },
    /// The store's schema lacks a kind or an index of the façade.
    #[error(
        "the store cannot keep the façade's records: open it with the schema of `Facade::schema`"
    )]
    Schema(#[from] Invalid),
    /// The catalog was refused or could not be stored.
    #[error("the catalog cannot be loaded")]
    Catalog(#[from] LoadError),
    /// A mapping has problems.
    #[error("the mapping of region number {number} has problems: correct them")]
    Mapping {
        /// Which region, counted from 1 in the order in which they were added.
        number: usize,
        /// Every problem, with its line.
        source: Problems,
    },
    /// The store failed.
    #[error("the store failed while the catalog was read")]
    Store(#[from] StoreError),
    /// A service could not be built from the parts.
    #[error("the façade's services cannot be built from these parts")]
    Services(#[source] Box<ComputeError>),
}

impl From<ComputeError> for FacadeError {
    fn from(error: ComputeError) -> Self {
        Self::Services(Box::new(error))
    }
}
