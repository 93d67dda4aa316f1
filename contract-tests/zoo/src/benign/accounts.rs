//! Accounts that add something: tags by policy, or addresses that outlive a stop.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use fleetwright::{
    BoxStream, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceStatus,
    LaunchRecord, LaunchToken, ListItem, Result, Tags,
};
use fleetwright_contract_tests::{Oracle, Truth};
use futures_util::StreamExt as _;

use crate::{CallContext, Override};

/// Changes what every result says about an instance.
pub(super) trait Edit: Default + Send + Sync {
    fn edit(&self, info: &mut InstanceInfo);

    fn edit_status(&self, _: &mut InstanceStatus) {}

    fn policy_tag_keys(&self) -> Vec<String> {
        Vec::new()
    }

    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        sound
    }

    fn edited(&self, mut info: InstanceInfo) -> InstanceInfo {
        self.edit(&mut info);
        info
    }

    fn all(&self, list: Vec<InstanceInfo>) -> Vec<InstanceInfo> {
        list.into_iter().map(|info| self.edited(info)).collect()
    }
}

/// A backend whose results are all edited.
#[derive(Default)]
pub(super) struct Edited<E>(E);

#[async_trait]
impl<E: Edit> Override for Edited<E> {
    fn policy_tag_keys(&self) -> Vec<String> {
        self.0.policy_tag_keys()
    }
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        self.0.oracle(sound)
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let mut status = at.inner.describe_instance(id).await?;
        self.0.edit_status(&mut status);
        Ok(status)
    }
    async fn describe_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        let mut results = at.inner.describe_instances(ids).await;
        for status in results.iter_mut().flatten() {
            self.0.edit_status(status);
        }
        results
    }
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        Ok(self.0.edited(at.inner.launch_instance(config).await?))
    }
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        Ok(self.0.all(at.inner.launch_instances(config, count).await?))
    }
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        Ok(self.0.edited(at.inner.start_instance(id).await?))
    }
    async fn start_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let results = at.inner.start_instances(ids).await.into_iter();
        results
            .map(|result| result.map(|info| self.0.edited(info)))
            .collect()
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        Ok(self.0.all(at.inner.list_instances(filter).await?))
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        Ok(match at.inner.find_launch(token).await? {
            LaunchRecord::Found(list) => LaunchRecord::Found(self.0.all(list)),
            LaunchRecord::Terminated(list) => LaunchRecord::Terminated(self.0.all(list)),
            LaunchRecord::NotFound => LaunchRecord::NotFound,
        })
    }
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let edited = |item: Result<ListItem>| {
            item.map(|item| match item {
                ListItem::Instance(info) => ListItem::from(self.0.edited(*info)),
                gap @ ListItem::Gap { .. } => gap,
            })
        };
        at.inner.stream_instances(filter).map(edited).boxed()
    }
}

/// A policy of the account tags every instance with a cost centre.
#[derive(Default)]
pub(super) struct PolicyTags;

const POLICY_KEY: &str = "CostCentre";

impl Edit for PolicyTags {
    fn edit(&self, info: &mut InstanceInfo) {
        // The key is valid, so it cannot be refused.
        let _ = info.tags.insert(POLICY_KEY, "not assigned");
    }

    fn policy_tag_keys(&self) -> Vec<String> {
        vec![POLICY_KEY.to_owned()]
    }
}

/// An instance keeps its public address for its whole life. It is not reported while the instance is
/// stopped, as the contract says.
#[derive(Clone, Default)]
pub(super) struct KeepsAddress(Arc<Mutex<BTreeMap<InstanceId, IpAddr>>>);

impl KeepsAddress {
    fn addresses(&self) -> MutexGuard<'_, BTreeMap<InstanceId, IpAddr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the address that an instance had first, if it has one now.
    fn kept(&self, id: &InstanceId, now: Option<IpAddr>) -> Option<IpAddr> {
        now.map(|address| *self.addresses().entry(id.clone()).or_insert(address))
    }
}

impl Edit for KeepsAddress {
    fn edit(&self, info: &mut InstanceInfo) {
        info.public_ip = self.kept(&info.id, info.public_ip);
    }

    fn edit_status(&self, status: &mut InstanceStatus) {
        status.public_ip = self.kept(&status.id, status.public_ip);
    }

    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        Arc::new(KeptAddresses(self.clone(), sound))
    }
}

/// The truth with the kept addresses.
struct KeptAddresses(KeepsAddress, Arc<dyn Oracle>);

#[async_trait]
impl Oracle for KeptAddresses {
    async fn instances(&self, tags: &Tags) -> Vec<Truth> {
        let mut truths = self.1.instances(tags).await;
        for truth in &mut truths {
            self.0.edit(&mut truth.info);
        }
        truths
    }
    async fn leftovers(&self, tags: &Tags) -> Vec<String> {
        self.1.leftovers(tags).await
    }
    async fn images(&self, tags: &Tags) -> Option<Vec<String>> {
        self.1.images(tags).await
    }
    async fn calls(&self) -> u64 {
        self.1.calls().await
    }
}
