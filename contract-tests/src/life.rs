//! The whole lifecycle of an instance under a careful program: every step can be repeated, in the
//! same process or in one that was started after the first one died.
//!
//! Owns the program that CRASH-03 and CRASH-04 repeat with a fault at each of its calls. It does
//! what the documentation of the core advises: it stores the token before the launch,
//! retries a call only as its error advises, waits with the core's waiting functions, and counts
//! instances by its own tags. If it does not end with one instance, and then with none, the backend
//! has broken a promise.

use std::{fmt, future::Future, time::Duration};

use fleetwright::{
    CloudInstanceState, ErrorKind, InstanceConfig, InstanceFilter, InstanceId, InstanceProvisioner,
    ProvisionError, Result,
    wait::{self, WaitPolicy},
};
use tokio::time::Instant;

use crate::{Context, Failure, require};

/// The steps of a lifecycle, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Launch,
    Count,
    Stop,
    Start,
    Terminate,
}

impl Step {
    pub(crate) const ALL: [Self; 5] = [
        Self::Launch,
        Self::Count,
        Self::Stop,
        Self::Start,
        Self::Terminate,
    ];
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Launch => "launching it and waiting until it runs",
            Self::Count => "counting its instances",
            Self::Stop => "stopping it and waiting until it is stopped",
            Self::Start => "starting it and waiting until it runs",
            Self::Terminate => "terminating it and waiting until it is terminated",
        })
    }
}

/// A lifecycle with what its program has stored: the config with its token from the beginning, the id
/// once it is known.
pub(crate) struct Life<'a> {
    cx: &'a Context,
    config: InstanceConfig,
    id: Option<InstanceId>,
}

impl<'a> Life<'a> {
    /// Creates a lifecycle with a tag that distinguishes it from others of the same clause. `name` must
    /// consist of letters, digits and hyphens, because a backend need not support other tags.
    pub(crate) fn new(cx: &'a Context, name: &str) -> Result<Self, Failure> {
        let mut config = cx.config_with_token();
        let tagged = config.tags.insert("kit-life", name);
        tagged.map_err(|error| Failure::KitError(error.to_string()))?;
        let id = None;
        Ok(Self { cx, config, id })
    }

    /// Carries out a step or repeats it, until its effect is complete.
    pub(crate) async fn step(
        &mut self,
        step: Step,
        handle: &dyn InstanceProvisioner,
    ) -> Result<(), Failure> {
        if step == Step::Launch {
            let config = &self.config;
            let info = retry_until_ok(self.cx, "launch", || handle.launch_instance(config)).await?;
            let before = self.id.replace(info.id.clone());
            require(before.iter().all(|id| *id == info.id), || {
                format!(
                    "one token launched {} and {}",
                    crate::shown(&before),
                    info.id
                )
            })?;
        }
        let id = self.id.clone();
        let id = id.ok_or_else(|| Failure::KitError("a lifecycle without a launch".to_owned()))?;
        let cx = self.cx;
        match step {
            Step::Launch => self.wait(handle, &id, CloudInstanceState::Running).await,
            Step::Count => self.require_exactly(handle, &[&id]).await,
            Step::Stop => {
                retry_until_ok(cx, "stop", || handle.stop_instance(&id)).await?;
                self.wait(handle, &id, CloudInstanceState::Stopped).await
            }
            Step::Start => {
                let info = retry_until_ok(cx, "start", || handle.start_instance(&id)).await?;
                require(info.id == id, || {
                    format!("a start of {id} returned {}", info.id)
                })?;
                self.wait(handle, &id, CloudInstanceState::Running).await
            }
            Step::Terminate => {
                let call = || async {
                    match handle.terminate_instance(&id).await {
                        // A retry, if the cloud keeps no record.
                        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                        result => result,
                    }
                };
                retry_until_ok(cx, "terminate", call).await?;
                self.wait(handle, &id, CloudInstanceState::Terminated)
                    .await?;
                self.require_exactly(handle, &[]).await
            }
        }
    }

    /// Waits as programs do, and retries every read that fails and may be retried.
    async fn wait(
        &self,
        handle: &dyn InstanceProvisioner,
        id: &InstanceId,
        goal: CloudInstanceState,
    ) -> Result<(), Failure> {
        let interval = self
            .cx
            .capabilities()
            .poll_interval
            .max(Duration::from_millis(10));
        // The declared interval is the shortest delay, whatever the policy says.
        let budget = self.cx.harness().budget();
        let policy = WaitPolicy::within((budget * 2).max(interval * 20))
            .delays(
                (interval * 10).min(budget / 30),
                (interval * 100).min(budget / 3),
            )
            .jitter_seed(1);
        let waited = wait::for_state(handle, std::slice::from_ref(id), goal, &policy);
        let broken = |error| Failure::violated(format!("{id} must become {goal}, but {error}"));
        waited.await.map(drop).map_err(broken)
    }

    /// Requires that exactly `wanted` exists of this lifecycle, by its tags and by the oracle.
    async fn require_exactly(
        &self,
        handle: &dyn InstanceProvisioner,
        wanted: &[&InstanceId],
    ) -> Result<(), Failure> {
        self.cx.wait_for_consistent_reads().await;
        let mut filter = InstanceFilter::new();
        filter.tags = self.config.tags.clone();
        let list = retry_until_ok(self.cx, "list", || handle.list_instances(&filter)).await?;
        let listed: Vec<_> = list.iter().map(|info| &info.id).collect();
        require(listed == wanted, || {
            format!(
                "{} must exist for this launch, but {} is listed",
                crate::shown(wanted),
                crate::shown(&listed)
            )
        })?;
        let Some(oracle) = self.cx.harness().oracle() else {
            return Ok(());
        };
        let truth = oracle.instances(&self.config.tags).await;
        let live = truth.iter().filter(|truth| !truth.info.state.is_final());
        let live: Vec<_> = live.map(|truth| &truth.info.id).collect();
        require(live == wanted, || {
            format!(
                "{} must exist for this launch, but the cloud has {}",
                crate::shown(wanted),
                crate::shown(&live)
            )
        })
    }
}

/// The shortest delay between two attempts, whatever an error advises.
const SHORTEST_DELAY: Duration = Duration::from_millis(10);

/// Retries a call until it succeeds, as its errors advise: never sooner, and not at all if they advise
/// against it.
pub(crate) async fn retry_until_ok<T, F: Future<Output = Result<T>>>(
    cx: &Context,
    what: &str,
    call: impl Fn() -> F,
) -> Result<T, Failure> {
    let start = Instant::now();
    loop {
        let error: ProvisionError = match call().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let Some(delay) = error.retry().delay() else {
            let text = format!("a {what} must succeed when it is retried, but failed: {error}");
            return Err(Failure::violated(text));
        };
        if start.elapsed() > cx.harness().budget() {
            return Err(Failure::call_failed(
                &format!("a {what}, despite all retries"),
                &error,
            ));
        }
        // Never zero: time has to pass, or the budget never ends.
        let shortest = cx.capabilities().poll_interval.max(SHORTEST_DELAY);
        cx.advance_time(delay.max(shortest)).await;
    }
}
