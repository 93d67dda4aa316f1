//! What a region offers: sizes of servers and what they boot from.
//!
//! People write the catalog as one TOML file. It is checked as a whole, and a file with a problem changes nothing. What
//! is no longer in the file is retired and never destroyed: nobody is offered it, and what stands on it goes on.

mod compat;
mod current;
mod entry;
mod file;
mod flavor;
mod image;
mod made;
mod reload;
mod service;
mod size;
mod snapshot;

pub use compat::{Mismatch, NotOffered, Unfit, fit};
pub use entry::EntryId;
pub use file::CatalogFile;
pub use flavor::{Architecture, Flavor, Gpu, GpuVendor};
pub use image::{Image, ImageState, Kernel, Origin, Os, Virtualization, Visibility};
pub(crate) use made::advance;
pub use made::{ImageError, Making, NewImage};
pub use reload::{Catalog, Change, Reload};
pub use service::{CatalogService, LoadError, MAX_FILE_BYTES};
pub use size::{BadSize, ByteSize, Unit};
pub use snapshot::Snapshot;
pub(crate) use snapshot::{Details, Intent};

#[cfg(test)]
mod tests;
