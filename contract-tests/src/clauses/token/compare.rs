//! Which configs are the same for a token: every field counts, as it was at the launch and not as it is now.

use std::num::NonZeroU32;

use fleetwright::{
    CloudInstanceState::{Running, Stopped},
    Effect, ErrorKind, InstanceConfig, InstanceId, InstanceProvisioner, Operation, OptionalVerb,
    Placement, PublicAddress, Result, TagChange, UserData,
};

use super::{insert_tag, require_conflict, require_replay};
use crate::{
    Context, Failure, Outcome, Pass,
    clauses::fields::{DISK_SIZE_GB, Variation, user_data, variations, with_all},
    require,
};

/// The size of the user data in which single bytes are changed: more than a digest of the first kilobyte covers.
const USER_DATA_BYTES: usize = 2500;

/// The keys of the tags that are changed, added and removed.
const TAGS: [&str; 2] = ["contract-one", "contract-two"];

/// TOKEN-20: a backend must refuse a replay that differs in any one field of the config as a token conflict, and
/// launch nothing, for a launch of one instance and for a batch.
///
/// A field that is not compared returns an instance in another network, on another market or with another script
/// than requested.
///
/// Launches with no field set, with every field set, and a batch with every field set. Replays each with configs that
/// differ in one field: set, unset or changed; of user data the last byte, one beyond the first kilobyte, one
/// more and one less; of tags a key, a value, one more, one less and two exchanged values. Every replay is made
/// through the launching handle and through another one.
pub(crate) async fn token_20_every_field_is_compared(cx: &Context) -> Outcome {
    let plain = cx.config_with_token();
    let rows = variations(cx, &plain)?;
    let full = with_content(cx, &with_all(&cx.config_with_token(), &rows))?;
    let mut batch = full.clone();
    batch.launch_token = Some(cx.new_token());
    let two = NonZeroU32::MIN.saturating_add(1);

    let first = cx.launch_config(&plain).await?.id;
    let second = cx.launch_config(&full).await?.id;
    let launched = cx.provisioner().launch_instances(&batch, two).await;
    launched.map_err(|error| Failure::call_failed("launch_instances", &error))?;
    cx.wait_for_consistent_reads().await;
    let other = cx.open_handle().await;
    let changes = changes(cx, &plain, &full)?;
    for handle in [cx.provisioner(), &*other] {
        for row in &rows {
            let what = format!("{} instead of none", row.name);
            require_conflict(cx, handle, &row.of(&plain), &what).await?;
        }
        for change in &changes {
            require_conflict(cx, handle, &change.of(&full), change.name).await?;
            let result = handle.launch_instances(&change.of(&batch), two).await;
            let call = format!("a batch launch of the same token with {}", change.name);
            let error = cx.require_refused(&call, result, ErrorKind::TokenConflict)?;
            require(error.effect() == Effect::None, || {
                format!("{call} must conflict without effect, but: {error}")
            })?;
        }
    }
    cx.require_count(4).await?;
    for (config, id) in [(&plain, &first), (&full, &second)] {
        require_replay(&*other, config, id, "after the conflicts").await?;
    }
    Ok(Pass::Held)
}

/// Adds long user data and tags, as far as the declared limits allow.
fn with_content(cx: &Context, config: &InstanceConfig) -> Result<InstanceConfig, Failure> {
    let mut config = config.clone();
    // Room for one byte more.
    let size = cx.capabilities().max_user_data_bytes.saturating_sub(1);
    let script = "#!/bin/sh\n"
        .bytes()
        .chain("echo the same line\n".bytes().cycle());
    let script: Vec<_> = script.take(size.min(USER_DATA_BYTES)).collect();
    if !script.is_empty() {
        config.user_data = user_data(cx, &script)?;
    }
    for (number, key) in TAGS.into_iter().enumerate() {
        let mut tagged = config.clone();
        insert_tag(&mut tagged, key, &format!("value-{number}"))?;
        if cx.capabilities().tags.check(&tagged.tags).is_ok() {
            config = tagged;
        }
    }
    Ok(config)
}

