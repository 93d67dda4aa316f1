//! The server controller: brings each server of a region to its desired state.
//!
//! Owns the order of calls to the cloud for a server and nothing else: the desired state belongs to the
//! [service](crate::server::Servers), the observed state to the [monitor](crate::monitor). A reconcile reads the server and the last scan
//! of its region, [decides](decide()) and carries out one [step](Step). Its cost does not grow with the fleet.
//!
//! # Diagram
//!
//! The [stage](Stage) of a server follows from its record. Each line has a stage, a step that may be decided there, and the stages of the
//! record after the step has succeeded; a test compares all of it with the code. Observations of the monitor move a server on as well:
//! from `unobserved` to `booting`, from there to `running`, and so on along the cloud's own states.
//!
//! ```text
//! new         --launch-->          unsettled
//! new         --delete-record-->   (nothing)
//! unsettled   --settle-->          unobserved unlaunched
//! unlaunched  --resend-->          unsettled
//! unlaunched  --launch-changed-->  unsettled
//! unlaunched  --launch-retry-->    unsettled
//! unlaunched  --launch-replace-->  unsettled
//! unlaunched  --fail-->            unlaunched
//! unlaunched  --delete-record-->   (nothing)
//! unobserved  --terminate-->       terminating
//! booting     --terminate-->       terminating
//! starting    --terminate-->       terminating
//! running     --terminate-->       terminating
//! running     --stop-->            running
//! running     --reboot-->          running
//! running     --reimage-->         running
//! running     --retag-->           running
//! running     --refuse-->          running
//! stopping    --terminate-->       terminating
//! stopped     --terminate-->       terminating
//! stopped     --start-->           stopped
//! stopped     --resize-->          stopped
//! stopped     --reimage-->         stopped
//! stopped     --retag-->           stopped
//! stopped     --refuse-->          stopped
//! absent      --terminate-->       terminating
//! terminating --terminate-->       terminating
//! terminating --keep-machine-->    unobserved booting starting running stopping stopped absent terminating
//! terminated  --keep-machine-->    terminated
//! terminated  --terminate-->       terminated
//! terminated  --launch-retry-->    unsettled
//! terminated  --launch-replace-->  unsettled
//! terminated  --fail-->            terminated
//! terminated  --delete-record-->   (nothing)
//! running     --done-->            running
//! stopped     --done-->            stopped
//! ```
//!
//! In every stage the controller may also wait. If an observation shows that the desired state is reached, the monitor writes `done` with
//! it, in one transaction.
//!
//! # After a crash
//!
//! | the process dies | the record contains | the next process |
//! | --- | --- | --- |
//! | before a launch is stored | nothing about it | decides again |
//! | after that, whether or not the cloud received it | the launch with its token, `unsettled` | looks the token up; after the consistency window it sends the same launch again, and after the [launch timeout](ControllerPolicy::launch_timeout) a changed one |
//! | before the machine's id is stored | the same | finds the machine by the token |
//! | before or after any other call | the state before the call | repeats the call, which is idempotent; only a reboot may happen twice |
//! | before the record is deleted | that the machine is terminated | deletes it |
//!
//! The transaction that decides on a new launch raises the incarnation and removes the old machine from the record; it happens only once
//! the old machine is known to be terminated. So a server has at most one machine, and the token of a recorded machine is never sent
//! again.

mod act;
mod conclude;
mod dates;
mod decide;
mod in_place;
mod launch;
mod policy;
mod record;
mod stage;
mod step;
pub mod tags;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, time::Duration};

use fleetwright::InstanceProvisioner;
use fleetwright_runtime::{Action, Runner, clock::Clock, watch_keys};
use fleetwright_store::{
    Advice, Commit, Document as _, IndexName, Interest, Invalid, Key, Store, StoreError, Table,
    Watch,
};
use metrics::{counter, gauge};

