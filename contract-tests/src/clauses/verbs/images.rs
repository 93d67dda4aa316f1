//! The optional verbs for images: creating one from an instance, and deleting it.
//!
//! Every clause deletes the images that it created, if the backend offers that, whatever the result.

use std::sync::Arc;

use fleetwright::{
    CloudInstanceState, Effect, ErrorKind, ImageId, InstanceId, InstanceInfo, InstanceProvisioner,
    OptionalVerb, ProvisionError, SnapshotRequest,
};
use tokio::time::timeout;

use super::{kit_error, launch_running, require_unsupported};
use crate::{Context, Failure, Outcome, Pass, SCOPE_TAG, WireFault, WireOp, require};

/// The tag of an image with its name, so that the oracle finds what is left of it.
const NAME_TAG: &str = "kit-image";

/// Into how many calls of a deletion faults are injected, at most.
const MOST_CALLS: u64 = 8;

/// VERBS-07: a backend must create a launchable image of an instance, return the same image for the
/// same name again, and create none under a name that another instance's image has.
///
/// A lost response must not cost a second image. Needs: verb snapshot_image.
///
/// Creates an image twice under one name, once under another, and for another instance under the
/// first name, which must conflict. Then launches from the image.
pub(crate) async fn verbs_07_snapshot_image(cx: &Context) -> Outcome {
    if !cx.capabilities().supports(OptionalVerb::SnapshotImage) {
        return require_unsupported(cx, OptionalVerb::SnapshotImage).await;
    }
    let mut images = Vec::new();
    let outcome = snapshot_twice(cx, &mut images).await;
    delete_all(cx, &images, outcome).await
}

/// The body of VERBS-07. Adds every image to `images`.
async fn snapshot_twice(cx: &Context, images: &mut Vec<ImageId>) -> Outcome {
    let (one, other) = (launch_running(cx).await?.id, launch_running(cx).await?.id);
    let request = snapshot_of(cx, "one")?;
    let image = create(cx, &one, &request, images).await?;
    let again = create(cx, &one, &request, images).await?;
    require(again == image, || {
        format!(
            "{} of {one} is {image}, but the second call returned {again}",
            request.name
        )
    })?;
    let second = create(cx, &one, &snapshot_of(cx, "two")?, images).await?;
    require(second != image, || {
        format!("two image names of {one} returned the same image, {image}")
    })?;
    let result = cx.provisioner().snapshot_image(&other, &request).await;
    let call = format!("an image of {other} under the name of one of {one}");
    cx.require_refused(&call, result, ErrorKind::Conflict)?;
    let launched = launch_from(cx, &image).await?;
    let shown = cx.wait_until_listed(&launched.id).await?.image;
    require(shown.as_ref() == Some(&image), || {
        format!(
            "{} was launched from {image}, but is reported with {}",
            launched.id,
            crate::shown(&shown)
        )
    })?;
    for id in [&one, &other] {
        cx.wait_for_consistent_state(id, CloudInstanceState::Running)
            .await?;
    }
    Ok(Pass::Held)
}

/// VERBS-10: a backend must delete an image that a snapshot created, accept a second deletion of it, then
/// refuse launches from it as invalid or not found, and change no instance and no other image.
///
/// Images are billed until they are deleted, and a lost response must not make their deletion fail.
/// Needs: verb delete_image.
///
/// Creates two images, launches from both, and deletes the first one twice, through two handles. A
/// launch from it must be refused without effect, its instance must be unchanged, and the second image
/// must be launchable.
pub(crate) async fn verbs_10_delete_image(cx: &Context) -> Outcome {
    if !offers_deletion(cx)? {
        return require_unsupported(cx, OptionalVerb::DeleteImage).await;
    }
    let mut images = Vec::new();
    let outcome = delete_one_of_two(cx, &mut images).await;
    delete_all(cx, &images, outcome).await
}

