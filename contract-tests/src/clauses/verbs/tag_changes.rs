//! Changes of tags that fail half-way, and several at once.
//!
//! Some clouds set and remove tags with two calls, others replace all tags with one. A change can therefore
//! be half done after an error, which says so, and a repetition completes it; and a change must never undo
//! another one.

use std::sync::Arc;

use fleetwright::{
    CloudInstanceState, Effect, InstanceId, InstanceProvisioner, OptionalVerb, ProvisionError,
    TagChange, Tags,
};
use futures_util::future::join;

use super::{kit_error, require_unsupported};
use crate::{
    Context, Failure, Outcome, Pass, WireFault, WireOp, clauses::stop::read_truth, require,
    shown::quoted,
};

/// Into how many calls of a change faults are injected, at most.
const MOST_CALLS: u64 = 6;

/// How many pairs of changes are made at once.
const RACES: u32 = 4;

/// VERBS-13: a backend must complete a change of tags when it is repeated, whatever fault occurred at
/// whichever call of the first one, report it as without effect only if no tag changed, and change no
/// other tag.
///
/// A fleet is found by its tags, and a change that is half done belongs to two fleets. Needs: oracle, faults.
///
/// Injects each fault that the harness offers into the first call of a change, then into its second, and so
/// on, and compares the tags with the oracle: after the error, and after the repetition.
pub(crate) async fn verbs_13_interrupted_tag_change_is_completed(cx: &Context) -> Outcome {
    if !cx.capabilities().supports(OptionalVerb::UpdateTags) {
        return require_unsupported(cx, OptionalVerb::UpdateTags).await;
    }
    cx.oracle()?;
    let faults = cx.faults(&[])?;
    let mut offered = WireFault::AMBIGUOUS.to_vec();
    offered.retain(|fault| faults.supports(fault));
    if offered.is_empty() {
        return Err(Failure::NotRun(
            "the harness offers no such fault".to_owned(),
        ));
    }
    let config = cx.config_with_tags(&[("kit-kept", "old"), ("kit-round-0", "x")])?;
    let id = cx.launch_config(&config).await?.id;
    cx.wait_for_consistent_state(&id, CloudInstanceState::Running)
        .await?;
    let (mut before, mut round) = (config.tags, 0);
    for fault in offered {
        for nth in 1..=MOST_CALLS {
            round += 1;
            let change = change_of_round(round)?;
            let after = change.apply(&before).map_err(kit_error)?;
            faults.inject(WireOp::Any, nth, fault.clone()).await;
            cx.note(format!("{} at call {nth}", crate::shown::in_words(&fault)));
            let result = cx.provisioner().update_tags(&id, &change).await;
            let reached = faults.clear().await;
            let what = format!(
                "a change of tags with {} at call {nth}",
                crate::shown::in_words(&fault)
            );
            check_first(cx, &what, &id, result, (&before, &after)).await?;
            cx.wait_for_consistent_reads().await;
            repeat_until_done(cx, cx.provisioner(), &id, &change).await?;
            require_tags(cx, &format!("{what} and its repetition"), &id, &after).await?;
            cx.wait_for_consistent_reads().await;
            before = after;
            if !reached {
                break;
            }
        }
    }
    Ok(Pass::Held)
}

/// Returns the change of a round: it adds one tag, changes one, and removes the one that the previous round
/// set.
fn change_of_round(round: u32) -> Result<TagChange, Failure> {
    TagChange::new()
        .set(format!("kit-round-{round}"), "x")
        .and_then(|change| change.set("kit-changed", format!("in-{round}")))
        .and_then(|change| change.remove(format!("kit-round-{}", round.saturating_sub(1))))
        .map_err(kit_error)
}

/// Checks the tags after the first attempt of a change.
async fn check_first(
    cx: &Context,
    what: &str,
    id: &InstanceId,
    result: Result<(), ProvisionError>,
    (before, after): (&Tags, &Tags),
) -> Result<(), Failure> {
    match result {
        Ok(()) => require_tags(cx, &format!("{what}, which succeeded,"), id, after).await,
        Err(error) if error.effect() == Effect::None => {
            let what = format!("{what}, which reported no effect,");
            require_tags(cx, &what, id, before).await
        }
        Err(_) => {
            let now = tags_of(cx, id).await?;
            for key in keys(before, after) {
                let value = now.get(key);
                require(value == before.get(key) || value == after.get(key), || {
                    let [value, old, new] = [value, before.get(key), after.get(key)].map(quoted);
                    format!("after {what}, {key} of {id} is {value}, neither {old} nor {new}")
                })?;
            }
            Ok(())
        }
    }
}

