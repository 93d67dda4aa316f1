//! Keys that clouds, shells and Unicode libraries often change: stored exactly, or refused.

use std::num::NonZeroU32;

use fleetwright::{Effect, ErrorKind, InstanceConfig, InstanceId, InstanceInfo, Tags};
use futures_util::future::try_join_all;

use super::{insert, require_same_tags};
use crate::{Context, Failure, Outcome, Pass, require};

/// One tag, or two that must stay different.
type Row = &'static [(&'static str, &'static str)];

/// The keys with their values, all different from each other.
const ROWS: [Row; 14] = [
    &[("kit/slash", "a/b")],
    &[("kit.dot", "a.b")],
    &[("kit:colon", "a:b")],
    &[("kit@at", "a@b")],
    &[("kit+plus", "a+b")],
    &[("kit=equals", "a=b")],
    &[("kit-\u{1F680}", "\u{1F680}")],
    &[("kit-form-\u{e9}", "one")],
    &[("kit-form-e\u{301}", "one")],
    &[
        ("kit-both-\u{e9}", "composed"),
        ("kit-both-e\u{301}", "decomposed"),
    ],
    &[(" kit-leading", "x")],
    &[("kit-trailing ", "x")],
    &[("k", "short")],
    &[("kit-equal", "kit-equal")],
];

/// TAGS-08: a backend must store the keys of tags exactly, with any punctuation, emoji, white space at their ends
/// and in any Unicode form, or refuse them as invalid, for launches, batches and filters.
///
/// A key that is normalized, trimmed or escaped is another key, and its instances are not found.
///
/// Launches with each of 14 unusual keys, one at a time, then a batch of two with all that were accepted, as far as
/// their number allows. Each accepted tag must be returned exactly by launch and list, and a filter by it must
/// find exactly the instances that have it. A composed and a decomposed letter are two keys.
pub(crate) async fn tags_08_unusual_keys_round_trip(cx: &Context) -> Outcome {
    let launches = try_join_all(ROWS.iter().map(|row| launch_row(cx, row))).await?;
    let accepted: Vec<_> = launches.into_iter().flatten().collect();
    let mut config = cx.config();
    for (row, _) in &accepted {
        let mut tags = config.tags.clone();
        for tag in *row {
            insert(&mut tags, *tag)?;
        }
        if cx.capabilities().tags.check(&tags).is_ok() {
            config.tags = tags;
        }
    }
    let batch = launch_batch(cx, &config).await?;
    cx.wait_for_consistent_reads().await;
    let list = cx.list(&cx.filter()).await?;
    for (row, id) in &accepted {
        let tags = row_tags(cx, row)?;
        require_listed(&list, id, &tags)?;
        let mut expected = vec![id];
        if config.tags.contains_all(&tags) {
            expected.extend(&batch);
        }
        for tag in *row {
            require_found_by(cx, *tag, &expected).await?;
        }
    }
    for id in &batch {
        require_listed(&list, id, &config.tags)?;
    }
    Ok(Pass::Held)
}

/// Launches with the tags of a row. Returns `None` if they are refused as invalid without effect.
async fn launch_row(cx: &Context, row: Row) -> Result<Option<(Row, InstanceId)>, Failure> {
    let mut config = cx.config();
    config.tags = row_tags(cx, row)?;
    match cx.provisioner().launch_instance(&config).await {
        Ok(info) => {
            require_same_tags("the launch", &info, &config.tags)?;
            Ok(Some((row, info.id)))
        }
        Err(error) if error.kind() == ErrorKind::Invalid && error.effect() == Effect::None => {
            Ok(None)
        }
        Err(error) => Err(Failure::violated(format!(
            "tags {} must be stored or refused as invalid without effect, but: {error}",
            crate::shown(row)
        ))),
    }
}

/// Launches a batch of two with tags that were accepted one at a time.
async fn launch_batch(cx: &Context, config: &InstanceConfig) -> Result<Vec<InstanceId>, Failure> {
    let two = NonZeroU32::MIN.saturating_add(1);
    let launched = cx.provisioner().launch_instances(config, two).await;
    let launched = launched.map_err(|error| Failure::call_failed("launch_instances", &error))?;
    for info in &launched {
        require_same_tags("the batch launch", info, &config.tags)?;
    }
    Ok(launched.into_iter().map(|info| info.id).collect())
}

/// Returns the tags of a row with those of the scope.
fn row_tags(cx: &Context, row: Row) -> Result<Tags, Failure> {
    let mut tags = cx.config().tags;
    for tag in row {
        insert(&mut tags, *tag)?;
    }
    Ok(tags)
}

/// Requires that the list has exactly `tags` for `id`.
fn require_listed(list: &[InstanceInfo], id: &InstanceId, tags: &Tags) -> Result<(), Failure> {
    let listed = list.iter().find(|info| info.id == *id);
    let listed = listed.ok_or_else(|| Failure::violated(format!("{id} is not listed")))?;
    require_same_tags("the list", listed, tags)
}

/// Requires that a filter by one tag finds exactly the instances that have it.
async fn require_found_by(
    cx: &Context,
    tag: (&str, &str),
    expected: &[&InstanceId],
) -> Result<(), Failure> {
    let mut filter = cx.filter();
    insert(&mut filter.tags, tag)?;
    let list = cx.list(&filter).await?;
    let mut found: Vec<_> = list.iter().map(|info| &info.id).collect();
    let mut expected = expected.to_vec();
    found.sort();
    expected.sort();
    require(found == expected, || {
        let (expected, found) = (crate::shown(&expected), crate::shown(&found));
        let tag = crate::shown(&tag);
        format!("the tag {tag} belongs to {expected}, but a list by it returns {found}")
    })
}
