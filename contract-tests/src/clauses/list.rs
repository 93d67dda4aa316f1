//! Lists: a list has everything that its filter selects, and nothing else.
//!
//! This file tests filters and the content of entries, `combined` filters by tags and states together and
//! concurrent lists, `pages` lists of several pages, streams and gaps, and `interrupted` pages that
//! cannot be read. Every filter contains the scope's tags, except where a clause is about other
//! instances of the account.

mod combined;
mod interrupted;
mod pages;

use std::collections::BTreeSet;

use fleetwright::{
    CloudInstanceState::{Pending, Running, Stopped, Stopping, Terminated},
    ErrorKind, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, KeyCase, Tags,
};
use tokio::time::Instant;

pub(crate) use self::combined::{
    list_15_filters_are_combined, list_18_concurrent_lists_are_independent,
};
pub(crate) use self::interrupted::{
    list_16_gaps_beside_many_pages, list_17_error_ends_the_stream, list_19_refused_page_is_no_end,
};
pub(crate) use self::pages::{
    list_03_complete_across_pages, list_09_failing_page_fails_the_list,
    list_10_unreachable_part_is_named, list_13_stream_equals_list,
    list_14_concurrent_changes_lose_nothing,
};
use crate::{Context, Failure, Outcome, Pass, SCOPE_TAG, context::names, require};

/// LIST-01: a backend must list an instance by the tags it was launched with.
///
/// After a crash, instances are found again by their tags.
///
/// Launches with four tags, or with as many as the declared limit leaves room for, lists by all of
/// them, and by each one together with the scope.
pub(crate) async fn list_01_finds_instance_by_its_tags(cx: &Context) -> Outcome {
    let tags = [
        ("kit-one", "1"),
        ("kit-two", "2"),
        ("kit-three", "3"),
        ("kit-four", "4"),
    ];
    let room = cx
        .capabilities()
        .tags
        .max_tags
        .saturating_sub(cx.config().tags.len());
    let config = cx.config_with_tags(&tags[..room.clamp(2, tags.len())])?;
    let id = cx.launch_config(&config).await?.id;
    cx.wait_for_consistent_reads().await;
    require_listed(cx, &filter_by(config.tags.clone()), &id).await?;
    for (key, value) in &config.tags {
        let tags = cx.scope().clone().with(key, value);
        let tags = tags.map_err(|error| Failure::KitError(error.to_string()))?;
        require_listed(cx, &filter_by(tags), &id).await?;
    }
    Ok(Pass::Held)
}

/// LIST-02: a backend must list nothing for tags that no instance has.
///
/// If a filter returns other instances, they get terminated.
///
/// Lists by the scope's key with another value, by its key with an empty value, and by an unknown
/// key with the scope's value.
pub(crate) async fn list_02_unknown_tags_match_nothing(cx: &Context) -> Outcome {
    cx.launch().await?;
    cx.wait_for_consistent_reads().await;
    let scope = cx.scope().get(SCOPE_TAG).unwrap_or_default();
    for (key, value) in [
        (SCOPE_TAG, format!("no-{scope}")),
        (SCOPE_TAG, String::new()),
        ("fleetwright-contract-nobody", scope.to_owned()),
    ] {
        let filter = InstanceFilter::tagged(key, value.as_str());
        let filter = filter.map_err(|error| Failure::KitError(error.to_string()))?;
        let list = cx.list(&filter).await?;
        require(list.is_empty(), || {
            let found = names(&list);
            format!("a list by {key}={value:?}, which no instance has, returned {found}")
        })?;
    }
    Ok(Pass::Held)
}

