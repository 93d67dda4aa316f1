//! Instances that a call on other instances must not affect, in each of the six states.
//!
//! Owns the instances beside the targets and the three clauses about them. An instance that runs, is
//! stopped or is terminated must stay as it is; one that boots, stops or terminates must get where it was going.

use fleetwright::{
    CloudInstanceState::{self, Running, Stopped},
    InstanceId, InstanceInfo, Result,
};
use tokio::time::Instant;

use crate::{Context, Failure, Outcome, Pass, require};

/// STOP-08: a backend must stop the named instances and affect no other one, whatever state that is in.
///
/// Another instance that stops is an outage that nobody requested.
///
/// Stops one instance and then a batch beside instances that are pending, running, stopping, stopped,
/// terminating and terminated, and requires that these are as they were, or get where they were going.
pub(crate) async fn stop_08_affects_only_its_targets(cx: &Context) -> Outcome {
    require_others_unaffected(cx, Change::Stop).await
}

/// START-08: a backend must start the named instances and affect no other one, whatever state that is in.
///
/// Another instance that starts is paid for, and may take over work that belongs to its successor.
///
/// As STOP-08, with starts of stopped instances.
pub(crate) async fn start_08_affects_only_its_targets(cx: &Context) -> Outcome {
    require_others_unaffected(cx, Change::Start).await
}

/// TERMINATE-08: a backend must terminate the named instances and affect no other one, whatever state that
/// is in.
///
/// A stopped or booting instance is as valuable as one that runs.
///
/// As STOP-08, with terminations.
pub(crate) async fn terminate_08_affects_only_its_targets(cx: &Context) -> Outcome {
    require_others_unaffected(cx, Change::Terminate).await
}

/// The call whose effect on others is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Stop,
    Start,
    Terminate,
}

impl Change {
    const fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Start => "start",
            Self::Terminate => "terminate",
        }
    }

    /// Changes one instance with a call of its own, or several with one call.
    async fn call(self, cx: &Context, ids: &[InstanceId]) -> Result<(), Failure> {
        let handle = cx.provisioner();
        let results: Vec<Result<()>> = match (self, ids) {
            (Self::Stop, [id]) => vec![handle.stop_instance(id).await],
            (Self::Start, [id]) => vec![handle.start_instance(id).await.map(drop)],
            (Self::Terminate, [id]) => vec![handle.terminate_instance(id).await],
            (Self::Stop, ids) => handle.stop_instances(ids).await,
            (Self::Start, ids) => {
                let started = handle.start_instances(ids).await;
                started.into_iter().map(|one| one.map(drop)).collect()
            }
            (Self::Terminate, ids) => handle.terminate_instances(ids).await,
        };
        let what = format!("a {} of {} instances", self.name(), ids.len());
        for result in results {
            result.map_err(|error| Failure::call_failed(&what, &error))?;
        }
        for id in ids {
            match self {
                Self::Stop => cx.wait_for_state(id, Stopped).await.map(drop)?,
                Self::Start => {
                    cx.wait_for_consistent_reads().await;
                    cx.wait_for_state(id, Running).await.map(drop)?;
                }
                Self::Terminate => cx.wait_until_terminated(id).await?,
            }
        }
        Ok(())
    }
}

/// Makes the call for one target and for two, each time beside instances in every state.
async fn require_others_unaffected(cx: &Context, change: Change) -> Outcome {
    let targets = cx.launch_many(3).await?;
    let (single, batch) = targets.split_at(1);
    let steady = cx.launch_many(3).await?;
    let passing = cx.launch_many(4).await?;
    for id in targets.iter().chain(&steady).chain(&passing) {
        cx.wait_for_state(id, Running).await?;
    }
    let stopped = targets.iter().filter(|_| change == Change::Start);
    let stopped: Vec<_> = stopped.chain(&steady[1..2]).collect();
    for id in &stopped {
        cx.stop(id).await?;
    }
    let since = Instant::now();
    cx.terminate(&steady[2]).await?;
    for id in &stopped {
        cx.wait_for_state(id, Stopped).await?;
    }
    cx.wait_until_terminated(&steady[2]).await?;
    cx.wait_for_consistent_reads().await;
    let before = Steady {
        unchanged: [
            cx.consistent_info(&steady[0]).await?,
            cx.consistent_info(&steady[1]).await?,
        ],
        terminated: steady[2].clone(),
        since,
    };
    let mut pass = Pass::Held;
    for (ids, passing) in [(single, &passing[..2]), (batch, &passing[2..])] {
        let booting = cx.launch().await?.id;
        cx.stop(&passing[0]).await?;
        cx.terminate(&passing[1]).await?;
        change.call(cx, ids).await?;
        let what = format!("a {} of {} instances", change.name(), ids.len());
        cx.wait_until_terminated(&passing[1]).await?;
        for (id, state) in [(&booting, Running), (&passing[0], Stopped)] {
            require_arrives(cx, &what, id, state).await?;
        }
        pass = pass.weaker(before.require_unchanged(cx, &what).await?);
    }
    Ok(pass)
}

/// The instances that do not change by themselves.
struct Steady {
    /// One that runs and one that is stopped.
    unchanged: [InstanceInfo; 2],
    terminated: InstanceId,
    /// Before the termination was requested.
    since: Instant,
}

impl Steady {
    async fn require_unchanged(&self, cx: &Context, what: &str) -> Result<Pass, Failure> {
        for info in &self.unchanged {
            cx.require_unchanged(&format!("{what} beside it"), info)
                .await?;
        }
        cx.require_ending(&self.terminated, self.since).await
    }
}

/// Requires that an instance gets into `state` and is still in it once reads show every change.
async fn require_arrives(
    cx: &Context,
    what: &str,
    id: &InstanceId,
    state: CloudInstanceState,
) -> Result<(), Failure> {
    cx.wait_for_state(id, state).await?;
    cx.wait_for_consistent_reads().await;
    let observed = cx.describe(id).await?.state;
    require(observed == state, || {
        format!("{id} had become {state} by itself, but is {observed} after {what} beside it")
    })
}
