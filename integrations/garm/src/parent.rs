//! Ends a creation whose GARM has died.
//!
//! A GARM that was killed leaves its provider processes running. The next GARM deletes the instances of unfinished creations by name, and
//! a creation that still runs could launch one of them after that. GARM itself kills the process when its deadline is over; nobody does
//! when GARM is killed.

use std::{os::unix::process::parent_id, time::Duration};

use tokio::time::sleep;

/// How often the parent is read.
const INTERVAL: Duration = Duration::from_millis(100);

/// Returns when the process that started this one has ended. Never returns if that was the first process of the system.
pub(crate) async fn ended() {
    let started_by = parent_id();
    if started_by <= 1 {
        std::future::pending::<()>().await;
    }
    while parent_id() == started_by {
        sleep(INTERVAL).await;
    }
}
