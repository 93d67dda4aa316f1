//! Waiting for operations.
//!
//! Owns how often an operation is polled and for how long. It decides nothing: the caller reads
//! from the returned operation whether it succeeded, failed or is still running.
//!
//! `zoneOperations.wait` returns when the operation is done or after two minutes, whichever comes
//! first, and sooner if the server is overloaded (Compute Engine API reference, `zoneOperations.wait`),
//! so it is repeated until the timeout.

use std::{collections::HashMap, time::Duration};

use fleetwright_provider_support::poll::{deadline_after, poll_delays, sleep_before};
use google_cloud_compute_v1::model::Operation as NativeOperation;
use tokio::time::{Instant, sleep, timeout_at};

use crate::{
    GcpProvisioner,
    client::{ListScope, OperationScope},
    convert,
    error::{Failure, GcpFailure as _},
    history,
};

/// How an operation ended.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// It has not ended.
    Running,
    /// It did what it should.
    Succeeded,
    /// It failed.
    Failed(Failure),
    /// It ended so long ago that it cannot be read any more.
    Expired,
}

impl GcpProvisioner {
    /// Waits until it is known that no insert of one launch fails for lack of capacity, for `launch_wait`
    /// in all. A single operation is awaited by its own call. Several are followed by lists of their
    /// instances: an operation is read only if its instance disappears. Updates `pending` in place.
    pub(crate) async fn await_inserts(&self, zone: &str, mut pending: Vec<&mut NativeOperation>) {
        let timeout = self.options.launch_wait;
        if timeout.is_zero() {
            return;
        }
        if let [one] = &mut pending[..] {
            let scope = OperationScope::Zone(zone);
            **one = self
                .await_operation(scope, std::mem::take(*one), timeout)
                .await;
            return;
        }
        let deadline = deadline_after(timeout);
        for delay in poll_delays(self.options.poll_interval) {
            pending.retain(|operation| !history::is_over(operation));
            let left = deadline.saturating_duration_since(Instant::now());
            if pending.is_empty() || left.is_zero() {
                return;
            }
            sleep(delay.min(left)).await;
            let last = deadline + self.options.poll_interval;
            let _ = timeout_at(last, self.follow_inserts(zone, &mut pending)).await;
        }
    }

    /// Reads the instances of running inserts once. Drops the inserts whose instance has a machine, and
    /// reads those whose instance does not show.
    async fn follow_inserts(
        &self,
        zone: &str,
        pending: &mut Vec<&mut NativeOperation>,
    ) -> Result<(), Failure> {
        let project = self.client.project();
        let name =
            |operation: &NativeOperation| Some(convert::operation_target(project, operation)?.name);
        let names: Vec<_> = pending.iter().filter_map(|one| name(one)).collect();
        let mut states = HashMap::new();
        for some in names.chunks(self.capabilities.batch_size.get()) {
            let filter = convert::name_filter(some.iter().map(String::as_str));
            for native in self.list_all(ListScope::Zone(zone), &filter).await? {
                let state = native.status.as_ref().and_then(|status| status.name());
                states.extend(native.id.zip(state.map(ToOwned::to_owned)));
            }
        }
        let state = |operation: &NativeOperation| {
            let number = operation.target_id?;
            states.get(&number).map(String::as_str)
        };
        // From its second state on, an instance has a machine.
        pending.retain(|one| matches!(state(one), None | Some("PROVISIONING" | "STOPPING")));
        for operation in pending {
            if state(operation) == Some("PROVISIONING") {
                continue;
            }
            match (operation.name.clone(), operation.target_id) {
                (Some(name), _) => **operation = self.client.operation(zone, &name).await?,
                // A bulk insert does not name the operation of each instance.
                (None, Some(number)) => {
                    let mut histories = self.histories([zone], &[number]).await?;
                    let own = histories.remove(&number).unwrap_or_default();
                    if let Some(insert) = own.into_iter().find(history::is_insert) {
                        **operation = insert;
                    }
                }
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Reads how an operation ended, by its name.
    pub(crate) async fn read_outcome(&self, zone: &str, name: &str) -> Result<Outcome, Failure> {
        let operation = match self.client.operation(zone, name).await {
            Err(failure) if failure.is_not_found() => return Ok(Outcome::Expired),
            read => read?,
        };
        Ok(match history::failure(&operation) {
            Some(failure) => Outcome::Failed(failure),
            None if history::is_over(&operation) => Outcome::Succeeded,
            None => Outcome::Running,
        })
    }

    /// Waits until an operation is done, for `timeout` at most, and retries waits that fail. If the
    /// operation cannot be read any more, because it has expired, returns it as it was last read:
    /// it was accepted, and a read of the instance shows what became of it.
    pub(crate) async fn await_operation(
        &self,
        scope: OperationScope<'_>,
        mut operation: NativeOperation,
        timeout: Duration,
    ) -> NativeOperation {
        if timeout.is_zero() {
            return operation;
        }
        let deadline = deadline_after(timeout);
        for delay in poll_delays(self.options.poll_interval) {
            if history::is_over(&operation) || Instant::now() >= deadline {
                return operation;
            }
            let Some(name) = operation.name.clone() else {
                return operation;
            };
            let mut retry_after = Duration::ZERO;
            match timeout_at(deadline, self.client.wait(scope, &name)).await {
                Ok(Ok(current)) => operation = current,
                Ok(Err(failure)) if failure.is_throttled() => retry_after = failure.retry_delay(),
                Ok(Err(failure)) if failure.may_pass() => {}
                Ok(Err(_)) | Err(_) => return operation,
            }
            if !history::is_over(&operation) && !sleep_before(deadline, delay, retry_after).await {
                return operation;
            }
        }
        operation
    }
}
