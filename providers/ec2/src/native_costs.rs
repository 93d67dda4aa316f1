//! How many native calls each operation needs, for rate limits.
//!
//! Owns the declared numbers. `tests/native_costs.rs` compares them with what the emulator counts.

use std::{collections::BTreeMap, num::NonZeroUsize};

use fleetwright::{NativeCost, Operation};

/// Returns the costs of the operations that do not need one call for each batch.
pub(crate) fn native_costs(batch_size: NonZeroUsize) -> BTreeMap<Operation, NativeCost> {
    // The change and one read.
    let start = NativeCost::per_chunk(2, batch_size);
    [
        // The lookup of the token, the launch, and the check that no other handle launched it.
        (Operation::LaunchInstance, NativeCost::constant(3)),
        (Operation::LaunchInstances, NativeCost::constant(3)),
        (Operation::StartInstance, start),
        (Operation::StartInstances, start),
        // Two reads, of the instance and of what carries its tags, and the change.
        (Operation::UpdateTags, NativeCost::constant(3)),
        // A read and the change.
        (Operation::RebootInstance, NativeCost::constant(2)),
        (Operation::ResizeInstance, NativeCost::constant(2)),
        (Operation::ConsoleOutput, NativeCost::constant(2)),
        // A read, the image by name, and its creation.
        (Operation::SnapshotImage, NativeCost::constant(3)),
    ]
    .into()
}
