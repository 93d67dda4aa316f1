//! Lists of several pages: complete, failed, or with a gap that has a name.
//!
//! To have more than one page, a clause launches one instance more than the declared page size. If
//! that is more than a clause may launch, LIST-03 and LIST-09 are not run, and the others use fewer
//! instances. A backend that declares the largest possible page has no pages: its lists are one
//! native call, and the clauses use a few instances and fail that call.

use std::{collections::BTreeSet, num::NonZeroUsize};

use fleetwright::{
    CloudInstanceState::{Running, Stopped},
    ErrorKind, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, ListItem,
    PlacementField, Result, Scope,
};
use futures_util::{StreamExt as _, future::join};

use crate::{
    Context, Failure, Outcome, Pass, SCOPE_TAG, WireFault, WireOp, require, shown::shown_states,
};

/// LIST-03: a backend must list every instance exactly once, however many pages that takes, even if
/// no item of a page matches.
///
/// A lost page is a leak, a duplicated item a wrong count.
///
/// Launches one page of tagged, one page of other and one page and one more of tagged instances.
/// The list of all and the list by the tag must be exact; the middle page of the latter has no
/// match.
pub(crate) async fn list_03_complete_across_pages(cx: &Context) -> Outcome {
    let (page, _) = pages(cx, 3)?;
    let mark = ("kit-mark", cx.scope().get(SCOPE_TAG).unwrap_or_default());
    let marked = cx.config_with_tags(&[mark])?;
    let mut ids = Vec::new();
    // In the order of launch, no instance of the middle page has the mark.
    for (count, config) in [
        (page, &marked),
        (page, &cx.config()),
        (page.saturating_add(1), &marked),
    ] {
        for _ in 0..count {
            ids.push(cx.launch_config(config).await?.id);
        }
    }
    cx.wait_for_consistent_reads().await;
    let list = cx.list(&cx.filter()).await?;
    require_only_each_once("the list", &ids, &list)?;
    let filter = InstanceFilter::tagged(mark.0, mark.1);
    let filter = filter.map_err(|error| Failure::KitError(error.to_string()))?;
    ids.drain(page..page.saturating_mul(2));
    let list = cx.list(&filter).await?;
    require_only_each_once(
        "the list by a tag that no instance of the middle page has",
        &ids,
        &list,
    )?;
    Ok(Pass::Held)
}

/// LIST-09: a backend must fail the whole list if any page of it fails, and never return a part of
/// it as the whole.
///
/// If a part is taken for the whole, the rest is launched again. Needs: fault: server error.
///
/// Fails the second page once, or the only one of a backend without pages, where a complete list
/// after the backend's own retry is accepted, and then every page, where list and stream must fail.
pub(crate) async fn list_09_failing_page_fails_the_list(cx: &Context) -> Outcome {
    let fault = WireFault::ServerErrorBefore;
    let faults = cx.faults(std::slice::from_ref(&fault))?;
    let (page, nth) = pages(cx, 1)?;
    let ids = cx.launch_many(page.saturating_add(1)).await?;
    cx.wait_for_consistent_reads().await;
    let filter = cx.filter();

    // A backend may retry the page by itself: then the list is complete.
    faults.inject(WireOp::List, nth, fault.clone()).await;
    let listed = cx.provisioner().list_instances(&filter).await;
    cx.clear_faults(&faults).await?;
    if let Ok(list) = listed {
        let what = format!("the list whose page {nth} failed");
        require_each_once(&what, &ids, &list)?;
    }
    faults.inject(WireOp::List, nth, fault.clone()).await;
    let streamed = stream(cx, &filter).await;
    cx.clear_faults(&faults).await?;
    if let Ok(streamed) = streamed {
        let what = format!("the stream whose page {nth} failed");
        require_each_once(&what, &ids, &streamed.instances)?;
    }

    faults.inject_always(WireOp::List, fault).await;
    let listed = cx.provisioner().list_instances(&filter).await;
    let streamed = stream(cx, &filter).await;
    cx.clear_faults(&faults).await?;
    require(listed.is_err(), || {
        "a list succeeded although every page failed".to_owned()
    })?;
    require(streamed.is_err(), || {
        "a stream whose every page failed ended without an error".to_owned()
    })?;
    Ok(Pass::Held)
}

