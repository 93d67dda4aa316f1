//! Waiting for a state by polling the records and the cloud.

use std::time::Duration;

use fleetwright_compute::{
    ComputeError,
    instance::{InstanceId, Provisioning},
    service::InstanceView,
};
use fleetwright_region::server::Phase;
use tokio::time::{Instant, sleep};

use crate::{Failure, cloud, moment::Moment, story::Story};

/// The interval of polls.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The longest wait.
const TIMEOUT: Duration = Duration::from_secs(120);

impl Story<'_> {
    pub(crate) async fn until_running(&mut self, id: InstanceId) -> Result<InstanceView, Failure> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let view = self.facade.instances.read(&self.ada, id).await?;
            let status = &view.instance.status;
            if view.provisioning == Provisioning::Provisioned && status.phase == Phase::Running {
                return Ok(view);
            }
            self.pause(deadline, || {
                format!("{} to run: {view:?}", view.instance.name)
            })
            .await?;
        }
    }

    pub(crate) async fn until_moment(
        &mut self,
        id: InstanceId,
        moment: Moment,
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let found = self.inspect(id).await?;
            let machines = cloud::machines(self.emulator, found.instance.server);
            let server = found.server.as_ref().map(|view| &view.server);
            if server.is_some_and(|server| moment.is_now(self.emulator, &machines, server)) {
                return Ok(());
            }
            self.pause(deadline, || {
                format!("{}: {machines:?} {server:?}", moment.description())
            })
            .await?;
        }
    }

    pub(crate) async fn until_gone(&mut self, id: InstanceId) -> Result<(), Failure> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match self.facade.instances.read(&self.ada, id).await {
                Err(ComputeError::NotFound(_)) => return Ok(()),
                Err(error) => return Err(error.into()),
                Ok(view) => {
                    self.pause(deadline, || {
                        format!("{} to be deleted: {view:?}", view.instance.name)
                    })
                    .await?;
                }
            }
        }
    }

    /// Sleeps until the next poll. Fails if the fleet process has ended, or after the deadline.
    pub(crate) async fn pause(
        &mut self,
        deadline: Instant,
        what: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        self.fleet.must_run()?;
        if Instant::now() >= deadline {
            return Err(format!("timed out while waiting for {}", what()).into());
        }
        sleep(POLL_INTERVAL).await;
        Ok(())
    }
}
