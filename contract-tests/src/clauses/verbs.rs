//! The optional verbs: a declared verb works, and one that is not declared is refused without
//! effect.
//!
//! Most clauses have one verb each. If it is not declared, they call it on a running
//! instance, require `Unsupported`, and compare every field of the instance before and after.
//! VERBS-08 and VERBS-09 call all verbs of instances, on an unknown id and on a terminated instance.
//!
//! A backend may decide by a read whether a verb is allowed, so these clauses wait until all reads
//! show the state that a verb needs before they call it.

mod console;
mod image_source;
mod images;
mod kept;
mod tag_changes;

use fleetwright::{
    CloudInstanceState, ErrorKind, InstanceId, InstanceInfo, InvalidValue, Operation, OptionalVerb,
    Reboot, TagChange, TagLimits, Tags,
};
use tokio::time::Instant;

pub(crate) use self::{
    console::{verbs_05_console_output, verbs_06_console_session},
    image_source::verbs_16_image_is_of_the_named_instance,
    images::{
        verbs_07_snapshot_image, verbs_10_delete_image, verbs_11_other_images_are_kept,
        verbs_12_interrupted_deletion_is_completed,
    },
    kept::verbs_15_content_is_kept,
    tag_changes::{
        verbs_13_interrupted_tag_change_is_completed, verbs_14_concurrent_tag_changes_are_kept,
    },
};
use crate::{Context, Failure, Outcome, Pass, require, shown::in_words};

/// Launches an instance and waits until all reads show that it runs.
async fn launch_running(cx: &Context) -> Result<InstanceInfo, Failure> {
    let info = cx.launch().await?;
    cx.wait_for_consistent_state(&info.id, CloudInstanceState::Running)
        .await?;
    Ok(info)
}

/// VERBS-01: a backend must change tags as requested, all or nothing, within the limits, and list
/// by the new ones.
///
/// Tags identify fleets while they run. Needs: verb update_tags.
///
/// Adds, changes and removes tags, twice, and compares every field and two lists by tag. Then
/// requests changes of which one part exceeds a limit: they must be refused and change nothing. Then removes
/// without adding, adds as many tags as are allowed, and replaces one of them.
pub(crate) async fn verbs_01_update_tags(cx: &Context) -> Outcome {
    if !cx.capabilities().supports(OptionalVerb::UpdateTags) {
        return require_unsupported(cx, OptionalVerb::UpdateTags).await;
    }
    let mut config = cx.config();
    for key in ["changed", "kept", "removed"] {
        config.tags.insert(key, "old").map_err(kit_error)?;
    }
    let id = cx.launch_config(&config).await?.id;
    cx.wait_for_consistent_state(&id, CloudInstanceState::Running)
        .await?;
    let change = TagChange::new().set("added", "new").map_err(kit_error)?;
    let change = change.set("changed", "new").map_err(kit_error)?;
    let change = change.remove("removed").map_err(kit_error)?;
    let change = change.remove("never-there").map_err(kit_error)?;
    let mut expected = cx.consistent_info(&id).await?;
    expected.tags = change.apply(&config.tags).map_err(kit_error)?;
    for _ in 0..2 {
        let result = cx.provisioner().update_tags(&id, &change).await;
        result.map_err(|error| Failure::call_failed(&format!("update_tags of {id}"), &error))?;
        cx.require_unchanged("a change of tags", &expected).await?;
    }
    for (value, found) in [("new", true), ("old", false)] {
        let filter = cx.filter().with_tag("changed", value).map_err(kit_error)?;
        let listed = cx.list(&filter).await?.iter().any(|info| info.id == id);
        require(listed == found, || {
            format!("{id} has changed=new; a list by changed={value} has it: {listed}")
        })?;
    }
    for (what, change) in changes_beyond_limits(&cx.capabilities().tags)? {
        let result = cx.provisioner().update_tags(&id, &change).await;
        let call = format!("a change of {id} to {what}");
        cx.require_refused(&call, result, ErrorKind::Invalid)?;
        cx.require_unchanged(&format!("a refused change to {what}"), &expected)
            .await?;
    }
    for (what, change) in changes_up_to_the_limit(&cx.capabilities().tags, &expected.tags)? {
        let result = cx.provisioner().update_tags(&id, &change).await;
        let call = format!("update_tags of {id} with {what}");
        result.map_err(|error| Failure::call_failed(&call, &error))?;
        expected.tags = change.apply(&expected.tags).map_err(kit_error)?;
        cx.require_unchanged(what, &expected).await?;
    }
    Ok(Pass::Held)
}

