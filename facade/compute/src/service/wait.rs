//! Waiting for an instance, for programs that have nothing else to do.

use std::time::Duration;

use fleetwright_identity::Principal;
use tokio::time::{Instant, sleep, timeout_at};

use super::{InstanceView, Instances, RETRY_AFTER};
use crate::{
    ComputeError,
    instance::{InstanceId, Provisioning},
};

/// The delay between two reads.
const READ_EVERY: Duration = Duration::from_millis(250);

impl Instances {
    /// Waits until the desired state of an instance is applied, and returns the instance.
    ///
    /// ```no_run
    /// use fleetwright_compute::prelude::*;
    ///
    /// # async fn example(instances: &Instances, ada: &Principal, id: InstanceId) -> Result<(), ComputeError> {
    /// instances.stop(ada, id).await?;
    /// let view = instances.wait_until_provisioned(ada, id, Duration::from_secs(120)).await?;
    /// assert_eq!(view.instance.status.phase, Phase::Stopped);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It reads the instance four times a second. Controllers have to run, in this process or in another one on the same store.
    ///
    /// # Errors
    ///
    /// [`NotReady`](ComputeError::NotReady) as soon as that needs a decision of its tenant, when it is
    /// being deleted, and after `timeout`; the error says what the instance was waiting for. Otherwise as [`read`](Self::read).
    pub async fn wait_until_provisioned(
        &self,
        principal: &Principal,
        id: InstanceId,
        timeout: Duration,
    ) -> Result<InstanceView, ComputeError> {
        let deadline = Instant::now() + timeout;
        loop {
            let read = timeout_at(deadline, self.read(principal, id)).await;
            let view =
                read.map_err(|_| not_provisioned(id, "the store did not respond".to_owned()))??;
            match view.provisioning {
                Provisioning::Provisioned => return Ok(view),
                Provisioning::Error | Provisioning::Deprovisioning => return Err(stuck(&view)),
                Provisioning::Pending | Provisioning::Provisioning => {}
            }
            if Instant::now() >= deadline {
                return Err(stuck(&view));
            }
            sleep(READ_EVERY).await;
        }
    }
}

fn stuck(view: &InstanceView) -> ComputeError {
    let found = match &view.waiting {
        Some(waiting) => waiting.what.clone(),
        None => format!("it is {:?}", view.provisioning).to_lowercase(),
    };
    not_provisioned(view.instance.id, found)
}

fn not_provisioned(id: InstanceId, found: String) -> ComputeError {
    ComputeError::NotReady {
        id,
        found,
        wanted: "provisioned".to_owned(),
        retry_after: Some(RETRY_AFTER),
    }
}
