//! Batches of which a part was terminated.

use std::time::Duration;

use fleetwright::{
    CloudInstanceState::Running, ErrorKind, InstanceInfo, InstanceProvisionerExt as _, LaunchRecord,
};

use super::{COUNT, content::token_of, ids, launch};
use crate::{Context, Failure, Outcome, Pass, context::names, require};

/// BATCH-20: a backend must recognize the token of a batch while one of its instances is not terminated, however
/// long ago the others were: find those that live, return them or refuse a replay as spent, and never have more
/// alive than were requested.
///
/// A fleet that has lost one instance is still the result of its launch, and a retry must not double it.
///
/// Launches a batch of three and terminates one. Once that is terminated, and again when the declared memory of
/// a spent token has passed, the token must find the two others, and at most three may be alive after a replay:
/// a backend may launch the missing one again. The default body of a batch is several launches, so it may also
/// refuse the replay because the token of one of them is spent. Times beyond the clause's limit in real time are left out.
pub(crate) async fn batch_20_token_lives_with_its_last_instance(cx: &Context) -> Outcome {
    let config = cx.config_with_token();
    let token = token_of(&config)?;
    let launched = launch(cx, &config, COUNT).await?;
    for info in &launched {
        cx.wait_for_state(&info.id, Running).await?;
    }
    let (ended, living) = (&launched[0].id, &launched[1..]);
    cx.terminate(ended).await?;
    cx.wait_until_terminated(ended).await?;
    let other = cx.open_handle().await;
    let capabilities = cx.capabilities();
    let memory = capabilities
        .token_after_terminate
        .max(capabilities.terminated_visible);
    let mut waits = vec![("once one of them is terminated", Duration::ZERO)];
    if cx.can_advance_time(memory) {
        waits.push(("long after one of them was terminated", memory * 2));
    }
    for (when, wait) in waits {
        cx.advance_time(wait).await;
        cx.wait_for_consistent_reads().await;
        let found = other.find_launches(&token, COUNT).await;
        let found = found.map_err(|error| Failure::call_failed("find_launches", &error))?;
        let LaunchRecord::Found(found) = &found else {
            return Err(Failure::violated(format!(
                "{when}, the token of the batch {} is reported as {}",
                names(&launched),
                crate::shown(&found)
            )));
        };
        require_all(found, living, when, "its token finds")?;
        for handle in [cx.provisioner(), &*other] {
            let replayed = handle.launch_instances(&config, COUNT).await;
            match replayed {
                Ok(replayed) => require_all(&replayed, living, when, "its replay returned")?,
                Err(error) if error.kind() == ErrorKind::TokenSpent => {}
                Err(error) => {
                    let call = format!("a replay of a batch {when}");
                    return Err(Failure::call_failed(&call, &error));
                }
            }
        }
        cx.wait_for_consistent_reads().await;
        let alive = cx.list(&cx.filter()).await?;
        require(alive.len() <= launched.len(), || {
            format!(
                "{when}, a replay of a batch of {COUNT} left {} instances: {}",
                alive.len(),
                names(&alive)
            )
        })?;
    }
    Ok(Pass::Held)
}

/// Requires that a read has all instances of the batch that live.
fn require_all(
    read: &[InstanceInfo],
    living: &[InstanceInfo],
    when: &str,
    what: &str,
) -> Result<(), Failure> {
    require(ids(living).is_subset(&ids(read)), || {
        let (living, read) = (names(living), names(read));
        format!("{when}, {living} of a batch live, but {what} {read}")
    })
}
