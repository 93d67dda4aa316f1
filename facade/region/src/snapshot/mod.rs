//! Images of servers: requested in one transaction, created by a controller.
//!
//! Owns the record of an image from the request to the end, and the one call that creates it. Other calls to a machine are in
//! [`machine`](crate::machine); visibility and mapping of images are in the [catalog](crate::catalog).
//!
//! # Flow
//!
//! 1. [`MachineAccess::snapshot`](crate::machine::MachineAccess::snapshot) records the image as pending, with its machine, its tags and
//!    an id that is derived from the request.
//! 2. [`Snapshots`] is woken by that record, calls the cloud with a [name](native_name) derived from the id, and records the native id.
//! 3. The image is ready.
//!
//! # After a crash
//!
//! | the process dies | the record contains | the next process |
//! | --- | --- | --- |
//! | before the image is recorded | nothing | does nothing; a repeated request with the same name creates it |
//! | after that, whether or not the cloud was called | pending | calls the cloud with the same name, which returns the existing image |
//! | after the native id is recorded | creating | marks it as ready |
//!
//! A name at the cloud identifies one image of one machine, and is derived from the id; so there is at most one image for each request.
//!
//! # Limits
//!
//! A provisioner has no call that reports the progress of an image. The contract promises that the image can be launched eventually, and
//! that a launch that is too early has no effect. So an image counts as ready when the cloud has returned its id, or
//! [`SnapshotPolicy::ready_after`] after that, and the server controller repeats a launch that was too early. A provisioner also has no call
//! to find an image without its machine: an image whose machine was terminated before its id was recorded stays at the cloud under its
//! name, and the failed record says so. The provisioner
//! deletes an image if it declares that call; otherwise an [`ImageDeleter`] does.

mod decide;
mod delete;
mod policy;
mod provenance;
mod reconcile;
mod request;
mod run;

use std::{fmt, sync::Arc};

use fleetwright::InstanceProvisioner;
use fleetwright_identity::{Ledger, Principal};
use fleetwright_runtime::clock::Clock;
use fleetwright_store::{Invalid, Store, Table};
use uuid::Uuid;

pub use decide::{Step, decide};
pub use delete::ImageDeleter;
pub use policy::SnapshotPolicy;
pub use provenance::{IMAGE, Provenance, SOURCE_IMAGE};
pub use request::{MAX_DESCRIPTION_CHARS, NewSnapshot, RequestedImage};

use crate::{
    account::{AccountGuard, ConfirmedAccount, guarded},
    catalog::{CatalogService, Image},
    ids::{ImageId, RegionId},
    machine::own,
    references::{Reference, ReferenceTarget, References},
    server::Server,
};

/// The namespace of image names at a cloud. Frozen: another one would lose the images that are being created.
const NAMES: Uuid = Uuid::from_u128(0x3f1d_29a6_5b0e_4c7a_9d52_8e61_c04b_7a13);

/// Returns the name of an image at the cloud: valid at every cloud, and the same in every process.
///
/// ```
/// use fleetwright_region::{ids::ImageId, snapshot::native_name};
///
/// let id = ImageId::new("6ba7b810-9dad-11d1-80b4-00c04fd430c8")?;
/// assert_eq!(native_name(&id), "fleetwright-047fff05-339c-59cb-a4f6-be46486a3460");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn native_name(image: &ImageId) -> String {
    let name = Uuid::new_v5(&NAMES, image.as_str().as_bytes());
    format!("fleetwright-{name}")
}

/// The controller that creates the images of a region.
///
/// ```
/// use std::sync::Arc;
/// use fleetwright_memory::MemoryCloud;
/// use fleetwright_region::{catalog::CatalogService, ids::RegionId, snapshot::Snapshots};
/// use fleetwright_runtime::clock::SystemClock;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = fleetwright_facade_testkit::memory_store();
/// let (catalog, _damaged) = CatalogService::open(store.clone()).await?;
/// let cloud = Arc::new(MemoryCloud::new().provisioner());
/// let north = RegionId::new("north")?;
/// let snapshots = Snapshots::new(north, store, catalog.into(), cloud, Arc::new(SystemClock))?;
/// tokio::select! {
///     () = snapshots.run() => {} // it runs until it is dropped
///     () = tokio::time::sleep(std::time::Duration::from_secs(60)) => {}
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Guarantees
///
/// - At most one image at the cloud for each request, at whatever point a future is dropped, a call fails or a response is lost.
/// - Every image becomes ready, or failed with the reason, once the store works.
/// - Dropping [`run`](Self::run) at any point is as safe as killing the process.
///
/// # Assumptions
///
/// As for the [server controller](crate::controller::Controller): one works on a region at a time, and two repeat each other's work.
#[derive(Clone)]
pub struct Snapshots {
    region: RegionId,
    store: Arc<dyn Store>,
    images: Table<Image>,
    servers: Table<Server>,
    catalog: Arc<CatalogService>,
    cloud: Arc<dyn InstanceProvisioner>,
    account: Arc<AccountGuard>,
    clock: Arc<dyn Clock>,
    policy: SnapshotPolicy,
    own: Principal,
    deleter: Option<Arc<dyn ImageDeleter>>,
    ledger: Option<Ledger>,
    /// The references to images.
    references: Vec<Reference>,
}

impl Snapshots {
    /// Creates the controller of a region, on a store with [the region's kinds](crate::schema::add_kinds). The catalog must be the one that
    /// launches are planned with, so that a ready image can be launched at once.
    pub fn new(
        region: RegionId,
        store: Arc<dyn Store>,
        catalog: Arc<CatalogService>,
        cloud: Arc<dyn InstanceProvisioner>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Invalid> {
        let accounts = Table::new(Arc::clone(&store))?;
        let (cloud, account) = guarded(&region, &store, accounts, cloud);
        Ok(Self {
            region,
            images: Table::new(Arc::clone(&store))?,
            servers: Table::new(Arc::clone(&store))?,
            store,
            catalog,
            cloud,
            account,
            clock,
            policy: SnapshotPolicy::default(),
            own: own()?,
            deleter: None,
            ledger: None,
            references: References::default().to(ReferenceTarget::Image).collect(),
        })
    }

    /// Shares with the other parts of the region when its account was last confirmed.
    #[must_use]
    pub fn with_confirmed_account(self, confirmed: &ConfirmedAccount) -> Self {
        self.account.share(confirmed);
        self
    }

    /// Sets the policy.
    #[must_use]
    pub fn with_policy(mut self, policy: SnapshotPolicy) -> Self {
        self.policy = policy;
        self
    }

    fn label(&self) -> String {
        self.region.to_string()
    }
}

impl fmt::Debug for Snapshots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshots")
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_name_is_stable_and_valid_on_every_cloud() {
        let id = ImageId::new("6ba7b810-9dad-11d1-80b4-00c04fd430c8").unwrap();
        let name = native_name(&id);
        assert_eq!(name, "fleetwright-047fff05-339c-59cb-a4f6-be46486a3460");
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(name.len() <= 63 && name.chars().all(plain), "{name}");
        let other = ImageId::new("6ba7b810-9dad-11d1-80b4-00c04fd430c9").unwrap();
        assert_ne!(native_name(&other), name);
    }
}
