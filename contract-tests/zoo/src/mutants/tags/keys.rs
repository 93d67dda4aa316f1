//! Backends that change the keys of tags.

use std::{marker::PhantomData, num::NonZeroU32};

use async_trait::async_trait;
use fleetwright::{InstanceConfig, InstanceFilter, InstanceInfo, Result, Tags};

use crate::{
    CallContext, OverrideHarness,
    mutants::{
        Mutant, Override,
        list::{Lists, Relist},
    },
};

/// TAGS-08.
pub(in crate::mutants) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "keys of tags are normalized to composed letters",
        violates: "TAGS-08",
        make: OverrideHarness::factory::<Keys<Composed>>,
    },
    Mutant {
        name: "keys of tags are trimmed",
        violates: "TAGS-08",
        make: OverrideHarness::factory::<Keys<Trimmed>>,
    },
    Mutant {
        name: "slashes in keys of tags are replaced in batches",
        violates: "TAGS-08",
        make: OverrideHarness::factory::<KeysInBatches<WithoutSlashes>>,
    },
    Mutant {
        name: "emoji in keys of tags are dropped in batches",
        violates: "TAGS-08",
        make: OverrideHarness::factory::<KeysInBatches<WithoutEmoji>>,
    },
    Mutant {
        name: "a filter takes composed and decomposed letters for the same",
        violates: "TAGS-08",
        make: OverrideHarness::factory::<Lists<FiltersComposed>>,
    },
];

/// Returns the changed key.
trait ChangeKey: Send + Sync {
    fn change(key: &str) -> String;
}

fn change_keys<C: ChangeKey>(config: &InstanceConfig) -> InstanceConfig {
    let mut config = config.clone();
    let tags = config.tags.iter();
    let tags = tags.map(|(key, value)| (C::change(key), value.to_owned()));
    config.tags = Tags::from_observed(tags.collect::<Vec<_>>());
    config
}

struct Keys<C>(PhantomData<C>);

impl<C> Default for Keys<C> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

#[async_trait]
impl<C: ChangeKey> Override for Keys<C> {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        at.inner.launch_instance(&change_keys::<C>(config)).await
    }
}

struct KeysInBatches<C>(PhantomData<C>);

impl<C> Default for KeysInBatches<C> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

#[async_trait]
impl<C: ChangeKey> Override for KeysInBatches<C> {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let config = change_keys::<C>(config);
        at.inner.launch_instances(&config, count).await
    }
}

/// The letter of the clause in both forms.
fn composed(text: &str) -> String {
    text.replace("e\u{301}", "\u{e9}")
}

struct Composed;

impl ChangeKey for Composed {
    fn change(key: &str) -> String {
        composed(key)
    }
}

struct Trimmed;

impl ChangeKey for Trimmed {
    fn change(key: &str) -> String {
        key.trim().to_owned()
    }
}

struct WithoutSlashes;

impl ChangeKey for WithoutSlashes {
    fn change(key: &str) -> String {
        key.replace('/', "-")
    }
}

struct WithoutEmoji;

impl ChangeKey for WithoutEmoji {
    fn change(key: &str) -> String {
        key.chars().filter(|c| *c < '\u{10000}').collect()
    }
}

/// Finds the tag `kit-both` in either form.
#[derive(Default)]
struct FiltersComposed;

#[async_trait]
impl Relist for FiltersComposed {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let (folded, exact): (Vec<_>, Vec<_>) =
            filter.tags.iter().partition(|(key, _)| !key.is_ascii());
        let mut wide = filter.clone();
        let pair = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        wide.tags = Tags::from_observed(exact.into_iter().map(pair));
        let mut list = at.inner.list_instances(&wide).await?;
        let matches = |info: &InstanceInfo, (key, value): &(&str, &str)| {
            let mut tags = info.tags.iter();
            tags.any(|(own, has)| composed(own) == composed(key) && has == *value)
        };
        list.retain(|info| folded.iter().all(|tag| matches(info, tag)));
        Ok(list)
    }
}