/// Returns changes to make one after the other: one that only removes a tag and, unless the limit is too high to try, one that
/// only adds tags up to the limit, and one that replaces one of so many. `tags` are those before, with the tag `added`.
fn changes_up_to_the_limit(
    limits: &TagLimits,
    tags: &Tags,
) -> Result<Vec<(&'static str, TagChange)>, Failure> {
    let removal = TagChange::new().remove("added").map_err(kit_error)?;
    let mut changes = vec![("a removal alone", removal)];
    let room = (limits.max_tags + 1).saturating_sub(tags.len());
    if limits.max_tags <= MOST_TAGS && room > 0 {
        let more = |change: TagChange, at| change.set(format!("full-{at}"), "x");
        let full = (0..room).try_fold(TagChange::new(), more);
        changes.push(("as many tags as are allowed", full.map_err(kit_error)?));
        let other = TagChange::new().set("other", "x");
        let other = other.and_then(|change| change.remove("full-0"));
        changes.push(("another tag instead of one", other.map_err(kit_error)?));
    }
    Ok(changes)
}

/// The most tags that are tried if a backend declares more.
const MOST_TAGS: usize = 1_000;
/// The longest value that is tried if a backend declares more characters.
const MOST_CHARS: usize = 100_000;

/// Returns changes of which one part is valid and another part exceeds a limit.
fn changes_beyond_limits(limits: &TagLimits) -> Result<Vec<(&'static str, TagChange)>, Failure> {
    let good = || {
        let change = TagChange::new().set("added", "newer")?.remove("kept")?;
        Ok::<_, InvalidValue>(change)
    };
    let mut changes = Vec::new();
    if limits.max_value_chars <= MOST_CHARS {
        let long = "x".repeat(limits.max_value_chars + 1);
        let change = good().and_then(|change| change.set("long", long));
        changes.push(("a value that is too long", change.map_err(kit_error)?));
    }
    if limits.max_tags <= MOST_TAGS {
        let more = |change: TagChange, at| change.set(format!("more-{at}"), "x");
        let change = good().and_then(|change| (0..limits.max_tags).try_fold(change, more));
        changes.push(("too many tags", change.map_err(kit_error)?));
    }
    if let Some(prefix) = limits.reserved_prefixes.first() {
        let change = good().and_then(|change| change.set(format!("{prefix}x"), "x"));
        changes.push(("a reserved key", change.map_err(kit_error)?));
    }
    Ok(changes)
}

/// VERBS-02: a backend must reboot a running instance and keep its id, tags and addresses, and
/// refuse to reboot a stopped one as wrong state.
///
/// A reboot is not a replacement. Needs: verb reboot_instance.
///
/// Reboots softly and hard. The oracle's count of boots must grow, if it counts them, and every
/// other field must be the same. A stopped instance must not be rebooted.
pub(crate) async fn verbs_02_reboot(cx: &Context) -> Outcome {
    if !cx.capabilities().supports(OptionalVerb::RebootInstance) {
        return require_unsupported(cx, OptionalVerb::RebootInstance).await;
    }
    let id = launch_running(cx).await?.id;
    let mut expected = cx.consistent_info(&id).await?;
    for how in [Reboot::Soft, Reboot::Hard] {
        let boots = boots(cx, &id).await;
        let result = cx.provisioner().reboot_instance(&id, how).await;
        let call = format!("a {} reboot", in_words(&how));
        result.map_err(|error| Failure::call_failed(&format!("{call} of {id}"), &error))?;
        wait_until_rebooted(cx, &id, boots, &call).await?;
        expected.state = cx.consistent_info(&id).await?.state;
        cx.require_unchanged(&call, &expected).await?;
        cx.wait_for_consistent_state(&id, CloudInstanceState::Running)
            .await?;
    }
    cx.stop(&id).await?;
    cx.wait_for_consistent_state(&id, CloudInstanceState::Stopped)
        .await?;
    let result = cx.provisioner().reboot_instance(&id, Reboot::Hard).await;
    let call = format!("a reboot of {id}, which is stopped,");
    cx.require_refused(&call, result, ErrorKind::WrongState)?;
    Ok(Pass::Held)
}

/// Returns how often an instance has booted, if there is an oracle that counts boots.
async fn boots(cx: &Context, id: &InstanceId) -> Option<u32> {
    let all = cx.harness().oracle()?.instances(cx.scope()).await;
    let truth = all.into_iter().find(|truth| truth.info.id == *id)?;
    truth.boots
}

/// Waits until an instance has booted once more than `before`, and runs.
async fn wait_until_rebooted(
    cx: &Context,
    id: &InstanceId,
    before: Option<u32>,
    action: &str,
) -> Result<(), Failure> {
    if before.is_some() {
        cx.eventually(&format!("{action} boots {id} again"), async || {
            Ok((boots(cx, id).await > before).then_some(()))
        })
        .await?;
    }
    cx.wait_for_consistent_reads().await;
    cx.wait_for_consistent_state(id, CloudInstanceState::Running)
        .await?;
    Ok(())
}

