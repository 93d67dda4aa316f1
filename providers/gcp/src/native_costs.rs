//! How many native calls each operation needs, for rate limits.
//!
//! Owns the declared numbers. `tests/native_costs.rs` compares them with what the emulator counts.

use std::collections::BTreeMap;

use fleetwright::{NativeCost, Operation};

/// Returns the costs of the operations that do not need one call for each batch. Waiting for an
/// operation of Compute Engine comes in addition.
pub(crate) fn native_costs() -> BTreeMap<Operation, NativeCost> {
    let change = NativeCost::each(1);
    // Each is read after its start.
    let start = NativeCost::each(2);
    // The lists of instances and operations by name, and the inserts.
    let launch = NativeCost::each(1).plus(2);
    [
        (Operation::LaunchInstance, launch),
        (Operation::LaunchInstances, launch),
        (Operation::TerminateInstance, change),
        (Operation::TerminateInstances, change),
        (Operation::StopInstance, change),
        (Operation::StopInstances, change),
        (Operation::StartInstance, start),
        (Operation::StartInstances, start),
        (Operation::FindLaunch, NativeCost::constant(1)),
        // Two reads, and the labels.
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
