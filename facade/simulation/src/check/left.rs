//! Nothing is left of what was asked to go, and what was asked to be made is made once.

use std::collections::BTreeSet;

use fleetwright_region::{
    catalog::{Image, ImageState},
    server::Server,
    snapshot::native_name,
};
use serde_json::Value;

use super::Check;

impl Check<'_> {
    pub(super) async fn left(&self) -> Result<(), String> {
        let rules = self.rules;
        let ids: BTreeSet<_> = self.promised.live.keys().map(ToString::to_string).collect();
        let servers: Vec<Server> = rules.all("server").await;
        if let Some(server) = servers
            .iter()
            .find(|server| !ids.contains(&server.id.to_string()))
        {
            return Err(format!("server {} is left", server.id));
        }
        let allocations: Vec<Value> = rules.all("allocation").await;
        if allocations.len() != ids.len() {
            return Err(format!(
                "{} allocations pay for {} instances",
                allocations.len(),
                ids.len()
            ));
        }
        let keys: Vec<Value> = rules.all("server-key").await;
        if keys.len() != servers.len() {
            return Err(format!(
                "{} servers have {} keys",
                servers.len(),
                keys.len()
            ));
        }
        for network in &self.promised.condemned {
            if rules.network(&network.to_string()).await.is_some() {
                return Err(format!("network {network} is not gone"));
            }
        }
        self.images().await
    }

    /// Every image that was asked for is ready or says why not, and the cloud has it once.
    async fn images(&self) -> Result<(), String> {
        let images: Vec<Image> = self.rules.all("image").await;
        let made = self.rules.truth.images();
        for id in &self.promised.images {
            let found = images.iter().find(|image| image.id == *id);
            let found = found.ok_or_else(|| format!("image {id} was promised, and is gone"))?;
            let name = native_name(id);
            let count = made.iter().filter(|made| **made == name).count();
            match (found.state, count) {
                (ImageState::Ready, 1) | (ImageState::Failed, 0 | 1) => {}
                (state, count) => {
                    return Err(format!("image {id} is {state}, and the cloud has {count}"));
                }
            }
        }
        Ok(())
    }
}
