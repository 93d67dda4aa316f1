//! Backends that say another effect than a call had, or had another one than they say.

use async_trait::async_trait;
use fleetwright::{
    BoxStream, CloudInstanceState, Effect, ErrorKind, InstanceConfig, InstanceFilter, InstanceId,
    InstanceInfo, InstanceStatus, ListItem, ProvisionError, Result,
};
use futures_util::StreamExt as _;

use super::{CallContext, Override, instead};
use fleetwright_contract_tests::Harness as _;

/// Looks at the credentials when the work is done.
#[derive(Default)]
pub(super) struct StopsWithoutCredentials;

#[async_trait]
impl Override for StopsWithoutCredentials {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let answer = at.inner.stop_instance(id).await;
        if matches!(&answer, Err(error) if error.kind() == ErrorKind::Unauthenticated) {
            at.harness.cloud().operator().stop(id)?;
        }
        answer
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
        let answer = at.inner.launch_instance(config).await;
        instead(answer, ErrorKind::Unavailable, |call| {
            call.unavailable(Effect::None, "try again")
        })
    }
}

#[derive(Default)]
pub(super) struct LostReplyHasNoEffect;

#[async_trait]
impl Override for LostReplyHasNoEffect {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let answer = at.inner.launch_instance(config).await;
        instead(answer, ErrorKind::Timeout, |call| {
            call.timeout(Effect::None)
        })
    }
}

/// Looks a launch up whose reply was lost, and mixes up what it finds.
#[derive(Default)]
pub(super) struct MistakesLostLaunches;

#[async_trait]
impl Override for MistakesLostLaunches {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        launch_mistaking(at, config, ErrorKind::Timeout).await
    }
}

/// Launches, and answers an instance that nobody has instead of an error of `kind`.
async fn launch_mistaking(
    at: CallContext<'_>,
    config: &InstanceConfig,
    kind: ErrorKind,
) -> Result<InstanceInfo> {
    match at.inner.launch_instance(config).await {
        Err(error) if error.kind() == kind => {
            let id = at.harness.unknown_id();
            Ok(InstanceInfo::new(id, CloudInstanceState::Pending))
        }
        answer => answer,
    }
}

#[derive(Default)]
pub(super) struct MistakesFailedLaunches;

#[async_trait]
impl Override for MistakesFailedLaunches {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        launch_mistaking(at, config, ErrorKind::Unavailable).await
    }
}

/// Hands over what it saw of a list that failed as what survived.
#[derive(Default)]
pub(super) struct FailedListClaimsSurvivors;

#[async_trait]
impl Override for FailedListClaimsSurvivors {
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let answer = at.inner.list_instances(filter).await;
        answer.map_err(|error| {
            let all = at.harness.cloud().oracle().instances();
            let seen = all.into_iter().map(|truth| truth.info);
            error.with_survivors(seen.filter(|info| filter.matches(info)).take(1).collect())
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
        let answers = at.inner.describe_instances(ids).await.into_iter();
        let unknown = |error: ProvisionError| error.with_effect(Effect::Unknown);
        answers.map(|answer| answer.map_err(unknown)).collect()
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
