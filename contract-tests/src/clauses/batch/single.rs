//! Batches compared with calls for one instance: a batch shows the same, and has the same effect.

use std::sync::Arc;

use fleetwright::{
    CloudInstanceState::{Running, Terminated},
    ErrorKind, InstanceId, InstanceProvisioner, InstanceStatus, Result,
};
use tokio::time::Instant;

use crate::{
    Context, Failure, Faults, Outcome, Pass, WireFault, WireOp, require, steady::differences,
};

/// How many instances a batch of terminations has.
const COUNT: usize = 5;

/// BATCH-11: a backend must describe each instance of a batch exactly as a description of it alone does, and
/// return from a batch of starts exactly what a start of it alone returns.
///
/// A monitor describes in batches, and an address that only a single description shows is lost to it.
///
/// Launches two running, one stopped and one terminated instance, and compares all fields of their
/// descriptions between batches of four, three, two and one, and single descriptions, through the launching
/// handle and through another one. The terminated one must be terminated or not found. A description has no
/// type, image, placement, tags or launch time, so a batch of starts of the running ones, which changes nothing, is
/// compared with a start of each, or with the list.
pub(crate) async fn batch_11_describes_like_single_calls(cx: &Context) -> Outcome {
    let ended = cx.launch_terminated().await?.id;
    let stopped = cx.launch_stopped().await?.id;
    let [one, other] = [cx.launch_running().await?.id, cx.launch_running().await?.id];
    cx.wait_for_consistent_reads().await;
    let all = [one, ended.clone(), stopped, other];
    let second = cx.open_handle().await;
    for handle in [cx.provisioner(), &*second] {
        let mut alone = Vec::new();
        for id in &all {
            alone.push(handle.describe_instance(id).await);
        }
        for size in (1..=all.len()).rev() {
            for (ids, alone) in all.windows(size).zip(alone.windows(size)) {
                let batch = handle.describe_instances(ids).await;
                require(batch.len() == size, || {
                    format!("a batch of {size} descriptions has {} results", batch.len())
                })?;
                for ((id, alone), in_batch) in ids.iter().zip(alone).zip(&batch) {
                    require_same(id, alone, in_batch, *id == ended)?;
                }
            }
        }
        let [one, _, _, other] = &all;
        require_same_starts(cx, handle, &[one.clone(), other.clone()]).await?;
    }
    Ok(Pass::Held)
}

/// Requires that a batch of starts of running instances returns all that starts of each alone return, or that the
/// list shows: other clauses test these two.
async fn require_same_starts(
    cx: &Context,
    handle: &dyn InstanceProvisioner,
    running: &[InstanceId],
) -> Result<(), Failure> {
    let batch = handle.start_instances(running).await;
    require(batch.len() == running.len(), || {
        let (requested, returned) = (running.len(), batch.len());
        format!("a batch of {requested} starts has {returned} results")
    })?;
    let list = cx.list(&cx.filter()).await?;
    for (id, in_batch) in running.iter().zip(batch) {
        let in_batch = in_batch.map_err(|error| {
            Failure::call_failed(&format!("a start of {id} in a batch"), &error)
        })?;
        let alone = handle.start_instance(id).await.ok();
        let listed = list.iter().find(|info| info.id == *id).cloned();
        let references: Vec<_> = alone.into_iter().chain(listed).collect();
        let different = references
            .iter()
            .map(|reference| differences(reference, &in_batch));
        let different: Vec<_> = different.collect();
        require(different.iter().any(Vec::is_empty), || {
            let different = different.concat().join("; ");
            format!("a start of {id} in a batch differs from one of it alone: {different}")
        })?;
    }
    Ok(())
}

/// Requires that two descriptions of `id` are equal, or that both show its end if it has `ended`: its
/// record may be deleted between them.
pub(super) fn require_same(
    id: &InstanceId,
    alone: &Result<InstanceStatus>,
    in_batch: &Result<InstanceStatus>,
    ended: bool,
) -> Result<(), Failure> {
    let right = match (alone, in_batch) {
        _ if ended => has_ended(alone) && has_ended(in_batch),
        (Ok(alone), Ok(in_batch)) => alone == in_batch,
        _ => false,
    };
    require(right, || {
        format!(
            "alone, {id} is described as {}, and in a batch as {}",
            crate::shown::details(alone),
            crate::shown::details(in_batch)
        )
    })
}

fn has_ended(result: &Result<InstanceStatus>) -> bool {
    match result {
        Ok(status) => status.state == Terminated,
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// BATCH-12: a backend must terminate every instance for which a batch of terminations returns success,
/// also one that its lists omit.
///
/// Nobody terminates it again, so an instance that was left out runs and costs forever. Needs: fault: stale
/// read.
///
/// Terminates five running instances with one call, and then five that were launched a moment ago, with
/// stale reads, so that they are missing from lists. Another handle, which has terminated nothing, must
/// describe each of them as terminated or not found, and the oracle must agree. Without stale reads only the
/// first half is tested, and the clause is reported as not run.
pub(crate) async fn batch_12_terminations_have_their_effect(cx: &Context) -> Outcome {
    let running = cx.launch_many(COUNT).await?;
    for id in &running {
        cx.wait_for_state(id, Running).await?;
    }
    cx.wait_for_consistent_reads().await;
    let results = cx.provisioner().terminate_instances(&running).await;
    require_effect(cx, &running, &results).await?;

    let faults = cx.faults(&[WireFault::StaleRead])?;
    let fresh = cx.launch_many(COUNT).await?;
    hide_fresh_instances(&faults).await;
    let results = cx.provisioner().terminate_instances(&fresh).await;
    // A backend that terminates without a read has not used them.
    faults.clear().await;
    require_effect(cx, &fresh, &results).await?;
    Ok(Pass::Held)
}

/// Makes every read return the oldest data that the consistency window allows.
async fn hide_fresh_instances(faults: &Arc<dyn Faults>) {
    for read in [WireOp::List, WireOp::Describe] {
        faults.inject_always(read, WireFault::StaleRead).await;
    }
}

/// Requires that another handle and the oracle see the end of every instance whose termination returned
/// success, and terminates the others, so that nothing is left.
async fn require_effect(
    cx: &Context,
    ids: &[InstanceId],
    results: &[Result<()>],
) -> Result<(), Failure> {
    require(results.len() == ids.len(), || {
        let returned = results.len();
        format!("a batch of {COUNT} terminations has {returned} results")
    })?;
    let other = cx.open_handle().await;
    for (id, result) in ids.iter().zip(results) {
        if result.is_ok() {
            require_ends(cx, &*other, id).await?;
        } else {
            cx.terminate(id).await?;
            cx.wait_until_terminated(id).await?;
        }
    }
    cx.require_count(0).await?;
    Ok(())
}

/// Waits until `handle` describes `id` as terminated, or as not found after the consistency window.
async fn require_ends(
    cx: &Context,
    handle: &dyn InstanceProvisioner,
    id: &InstanceId,
) -> Result<(), Failure> {
    let start = Instant::now();
    let window = cx.capabilities().consistency_window;
    let what = format!("{id}, whose termination in a batch succeeded, is terminated");
    cx.eventually(&what, async || {
        let result = handle.describe_instance(id).await;
        match &result {
            Ok(_) => Ok(has_ended(&result).then_some(())),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Ok((start.elapsed() >= window).then_some(()))
            }
            Err(error) => Err(Failure::call_failed("describe_instance", error)),
        }
    })
    .await
}
