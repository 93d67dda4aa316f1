//! The snapshot that tests request.

use std::sync::Arc;

use fleetwright::InstanceProvisioner;
use fleetwright_region::{
    catalog::{Image, ImageState},
    machine::MachineAccess,
    snapshot::{NewSnapshot, Snapshots},
};
use fleetwright_store::Store;

use crate::{TestFacade, advance_until, name, operator};

/// The name of the image that tests request.
pub const SNAPSHOT_NAME: &str = "copy-of-web";

/// The request for it, with tags of which some are the system's own.
pub fn new_snapshot() -> NewSnapshot {
    let mut new = NewSnapshot::new(name(SNAPSHOT_NAME));
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

    /// Like [`during`](Self::during), and the images of region `north` are created and deleted.
    pub async fn during_with_snapshots<T>(&self, work: impl Future<Output = T>) -> T {
        let work = async {
            tokio::select! {
                biased;
                result = work => result,
                () = self.region().snapshots.run() => unreachable!("it runs until it is dropped"),
            }
        };
        self.during(work).await
    }

    /// Reads the image.
    pub async fn snapshot_image(&self) -> Image {
        self.find_snapshot_image().await.unwrap()
    }

    /// Reads the image, if it exists.
    pub async fn find_snapshot_image(&self) -> Option<Image> {
        self.catalog.refresh().await.unwrap();
        let images = self.catalog.images(&operator()).unwrap();
        let mut found = images
            .into_iter()
            .filter(|image| image.name == SNAPSHOT_NAME);
        let first = found.next();
        assert!(found.next().is_none(), "two images have the name");
        first
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
