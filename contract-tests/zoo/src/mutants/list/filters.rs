//! Lists that select the wrong instances, or show too little of them.

use async_trait::async_trait;
use fleetwright::{
    CloudInstanceState, Effect, InstanceConfig, InstanceFilter, InstanceInfo, Operation, Result,
    Tags,
};

use super::Relist;
use crate::{CallContext, Override};

/// Selects by states correctly, and by tags with `fits`.
async fn select(
    at: CallContext<'_>,
    filter: &InstanceFilter,
    fits: impl Fn(&Tags) -> bool + Send,
) -> Result<Vec<InstanceInfo>> {
    let mut in_states = filter.clone();
    in_states.tags = Tags::new();
    let mut list = at.inner.list_instances(&in_states).await?;
    list.retain(|info| fits(&info.tags));
    Ok(list)
}

/// Returns whether every tag of the filter has a tag that is `like` it.
fn all_like(filter: &InstanceFilter, tags: &Tags, like: fn(&str, &str) -> bool) -> bool {
    let matching_pair = |(key, value): (&str, &str)| {
        let mut pairs = tags.iter();
        pairs.any(|(tag_key, tag_value)| like(key, tag_key) && like(value, tag_value))
    };
    filter.tags.iter().all(matching_pair)
}

#[derive(Default)]
pub(super) struct UsesFourTags;

#[async_trait]
impl Relist for UsesFourTags {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        list.retain(|_| filter.tags.len() <= 4);
        Ok(list)
    }
}

#[derive(Default)]
pub(super) struct IgnoresUnknownKeys;

#[async_trait]
impl Relist for IgnoresUnknownKeys {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let everything = InstanceFilter::new().in_any_state();
        let all = at.inner.list_instances(&everything).await?;
        let mut known = filter.clone();
        for (key, _) in &filter.tags {
            if all.iter().all(|info| info.tags.get(key).is_none()) {
                known.tags.remove(key);
            }
        }
        at.inner.list_instances(&known).await
    }
}

/// Looks the ids up by tag and then requests the instances by ids, where no ids mean all.
#[derive(Default)]
pub(super) struct ReturnsAllForNone;

#[async_trait]
impl Relist for ReturnsAllForNone {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let list = at.inner.list_instances(filter).await?;
        if list.is_empty() {
            return select(at, filter, |_| true).await;
        }
        Ok(list)
    }
}

#[derive(Default)]
pub(super) struct OrsTags;

#[async_trait]
impl Relist for OrsTags {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let any = |tags: &Tags| {
            let mut wanted = filter.tags.iter();
            filter.tags.is_empty() || wanted.any(|(key, value)| tags.get(key) == Some(value))
        };
        select(at, filter, any).await
    }
}

#[derive(Default)]
pub(super) struct MatchesPrefixes;

#[async_trait]
impl Relist for MatchesPrefixes {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let like = |wanted: &str, key: &str| match wanted {
            "" => key.is_empty(),
            prefix => key.starts_with(prefix),
        };
        select(at, filter, |tags| all_like(filter, tags, like)).await
    }
}

#[derive(Default)]
pub(super) struct FoldsCase;

#[async_trait]
impl Relist for FoldsCase {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let like = |wanted: &str, key: &str| wanted.eq_ignore_ascii_case(key);
        select(at, filter, |tags| all_like(filter, tags, like)).await
    }
}

/// Passes values to a native filter that interprets `*` and `?`.
#[derive(Default)]
pub(super) struct FoldsCaseOfKeys;

#[async_trait]
impl Relist for FoldsCaseOfKeys {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let fits = |tags: &Tags| {
            let matching_pair = |(key, value): (&str, &str)| {
                let mut pairs = tags.iter();
                pairs.any(|(tag_key, tag_value)| {
                    tag_key.eq_ignore_ascii_case(key) && tag_value == value
                })
            };
            filter.tags.iter().all(matching_pair)
        };
        select(at, filter, fits).await
    }
}

/// Passes values to a native filter that fails for some pattern characters.
#[derive(Default)]
pub(super) struct FailsForPatterns;

#[async_trait]
impl Override for FailsForPatterns {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        if config.tags.iter().any(|(_, value)| value.contains('?')) {
            let call = at.call(Operation::LaunchInstance);
            return Err(call.unavailable(Effect::None, "bad query"));
        }
        at.inner.launch_instance(config).await
    }
}

#[derive(Default)]
pub(super) struct MatchesPatterns;

#[async_trait]
impl Relist for MatchesPatterns {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        select(at, filter, |tags| all_like(filter, tags, like_pattern)).await
    }
}

fn like_pattern(pattern: &str, text: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => text.is_empty(),
        Some('*') => {
            let mut ends = text.char_indices().map(|(at, _)| &text[at..]).chain([""]);
            ends.any(|end| like_pattern(rest.as_str(), end))
        }
        Some(wanted) => {
            let mut characters = text.chars();
            let first = characters.next();
            first.is_some_and(|first| wanted == '?' || wanted == first)
                && like_pattern(rest.as_str(), characters.as_str())
        }
    }
}

#[derive(Default)]
pub(super) struct UsesLastState;

#[async_trait]
impl Relist for UsesLastState {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut filter = filter.clone();
        filter.states = filter.states.pop_last().into_iter().collect();
        at.inner.list_instances(&filter).await
    }
}

#[derive(Default)]
pub(super) struct UsesTwoStates;

#[async_trait]
impl Relist for UsesTwoStates {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut two = filter.clone();
        two.states = filter.states.iter().copied().take(2).collect();
        at.inner.list_instances(&two).await
    }
}

#[derive(Default)]
pub(super) struct HidesTerminated;

#[async_trait]
impl Relist for HidesTerminated {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        list.retain(|info| info.state != CloudInstanceState::Terminated);
        Ok(list)
    }
}

#[derive(Default)]
pub(super) struct OmitsStopped;

#[async_trait]
impl Relist for OmitsStopped {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        let wants_stopped = filter.states.contains(&CloudInstanceState::Stopped);
        list.retain(|info| wants_stopped || info.state != CloudInstanceState::Stopped);
        Ok(list)
    }
}

/// Lists stopped instances only if there are no others.
#[derive(Default)]
pub(super) struct ListsStoppedOnlyAlone;

#[async_trait]
impl Relist for ListsStoppedOnlyAlone {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        let is_stopped = |info: &InstanceInfo| info.state == CloudInstanceState::Stopped;
        if filter.states.is_empty() && !list.iter().all(is_stopped) {
            list.retain(|info| !is_stopped(info));
        }
        Ok(list)
    }
}

#[derive(Default)]
pub(super) struct MatchesUntagged;

#[async_trait]
impl Relist for MatchesUntagged {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let fits = |tags: &Tags| tags.is_empty() || tags.contains_all(&filter.tags);
        select(at, filter, fits).await
    }
}

#[derive(Default)]
pub(super) struct HidesLaunchTimes;

#[async_trait]
impl Relist for HidesLaunchTimes {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        for info in &mut list {
            info.launch_time = None;
        }
        Ok(list)
    }
}
