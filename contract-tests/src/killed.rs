//! Processes that are killed, for a backend that outlives its process: one that keeps its records in
//! a file, a database or the cloud itself.
//!
//! Owns the sweep over every native step of a launch, a stop, a start and a termination. The clauses
//! of the family CRASH drop a call and open another handle, in one process. Here the test program
//! starts itself again with only this test, the child aborts at the nth step, before its effect or
//! after it, and another harness attaches to what is left. An abort leaves no destructor and no task
//! behind, as a kill does.
//!
//! The harness needs faults that support crashes, and an oracle. [`test_killed_processes`] is the
//! body of a `#[test]`.

use std::{
    env,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use fleetwright::{
    CloudInstanceState::{Running, Stopped},
    ErrorKind, InstanceConfig, InstanceId, InstanceProvisioner, LaunchRecord, ProvisionError,
    Result, UserData,
};
use fleetwright_clause_engine::block_on;
use futures_util::future::{Either, select};
use serde::{Deserialize, Serialize};

use crate::{
    Context, Failure, Harness, Time, WireFault, WireOp, require, suite, sweep::Part,
    transcript::Transcript,
};

/// The environment variable with the task, as JSON. It is set in the child process only.
const TASK: &str = "FLEETWRIGHT_KILLED_TASK";
/// How often the child looks whether it has reached the step at which it dies.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// A call with more steps than this is in an endless loop.
const MOST_STEPS: u64 = 100;
/// The exit code of a child whose call ended before the step.
const ENDED: i32 = 3;

/// How a test creates an account, and how another process attaches to it.
#[derive(Debug)]
pub struct Attach<H> {
    /// Creates an empty account.
    pub new: fn() -> H,
    /// Returns where the records of an account are.
    pub location: fn(&H) -> String,
    /// Opens the account at a location.
    pub at: fn(&str) -> H,
}

/// What a child does, and where it dies.
#[derive(Debug, Serialize, Deserialize)]
struct Task {
    location: String,
    work: Work,
    step: u64,
    after: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Work {
    Launch(Box<InstanceConfig>),
    Stop(InstanceId),
    Start(InstanceId),
    Terminate(InstanceId),
}

impl Work {
    async fn run(&self, handle: &dyn InstanceProvisioner) -> Result<Option<InstanceId>> {
        match self {
            Self::Launch(config) => {
                let info = handle.launch_instance(config).await?;
                return Ok(Some(info.id));
            }
            Self::Stop(id) => handle.stop_instance(id).await?,
            Self::Start(id) => handle.start_instance(id).await.map(drop)?,
            Self::Terminate(id) => match handle.terminate_instance(id).await {
                // The first attempt has terminated it, and no record is kept.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                result => result?,
            },
        }
        Ok(None)
    }
}

/// Kills a process at every native step of a launch, a stop, a start and a termination, before and
/// after its effect, and checks each time what another process finds: at most one instance, found by
/// its token, with its user data; a repeated call that has its full effect; and nothing once that is
/// terminated. `test` is the path of the calling test, as `module_path!` returns it, with its name.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use fleetwright::{InstanceConfig, InstanceId, InstanceProvisioner, async_trait};
/// # use fleetwright_contract_tests::Harness;
/// use fleetwright_contract_tests::killed::{Attach, test_killed_processes};
/// # struct MyHarness(fleetwright_memory::MemoryCloud);
/// # impl MyHarness {
/// #     fn new() -> Self { Self(fleetwright_memory::MemoryCloud::new()) }
/// #     fn folder(&self) -> String { String::new() }
/// #     fn at(_: &str) -> Self { Self::new() }
/// # }
/// # #[async_trait]
/// # impl Harness for MyHarness {
/// #     fn name(&self) -> String { "my cloud".to_owned() }
/// #     async fn open(&self) -> Arc<dyn InstanceProvisioner> { Arc::new(self.0.provisioner()) }
/// #     fn config(&self) -> InstanceConfig { InstanceConfig::builder("image-1", "small").build().unwrap() }
/// #     fn unknown_id(&self) -> InstanceId { InstanceId::new("i-unknown").unwrap() }
/// # }
///
/// #[test]
/// fn killed_processes_lose_nothing() {
///     let test = concat!(module_path!(), "::killed_processes_lose_nothing");
///     test_killed_processes(test, &Attach {
///         new: MyHarness::new,           // an empty account
///         location: MyHarness::folder,   // where its records are
///         at: MyHarness::at,             // the account at a location, in any process
///     });
/// }
/// ```
///
/// # Panics
/// With what was found instead, and if no process was killed at all.
#[expect(clippy::panic, reason = "a failed check panics")]
pub fn test_killed_processes<H: Harness + 'static>(test: &str, attach: &Attach<H>) {
    if let Ok(task) = env::var(TASK) {
        run_child(&task, attach.at);
    }
    let test = test.split_once("::").map_or(test, |(_, path)| path);
    for work in ["launch", "stop", "start", "termination"] {
        for after in [false, true] {
            let mut step = 1;
            let killed = loop {
                match kill_at(test, attach, work, step, after) {
                    Ok(true) if step < MOST_STEPS => step += 1,
                    Ok(true) => panic!("a {work} has more than {MOST_STEPS} steps"),
                    Ok(false) => break step - 1,
                    Err(failure) => {
                        let moment = if after { "after" } else { "before" };
                        let found = failure.text();
                        panic!("killed {moment} step {step} of a {work}: {found}")
                    }
                }
            };
            assert!(killed > 0, "no process was killed during a {work}");
        }
    }
}

/// Runs the task of a child process. Never returns.
fn run_child<H: Harness>(task: &str, at: fn(&str) -> H) -> ! {
    let Ok(task) = serde_json::from_str::<Task>(task) else {
        std::process::exit(ENDED + 1);
    };
    let harness = at(&task.location);
    let outcome = block_on(suite::executor(Time::Real), async {
        let none = || Failure::KitError("the harness injects no faults".to_owned());
        let faults = harness.faults().ok_or_else(none)?;
        let fault = if task.after {
            WireFault::CrashAfter
        } else {
            WireFault::CrashBefore
        };
        let handle = harness.open().await;
        faults.inject(WireOp::Any, task.step, fault).await;
        let reached = Box::pin(async {
            while !faults.all_injected().await {
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
        });
        let call = Box::pin(task.work.run(&*handle));
        match select(reached, call).await {
            Either::Left(_) => std::process::abort(),
            Either::Right((result, _)) => result
                .map(drop)
                .map_err(|error| Failure::call_failed("the child's call", &error)),
        }
    });
    std::process::exit(if outcome.is_ok() { ENDED } else { ENDED + 1 })
}

/// Prepares an account, kills a child in it and checks what is left. Returns whether the child was
/// killed, which is not the case once there is no such step.
fn kill_at<H: Harness + 'static>(
    test: &str,
    attach: &Attach<H>,
    work: &str,
    step: u64,
    after: bool,
) -> Result<bool, Failure> {
    let first = (attach.new)();
    let location = (attach.location)(&first);
    let scope = suite::new_scope("killed");
    block_on(suite::executor(Time::Real), async {
        let cx = Context::new(Arc::new(first), &scope, Transcript::default(), Part::WHOLE).await?;
        let mut config = cx.config_with_token();
        let data = UserData::new("kept").map_err(|error| Failure::KitError(error.to_string()))?;
        if data.check(cx.capabilities().max_user_data_bytes).is_ok() {
            config.user_data = Some(data);
        }
        let work = prepare(&cx, work, &config).await?;
        let is_launch = matches!(work, Work::Launch(_));
        let task = Task {
            location: location.clone(),
            work: work.clone(),
            step,
            after,
        };
        let killed = run_until_killed(test, &task)?;
        let second = Arc::new((attach.at)(&location));
        let cx = Context::new(second, &scope, Transcript::default(), Part::WHOLE).await?;
        cx.wait_for_consistent_reads().await;
        let repeated = work.run(cx.provisioner()).await;
        let failed = |error: ProvisionError| Failure::call_failed("the repeated call", &error);
        let launched = repeated.map_err(failed)?;
        match (&work, launched) {
            (Work::Launch(_), Some(id)) => require_launched(&cx, &id, &config).await?,
            (Work::Stop(id), _) => drop(cx.wait_for_state(id, Stopped).await?),
            (Work::Start(id), _) => drop(cx.wait_for_state(id, Running).await?),
            (Work::Terminate(id), _) => cx.wait_until_terminated(id).await?,
            (Work::Launch(_), None) => {
                return Err(Failure::KitError("a launch without an instance".to_owned()));
            }
        }
        let count = usize::from(!matches!(work, Work::Terminate(_)));
        cx.require_count(count).await?;
        if !is_launch && count == 1 {
            require_content(&cx, &config).await?;
        }
        suite::cleanup_and_probe(&cx).await?;
        Ok(killed)
    })
}

/// Brings an account into the state in which the child starts.
async fn prepare(cx: &Context, work: &str, config: &InstanceConfig) -> Result<Work, Failure> {
    if work == "launch" {
        return Ok(Work::Launch(Box::new(config.clone())));
    }
    let id = cx.launch_config(config).await?.id;
    cx.wait_for_state(&id, Running).await?;
    if work == "start" {
        cx.stop(&id).await?;
        cx.wait_for_state(&id, Stopped).await?;
    }
    // The child is another process: it sees only what reads show.
    cx.wait_for_consistent_reads().await;
    Ok(match work {
        "stop" => Work::Stop(id),
        "start" => Work::Start(id),
        _ => Work::Terminate(id),
    })
}

/// Starts a child and waits until it has died. Returns `false` if its call ended before the step.
fn run_until_killed(test: &str, task: &Task) -> Result<bool, Failure> {
    let kit =
        |error: &dyn std::fmt::Display| Failure::KitError(format!("the child process: {error}"));
    let program = env::current_exe().map_err(|error| kit(&error))?;
    let json = serde_json::to_string(task).map_err(|error| kit(&error))?;
    let status = Command::new(program)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(TASK, json)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| kit(&error))?;
    match status.code() {
        Some(ENDED) => Ok(false),
        Some(0) => Err(kit(&format!("no test is called {test}"))),
        Some(code) => Err(kit(&format!("it ended with the exit code {code}"))),
        // A signal: it has aborted.
        None => Ok(true),
    }
}

