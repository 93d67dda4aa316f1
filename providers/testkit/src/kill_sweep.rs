//! A sweep that kills a process at every request that it sends.
//!
//! A test program starts itself again as a child with a [task](ChildTask). The emulator, in the parent, lets one
//! request of the child hang, and there the child is killed. A dropped future leaves a runtime with running tasks
//! behind. A killed process leaves nothing behind, so only this test shows what a crash does.

use std::{
    env, io,
    process::{Child, Command, Stdio},
    time::Duration,
};

use fleetwright::{
    InstanceConfig, InstanceId, InstanceProvisioner, LaunchRecord, LaunchToken, ProvisionError,
    Tags,
};
use fleetwright_contract_tests::{Harness, WireFault, WireOp};
use tokio::time::sleep;

const ENDPOINT: &str = "FLEETWRIGHT_KILL_SWEEP_ENDPOINT";
const LAUNCH: &str = "FLEETWRIGHT_KILL_SWEEP_LAUNCH";
const TERMINATE: &str = "FLEETWRIGHT_KILL_SWEEP_TERMINATE";

/// How often the parent checks whether the child has sent the request at which it is killed.
const CHECK_INTERVAL: Duration = Duration::from_millis(2);
/// A call that sends more requests than this is in an endless loop.
const MOST_REQUESTS: u64 = 200;

/// The task of a child process.
#[derive(Clone, Debug)]
pub struct ChildTask {
    /// The URL of the emulator.
    pub endpoint: String,
    work: Work,
}

#[derive(Clone, Debug)]
enum Work {
    Launch(Box<InstanceConfig>),
    Terminate(InstanceId),
}

impl ChildTask {
    /// Returns the task of this process, if it is a child.
    pub fn from_env() -> Option<Self> {
        let endpoint = env::var(ENDPOINT).ok()?;
        let launch = env::var(LAUNCH).ok();
        let launch = launch.and_then(|text| serde_json::from_str(&text).ok());
        let terminate = env::var(TERMINATE).ok();
        let terminate = terminate.and_then(|text| InstanceId::new(text).ok());
        let work = launch
            .map(Work::Launch)
            .or(terminate.map(Work::Terminate))?;
        Some(Self { endpoint, work })
    }

    /// Runs the task, in a child.
    pub async fn run(&self, handle: &dyn InstanceProvisioner) -> Result<(), ProvisionError> {
        match &self.work {
            Work::Launch(config) => handle.launch_instance(config).await.map(drop),
            Work::Terminate(id) => handle.terminate_instance(id).await,
        }
    }

    fn child(&self, test: &str) -> io::Result<Child> {
        let mut command = Command::new(env::current_exe()?);
        command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
        command.env(ENDPOINT, &self.endpoint);
        match &self.work {
            Work::Launch(config) => command.env(LAUNCH, serde_json::to_string(config)?),
            Work::Terminate(id) => command.env(TERMINATE, id.as_str()),
        };
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    }
}

/// Runs a sweep, and checks that it killed at least one launch and one termination before and after the effect.
#[allow(clippy::panic, reason = "tests may panic")]
pub async fn check_kill_sweep<H: Harness>(harness: &H, endpoint: String, child: &'static str) {
    let sweep = KillSweep {
        harness,
        endpoint,
        child,
    };
    match sweep.sweep().await {
        Ok(counts) => assert!(
            counts.launching >= 2 && counts.terminating >= 2,
            "too few processes were killed: {counts:?}"
        ),
        Err(found) => panic!("{found}"),
    }
}

/// A sweep over every request of a launch and of a termination.
#[derive(Debug)]
pub struct KillSweep<'a, H> {
    /// The backend and its cloud.
    pub harness: &'a H,
    /// The URL of the emulator.
    pub endpoint: String,
    /// The name of the test in this program that [runs](ChildTask::run) the task.
    pub child: &'static str,
}

/// How many processes were killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KillCounts {
    /// During a launch.
    pub launching: u64,
    /// During a termination.
    pub terminating: u64,
}

/// How a child ended.
#[derive(PartialEq, Eq)]
enum ChildEnd {
    Killed,
    Finished,
}