/// VERBS-14: a backend must keep the changes of two calls that change different tags of an instance at the
/// same time, or refuse one of them as a conflict with a delay to retry after.
///
/// A backend that reads all tags and writes them back undoes what another caller changed in between. Needs:
/// oracle.
///
/// Changes different tags through one handle and through two at the same moment, retries what is refused
/// as a conflict, and compares the tags with the oracle.
pub(crate) async fn verbs_14_concurrent_tag_changes_are_kept(cx: &Context) -> Outcome {
    if !cx.capabilities().supports(OptionalVerb::UpdateTags) {
        return require_unsupported(cx, OptionalVerb::UpdateTags).await;
    }
    cx.oracle()?;
    let config =
        cx.config_with_tags(&[("kit-kept", "old"), ("kit-one-0", "x"), ("kit-two-0", "x")])?;
    let id = cx.launch_config(&config).await?.id;
    cx.wait_for_consistent_state(&id, CloudInstanceState::Running)
        .await?;
    let own = cx.shared_provisioner();
    let mut expected = config.tags;
    for round in 1..=RACES {
        let other = if round % 2 == 0 {
            cx.open_handle().await
        } else {
            Arc::clone(&own)
        };
        let [one, two] = ["one", "two"].map(|name| rival_change(name, round));
        let (one, two) = (one?, two?);
        expected = one.apply(&expected).map_err(kit_error)?;
        expected = two.apply(&expected).map_err(kit_error)?;
        let (first, second) = join(
            repeat_until_done(cx, &*own, &id, &one),
            repeat_until_done(cx, &*other, &id, &two),
        )
        .await;
        first?;
        second?;
        let what = format!("two changes of different tags at the same time, round {round}");
        require_tags(cx, &what, &id, &expected).await?;
        cx.wait_for_consistent_reads().await;
    }
    Ok(Pass::Held)
}

/// Returns a change of tags that no other caller changes.
fn rival_change(name: &str, round: u32) -> Result<TagChange, Failure> {
    TagChange::new()
        .set(format!("kit-{name}-{round}"), "x")
        .and_then(|change| change.remove(format!("kit-{name}-{}", round.saturating_sub(1))))
        .map_err(kit_error)
}

/// Repeats a change until it succeeds, as long as its errors advise a retry.
async fn repeat_until_done(
    cx: &Context,
    handle: &dyn InstanceProvisioner,
    id: &InstanceId,
    change: &TagChange,
) -> Result<(), Failure> {
    let what = format!("a repeated change of the tags of {id} succeeds");
    cx.eventually(&what, async || {
        let error = match handle.update_tags(id, change).await {
            Ok(()) => return Ok(Some(())),
            Err(error) => error,
        };
        let Some(delay) = error.retry().delay() else {
            return Err(Failure::call_failed("update_tags without a fault", &error));
        };
        cx.advance_time(delay).await;
        Ok(None)
    })
    .await
}

/// Requires that the cloud has the tags `wanted`, as far as the clause has ever set them.
async fn require_tags(
    cx: &Context,
    what: &str,
    id: &InstanceId,
    wanted: &Tags,
) -> Result<(), Failure> {
    let now = tags_of(cx, id).await?;
    // A cloud may add tags by a policy of its own, but never under the names of the kit.
    let ours = |tags: &Tags| {
        let all = tags.iter().filter(|(key, _)| key.starts_with("kit-"));
        all.map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (now, wanted) = (ours(&now), ours(wanted));
    require(now == wanted, || {
        format!("after {what}, {id} must have the tags {wanted}, but has {now}")
    })
}

/// Returns the tags that an instance has in truth.
async fn tags_of(cx: &Context, id: &InstanceId) -> Result<Tags, Failure> {
    let oracle = cx.oracle()?;
    Ok(read_truth(cx, &*oracle, id).await?.info.tags)
}

/// Returns the keys of both.
fn keys<'a>(before: &'a Tags, after: &'a Tags) -> impl Iterator<Item = &'a str> {
    before.iter().chain(after.iter()).map(|(key, _)| key)
}