/// LIST-10: a backend must refuse a list as incomplete and name the part that it could not read,
/// and return the rest with a gap in the stream.
///
/// An instance in a part that could not be read is not deleted. Needs: external actor, parts.
///
/// The external actor makes the part of the cloud with one instance unreachable. The list must fail
/// as incomplete and name the part; the stream must have a gap for it and all other instances.
pub(crate) async fn list_10_unreachable_part_is_named(cx: &Context) -> Outcome {
    let external_actor = cx.external_actor()?;
    let hidden = cx.launch().await?.id;
    launch_in_other_zone(cx).await?;
    cx.wait_for_consistent_reads().await;
    let all = cx.list(&cx.filter()).await?;
    let Some(scope) = external_actor.disconnect(&hidden).await else {
        // A cloud without parts that fail separately has no gaps: its list is complete.
        cx.require_count(all.len()).await?;
        return Ok(Pass::Weaker);
    };
    let filter = cx.filter();
    let listed = cx.provisioner().list_instances(&filter).await;
    let error = cx.require_refused(
        &format!("a list that cannot read {scope}"),
        listed,
        ErrorKind::Incomplete,
    )?;
    require(error.scopes().contains(&scope), || {
        format!("the list could not read {scope} and does not name it: {error}")
    })?;
    let observed = stream(cx, &filter).await;
    let observed =
        observed.map_err(|error| Failure::call_failed("stream_instances around a gap", &error))?;
    require(observed.gaps.contains(&scope), || {
        format!(
            "the stream has no gap for {scope}, but for {}",
            crate::shown(&observed.gaps)
        )
    })?;
    let rest = all.iter().filter(|info| !is_in_part(&scope, info));
    let rest: Vec<_> = rest.map(|info| info.id.clone()).collect();
    require_each_once("the stream around the gap", &rest, &observed.instances)?;
    external_actor.reconnect().await;
    cx.require_count(all.len()).await?;
    Ok(Pass::Held)
}

/// LIST-13: a backend must return from the stream exactly what the list returns.
///
/// If the two differ, a caller can rely on neither.
///
/// Lists and streams running and stopped instances with three filters and compares the results
/// entry by entry. There are more instances than fit on a page if the clause can afford it.
pub(crate) async fn list_13_stream_equals_list(cx: &Context) -> Outcome {
    let ids = cx.launch_many(more_than_a_page(cx)).await?;
    for id in &ids {
        cx.wait_for_state(id, Running).await?;
    }
    cx.stop(&ids[0]).await?;
    cx.wait_for_state(&ids[0], Stopped).await?;
    cx.wait_for_consistent_reads().await;
    for filter in [
        cx.filter(),
        cx.filter().in_state(Running),
        cx.filter().in_state(Stopped),
    ] {
        let mut listed = cx.list(&filter).await?;
        let observed = stream(cx, &filter).await;
        let observed =
            observed.map_err(|error| Failure::call_failed("stream_instances", &error))?;
        let (mut streamed, states) = (observed.instances, shown_states(&filter));
        require(observed.gaps.is_empty(), || {
            format!(
                "the stream has gaps, the list has none: {}",
                crate::shown(&observed.gaps)
            )
        })?;
        listed.sort_by(|a, b| a.id.cmp(&b.id));
        streamed.sort_by(|a, b| a.id.cmp(&b.id));
        let ids: Vec<_> = listed.iter().map(|info| info.id.clone()).collect();
        require_only_each_once(&format!("the stream in {states}"), &ids, &streamed)?;
        for (listed, streamed) in listed.iter().zip(&streamed) {
            require(listed == streamed, || {
                let changed = crate::steady::differences(listed, streamed);
                let id = &listed.id;
                let changed = match changed.is_empty() {
                    true => "its native state, reason or fingerprint differs".to_owned(),
                    false => changed.join(", "),
                };
                format!("the stream returns {id} otherwise than the list: {changed}")
            })?;
        }
    }
    cx.terminate(&ids[0]).await?;
    Ok(Pass::Held)
}

/// LIST-14: a backend must neither lose nor duplicate an instance that exists during a whole list
/// while others are created and terminated.
///
/// Fleets change while they are listed.
///
/// Terminates and launches other instances during a list, and after every item of a stream. Those
/// that leave are among the first, so that later ones move up to an earlier page.
pub(crate) async fn list_14_concurrent_changes_lose_nothing(cx: &Context) -> Outcome {
    // Those that are terminated are among the first, so that later ones move up.
    let (mut stable, mut first, mut second) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..STEPS {
        for passing in [&mut first, &mut second] {
            passing.push(cx.launch().await?.id);
            stable.push(cx.launch().await?.id);
        }
    }
    stable.extend(cx.launch_many(more_than_a_page(cx)).await?);
    for id in stable.iter().chain(&first).chain(&second) {
        cx.wait_for_state(id, Running).await?;
    }
    cx.wait_for_consistent_reads().await;
    let filter = cx.filter().in_state(Running);

    let (listed, changed) = join(cx.list(&filter), async {
        for id in &first {
            replace_one(cx, id).await?;
        }
        Ok::<_, Failure>(())
    })
    .await;
    changed?;
    require_each_once(
        "a list while others are created and terminated",
        &stable,
        &listed?,
    )?;

    let mut streamed = Vec::new();
    let mut items = cx.provisioner().stream_instances(&filter);
    let mut to_replace = second.iter();
    while let Some(observed) = items.next().await {
        match observed.map_err(|error| Failure::call_failed("stream_instances", &error))? {
            ListItem::Instance(info) => streamed.push(*info),
            ListItem::Gap { scope, .. } => {
                return Err(Failure::violated(format!("the stream has a gap: {scope}")));
            }
        }
        if let Some(id) = to_replace.next() {
            replace_one(cx, id).await?;
        }
    }
    require_each_once(
        "a stream while others are created and terminated",
        &stable,
        &streamed,
    )?;
    Ok(Pass::Held)
}

