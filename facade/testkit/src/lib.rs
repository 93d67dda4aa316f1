//! Fixtures that the tests of the façade share.
//!
//! One [catalog](CATALOG) and [mapping](MAPPING), [tenants and principals](principals), [stores] that are slow, count, fail
//! or race, a [whole façade](TestFacade) on the memory cloud with an instance that [runs](TestFacade::running_instance), a
//! [region of bare servers](TestRegion) on any provisioner, and a [recorder of metrics](RecordedMetrics). It owns no test; a fixture
//! that only one test needs belongs to that test. Every function panics where a test would fail.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "test fixtures may panic"
)]

mod catalog;
mod facade;
mod hidden_machines;
pub mod lifecycle;
mod metrics;
pub mod principals;
mod records;
mod region;
mod servers;
mod snapshots;
pub mod stores;
mod switched_cloud;
mod two_accounts;

pub use catalog::{CATALOG, MAPPING, flavor, image, name, north, south, without_entry};
pub use facade::{
    TestFacade, TestFacadeBuilder, commits_after, has_condition, is_applied, is_running,
};
pub use hidden_machines::HiddenMachines;
pub use metrics::RecordedMetrics;
pub use principals::{Tenant, operator, project_user, tenant};
pub use records::{error_chain, instance_record, new_instance, record_id, spec};
pub use region::{NamePlanner, TestRegion, bare_server};
pub use servers::{
    is_server_running, machine_of, new_server, server_admin, server_id, server_spec, server_user,
};
pub use snapshots::{SNAPSHOT_NAME, new_snapshot};
pub use stores::{memory_store, schema, sqlite_store};
pub use switched_cloud::{SwitchedCloud, fixed_account};
pub use two_accounts::{Moment, TwoAccounts, account_of};

use std::time::Duration;

/// Waits until `condition` returns something, and returns that. Checks every tenth of a second, for an hour of (paused) time:
/// a state between two descriptions of a machine lasts only 200 ms.
///
/// # Panics
///
/// After an hour, with `what`.
pub async fn advance_until<T>(what: &str, condition: impl AsyncFn() -> Option<T>) -> T {
    for _ in 0..36_000 {
        if let Some(found) = condition().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("waited an hour for {what}");
}
