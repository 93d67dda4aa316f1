//! The fleet process: runs every loop of the façade. It can be killed at any point.

use std::{
    io,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
};

use tokio::sync::oneshot;

use crate::{Failure, facade};

/// Runs the loops until standard input ends, as it does when the process that started this one has ended.
pub(crate) async fn run(endpoint: &str, folder: &Path) -> Result<(), Failure> {
    let running = facade::open(folder, endpoint).await?.start();
    // The sender is dropped only after it has sent.
    let _ = end_of_input().await;
    running.shutdown().await;
    Ok(())
}

fn end_of_input() -> oneshot::Receiver<()> {
    let (sender, receiver) = oneshot::channel();
    thread::spawn(move || {
        // An input that cannot be read counts as ended.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = sender.send(());
    });
    receiver
}

/// The handle of a fleet process. Dropping it kills the process.
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

    /// Fails if the process has ended by itself.
    pub(crate) fn must_run(&mut self) -> Result<(), Failure> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                Err(format!("the fleet process {} ended by itself: {status}", self.id()).into())
            }
        }
    }

    /// Kills the process. No handler runs and nothing is flushed.
    pub(crate) fn kill(&mut self) -> io::Result<ExitStatus> {
        self.child.kill()?;
        self.child.wait()
    }

    /// Ends the process by closing its standard input, and waits for it.
    pub(crate) fn stop(&mut self) -> io::Result<ExitStatus> {
        drop(self.child.stdin.take());
        self.child.wait()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // Fails if the process has ended already.
        let _ = self.kill();
    }
}
