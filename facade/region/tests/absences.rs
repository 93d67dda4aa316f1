//! How many absent machines are believed: a small region is guarded like a large one, also where the provider reports no account.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use fleetwright::{
    BoxFuture, BoxStream, InstanceId, ListItem, Result as CloudResult,
    layer::{Layer, Layered, Request},
};
use fleetwright_facade_testkit::{TestRegion, bare_server, server_admin, server_id};
use fleetwright_memory::{MemoryCloud, WireCall};
use fleetwright_region::server::{Phase, Presence, ServerView};
use futures_util::{StreamExt as _, stream};

const MINUTE: Duration = Duration::from_secs(60);

/// Shows nothing while it is switched on, as another account does, under the same account id.
#[derive(Clone, Debug, Default)]
struct Hidden(Arc<AtomicBool>);

impl Hidden {
    fn is_on(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Layer for Hidden {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, CloudResult<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, CloudResult<T>> {
        match request.ids.first() {
            Some(id) if self.is_on() => {
                let error = request.call.not_found(id);
                Box::pin(async move { Err(error) })
            }
            Some(_) | None => send(),
        }
    }

    fn batch<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn(Vec<InstanceId>) -> BoxFuture<'a, Vec<CloudResult<T>>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<CloudResult<T>>> {
        if !self.is_on() {
            return send(request.ids.to_vec());
        }
        let missing = |id| Err(request.call.not_found(id));
        let results = request.ids.iter().map(missing).collect();
        Box::pin(async move { results })
    }

    fn stream<'a>(
        &'a self,
        _: Request<'a>,
        open: impl Fn() -> BoxStream<'a, CloudResult<ListItem>> + Send + Sync + 'a,
    ) -> BoxStream<'a, CloudResult<ListItem>> {
        if self.is_on() {
            stream::empty().boxed()
        } else {
            open()
        }
    }
}

fn running(view: &ServerView) -> bool {
    view.phase == Phase::Running && view.server.observed_generation == view.server.generation
}

async fn running_region(cloud: &MemoryCloud, hidden: &Hidden, servers: u128) -> TestRegion {
    let layered = Layered::new(cloud.provisioner(), hidden.clone());
    let region = TestRegion::new(Arc::new(layered));
    for number in 1..=servers {
        let new = bare_server(number);
        region.servers.ensure(&server_admin(), &new).await.unwrap();
    }
    region
        .during(async {
            for number in 1..=servers {
                region.until(server_id(number), running).await;
            }
        })
        .await;
    region
}

async fn is_missing(region: &TestRegion, number: u128) -> bool {
    let view = region.read(server_id(number)).await;
    let seen = view.server.current_observation().unwrap();
    matches!(seen.presence, Presence::Missing(_))
}

#[tokio::test(start_paused = true)]
async fn empty_lists_of_some_minutes_are_not_believed_whatever_the_size() {
    for servers in [1, 2, 3, 4, 5, 6, 12, 60] {
        let (cloud, hidden) = (MemoryCloud::new(), Hidden::default());
        let region = running_region(&cloud, &hidden, servers).await;
        region
            .during(async {
                hidden.0.store(true, Ordering::SeqCst);
                for _ in 0..4 {
                    tokio::time::sleep(MINUTE).await;
                    for number in 1..=servers {
                        assert!(!is_missing(&region, number).await, "of {servers} servers");
                    }
                }
                hidden.0.store(false, Ordering::SeqCst);
                tokio::time::sleep(MINUTE).await;
                for number in 1..=servers {
                    let view = region.read(server_id(number)).await;
                    assert!(running(&view), "{view:#?}");
                }
            })
            .await;
        assert_eq!(cloud.oracle().call_count(WireCall::Terminate), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn single_loss_is_reported_by_the_next_scan_and_the_loss_of_all_after_its_confirmation() {
    let (cloud, hidden) = (
        MemoryCloud::builder().terminated_visible(Duration::ZERO),
        Hidden::default(),
    );
    let cloud = cloud.build();
    let region = running_region(&cloud, &hidden, 3).await;
    let actor = cloud.external_actor();
    let machine = |view: &ServerView| view.server.machine.as_ref().unwrap().id.clone();
    actor
        .terminate(&machine(&region.read(server_id(1)).await))
        .unwrap();
    tokio::time::sleep(MINUTE).await;
    let report = region.monitor.scan().await.unwrap();
    assert_eq!(report.frozen, None);
    assert!(is_missing(&region, 1).await);
    for number in [2, 3] {
        let view = region.read(server_id(number)).await;
        actor.terminate(&machine(&view)).unwrap();
    }
    tokio::time::sleep(MINUTE).await;
    let report = region.monitor.scan().await.unwrap();
    let reason = report.frozen.unwrap();
    assert!(
        reason.contains("no machine of the region is listed"),
        "{reason}"
    );
    assert!(!is_missing(&region, 2).await);
    tokio::time::sleep(5 * MINUTE).await;
    let report = region.monitor.scan().await.unwrap();
    assert_eq!(report.frozen, None);
    assert!(is_missing(&region, 2).await && is_missing(&region, 3).await);
}
