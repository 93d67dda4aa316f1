//! Batches of instances in every state, and of more instances than one native batch holds.

use fleetwright::{
    CloudInstanceState::{self, Pending, Running, Stopped, Stopping, Terminated, Terminating},
    ErrorKind, InstanceId, InstanceProvisioner, Result,
};
use std::num::NonZeroU32;
use tokio::time::Instant;

use super::{launch, single::require_same};
use crate::{Context, Failure, Outcome, Pass, require, shown::Shown};

/// The most ids in one batch of descriptions. A backend without a batch size of its own declares a huge one.
const MOST_IDS: usize = 10_000;

/// BATCH-15: a backend must describe every instance of a batch that is larger than the cloud's own as a
/// description of it alone does, whatever its state and its place in the batch.
///
/// A monitor of a large fleet describes in batches, and the last instances are as important as the first.
///
/// Describes two running, a stopped, a terminated, a fresh and an unknown instance, repeated until they are more
/// than a native batch has, at most 10,000, and compares each result with a single description. Another handle
/// does the same without the fresh instance.
pub(crate) async fn batch_15_large_batches_describe_like_single_calls(cx: &Context) -> Outcome {
    let ended = cx.launch_terminated().await?.id;
    let stopped = cx.launch_stopped().await?.id;
    let running = [cx.launch_running().await?.id, cx.launch_running().await?.id];
    cx.wait_for_consistent_reads().await;
    let [one, other] = running;
    let unknown = cx.harness().unknown_id();
    let mut ids = vec![one, ended.clone(), stopped, unknown.clone(), other];
    let second = cx.open_handle().await;
    require_large_batch(cx, &*second, &ids, &ended, None).await?;
    let fresh = cx.launch().await?.id;
    ids.insert(2, fresh.clone());
    require_large_batch(cx, cx.provisioner(), &ids, &ended, Some(&fresh)).await?;
    Ok(Pass::Held)
}

/// Compares the descriptions of `ids`, repeated, in one batch with descriptions of each alone. A `fresh` instance
/// changes meanwhile, so only its id is compared.
async fn require_large_batch(
    cx: &Context,
    handle: &dyn InstanceProvisioner,
    ids: &[InstanceId],
    ended: &InstanceId,
    fresh: Option<&InstanceId>,
) -> Result<(), Failure> {
    let size = cx.capabilities().batch_size.get().saturating_add(ids.len());
    let size = size.min(MOST_IDS);
    let requested: Vec<_> = ids.iter().cycle().take(size).cloned().collect();
    let mut alone = Vec::new();
    for id in ids {
        alone.push(handle.describe_instance(id).await);
    }
    let batch = handle.describe_instances(&requested).await;
    require(batch.len() == size, || {
        format!("a batch of {size} descriptions has {} results", batch.len())
    })?;
    let unknown = cx.harness().unknown_id();
    let expected = alone.iter().cycle();
    for (place, ((id, alone), in_batch)) in requested.iter().zip(expected).zip(&batch).enumerate() {
        let checked = if Some(id) == fresh {
            let described = in_batch.as_ref().is_ok_and(|status| status.id == *id);
            require(described, || {
                format!(
                    "{id}, just launched, is described as {}",
                    crate::shown(in_batch)
                )
            })
        } else if *id == unknown {
            let kind = in_batch
                .as_ref()
                .err()
                .map(fleetwright::ProvisionError::kind);
            require(kind == Some(ErrorKind::NotFound), || {
                format!(
                    "{id}, which never existed, is described as {}",
                    crate::shown(in_batch)
                )
            })
        } else {
            require_same(id, alone, in_batch, id == ended)
        };
        checked.map_err(|failure| match failure {
            Failure::Violated(text) => {
                Failure::Violated(format!("place {} of {size}: {text}", place + 1))
            }
            other @ (Failure::Leaked(_)
            | Failure::CleanupFailed(_)
            | Failure::NotRun(_)
            | Failure::NotApplicable(_)
            | Failure::KitError(_)) => other,
        })?;
    }
    Ok(())
}

