//! Backends that report something else than what happened.

use std::num::NonZeroU32;

use async_trait::async_trait;
use fleetwright::{
    BoxStream, CloudInstanceState, Effect, ErrorKind, InstanceConfig, InstanceFilter, InstanceId,
    InstanceInfo, InstanceStatus, InstanceType, LaunchRecord, LaunchToken, ListItem, Operation,
    ProvisionError, Result, RetryAdvice, TagChange,
};
use futures_util::StreamExt as _;

use super::{CallContext, Failed, Override, change, failed_before, lock};

/// The kinds of an error without a response.
const LOST: &[ErrorKind] = &[ErrorKind::Timeout];

/// Overrides one call, given the handle and the result of the correct one.
macro_rules! batch_launch {
    ($(#[$doc:meta])* $name:ident, $change:expr) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(super) struct $name;

        #[async_trait]
        impl Override for $name {
            async fn launch_instances(
                &self,
                at: CallContext<'_>,
                config: &InstanceConfig,
                count: NonZeroU32,
            ) -> Result<Vec<InstanceInfo>> {
                let result = at.inner.launch_instances(config, count).await;
                let change: fn(&InstanceConfig, Result<Vec<InstanceInfo>>) -> Result<Vec<InstanceInfo>> = $change;
                change(config, result)
            }
        }
    };
}

batch_launch!(LostBatchHasNoEffect, |_, result| {
    change(result, LOST, |error| error.with_effect(Effect::None))
});

batch_launch!(QuotaIsTemporary, |_, result| {
    change(result, &[ErrorKind::Quota], |error| {
        reported(&error, RetryAdvice::SameToken)
    })
});

batch_launch!(
    /// Puts the config into its message.
    ShowsConfigOfBatch,
    |config, result| {
        change(result, LOST, |error| {
            let data = config.user_data.as_ref().map(|data| data.as_bytes());
            let data = String::from_utf8_lossy(data.unwrap_or_default()).into_owned();
            let call = fleetwright::Call::new(error.provider(), error.operation());
            let message = format!("no response to a launch with {data}");
            call.reported(error.kind(), error.effect(), error.retry(), &message)
        })
    }
);

batch_launch!(ShowsConfigInCause, |config, result| {
    change(result, &[ErrorKind::Unavailable], |error| {
        let data = config.user_data.as_ref().map(|data| data.as_bytes());
        let data = String::from_utf8_lossy(data.unwrap_or_default()).into_owned();
        error.with_source(std::io::Error::other(data))
    })
});

/// Returns an error with another advice.
fn reported(error: &ProvisionError, retry: RetryAdvice) -> ProvisionError {
    let call = fleetwright::Call::new(error.provider(), error.operation());
    call.reported(error.kind(), error.effect(), retry, error.message())
}

/// Launches a batch item by item, and forgets the ones that exist when another one fails.
#[derive(Default)]
pub(super) struct BatchNamesNoSurvivors;

#[async_trait]
impl Override for BatchNamesNoSurvivors {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let mut launched = Vec::new();
        for index in 0..count.get() {
            let mut item = config.clone();
            item.launch_token = config.launch_token.as_ref().map(|token| token.item(index));
            item.batch = Some(count);
            launched.push(at.inner.launch_instance(&item).await?);
        }
        Ok(launched)
    }
}

#[derive(Default)]
pub(super) struct StopsSwallowErrors;

#[async_trait]
impl Override for StopsSwallowErrors {
    async fn stop_instances(&self, at: CallContext<'_>, ids: &[InstanceId]) -> Vec<Result<()>> {
        swallow(at.inner.stop_instances(ids).await)
    }
}

#[derive(Default)]
pub(super) struct TerminationsSwallowErrors;

#[async_trait]
impl Override for TerminationsSwallowErrors {
    async fn terminate_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        swallow(at.inner.terminate_instances(ids).await)
    }
}

fn swallow(results: Vec<Result<()>>) -> Vec<Result<()>> {
    let swallow = |result: Result<()>| match result {
        Err(error) if error.kind() == ErrorKind::Unavailable => Ok(()),
        result => result,
    };
    results.into_iter().map(swallow).collect()
}

macro_rules! change_of_tags {
    ($name:ident, $kinds:expr, $change:expr) => {
        #[derive(Default)]
        pub(super) struct $name;

        #[async_trait]
        impl Override for $name {
            async fn update_tags(
                &self,
                at: CallContext<'_>,
                id: &InstanceId,
                tags: &TagChange,
            ) -> Result<()> {
                change(at.inner.update_tags(id, tags).await, $kinds, $change)
            }
        }
    };
}

