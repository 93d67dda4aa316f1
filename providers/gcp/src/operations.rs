//! Waiting for operations.
//!
//! Owns how often an operation is polled and for how long. It decides nothing: the caller reads
//! from the returned operation whether it succeeded, failed or is still running.
//!
//! `zoneOperations.wait` returns when the operation is done or after about two minutes, whichever
//! comes first, so it is repeated until the timeout.

use std::time::Duration;

use fleetwright_provider_support::poll::{deadline_after, poll_delays};
use google_cloud_compute_v1::model::Operation as NativeOperation;
use tokio::time::{Instant, sleep, timeout_at};

use crate::{GcpProvisioner, error::GcpFailure as _, history};

impl GcpProvisioner {
    /// Waits until all inserts of one launch are done, for `launch_wait` in all. A single operation
    /// is awaited by its own call, several by lists of operations, which cost less. Updates them in
    /// place.
    pub(crate) async fn await_inserts(&self, zone: &str, mut pending: Vec<&mut NativeOperation>) {
        let timeout = self.options.launch_wait;
        if let [one] = &mut pending[..] {
            **one = self.await_operation(zone, one.clone(), timeout).await;
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
            let numbers = pending.iter().filter_map(|operation| operation.target_id);
            let numbers: Vec<_> = numbers.collect();
            let read = self.histories([zone], &numbers);
            let read = timeout_at(deadline + self.options.poll_interval, read).await;
            let Ok(Ok(histories)) = read else {
                continue;
            };
            for operation in &mut pending {
                let number = operation.target_id.unwrap_or_default();
                let mut listed = histories.get(&number).into_iter().flatten();
                if let Some(current) = listed.find(|one| one.name == operation.name) {
                    **operation = current.clone();
                }
            }
        }
    }

    /// Waits until an operation is done, for `timeout` at most, and retries waits that fail. If the
    /// operation cannot be read any more, because it has expired, returns it as it was last read:
    /// it was accepted, and a read of the instance shows what became of it.
    pub(crate) async fn await_operation(
        &self,
        zone: &str,
        mut operation: NativeOperation,
        timeout: Duration,
    ) -> NativeOperation {
        let deadline = deadline_after(timeout);
        for delay in poll_delays(self.options.poll_interval) {
            let Some(name) = operation.name.clone() else {
                return operation;
            };
            if history::is_over(&operation) || Instant::now() >= deadline {
                return operation;
            }
            match timeout_at(deadline, self.client.wait(zone, &name)).await {
                Ok(Ok(current)) => operation = current,
                Ok(Err(failure)) if failure.may_pass() => {}
                Ok(Err(_)) | Err(_) => return operation,
            }
            if !history::is_over(&operation) {
                let left = deadline.saturating_duration_since(Instant::now());
                sleep(delay.min(left)).await;
            }
        }
        operation
    }
}
