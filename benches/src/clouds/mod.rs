//! The providers and the vendors' SDKs on the project's emulators, over sockets. Needs the feature `clouds`.
//!
//! The emulator runs in this process on its own thread, so a time includes the emulator's work, which is the same for every
//! variant. No network is between the two: a call to a real cloud takes a hundred times longer, and a ratio above one shrinks
//! accordingly.

use std::{collections::BTreeMap, time::Duration};

pub mod economy;
pub mod emulators;
pub mod list;
pub mod overhead;
pub mod sdk;
pub mod world;

use crate::measure::Amount;

/// Returns a runtime of one thread that can open sockets.
pub fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

/// Calls by name.
pub type Calls = BTreeMap<String, u64>;

/// Returns the calls that `after` has in addition to `before`.
pub fn since(before: &Calls, after: &Calls) -> Calls {
    let added = after.iter().map(|(name, count)| {
        let earlier = before.get(name).copied().unwrap_or_default();
        (name.clone(), count - earlier)
    });
    added.filter(|(_, count)| *count > 0).collect()
}

/// Returns a column with the sum of some calls, and one for each name.
pub fn columns(calls: &Calls) -> Vec<(&'static str, Amount)> {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let amount = |count: u64| Amount::Count(count as f64);
    let mut columns = vec![("wire calls", amount(calls.values().sum()))];
    for (name, count) in calls {
        // A heading lives as long as the program, and there are few.
        columns.push((Box::leak(name.clone().into_boxed_str()), amount(*count)));
    }
    columns
}

/// How long a transition takes in the group `economy`, about as long as in a cloud.
pub const TRANSITION: Duration = Duration::from_secs(10);
