//! DeleteSnapshot and DescribeSnapshots.

use serde::Serialize;

use super::Call;
use crate::ec2::{
    engine::{
        Engine,
        filter::Filter,
        read::check_ids,
        snapshot::{SnapshotRecord, snapshot_not_found},
    },
    error::Refusal,
    shapes::{image::Snapshot, tag_set},
    wire::xml::Set,
};

/// Deletes a snapshot.
///
/// # Errors
///
/// `InvalidSnapshot.NotFound`, `InvalidSnapshotID.Malformed`, or `InvalidSnapshot.InUse` while an image has it.
pub(super) fn delete(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let id = call.root().required("SnapshotId")?;
    let mode = call.mode()?;
    call.finish()?;
    engine.delete_snapshot(&id, mode)?;
    call.success()
}

/// The response of DescribeSnapshots.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    /// The snapshots.
    snapshot_set: Set<Snapshot>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

/// Describes snapshots by id, by owner (`self` or an account) and by filters. All belong to this account.
///
/// # Errors
///
/// `InvalidSnapshot.NotFound` or `InvalidSnapshotID.Malformed` for an id, `InvalidParameterCombination` for ids
/// together with page parameters.
pub(super) fn describe(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let ids = root.list("SnapshotId");
    let owners = root.list("Owner");
    // Nobody else may use a snapshot here.
    let _users = root.list("RestorableBy");
    let mut filters = call.filters()?;
    let (mut paging, paged) = call.paging(engine)?;
    call.finish_read()?;
    if !owners.is_empty() {
        let id = |owner: String| match owner.as_str() {
            "self" => engine.core.knobs.account.clone(),
            _ => owner,
        };
        filters.push(Filter {
            name: "owner-id".to_owned(),
            values: owners.into_iter().map(id).collect(),
        });
    }
    if !ids.is_empty() {
        check_ids(&ids, "snap", "InvalidSnapshotID.Malformed")?;
        if let Some(id) = ids.iter().find(|id| !engine.has_snapshot(id)) {
            return Err(snapshot_not_found(id));
        }
        if paged {
            let message = "The parameter snapshotSet cannot be used with the parameter maxResults";
            return Err(Refusal::combination(message));
        }
        paging.limit = usize::MAX;
        filters.push(Filter {
            name: "snapshot-id".to_owned(),
            values: ids,
        });
    }
    let page = engine.snapshots_page(&filters, &paging)?;
    call.respond(&Response {
        snapshot_set: page
            .items
            .into_iter()
            .map(|snapshot| snapshot_shape(engine, snapshot))
            .collect(),
        next_token: call.next_token(page.next),
    })
}

/// Returns a snapshot as EC2 returns it.
fn snapshot_shape(engine: &Engine, snapshot: SnapshotRecord) -> Snapshot {
    Snapshot {
        snapshot_id: snapshot.id,
        volume_id: snapshot.volume,
        status: if snapshot.is_complete {
            "completed"
        } else {
            "pending"
        },
        start_time: engine.stamp(snapshot.created),
        progress: if snapshot.is_complete { "100%" } else { "0%" },
        owner_id: snapshot.owner,
        volume_size: snapshot.gib,
        description: snapshot.description,
        encrypted: false,
        tag_set: tag_set(&snapshot.tags),
        storage_tier: "standard",
    }
}
