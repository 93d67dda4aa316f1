//! Filters by tags and states together, and several lists at once.
//!
//! [`InstanceFilter::matches`] defines the meaning of a filter, and the oracle has the instances that it is
//! applied to. An instance whose state changes during a list may or may not be in it, and while reads may be
//! stale, only instances that have not changed for the consistency window are compared.

use std::collections::BTreeSet;

use fleetwright::{
    CloudInstanceState::{self, Running, Stopped, Terminated},
    InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, Tags,
};
use futures_util::future::join_all;
use tokio::time::Instant;

use super::{add_tags, filter_by, pages};
use crate::{Context, Failure, Outcome, Pass, SCOPE_TAG, Truth, require};

const BLUE: (&str, &str) = ("kit-colour", "blue");
const RED: (&str, &str) = ("kit-colour", "red");
const BIG: (&str, &str) = ("kit-size", "big");
/// A tag that no instance has.
const GREEN: (&str, &str) = ("kit-colour", "green");

/// LIST-15: a backend must list for any combination of tags and states exactly the instances that
/// have all of the tags and are in one of the states.
///
/// A fleet manager asks for its stopped or its pending instances; with the ones of another fleet or state among
/// them, it starts or terminates the wrong ones. Needs: oracle.
///
/// Brings instances with different tags into each of the six states, lists by every state alone and with
/// several combinations of tags, and by every pair of states, and compares each list with the oracle. The
/// stream is compared, too.
pub(crate) async fn list_15_filters_are_combined(cx: &Context) -> Outcome {
    cx.oracle()?;
    let fleet = Fleet::launch(cx).await?;
    let tags: [&[_]; 5] = [&[], &[BLUE], &[RED], &[BLUE, BIG], &[GREEN]];
    for tags in tags {
        let tags = add_tags(cx.scope(), tags)?;
        for states in single_states() {
            fleet.check(cx, &filter_of(&tags, &states)).await?;
        }
    }
    let blue = add_tags(cx.scope(), &[BLUE])?;
    for states in pairs_of_states() {
        fleet.check(cx, &filter_of(cx.scope(), &states)).await?;
        fleet.check(cx, &filter_of(&blue, &states)).await?;
    }
    if fleet.terminated_are_listed(cx) {
        Ok(Pass::Held)
    } else {
        Ok(Pass::Weaker)
    }
}

/// Returns no state, which selects all that are not terminated, each state alone, and all of them.
fn single_states() -> Vec<Vec<CloudInstanceState>> {
    let all = CloudInstanceState::ALL;
    let each = all.iter().map(|state| vec![*state]);
    let none_and_all = [Vec::new(), all.to_vec()];
    none_and_all.into_iter().chain(each).collect()
}

/// Returns every pair of states.
fn pairs_of_states() -> Vec<Vec<CloudInstanceState>> {
    let all = CloudInstanceState::ALL;
    let pairs_with = |(at, first): (usize, &CloudInstanceState)| {
        let first = *first;
        let others = all.iter().skip(at + 1);
        others
            .map(move |second| vec![first, *second])
            .collect::<Vec<_>>()
    };
    all.iter().enumerate().flat_map(pairs_with).collect()
}

fn filter_of(tags: &Tags, states: &[CloudInstanceState]) -> InstanceFilter {
    let mut filter = filter_by(tags.clone());
    filter.states.extend(states);
    filter
}

/// Instances in all states.
struct Fleet {
    /// Those that do not change by themselves, and of which no read is stale.
    steady: BTreeSet<InstanceId>,
    /// Before the first of them was terminated.
    since: Instant,
}

impl Fleet {
    /// Launches two instances for each state: a big blue one and a red one. Those that will change by themselves come last.
    async fn launch(cx: &Context) -> Result<Self, Failure> {
        let blue = cx.config_with_tags(&[BLUE, BIG])?;
        let red = cx.config_with_tags(&[RED])?;
        let small = cx.config_with_tags(&[BLUE])?;
        let mut ids = Vec::new();
        for config in [&blue, &red, &small] {
            let mut of_config = Vec::new();
            for _ in 0..5 {
                of_config.push(cx.launch_config(config).await?.id);
            }
            ids.push(of_config);
        }
        for id in ids.iter().flatten() {
            cx.wait_for_state(id, Running).await?;
        }
        let nth = |at: usize| ids.iter().filter_map(move |of_config| of_config.get(at));
        let since = Instant::now();
        for (stopped, terminated) in nth(1).zip(nth(2)) {
            cx.stop(stopped).await?;
            cx.terminate(terminated).await?;
        }
        for (stopped, terminated) in nth(1).zip(nth(2)) {
            cx.wait_for_state(stopped, Stopped).await?;
            cx.wait_until_terminated(terminated).await?;
        }
        cx.wait_for_consistent_reads().await;
        for config in [&blue, &red] {
            cx.launch_config(config).await?;
        }
        for (stopping, terminating) in nth(3).zip(nth(4)) {
            cx.stop(stopping).await?;
            cx.terminate(terminating).await?;
        }
        let steady = (0..3).flat_map(nth).cloned().collect();
        Ok(Self { steady, since })
    }

    /// Returns whether lists must have terminated instances if the filter selects them.
    fn terminated_are_listed(&self, cx: &Context) -> bool {
        cx.capabilities().terminated_listed && !cx.may_be_forgotten(self.since)
    }

