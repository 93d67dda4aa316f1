//! CreateImage, DescribeImages and DeregisterImage.

use serde::Serialize;

use super::Call;
use crate::ec2::{
    engine::{
        Engine,
        filter::Filter,
        image::{AMAZON, ImageRecord, ImageRequest, image_not_found},
        read::check_ids,
    },
    error::Refusal,
    shapes::{
        image::{Image, ImageDevice, ImageVolume},
        tag_set,
    },
    wire::{tree::Tree, xml::Set},
};

/// The response of CreateImage.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    /// The new image, which is `pending` at first.
    image_id: String,
}

/// Creates an image of an instance, and the snapshot of its root volume.
///
/// # Errors
///
/// `InvalidAMIName.Malformed`, `InvalidAMIName.Duplicate`, `IncorrectInstanceState`, or
/// `InvalidInstanceID.NotFound`.
pub(super) fn create(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let mut tags = call.tag_specifications(&["image", "snapshot"])?;
    let request = ImageRequest {
        instance: root.required("InstanceId")?,
        name: root.required("Name")?,
        description: root.text("Description").unwrap_or_default(),
        tags: tags.remove("image").unwrap_or_default(),
        snapshot_tags: tags.remove("snapshot").unwrap_or_default(),
    };
    // The instance does not reboot here in either case.
    let _no_reboot = root.flag("NoReboot")?;
    let mode = call.mode()?;
    call.finish()?;
    let image_id = engine.create_image(&request, mode)?;
    call.respond(&Created { image_id })
}

/// The response of DescribeImages.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    /// The images.
    images_set: Set<Image>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

/// The response of DeregisterImage.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Deregistered {
    /// Always true.
    #[serde(rename = "return")]
    success: bool,
    /// What became of the snapshots, if the call deletes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    delete_snapshot_result_set: Option<Set<SnapshotDeletion>>,
}

/// What became of a snapshot.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SnapshotDeletion {
    /// The snapshot.
    snapshot_id: String,
    /// `success`, or `skipped` for one that another image uses.
    return_code: &'static str,
}

/// Deregisters an image: it can no longer be launched. Its snapshot is deleted too if `DeleteAssociatedSnapshots`
/// says so (API reference, "DeregisterImage").
///
/// # Errors
///
/// `InvalidAMIID.Malformed`, `InvalidAMIID.NotFound`, `InvalidAMIID.Unavailable` for a deregistered one, or
/// `AuthFailure` for an image of somebody else.
pub(super) fn deregister(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let id = root.required("ImageId")?;
    let with_snapshots = root.flag("DeleteAssociatedSnapshots")?.unwrap_or(false);
    let mode = call.mode()?;
    call.finish()?;
    let snapshot = engine.deregister_image(&id, mode)?;
    let results = with_snapshots.then(|| {
        let deleted = engine.delete_snapshot(&snapshot, mode);
        let deletion = SnapshotDeletion {
            snapshot_id: snapshot,
            return_code: if deleted.is_ok() {
                "success"
            } else {
                "skipped"
            },
        };
        [deletion].into_iter().collect()
    });
    call.respond(&Deregistered {
        success: true,
        delete_snapshot_result_set: results,
    })
}

/// Describes images by id, by owner (`self`, `amazon` or an account) and by filters.
///
/// # Errors
///
/// `InvalidAMIID.NotFound` or `InvalidAMIID.Malformed` for an id, `InvalidParameterCombination`
/// for ids together with page parameters.
pub(super) fn describe(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let ids = root.list("ImageId");
    let owners = root.list("Owner");
    // Every account may launch every image here.
    let _users = root.list("ExecutableBy");
    let _deprecated = (
        root.flag("IncludeDeprecated")?,
        root.flag("IncludeDisabled")?,
    );
    let mut filters = call.filters()?;
    let (mut paging, paged) = call.paging(engine)?;
    call.finish_read()?;
    let moment = engine.read_time(call.context.read_lag);
    if !owners.is_empty() {
        let id = |owner: String| match owner.as_str() {
            "self" => engine.core.knobs.account.clone(),
            "amazon" => AMAZON.to_owned(),
            _ => owner,
        };
        filters.push(Filter {
            name: "owner-id".to_owned(),
            values: owners.into_iter().map(id).collect(),
        });
    }
    if !ids.is_empty() {
        check_ids(&ids, "ami", "InvalidAMIID.Malformed")?;
        if let Some(id) = ids.iter().find(|id| !engine.shows_image(id, moment)) {
            return Err(image_not_found(id));
        }
        if paged {
            let message = "The parameter imageIdsSet cannot be used with the parameter maxResults";
            return Err(Refusal::combination(message));
        }
        paging.limit = usize::MAX;
        filters.push(Filter {
            name: "image-id".to_owned(),
            values: ids,
        });
    }
    let page = engine.images_page(&filters, &paging, moment)?;
    call.respond(&Response {
        images_set: page
            .items
            .into_iter()
            .map(|image| image_shape(engine, image))
            .collect(),
        next_token: call.next_token(page.next),
    })
}

