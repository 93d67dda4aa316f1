//! The clouds of regions.

use std::sync::Arc;

use fleetwright::InstanceProvisioner;
use fleetwright_region::{file::reader::Fields, mapping::Provider};

use crate::error::ServerError;

/// The cloud of a region.
#[derive(Clone, Debug)]
pub(crate) enum Cloud {
    /// The simulated cloud.
    #[cfg(feature = "memory")]
    Memory,
}

impl Cloud {
    /// Reads what a region says about its cloud. Every mistake is reported.
    pub(crate) fn read(provider: Provider, region: &Fields<'_, '_>) -> Option<Self> {
        match provider {
            #[cfg(feature = "memory")]
            Provider::Memory => Some(Self::Memory),
            #[allow(
                unreachable_patterns,
                reason = "a program with every feature has every provider"
            )]
            Provider::Memory | Provider::Ec2 | Provider::Gcp | Provider::Azure => {
                let name = provider.as_str();
                let what = format!("this program was built without the provider {name}");
                region.report_field("provider", what);
                None
            }
        }
    }

    /// Opens the provider.
    ///
    /// # Errors
    ///
    /// The provider refuses its settings.
    #[allow(
        clippy::unused_async,
        reason = "providers on the network wait when they are opened"
    )]
    pub(crate) async fn open(&self) -> Result<Arc<dyn InstanceProvisioner>, ServerError> {
        match *self {
            #[cfg(feature = "memory")]
            Self::Memory => {
                // Machines of an earlier run are in the store, so their ids must not be given to new ones.
                let seed = u64::from_le_bytes(crate::keys::random()?);
                let cloud = fleetwright_memory::MemoryCloud::builder().seed(seed);
                Ok(Arc::new(cloud.build().provisioner()))
            }
        }
    }
}
