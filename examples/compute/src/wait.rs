//! Waiting for what is to come true, by looking and never by the clock alone.

use std::time::Duration;

use fleetwright_compute::{
    ComputeError,
    instance::{InstanceId, Provisioning},
    service::InstanceView,
};
use fleetwright_region::server::Phase;
use tokio::time::{Instant, sleep};

use crate::{Failure, cloud, moment::Moment, story::Story};

/// How often it is looked, and how long at the most.
const LOOK: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(120);

impl Story<'_> {
    pub(crate) async fn until_settled(&mut self, id: InstanceId) -> Result<InstanceView, Failure> {
        let patience = Instant::now() + PATIENCE;
        loop {
            let view = self.facade.instances.read(&self.ada, id).await?;
            let status = &view.instance.status;
            if view.provisioning == Provisioning::Provisioned && status.phase == Phase::Running {
                return Ok(view);
            }
            self.go_on(patience, || {
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
        let patience = Instant::now() + PATIENCE;
        loop {
            let found = self.inspect(id).await?;
            let machines = cloud::machines(self.emulator, found.instance.server);
            let server = found.server.as_ref().map(|view| &view.server);
            if server.is_some_and(|server| moment.is_now(self.emulator, &machines, server)) {
                return Ok(());
            }
            self.go_on(patience, || {
                format!("{}: {machines:?} {server:?}", moment.words())
            })
            .await?;
        }
    }

    pub(crate) async fn until_gone(&mut self, id: InstanceId) -> Result<(), Failure> {
        let patience = Instant::now() + PATIENCE;
        loop {
            match self.facade.instances.read(&self.ada, id).await {
                Err(ComputeError::NotFound(_)) => return Ok(()),
                Err(error) => return Err(error.into()),
                Ok(view) => {
                    self.go_on(patience, || {
                        format!("{} to be gone: {view:?}", view.instance.name)
                    })
                    .await?;
                }
            }
        }
    }

    /// Waits for the next look, unless there is nobody who works, or it took too long.
    pub(crate) async fn go_on(
        &mut self,
        until: Instant,
        what: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        self.fleet.must_run()?;
        if Instant::now() >= until {
            return Err(format!("waited in vain for {}", what()).into());
        }
        sleep(LOOK).await;
        Ok(())
    }
}
