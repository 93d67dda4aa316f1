//! The catalog: the flavors and images that an installation offers.
//!
//! Operators write the catalog as one TOML file. It is checked as a whole, and a file with a problem changes nothing. An
//! entry that is no longer in the file is retired and never deleted: it is no longer offered, and the servers that use it
//! keep working. Tenants add images of their servers, which no file changes.
//!
//! Owns the entries, their file format, their compatibility and their records. It must never call a cloud: what a region's
//! provider calls an entry is in the region's [mapping](crate::mapping), and images are created by
//! [`Snapshots`](crate::snapshot::Snapshots).

mod audit;
mod compat;
mod current;
mod entry;
mod file;
mod flavor;
mod image;
mod load;
mod reload;
mod service;
mod show;
mod size;
mod snapshot;
mod stored;
mod tenant_image;

pub use compat::{Incompatible, Mismatch, NotOffered, check_compatible};
pub use entry::EntryId;
pub use file::CatalogFile;
pub use flavor::{Architecture, Flavor, Gpu, GpuVendor};
pub use image::{Image, ImageOwner, ImageState, Kernel, Origin, Os, Virtualization, Visibility};
pub use load::{LoadError, MAX_FILE_BYTES};
pub use reload::{Catalog, Change, Reload};
pub use service::CatalogService;
pub use show::{EntryList, ReadError};
pub use size::{ByteSize, InvalidSize, Unit};
pub use snapshot::Snapshot;
pub(crate) use snapshot::{ImageDetails, ImageRequest};
pub(crate) use tenant_image::advance;
pub use tenant_image::{ImageError, NewImage, SnapshotProgress};

#[cfg(test)]
mod tests;
