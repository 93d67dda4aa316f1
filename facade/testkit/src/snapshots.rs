//! The snapshot that tests request.

use std::sync::Arc;

use fleetwright::InstanceProvisioner;
use fleetwright_region::{
    catalog::{Image, ImageState},
    machine::MachineAccess,
    snapshot::{NewSnapshot, Snapshots},
};
use fleetwright_store::Store;

use crate::{TestFacade, advance_until, image, name, operator};

/// The image that tests request.
pub const SNAPSHOT_IMAGE: &str = "0b9c4a52-7d0f-4c1e-9f5e-3a2f6d1c8e77";

/// The request for it, with tags of which some are the system's own.
pub fn new_snapshot() -> NewSnapshot {
    let mut new = NewSnapshot::new(image(SNAPSHOT_IMAGE), name("golden"));
    new.description = Some("before the upgrade".to_owned());
    let tags = [
        ("team", "blue"),
        ("fleetwright:token", "forged"),
        ("fleetwright/server", "forged"),
        ("fleetwright-server", "forged"),
        ("Fleetwright-Image", "forged"),
    ];
    new.tags = tags.map(|(key, value)| (key.into(), value.into())).into();
    new
}

impl TestFacade {
    /// The machine access and the snapshots of another process, over its own view of the store and its own handle of the cloud.
    pub async fn machines_over(
        &self,
        store: Arc<dyn Store>,
        provisioner: Arc<dyn InstanceProvisioner>,
    ) -> (MachineAccess, Snapshots) {
        let other = self.reopen_with(store, provisioner).await;
        let snapshots = other.region().snapshots.clone();
        (other.machines.clone(), snapshots)
    }

    /// Reads the image.
    pub async fn snapshot_image(&self) -> Image {
        self.catalog.refresh().await.unwrap();
        let found = self.catalog.image(&operator(), &image(SNAPSHOT_IMAGE));
        found.unwrap()
    }

    /// Waits until the image is in a state, and returns it.
    pub async fn until_snapshot(&self, state: ImageState) -> Image {
        let read = async || {
            let found = self.snapshot_image().await;
            (found.state == state).then_some(found)
        };
        advance_until("a state of the image", read).await
    }
}
