//! Processes that are killed while they speak to a cloud which goes on without them.
//!
//! A test program runs itself again as a child with [orders](Orders); the emulator, in the parent, lets one request of the child hang,
//! and there the child is killed. A future that is dropped leaves its runtime behind, with tasks that go on; a process that is killed
//! leaves nothing.

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

const ENDPOINT: &str = "FLEETWRIGHT_KILLS_ENDPOINT";
const LAUNCH: &str = "FLEETWRIGHT_KILLS_LAUNCH";
const TERMINATE: &str = "FLEETWRIGHT_KILLS_TERMINATE";

/// How often it is looked whether a child has come to where it is killed.
const LOOK: Duration = Duration::from_millis(2);
/// A call of a trait that sends more requests than this is lost in a loop.
const MOST_REQUESTS: u64 = 200;

/// What a child is to do.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The emulator that it speaks to.
    pub endpoint: String,
    work: Work,
}

#[derive(Clone, Debug)]
enum Work {
    Launch(Box<InstanceConfig>),
    Terminate(InstanceId),
}

impl Orders {
    /// The orders of this process, if it is a child.
    pub fn of_this_process() -> Option<Self> {
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

    /// Does what is ordered, in a child.
    pub async fn obey(&self, handle: &dyn InstanceProvisioner) -> Result<(), ProvisionError> {
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

/// A sweep over every request of a launch, and of a termination.
#[derive(Debug)]
pub struct Kills<'a, H> {
    /// The backend and its cloud.
    pub harness: &'a H,
    /// Where the cloud is.
    pub endpoint: String,
    /// The test of this program that [obeys](Orders::obey).
    pub child: &'static str,
}

/// How many processes were killed, and in what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Killed {
    /// In launches.
    pub launching: u64,
    /// In terminations.
    pub terminating: u64,
}

/// What became of a child.
#[derive(PartialEq, Eq)]
enum Fate {
    Killed,
    CameThrough,
}

impl<H: Harness> Kills<'_, H> {
    /// Kills a child at each of its requests, before it has an effect and after it, and looks each time at what is left: at most one
    /// machine, which its launch's token finds, and nothing at all once that is terminated. An error says what was found instead.
    pub async fn sweep(&self) -> Result<Killed, String> {
        let mut killed = Killed {
            launching: 0,
            terminating: 0,
        };
        for fault in [WireFault::CrashBefore, WireFault::CrashAfter] {
            let mut nth = 1;
            while self.launching(nth, &fault).await? == Fate::Killed {
                (nth, killed.launching) = (nth + 1, killed.launching + 1);
            }
            nth = 1;
            while self.terminating(nth, &fault).await? == Fate::Killed {
                (nth, killed.terminating) = (nth + 1, killed.terminating + 1);
            }
        }
        Ok(killed)
    }

    async fn launching(&self, nth: u64, fault: &WireFault) -> Result<Fate, String> {
        let at = format!("killed in a launch by {fault:?} at request {nth}");
        let wanted = self.config(&format!("launch-{nth}-{fault:?}"))?;
        let fate = self
            .kill(Work::Launch(Box::new(wanted.clone())), nth, fault)
            .await?;
        self.one_that_is_found(&wanted)
            .await
            .map_err(|found| format!("{at}: {found}"))?;
        Ok(fate)
    }

    async fn terminating(&self, nth: u64, fault: &WireFault) -> Result<Fate, String> {
        let at = format!("killed in a termination by {fault:?} at request {nth}");
        let wanted = self.config(&format!("terminate-{nth}-{fault:?}"))?;
        let handle = self.harness.open().await;
        let launched = handle
            .launch_instance(&wanted)
            .await
            .map_err(|error| words(&at, &error))?;
        // A process that comes right after it may not be shown it yet.
        sleep(handle.capabilities().consistency_window).await;
        let fate = self
            .kill(Work::Terminate(launched.id.clone()), nth, fault)
            .await?;
        self.gone(&launched.id, &wanted.tags)
            .await
            .map_err(|found| format!("{at}: {found}"))?;
        Ok(fate)
    }

    fn config(&self, purpose: &str) -> Result<InstanceConfig, String> {
        let mut config = self.harness.config();
        let tagged = config.tags.insert("killed", purpose);
        tagged.map_err(|invalid| invalid.to_string())?;
        let token = LaunchToken::new(format!("kill-{}", purpose.to_lowercase()));
        config.launch_token = Some(token.map_err(|invalid| invalid.to_string())?);
        Ok(config)
    }

    async fn kill(&self, work: Work, nth: u64, fault: &WireFault) -> Result<Fate, String> {
        if nth > MOST_REQUESTS {
            return Err(format!("{work:?} sends more than {MOST_REQUESTS} requests"));
        }
        let faults = self.harness.faults().ok_or("the harness has no faults")?;
        let oracle = self.harness.oracle().ok_or("the harness has no oracle")?;
        faults.clear().await;
        let before = oracle.calls().await;
        faults.inject(WireOp::Any, nth, fault.clone()).await;
        let endpoint = self.endpoint.clone();
        let child = Orders { endpoint, work }.child(self.child);
        let mut child = child.map_err(|error| error.to_string())?;
        let fate = loop {
            // Nobody else speaks to this cloud now.
            if oracle.calls().await >= before + nth {
                break Fate::Killed;
            }
            if child
                .try_wait()
                .map_err(|error| error.to_string())?
                .is_some()
            {
                break Fate::CameThrough;
            }
            sleep(LOOK).await;
        };
        // One that has ended is not there to be killed.
        let _ = child.kill();
        child.wait().map_err(|error| error.to_string())?;
        faults.clear().await;
        Ok(fate)
    }

    async fn one_that_is_found(&self, wanted: &InstanceConfig) -> Result<(), String> {
        let handle = self.harness.open().await;
        let token = wanted
            .launch_token
            .as_ref()
            .ok_or("a launch without a token")?;
        let again = handle.launch_instance(wanted).await;
        let again = again.map_err(|error| words("the same launch again", &error))?;
        let oracle = self.harness.oracle().ok_or("the harness has no oracle")?;
        let truth = oracle.instances(&wanted.tags).await;
        let alive: Vec<_> = truth
            .iter()
            .filter(|truth| !truth.info.state.is_ending())
            .collect();
        if alive.len() != 1 {
            return Err(format!("{} machines of one launch", alive.len()));
        }
        sleep(handle.capabilities().consistency_window).await;
        match handle.find_launch(token).await {
            Ok(LaunchRecord::Found(found)) if found.iter().all(|info| info.id == again.id) => {}
            other => {
                return Err(format!(
                    "{} is not what its token finds: {other:?}",
                    again.id
                ));
            }
        }
        self.gone(&again.id, &wanted.tags).await
    }

    async fn gone(&self, id: &InstanceId, tags: &Tags) -> Result<(), String> {
        let handle = self.harness.open().await;
        let ended = handle.terminate_instance(id).await;
        ended.map_err(|error| words("a termination", &error))?;
        let oracle = self.harness.oracle().ok_or("the harness has no oracle")?;
        let looks = self.harness.budget().as_millis() / LOOK.as_millis();
        let mut left = Vec::new();
        for _ in 0..looks {
            left = oracle.leftovers(tags).await;
            if left.is_empty() {
                return Ok(());
            }
            sleep(LOOK).await;
        }
        Err(format!("left after a termination: {left:?}"))
    }
}

fn words(what: &str, error: &ProvisionError) -> String {
    format!("{what} failed: {error}")
}
