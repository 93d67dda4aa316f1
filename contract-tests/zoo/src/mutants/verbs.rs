//! Backends that break the family verbs, as far as it changes instances.

use async_trait::async_trait;
use fleetwright::{
    Capabilities, CloudInstanceState, ImageId, InstanceId, InstanceType, InvalidValue, Operation,
    OptionalVerb, Problem, Reboot, Result, TagChange,
};

use super::{Mutant, Override};
use crate::{CallContext, MemoryHarness, OverrideHarness};
use fleetwright_contract_tests::SCOPE_TAG;

/// At least one for each clause that is about a change.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "update_tags replaces all tags",
        violates: "VERBS-01",
        make: OverrideHarness::factory::<ReplacesTags>,
    },
    Mutant {
        name: "update_tags applies the valid half of an invalid change",
        violates: "VERBS-01",
        make: OverrideHarness::factory::<AppliesHalf>,
    },
    Mutant {
        name: "update_tags removes nothing",
        violates: "VERBS-01",
        make: OverrideHarness::factory::<RemovesNothing>,
    },
    Mutant {
        name: "update_tags refuses to remove tags without setting any",
        violates: "VERBS-01",
        make: OverrideHarness::factory::<NeedsTagToSet>,
    },
    Mutant {
        name: "update_tags counts removed tags against the limit",
        violates: "VERBS-01",
        make: OverrideHarness::factory::<CountsRemovedTags>,
    },
    Mutant {
        name: "update_tags truncates values that are too long",
        violates: "VERBS-01",
        make: OverrideHarness::factory::<CutsValues>,
    },
    Mutant {
        name: "update_tags sets as many tags as fit",
        violates: "VERBS-01",
        make: OverrideHarness::factory::<SetsWhatFits>,
    },
    Mutant {
        name: "a declared verb is not implemented",
        violates: "VERBS-02",
        make: OverrideHarness::factory::<DeclaresMissingVerb>,
    },
    Mutant {
        name: "a declared reboot does nothing and succeeds",
        violates: "VERBS-02",
        make: OverrideHarness::factory::<RebootsNothing>,
    },
    Mutant {
        name: "a reboot stops and starts, and loses the address",
        violates: "VERBS-02",
        make: OverrideHarness::factory::<RebootsByStop>,
    },
    Mutant {
        name: "a reboot of a stopped instance starts it",
        violates: "VERBS-02",
        make: OverrideHarness::factory::<RebootStarts>,
    },
    Mutant {
        name: "an undeclared verb does nothing and succeeds",
        violates: "VERBS-03",
        make: || OverrideHarness::factory_on::<ResizesRunning>(without_resize),
    },
    Mutant {
        name: "a resize does not change the type",
        violates: "VERBS-03",
        make: OverrideHarness::factory::<KeepsType>,
    },
    Mutant {
        name: "a resize of a running instance succeeds and is never applied",
        violates: "VERBS-03",
        make: OverrideHarness::factory::<ResizesRunning>,
    },
    Mutant {
        name: "an undeclared verb works",
        violates: "VERBS-04",
        make: OverrideHarness::factory::<HidesVerb>,
    },
    Mutant {
        name: "a reimage uses the old image",
        violates: "VERBS-04",
        make: OverrideHarness::factory::<KeepsImage>,
    },
    Mutant {
        name: "a reimage starts a stopped instance",
        violates: "VERBS-04",
        make: OverrideHarness::factory::<ReimageStarts>,
    },
];

/// Replaces all tags with those of the change.
#[derive(Default)]
struct ReplacesTags;

