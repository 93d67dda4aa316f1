//! How many native calls each operation needs, for rate limits.
//!
//! Owns the declared numbers. `tests/native_costs.rs` compares them with what the emulator counts.

use std::collections::BTreeMap;

use fleetwright::{NativeCost, Operation};

use crate::lookup::FEW;

/// Returns the costs of the operations that do not need one call for each batch. Waiting for an
/// operation of Azure comes in addition.
pub(crate) fn native_costs() -> BTreeMap<Operation, NativeCost> {
    // The machine and its interface; for many the lists of states, interfaces and addresses.
    let describe = NativeCost::constant(3).few(FEW, 2);
    // The machine and the change; for many the list of states and the changes.
    let change = NativeCost::each(1).plus(1).few(FEW, 2);
    // In addition the machines afterwards: each with its interface, or two lists; two more if the interfaces are
    // not in the cache any more.
    let start = NativeCost::each(1).plus(3).few(FEW, 4);
    [
        // The machine by name, and its creation.
        (Operation::LaunchInstance, NativeCost::constant(2)),
        // For many the machine by name, the lists of machines and states, and the creations.
        (
            Operation::LaunchInstances,
            NativeCost::each(1).plus(3).few(1, 2),
        ),
        (Operation::TerminateInstance, change),
        (Operation::TerminateInstances, change),
        (Operation::StopInstance, change),
        (Operation::StopInstances, change),
        (Operation::StartInstance, start),
        (Operation::StartInstances, start),
        (Operation::DescribeInstance, describe),
        (Operation::DescribeInstances, describe),
        // The states, interfaces and addresses, and a page of machines.
        (Operation::ListInstances, NativeCost::constant(4)),
        (Operation::StreamInstances, NativeCost::constant(4)),
        // The machine and its interface.
        (Operation::FindLaunch, NativeCost::constant(2)),
        // Two reads of the machine and one of its interface, and the change.
        (Operation::UpdateTags, NativeCost::constant(4)),
        // The machine, its interface, and the change.
        (Operation::RebootInstance, NativeCost::constant(3)),
        (Operation::ResizeInstance, NativeCost::constant(3)),
        // In addition the blob.
        (Operation::ConsoleOutput, NativeCost::constant(4)),
        // The machine, its interface, the image by name, and its creation.
        (Operation::SnapshotImage, NativeCost::constant(4)),
    ]
    .into()
}