/// Requires that a launch has one instance, which its token finds, with what was requested.
async fn require_launched(
    cx: &Context,
    id: &InstanceId,
    config: &InstanceConfig,
) -> Result<(), Failure> {
    cx.wait_for_consistent_reads().await;
    if let Some(token) = &config.launch_token {
        let found = cx.provisioner().find_launch(token).await;
        let found = found.map_err(|error| Failure::call_failed("find_launch", &error))?;
        let same =
            matches!(&found, LaunchRecord::Found(list) if list.len() == 1 && list[0].id == *id);
        require(same, || {
            let found = crate::shown(&found);
            format!("the replay returned {id}, but the launch by its token is {found}")
        })?;
    }
    cx.wait_for_state(id, Running).await?;
    require_content(cx, config).await
}

/// Requires that the instance has the tags and the user data of its launch.
async fn require_content(cx: &Context, config: &InstanceConfig) -> Result<(), Failure> {
    let truth = cx.oracle()?.instances(&config.tags).await;
    let live: Vec<_> = truth
        .into_iter()
        .filter(|truth| !truth.info.state.is_final())
        .collect();
    require(live.len() == 1, || {
        format!("{} instances have the tags of the launch", live.len())
    })?;
    let data = config.user_data.as_ref().map(UserData::as_bytes);
    require(
        live.iter().all(|truth| truth.user_data.as_deref() == data),
        || "the instance does not have the user data of its launch".to_owned(),
    )
}
