//! Simulated machines in a file.
//!
//! The memory cloud lives in a process, and GARM starts one process for every call. The backend of the example `persistent` has the same
//! promises, passes the whole contract, and keeps its machines in a file: `docs/decisions/0050-garm.md`.

use std::{path::Path, sync::Arc};

use persistent::{NoFaults, Shelf};

use crate::{config::MemorySection, failure::Failure};

/// Opens the shelf.
pub(super) fn open(section: &MemorySection) -> Result<Shelf, Failure> {
    let folder = Path::new(&section.folder);
    if !folder.is_dir() {
        let folder = folder.display();
        return Err(Failure::new(format!(
            "memory.folder is {folder}, which is not a folder: create it"
        )));
    }
    Ok(Shelf::open(folder, Arc::new(NoFaults)))
}