/// LIST-04: a backend must list only instances that have all of the filter's tags.
///
/// If tags are combined with OR, fleets get mixed.
///
/// Launches three instances whose two tags overlap in pairs, and lists by both tags and by each
/// one.
pub(crate) async fn list_04_tags_are_anded(cx: &Context) -> Outcome {
    let mut ids = Vec::new();
    for tags in [
        [("kit-colour", "blue"), ("kit-size", "big")],
        [("kit-colour", "blue"), ("kit-size", "small")],
        [("kit-colour", "red"), ("kit-size", "big")],
    ] {
        ids.push(cx.launch_config(&cx.config_with_tags(&tags)?).await?.id);
    }
    cx.wait_for_consistent_reads().await;
    let (blue, big) = (("kit-colour", "blue"), ("kit-size", "big"));
    let both = filter_by(add_tags(cx.scope(), &[blue, big])?);
    require_exactly(cx, &both, &[&ids[0]]).await?;
    let blue = filter_by(add_tags(cx.scope(), &[blue])?);
    require_exactly(cx, &blue, &[&ids[0], &ids[1]]).await?;
    let big = filter_by(add_tags(cx.scope(), &[big])?);
    require_exactly(cx, &big, &[&ids[0], &ids[2]]).await?;
    Ok(Pass::Held)
}

/// LIST-05: a backend must compare tags exactly: no prefix, no other case, no pattern.
///
/// `blue` must not match `blue-2`.
///
/// Launches instances whose tag is a prefix, an extension, another case or a pattern of the others,
/// and lists by each tag. Values that the backend refuses as invalid are left out.
pub(crate) async fn list_05_tags_are_compared_exactly(cx: &Context) -> Outcome {
    let scope = cx.scope().get(SCOPE_TAG).unwrap_or_default();
    let values = ["-blue", "-blue-sky", "-Blue", "-blu", "-bl*", "-b?ue", ""];
    let mut tags: Vec<_> = values
        .iter()
        .map(|end| ("kit-colour", format!("{scope}{end}")))
        .collect();
    tags.push(("kit-colour-2", format!("{scope}-blue")));
    tags.push(("kit-empty", String::new()));
    tags.push(("kit-empty", "not".to_owned()));
    if cx.capabilities().tags.key_case == KeyCase::Distinct {
        tags.push(("Kit-Colour", format!("{scope}-blue")));
    }
    let mut launched = Vec::new();
    for (key, value) in tags {
        let tag = add_tags(&Tags::new(), &[(key, &value)])?;
        let mut config = cx.config();
        config.tags = add_tags(&config.tags, &[(key, &value)])?;
        if let Some(info) = launch_unless_invalid(cx, &config).await? {
            launched.push((tag, info.id));
        }
    }
    cx.wait_for_consistent_reads().await;
    for (tag, id) in &launched {
        // Instances of other runs may have these tags; of this clause only this one has.
        let list = cx.list(&filter_by(tag.clone())).await?;
        let listed: Vec<_> = list.iter().map(|info| &info.id).collect();
        for (other, other_id) in &launched {
            let (shown, wanted) = (listed.contains(&other_id), other_id == id);
            require(shown == wanted, || {
                let wrongly = if shown { "shows" } else { "lacks" };
                let (tag, other) = (crate::shown(tag), crate::shown(other));
                format!("a list by {tag} {wrongly} {other_id}, which has {other}")
            })?;
        }
    }
    Ok(Pass::Held)
}

/// LIST-06: a backend must list the instances that are in any one of the filter's states, and no
/// others.
///
/// Warm pools list stopped instances only.
///
/// Lists a running and a stopped instance by one state, by several and by states that neither is
/// in, and requires exactly the right ones each time.
pub(crate) async fn list_06_states_are_ored(cx: &Context) -> Outcome {
    let running = cx.launch_running().await?.id;
    let stopped = cx.launch_stopped().await?.id;
    cx.wait_for_consistent_reads().await;
    let cases: [(&[_], &[_]); 5] = [
        (&[Running], &[&running]),
        (&[Stopped], &[&stopped]),
        (&[Running, Stopped], &[&running, &stopped]),
        (&[Pending, Stopping, Stopped], &[&stopped]),
        (&[Pending, Stopping], &[]),
    ];
    for (states, wanted) in cases {
        let mut filter = cx.filter();
        filter.states.extend(states);
        require_exactly(cx, &filter, wanted).await?;
    }
    cx.terminate(&stopped).await?;
    Ok(Pass::Held)
}

