//! Backends that block their thread.

use std::{thread, time::Duration};

use async_trait::async_trait;
use fleetwright::{ErrorKind, InstanceId, InstanceStatus, Result};
use tokio::time::sleep;

use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};

/// At least one for TIME-06.
pub(super) const MUTANTS: &[Mutant] = &[Mutant {
    name: "a throttled call sleeps on its thread",
    violates: "TIME-06",
    make: OverrideHarness::factory::<SleepsOnItsThread>,
}];

/// Retries after the delay that the cloud demands, and lets no other task run at its beginning.
#[derive(Default)]
struct SleepsOnItsThread;

#[async_trait]
impl Override for SleepsOnItsThread {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        match at.inner.describe_instance(id).await {
            Err(error) if error.kind() == ErrorKind::Throttled => {
                thread::sleep(BLOCKED);
                sleep(error.retry().delay().unwrap_or_default()).await;
                at.inner.describe_instance(id).await
            }
            result => result,
        }
    }
}

/// As long as the clause needs to notice it, and not longer, because it takes real time.
const BLOCKED: Duration = Duration::from_millis(300);
