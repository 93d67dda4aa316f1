//! Backends that show secrets.

use std::{io, num::NonZeroU32};

use async_trait::async_trait;
use fleetwright::{
    ErrorKind, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceStatus, Operation,
    Result,
};
use fleetwright_contract_tests::Harness as _;

use super::{Mutant, Override};
use crate::{CallContext, MemoryHarness, OverrideHarness};

/// At least one for ERRORS-14.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "missing permissions are reported with the key",
        violates: "ERRORS-14",
        make: OverrideHarness::factory::<KeyInForbidden>,
    },
    Mutant {
        name: "the source of an error contains the key",
        violates: "ERRORS-14",
        make: OverrideHarness::factory::<KeyInSource>,
    },
    Mutant {
        name: "the debug output of a handle contains the key",
        violates: "ERRORS-14",
        make: OverrideHarness::factory::<KeyInDebug>,
    },
    Mutant {
        name: "a failed batch launch shows the user data",
        violates: "ERRORS-14",
        make: OverrideHarness::factory::<UserDataInBatch>,
    },
    Mutant {
        name: "an event contains the user data",
        violates: "ERRORS-14",
        make: OverrideHarness::factory::<UserDataInEvent>,
    },
    Mutant {
        name: "a span contains the key",
        violates: "ERRORS-14",
        make: OverrideHarness::factory::<KeyInSpan>,
    },
];

/// Returns the secret of the account.
fn key(at: CallContext<'_>) -> String {
    at.harness.secrets().concat()
}

#[derive(Default)]
struct KeyInForbidden;

#[async_trait]
impl Override for KeyInForbidden {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let result = at.inner.stop_instance(id).await;
        result.map_err(|error| {
            if error.kind() == ErrorKind::Forbidden {
                let message = format!("{} may not do this", key(at));
                return at.call(Operation::StopInstance).forbidden(&message);
            }
            error
        })
    }
}

/// Keeps the request in the source of the error.
#[derive(Default)]
struct KeyInSource;

#[async_trait]
impl Override for KeyInSource {
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let result = at.inner.list_instances(filter).await;
        let request = || io::Error::other(format!("GET /instances, key {}", key(at)));
        result.map_err(|error| error.with_source(request()))
    }
}

#[derive(Default)]
struct KeyInDebug;

impl Override for KeyInDebug {
    fn debug(&self) -> String {
        format!(", key: {}", MemoryHarness::new().secrets().concat())
    }
}

#[derive(Default)]
struct UserDataInBatch;

#[async_trait]
impl Override for UserDataInBatch {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let result = at.inner.launch_instances(config, count).await;
        let data = config.user_data.as_ref();
        let data = data.map(|data| String::from_utf8_lossy(data.as_bytes()).into_owned());
        result.map_err(|error| match data {
            Some(data) => error.with_source(io::Error::other(data)),
            None => error,
        })
    }
}

#[derive(Default)]
struct UserDataInEvent;

#[async_trait]
impl Override for UserDataInEvent {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        if let Some(data) = &config.user_data {
            tracing::debug!(request = %String::from_utf8_lossy(data.as_bytes()), "launch");
        }
        at.inner.launch_instance(config).await
    }
}

#[derive(Default)]
struct KeyInSpan;

#[async_trait]
impl Override for KeyInSpan {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        drop(tracing::info_span!("describe", key = key(at)));
        at.inner.describe_instance(id).await
    }
}
