//! A whole life of an instance as a careful program leads it: every step can be repeated, in the
//! same process or in one that was started after it died.

use std::{fmt, future::Future, time::Duration};

use fleetwright::{
    CloudInstanceState, ErrorKind, InstanceConfig, InstanceFilter, InstanceId, InstanceProvisioner,
    ProvisionError, Result,
    wait::{self, WaitPolicy},
};
use tokio::time::Instant;

use crate::{Context, Failure, require};

/// What is done, in order.
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
            Self::Count => "counting what was launched",
            Self::Stop => "stopping it and waiting for that",
            Self::Start => "starting it and waiting until it runs",
            Self::Terminate => "terminating it and waiting for that",
        })
    }
}

/// A life, with what its program has written down: the token before anything, the id once known.
pub(crate) struct Life<'a> {
    cx: &'a Context,
    config: InstanceConfig,
    id: Option<InstanceId>,
}

impl<'a> Life<'a> {
    /// A life that is told from others of the same clause by a tag of its own. A backend need not
    /// hold every tag, so the name is of letters, digits and hyphens.
    pub(crate) fn new(cx: &'a Context, name: &str) -> Result<Self, Failure> {
        let mut config = cx.config_with_token();
        let tagged = config.tags.insert("kit-life", name);
        tagged.map_err(|error| Failure::KitError(error.to_string()))?;
        let id = None;
        Ok(Self { cx, config, id })
    }

    /// Takes a step, or takes it again.
    pub(crate) async fn step(
        &mut self,
        step: Step,
        handle: &dyn InstanceProvisioner,
    ) -> Result<(), Failure> {
        if step == Step::Launch {
            let config = &self.config;
            let info = insist(self.cx, "launch", || handle.launch_instance(config)).await?;
            let before = self.id.replace(info.id.clone());
            require(before.iter().all(|id| *id == info.id), || {
                format!("one token launched {before:?} and {}", info.id)
            })?;
        }
        let id = self.id.clone();
        let id = id.ok_or_else(|| Failure::KitError("a life without a launch".to_owned()))?;
        let cx = self.cx;
        match step {
            Step::Launch => self.wait(handle, &id, CloudInstanceState::Running).await,
            Step::Count => self.holds(handle, &[&id]).await,
            Step::Stop => {
                insist(cx, "stop", || handle.stop_instance(&id)).await?;
                self.wait(handle, &id, CloudInstanceState::Stopped).await
            }
            Step::Start => {
                let info = insist(cx, "start", || handle.start_instance(&id)).await?;
                require(info.id == id, || {
                    format!("a start of {id} answered {}", info.id)
                })?;
                self.wait(handle, &id, CloudInstanceState::Running).await
            }
            Step::Terminate => {
                let call = || async {
                    match handle.terminate_instance(&id).await {
                        // A repetition, where no record is kept.
                        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                        answer => answer,
                    }
                };
                insist(cx, "terminate", call).await?;
                self.wait(handle, &id, CloudInstanceState::Terminated)
                    .await?;
                self.holds(handle, &[]).await
            }
        }
    }

    /// Waits as programs do, through every read that fails and may be repeated.
    async fn wait(
        &self,
        handle: &dyn InstanceProvisioner,
        id: &InstanceId,
        goal: CloudInstanceState,
    ) -> Result<(), Failure> {
        let tick = self
            .cx
            .capabilities()
            .poll_interval
            .max(Duration::from_millis(10));
        let policy = WaitPolicy::within(self.cx.harness().budget() * 2)
            .delays(tick * 10, tick * 100)
            .jitter_seed(1);
        let waited = wait::for_state(handle, std::slice::from_ref(id), goal, &policy);
        let broken = |error| Failure::violated(format!("{id} must get to {goal}, but {error}"));
        waited.await.map(drop).map_err(broken)
    }

    /// Demands that exactly `wanted` exists of this life, by its tags and by the truth.
    async fn holds(
        &self,
        handle: &dyn InstanceProvisioner,
        wanted: &[&InstanceId],
    ) -> Result<(), Failure> {
        self.cx.settle_reads().await;
        let mut filter = InstanceFilter::new();
        filter.tags = self.config.tags.clone();
        let list = insist(self.cx, "list", || handle.list_instances(&filter)).await?;
        let listed: Vec<_> = list.iter().map(|info| &info.id).collect();
        require(listed == wanted, || {
            format!("{wanted:?} must exist of this launch, and {listed:?} is listed")
        })?;
        let Some(oracle) = self.cx.harness().oracle() else {
            return Ok(());
        };
        let truth = oracle.instances(&self.config.tags).await;
        let live = truth.iter().filter(|truth| !truth.info.state.is_final());
        let live: Vec<_> = live.map(|truth| &truth.info.id).collect();
        require(live == wanted, || {
            format!("{wanted:?} must exist of this launch, and the cloud has {live:?}")
        })
    }
}

/// Makes a call until it succeeds, as its errors advise: never sooner, and not at all where they
/// advise against it.
async fn insist<T, F: Future<Output = Result<T>>>(
    cx: &Context,
    what: &str,
    call: impl Fn() -> F,
) -> Result<T, Failure> {
    let began = Instant::now();
    loop {
        let error: ProvisionError = match call().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let Some(delay) = error.retry().delay() else {
            let text = format!("a {what} must succeed when it is repeated, but: {error}");
            return Err(Failure::violated(text));
        };
        if began.elapsed() > cx.harness().budget() {
            return Err(Failure::call_failed(
                &format!("a {what}, however often"),
                &error,
            ));
        }
        cx.advance_time(delay.max(cx.capabilities().poll_interval))
            .await;
    }
}