use crate::{
    account::{AccountGuard, ConfirmedAccount, guarded},
    ids::RegionId,
    launch_config::LaunchConfigs,
    mapping::LaunchPlanner,
    monitor::RegionScan,
    server::{REGION_INDEX, Server, ServerId},
};

pub(crate) use conclude::conclude;
pub use decide::{Facts, decide};
pub use policy::ControllerPolicy;
pub use stage::Stage;
pub use step::{FailureReason, LaunchReason, Step, Wait};

/// How many conflicts in a row are tried again at once. A conflict that persists is not caused by other writers: another record
/// may have the same machine.
const CONFLICTS: u32 = 16;

/// Brings each server of a region to its desired state.
///
/// ```
/// use std::sync::Arc;
/// use fleetwright_memory::MemoryCloud;
/// use fleetwright_region::{controller::{Controller, ControllerPolicy}, ids::RegionId};
/// use fleetwright_runtime::clock::SystemClock;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = fleetwright_facade_testkit::memory_store();
/// # let planner = Arc::new(fleetwright_facade_testkit::NamePlanner::identity());
/// let north = RegionId::new("north")?;
/// let cloud = Arc::new(MemoryCloud::new().provisioner());
/// let controller = Controller::new(north, store, cloud, planner, Arc::new(SystemClock))?
///     .with_policy(ControllerPolicy::default());
/// tokio::select! {
///     () = controller.run() => {} // it runs until it is dropped
///     () = tokio::time::sleep(std::time::Duration::from_secs(60)) => {}
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Guarantees
///
/// - At most one machine for each server, at whatever point a future is dropped, a process dies, a call fails or a response is lost.
/// - Every server reaches its desired state once cloud and store work.
/// - Dropping [`run`](Self::run) at any point is as safe as killing the process.
///
/// # Assumptions
///
/// A [monitor](crate::monitor::Monitor) scans the same region: without it machines are launched and never observed. One controller works on
/// a region at a time; two repeat each other's work, and are kept consistent by the records' revisions and by the launch tokens for as
/// long as the cloud remembers those. Nothing is terminated or reimaged on a record that another one has changed, and a reimage is not
/// sent while another one may have sent it, and neither is a changed launch: a launch returns within the
/// [launch timeout](ControllerPolicy::launch_timeout). The clocks of the processes differ by much less than the cloud's consistency window. A clock
/// that is set back starts running delays again, and none lasts longer than its policy.
#[derive(Clone)]
pub struct Controller {
    region: RegionId,
    store: Arc<dyn Store>,
    servers: Table<Server>,
    scans: Table<RegionScan>,
    /// Refuses every call while the provider uses another account than the region's.
    cloud: Arc<dyn InstanceProvisioner>,
    account: Arc<AccountGuard>,
    configs: LaunchConfigs,
    clock: Arc<dyn Clock>,
    policy: ControllerPolicy,
}

