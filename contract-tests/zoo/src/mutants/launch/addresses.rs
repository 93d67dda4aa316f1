//! Backends whose instances share private addresses.

use std::{net::IpAddr, sync::Arc};

use async_trait::async_trait;
use fleetwright::{InstanceFilter, InstanceInfo, Result, Tags};
use fleetwright_contract_tests::{Oracle, Truth};

use crate::{
    CallContext, OverrideHarness,
    mutants::{
        Mutant, Override,
        list::{Lists, Relist},
    },
};

/// LAUNCH-14.
pub(in crate::mutants) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a list shows one private address for all instances",
        violates: "LAUNCH-14",
        make: OverrideHarness::factory::<Lists<ListsOneAddress>>,
    },
    Mutant {
        name: "all instances have one private address, and reads show others",
        violates: "LAUNCH-14",
        make: OverrideHarness::factory::<HasOneAddress>,
    },
];

/// Gives all of them the first address.
fn share<'a>(infos: impl Iterator<Item = &'a mut InstanceInfo>) {
    let mut first: Option<IpAddr> = None;
    for info in infos {
        if let Some(address) = info.private_ip {
            info.private_ip = Some(*first.get_or_insert(address));
        }
    }
}

#[derive(Default)]
struct ListsOneAddress;

#[async_trait]
impl Relist for ListsOneAddress {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        share(list.iter_mut());
        Ok(list)
    }
}

#[derive(Default)]
struct HasOneAddress;

impl Override for HasOneAddress {
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        Arc::new(OneAddress(sound))
    }
}

struct OneAddress(Arc<dyn Oracle>);

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Oracle for OneAddress {
    async fn instances(&self, tags: &Tags) -> Vec<Truth> {
        let mut truths = self.0.instances(tags).await;
        share(truths.iter_mut().map(|truth| &mut truth.info));
        truths
    }
    async fn leftovers(&self, tags: &Tags) -> Vec<String> {
        self.0.leftovers(tags).await
    }
    async fn images(&self, tags: &Tags) -> Option<Vec<String>> {
        self.0.images(tags).await
    }
    async fn calls(&self) -> u64 {
        self.0.calls().await
    }
}
