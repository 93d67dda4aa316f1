//! Backends that break the family tags.

pub(super) mod keys;

use std::collections::BTreeMap;

use async_trait::async_trait;
use fleetwright::{
    CloudInstanceState, Effect, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo,
    LaunchToken, Operation, Problem, Result, TagChange, Tags,
};

use super::{
    Mutant, Override,
    launch::invalid,
    list::{Lists, Relist},
};
use crate::{CallContext, OverrideHarness};
use fleetwright_contract_tests::SCOPE_TAG;

/// At least one for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "tag values are trimmed",
        violates: "TAGS-01",
        make: OverrideHarness::factory::<TrimsValues>,
    },
    Mutant {
        name: "tag values are converted to lower case",
        violates: "TAGS-01",
        make: OverrideHarness::factory::<LowersValues>,
    },
    Mutant {
        name: "tags in other alphabets fail as unavailable",
        violates: "TAGS-01",
        make: OverrideHarness::factory::<FailsForOtherAlphabets>,
    },
    Mutant {
        name: "tags with an empty value are dropped",
        violates: "TAGS-01",
        make: OverrideHarness::factory::<DropsEmptyValues>,
    },
    Mutant {
        name: "tags are set by a second call",
        violates: "TAGS-02",
        make: OverrideHarness::factory::<TagsAfterwards>,
    },
    Mutant {
        name: "all tags but one are set by a second call",
        violates: "TAGS-02",
        make: OverrideHarness::factory::<TagsMostAfterwards>,
    },
    Mutant {
        name: "one tag less than declared is accepted",
        violates: "TAGS-03",
        make: OverrideHarness::factory::<AcceptsOneTagLess>,
    },
    Mutant {
        name: "tags over the limit are dropped",
        violates: "TAGS-04",
        make: OverrideHarness::factory::<TruncatesTags>,
    },
    Mutant {
        name: "tag values that are too long are truncated",
        violates: "TAGS-04",
        make: OverrideHarness::factory::<CutsValues>,
    },
    Mutant {
        name: "the refusal of a long key does not name the limit",
        violates: "TAGS-04",
        make: OverrideHarness::factory::<NamesNoLimit>,
    },
    Mutant {
        name: "tags under a reserved prefix are dropped",
        violates: "TAGS-05",
        make: OverrideHarness::factory::<DropsReserved>,
    },
    Mutant {
        name: "the backend's own tag is reported",
        violates: "TAGS-06",
        make: OverrideHarness::factory::<Lists<ShowsItsTokenTag>>,
    },
    Mutant {
        name: "a start loses tags",
        violates: "TAGS-07",
        make: OverrideHarness::factory::<LosesTagsAtStart>,
    },
    Mutant {
        name: "a terminated instance is listed without its tags",
        violates: "TAGS-07",
        make: OverrideHarness::factory::<Lists<LosesTagsOfTerminated>>,
    },
];

/// Launches with each tag changed by `change`.
async fn launch_retagged(
    at: CallContext<'_>,
    config: &InstanceConfig,
    change: impl Fn(&str, &str) -> Option<String> + Send,
) -> Result<InstanceInfo> {
    let mut config = config.clone();
    let changed = config.tags.iter().filter_map(|(key, value)| {
        let value = change(key, value)?;
        Some((key.to_owned(), value))
    });
    config.tags = Tags::from_observed(changed.collect::<Vec<_>>());
    at.inner.launch_instance(&config).await
}

#[derive(Default)]
struct TrimsValues;

#[async_trait]
impl Override for TrimsValues {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        launch_retagged(at, config, |_, value| Some(value.trim().to_owned())).await
    }
}

#[derive(Default)]
struct LowersValues;

#[async_trait]
impl Override for LowersValues {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        launch_retagged(at, config, |_, value| Some(value.to_lowercase())).await
    }
}

#[derive(Default)]
struct DropsEmptyValues;

#[async_trait]
impl Override for DropsEmptyValues {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let kept = |value: &str| (!value.is_empty()).then(|| value.to_owned());
        launch_retagged(at, config, |_, value| kept(value)).await
    }
}

/// Launches with the tags that `first` selects, and sets all of them after the launch has returned.
async fn launch_then_tag(
    at: CallContext<'_>,
    config: &InstanceConfig,
    first: fn(&str) -> bool,
) -> Result<InstanceInfo> {
    let checked = config.check(at.inner.capabilities());
    checked.map_err(|value| invalid(value.field(), value.problem().clone()))?;
    let mut info = launch_retagged(at, config, |key, value| {
        first(key).then(|| value.to_owned())
    })
    .await?;
    let mut change = TagChange::new();
    change.set = config.tags.clone();
    let actor = at.harness.cloud().external_actor();
    actor.update_tags(&info.id, &change)?;
    info.tags = config.tags.clone();
    Ok(info)
}

