//! Lists of several pages of which one cannot be read: a gap with a name or an error, and nothing after it.

use fleetwright::{ErrorKind, InstanceId, ListItem, PlacementField, Scope};
use futures_util::StreamExt as _;

use super::{
    add_tags, filter_by,
    pages::{is_in_part, pages, require_each_once, require_only_each_once, stream},
};
use crate::{Context, Failure, Outcome, Pass, WireFault, WireOp, require};

/// The most items that are read after an error.
const MOST_AFTER_AN_ERROR: usize = 3;

/// LIST-16: a backend must return every instance of the other parts exactly once and each part that it
/// cannot read as one gap, however many pages that takes, also if the filter selects nothing in the
/// unreachable part.
///
/// An outage of one part must neither end the list of the others nor look like an empty part. Needs:
/// external actor, parts.
///
/// Fills several pages in two zones, makes one of them unreachable, and lists and streams by two filters,
/// of which one selects only instances of the other zone.
pub(crate) async fn list_16_gaps_beside_many_pages(cx: &Context) -> Outcome {
    let external_actor = cx.external_actor()?;
    let hidden = cx.launch().await?.id;
    let part = external_actor.disconnect(&hidden).await;
    external_actor.reconnect().await;
    let offered = cx.capabilities().placement.contains(&PlacementField::Zone);
    let zone = cx.harness().zone().filter(|_| offered);
    let (Some(part), Some(zone)) = (part, zone) else {
        // A cloud without parts that fail separately has no gaps: its list is complete.
        cx.require_count(1).await?;
        return Ok(Pass::Weaker);
    };
    if part == Scope::zone(zone.clone()) {
        let reason = "the harness names the zone in which launches are placed by default";
        return Err(Failure::NotRun(reason.to_owned()));
    }
    let (page, _) = pages(cx, 3)?;
    let mut reachable = cx.config_with_tags(&[("kit-mark", "reachable")])?;
    reachable.placement.zone = Some(zone);
    for _ in 0..page {
        cx.launch().await?;
        cx.launch_config(&reachable).await?;
        cx.launch_config(&reachable).await?;
    }
    cx.wait_for_consistent_reads().await;
    let all = cx.list(&cx.filter()).await?;
    external_actor.disconnect(&hidden).await;
    let rest = all.iter().filter(|info| !is_in_part(&part, info));
    let rest: Vec<_> = rest.map(|info| info.id.clone()).collect();
    require(rest.len() == page.saturating_mul(2), || {
        let (launched, found) = (page.saturating_mul(2), rest.len());
        format!("{launched} instances were launched outside of {part}, but {found} report that")
    })?;
    let marked = filter_by(add_tags(cx.scope(), &[("kit-mark", "reachable")])?);
    for filter in [cx.filter(), marked] {
        let listed = cx.provisioner().list_instances(&filter).await;
        let call = format!("a list of several pages that cannot read {part}");
        let error = cx.require_refused(&call, listed, ErrorKind::Incomplete)?;
        require_named_once("the error of the list", &part, error.scopes())?;
        let streamed = stream(cx, &filter).await;
        let streamed = streamed
            .map_err(|error| Failure::call_failed("stream_instances around a gap", &error))?;
        require_named_once("the stream", &part, &streamed.gaps)?;
        require_only_each_once("the stream around the gap", &rest, &streamed.instances)?;
    }
    external_actor.reconnect().await;
    cx.require_count(all.len()).await?;
    Ok(Pass::Held)
}

/// Requires that a part is named exactly once.
fn require_named_once(what: &str, part: &Scope, named: &[Scope]) -> Result<(), Failure> {
    let count = named.iter().filter(|one| *one == part).count();
    require(count == 1, || {
        let named = crate::shown(named);
        format!("{what} must name {part} once, which cannot be read, but names {named}")
    })
}

/// LIST-17: a backend must end a stream with its first error, whichever page fails.
///
/// A caller that continues after an error counts instances twice, and one that waits for the end of a stream of
/// errors waits forever. Needs: fault: server error.
///
/// Fails each page once and then all of them. After an error the stream must end at once. A stream
/// without an error must be complete, because the backend has repeated the page by itself.
pub(crate) async fn list_17_error_ends_the_stream(cx: &Context) -> Outcome {
    let fault = WireFault::ServerErrorBefore;
    let faults = cx.faults(std::slice::from_ref(&fault))?;
    let ids = launch_pages(cx).await?;
    for nth in 1..=MOST_PAGES {
        faults.inject(WireOp::List, nth, fault.clone()).await;
        let streamed = stream_beyond_errors(cx).await;
        let reached = faults.clear().await;
        if !reached {
            break;
        }
        check_end(
            &format!("the stream whose page {nth} failed"),
            &ids,
            &streamed,
        )?;
    }
    faults.inject_always(WireOp::List, fault).await;
    let streamed = stream_beyond_errors(cx).await;
    cx.clear_faults(&faults).await?;
    check_end("the stream whose every page failed", &ids, &streamed)?;
    require(streamed.errors + streamed.gaps > 0, || {
        "a stream whose every page failed ended without an error or a gap".to_owned()
    })?;
    Ok(Pass::Held)
}