/// How many instances are replaced during one list.
const STEPS: usize = 2;

/// The most instances that a clause launches in addition to those that fill a page.
const MOST_BESIDE: usize = 12;

/// Terminates an instance and launches another one.
async fn replace_one(cx: &Context, id: &InstanceId) -> Result<(), Failure> {
    cx.terminate(id).await?;
    cx.launch().await?;
    Ok(())
}

/// Returns the size of a page and the number of the last call of a list of one instance more than a
/// page: the second one, or the first one for a backend without pages, whose size is then made up.
///
/// # Errors
/// [`Failure::NotRun`] if a clause may not launch one instance more than `count` pages hold.
pub(super) fn pages(cx: &Context, count: usize) -> Result<(usize, u64), Failure> {
    let page = cx.capabilities().page_size;
    if page == NonZeroUsize::MAX {
        return Ok((2, 1));
    }
    if cx.can_launch(page.get().saturating_mul(count).saturating_add(1)) {
        return Ok((page.get(), 2));
    }
    Err(Failure::NotRun(format!(
        "a page holds {page} instances, too many to fill here; let the harness set smaller pages, \
         or declare `NonZeroUsize::MAX` if a list is always one call"
    )))
}

/// Returns one more than a page holds, or 5 if that is too many.
fn more_than_a_page(cx: &Context) -> usize {
    let count = cx.capabilities().page_size.get().saturating_add(1).max(3);
    if cx.can_launch(count.saturating_add(MOST_BESIDE)) {
        count
    } else {
        5
    }
}

/// Launches an instance into the zone that the harness names, if zones are declared.
async fn launch_in_other_zone(cx: &Context) -> Result<(), Failure> {
    let offered = cx.capabilities().placement.contains(&PlacementField::Zone);
    if let Some(zone) = cx.harness().zone().filter(|_| offered) {
        let mut config = cx.config();
        config.placement.zone = Some(zone);
        cx.launch_config(&config).await?;
    }
    Ok(())
}

/// Returns whether an instance is in a part of the cloud, as far as its zone shows.
pub(super) fn is_in_part(part: &Scope, info: &InstanceInfo) -> bool {
    let Scope::Offering {
        zone: Some(zone), ..
    } = part
    else {
        return true;
    };
    info.placement.zone.as_ref() == Some(zone)
}

/// The items of a stream.
pub(super) struct Streamed {
    pub(super) instances: Vec<InstanceInfo>,
    pub(super) gaps: Vec<Scope>,
}

/// Reads a stream to its end.
pub(super) async fn stream(cx: &Context, filter: &InstanceFilter) -> Result<Streamed> {
    stream_of(cx.provisioner(), filter).await
}

/// Reads a stream of a handle to its end.
pub(super) async fn stream_of(
    handle: &dyn InstanceProvisioner,
    filter: &InstanceFilter,
) -> Result<Streamed> {
    let (mut instances, mut gaps) = (Vec::new(), Vec::new());
    let mut items = handle.stream_instances(filter);
    while let Some(observed) = items.next().await {
        match observed? {
            ListItem::Instance(info) => instances.push(*info),
            ListItem::Gap { scope, .. } => gaps.push(scope),
        }
    }
    Ok(Streamed { instances, gaps })
}

/// Requires that `list` shows each of `ids` exactly once.
pub(super) fn require_each_once(
    what: &str,
    ids: &[InstanceId],
    list: &[InstanceInfo],
) -> Result<(), Failure> {
    let mut observed = BTreeSet::new();
    for info in list {
        require(observed.insert(&info.id) || !ids.contains(&info.id), || {
            format!("{what} returns {} twice", info.id)
        })?;
    }
    for id in ids {
        require(observed.contains(id), || {
            format!("{what} lacks {id}, which exists throughout")
        })?;
    }
    Ok(())
}

/// Requires that `list` shows each of `ids` exactly once, and nothing else.
pub(super) fn require_only_each_once(
    what: &str,
    ids: &[InstanceId],
    list: &[InstanceInfo],
) -> Result<(), Failure> {
    require_each_once(what, ids, list)?;
    require(list.len() == ids.len(), || {
        let (launched, listed) = (ids.len(), list.len());
        format!("{launched} instances match, but {what} returns {listed}")
    })
}
