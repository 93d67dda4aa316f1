//! Lists of several pages: complete, or failed, or with a gap that has a name.

use std::collections::BTreeSet;

use fleetwright::{
    CloudInstanceState::{Running, Stopped},
    ErrorKind, InstanceFilter, InstanceId, InstanceInfo, PlacementField, Result, Scope, Seen,
};
use futures_util::{StreamExt as _, future::join};

use crate::{Arm, Cx, Outcome, Stop, WireFault, WireOp, cx::names, require};

pub(crate) async fn list_03_complete_across_pages(cx: &Cx) -> Outcome {
    let ids = fill_pages(cx, 2).await?;
    cx.settle_reads().await;
    let list = cx.list(&cx.filter()).await?;
    each_once("the list", &ids, &list)?;
    require(list.len() == ids.len(), || {
        format!(
            "{} instances were launched and {} are listed",
            ids.len(),
            list.len()
        )
    })?;
    Ok(Arm::Held)
}

pub(crate) async fn list_09_a_failing_page_fails_the_list(cx: &Cx) -> Outcome {
    let fault = WireFault::ServerErrorBefore;
    let faults = cx.faults(&[fault.clone()])?;
    let ids = fill_pages(cx, 1).await?;
    cx.settle_reads().await;
    let filter = cx.filter();

    // A backend may ask for the page again by itself; then the list is whole, or it failed.
    faults.strike(WireOp::List, 2, fault.clone()).await;
    let listed = cx.provisioner().list_instances(&filter).await;
    cx.struck(&faults).await?;
    if let Ok(list) = listed {
        each_once("the list whose second page failed", &ids, &list)?;
    }
    faults.strike(WireOp::List, 2, fault.clone()).await;
    let streamed = stream(cx, &filter).await;
    cx.struck(&faults).await?;
    if let Ok(streamed) = streamed {
        let list = &streamed.instances;
        each_once("the stream whose second page failed", &ids, list)?;
    }

    faults.strike_always(WireOp::List, fault).await;
    let listed = cx.provisioner().list_instances(&filter).await;
    let streamed = stream(cx, &filter).await;
    cx.struck(&faults).await?;
    require(listed.is_err(), || {
        "a list whose every page failed was answered as a success".to_owned()
    })?;
    require(streamed.is_err(), || {
        "a stream whose every page failed ended without an error".to_owned()
    })?;
    Ok(Arm::Held)
}

pub(crate) async fn list_10_an_unreachable_part_is_named(cx: &Cx) -> Outcome {
    let outsider = cx.outsider()?;
    let hidden = cx.launch().await?.id;
    launch_elsewhere(cx).await?;
    cx.settle_reads().await;
    let all = cx.list(&cx.filter()).await?;
    let Some(scope) = outsider.cut_off(&hidden).await else {
        // A cloud without parts that fail alone has no gaps to name; its list is whole.
        cx.exactly(all.len()).await?;
        return Ok(Arm::Weaker);
    };
    let filter = cx.filter();
    let listed = cx.provisioner().list_instances(&filter).await;
    let error = cx.refused(
        &format!("a list that cannot see {scope}"),
        listed,
        ErrorKind::Incomplete,
    )?;
    require(error.scopes().contains(&scope), || {
        format!("the list could not see {scope} and does not name it: {error}")
    })?;
    let seen = stream(cx, &filter).await;
    let seen = seen.map_err(|error| Stop::failed("stream_instances around a gap", &error))?;
    require(seen.gaps.contains(&scope), || {
        format!("the stream has no gap for {scope}, but for {:?}", seen.gaps)
    })?;
    let rest = all.iter().filter(|info| !covers(&scope, info));
    let rest: Vec<_> = rest.map(|info| info.id.clone()).collect();
    each_once("the stream around the gap", &rest, &seen.instances)?;
    outsider.reconnect().await;
    cx.exactly(all.len()).await?;
    Ok(Arm::Held)
}

pub(crate) async fn list_13_the_stream_is_the_list(cx: &Cx) -> Outcome {
    let ids = cx.launch_many(pages_if_possible(cx)).await?;
    for id in &ids {
        cx.reach(id, Running).await?;
    }
    cx.stop(&ids[0]).await?;
    cx.reach(&ids[0], Stopped).await?;
    cx.settle_reads().await;
    for filter in [
        cx.filter(),
        cx.filter().in_state(Running),
        cx.filter().in_state(Stopped),
    ] {
        let mut listed = cx.list(&filter).await?;
        let seen = stream(cx, &filter).await;
        let seen = seen.map_err(|error| Stop::failed("stream_instances", &error))?;
        let (mut streamed, states) = (seen.instances, &filter.states);
        require(seen.gaps.is_empty(), || {
            format!("the stream has gaps, the list has none: {:?}", seen.gaps)
        })?;
        listed.sort_by(|a, b| a.id.cmp(&b.id));
        streamed.sort_by(|a, b| a.id.cmp(&b.id));
        let (list_names, stream_names) = (names(&listed), names(&streamed));
        require(list_names == stream_names, || {
            format!("in {states:?} the list shows {list_names}, the stream {stream_names}")
        })?;
        for (listed, streamed) in listed.iter().zip(&streamed) {
            require(listed == streamed, || {
                format!("the list shows {listed:?}, the stream {streamed:?}")
            })?;
        }
    }
    Ok(Arm::Held)
}

