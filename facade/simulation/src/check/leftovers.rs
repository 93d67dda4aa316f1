//! Checks that nothing deleted is left over, and that every requested image exists once.

use std::{collections::BTreeSet, sync::Arc};

use fleetwright_compute::schema::INSTANCE_KIND;
use fleetwright_identity::Allocation;
use fleetwright_region::{
    catalog::{Image, ImageState},
    server::Server,
    snapshot::native_name,
};

use super::Check;

impl Check<'_> {
    pub(super) async fn check_leftovers(&self) -> Result<(), String> {
        let rules = self.rules;
        let ids: BTreeSet<_> = self.expected.live.keys().map(ToString::to_string).collect();
        let servers: Vec<Arc<Server>> = rules.all("server").await;
        if let Some(server) = servers
            .iter()
            .find(|server| !ids.contains(&server.id.to_string()))
        {
            return Err(format!("server {} is left over", server.id));
        }
        let allocations: Vec<Arc<Allocation>> = rules.all("allocation").await;
        let of_instance =
            |allocation: &&Arc<Allocation>| allocation.pays_for.kind.as_str() == INSTANCE_KIND;
        let allocations = allocations.iter().filter(of_instance).count();
        if allocations != ids.len() {
            return Err(format!(
                "{allocations} allocations for {} instances",
                ids.len()
            ));
        }
        let keys = rules.values("server-key").await.len();
        if keys != servers.len() {
            return Err(format!("{} servers have {keys} keys", servers.len()));
        }
        for network in &self.expected.deleted_networks {
            if rules.network(&network.to_string()).await.is_some() {
                return Err(format!("network {network} still exists"));
            }
        }
        self.check_images().await
    }

    /// Checks that every requested image is ready and exists once in the cloud, or has failed, and that no deleted one has a record. What is
    /// left of deleted images at the cloud breaks the rule about charges.
    async fn check_images(&self) -> Result<(), String> {
        let images: Vec<Arc<Image>> = self.rules.all("image").await;
        let existing = self.rules.oracle.images();
        for id in self.expected.images.keys() {
            let found = images.iter().find(|image| image.id == *id);
            let found =
                found.ok_or_else(|| format!("image {id} was accepted and does not exist"))?;
            let name = native_name(id);
            let count = existing
                .iter()
                .filter(|existing| **existing == name)
                .count();
            match (found.state, count) {
                (ImageState::Ready, 1) | (ImageState::Failed, 0 | 1) => {}
                (state, count) => {
                    return Err(format!(
                        "image {id} is {state} and the cloud has {count} of it"
                    ));
                }
            }
        }
        for id in &self.expected.deleted_images {
            if let Some(found) = images.iter().find(|image| image.id == *id) {
                return Err(format!("image {id} is {} and was deleted", found.state));
            }
        }
        Ok(())
    }
}
