//! Regions on clouds: what the table of a cloud says, and the provider that it describes, with the layers around it.
//!
//! Each cloud is a feature of this crate. No setting is a secret: credentials come from where the vendor's own tools find them.

#[cfg(feature = "azure")]
mod azure;
#[cfg(feature = "ec2")]
mod ec2;
#[cfg(feature = "gcp")]
mod gcp;
#[cfg(any(feature = "azure", feature = "ec2", feature = "gcp"))]
mod read;

use std::sync::Arc;

use fleetwright::InstanceProvisioner;
#[cfg(any(feature = "azure", feature = "ec2", feature = "gcp"))]
use fleetwright::layer::Stack;
use fleetwright_region::{file::reader::Fields, mapping::Provider};

use crate::error::ServerError;

/// The cloud of a region.
#[derive(Clone, Debug)]
pub(crate) enum Cloud {
    /// The simulated cloud.
    #[cfg(feature = "memory")]
    Memory,
    #[cfg(feature = "ec2")]
    Ec2(Box<ec2::Settings>),
    #[cfg(feature = "gcp")]
    Gcp(Box<gcp::Settings>),
    #[cfg(feature = "azure")]
    Azure(Box<azure::Settings>),
}

impl Cloud {
    /// Reads the table that has the name of the region's provider. Every mistake is reported.
    pub(crate) fn read(provider: Provider, region: &mut Fields<'_, '_>) -> Option<Self> {
        let mut own = None;
        for (name, of) in [
            ("ec2", Provider::Ec2),
            ("gcp", Provider::Gcp),
            ("azure", Provider::Azure),
        ] {
            match region.table(name) {
                Some(table) if of == provider => own = Some(table),
                Some(_) => {
                    let provider = provider.as_str();
                    region.report_field(name, format!("the provider of the region is {provider}"));
                }
                None => {}
            }
        }
        match provider {
            #[cfg(feature = "memory")]
            Provider::Memory => Some(Self::Memory),
            #[cfg(feature = "ec2")]
            Provider::Ec2 => match own {
                Some(table) => Some(Self::Ec2(Box::new(ec2::read(table)?))),
                None => Some(Self::Ec2(Box::default())),
            },
            #[cfg(feature = "gcp")]
            Provider::Gcp => {
                let table = required(own, provider, region)?;
                Some(Self::Gcp(Box::new(gcp::read(table)?)))
            }
            #[cfg(feature = "azure")]
            Provider::Azure => {
                let table = required(own, provider, region)?;
                Some(Self::Azure(Box::new(azure::read(table)?)))
            }
            #[allow(
                unreachable_patterns,
                reason = "a program with every feature has every provider"
            )]
            Provider::Memory | Provider::Ec2 | Provider::Gcp | Provider::Azure => {
                drop(own);
                let name = provider.as_str();
                let what = format!(
                    "this program was built without the provider {name}: build it with `--features {name}`"
                );
                region.report_field("provider", what);
                None
            }
        }
    }

    /// Opens the provider. Sends nothing that changes the cloud.
    ///
    /// # Errors
    ///
    /// There are no credentials, or the cloud's SDK refuses a setting.
    pub(crate) async fn open(&self) -> Result<Arc<dyn InstanceProvisioner>, ServerError> {
        match *self {
            #[cfg(feature = "memory")]
            Self::Memory => {
                // Machines of an earlier run are in the store, so their ids must not be given to new ones.
                let seed = u64::from_le_bytes(crate::keys::random()?);
                let cloud = fleetwright_memory::MemoryCloud::builder().seed(seed);
                Ok(Arc::new(cloud.build().provisioner()))
            }
            #[cfg(feature = "ec2")]
            Self::Ec2(ref settings) => Ok(Stack::default().wrap(settings.open().await?)),
            #[cfg(feature = "gcp")]
            Self::Gcp(ref settings) => Ok(Stack::default().wrap(settings.open().await?)),
            #[cfg(feature = "azure")]
            Self::Azure(ref settings) => Ok(Stack::default().wrap(settings.open()?)),
        }
    }
}

#[cfg(any(feature = "azure", feature = "gcp"))]
fn required<'n, 't>(
    table: Option<Fields<'n, 't>>,
    provider: Provider,
    region: &Fields<'_, '_>,
) -> Option<Fields<'n, 't>> {
    if table.is_none() {
        let name = provider.as_str();
        region.missing(name, &format!("a table [region.{name}]"));
    }
    table
}
