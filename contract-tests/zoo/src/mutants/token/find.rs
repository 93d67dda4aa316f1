//! Backends that look launches up wrongly.

use std::{
    collections::{HashMap, HashSet},
    num::NonZeroU32,
    sync::Mutex,
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    Call, Capabilities, CloudInstanceState, Effect, InstanceConfig, InstanceFilter, InstanceInfo,
    LaunchRecord, LaunchToken, Operation, Result,
};

use super::{CallContext, Override, launch_with, lock};
use fleetwright_contract_tests::Harness as _;

/// Looks a launch up among the launches of the same handle.
#[derive(Default)]
pub(super) struct FindsOwnOnly(Mutex<HashMap<LaunchToken, HashSet<usize>>>);

#[async_trait]
impl Override for FindsOwnOnly {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let info = at.inner.launch_instance(config).await?;
        if let Some(token) = config.launch_token.clone() {
            lock(&self.0).entry(token).or_default().insert(at.handle);
        }
        Ok(info)
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let own = lock(&self.0)
            .get(token)
            .is_some_and(|by| by.contains(&at.handle));
        if own {
            at.inner.find_launch(token).await
        } else {
            Ok(LaunchRecord::NotFound)
        }
    }
}

/// Finds pending and running instances only.
#[derive(Default)]
pub(super) struct IgnoresStopped;

#[async_trait]
impl Override for IgnoresStopped {
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let record = at.inner.find_launch(token).await?;
        let stopped = |info: &InstanceInfo| info.state == CloudInstanceState::Stopped;
        match record {
            LaunchRecord::Found(list) if list.iter().all(stopped) => Ok(LaunchRecord::NotFound),
            record @ (LaunchRecord::Found(_)
            | LaunchRecord::Terminated(_)
            | LaunchRecord::NotFound) => Ok(record),
        }
    }
}

#[derive(Default)]
pub(super) struct FailsForUnknown;

#[async_trait]
impl Override for FailsForUnknown {
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        match at.inner.find_launch(token).await? {
            LaunchRecord::NotFound => {
                let call = Call::new("memory", Operation::FindLaunch);
                Err(call.unexpected(Effect::None, "the cloud returned an empty list"))
            }
            record @ (LaunchRecord::Found(_) | LaunchRecord::Terminated(_)) => Ok(record),
        }
    }
}

/// Lists by a filter with the token, which the cloud ignores if it does not know the token.
#[derive(Default)]
pub(super) struct FindsEverything;

#[async_trait]
impl Override for FindsEverything {
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        match at.inner.find_launch(token).await? {
            LaunchRecord::NotFound => {
                let running = InstanceFilter::new().in_state(CloudInstanceState::Running);
                let all = at.inner.list_instances(&running).await?;
                Ok(LaunchRecord::from_instances(all))
            }
            record @ (LaunchRecord::Found(_) | LaunchRecord::Terminated(_)) => Ok(record),
        }
    }
}

/// Looks a token up by launching the last config with it.
#[derive(Default)]
pub(super) struct LaunchesOnLookup(Mutex<Option<InstanceConfig>>);

#[async_trait]
impl Override for LaunchesOnLookup {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let info = at.inner.launch_instance(config).await?;
        *lock(&self.0) = Some(config.clone());
        Ok(info)
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let record = at.inner.find_launch(token).await?;
        let last = lock(&self.0).clone();
        if let (LaunchRecord::NotFound, Some(last)) = (&record, last) {
            launch_with(at, &last, None).await?;
        }
        Ok(record)
    }
}

#[derive(Default)]
pub(super) struct FindsTerminated;

#[async_trait]
impl Override for FindsTerminated {
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        match at.inner.find_launch(token).await? {
            LaunchRecord::Terminated(list) => Ok(LaunchRecord::Found(list)),
            record @ (LaunchRecord::Found(_) | LaunchRecord::NotFound) => Ok(record),
        }
    }
}

#[derive(Default)]
pub(super) struct ForgetsTerminated;

#[async_trait]
impl Override for ForgetsTerminated {
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        match at.inner.find_launch(token).await? {
            LaunchRecord::Terminated(_) => Ok(LaunchRecord::NotFound),
            record @ (LaunchRecord::Found(_) | LaunchRecord::NotFound) => Ok(record),
        }
    }
}

/// Declares an hour on a cloud that remembers tokens for a shorter time.
#[derive(Default)]
pub(super) struct ForgetsEarly;

impl Override for ForgetsEarly {
    fn capabilities(&self, sound: &Capabilities) -> Capabilities {
        let mut declared = sound.clone();
        declared.token_after_terminate = Duration::from_secs(3600);
        declared
    }
}

#[derive(Default)]
pub(super) struct ReportsWrongTerminated;

#[async_trait]
impl Override for ReportsWrongTerminated {
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let mut record = at.inner.find_launch(token).await?;
        if let LaunchRecord::Terminated(kept) = &mut record {
            for info in kept {
                info.id = at.harness.unknown_id();
            }
        }
        Ok(record)
    }
}

/// Reports another fingerprint with a launch of `COUNT` instances.
#[derive(Default)]
pub(super) struct ReportsOtherFingerprint<const COUNT: usize>;

#[async_trait]
impl<const COUNT: usize> Override for ReportsOtherFingerprint<COUNT> {
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let mut record = at.inner.find_launch(token).await?;
        let other = InstanceConfig::builder("other-image", "other-type").build();
        let other = other.ok().map(|config| config.fingerprint(NonZeroU32::MIN));
        match &mut record {
            LaunchRecord::Found(list) if list.len() == COUNT => {
                for info in list {
                    info.config = other;
                }
            }
            LaunchRecord::Found(_) | LaunchRecord::Terminated(_) | LaunchRecord::NotFound => {}
        }
        Ok(record)
    }
}
