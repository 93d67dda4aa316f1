//! The fleet process: everything that makes true what tenants ask for. It can be killed at any point.

use std::{
    io,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use fleetwright::InstanceProvisioner;
use fleetwright_compute::{
    controller::Controller, networks::NetworkDeletionController, service::compute_principal,
};
use fleetwright_region::{
    controller::Controller as ServerController,
    monitor::{Monitor, Policy},
};
use tokio::sync::oneshot;

use crate::{Failure, cloud, facade::Facade};

/// Works until standard input ends, as it does when the one who started it is gone.
pub(crate) async fn run(endpoint: &str, folder: &Path) -> Result<(), Failure> {
    let cloud: Arc<dyn InstanceProvisioner> = Arc::new(cloud::provisioner(endpoint)?);
    let facade = Facade::open(folder, cloud.capabilities().verbs.clone()).await?;
    let (store, clock, region) = (facade.store, facade.clock, facade.region);

    let servers = ServerController::new(
        region.clone(),
        Arc::clone(&store),
        Arc::clone(&cloud),
        facade.planner,
        Arc::clone(&clock),
    )?;
    let mut policy = Policy::default();
    policy.tick = Duration::from_millis(50);
    let monitor = Monitor::new(region, Arc::clone(&store), cloud, Arc::clone(&clock))?;
    let monitor = monitor.with_policy(policy);
    let service = compute_principal()?;
    let instances = Controller::new(
        Arc::clone(&store),
        facade.servers,
        facade.ledger,
        Arc::clone(&clock),
        service.clone(),
    )?;
    let networks = NetworkDeletionController::new(store, facade.networks, clock, service)?;

    tokio::select! {
        _ = end_of_input() => Ok(()),
        () = servers.run() => Ok(()),
        () = monitor.run() => Ok(()),
        () = instances.run() => Ok(()),
        () = networks.run() => Ok(()),
    }
}

fn end_of_input() -> oneshot::Receiver<()> {
    let (sender, receiver) = oneshot::channel();
    thread::spawn(move || {
        // An input that cannot be read has ended, too.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = sender.send(());
    });
    receiver
}

/// A fleet process, seen from the one who started it. It goes when this is dropped.
pub(crate) struct Fleet {
    child: Child,
}

impl Fleet {
    /// Runs this program again, as a fleet process.
    pub(crate) fn start(endpoint: &str, folder: &Path) -> Result<Self, Failure> {
        let program = std::env::current_exe()?;
        let child = Command::new(program)
            .args(["fleet", "--endpoint", endpoint, "--folder"])
            .arg(folder)
            .stdin(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the fleet process cannot be started: {error}"))?;
        Ok(Self { child })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails if it has ended by itself.
    pub(crate) fn must_run(&mut self) -> Result<(), Failure> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                Err(format!("the fleet process {} ended by itself: {status}", self.id()).into())
            }
        }
    }

    /// Kills it. No handler runs, nothing is flushed, nobody is told.
    pub(crate) fn kill(&mut self) -> io::Result<ExitStatus> {
        self.child.kill()?;
        self.child.wait()
    }

    /// Lets it end.
    pub(crate) fn stop(&mut self) -> io::Result<ExitStatus> {
        drop(self.child.stdin.take());
        self.child.wait()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // One that has ended is not there to be killed.
        let _ = self.kill();
    }
}
