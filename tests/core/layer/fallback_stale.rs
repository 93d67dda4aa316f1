//! Launches that failed late and that reads still show.

use std::{borrow::Cow, sync::Mutex, time::Duration};

use fleetwright::{
    Effect, ErrorKind, InstanceConfig, InstanceInfo, InstanceProvisioner as _, Result, Scope,
    layer::{Fallback, LaunchOutput, Layer, Layered, Request},
};
use fleetwright_memory::{MemoryCloud, MemoryProvisioner};
use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep, timeout};

use super::{
    fallback_late::{cloud_with_lag, zone_of, zones},
    live, many, with_token,
};
use crate::fake::secs;

/// Returns the first launch for some replays, as a cloud does whose reads are stale.
#[derive(Debug)]
struct StaleLaunch {
    first: Mutex<Option<(InstanceConfig, Vec<InstanceInfo>)>>,
    /// How many replays still find the first launch.
    replays: Mutex<u32>,
    /// Whether a replay with another config is refused as spent.
    looks_spent: bool,
    /// How long after its read a replay is answered.
    answer_delay: Duration,
    /// For how long the first launch waits itself for its failure, and then returns it.
    wait: Option<Duration>,
    /// The zones of the launches that were sent.
    sent: Mutex<Vec<String>>,
}

impl StaleLaunch {
    fn new(replays: u32, looks_spent: bool) -> Self {
        Self {
            first: Mutex::default(),
            replays: Mutex::new(replays),
            looks_spent,
            answer_delay: Duration::ZERO,
            wait: None,
            sent: Mutex::default(),
        }
    }

    /// Returns the result of a replay, unless the first launch is visible no longer.
    fn replay<T: LaunchOutput>(
        &self,
        request: &Request<'_>,
        config: &InstanceConfig,
    ) -> Option<Result<T>> {
        let first = self.first.lock().unwrap();
        let (original, instances) = first.as_ref()?;
        let mut replays = self.replays.lock().unwrap();
        *replays = replays.checked_sub(1)?;
        if config == original {
            return Some(Ok(T::complete(instances.clone(), request.count).unwrap()));
        }
        let token = request.token.unwrap();
        Some(Err(if self.looks_spent {
            request.call.token_spent(token)
        } else {
            request.call.token_conflict(token)
        }))
    }
}

impl Layer for StaleLaunch {
    fn launch<'a, T: LaunchOutput + 'a>(
        &'a self,
        request: Request<'a>,
        config: &'a InstanceConfig,
        send: impl Fn(Cow<'a, InstanceConfig>) -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            let zone = config.placement.zone.as_ref().unwrap().to_string();
            self.sent.lock().unwrap().push(zone);
            if let Some(result) = self.replay(&request, config) {
                sleep(self.answer_delay).await;
                return result;
            }
            let mut launched = send(Cow::Borrowed(config)).await?;
            let is_first = {
                let mut first = self.first.lock().unwrap();
                let is_first = first.is_none();
                first.get_or_insert((config.clone(), launched.instances().to_vec()));
                is_first
            };
            if let Some(time) = self.wait.filter(|_| is_first) {
                sleep(time).await;
                return Err(request.call.capacity(Scope::of(config), "none"));
            }
            Ok(launched)
        })
    }
}

/// The layers over a cloud whose reads are stale for twenty seconds, and whose first zone is short.
type Process = Layered<Layered<MemoryProvisioner, StaleLaunch>, Fallback>;

fn stale_process(cloud: &MemoryCloud, stale: StaleLaunch) -> Process {
    let stale = Layered::new(cloud.provisioner(), stale);
    Layered::new(stale, Fallback::new(zones()))
}

/// Returns the zones of the launches that were sent.
fn sent(process: &Process) -> Vec<String> {
    process.inner().layer().sent.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn launch_that_failed_late_is_waited_for_while_replays_return_it() {
    let replays = [0, 1, 2, 5, 12, 19];
    let conflicts = replays.map(|replays| (replays, false));
    let spent = replays.map(|replays| (replays, true));
    for (replays, looks_spent) in conflicts.into_iter().chain(spent) {
        for count in [1, 2] {
            let what = format!("{replays} {looks_spent} {count}");
            let cloud = cloud_with_lag([0, 9, 9], 20);
            let process = stale_process(&cloud, StaleLaunch::new(replays, looks_spent));
            let config = with_token("t-1");
            let launched = match count {
                1 => process.launch_instance(&config).await.map(|one| vec![one]),
                _ => process.launch_instances(&config, many(count)).await,
            };
            let launched = launched.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(
                launched.iter().all(|info| zone_of(info) == "mem-b"),
                "{what}"
            );
            assert_eq!(live(&cloud), count as usize, "{what}");
            // One launch per poll interval, and no other config.
            let sent = sent(&process);
            assert_eq!(sent.len(), replays as usize + 2, "{what}: {sent:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn launch_that_never_vanishes_ends_with_its_late_failure() {
    for looks_spent in [false, true] {
        let cloud = cloud_with_lag([0, 9, 9], 20);
        let process = stale_process(&cloud, StaleLaunch::new(u32::MAX, looks_spent));
        let (config, began) = (with_token("t-1"), Instant::now());
        let launch = timeout(secs(600), process.launch_instance(&config));
        let error = launch.await.unwrap().unwrap_err();
        // The failure shows within 27 seconds. Then the launch waits for one window of 20 seconds, not for one for each
        // alternative.
        assert!(began.elapsed() < secs(60), "{:?}", began.elapsed());
        let expected = if looks_spent {
            ErrorKind::TokenSpent
        } else {
            ErrorKind::Capacity
        };
        assert_eq!(
            (error.kind(), error.effect()),
            (expected, Effect::None),
            "{error}"
        );
        assert_eq!(live(&cloud), 0);
        // What has failed is not launched again.
        let again = sent(&process)
            .iter()
            .filter(|zone| *zone == "mem-a")
            .count();
        assert_eq!(again, 1, "{looks_spent}");
    }
}

#[tokio::test(start_paused = true)]
async fn stale_read_is_not_believed_however_late_it_is_answered() {
    for looks_spent in [false, true] {
        let cloud = cloud_with_lag([0, 9, 9], 20);
        let mut stale = StaleLaunch::new(1, looks_spent);
        stale.answer_delay = secs(60);
        let process = stale_process(&cloud, stale);
        let info = process.launch_instance(&with_token("t-1")).await.unwrap();
        assert_eq!(zone_of(&info), "mem-b");
        assert_eq!(sent(&process), ["mem-a", "mem-b", "mem-b"]);
        assert_eq!(live(&cloud), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn failure_that_the_backend_waited_for_is_stale_like_any_other() {
    for looks_spent in [false, true] {
        let cloud = cloud_with_lag([0, 9, 9], 20);
        let mut stale = StaleLaunch::new(5, looks_spent);
        stale.wait = Some(secs(9));
        let process = stale_process(&cloud, stale);
        let info = process.launch_instance(&with_token("t-1")).await.unwrap();
        assert_eq!(zone_of(&info), "mem-b");
        assert_eq!((sent(&process).len(), live(&cloud)), (7, 1));
    }
}