impl<H: Harness> KillSweep<'_, H> {
    /// Kills a child at each of its requests, before and after the effect, and checks what is left each time: at most
    /// one instance, which its launch token finds, and nothing once that is terminated.
    ///
    /// # Errors
    ///
    /// What was found instead.
    pub async fn sweep(&self) -> Result<KillCounts, String> {
        let mut counts = KillCounts {
            launching: 0,
            terminating: 0,
        };
        for fault in [WireFault::CrashBefore, WireFault::CrashAfter] {
            let mut nth = 1;
            while self.kill_launch(nth, &fault).await? == ChildEnd::Killed {
                (nth, counts.launching) = (nth + 1, counts.launching + 1);
            }
            nth = 1;
            while self.kill_termination(nth, &fault).await? == ChildEnd::Killed {
                (nth, counts.terminating) = (nth + 1, counts.terminating + 1);
            }
        }
        Ok(counts)
    }

    async fn kill_launch(&self, nth: u64, fault: &WireFault) -> Result<ChildEnd, String> {
        let at = format!("killed during a launch by {fault:?} at request {nth}");
        let wanted = self.config(&format!("launch-{nth}-{fault:?}"))?;
        let end = self
            .kill(Work::Launch(Box::new(wanted.clone())), nth, fault)
            .await?;
        self.check_single_instance(&wanted)
            .await
            .map_err(|found| format!("{at}: {found}"))?;
        Ok(end)
    }

    async fn kill_termination(&self, nth: u64, fault: &WireFault) -> Result<ChildEnd, String> {
        let at = format!("killed during a termination by {fault:?} at request {nth}");
        let wanted = self.config(&format!("terminate-{nth}-{fault:?}"))?;
        let handle = self.harness.open().await;
        let launched = handle
            .launch_instance(&wanted)
            .await
            .map_err(|error| describe_error(&at, &error))?;
        // Another process cannot read the launch before the consistency window is over.
        sleep(handle.capabilities().consistency_window).await;
        let end = self
            .kill(Work::Terminate(launched.id.clone()), nth, fault)
            .await?;
        self.check_nothing_left(&launched.id, &wanted.tags)
            .await
            .map_err(|found| format!("{at}: {found}"))?;
        Ok(end)
    }

    fn config(&self, purpose: &str) -> Result<InstanceConfig, String> {
        let mut config = self.harness.config();
        let tagged = config.tags.insert("killed", purpose);
        tagged.map_err(|invalid| invalid.to_string())?;
        let token = LaunchToken::new(format!("kill-{}", purpose.to_lowercase()));
        config.launch_token = Some(token.map_err(|invalid| invalid.to_string())?);
        Ok(config)
    }

    async fn kill(&self, work: Work, nth: u64, fault: &WireFault) -> Result<ChildEnd, String> {
        if nth > MOST_REQUESTS {
            return Err(format!("{work:?} sends more than {MOST_REQUESTS} requests"));
        }
        let faults = self.harness.faults().ok_or("the harness has no faults")?;
        let oracle = self.harness.oracle().ok_or("the harness has no oracle")?;
        faults.clear().await;
        let before = oracle.calls().await;
        faults.inject(WireOp::Any, nth, fault.clone()).await;
        let endpoint = self.endpoint.clone();
        let child = ChildTask { endpoint, work }.child(self.child);
        let mut child = child.map_err(|error| error.to_string())?;
        let end = loop {
            // Only the child sends requests at the moment.
            if oracle.calls().await >= before + nth {
                break ChildEnd::Killed;
            }
            if child
                .try_wait()
                .map_err(|error| error.to_string())?
                .is_some()
            {
                break ChildEnd::Finished;
            }
            sleep(CHECK_INTERVAL).await;
        };
        // Fails if the child has ended already.
        let _ = child.kill();
        child.wait().map_err(|error| error.to_string())?;
        faults.clear().await;
        Ok(end)
    }

    async fn check_single_instance(&self, wanted: &InstanceConfig) -> Result<(), String> {
        let handle = self.harness.open().await;
        let token = wanted
            .launch_token
            .as_ref()
            .ok_or("a launch without a token")?;
        let replayed = handle.launch_instance(wanted).await;
        let replayed = replayed.map_err(|error| describe_error("the replay", &error))?;
        let oracle = self.harness.oracle().ok_or("the harness has no oracle")?;
        let truth = oracle.instances(&wanted.tags).await;
        let alive: Vec<_> = truth
            .iter()
            .filter(|truth| !truth.info.state.is_ending())
            .collect();
        if alive.len() != 1 {
            return Err(format!("the launch has {} instances", alive.len()));
        }
        sleep(handle.capabilities().consistency_window).await;
        match handle.find_launch(token).await {
            Ok(LaunchRecord::Found(found)) if found.iter().all(|info| info.id == replayed.id) => {}
            other => {
                return Err(format!(
                    "the token does not find {}: {other:?}",
                    replayed.id
                ));
            }
        }
        self.check_nothing_left(&replayed.id, &wanted.tags).await
    }

    async fn check_nothing_left(&self, id: &InstanceId, tags: &Tags) -> Result<(), String> {
        let handle = self.harness.open().await;
        let terminated = handle.terminate_instance(id).await;
        terminated.map_err(|error| describe_error("the termination", &error))?;
        let oracle = self.harness.oracle().ok_or("the harness has no oracle")?;
        let checks = self.harness.budget().as_millis() / CHECK_INTERVAL.as_millis();
        let mut left = Vec::new();
        for _ in 0..checks {
            left = oracle.leftovers(tags).await;
            if left.is_empty() {
                return Ok(());
            }
            sleep(CHECK_INTERVAL).await;
        }
        Err(format!("the termination left: {left:?}"))
    }
}

fn describe_error(what: &str, error: &ProvisionError) -> String {
    format!("{what} failed: {error}")
}