impl Controller {
    /// The controller of a region, on a store whose schema has [its kinds](crate::schema::add_kinds).
    pub fn new(
        region: RegionId,
        store: Arc<dyn Store>,
        cloud: Arc<dyn InstanceProvisioner>,
        planner: Arc<dyn LaunchPlanner>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Invalid> {
        let accounts = Table::new(Arc::clone(&store))?;
        let (cloud, account) = guarded(&region, &store, accounts, cloud);
        Ok(Self {
            region,
            servers: Table::new(Arc::clone(&store))?,
            scans: Table::new(Arc::clone(&store))?,
            configs: LaunchConfigs::new(Arc::clone(&store), Arc::clone(&cloud), planner)?,
            store,
            cloud,
            account,
            clock,
            policy: ControllerPolicy::default(),
        })
    }

    /// Shares with the other parts of the region when its account was last confirmed.
    #[must_use]
    pub fn with_confirmed_account(self, confirmed: &ConfirmedAccount) -> Self {
        self.account.share(confirmed);
        self
    }

    /// Sets the policy.
    #[must_use]
    pub fn with_policy(mut self, policy: ControllerPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Reconciles one server: reads it, decides, and carries out one step.
    pub async fn reconcile(&self, id: ServerId) -> Result<Action, StoreError> {
        let Some(mut read) = self.servers.get(&id.key()?).await? else {
            return Ok(Action::AwaitChange);
        };
        if read.value.region != self.region {
            return Ok(Action::AwaitChange);
        }
        if dates::replace_future_dates(&mut read.value, &self.policy, self.clock.now()) {
            tracing::warn!(server = %id, "a clock was set back: dates in the future are replaced");
            return self.commit(read, Action::Requeue).await;
        }
        let scan = self.scans.get(&RegionScan::key(&self.region)?).await?;
        let capabilities = self.cloud.capabilities();
        let refusal = self.refusal_of_change(&read.value).await?;
        let facts = Facts {
            verbs: &capabilities.verbs,
            usual_lag: capabilities.usual_lag(),
            scan: scan.as_ref().map(|scan| &scan.value),
            policy: &self.policy,
            refusal: refusal.as_deref(),
        };
        let step = decide(&read.value, &facts, self.clock.now());
        let labels = [("region", self.label()), ("step", step.name().to_owned())];
        counter!("fleetwright_region_steps_total", &labels).increment(1);
        tracing::debug!(server = %id, step = step.name(), "reconcile");
        self.act(read, step).await
    }

    /// Reconciles the region's servers until the future is dropped.
    pub async fn run(&self) {
        let keys = watch_keys("servers", || self.list_all(), |commit| self.keys_of(commit));
        let error_policy =
            |id: &ServerId, error: &StoreError, failures| self.error_delay(*id, error, failures);
        Runner::new(keys, Arc::clone(&self.clock))
            .concurrency(self.policy.concurrency)
            .on_queue_length(|length| {
                gauge!("fleetwright_region_servers_queued", "region" => self.label())
                    .set(length as f64);
            })
            .run(|id| self.reconcile(id), error_policy)
            .await;
    }

    /// Returns the delay before a server whose reconcile failed is reconciled again.
    fn error_delay(&self, id: ServerId, error: &StoreError, failures: u32) -> Duration {
        if error.conflict().is_some() && failures <= CONFLICTS {
            // Another writer changed the record first: read it again at once.
            return Duration::ZERO;
        }
        counter!("fleetwright_region_store_failures_total", "region" => self.label()).increment(1);
        tracing::warn!(server = %id, %error, failures, "a store error stopped a reconcile; it is retried");
        match error.advice() {
            Advice::ReadAgain | Advice::Later => self.policy.backoff(id, failures),
            Advice::GiveUp => self.policy.refused_backoff,
        }
    }

    /// Returns the servers of the region that a commit changed.
    fn keys_of(&self, commit: &Commit) -> Vec<ServerId> {
        let ids = commit.changes.iter().filter_map(|change| {
            let record = change.record();
            let region = record.value.pointer("/region")?.as_str()?;
            (region == self.region.as_str()).then(|| id_of(&record.id.key))?
        });
        ids.collect()
    }

    /// Lists all servers of the region, and watches from there.
    async fn list_all(&self) -> Result<(Vec<ServerId>, Watch), StoreError> {
        let by_region = IndexName::new(REGION_INDEX)?;
        let query = self.servers.by(&by_region, self.region.as_str());
        let page = self.servers.list_all(&query).await?;
        for damaged in &page.damaged {
            counter!("fleetwright_region_unreadable_total", "region" => self.label()).increment(1);
            tracing::warn!(record = %damaged.id, reason = %damaged.reason, "a server cannot be read");
        }
        let interest = Interest::kinds([fleetwright_store::Kind::new(Server::KIND)?]);
        let watch = self.store.watch(page.revision, interest).await?;
        let ids = page.items.iter().map(|item| item.value.id).collect();
        Ok((ids, watch))
    }

    fn label(&self) -> String {
        self.region.to_string()
    }
}

fn id_of(key: &Key) -> Option<ServerId> {
    key.as_str().parse().ok()
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}