/// VERBS-03: a backend must change the type of a stopped instance and keep its id and tags, and
/// refuse it while the instance runs as wrong state.
///
/// Resizing must not cost the disk. Needs: verb resize_instance, another type.
///
/// Resizes a running instance, which must be refused and change nothing, then a stopped one, and
/// requires the new type also after a start.
pub(crate) async fn verbs_03_resize(cx: &Context) -> Outcome {
    if !cx.capabilities().supports(OptionalVerb::ResizeInstance) {
        return require_unsupported(cx, OptionalVerb::ResizeInstance).await;
    }
    let none = || Failure::NotRun("the harness names no second type".to_owned());
    let to = cx.harness().other_type().ok_or_else(none)?;
    let id = launch_running(cx).await?.id;
    let running = cx.consistent_info(&id).await?;
    let result = cx.provisioner().resize_instance(&id, &to).await;
    let call = format!("a resize of {id}, which runs,");
    cx.require_refused(&call, result, ErrorKind::WrongState)?;
    cx.require_unchanged("a refused resize", &running).await?;
    cx.stop(&id).await?;
    cx.wait_for_consistent_state(&id, CloudInstanceState::Stopped)
        .await?;
    let mut expected = cx.consistent_info(&id).await?;
    let result = cx.provisioner().resize_instance(&id, &to).await;
    result.map_err(|error| Failure::call_failed(&format!("a resize of {id}"), &error))?;
    expected.instance_type = Some(to.clone());
    cx.require_unchanged(&format!("a resize to {to}"), &expected)
        .await?;
    cx.start(&id).await?;
    cx.wait_for_consistent_reads().await;
    cx.wait_for_consistent_state(&id, CloudInstanceState::Running)
        .await?;
    let now = cx.consistent_info(&id).await?.instance_type;
    require(now.as_ref() == Some(&to), || {
        format!(
            "{id} was resized to {to} and runs as {}",
            crate::shown(&now)
        )
    })?;
    Ok(Pass::Held)
}

/// VERBS-04: a backend must put a new image on a running or stopped instance and keep its id, tags
/// and addresses.
///
/// Reimaging must not cost the address. Needs: verb reimage_instance.
///
/// Reimages a running instance, which boots again, and a stopped one, and compares every other
/// field. An unknown image must be refused.
pub(crate) async fn verbs_04_reimage(cx: &Context) -> Outcome {
    if !cx.capabilities().supports(OptionalVerb::ReimageInstance) {
        return require_unsupported(cx, OptionalVerb::ReimageInstance).await;
    }
    let first = cx.config().image;
    let other = cx.harness().other_image().unwrap_or_else(|| first.clone());
    let id = launch_running(cx).await?.id;
    let mut expected = cx.consistent_info(&id).await?;
    let boots = boots(cx, &id).await;
    let result = cx.provisioner().reimage_instance(&id, &other).await;
    result.map_err(|error| Failure::call_failed(&format!("a reimage of {id}"), &error))?;
    wait_until_rebooted(cx, &id, boots, "a reimage").await?;
    expected.image = Some(other.clone());
    cx.require_unchanged(&format!("a reimage to {other}"), &expected)
        .await?;
    if let Some(unknown) = cx.harness().unknown_image() {
        let result = cx.provisioner().reimage_instance(&id, &unknown).await;
        let refused = result
            .as_ref()
            .is_err_and(|error| matches!(error.kind(), ErrorKind::Invalid | ErrorKind::NotFound));
        require(refused, || {
            format!(
                "a reimage of {id} to the unknown {unknown} must be invalid, but: {}",
                crate::shown(&result)
            )
        })?;
        cx.require_unchanged("a refused reimage", &expected).await?;
    }
    cx.stop(&id).await?;
    cx.wait_for_consistent_state(&id, CloudInstanceState::Stopped)
        .await?;
    let mut expected = cx.consistent_info(&id).await?;
    let result = cx.provisioner().reimage_instance(&id, &first).await;
    result
        .map_err(|error| Failure::call_failed(&format!("a reimage of {id}, stopped,"), &error))?;
    expected.image = Some(first);
    cx.require_unchanged("a reimage while stopped", &expected)
        .await?;
    Ok(Pass::Held)
}

