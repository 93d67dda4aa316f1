//! The life of servers from the first wish to the last, over a simulated cloud.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what is wrong by failing"
)]

mod story;
mod support;

use std::{sync::Arc, time::Duration};

use fleetwright_memory::MemoryCloud;

use support::Region;

#[tokio::test(start_paused = true)]
async fn a_server_lives_its_whole_life_on_the_memory_cloud() {
    let cloud = MemoryCloud::builder()
        .latency(Duration::from_millis(20))
        .read_lag(Duration::from_secs(3))
        .build();
    let region = Region::new(Arc::new(cloud.provisioner()));
    story::whole_life(&region).await;
    assert!(cloud.oracle().leftovers().is_nothing());
}
