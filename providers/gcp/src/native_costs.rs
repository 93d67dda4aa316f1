//! How many native calls each operation needs at most, for rate limits.
//!
//! Owns the declared numbers. `tests/native_costs.rs` compares them with what the emulator counts.

use std::collections::BTreeMap;

use fleetwright::{NativeCost, Operation};
use fleetwright_provider_support::native_costs::{CHANGES, STARTS, VERBS, table};

/// Returns the costs of the operations that do not need one call for each batch. Waiting for an
/// operation of Compute Engine comes in addition.
///
/// With `spent_tokens`, each lookup of a token also lists operations.
pub(crate) fn native_costs(spent_tokens: bool) -> BTreeMap<Operation, NativeCost> {
    let operations = u32::from(spent_tokens);
    table(&[
        // The instances by name before and after the insert.
        (
            &[Operation::LaunchInstance],
            NativeCost::constant(3 + operations),
        ),
        // In addition, a bulk insert and the list of what it created.
        (
            &[Operation::LaunchInstances],
            NativeCost::constant(5 + operations).few(1, 3 + operations),
        ),
        (CHANGES, NativeCost::each(1)),
        // Each is read after its start.
        (STARTS, NativeCost::each(2)),
        (
            &[Operation::FindLaunch],
            NativeCost::constant(1 + operations),
        ),
        // Two reads and the labels; for tags that are no valid labels also the metadata, another read and the
        // labels again.
        (&[Operation::UpdateTags], NativeCost::constant(6)),
        // A read and the change.
        (VERBS, NativeCost::constant(2)),
        // Two reads, the image by name, and its creation.
        (&[Operation::SnapshotImage], NativeCost::constant(4)),
        // The image, and its deletion.
        (&[Operation::DeleteImage], NativeCost::constant(2)),
    ])
}