#[derive(Default)]
struct TagsAfterwards;

#[async_trait]
impl Override for TagsAfterwards {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        launch_then_tag(at, config, |_| false).await
    }
}

#[derive(Default)]
struct TagsMostAfterwards;

#[async_trait]
impl Override for TagsMostAfterwards {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        launch_then_tag(at, config, |key| key == SCOPE_TAG).await
    }
}

/// Compares the number of tags with `<` instead of `<=`.
#[derive(Default)]
struct AcceptsOneTagLess;

#[async_trait]
impl Override for AcceptsOneTagLess {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let (actual, limit) = (config.tags.len(), at.inner.capabilities().tags.max_tags);
        if actual >= limit {
            return Err(invalid("tags", Problem::TooMany { actual, limit }));
        }
        at.inner.launch_instance(config).await
    }
}

#[derive(Default)]
struct TruncatesTags;

#[async_trait]
impl Override for TruncatesTags {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let most = at.inner.capabilities().tags.max_tags;
        let kept: Vec<_> = config.tags.iter().map(|(key, _)| key).take(most).collect();
        launch_retagged(at, config, |key, value| {
            kept.contains(&key).then(|| value.to_owned())
        })
        .await
    }
}

#[derive(Default)]
struct CutsValues;

#[async_trait]
impl Override for CutsValues {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let most = at.inner.capabilities().tags.max_value_chars;
        launch_retagged(at, config, |_, value| {
            Some(value.chars().take(most).collect())
        })
        .await
    }
}

#[derive(Default)]
struct NamesNoLimit;

#[async_trait]
impl Override for NamesNoLimit {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let most = at.inner.capabilities().tags.max_key_chars;
        if config.tags.iter().any(|(key, _)| key.len() > most) {
            let expected = "a key of this cloud";
            return Err(invalid("tags", Problem::Malformed { expected }));
        }
        at.inner.launch_instance(config).await
    }
}

#[derive(Default)]
struct DropsReserved;

#[async_trait]
impl Override for DropsReserved {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let reserved = &at.inner.capabilities().tags.reserved_prefixes;
        launch_retagged(at, config, |key, value| {
            let dropped = reserved.iter().any(|prefix| key.starts_with(prefix));
            (!dropped).then(|| value.to_owned())
        })
        .await
    }
}

/// Stores the launch token in a tag and reports that tag.
#[derive(Default)]
struct ShowsItsTokenTag;

#[async_trait]
impl Relist for ShowsItsTokenTag {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        let truth = at.harness.cloud().oracle().instances().into_iter();
        let tokens: BTreeMap<InstanceId, LaunchToken> = truth
            .filter_map(|truth| Some((truth.info.id, truth.token?)))
            .collect();
        for info in &mut list {
            if let Some(token) = tokens.get(&info.id) {
                let own = ("launch-token".to_owned(), token.to_string());
                let tags = info.tags.iter();
                let shown = tags.map(|(key, value)| (key.to_owned(), value.to_owned()));
                info.tags = Tags::from_observed(shown.chain([own]).collect::<Vec<_>>());
            }
        }
        Ok(list)
    }
}

/// Starts an instance as a new machine with the old disk, and does not copy most tags.
#[derive(Default)]
struct LosesTagsAtStart;

#[async_trait]
impl Override for LosesTagsAtStart {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let info = at.inner.start_instance(id).await?;
        let mut change = TagChange::new();
        let lost = info.tags.iter().map(|(key, _)| key.to_owned());
        change.remove = lost.filter(|key| key != SCOPE_TAG).collect();
        at.harness
            .cloud()
            .external_actor()
            .update_tags(id, &change)?;
        Ok(info)
    }
}

#[derive(Default)]
struct LosesTagsOfTerminated;

#[async_trait]
impl Relist for LosesTagsOfTerminated {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        for info in &mut list {
            if info.state == CloudInstanceState::Terminated {
                info.tags = Tags::new();
            }
        }
        Ok(list)
    }
}

#[derive(Default)]
struct FailsForOtherAlphabets;

#[async_trait]
impl Override for FailsForOtherAlphabets {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        if config.tags.iter().any(|(_, value)| !value.is_ascii()) {
            let call = at.call(Operation::LaunchInstance);
            return Err(call.unavailable(Effect::None, "bad request"));
        }
        at.inner.launch_instance(config).await
    }
}