change_of_tags!(FailedTagsAreDone, &[ErrorKind::Unauthenticated], |error| {
    error.with_effect(Effect::Done)
});
change_of_tags!(TagsNameAnotherCall, &ErrorKind::ALL, |error| {
    error.with_operation(Operation::RebootInstance)
});
change_of_tags!(LostTagsAreFinal, LOST, |error| {
    reported(&error, RetryAdvice::Never)
});

#[derive(Default)]
pub(super) struct LostResizeHasNoEffect;

#[async_trait]
impl Override for LostResizeHasNoEffect {
    async fn resize_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        to: &InstanceType,
    ) -> Result<()> {
        let result = at.inner.resize_instance(id, to).await;
        change(result, LOST, |error| error.with_effect(Effect::None))
    }
}

macro_rules! batch_of_descriptions {
    ($name:ident, $change:expr) => {
        #[derive(Default)]
        pub(super) struct $name;

        #[async_trait]
        impl Override for $name {
            async fn describe_instances(
                &self,
                at: CallContext<'_>,
                ids: &[InstanceId],
            ) -> Vec<Result<InstanceStatus>> {
                let results = at.inner.describe_instances(ids).await;
                let failed = |result: &Result<InstanceStatus>| {
                    let error = result.as_ref().err();
                    error.is_some_and(|error| error.kind() == ErrorKind::Unavailable)
                };
                if !results.iter().any(failed) {
                    return results;
                }
                let change: fn(
                    CallContext<'_>,
                    &[InstanceId],
                    Vec<Result<InstanceStatus>>,
                ) -> Vec<Result<InstanceStatus>> = $change;
                change(at, ids, results)
            }
        }
    };
}

batch_of_descriptions!(NotFoundForServerError, |at, ids, _| {
    let call = at.call(Operation::DescribeInstances);
    ids.iter().map(|id| Err(call.not_found(id))).collect()
});
batch_of_descriptions!(TruncatesFailedDescriptions, |_, _, results| {
    results.into_iter().take(1).collect()
});
batch_of_descriptions!(DescribesNothingAsPending, |_, ids, _| {
    let pending = |id: &InstanceId| InstanceStatus::new(id.clone(), CloudInstanceState::Pending);
    ids.iter().map(|id| Ok(pending(id))).collect()
});

#[derive(Default)]
pub(super) struct NoAccessIsForbidden;

#[async_trait]
impl Override for NoAccessIsForbidden {
    async fn start_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let call = at.call(Operation::StartInstances);
        let results = at.inner.start_instances(ids).await.into_iter();
        let forbidden = |result| {
            change(result, &[ErrorKind::Unauthenticated], |_| {
                call.forbidden("access denied")
            })
        };
        results.map(forbidden).collect()
    }
}

#[derive(Default)]
pub(super) struct StreamFailsAsConflict;

impl Override for StreamFailsAsConflict {
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let call = at.call(Operation::StreamInstances);
        let conflict = move |item| {
            change(item, &[ErrorKind::Unexpected], |_| {
                call.conflict("the list has changed", RetryAdvice::SameToken)
            })
        };
        at.inner.stream_instances(filter).map(conflict).boxed()
    }
}

#[derive(Default)]
pub(super) struct ThrottledTerminationsAreRetried;

#[async_trait]
impl Override for ThrottledTerminationsAreRetried {
    async fn terminate_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let results = at.inner.terminate_instances(ids).await.into_iter();
        let at_once = |result| {
            change(result, &[ErrorKind::Throttled], |error| {
                reported(&error, RetryAdvice::SameToken)
            })
        };
        results.map(at_once).collect()
    }
}

/// Takes the retry of a batch whose response could not be parsed for another launch.
#[derive(Default)]
pub(super) struct RefusesRetryOfBatch(Failed);

#[async_trait]
impl Override for RefusesRetryOfBatch {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let token = config.launch_token.as_ref();
        if let Some(token) = token.filter(|_| failed_before(&self.0, token)) {
            return Err(at.call(Operation::LaunchInstances).token_conflict(token));
        }
        let result = at.inner.launch_instances(config, count).await;
        let unknown = |error: &ProvisionError| error.kind() == ErrorKind::Unexpected;
        if result.as_ref().is_err_and(unknown) {
            lock(&self.0).extend(token.cloned());
        }
        result
    }
}

#[derive(Default)]
pub(super) struct FindsLaunchOfNobody;

#[async_trait]
impl Override for FindsLaunchOfNobody {
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        match at.inner.find_launch(token).await {
            Err(error) if error.kind() == ErrorKind::Forbidden => Ok(LaunchRecord::NotFound),
            result => result,
        }
    }
}