    /// Compares the list and the stream of a filter with the oracle.
    async fn check(&self, cx: &Context, filter: &InstanceFilter) -> Result<(), Failure> {
        let oracle = cx.oracle()?;
        let before = oracle.instances(cx.scope()).await;
        let listed = cx.list(filter).await?;
        let after = oracle.instances(cx.scope()).await;
        self.compare(cx, filter, "list", &listed, (&before, &after))?;
        let before = after;
        let streamed = pages::stream(cx, filter).await;
        let streamed =
            streamed.map_err(|error| Failure::call_failed("stream_instances", &error))?;
        let after = oracle.instances(cx.scope()).await;
        let streamed = &streamed.instances;
        self.compare(cx, filter, "stream", streamed, (&before, &after))
    }

    /// Compares a result with the truth before and after it was read.
    fn compare(
        &self,
        cx: &Context,
        filter: &InstanceFilter,
        what: &str,
        listed: &[InstanceInfo],
        (before, after): (&[Truth], &[Truth]),
    ) -> Result<(), Failure> {
        let selection = format!("the {what} of {}", crate::shown::shown_filter(filter));
        for info in listed {
            require(filter.matches(info), || {
                let (id, state, tags) = (&info.id, info.state, crate::shown(&info.tags));
                format!("{selection} has {id}, which is {state} and has {tags}")
            })?;
        }
        let reads_lag = !cx.capabilities().consistency_window.is_zero();
        for Truth { info, .. } in before {
            let unchanged = after
                .iter()
                .any(|later| later.info.id == info.id && later.info.state == info.state);
            let comparable = unchanged && (self.steady.contains(&info.id) || !reads_lag);
            let wanted = filter.matches(info);
            let optional = info.state == Terminated && !self.terminated_are_listed(cx);
            if !comparable || (wanted && optional) {
                continue;
            }
            let count = listed.iter().filter(|one| one.id == info.id).count();
            require(count == usize::from(wanted), || {
                let (id, state, tags) = (&info.id, info.state, crate::shown(&info.tags));
                format!("{selection} has {id} {count} times, which is {state} and has {tags}")
            })?;
        }
        Ok(())
    }
}

/// LIST-18: a backend must return to each of several lists and streams at the same time what its own
/// filter selects.
///
/// Replicas and monitors list at the same moment. A result of another caller's filter looks complete.
///
/// Lists and streams with six filters at once, through two handles, and requires exactly the instances
/// that each filter selects.
pub(crate) async fn list_18_concurrent_lists_are_independent(cx: &Context) -> Outcome {
    let (blue, red) = (cx.config_with_tags(&[BLUE])?, cx.config_with_tags(&[RED])?);
    let mut launched = Vec::new();
    for config in [&blue, &red, &blue, &red] {
        launched.push(cx.launch_config(config).await?.id);
    }
    for id in &launched {
        cx.wait_for_state(id, Running).await?;
    }
    for id in &launched[..2] {
        cx.stop(id).await?;
    }
    for id in &launched[..2] {
        cx.wait_for_state(id, Stopped).await?;
    }
    cx.wait_for_consistent_reads().await;
    let scope = cx.scope().get(SCOPE_TAG).unwrap_or_default();
    let nobody = InstanceFilter::tagged(SCOPE_TAG, format!("no-{scope}"));
    let nobody = nobody.map_err(|error| Failure::KitError(error.to_string()))?;
    let cases: [(InstanceFilter, &[usize]); 6] = [
        (cx.filter(), &[0, 1, 2, 3]),
        (filter_by(blue.tags.clone()), &[0, 2]),
        (filter_by(red.tags.clone()), &[1, 3]),
        (cx.filter().in_state(Stopped), &[0, 1]),
        (filter_by(red.tags.clone()).in_state(Running), &[3]),
        (nobody, &[]),
    ];
    let other = cx.open_handle().await;
    let handles: [&dyn InstanceProvisioner; 2] = [cx.provisioner(), &*other];
    let pairs = handles
        .iter()
        .flat_map(|handle| cases.iter().map(move |(filter, _)| (*handle, filter)));
    let lists = join_all(
        pairs
            .clone()
            .map(|(handle, filter)| handle.list_instances(filter)),
    );
    let streams = join_all(pairs.map(|(handle, filter)| pages::stream_of(handle, filter)));
    let (lists, streams) = futures_util::future::join(lists, streams).await;
    let streams = streams
        .into_iter()
        .map(|result| result.map(|streamed| streamed.instances));
    let results = lists.into_iter().chain(streams);
    for (result, (filter, wanted)) in results.zip(cases.iter().cycle()) {
        let result =
            result.map_err(|error| Failure::call_failed("one of several lists", &error))?;
        let listed: BTreeSet<_> = result.iter().map(|info| &info.id).collect();
        let wanted: BTreeSet<_> = wanted.iter().map(|at| &launched[*at]).collect();
        require(listed == wanted && listed.len() == result.len(), || {
            let (wanted, listed) = (crate::shown(&wanted), crate::shown(&listed));
            format!(
                "one of several lists at once, of {}, must return {wanted}, but returned {listed}",
                crate::shown::shown_filter(filter)
            )
        })?;
    }
    Ok(Pass::Held)
}
