//! How many native calls each operation needs at most, for rate limits.
//!
//! Owns the declared numbers. `tests/native_costs.rs` compares them with what the emulator counts.

use std::{collections::BTreeMap, num::NonZeroUsize};

use fleetwright::{NativeCost, Operation};
use fleetwright_provider_support::native_costs::{LAUNCHES, STARTS, VERBS, table};

/// Returns the costs of the operations that do not need one call for each batch.
pub(crate) fn native_costs(batch_size: NonZeroUsize) -> BTreeMap<Operation, NativeCost> {
    table(&[
        // The lookup of the token, the image, the launch, and the check that no other handle launched it. The image
        // is read only if the launch has settings for the root disk, and once for each handle.
        (LAUNCHES, NativeCost::constant(4)),
        // The change and one read.
        (STARTS, NativeCost::per_chunk(2, batch_size)),
        // Two reads, of the instance and of what carries its tags, then the new tags and the removed ones.
        (&[Operation::UpdateTags], NativeCost::constant(4)),
        // A read and the change.
        (VERBS, NativeCost::constant(2)),
        // A read, the image by name, and its creation.
        (&[Operation::SnapshotImage], NativeCost::constant(3)),
        // The image, the tag of its snapshot, its deregistration, and the deletion of the snapshot. Images of instances
        // with more disks have more snapshots.
        (&[Operation::DeleteImage], NativeCost::constant(4)),
    ])
}
