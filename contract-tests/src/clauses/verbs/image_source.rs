//! Which instance an image is made of.

use std::num::NonZeroU32;

use fleetwright::{CloudInstanceState, ImageId, OptionalVerb};
use futures_util::future::join;

use super::{
    images::{create, delete_all, launch_from, snapshot_of},
    require_unsupported,
};
use crate::{Context, Outcome, Pass, clauses::stop::read_truth, require, shown::gigabytes};

/// The sizes of the disks of the two instances, in gigabytes.
const SIZES: [u32; 2] = [33, 44];

/// VERBS-16: a backend must create an image of the disk of the named instance and of no other one: what is
/// launched from it without a size has a disk of the same size.
///
/// A fleet that is launched from the image of another instance runs the wrong software. Needs: verb
/// snapshot_image, oracle.
///
/// Creates images of two instances with disks of different sizes at the same time, launches from both without a
/// size, and compares the sizes of the disks with the oracle.
pub(crate) async fn verbs_16_image_is_of_the_named_instance(cx: &Context) -> Outcome {
    if !cx.capabilities().supports(OptionalVerb::SnapshotImage) {
        return require_unsupported(cx, OptionalVerb::SnapshotImage).await;
    }
    let mut images = Vec::new();
    let outcome = snapshot_two(cx, &mut images).await;
    delete_all(cx, &images, outcome).await
}

/// The body of VERBS-16. Adds every image to `images`.
async fn snapshot_two(cx: &Context, images: &mut Vec<ImageId>) -> Outcome {
    let oracle = cx.oracle()?;
    let mut sources = Vec::new();
    for size in SIZES {
        let mut config = cx.config();
        config.disk_size_gb = NonZeroU32::new(size);
        sources.push(cx.launch_config(&config).await?.id);
    }
    for id in &sources {
        cx.wait_for_consistent_state(id, CloudInstanceState::Running)
            .await?;
    }
    let (mut of_first, mut of_second) = (Vec::new(), Vec::new());
    let requests = (snapshot_of(cx, "first")?, snapshot_of(cx, "second")?);
    // The later one first, so that an order by name or age would be wrong.
    let created = join(
        create(cx, &sources[1], &requests.1, &mut of_second),
        create(cx, &sources[0], &requests.0, &mut of_first),
    )
    .await;
    images.extend(of_first);
    images.extend(of_second);
    let created = [created.1?, created.0?];
    for ((source, image), size) in sources.iter().zip(created).zip(SIZES) {
        let launched = launch_from(cx, &image).await?.id;
        let disk = read_truth(cx, &*oracle, &launched).await?.disk_size_gb;
        require(disk == Some(size), || {
            let disk = gigabytes(disk);
            format!(
                "{launched} was launched from {image}, the image of {source} with a disk of {size} GB, and has {disk}"
            )
        })?;
    }
    Ok(Pass::Held)
}
