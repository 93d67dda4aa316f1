//! Launches that an emulated cloud accepts and that fail later for lack of capacity, under the fallback
//! layer.
//!
//! The first zone has no capacity, and the cloud reports it only in the operation, after the launch has
//! returned. Whatever happens to the launching process, one instance is left in another zone, and its
//! token finds it.

use std::{sync::Arc, time::Duration};

use fleetwright::{
    ErrorKind, InstanceConfig, InstanceInfo, InstanceProvisioner, LaunchRecord, LaunchToken,
    Result, Zone,
    layer::{Alternative, Fallback, FallbackPolicy, Layered, Retry, RetryPolicy},
};
use fleetwright_contract_tests::{Harness, WireFault, WireOp};
use tokio::time::sleep;

use crate::emulated::parse_name;

/// How often the test checks whether the launch has sent the request at which it is dropped.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// A launch that sends more requests than this is in an endless loop.
const MOST_REQUESTS: u64 = 400;
/// How often a launch is replayed while the remains of the first one are being deleted.
const MOST_REPLAYS: u32 = 100;
/// The time between two replays.
const PAUSE: Duration = Duration::from_millis(10);

/// A cloud whose first zone has no capacity, and says so late.
#[derive(Debug)]
pub struct LateShortage<'a, H> {
    /// The backend and its cloud.
    harness: &'a H,
    /// The zone without capacity.
    short: Zone,
    /// A zone with capacity.
    other: Zone,
}

/// The layers of one process.
type Process = Layered<Layered<Arc<dyn InstanceProvisioner>, Retry>, Fallback>;

#[allow(clippy::panic, reason = "tests may panic")]
impl<'a, H: Harness> LateShortage<'a, H> {
    /// Tests this harness, whose cloud has no capacity in the first of two zones.
    pub fn new(harness: &'a H, zones: [&str; 2]) -> Self {
        let [short, other] = zones.map(parse_name);
        Self {
            harness,
            short,
            other,
        }
    }

    /// Checks that a launch moves to the other zone, and then drops the launch at each of its requests,
    /// before and after the effect, and replays it in another process.
    ///
    /// # Panics
    ///
    /// If a launch fails, or leaves another number of instances than one.
    pub async fn check(&self) {
        let whole = self.config("whole");
        let launched = self.process().await.launch_instance(&whole).await;
        let launched = launched.unwrap_or_else(|error| panic!("{error}"));
        self.check_one("without a crash", &whole, &launched).await;
        let mut dropped = 0;
        for fault in [WireFault::CrashBefore, WireFault::CrashAfter] {
            for nth in 1..MOST_REQUESTS {
                if !self.drop_at(nth, &fault).await {
                    break;
                }
                dropped += 1;
            }
        }
        assert!(dropped >= 8, "too few launches were dropped: {dropped}");
    }

    /// Checks that a launch of one process moves to the other zone, without retries: for a cloud whose reads are stale.
    ///
    /// # Panics
    ///
    /// If the launch fails, or leaves another number of instances than one.
    pub async fn check_without_crash(&self, what: &str) {
        let config = self.config("stale");
        let process = Layered::new(self.harness.open().await, self.fallback());
        let launched = process.launch_instance(&config).await;
        let launched = launched.unwrap_or_else(|error| panic!("{what}: {error}"));
        self.check_one(what, &config, &launched).await;
    }

    /// Drops a launch at its request number `nth`, and replays it. Returns whether it sent so many.
    async fn drop_at(&self, nth: u64, fault: &WireFault) -> bool {
        let what = format!("dropped by {fault:?} at request {nth}");
        let config = self.config(&format!("{nth}-{fault:?}"));
        let (Some(faults), Some(oracle)) = (self.harness.faults(), self.harness.oracle()) else {
            panic!("the harness has no faults or no oracle");
        };
        faults.clear().await;
        let before = oracle.calls().await;
        faults.inject(WireOp::Any, nth, fault.clone()).await;
        let process = self.process().await;
        let launch = process.launch_instance(&config);
        let reached = async {
            while oracle.calls().await < before + nth {
                sleep(CHECK_INTERVAL).await;
            }
            // Requests without the fault get their responses meanwhile.
            sleep(CHECK_INTERVAL).await;
        };
        let finished = tokio::select! {
            biased;
            launched = launch => Some(launched),
            () = reached => None,
        };
        drop(process);
        faults.clear().await;
        let replayed = match finished {
            Some(Ok(launched)) => {
                self.check_one(&what, &config, &launched).await;
                return false;
            }
            Some(Err(_)) | None => self.replay(&config).await,
        };
        let replayed = replayed.unwrap_or_else(|error| panic!("{what}: {error}"));
        self.check_one(&what, &config, &replayed).await;
        true
    }

    /// Replays a launch in another process. While the remains of a failed launch are being deleted, the
    /// process cannot tell them from a terminated instance, and the token is refused as spent.
    async fn replay(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let process = self.process().await;
        for _ in 0..MOST_REPLAYS {
            match process.launch_instance(config).await {
                Err(error) if error.kind() == ErrorKind::TokenSpent => sleep(PAUSE).await,
                replayed => return replayed,
            }
        }
        process.launch_instance(config).await
    }

    /// Checks that the launch left one instance, in the other zone, and terminates it.
    async fn check_one(&self, what: &str, config: &InstanceConfig, launched: &InstanceInfo) {
        assert_eq!(
            launched.placement.zone.as_ref(),
            Some(&self.other),
            "{what}"
        );
        let handle = self.harness.open().await;
        sleep(handle.capabilities().consistency_window).await;
        let Some(oracle) = self.harness.oracle() else {
            panic!("the harness has no oracle");
        };
        let truths = oracle.instances(&config.tags).await;
        let live = truths.iter().filter(|truth| !truth.info.state.is_ending());
        let live: Vec<_> = live.map(|truth| &truth.info.id).collect();
        assert_eq!(live, [&launched.id], "{what}");
        let Some(token) = &config.launch_token else {
            panic!("the launch has a token");
        };
        match handle.find_launch(token).await {
            Ok(LaunchRecord::Found(found)) => assert_eq!(found[0].id, launched.id, "{what}"),
            other => panic!("{what}: {other:?}"),
        }
        let ended: Result<()> = handle.terminate_instance(&launched.id).await;
        assert!(ended.is_ok(), "{what}: {ended:?}");
    }

    fn config(&self, purpose: &str) -> InstanceConfig {
        let mut config = self.harness.config();
        let tagged = config.tags.insert("purpose", purpose.to_lowercase());
        let token = LaunchToken::new(format!("late-{}", purpose.to_lowercase()));
        match (tagged, token) {
            (Ok(_), Ok(token)) => config.launch_token = Some(token),
            (tagged, token) => panic!("{tagged:?} {token:?}"),
        }
        config
    }

    async fn process(&self) -> Process {
        let retry = Layered::new(
            self.harness.open().await,
            Retry::new(RetryPolicy::default()),
        );
        Layered::new(retry, self.fallback())
    }

    /// Tries the zone without capacity first.
    fn fallback(&self) -> Fallback {
        let zones = [&self.short, &self.other];
        let alternatives = zones.map(|zone| match Alternative::new(zone.as_str()).zone(zone) {
            Ok(alternative) => alternative,
            Err(invalid) => panic!("{invalid}"),
        });
        Fallback::new(FallbackPolicy::new(alternatives))
    }
}
