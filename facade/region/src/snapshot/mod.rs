//! Images of servers: asked for in one transaction, made by a controller.
//!
//! Owns what is written of an image from the wish to the end, and the one call that makes it. What is asked of a machine
//! otherwise is in [`machine`](crate::machine); who sees an image, and what it is launched as, in the [catalog](crate::catalog).
//!
//! # Flow
//!
//! 1. [`MachineAccess::snapshot`](crate::machine::MachineAccess::snapshot) writes the image down: pending, with the machine it is of, its tags and the id that
//!    the caller chose.
//! 2. [`Snapshots`] is woken by that, asks the cloud under a [name](native_name) that follows from the id, and writes down what
//!    the cloud calls the image.
//! 3. The image is ready.
//!
//! # What a crash leaves
//!
//! | it dies | the record says | the next process |
//! | --- | --- | --- |
//! | before the image is written down | nothing of it | does nothing; whoever asks again with the same id makes it |
//! | after that, whether the cloud was asked or not | pending | asks under the same name, which answers the image that there is |
//! | after the cloud's name is written down | creating | says that it is ready |
//!
//! A name at the cloud holds one image, of one machine, and the name follows from the id; so there is at most one for each wish.
//!
//! # What is not known
//!
//! A provisioner has no call that tells how far an image is. The contract promises that what it answers can be launched in the end, and
//! that a launch that comes too early has no effect; so an image counts as ready when the cloud has named it, or
//! [`SnapshotPolicy::settling`] after that, and the server controller repeats a launch that came too early. Nor has it a call that finds an
//! image without its machine, or deletes one: what a cloud made of a machine that went before anybody heard of it stays
//! there under its name, and the image that failed says so.

mod decide;
mod policy;
mod provenance;
mod reconcile;
mod request;
mod run;

use std::{fmt, sync::Arc};

use fleetwright::InstanceProvisioner;
use fleetwright_identity::Principal;
use fleetwright_runtime::clock::Clock;
use fleetwright_store::{Invalid, Store, Table};
use uuid::Uuid;

pub use decide::{Step, decide};
pub use policy::SnapshotPolicy;
pub use provenance::{IMAGE, Provenance, SOURCE_IMAGE};
pub use request::{MAX_DESCRIPTION_CHARS, NewSnapshot};

use crate::{
    catalog::{CatalogService, Image},
    ids::{ImageId, RegionId},
    machine::own,
    server::Server,
};

/// Where the names of images at a cloud are derived. Frozen: another one would forget the images that are being made.
const NAMES: Uuid = Uuid::from_u128(0x3f1d_29a6_5b0e_4c7a_9d52_8e61_c04b_7a13);

/// What a cloud is asked to call an image: a name that every cloud takes, the same in every process.
pub fn native_name(image: &ImageId) -> String {
    let name = Uuid::new_v5(&NAMES, image.as_str().as_bytes());
    format!("fleetwright-{name}")
}

/// Makes the images that were asked for in a region.
///
/// # Guarantees
///
/// - At most one image at the cloud for each that was asked for, whatever is dropped, dies, fails or is lost, and whenever.
/// - Each comes to an end, ready or failed with the reason in words, once the store lets it.
/// - Dropping [`run`](Self::run) at any point is as safe as killing the process.
///
/// # Assumptions
///
/// As of the [server controller](crate::controller::Controller): one works on a region at a time, and two do the same work twice.
#[derive(Clone)]
pub struct Snapshots {
    region: RegionId,
    store: Arc<dyn Store>,
    images: Table<Image>,
    servers: Table<Server>,
    catalog: Arc<CatalogService>,
    cloud: Arc<dyn InstanceProvisioner>,
    clock: Arc<dyn Clock>,
    policy: SnapshotPolicy,
    own: Principal,
}

impl Snapshots {
    /// Of a region, on a store whose schema has [its kinds](crate::schema::add_kinds). The keeper is the one that
    /// launches are planned with, so that what is ready can be launched at once.
    pub fn new(
        region: RegionId,
        store: Arc<dyn Store>,
        catalog: Arc<CatalogService>,
        cloud: Arc<dyn InstanceProvisioner>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            region,
            images: Table::new(Arc::clone(&store))?,
            servers: Table::new(Arc::clone(&store))?,
            store,
            catalog,
            cloud,
            clock,
            policy: SnapshotPolicy::default(),
            own: own()?,
        })
    }

    /// With other policy.
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
    fn a_name_is_frozen_and_one_that_every_cloud_takes() {
        let id = ImageId::new("6ba7b810-9dad-11d1-80b4-00c04fd430c8").unwrap();
        let name = native_name(&id);
        assert_eq!(name, "fleetwright-047fff05-339c-59cb-a4f6-be46486a3460");
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(name.len() <= 63 && name.chars().all(plain), "{name}");
        let other = ImageId::new("6ba7b810-9dad-11d1-80b4-00c04fd430c9").unwrap();
        assert_ne!(native_name(&other), name);
    }
}
