//! Running a façade's loops: until dropped, or in the background until they are shut down.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::{sync::oneshot, task::JoinHandle};

use super::{Facade, FacadeRegion};

/// The delay before the catalog is followed again after the store failed.
const FOLLOW_AGAIN: Duration = Duration::from_secs(2);

/// How often interrupted deletions of organizations and projects are continued.
const FINISH_EVERY: Duration = Duration::from_secs(60);

impl Facade {
    /// Runs the controllers, monitors and snapshot loops of every region, keeps the catalog up to date with other processes, continues
    /// interrupted deletions of projects, and removes audit entries that are older than their retention.
    ///
    /// It never returns; drop the future to stop. That is as safe at any point as killing the process: every step is one
    /// transaction, and the next run continues from the records.
    pub async fn run(&self) {
        let regions = self.regions.iter().map(FacadeRegion::run);
        tokio::join!(
            self.instance_controller.run(),
            self.network_controller.run(),
            self.follow_catalog(),
            self.finish_deletions(),
            self.audit.run(),
            join_all(regions),
        );
    }

    /// Starts [`run`](Self::run) in the background, on the current tokio runtime.
    ///
    /// ```no_run
    /// use fleetwright_compute::Facade;
    ///
    /// # async fn example(facade: Facade, end_of_process: impl Future<Output = ()>) {
    /// let running = facade.start();
    /// end_of_process.await;
    /// running.shutdown().await;
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[must_use = "the loops stop when the handle is dropped"]
    pub fn start(&self) -> RunningFacade {
        let (stop, stopped) = oneshot::channel();
        let facade = self.clone();
        let task = tokio::spawn(async move {
            tokio::select! {
                // Resolves also if the handle is dropped without a shutdown.
                _ = stopped => {}
                () = facade.run() => {}
            }
        });
        RunningFacade { stop, task }
    }

    /// Continues deletions of organizations and projects that a crash interrupted.
    async fn finish_deletions(&self) {
        loop {
            if let Err(error) = self.tenancy.finish_deletions().await {
                tracing::warn!(%error, "interrupted deletions of projects are not continued; it is retried");
            }
            tokio::time::sleep(FINISH_EVERY).await;
        }
    }

    async fn follow_catalog(&self) {
        loop {
            let error = self.catalog.follow().await;
            tracing::warn!(%error, "the catalog cannot be followed; it is read again");
            tokio::time::sleep(FOLLOW_AGAIN).await;
        }
    }
}

impl FacadeRegion {
    /// Runs the region's controller, monitor and snapshot loop until the future is dropped.
    pub async fn run(&self) {
        tokio::join!(
            self.controller.run(),
            self.monitor.run(),
            self.snapshots.run(),
        );
    }
}

/// The loops of a façade that run in the background. They stop when it is dropped.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// # let facade = fleetwright_facade_testkit::TestFacade::new().await;
/// let running = facade.start();
/// // Serve calls until the process must stop.
/// running.shutdown().await;
/// # }
/// ```
#[derive(Debug)]
pub struct RunningFacade {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl RunningFacade {
    /// Stops the loops and returns when they have ended and released the store and the clouds.
    ///
    /// Calls that are under way are dropped and not waited for; the next start repeats what they had not recorded.
    ///
    /// # Panics
    ///
    /// If a loop panicked, with its panic.
    pub async fn shutdown(self) {
        // The receiver is gone if the task has ended, and then there is nothing to stop.
        let _ = self.stop.send(());
        match self.task.await {
            Ok(()) => {}
            Err(failure) if failure.is_panic() => std::panic::resume_unwind(failure.into_panic()),
            // The runtime was shut down first.
            Err(_) => {}
        }
    }
}
