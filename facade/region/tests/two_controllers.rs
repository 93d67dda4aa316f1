//! Two controllers on one region: no machine is reimaged or launched twice, and nothing is terminated on an old record.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use fleetwright_facade_testkit::{
    NamePlanner, TestRegion, bare_server, is_server_running, server_admin, server_id,
};
use fleetwright_memory::{MemoryCloud, WireCall};
use fleetwright_region::{ids::ImageId, server::Consent};

/// Opens the region as two processes, the second with a cloud of another latency.
fn two_processes(latency: Duration) -> (MemoryCloud, TestRegion, TestRegion) {
    let cloud = MemoryCloud::builder().latency(latency).build();
    let first = TestRegion::new(Arc::new(cloud.provisioner()));
    let second = TestRegion::reopened(
        Arc::new(cloud.provisioner()),
        Arc::clone(&first.store),
        NamePlanner::identity(),
        Arc::clone(&first.clock),
    );
    (cloud, first, second)
}

#[tokio::test(start_paused = true)]
async fn two_controllers_carry_out_each_destructive_step_once() {
    for millis in [0, 1, 50, 700, 3000, 20_000] {
        let (cloud, first, second) = two_processes(Duration::from_millis(millis));
        let (admin, id) = (server_admin(), server_id(1));
        first.servers.ensure(&admin, &bare_server(1)).await.unwrap();
        let life = async {
            let mut spec = first.until(id, is_server_running).await.server.spec;
            for image in ["rocky", "debian", "rocky"] {
                spec.image = ImageId::new(image).unwrap();
                let changed = first.servers.set_spec(&admin, id, &spec, Consent::Destroy);
                changed.await.unwrap();
                first.until(id, is_server_running).await;
            }
            let oracle = cloud.oracle();
            assert_eq!(oracle.call_count(WireCall::Reimage), 3, "{millis} ms");
            first.servers.delete(&admin, id).await.unwrap();
            first.until_gone(id).await;
        };
        first.during(second.during(life)).await;
        let oracle = cloud.oracle();
        assert!(oracle.leftovers().is_empty(), "{:?}", oracle.leftovers());
        assert_eq!(oracle.instances().len(), 1, "one machine in {millis} ms");
    }
}
