//! Backends that break the family launch.

use std::sync::Mutex;

use async_trait::async_trait;
use fleetwright::{
    CloudInstanceState, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceStatus,
    Result, UserData,
};

use super::{Mutant, Twist};
use crate::zoo::{At, TwistedHarness};

/// One for each clause of the family, or more.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "launch answers a stopped instance",
        dies_of: "LAUNCH-01",
        make: TwistedHarness::factory::<AnswersStopped>,
    },
    Mutant {
        name: "id reused after terminate",
        dies_of: "LAUNCH-02",
        make: TwistedHarness::factory::<ReusesIds>,
    },
    Mutant {
        name: "user data cut at a line end",
        dies_of: "LAUNCH-05",
        make: TwistedHarness::factory::<CutsUserData>,
    },
];

#[derive(Default)]
struct AnswersStopped;

#[async_trait]
impl Twist for AnswersStopped {
    async fn launch_instance(&self, at: At<'_>, config: &InstanceConfig) -> Result<InstanceInfo> {
        let mut info = at.inner.launch_instance(config).await?;
        info.state = CloudInstanceState::Stopped;
        Ok(info)
    }
}

/// Shows every second instance under the id of the first.
#[derive(Default)]
struct ReusesIds(Mutex<Option<InstanceId>>);

#[async_trait]
impl Twist for ReusesIds {
    async fn launch_instance(&self, at: At<'_>, config: &InstanceConfig) -> Result<InstanceInfo> {
        let mut info = at.inner.launch_instance(config).await?;
        let mut first = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        info.id = first.get_or_insert(info.id).clone();
        Ok(info)
    }
    async fn describe_instance(&self, at: At<'_>, id: &InstanceId) -> Result<InstanceStatus> {
        at.inner.describe_instance(id).await
    }
    async fn list_instances(
        &self,
        at: At<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        at.inner.list_instances(filter).await
    }
}

#[derive(Default)]
struct CutsUserData;

#[async_trait]
impl Twist for CutsUserData {
    async fn launch_instance(&self, at: At<'_>, config: &InstanceConfig) -> Result<InstanceInfo> {
        let mut config = config.clone();
        let cut = |data: UserData| UserData::new(data.as_bytes().trim_ascii_end()).ok();
        config.user_data = config.user_data.and_then(cut);
        at.inner.launch_instance(&config).await
    }
}
