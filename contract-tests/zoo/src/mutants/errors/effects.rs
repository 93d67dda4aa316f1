//! Backends that report another effect than a call had.

use async_trait::async_trait;
use fleetwright::{
    BoxStream, CloudInstanceState, Effect, ErrorKind, InstanceConfig, InstanceFilter, InstanceId,
    InstanceInfo, InstanceStatus, ListItem, ProvisionError, Result,
};
use futures_util::StreamExt as _;

use super::{CallContext, Override, replace_error};
use fleetwright_contract_tests::Harness as _;

/// Checks the credentials after the stop was carried out.
#[derive(Default)]
pub(super) struct StopsWithoutCredentials;

#[async_trait]
impl Override for StopsWithoutCredentials {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let result = at.inner.stop_instance(id).await;
        if matches!(&result, Err(error) if error.kind() == ErrorKind::Unauthenticated) {
            at.harness.cloud().external_actor().stop(id)?;
        }
        result
    }
}

#[derive(Default)]
pub(super) struct ServerErrorHasNoEffect;

#[async_trait]
impl Override for ServerErrorHasNoEffect {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        replace_error(result, ErrorKind::Unavailable, |call| {
            call.unavailable(Effect::None, "try again")
        })
    }
}

#[derive(Default)]
pub(super) struct LostResponseHasNoEffect;

#[async_trait]
impl Override for LostResponseHasNoEffect {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        replace_error(result, ErrorKind::Timeout, |call| {
            call.timeout(Effect::None)
        })
    }
}

/// Looks up a launch whose response was lost, and returns another instance.
#[derive(Default)]
pub(super) struct ReturnsOtherForLost;

#[async_trait]
impl Override for ReturnsOtherForLost {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        launch_returning_other(at, config, ErrorKind::Timeout).await
    }
}

/// Launches, and returns an instance that does not exist in place of an error of `kind`.
async fn launch_returning_other(
    at: CallContext<'_>,
    config: &InstanceConfig,
    kind: ErrorKind,
) -> Result<InstanceInfo> {
    match at.inner.launch_instance(config).await {
        Err(error) if error.kind() == kind => {
            let id = at.harness.unknown_id();
            Ok(InstanceInfo::new(id, CloudInstanceState::Pending))
        }
        result => result,
    }
}

#[derive(Default)]
pub(super) struct ReturnsOtherForFailed;

#[async_trait]
impl Override for ReturnsOtherForFailed {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        launch_returning_other(at, config, ErrorKind::Unavailable).await
    }
}

/// Returns the items of a failed list as survivors.
#[derive(Default)]
pub(super) struct FailedListClaimsSurvivors;

#[async_trait]
impl Override for FailedListClaimsSurvivors {
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let result = at.inner.list_instances(filter).await;
        result.map_err(|error| {
            let all = at.harness.cloud().oracle().instances();
            let items = all.into_iter().map(|truth| truth.info);
            error.with_survivors(items.filter(|info| filter.matches(info)).take(1).collect())
        })
    }
}

#[derive(Default)]
pub(super) struct FailedDescriptionsHaveEffect;

#[async_trait]
impl Override for FailedDescriptionsHaveEffect {
    async fn describe_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        let results = at.inner.describe_instances(ids).await.into_iter();
        let unknown = |error: ProvisionError| error.with_effect(Effect::Unknown);
        results.map(|result| result.map_err(unknown)).collect()
    }
}

#[derive(Default)]
pub(super) struct FailedStreamHasEffect;

impl Override for FailedStreamHasEffect {
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let unknown = |error: ProvisionError| error.with_effect(Effect::Unknown);
        let items = at.inner.stream_instances(filter);
        items.map(move |item| item.map_err(unknown)).boxed()
    }
}
