//! Backends that declare late failures and do not report them.

use std::{collections::HashMap, sync::Mutex};

use async_trait::async_trait;
use fleetwright::{
    Call, CloudInstanceState::Terminated, ErrorKind, InstanceConfig, InstanceFilter, InstanceId,
    InstanceInfo, InstanceStatus, LaunchFailure, LaunchToken, Operation, Result,
};

use super::{CallContext, Override, described, lock};
use crate::mutants::list::Relist;

#[derive(Default)]
pub(super) struct ForgetsWhy;

#[async_trait]
impl Override for ForgetsWhy {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        described(at, id, |status| status.launch_failure = None).await
    }
}

#[derive(Default)]
pub(super) struct ForgetsTheCode;

#[async_trait]
impl Override for ForgetsTheCode {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let change = |status: &mut InstanceStatus| {
            if let Some(failure) = &mut status.launch_failure {
                failure.native_code = None;
            }
        };
        described(at, id, change).await
    }
}

/// Describes every late failure as unexpected.
#[derive(Default)]
pub(super) struct DescribesNoKinds;

#[async_trait]
impl Override for DescribesNoKinds {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        described(at, id, |status| hide_kind(&mut status.launch_failure)).await
    }
}

/// Lists every late failure as unexpected.
#[derive(Default)]
pub(super) struct ListsNoKinds;

#[async_trait]
impl Relist for ListsNoKinds {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        for info in &mut list {
            hide_kind(&mut info.launch_failure);
        }
        Ok(list)
    }
}

fn hide_kind(failure: &mut Option<LaunchFailure>) {
    if let Some(failure) = failure {
        failure.kind = ErrorKind::Unexpected;
    }
}

#[derive(Default)]
pub(super) struct MarksEveryEnd;

#[async_trait]
impl Override for MarksEveryEnd {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let change = |status: &mut InstanceStatus| {
            if status.state == Terminated {
                let failure = || LaunchFailure::new(ErrorKind::Unexpected, []);
                status.launch_failure.get_or_insert_with(failure);
            }
        };
        described(at, id, change).await
    }
}

/// Refuses a token whose launch failed late.
#[derive(Default)]
pub(super) struct SpendsFailedTokens(Mutex<HashMap<LaunchToken, InstanceId>>);

#[async_trait]
impl Override for SpendsFailedTokens {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instance(config).await;
        };
        let earlier = lock(&self.0).get(token).cloned();
        if let Some(id) = earlier {
            let status = at.inner.describe_instance(&id).await;
            if status.is_ok_and(|status| status.launch_failure.is_some()) {
                return Err(Call::new("memory", Operation::LaunchInstance).token_spent(token));
            }
        }
        let launched = at.inner.launch_instance(config).await?;
        lock(&self.0).insert(token.clone(), launched.id.clone());
        Ok(launched)
    }
}