/// VERBS-08: a backend must return not found for an optional verb on an id that no instance has.
///
/// A success would hide a wrong id. Needs: any verb.
///
/// Calls every optional verb of instances with the harness's unknown id. Verbs that are not declared must be
/// unsupported.
pub(crate) async fn verbs_08_unknown_ids_are_not_found(cx: &Context) -> Outcome {
    let id = cx.harness().unknown_id();
    for verb in verbs_of_instances() {
        let result = call(cx, verb, &id).await?;
        let call = format!("{} of {id}, which never existed,", Operation::from(verb));
        cx.require_refused(
            &call,
            result,
            kind_if_declared(cx, verb, ErrorKind::NotFound),
        )?;
    }
    Ok(pass_if_any_verb(cx))
}

/// VERBS-09: a backend must refuse optional verbs on a terminated instance as wrong state, or as
/// not found if no record is kept.
///
/// A terminated instance cannot change, so a success would be false. Needs: any verb.
///
/// Calls every optional verb of instances with a terminated instance, and requires that it stays terminated.
/// Verbs that are not declared must be unsupported.
pub(crate) async fn verbs_09_terminated_instance_is_in_wrong_state(cx: &Context) -> Outcome {
    let id = launch_running(cx).await?.id;
    let since = Instant::now();
    cx.terminate(&id).await?;
    cx.wait_until_terminated(&id).await?;
    let mut pass = pass_if_any_verb(cx);
    for verb in verbs_of_instances() {
        let result = call(cx, verb, &id).await?;
        let call = format!("{} of {id}, which is terminated,", Operation::from(verb));
        if cx.capabilities().supports(verb) {
            pass = pass.weaker(cx.require_refused_after_terminate(&call, result, since)?);
        } else {
            cx.require_refused(&call, result, ErrorKind::Unsupported)?;
        }
    }
    cx.require_ending(&id, since).await?;
    Ok(pass)
}

/// Returns the verbs that are called with the id of an instance.
fn verbs_of_instances() -> impl Iterator<Item = OptionalVerb> {
    let all = OptionalVerb::ALL.into_iter();
    all.filter(|verb| *verb != OptionalVerb::DeleteImage)
}

/// Returns the kind of a refusal: `kind` if the verb is declared, otherwise unsupported.
fn kind_if_declared(cx: &Context, verb: OptionalVerb, kind: ErrorKind) -> ErrorKind {
    if cx.capabilities().supports(verb) {
        kind
    } else {
        ErrorKind::Unsupported
    }
}

/// Returns how a clause about all verbs passes: as refused if the backend declares none of them.
fn pass_if_any_verb(cx: &Context) -> Pass {
    if cx.capabilities().verbs.is_empty() {
        Pass::Refused
    } else {
        Pass::Held
    }
}

/// Requires that a verb that is not declared is refused, and that nothing happens.
async fn require_unsupported(cx: &Context, verb: OptionalVerb) -> Outcome {
    let id = launch_running(cx).await?.id;
    let before = cx.consistent_info(&id).await?;
    let result = call(cx, verb, &id).await?;
    let call = format!("{} of {id}, not declared,", Operation::from(verb));
    cx.require_refused(&call, result, ErrorKind::Unsupported)?;
    cx.require_unchanged("a verb that is not declared", &before)
        .await?;
    Ok(Pass::Refused)
}

/// Calls a verb with arguments that are valid for an instance in the right state.
async fn call(
    cx: &Context,
    verb: OptionalVerb,
    id: &InstanceId,
) -> Result<fleetwright::Result<()>, Failure> {
    let handle = cx.provisioner();
    let config = cx.config();
    Ok(match verb {
        OptionalVerb::UpdateTags => {
            let change = TagChange::new().set("added", "new").map_err(kit_error)?;
            handle.update_tags(id, &change).await
        }
        OptionalVerb::RebootInstance => handle.reboot_instance(id, Reboot::Hard).await,
        OptionalVerb::ResizeInstance => {
            let other = cx.harness().other_type();
            let to = other.unwrap_or(config.instance_type);
            handle.resize_instance(id, &to).await
        }
        OptionalVerb::ReimageInstance => {
            let other = cx.harness().other_image();
            let image = other.unwrap_or(config.image);
            handle.reimage_instance(id, &image).await
        }
        OptionalVerb::ConsoleOutput => handle.console_output(id).await.map(drop),
        OptionalVerb::ConsoleSession => handle.console_session(id).await.map(drop),
        OptionalVerb::SnapshotImage => {
            let request = images::snapshot_of(cx, "any")?;
            handle.snapshot_image(id, &request).await.map(drop)
        }
        OptionalVerb::DeleteImage => handle.delete_image(&config.image).await,
    })
}

/// Returns the failure of the kit if the core refuses a value that the kit uses.
#[expect(
    clippy::needless_pass_by_value,
    reason = "`map_err` passes the error by value"
)]
fn kit_error(value: InvalidValue) -> Failure {
    Failure::KitError(value.to_string())
}