/// Returns an image as EC2 returns it. An image of this account is not public.
fn image_shape(engine: &Engine, image: ImageRecord) -> Image {
    Image {
        image_location: format!("{}/{}", image.owner, image.name),
        image_state: if image.is_available {
            "available"
        } else {
            "pending"
        },
        image_owner_alias: (image.owner == AMAZON).then_some("amazon"),
        image_owner_id: image.owner,
        creation_date: engine.stamp(image.created),
        is_public: image.source.is_none(),
        architecture: image.architecture,
        image_type: "machine",
        name: image.name,
        description: Some(image.description).filter(|text| !text.is_empty()),
        root_device_type: "ebs",
        block_device_mapping: [ImageDevice {
            device_name: image.root_device.clone(),
            ebs: ImageVolume {
                snapshot_id: image.snapshot,
                volume_size: image.root_gib,
                delete_on_termination: true,
                volume_type: "gp3",
                encrypted: false,
            },
        }]
        .into_iter()
        .collect(),
        root_device_name: image.root_device,
        virtualization_type: "hvm",
        tag_set: tag_set(&image.tags),
        hypervisor: "xen",
        ena_support: true,
        platform_details: "Linux/UNIX",
        usage_operation: "RunInstances",
        source_instance_id: image.source,
        image_id: image.id,
    }
}

/// Returns one attribute of an image. Everybody may launch an image of the catalog, and nobody else one of the account.
///
/// # Errors
///
/// `InvalidAMIID.NotFound`, or `InvalidParameterValue` for an unknown attribute.
pub(super) fn describe_attribute(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let (id, name) = (root.required("ImageId")?, root.required("Attribute")?);
    call.finish_read()?;
    check_ids(std::slice::from_ref(&id), "ami", "InvalidAMIID.Malformed")?;
    let image = engine.image(&id).ok_or_else(|| image_not_found(&id))?;
    let tree = Tree::default().text("imageId", &id);
    let value = |value: Option<&str>| Tree::default().some("value", value);
    let tree = match name.as_str() {
        "description" => tree.tree("description", value(Some(&image.description))),
        "kernel" => tree.tree("kernel", value(None)),
        "ramdisk" => tree.tree("ramdisk", value(None)),
        "sriovNetSupport" => tree.tree("sriovNetSupport", value(Some("simple"))),
        "bootMode" => tree.tree("bootMode", value(None)),
        "imdsSupport" => tree.tree("imdsSupport", value(None)),
        "productCodes" => tree.set("productCodes", []),
        "launchPermission" => {
            let everybody = (image.owner != engine.core.knobs.account)
                .then(|| Tree::default().text("group", "all"));
            tree.set("launchPermission", everybody)
        }
        "blockDeviceMapping" => {
            let ebs = Tree::default()
                .text("deleteOnTermination", true)
                .text("snapshotId", &image.snapshot)
                .text("volumeSize", image.root_gib);
            let device = Tree::default()
                .text("deviceName", &image.root_device)
                .tree("ebs", ebs);
            tree.set("blockDeviceMapping", [device])
        }
        other => {
            let message = format!("Value ({other}) for parameter attribute is invalid.");
            return Err(Refusal::invalid(message));
        }
    };
    call.respond(&tree)
}
