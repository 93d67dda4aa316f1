//! How many native calls each operation needs at most, for rate limits.
//!
//! Owns the declared numbers. `tests/native_costs.rs` compares them with what the emulator counts.

use std::collections::BTreeMap;

use fleetwright::{NativeCost, Operation};
use fleetwright_provider_support::native_costs::{
    CHANGES, DESCRIPTIONS, LAUNCHES, LISTS, STARTS, VERBS, table,
};

use crate::lookup::FEW;

/// Returns the costs of the operations that do not need one call for each batch. Waiting for an
/// operation of Azure comes in addition. Lists of interfaces and addresses are counted although a handle keeps
/// them for a while.
pub(crate) fn native_costs() -> BTreeMap<Operation, NativeCost> {
    table(&[
        // For many the machine by name, the lists of machines and states, and the creations.
        (LAUNCHES, NativeCost::each(1).plus(3).few(1, 2)),
        // The machine by name, and its creation.
        (&[Operation::LaunchInstance], NativeCost::constant(2)),
        // The machine and the change; for many the list of states and the changes.
        (CHANGES, NativeCost::each(1).plus(1).few(FEW, 2)),
        // In addition the machines afterwards: each with its interface, or the lists of machines, states, interfaces
        // and addresses.
        (STARTS, NativeCost::each(1).plus(5).few(FEW, 4)),
        // The machine and its interface; for many the lists of states, interfaces and addresses.
        (DESCRIPTIONS, NativeCost::constant(3).few(FEW, 2)),
        // The states, interfaces and addresses, and a page of machines.
        (LISTS, NativeCost::constant(4)),
        // The machine and its interface.
        (&[Operation::FindLaunch], NativeCost::constant(2)),
        // Two reads of the machine and one of its interface, and the change.
        (&[Operation::UpdateTags], NativeCost::constant(4)),
        // The machine, its interface, and the change.
        (VERBS, NativeCost::constant(3)),
        // In addition the blob.
        (&[Operation::ConsoleOutput], NativeCost::constant(4)),
        // The machine, its interface, the image by name, the machine again, and the creation of the image.
        (&[Operation::SnapshotImage], NativeCost::constant(5)),
        // The image, and its deletion.
        (&[Operation::DeleteImage], NativeCost::constant(2)),
    ])
}
