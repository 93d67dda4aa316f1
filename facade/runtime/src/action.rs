//! What a successful reconcile returns.

use chrono::{DateTime, Utc};

/// When a key is reconciled again after a successful reconcile.
///
/// A change of the record always wakes its key earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// At once: there is more to do for this key.
    Requeue,
    /// At this date by the runner's [clock](crate::clock::Clock), or within the hour if that is earlier. A reconcile must
    /// therefore check the date again.
    RequeueAt(DateTime<Utc>),
    /// Not before the record changes.
    AwaitChange,
}