#[async_trait]
impl Override for ReplacesTags {
    async fn update_tags(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<()> {
        let mut change = change.clone();
        let tags = at.truth(id).map(|truth| truth.info.tags);
        for (key, _) in &tags.unwrap_or_default() {
            if key != SCOPE_TAG && change.set.get(key).is_none() {
                change.remove.insert(key.to_owned());
            }
        }
        at.inner.update_tags(id, &change).await
    }
}

/// Makes one call to remove tags and one for each tag that is set, and stops at the first error.
#[derive(Default)]
struct AppliesHalf;

#[async_trait]
impl Override for AppliesHalf {
    async fn update_tags(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<()> {
        let mut removal = TagChange::new();
        removal.remove.clone_from(&change.remove);
        at.inner.update_tags(id, &removal).await?;
        for (key, value) in &change.set {
            let call = at.call(Operation::UpdateTags);
            let one = TagChange::new().set(key, value);
            let one = one.map_err(|value| call.invalid(value))?;
            at.inner.update_tags(id, &one).await?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct RemovesNothing;

#[async_trait]
impl Override for RemovesNothing {
    async fn update_tags(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<()> {
        let mut change = change.clone();
        change.remove.clear();
        at.inner.update_tags(id, &change).await
    }
}

/// Always sends the call that sets tags, which a cloud refuses without any.
#[derive(Default)]
struct NeedsTagToSet;

#[async_trait]
impl Override for NeedsTagToSet {
    async fn update_tags(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<()> {
        if change.set.is_empty() {
            let none = InvalidValue::new("tags", Problem::Empty);
            return Err(at.call(Operation::UpdateTags).invalid(none));
        }
        at.inner.update_tags(id, change).await
    }
}

/// Sets the new tags before it removes the old ones, although the cloud has no room for both.
#[derive(Default)]
struct CountsRemovedTags;

#[async_trait]
impl Override for CountsRemovedTags {
    async fn update_tags(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<()> {
        let mut addition = change.clone();
        addition.remove.clear();
        at.inner.update_tags(id, &addition).await?;
        at.inner.update_tags(id, change).await
    }
}

#[derive(Default)]
struct CutsValues;

#[async_trait]
impl Override for CutsValues {
    async fn update_tags(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<()> {
        let most = at.inner.capabilities().tags.max_value_chars;
        let mut cut = change.clone();
        for (key, value) in &change.set {
            let value: String = value.chars().take(most).collect();
            let set = cut.set.insert(key, value);
            set.map_err(|value| at.call(Operation::UpdateTags).invalid(value))?;
        }
        at.inner.update_tags(id, &cut).await
    }
}

#[derive(Default)]
struct SetsWhatFits;

#[async_trait]
impl Override for SetsWhatFits {
    async fn update_tags(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<()> {
        let has = at.truth(id).map_or(0, |truth| truth.info.tags.len());
        let room = at.inner.capabilities().tags.max_tags.saturating_sub(has);
        let mut fits = change.clone();
        for (key, _) in change.set.iter().skip(room) {
            fits.set.remove(key);
        }
        at.inner.update_tags(id, &fits).await
    }
}

#[derive(Default)]
struct DeclaresMissingVerb;

#[async_trait]
impl Override for DeclaresMissingVerb {
    async fn reboot_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        how: Reboot,
    ) -> Result<()> {
        if at.state(id) == Some(CloudInstanceState::Running) {
            return Err(at.call(Operation::RebootInstance).unsupported());
        }
        at.inner.reboot_instance(id, how).await
    }
}

#[derive(Default)]
struct RebootsNothing;

#[async_trait]
impl Override for RebootsNothing {
    async fn reboot_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        how: Reboot,
    ) -> Result<()> {
        if at.state(id) == Some(CloudInstanceState::Running) {
            return Ok(());
        }
        at.inner.reboot_instance(id, how).await
    }
}

#[derive(Default)]
struct RebootsByStop;

#[async_trait]
impl Override for RebootsByStop {
    async fn reboot_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        how: Reboot,
    ) -> Result<()> {
        at.inner.reboot_instance(id, how).await?;
        at.inner.stop_instance(id).await?;
        while at.state(id) == Some(CloudInstanceState::Stopping) {
            tokio::time::sleep(at.inner.capabilities().poll_interval).await;
        }
        at.inner.start_instance(id).await.map(drop)
    }
}

#[derive(Default)]
struct RebootStarts;

#[async_trait]
impl Override for RebootStarts {
    async fn reboot_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        how: Reboot,
    ) -> Result<()> {
        if at.state(id) == Some(CloudInstanceState::Stopped) {
            return at.inner.start_instance(id).await.map(drop);
        }
        at.inner.reboot_instance(id, how).await
    }
}

fn without_resize() -> MemoryHarness {
    MemoryHarness::with(|cloud| cloud.without_verb(OptionalVerb::ResizeInstance))
}

/// Implements a verb that it does not declare.
#[derive(Default)]
struct HidesVerb;

#[async_trait]
impl Override for HidesVerb {
    fn capabilities(&self, sound: &Capabilities) -> Capabilities {
        let mut declared = sound.clone();
        declared.verbs.remove(&OptionalVerb::ReimageInstance);
        declared
    }
    async fn reimage_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        image: &ImageId,
    ) -> Result<()> {
        if at.state(id) == Some(CloudInstanceState::Running) {
            return at.inner.reimage_instance(id, image).await;
        }
        Err(at.call(Operation::ReimageInstance).unsupported())
    }
}

#[derive(Default)]
struct KeepsType;

#[async_trait]
impl Override for KeepsType {
    async fn resize_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        to: &InstanceType,
    ) -> Result<()> {
        let has = at.truth(id).and_then(|truth| truth.info.instance_type);
        let to = has.unwrap_or_else(|| to.clone());
        at.inner.resize_instance(id, &to).await
    }
}

/// Accepts the resize of a running instance and never applies it.
#[derive(Default)]
struct ResizesRunning;

#[async_trait]
impl Override for ResizesRunning {
    async fn resize_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        to: &InstanceType,
    ) -> Result<()> {
        if at.state(id) == Some(CloudInstanceState::Running) {
            return Ok(());
        }
        at.inner.resize_instance(id, to).await
    }
}

#[derive(Default)]
struct KeepsImage;

#[async_trait]
impl Override for KeepsImage {
    async fn reimage_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        image: &ImageId,
    ) -> Result<()> {
        let has = at.truth(id).and_then(|truth| truth.info.image);
        let image = has.unwrap_or_else(|| image.clone());
        at.inner.reimage_instance(id, &image).await
    }
}

#[derive(Default)]
struct ReimageStarts;

#[async_trait]
impl Override for ReimageStarts {
    async fn reimage_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        image: &ImageId,
    ) -> Result<()> {
        at.inner.reimage_instance(id, image).await?;
        at.inner.start_instance(id).await.map(drop)
    }
}