/// Returns changes of one field of `full`, without those that change nothing or exceed a declared limit.
fn changes(
    cx: &Context,
    plain: &InstanceConfig,
    full: &InstanceConfig,
) -> Result<Vec<Variation>, Failure> {
    let mut rows = Vec::new();
    let (image, instance_type) = (plain.image.clone(), plain.instance_type.clone());
    rows.push(Variation::new("another image", move |config| {
        config.image = image.clone();
    }));
    rows.push(Variation::new("another type", move |config| {
        config.instance_type = instance_type.clone();
    }));
    rows.push(Variation::new("no disk size", |config| {
        config.disk_size_gb = None;
    }));
    rows.push(Variation::new("another disk size", |config| {
        config.disk_size_gb = Some(DISK_SIZE_GB.saturating_add(1));
    }));
    rows.extend(changes_of_placement(&full.placement));
    if let Some(data) = &full.user_data {
        rows.extend(changes_of_user_data(data)?);
    }
    rows.extend(changes_of_tags(full)?);
    rows.retain(|row| {
        let changed = row.of(full);
        changed != *full && changed.check(cx.capabilities()).is_ok()
    });
    Ok(rows)
}

/// The market is compared in the other direction only: a fallback layer may return a spot instance for a config
/// that names no market.
fn changes_of_placement(full: &Placement) -> Vec<Variation> {
    let mut rows = vec![
        Variation::new("no zone", |config| config.placement.zone = None),
        Variation::new("no network", |config| config.placement.network = None),
        Variation::new("no security groups", |config| {
            config.placement.security_groups.clear();
        }),
    ];
    if full.security_groups.len() > 1 {
        rows.push(Variation::new("one security group less", |config| {
            config.placement.security_groups.pop_last();
        }));
    }
    if full.public_address.is_some() {
        rows.push(Variation::new("no public address", |config| {
            config.placement.public_address = Some(PublicAddress::Absent);
        }));
        rows.push(Variation::new("a public address or none", |config| {
            config.placement.public_address = None;
        }));
    }
    rows
}

fn changes_of_user_data(data: &UserData) -> Result<Vec<Variation>, Failure> {
    let mut rows = vec![Variation::new("no user data", |config| {
        config.user_data = None;
    })];
    let mut add = |name, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = data.as_bytes().to_vec();
        change(&mut bytes);
        if bytes.is_empty() {
            return Ok(());
        }
        let data = UserData::new(bytes).map_err(|error| Failure::KitError(error.to_string()))?;
        rows.push(Variation::new(name, move |config| {
            config.user_data = Some(data.clone());
        }));
        Ok(())
    };
    add("another first byte of user data", &|bytes| bytes[0] ^= 1)?;
    add(
        "another byte of user data beyond the first kilobyte",
        &|bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        },
    )?;
    add("another last byte of user data", &|bytes| {
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
    })?;
    add("one byte of user data less", &|bytes| {
        bytes.truncate(bytes.len() - 1);
    })?;
    add("one byte of user data more", &|bytes| bytes.push(b'\n'))?;
    Ok(rows)
}

fn changes_of_tags(full: &InstanceConfig) -> Result<Vec<Variation>, Failure> {
    let mut rows = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut InstanceConfig) -> Result<(), Failure>| {
        let mut changed = full.clone();
        change(&mut changed)?;
        rows.push(Variation::new(name, move |config| {
            config.tags.clone_from(&changed.tags);
        }));
        Ok(())
    };
    let [one, two] = TAGS;
    if full.tags.get(one).is_some() {
        add("another value of a tag", &|config| {
            insert_tag(config, one, "value-9")
        })?;
        add("an empty value of a tag", &|config| {
            insert_tag(config, one, "")
        })?;
        add("one tag less", &|config| {
            config.tags.remove(one);
            Ok(())
        })?;
        add("another key of a tag", &|config| {
            config.tags.remove(one);
            insert_tag(config, "contract-one-", "value-0")
        })?;
    }
    if full.tags.get(two).is_some() {
        add("two values of tags exchanged", &|config| {
            insert_tag(config, one, "value-1")?;
            insert_tag(config, two, "value-0")
        })?;
    }
    add("one tag more", &|config| {
        insert_tag(config, "contract-three", "value-2")
    })?;
    Ok(rows)
}

