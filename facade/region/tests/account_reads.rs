//! Reading the account of a region: how often, and what goes on while it cannot be read.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use fleetwright::{
    BoxFuture, Effect, Operation, Result as CloudResult,
    layer::{Layer, Layered, Request},
};
use fleetwright_facade_testkit::{
    TestRegion, bare_server, is_server_running, machine_of, server_admin, server_id,
};
use fleetwright_memory::{MemoryCloud, WireCall};
use fleetwright_region::server::{ConditionKind, Health, Phase, Power};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn account_is_read_as_often_for_many_servers_as_for_one() {
    let reads = async |servers: u128| {
        let cloud = MemoryCloud::new();
        let reads = Reads::default();
        let counted = Layered::new(cloud.provisioner(), reads.clone());
        let region = TestRegion::new(Arc::new(counted));
        for number in 1..=servers {
            let new = bare_server(number);
            region.servers.ensure(&server_admin(), &new).await.unwrap();
        }
        region.during(tokio::time::sleep(5 * MINUTE)).await;
        reads.0.load(Ordering::SeqCst)
    };
    let (one, many) = (reads(1).await, reads(40).await);
    // Until the first launch is recorded, every launch that waits for it reads the account.
    assert!(
        many <= one + 2 * 40,
        "{many} reads for 40 servers, {one} for one"
    );
}

/// Counts reads of the account.
#[derive(Clone, Debug, Default)]
struct Reads(Arc<AtomicU64>);

impl Layer for Reads {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, CloudResult<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, CloudResult<T>> {
        if request.operation() == Operation::AccountId {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        send()
    }
}

/// Fails to read the account while it is switched on.
#[derive(Clone, Debug, Default)]
struct AccountOutage(Arc<AtomicU64>);

impl Layer for AccountOutage {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, CloudResult<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, CloudResult<T>> {
        let outage = self.0.load(Ordering::SeqCst);
        if request.operation() != Operation::AccountId || outage == 0 {
            return send();
        }
        let error = match outage {
            1 => request
                .call
                .unavailable(Effect::None, "STS does not respond"),
            _ => request.call.unauthenticated("the credentials are rejected"),
        };
        Box::pin(async move { Err(error) })
    }
}

#[tokio::test(start_paused = true)]
async fn outage_of_the_account_service_stops_only_what_creates_or_destroys_for_a_while() {
    for (outage, goes_on) in [(1, true), (2, false)] {
        let (cloud, account) = (MemoryCloud::new(), AccountOutage::default());
        let region = TestRegion::new(Arc::new(Layered::new(cloud.provisioner(), account.clone())));
        let (admin, servers) = (server_admin(), &region.servers);
        for number in 1..=3 {
            servers.ensure(&admin, &bare_server(number)).await.unwrap();
        }
        region
            .during(async {
                for number in 1..=3 {
                    region.until(server_id(number), is_server_running).await;
                }
                account.0.store(outage, Ordering::SeqCst);
                let calls = |call| cloud.oracle().call_count(call);
                let before = [WireCall::Launch, WireCall::Terminate].map(calls);
                servers
                    .set_power(&admin, server_id(1), Power::Stopped)
                    .await
                    .unwrap();
                servers.delete(&admin, server_id(2)).await.unwrap();
                servers.ensure(&admin, &bare_server(4)).await.unwrap();
                // Somebody deletes a machine meanwhile: that is not believed without the account.
                let third = machine_of(&region.read(server_id(3)).await);
                cloud.external_actor().terminate(&third).unwrap();
                tokio::time::sleep(MINUTE).await;
                let view = region.read(server_id(1)).await;
                assert_eq!(view.phase == Phase::Stopped, goes_on, "{view:#?}");
                assert_eq!(view.health == Health::Healthy, goes_on, "scans go on");
                assert_eq!([WireCall::Launch, WireCall::Terminate].map(calls), before);
                let condition = region.read(server_id(4)).await.server;
                assert!(condition.condition(ConditionKind::CloudError).is_some());
                // After five minutes nothing goes on any more.
                tokio::time::sleep(5 * MINUTE).await;
                assert_eq!(region.read(server_id(1)).await.health, Health::Unknown);
                let lists = calls(WireCall::ListPage);
                servers
                    .set_power(&admin, server_id(1), Power::Running)
                    .await
                    .unwrap();
                tokio::time::sleep(5 * MINUTE).await;
                assert_eq!(
                    (calls(WireCall::ListPage), calls(WireCall::Start)),
                    (lists, 0)
                );
                assert_eq!([WireCall::Launch, WireCall::Terminate].map(calls), before);
                account.0.store(0, Ordering::SeqCst);
                region.until(server_id(1), is_server_running).await;
                region.until(server_id(4), is_server_running).await;
                region.until_gone(server_id(2)).await;
            })
            .await;
    }
}

/// The controller has called no cloud for longer than the grace, and the monitor has confirmed the account all the time.
#[tokio::test(start_paused = true)]
async fn grace_of_an_outage_is_counted_for_the_whole_region() {
    let (cloud, account) = (MemoryCloud::new(), AccountOutage::default());
    let region = TestRegion::new(Arc::new(Layered::new(cloud.provisioner(), account.clone())));
    let (admin, servers, id) = (server_admin(), &region.servers, server_id(1));
    servers.ensure(&admin, &bare_server(1)).await.unwrap();
    region
        .during(async {
            region.until(id, is_server_running).await;
            tokio::time::sleep(20 * MINUTE).await;
            account.0.store(1, Ordering::SeqCst);
            tokio::time::sleep(MINUTE).await;
            servers.set_power(&admin, id, Power::Stopped).await.unwrap();
            tokio::time::sleep(MINUTE).await;
            let view = region.read(id).await;
            assert_eq!(view.phase, Phase::Stopped, "{view:#?}");
            // It ends for all parts at the same time.
            tokio::time::sleep(4 * MINUTE).await;
            servers.set_power(&admin, id, Power::Running).await.unwrap();
            tokio::time::sleep(5 * MINUTE).await;
            assert_eq!(cloud.oracle().call_count(WireCall::Start), 0);
            let view = region.read(id).await;
            assert_eq!(view.health, Health::Unknown, "{view:#?}");
        })
        .await;
}