/// The most pages that are failed, one after the other.
const MOST_PAGES: u64 = 4;

/// Launches two pages of instances and one more.
async fn launch_pages(cx: &Context) -> Result<Vec<InstanceId>, Failure> {
    let (page, _) = pages(cx, 2)?;
    let ids = cx
        .launch_many(page.saturating_mul(2).saturating_add(1))
        .await?;
    cx.wait_for_consistent_reads().await;
    Ok(ids)
}

/// What a stream returned, including what followed its first error.
struct Streamed {
    before_error: Vec<fleetwright::InstanceInfo>,
    gaps: usize,
    errors: usize,
    after_error: usize,
}

/// Reads a stream to its end, and a few items beyond an error.
async fn stream_beyond_errors(cx: &Context) -> Streamed {
    let filter = cx.filter();
    let mut items = cx.provisioner().stream_instances(&filter);
    let (mut before_error, mut gaps, mut errors, mut after_error) = (Vec::new(), 0, 0, 0);
    while let Some(item) = items.next().await {
        match item {
            Err(_) => errors += 1,
            Ok(_) if errors > 0 => after_error += 1,
            Ok(ListItem::Instance(info)) => before_error.push(*info),
            Ok(ListItem::Gap { .. }) => gaps += 1,
        }
        if errors + after_error > MOST_AFTER_AN_ERROR {
            break;
        }
    }
    Streamed {
        before_error,
        gaps,
        errors,
        after_error,
    }
}

/// Requires that a stream ended with its first error, or that it is complete.
fn check_end(what: &str, ids: &[InstanceId], streamed: &Streamed) -> Result<(), Failure> {
    let Streamed {
        before_error,
        gaps,
        errors,
        after_error,
    } = streamed;
    require(*errors <= 1 && *after_error == 0, || {
        let more = errors.saturating_sub(1);
        format!("{what} continued after its error, with {after_error} items and {more} errors")
    })?;
    if *errors + *gaps == 0 {
        return require_only_each_once(what, ids, before_error);
    }
    let listed: Vec<_> = before_error.iter().map(|info| info.id.clone()).collect();
    require_each_once(what, &listed, before_error)
}

/// LIST-19: a backend must fail a list, or return a gap, if it may not read a part of it, whatever the
/// reason and whichever page, and never return the rest as the whole.
///
/// Permissions and credentials often end at a project, a zone or an hour. What a caller may not see is not
/// gone. Needs: fault: forbidden.
///
/// Refuses each page for missing permissions, for expired credentials and, if the harness offers them, with
/// responses that are lost or cannot be parsed. A list without an error must be complete.
pub(crate) async fn list_19_refused_page_is_no_end(cx: &Context) -> Outcome {
    let faults = cx.faults(&[WireFault::Forbidden])?;
    let ids = launch_pages(cx).await?;
    let filter = cx.filter();
    let refusals = [
        WireFault::Forbidden,
        WireFault::BadCredentials,
        WireFault::ResponseLost,
        WireFault::Malformed,
    ];
    for fault in refusals.iter().filter(|fault| faults.supports(fault)) {
        for nth in 1..=MOST_PAGES {
            faults.inject(WireOp::List, nth, fault.clone()).await;
            let listed = cx.provisioner().list_instances(&filter).await;
            let reached = faults.clear().await;
            let what = format!(
                "the list with {} at page {nth}",
                crate::shown::in_words(&fault)
            );
            match listed {
                Ok(list) => require_only_each_once(&what, &ids, &list)?,
                Err(error) => require(error.kind() != ErrorKind::NotFound, || {
                    format!("{what} must not fail as not found, but: {error}")
                })?,
            }
            faults.inject(WireOp::List, nth, fault.clone()).await;
            let streamed = stream(cx, &filter).await;
            faults.clear().await;
            let what = format!(
                "the stream with {} at page {nth}",
                crate::shown::in_words(&fault)
            );
            if let Some(streamed) = streamed.ok().filter(|streamed| streamed.gaps.is_empty()) {
                require_only_each_once(&what, &ids, &streamed.instances)?;
            }
            if !reached {
                break;
            }
        }
    }
    Ok(Pass::Held)
}