/// What an optional verb changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Tags,
    Type,
    Image,
}

impl Change {
    const fn verb(self) -> OptionalVerb {
        match self {
            Self::Tags => OptionalVerb::UpdateTags,
            Self::Type => OptionalVerb::ResizeInstance,
            Self::Image => OptionalVerb::ReimageInstance,
        }
    }
}

/// TOKEN-21: a backend must return the same instance for a replay of the original config after its tags, its type
/// or its image were changed, and refuse the changed config as a token conflict.
///
/// A token names what was requested. If it were compared with the instance as it is now, a retry after a resize
/// would be refused, or launch again. Needs: any verb.
///
/// Updates tags, resizes and reimages an instance, as far as declared, and after each replays the original config
/// and the one with the new value, through two handles. A verb that is not declared must be refused.
pub(crate) async fn token_21_changed_instance_is_still_the_launch(cx: &Context) -> Outcome {
    let original = cx.config_with_token();
    let id = cx.launch_config(&original).await?.id;
    cx.wait_for_consistent_state(&id, Running).await?;
    let other = cx.open_handle().await;
    let mut pass = Pass::Refused;
    for change in [Change::Tags, Change::Type, Change::Image] {
        let Some(changed) = changed_by(cx, change, &original)? else {
            continue;
        };
        if change == Change::Type {
            cx.stop(&id).await?;
            cx.wait_for_consistent_state(&id, Stopped).await?;
        }
        let result = apply(cx.provisioner(), change, &id, &changed).await;
        let call = Operation::from(change.verb());
        if !cx.capabilities().supports(change.verb()) {
            cx.require_refused(
                &format!("{call}, which is not declared,"),
                result,
                ErrorKind::Unsupported,
            )?;
            require_replay(&*other, &original, &id, "after a refused change").await?;
            continue;
        }
        result.map_err(|error| Failure::call_failed(&call.to_string(), &error))?;
        cx.wait_for_consistent_reads().await;
        pass = Pass::Held;
        for handle in [cx.provisioner(), &*other] {
            require_replay(handle, &original, &id, &format!("after {call}")).await?;
            let what = format!("the value that {call} has set");
            require_conflict(cx, handle, &changed, &what).await?;
        }
    }
    cx.require_count(1).await?;
    let verbs = [Change::Tags, Change::Type, Change::Image].map(Change::verb);
    if pass == Pass::Refused
        && verbs
            .into_iter()
            .any(|verb| cx.capabilities().supports(verb))
    {
        let reason = "the harness names no other type and image, and there is no room for a tag";
        return Err(Failure::NotRun(reason.to_owned()));
    }
    Ok(pass)
}

/// Returns `config` with what `change` changes, or `None` if the harness or the limits have no other value.
fn changed_by(
    cx: &Context,
    change: Change,
    config: &InstanceConfig,
) -> Result<Option<InstanceConfig>, Failure> {
    let mut changed = config.clone();
    match change {
        Change::Type => {
            let other = cx.harness().other_type();
            changed.instance_type = other.unwrap_or(changed.instance_type);
        }
        Change::Image => {
            let other = cx.harness().other_image();
            changed.image = other.unwrap_or(changed.image);
        }
        Change::Tags => insert_tag(&mut changed, TAGS[0], "changed")?,
    }
    let possible = changed != *config && changed.check(cx.capabilities()).is_ok();
    Ok(possible.then_some(changed))
}

/// Brings the tags, the type or the image of `changed` about.
async fn apply(
    handle: &dyn InstanceProvisioner,
    change: Change,
    id: &InstanceId,
    changed: &InstanceConfig,
) -> Result<()> {
    match change {
        Change::Type => handle.resize_instance(id, &changed.instance_type).await,
        Change::Image => handle.reimage_instance(id, &changed.image).await,
        Change::Tags => {
            let mut tags = TagChange::new();
            tags.set = changed.tags.clone();
            handle.update_tags(id, &tags).await
        }
    }
}
