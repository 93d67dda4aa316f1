//! Listing the servers that are visible to a caller.

use std::collections::BTreeMap;

use fleetwright_identity::{GrantedScopes, Principal, Resource, Verb};
use fleetwright_store::{Cursor, Damaged, IndexName, IndexValue, Partial, Query, Scalar};

use super::{PROJECT_INDEX, REGION_INDEX, Server, ServerError, ServerView, Servers};
use crate::{
    ids::{NetworkId, RegionId},
    references::Reference,
};

/// Which servers are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListServers {
    /// Only those in this region.
    pub region: Option<RegionId>,
    /// Only those in this network.
    pub network: Option<NetworkId>,
    /// Where the last page ended.
    pub after: Option<Cursor>,
}

/// A page of servers. A page with few servers need not be the last one: it contains only those that are visible to the caller.
#[derive(Clone, Debug)]
pub struct ServerPage {
    /// The servers, in the order of the index they were found by.
    pub servers: Vec<ServerView>,
    /// What can be shown of the servers that a newer version of this program wrote, and the places that cannot. This version leaves them
    /// alone.
    pub newer: Vec<Partial<Server>>,
    /// The servers that cannot be read, for a caller who may list all.
    pub damaged: Vec<Damaged>,
    /// Where the next page starts; `None` after the last one.
    pub next: Option<Cursor>,
}

impl Servers {
    /// Returns a page of the servers that are visible to the caller.
    pub async fn list(
        &self,
        principal: &Principal,
        wanted: &ListServers,
    ) -> Result<ServerPage, ServerError> {
        let reach = principal
            .scopes_for(Verb::List, Resource::Servers)
            .map_err(ServerError::Refused)?;
        let mut query = self.query(wanted, &reach)?;
        query.after.clone_from(&wanted.after);
        let mut page = self.table.list(&query).await?;
        let (mut servers, mut scans) = (Vec::new(), BTreeMap::new());
        let now = self.clock.now();
        let region = wanted.region.as_ref();
        let is_wanted = |server: &Server| {
            region.is_none_or(|only| *only == server.region) && reach.covers(&server.scope())
        };
        let mut newer = page.take_newer();
        newer.retain(|shown| is_wanted(&shown.value));
        for item in page.items {
            let region = item.value.region.clone();
            if !is_wanted(&item.value) {
                continue;
            }
            if !scans.contains_key(&region) {
                scans.insert(region.clone(), self.region_scan(&region).await?);
            }
            let scan = scans.get(&region).and_then(Option::as_ref);
            servers.push(ServerView::new(item, scan, now));
        }
        let damaged = match reach {
            GrantedScopes::Everywhere => page.damaged,
            GrantedScopes::Within(_) => Vec::new(),
        };
        Ok(ServerPage {
            servers,
            newer,
            damaged,
            next: page.next,
        })
    }

    /// Returns the query of the narrowest index that contains everything requested and visible.
    fn query(&self, wanted: &ListServers, reach: &GrantedScopes) -> Result<Query, ServerError> {
        if let Some(network) = &wanted.network {
            let (_, index) = Reference::SERVER_NETWORK.names()?;
            return Ok(self.table.by(&index, network.to_string().as_str()));
        }
        let only = match reach {
            GrantedScopes::Everywhere => None,
            GrantedScopes::Within(scopes) => scopes.first().filter(|_| scopes.len() == 1),
        };
        let parts = only.map(|scope| {
            let organization = scope.organization().map(|id| id.to_string());
            let project = scope.project().map(|id| id.to_string());
            let parts = organization.into_iter().chain(project);
            IndexValue(parts.map(Scalar::from).collect())
        });
        if let Some(value) = parts.filter(|value| !value.0.is_empty()) {
            return Ok(self.table.by(&IndexName::new(PROJECT_INDEX)?, value));
        }
        Ok(match &wanted.region {
            Some(region) => self
                .table
                .by(&IndexName::new(REGION_INDEX)?, region.as_str()),
            None => self.table.all(),
        })
    }
}
