//! Two controllers on one region: no machine is reimaged or launched twice, and nothing is terminated on an old record.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{borrow::Cow, sync::Arc, time::Duration};

use fleetwright::{
    BoxFuture, InstanceConfig, InstanceProvisioner, Operation, Result,
    layer::{LaunchOutput, Layer, Layered, Request},
};
use fleetwright_facade_testkit::{
    NamePlanner, TestRegion, bare_server, is_server_running, server_admin, server_id,
};
use fleetwright_memory::{Fault, MemoryCloud, Phase as FaultPhase, RefusalReason, Rule, WireCall};
use fleetwright_region::{
    ids::{FlavorId, ImageId},
    server::Consent,
};

/// Opens the region as two processes, of which the first one has its own handle of the cloud.
fn two_processes(
    cloud: &MemoryCloud,
    first: Arc<dyn InstanceProvisioner>,
) -> (TestRegion, TestRegion) {
    let first = TestRegion::new(first);
    let second = TestRegion::reopened(
        Arc::new(cloud.provisioner()),
        Arc::clone(&first.store),
        NamePlanner::identity(),
        Arc::clone(&first.clock),
    );
    (first, second)
}

#[tokio::test(start_paused = true)]
async fn two_controllers_carry_out_each_destructive_step_once() {
    for millis in [0, 1, 50, 700, 3000, 20_000] {
        let latency = Duration::from_millis(millis);
        let cloud = MemoryCloud::builder().latency(latency).build();
        let (first, second) = two_processes(&cloud, Arc::new(cloud.provisioner()));
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

/// Delays every launch before it reaches the cloud.
#[derive(Debug)]
struct SlowLaunches(Duration);

impl Layer for SlowLaunches {
    fn launch<'a, T: LaunchOutput + 'a>(
        &'a self,
        _: Request<'a>,
        config: &'a InstanceConfig,
        send: impl Fn(Cow<'a, InstanceConfig>) -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            tokio::time::sleep(self.0).await;
            send(Cow::Borrowed(config)).await
        })
    }
}

/// Opens the region as two processes: the launches of the first one are slow.
fn slow_and_fast(delay: Duration) -> (MemoryCloud, TestRegion, TestRegion) {
    let cloud = MemoryCloud::new();
    let slow = Layered::new(cloud.provisioner(), SlowLaunches(delay));
    let (first, second) = two_processes(&cloud, Arc::new(slow));
    (cloud, first, second)
}

async fn change_image(region: &TestRegion) {
    let (admin, id) = (server_admin(), server_id(1));
    let mut spec = region.read(id).await.server.spec;
    spec.image = ImageId::new("rocky").unwrap();
    let changed = region.servers.set_spec(&admin, id, &spec, Consent::Destroy);
    changed.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nothing_else_is_launched_while_another_controller_may_have_a_launch_in_flight() {
    for seconds in [1, 10, 100] {
        let (cloud, first, second) = slow_and_fast(Duration::from_secs(seconds));
        let id = first.create(1).await;
        // The second controller finds the launch in the record, and not at the cloud.
        let changed = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            change_image(&second).await;
            second.during(second.until(id, is_server_running)).await;
        };
        let (sent, ()) = tokio::join!(first.controller.reconcile(id), changed);
        sent.unwrap();
        assert_eq!(cloud.oracle().instances().len(), 1, "after {seconds} s");
    }
}

#[tokio::test(start_paused = true)]
async fn launch_without_a_response_is_looked_up_whatever_another_controller_recorded() {
    let (cloud, first, second) = slow_and_fast(Duration::from_secs(10));
    let second = second.rules(|policy| policy.launch_timeout = Duration::from_secs(1));
    let lost = Rule::always(WireCall::Launch, Fault::Lost(FaultPhase::After));
    cloud.faults().add(lost);
    let id = first.create(1).await;
    let counted = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        // It is too early: the launch is in flight for longer than this controller assumes.
        second.controller.reconcile(id).await.unwrap();
        let launch = second.read(id).await.server.launch.unwrap();
        assert_eq!(launch.sent_at, None, "it counts as without effect");
        change_image(&second).await;
    };
    let (sent, ()) = tokio::join!(first.controller.reconcile(id), counted);
    sent.unwrap();
    cloud.faults().clear();
    second.during(second.until(id, is_server_running)).await;
    assert_eq!(cloud.oracle().instances().len(), 1);
}

/// Delays the response of every resize.
#[derive(Debug)]
struct SlowResizes(Duration);

impl Layer for SlowResizes {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            let result = send().await;
            if request.operation() == Operation::ResizeInstance {
                tokio::time::sleep(self.0).await;
            }
            result
        })
    }
}

#[tokio::test(start_paused = true)]
async fn late_refusal_does_not_end_the_delay_after_a_failed_call_of_another_controller() {
    let cloud = MemoryCloud::new();
    let slow = Layered::new(
        cloud.provisioner(),
        SlowResizes(Duration::from_millis(1500)),
    );
    let (first, second) = two_processes(&cloud, Arc::new(slow));
    let (admin, id) = (server_admin(), first.create(1).await);
    first.during(first.until(id, is_server_running)).await;
    let no_capacity = || Fault::Refused(RefusalReason::Capacity);
    for call in [WireCall::Resize, WireCall::Start] {
        cloud.faults().add(Rule::always(call, no_capacity()));
    }
    let mut spec = first.read(id).await.server.spec;
    spec.flavor = FlavorId::new("large").unwrap();
    let changed = first.servers.set_spec(&admin, id, &spec, Consent::Destroy);
    changed.await.unwrap();

    let oracle = cloud.oracle();
    let starts = || oracle.call_count(WireCall::Start);
    // Both send the resize. The second one records that it is refused, and fails to start the old size.
    let late_refusal = async {
        while starts() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let delayed = second.read(id).await.server.retry;
        // The first one records the refusal meanwhile.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let server = second.read(id).await.server;
        assert_eq!(oracle.call_count(WireCall::Resize), 2, "both have sent it");
        assert!(server.machine.unwrap().refused.flavor.is_some());
        let (delayed, retry) = (delayed.unwrap(), server.retry.unwrap());
        assert!(retry.not_before >= delayed.not_before, "{retry:?}");
        assert_eq!(
            starts(),
            1,
            "the delay after the failed start has not ended"
        );
    };
    first.during(second.during(late_refusal)).await;
}