/// LIST-07: a backend must leave terminated instances out of a list unless the filter selects them.
///
/// A terminated instance must not count as capacity.
///
/// Lists a live and a terminated instance without states, by terminated and in any state. Whether
/// the second list must have the terminated one depends on the declaration.
pub(crate) async fn list_07_terminated_are_excluded_by_default(cx: &Context) -> Outcome {
    let live = cx.launch().await?.id;
    let start = Instant::now();
    let terminated = cx.launch_terminated().await?.id;
    cx.wait_for_consistent_reads().await;
    require_exactly(cx, &cx.filter(), &[&live]).await?;
    let list = cx.list(&cx.filter().in_state(Terminated)).await?;
    // It was terminated after `start`, so this list had to show it unless more time has passed.
    let may_be_forgotten = cx.may_be_forgotten(start);
    require(list.iter().all(|info| info.state == Terminated), || {
        format!(
            "a list of terminated instances returned others: {}",
            names(&list)
        )
    })?;
    let any = cx.list(&cx.filter().in_any_state()).await?;
    require(any.iter().any(|info| info.id == live), || {
        format!("a list in any state lacks {live}, which is live")
    })?;
    if may_be_forgotten || !cx.capabilities().terminated_listed {
        return Ok(Pass::Weaker);
    }
    require(list.iter().any(|info| info.id == terminated), || {
        format!(
            "{terminated} is terminated and not listed, although the filter selects terminated instances"
        )
    })?;
    Ok(Pass::Held)
}

/// LIST-08: a backend must list stopped instances like running ones.
///
/// A stopped instance that is not listed is paid for and forgotten.
///
/// Lists a running and a stopped instance without a filter for states and compares the listed
/// states.
pub(crate) async fn list_08_stopped_instances_are_listed(cx: &Context) -> Outcome {
    let running = cx.launch_running().await?.id;
    let stopped = cx.launch_stopped().await?.id;
    cx.wait_for_consistent_reads().await;
    let list = require_exactly(cx, &cx.filter(), &[&running, &stopped]).await?;
    for (id, state) in [(&running, Running), (&stopped, Stopped)] {
        let entry = list.iter().find(|info| info.id == *id);
        require(entry.is_some_and(|info| info.state == state), || {
            let listed = crate::shown(&entry.map(|info| info.state));
            format!("{id} is {state}, but listed as {listed}")
        })?;
    }
    Ok(Pass::Held)
}

/// LIST-11: a backend must leave instances with other tags out of a list by tags, and not touch
/// them.
///
/// Accounts are shared. Needs: external actor.
///
/// The external actor launches one instance with other tags and one without. Neither may be in the
/// list, and both must still run after the clause's own instances are terminated.
pub(crate) async fn list_11_foreign_instances_are_excluded(cx: &Context) -> Outcome {
    let external_actor = cx.external_actor()?;
    let scope = cx.scope().get(SCOPE_TAG).unwrap_or_default();
    let others = add_tags(&Tags::new(), &[(SCOPE_TAG, &format!("not-{scope}"))])?;
    let foreign = [
        external_actor.launch(others).await,
        external_actor.launch(Tags::new()).await,
    ];
    let outcome = check_beside_foreign(cx, &foreign).await;
    // The cleanup after the clause does not see them, so they are terminated here in any case.
    for id in &foreign {
        external_actor.terminate(id).await;
    }
    outcome?;
    for id in &foreign {
        cx.wait_until_terminated(id).await?;
    }
    Ok(Pass::Held)
}

/// Lists and terminates the clause's own instances while those of somebody else exist.
async fn check_beside_foreign(cx: &Context, foreign: &[InstanceId]) -> Result<(), Failure> {
    let ours = cx.launch_many(2).await?;
    cx.wait_for_consistent_reads().await;
    require_exactly(cx, &cx.filter(), &ours.iter().collect::<Vec<_>>()).await?;
    for id in &ours {
        cx.terminate(id).await?;
        cx.wait_until_terminated(id).await?;
    }
    cx.wait_for_consistent_reads().await;
    for id in foreign {
        let state = cx.describe(id).await?.state;
        require(!state.is_ending(), || {
            format!(
                "{id} belongs to somebody else, but is {state} after the clause terminated its own instances"
            )
        })?;
    }
    Ok(())
}