/// The body of VERBS-10. Adds every image to `images`.
async fn delete_one_of_two(cx: &Context, images: &mut Vec<ImageId>) -> Outcome {
    let source = launch_running(cx).await?.id;
    let deleted = create(cx, &source, &snapshot_of(cx, "one")?, images).await?;
    let kept = create(cx, &source, &snapshot_of(cx, "two")?, images).await?;
    let copy = launch_from(cx, &deleted).await?.id;
    cx.wait_for_consistent_state(&copy, CloudInstanceState::Running)
        .await?;
    let before = cx.consistent_info(&copy).await?;
    delete(cx, cx.provisioner(), &deleted).await?;
    let restarted = cx.open_handle().await;
    let again = restarted.delete_image(&deleted).await;
    again.map_err(|error| Failure::call_failed("the second delete_image", &error))?;
    cx.wait_for_consistent_reads().await;
    let mut config = cx.config();
    config.image = deleted.clone();
    match cx.provisioner().launch_instance(&config).await {
        Err(error)
            if matches!(error.kind(), ErrorKind::Invalid | ErrorKind::NotFound)
                && error.effect() == Effect::None => {}
        Err(error) => {
            return Err(Failure::violated(format!(
                "a launch from {deleted}, which was deleted, must be invalid and have no effect, but: {error}"
            )));
        }
        Ok(info) => {
            let text = format!("{} was launched from {deleted}, which was deleted", info.id);
            return Err(Failure::violated(text));
        }
    }
    cx.require_count(2).await?;
    cx.require_unchanged("the deletion of its image", &before)
        .await?;
    launch_from(cx, &kept).await?;
    Ok(Pass::Held)
}

/// VERBS-11: a backend must refuse to delete an image that no snapshot created as a conflict, with
/// advice not to retry, and keep it.
///
/// A wrong id must not cost the image that a whole fleet is launched from. Needs: verb delete_image.
///
/// Requests the deletion of the harness's own image, and then launches from it.
pub(crate) async fn verbs_11_other_images_are_kept(cx: &Context) -> Outcome {
    if !offers_deletion(cx)? {
        return require_unsupported(cx, OptionalVerb::DeleteImage).await;
    }
    let image = cx.config().image;
    let result = cx.provisioner().delete_image(&image).await;
    let retry = result.as_ref().err().map(ProvisionError::retry);
    let call = format!("delete_image of {image}, which no snapshot created,");
    cx.require_refused(&call, result, ErrorKind::Conflict)?;
    require(retry.is_some_and(|retry| retry.delay().is_none()), || {
        let advice = retry.map_or_else(|| "none".to_owned(), |retry| retry.to_string());
        format!("{call} was refused with the advice: {advice}")
    })?;
    cx.wait_for_consistent_reads().await;
    cx.launch().await?;
    Ok(Pass::Held)
}

/// VERBS-12: a backend must leave nothing of an image whose deletion is repeated, whatever fault
/// occurred at whichever call of the first one, and wherever its process died.
///
/// The data of an image often outlives it, and without the image nobody finds the data. Needs: oracle,
/// faults.
///
/// Injects each fault that the harness offers, and crashes, into the first call of a deletion, then into
/// its second, and so on. A new handle repeats the deletion, and the oracle must find nothing.
pub(crate) async fn verbs_12_interrupted_deletion_is_completed(cx: &Context) -> Outcome {
    if !offers_deletion(cx)? {
        return require_unsupported(cx, OptionalVerb::DeleteImage).await;
    }
    let faults = cx.faults(&[])?;
    left_of(cx, &snapshot_of(cx, "none")?).await?;
    let crashes = [WireFault::CrashBefore, WireFault::CrashAfter];
    let offered: Vec<_> = WireFault::AMBIGUOUS
        .into_iter()
        .chain(crashes)
        .filter(|fault| faults.supports(fault))
        .collect();
    if offered.is_empty() {
        return Err(Failure::NotRun(
            "the harness offers no such fault".to_owned(),
        ));
    }
    let mut images = Vec::new();
    let outcome = interrupt_deletions(cx, &offered, &mut images).await;
    faults.clear().await;
    delete_all(cx, &images, outcome).await
}

/// The body of VERBS-12. Adds every image to `images`.
async fn interrupt_deletions(
    cx: &Context,
    offered: &[WireFault],
    images: &mut Vec<ImageId>,
) -> Outcome {
    let faults = cx.faults(&[])?;
    let source = launch_running(cx).await?.id;
    for (kind, fault) in offered.iter().enumerate() {
        if !cx.has_case(kind) {
            continue;
        }
        let mut ready = Vec::new();
        for nth in 1..=MOST_CALLS {
            let request = snapshot_of(cx, &format!("{kind}-{nth}"))?;
            ready.push((nth, create(cx, &source, &request, images).await?, request));
        }
        // When the last one can be launched, none is being created any more.
        if let Some((_, image, _)) = ready.last() {
            launch_from(cx, image).await?;
        }
        for (nth, image, request) in ready {
            let handle = cx.open_handle().await;
            faults.inject(WireOp::Any, nth, fault.clone()).await;
            cx.note(format!("{} at call {nth}", crate::shown::in_words(&fault)));
            let _ = timeout(cx.call_timeout(), handle.delete_image(&image)).await;
            let reached = faults.clear().await;
            let restarted = cx.open_handle().await;
            delete(cx, &*restarted, &image).await?;
            require_nothing_left(
                cx,
                &image,
                &request,
                &format!("{} at call {nth}", crate::shown::in_words(&fault)),
            )
            .await?;
            if !reached {
                break;
            }
        }
    }
    Ok(Pass::Held)
}