/// BATCH-16: a backend must terminate, stop and start an item of a batch in any state as a single call does.
///
/// An item that is skipped because of its state is billed until somebody notices.
///
/// Makes one batch of terminations, one of stops and one of starts, each with a pending, a running, a stopping, a
/// stopped, a terminating and a terminated instance. Every item must have the result that single calls promise,
/// and every accepted item must reach its state.
pub(crate) async fn batch_16_items_in_every_state(cx: &Context) -> Outcome {
    let mut pass = Pass::Held;
    let set = in_every_state(cx).await?;
    let results = cx.provisioner().terminate_instances(&set.ids()).await;
    for ((state, id), result) in set.with_results(&results)? {
        let ended = state.is_ending() && cx.is_forgotten(result.as_ref().err(), set.since);
        require(result.is_ok() || ended, || {
            wrong("termination", *state, id, result)
        })?;
    }
    for (_, id) in &set.items {
        cx.wait_until_terminated(id).await?;
    }
    cx.require_count(0).await?;

    let set = in_every_state(cx).await?;
    let results = cx.provisioner().stop_instances(&set.ids()).await;
    for ((state, id), result) in set.with_results(&results)? {
        match state {
            // A cloud may refuse to stop what does not run yet.
            Pending if result.is_err() => {}
            Pending | Running | Stopping | Stopped => {
                require(result.is_ok(), || wrong("stop", *state, id, result))?;
                cx.wait_for_state(id, Stopped).await?;
            }
            Terminating | Terminated => {
                let call = format!("a stop of {id}, which was {state}, in a batch");
                let refused = cx.require_refused_after_terminate(&call, result.clone(), set.since);
                pass = pass.weaker(refused?);
            }
        }
    }

    let set = in_every_state(cx).await?;
    let results = cx.provisioner().start_instances(&set.ids()).await;
    // Stale reads may show an instance that is about to stop, or to end, as running.
    let stale = !cx.capabilities().consistency_window.is_zero();
    for ((state, id), result) in set.with_results(&results)? {
        match state {
            Pending | Running | Stopped => {
                require(result.is_ok(), || wrong("start", *state, id, result))?;
                cx.wait_for_state(id, Running).await?;
            }
            Stopping => {
                let kind = result.as_ref().err().map(fleetwright::ProvisionError::kind);
                let right = kind.is_none_or(|kind| kind == ErrorKind::Conflict);
                require(right, || wrong("start", *state, id, result))?;
            }
            Terminating if stale => {}
            Terminating | Terminated => {
                let call = format!("a start of {id}, which was {state}, in a batch");
                let refused = cx.require_refused_after_terminate(&call, result.clone(), set.since);
                pass = pass.weaker(refused?);
            }
        }
    }
    Ok(pass)
}

/// One instance in each state, or in the one that follows if the cloud is fast.
struct InEveryState {
    items: [(CloudInstanceState, InstanceId); 6],
    /// A moment before the first termination was requested.
    since: Instant,
}

impl InEveryState {
    fn ids(&self) -> Vec<InstanceId> {
        self.items.iter().map(|(_, id)| id.clone()).collect()
    }

    /// Returns each item with its result.
    fn with_results<'a, T>(
        &'a self,
        results: &'a [Result<T>],
    ) -> Result<impl Iterator<Item = (&'a (CloudInstanceState, InstanceId), &'a Result<T>)>, Failure>
    {
        let (requested, returned) = (self.items.len(), results.len());
        require(requested == returned, || {
            format!("a batch of {requested} items has {returned} results")
        })?;
        Ok(self.items.iter().zip(results))
    }
}

/// Launches six instances and brings each into another state.
async fn in_every_state(cx: &Context) -> Result<InEveryState, Failure> {
    let five = NonZeroU32::MIN.saturating_add(4);
    let launched = launch(cx, &cx.config(), five).await?;
    let ids: Vec<_> = launched.into_iter().map(|info| info.id).collect();
    for id in &ids {
        cx.wait_for_state(id, Running).await?;
    }
    let [running, stopping, stopped, terminating, terminated] = &ids[..] else {
        return Err(Failure::KitError("five instances are not five".to_owned()));
    };
    let since = Instant::now();
    cx.stop(stopped).await?;
    cx.terminate(terminated).await?;
    cx.wait_for_state(stopped, Stopped).await?;
    cx.wait_until_terminated(terminated).await?;
    let pending = cx.launch().await?.id;
    cx.wait_for_consistent_reads().await;
    cx.stop(stopping).await?;
    cx.terminate(terminating).await?;
    let item = |state, id: &InstanceId| (state, id.clone());
    let items = [
        item(Pending, &pending),
        item(Running, running),
        item(Stopping, stopping),
        item(Stopped, stopped),
        item(Terminating, terminating),
        item(Terminated, terminated),
    ];
    Ok(InEveryState { items, since })
}

/// Returns the message about an item with a wrong result.
fn wrong<T: Shown>(
    verb: &str,
    state: CloudInstanceState,
    id: &InstanceId,
    result: &Result<T>,
) -> String {
    let result = result.shown();
    format!("the {verb} of {id}, which was {state}, in a batch returned {result}")
}