/// LIST-12: a backend must include in a list everything that is known of an instance: tags, type,
/// image, addresses, launch time.
///
/// A monitor makes one list for each pass, not one call for each instance.
///
/// Requires tags, type, image, private address and launch time in a list entry, and compares public
/// and hardware address with the oracle's if there is one.
pub(crate) async fn list_12_entries_are_complete(cx: &Context) -> Outcome {
    let id = cx.launch_running().await?.id;
    cx.wait_for_consistent_reads().await;
    let info = cx.wait_until_listed(&id).await?;
    for (known, what) in [
        (info.tags.contains_all(cx.scope()), "tags"),
        (info.instance_type.is_some(), "type"),
        (info.image.is_some(), "image"),
        (info.private_ip.is_some(), "private address"),
        (info.launch_time.is_some(), "launch time"),
    ] {
        require(known, || {
            format!("the list returns {id} without its {what}")
        })?;
    }
    if let Some(oracle) = cx.harness().oracle() {
        let truth = oracle.instances(cx.scope()).await.into_iter();
        let truth = truth.map(|truth| truth.info).find(|truth| truth.id == id);
        let truth = truth.ok_or_else(|| Failure::violated(format!("the cloud has no {id}")))?;
        let public = truth.public_ip.is_none() || info.public_ip == truth.public_ip;
        require(public, || {
            let (listed, has) = (
                crate::shown(&info.public_ip),
                crate::shown(&truth.public_ip),
            );
            format!("the list returns {id} with the public address {listed}, it has {has}")
        })?;
        let mac = truth.mac_address.is_none() || info.mac_address == truth.mac_address;
        require(mac, || {
            let (listed, has) = (
                crate::shown(&info.mac_address),
                crate::shown(&truth.mac_address),
            );
            format!("the list returns {id} with the hardware address {listed}, it has {has}")
        })?;
    }
    Ok(Pass::Held)
}

/// Returns a filter by tags.
fn filter_by(tags: Tags) -> InstanceFilter {
    let mut filter = InstanceFilter::new();
    filter.tags = tags;
    filter
}

/// Returns `tags` and `more`.
fn add_tags(tags: &Tags, more: &[(&str, &str)]) -> Result<Tags, Failure> {
    let mut tags = tags.clone();
    for (key, value) in more {
        let set = tags.insert(*key, *value);
        set.map_err(|error| Failure::KitError(error.to_string()))?;
    }
    Ok(tags)
}

/// Launches `config`, or returns `None` if its tags are refused as invalid, which is allowed.
async fn launch_unless_invalid(
    cx: &Context,
    config: &InstanceConfig,
) -> Result<Option<InstanceInfo>, Failure> {
    match cx.provisioner().launch_instance(config).await {
        Ok(info) => Ok(Some(info)),
        Err(error) if error.kind() == ErrorKind::Invalid => Ok(None),
        Err(error) => Err(Failure::call_failed("launch_instance", &error)),
    }
}

/// Requires that the list of a filter has an instance.
async fn require_listed(
    cx: &Context,
    filter: &InstanceFilter,
    id: &InstanceId,
) -> Result<(), Failure> {
    let list = cx.list(filter).await?;
    require(list.iter().any(|info| info.id == *id), || {
        let tags = crate::shown(&filter.tags);
        format!("{id} is not in the list of its tags {tags}")
    })
}

/// Requires that the list of `filter` has each of `wanted` once and no others.
async fn require_exactly(
    cx: &Context,
    filter: &InstanceFilter,
    wanted: &[&InstanceId],
) -> Result<Vec<InstanceInfo>, Failure> {
    let list = cx.list(filter).await?;
    let listed: BTreeSet<_> = list.iter().map(|info| &info.id).collect();
    let exact = listed.len() == list.len() && listed == wanted.iter().copied().collect();
    require(exact, || {
        let (listed, wanted) = (names(&list), crate::shown(wanted));
        let selected = crate::shown::shown_filter(filter);
        format!("a list of {selected} must return {wanted}, but returned: {listed}")
    })?;
    Ok(list)
}
