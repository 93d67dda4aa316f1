//! The table of native calls that a provider declares.
//!
//! Owns which operations always cost the same: a call for one instance and its batch, and the optional verbs
//! that read an instance and then change it. The numbers belong to each provider.

use std::collections::BTreeMap;

use fleetwright::{NativeCost, Operation};

/// Launches.
pub const LAUNCHES: &[Operation] = &[Operation::LaunchInstance, Operation::LaunchInstances];
/// Changes of which nothing is read afterwards.
pub const CHANGES: &[Operation] = &[
    Operation::TerminateInstance,
    Operation::TerminateInstances,
    Operation::StopInstance,
    Operation::StopInstances,
];
/// Starts.
pub const STARTS: &[Operation] = &[Operation::StartInstance, Operation::StartInstances];
/// Descriptions.
pub const DESCRIPTIONS: &[Operation] = &[Operation::DescribeInstance, Operation::DescribeInstances];
/// Lists.
pub const LISTS: &[Operation] = &[Operation::ListInstances, Operation::StreamInstances];
/// Verbs that read the instance and send one more call.
pub const VERBS: &[Operation] = &[
    Operation::RebootInstance,
    Operation::ResizeInstance,
    Operation::ConsoleOutput,
];

/// Returns the table in which all operations of a row have its cost. A later row replaces an earlier one.
///
/// A cost is the most that an operation can send in the ordinary case, so that a rate limit never counts too
/// little: caches are empty, and every optional part of the request is there.
///
/// ```
/// use fleetwright::{NativeCost, Operation};
/// use fleetwright_provider_support::native_costs::{STARTS, table};
///
/// let costs = table(&[(STARTS, NativeCost::each(2))]);
/// assert_eq!(costs[&Operation::StartInstances], NativeCost::each(2));
/// assert!(!costs.contains_key(&Operation::StopInstance));
/// ```
pub fn table(rows: &[(&[Operation], NativeCost)]) -> BTreeMap<Operation, NativeCost> {
    let each = rows
        .iter()
        .flat_map(|(operations, cost)| operations.iter().map(|operation| (*operation, *cost)));
    each.collect()
}