/// Requires that nothing of an image exists soon.
async fn require_nothing_left(
    cx: &Context,
    image: &ImageId,
    request: &SnapshotRequest,
    when: &str,
) -> Result<(), Failure> {
    let what = format!("nothing is left of {image}");
    let gone = cx.eventually(&what, async || {
        Ok(left_of(cx, request).await?.is_empty().then_some(()))
    });
    if gone.await.is_err() {
        let left = left_of(cx, request).await?.join(", ");
        return Err(Failure::violated(format!(
            "{left} is left of {image} after {when} and a second delete_image"
        )));
    }
    Ok(())
}

/// Returns what exists of the image of a request.
async fn left_of(cx: &Context, request: &SnapshotRequest) -> Result<Vec<String>, Failure> {
    let found = cx.oracle()?.images(&request.tags).await;
    found.ok_or_else(|| Failure::NotRun("the oracle does not report images".to_owned()))
}

/// Returns whether the backend deletes images.
///
/// # Errors
/// A violation if it declares that and cannot create any.
fn offers_deletion(cx: &Context) -> Result<bool, Failure> {
    let declared = |verb| cx.capabilities().supports(verb);
    let deletes = declared(OptionalVerb::DeleteImage);
    require(!deletes || declared(OptionalVerb::SnapshotImage), || {
        "delete_image is declared without snapshot_image, which creates the images that it deletes"
            .to_owned()
    })?;
    Ok(deletes)
}

/// Returns a request with an image name that no other clause uses.
pub(super) fn snapshot_of(cx: &Context, which: &str) -> Result<SnapshotRequest, Failure> {
    let scope = cx.scope().get(SCOPE_TAG).unwrap_or_default();
    let mut request = SnapshotRequest::new(format!("kit-{scope}-{which}")).map_err(kit_error)?;
    request.tags = cx.scope().clone();
    request.tags.insert(NAME_TAG, which).map_err(kit_error)?;
    Ok(request)
}

/// Creates an image and adds it to `images`.
pub(super) async fn create(
    cx: &Context,
    id: &InstanceId,
    request: &SnapshotRequest,
    images: &mut Vec<ImageId>,
) -> Result<ImageId, Failure> {
    let created = cx.provisioner().snapshot_image(id, request).await;
    let image = created
        .map_err(|error| Failure::call_failed(&format!("snapshot_image of {id}"), &error))?;
    images.push(image.clone());
    Ok(image)
}

/// Launches from an image, as soon as that is possible.
pub(super) async fn launch_from(cx: &Context, image: &ImageId) -> Result<InstanceInfo, Failure> {
    let mut config = cx.config();
    config.image = image.clone();
    let what = format!("{image} can be launched");
    let launched = cx.eventually(&what, async || {
        match cx.provisioner().launch_instance(&config).await {
            Ok(info) => Ok(Some(info)),
            // An image may take some time until it can be launched.
            Err(error) if error.effect() == Effect::None => Ok(None),
            Err(error) => Err(Failure::call_failed("launch_instance", &error)),
        }
    });
    launched.await
}

/// Deletes an image, as soon as it is not being created any more.
async fn delete(
    cx: &Context,
    handle: &dyn InstanceProvisioner,
    image: &ImageId,
) -> Result<(), Failure> {
    let what = format!("{image} can be deleted");
    let deleted = cx.eventually(&what, async || match handle.delete_image(image).await {
        Ok(()) => Ok(Some(())),
        Err(error) if error.kind() == ErrorKind::Conflict && error.retry().delay().is_some() => {
            Ok(None)
        }
        Err(error) => Err(Failure::call_failed(
            &format!("delete_image of {image}"),
            &error,
        )),
    });
    deleted.await
}

/// Deletes all images after a clause, if the backend offers that. Returns the clause's outcome, or the failure
/// of a deletion if the clause has passed.
pub(super) async fn delete_all(cx: &Context, images: &[ImageId], outcome: Outcome) -> Outcome {
    if !cx.capabilities().supports(OptionalVerb::DeleteImage) {
        return outcome;
    }
    let handle: Arc<dyn InstanceProvisioner> = cx.shared_provisioner();
    let mut deleted = Ok(());
    for image in images {
        deleted = deleted.and(delete(cx, &*handle, image).await);
    }
    outcome.and_then(|pass| deleted.map(|()| pass))
}