pub(crate) async fn list_14_changes_while_listing_lose_nothing(cx: &Cx) -> Outcome {
    let (mut stable, mut passing) = (Vec::new(), Vec::new());
    for at in 0..pages_if_possible(cx) + 1 {
        if at < 2 * STEPS {
            passing.push(cx.launch().await?.id);
        }
        stable.push(cx.launch().await?.id);
    }
    for id in stable.iter().chain(&passing) {
        cx.reach(id, Running).await?;
    }
    cx.settle_reads().await;
    let filter = cx.filter().in_state(Running);
    let (first, second) = passing.split_at(passing.len() / 2);

    let (listed, changed) = join(cx.list(&filter), async {
        for id in first {
            come_and_go(cx, id).await?;
        }
        Ok::<_, Stop>(())
    })
    .await;
    changed?;
    each_once("a list while others come and go", &stable, &listed?)?;

    let mut streamed = Vec::new();
    let mut items = cx.provisioner().stream_instances(&filter);
    let mut leaving = second.iter();
    while let Some(seen) = items.next().await {
        match seen.map_err(|error| Stop::failed("stream_instances", &error))? {
            Seen::Instance(info) => streamed.push(*info),
            Seen::Gap { scope, .. } => {
                return Err(Stop::violated(format!("the stream has a gap: {scope}")));
            }
        }
        if let Some(id) = leaving.next() {
            come_and_go(cx, id).await?;
        }
    }
    each_once("a stream while others come and go", &stable, &streamed)?;
    Ok(Arm::Held)
}

/// How many instances come and go during one list.
const STEPS: usize = 2;

/// One instance leaves and another comes.
async fn come_and_go(cx: &Cx, id: &InstanceId) -> Result<(), Stop> {
    cx.terminate(id).await?;
    cx.launch().await?;
    Ok(())
}

/// Launches one more than `pages` pages hold.
async fn fill_pages(cx: &Cx, pages: usize) -> Result<Vec<InstanceId>, Stop> {
    let page = cx.capabilities().page_size.get();
    let count = page.saturating_mul(pages).saturating_add(1);
    if !cx.can_launch(count) {
        return Err(Stop::NotRun(format!(
            "a page holds {page} instances, too many to fill here; let the harness set smaller pages"
        )));
    }
    cx.launch_many(count).await
}

/// One more than a page holds, or a few where that is too many.
fn pages_if_possible(cx: &Cx) -> usize {
    let count = cx.capabilities().page_size.get().saturating_add(1).max(3);
    if cx.can_launch(count.saturating_add(4 * STEPS)) {
        count
    } else {
        5
    }
}

/// Launches one into the zone that the harness names, where zones are offered.
async fn launch_elsewhere(cx: &Cx) -> Result<(), Stop> {
    let offered = cx.capabilities().placement.contains(&PlacementField::Zone);
    if let Some(zone) = cx.harness().zone().filter(|_| offered) {
        let mut config = cx.config();
        config.placement.zone = Some(zone);
        cx.launch_as(&config).await?;
    }
    Ok(())
}

/// Whether an instance lives in a part, as far as its zone tells.
fn covers(part: &Scope, info: &InstanceInfo) -> bool {
    match part {
        Scope::Offering {
            zone: Some(zone), ..
        } => info.placement.zone.as_ref() == Some(zone),
        _ => true,
    }
}

/// What a stream showed.
struct Streamed {
    instances: Vec<InstanceInfo>,
    gaps: Vec<Scope>,
}

async fn stream(cx: &Cx, filter: &InstanceFilter) -> Result<Streamed> {
    let (mut instances, mut gaps) = (Vec::new(), Vec::new());
    let mut items = cx.provisioner().stream_instances(filter);
    while let Some(seen) = items.next().await {
        match seen? {
            Seen::Instance(info) => instances.push(*info),
            Seen::Gap { scope, .. } => gaps.push(scope),
        }
    }
    Ok(Streamed { instances, gaps })
}

/// Demands that `list` shows each of `ids` exactly once.
fn each_once(what: &str, ids: &[InstanceId], list: &[InstanceInfo]) -> Result<(), Stop> {
    let mut seen = BTreeSet::new();
    for info in list {
        require(seen.insert(&info.id) || !ids.contains(&info.id), || {
            format!("{what} shows {} twice", info.id)
        })?;
    }
    for id in ids {
        require(seen.contains(id), || {
            format!("{what} lacks {id}, which exists throughout")
        })?;
    }
    Ok(())
}
