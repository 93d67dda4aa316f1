//! The server controller: makes of each server in a region what its record asks for.
//!
//! Owns the order of calls to the cloud for a server and nothing else: what is asked for is the
//! [service](crate::server::Servers)'s, what is seen is the [monitor](crate::monitor)'s. It is woken by the store's watch with
//! a key and no data, reads that server and the region's pulse, [decides](decide()) and carries out one [step](Step).
//! Nothing in a pass grows with the fleet.
//!
//! # Drawing
//!
//! A server's [stage](Stage) follows from its record. Each line is a stage, a step that may be decided there, and the stages
//! that the record is in once the step has succeeded; a test compares all of it with the code. What the monitor sees moves a
//! server on, too: from `unseen` to `booting`, from there to `running`, and so on as the cloud's own state machine has it.
//!
//! ```text
//! new         --begin-->          unsettled
//! new         --forget-->         (nothing)
//! unsettled   --settle-->         unseen unlaunched
//! unlaunched  --resend-->         unsettled
//! unlaunched  --begin-changed-->  unsettled
//! unlaunched  --begin-retry-->    unsettled
//! unlaunched  --begin-replace-->  unsettled
//! unlaunched  --give-up-->        unlaunched
//! unlaunched  --forget-->         (nothing)
//! unseen      --terminate-->      ending
//! booting     --terminate-->      ending
//! starting    --terminate-->      ending
//! running     --terminate-->      ending
//! running     --stop-->           running
//! running     --reboot-->         running
//! running     --reimage-->        running
//! running     --retag-->          running
//! stopping    --terminate-->      ending
//! stopped     --terminate-->      ending
//! stopped     --start-->          stopped
//! stopped     --resize-->         stopped
//! stopped     --reimage-->        stopped
//! stopped     --retag-->          stopped
//! absent      --terminate-->      ending
//! ending      --terminate-->      ending
//! gone        --terminate-->      gone
//! gone        --begin-retry-->    unsettled
//! gone        --begin-replace-->  unsettled
//! gone        --give-up-->        gone
//! gone        --forget-->         (nothing)
//! running     --done-->           running
//! stopped     --done-->           stopped
//! ```
//!
//! In every stage there may also be a reason to wait.
//!
//! # What a crash leaves
//!
//! | it dies | the record says | the next process |
//! | --- | --- | --- |
//! | before a launch is stored | nothing of it | decides anew |
//! | after that, whether the cloud got it or not | `unsettled`, with its token | looks the token up; past the consistency window it sends the same launch again |
//! | before the machine's id is stored | the same | finds the machine by the token |
//! | before or after any other call | what was true before it | makes the call again, which is idempotent; only a reboot may happen twice |
//! | before the record is deleted | that the machine is gone | deletes it |
//!
//! The incarnation is raised in the transaction that decides to launch anew, and that transaction takes the old machine out of
//! the record; it happens only once the old machine is known to be gone. So there is at most one machine for each server, and a
//! token whose machine was recorded is never sent again.

mod act;
#[cfg(test)]
mod any;
mod decide;
#[cfg(test)]
mod drawing;
mod edit;
mod launch;
pub(crate) mod queue;
mod rules;
mod stage;
mod step;
pub mod tags;

use std::{fmt, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::InstanceProvisioner;
use fleetwright_store::{
    Advice, Document as _, IndexName, Interest, Invalid, Key, Store, StoreError, Table, Watch,
};
use futures_util::{
    Stream, StreamExt as _,
    stream::{self, FuturesUnordered},
};
use metrics::{counter, gauge};
use tokio::time::{Instant, sleep, sleep_until};

use crate::{
    clock::{Clock, between},
    ids::RegionId,
    mapping::LaunchPlanner,
    monitor::Pulse,
    network::SshAuthority,
    server::{REGION_INDEX, Server, ServerId},
};

pub use act::Next;
pub use decide::{Facts, decide};
pub use rules::Rules;
pub(crate) use rules::doubling;
pub use stage::Stage;
pub use step::{Begin, GiveUp, Step, Wait};

use queue::Queue;

/// The least time that passes between two moments that must differ.
const TURN: Duration = Duration::from_millis(1);
/// How long a watch that failed is left alone.
const WATCH_AGAIN: Duration = Duration::from_secs(2);

/// Makes of each server in a region what its record asks for.
///
/// # Guarantees
///
/// - At most one machine for each server, whatever is dropped, dies, fails or is lost, and whenever.
/// - Every server comes to what its record asks for, once the cloud and the store let it.
/// - Dropping [`run`](Self::run) at any point is as safe as killing the process.
///
/// # Assumptions
///
/// A [monitor](crate::monitor::Monitor) looks at the same region: without it machines are launched and never seen. One controller
/// works on a region at a time; two do the same work twice, and are held apart by the records' revisions and the launch
/// tokens for as long as the cloud remembers those. The clocks of the processes differ by much less than the consistency
/// window of the cloud.
#[derive(Clone)]
pub struct Controller {
    region: RegionId,
    store: Arc<dyn Store>,
    servers: Table<Server>,
    pulses: Table<Pulse>,
    authorities: Table<SshAuthority>,
    cloud: Arc<dyn InstanceProvisioner>,
    planner: Arc<dyn LaunchPlanner>,
    clock: Arc<dyn Clock>,
    rules: Rules,
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
        Ok(Self {
            region,
            servers: Table::new(Arc::clone(&store))?,
            pulses: Table::new(Arc::clone(&store))?,
            authorities: Table::new(Arc::clone(&store))?,
            store,
            cloud,
            planner,
            clock,
            rules: Rules::default(),
        })
    }

    /// With other rules.
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// One pass over one server: reads it, decides, carries out one step.
    pub async fn reconcile(&self, id: ServerId) -> Result<Next, StoreError> {
        let Some(read) = self.servers.get(&id.key()?).await? else {
            return Ok(Next::Idle);
        };
        if read.value.region != self.region {
            return Ok(Next::Idle);
        }
        let pulse = self.pulses.get(&Pulse::key(&self.region)?).await?;
        let capabilities = self.cloud.capabilities();
        let facts = Facts {
            verbs: &capabilities.verbs,
            window: capabilities.consistency_window,
            pulse: pulse.as_ref().map(|pulse| &pulse.value),
            rules: &self.rules,
        };
        let step = decide(&read.value, &facts, self.clock.now());
        let labels = [("region", self.label()), ("step", step.name().to_owned())];
        counter!("fleetwright_region_steps_total", &labels).increment(1);
        tracing::debug!(server = %id, step = step.name(), "reconcile");
        self.act(read, step).await
    }

    /// Works until it is dropped.
    pub async fn run(&self) {
        let mut queue = Queue::default();
        let mut woken = Box::pin(self.wakes());
        let mut working = FuturesUnordered::new();
        loop {
            while working.len() < self.rules.concurrency.get() {
                let Some(id) = queue.take(Instant::now()) else {
                    break;
                };
                working.push(async move { (id, self.reconcile(id).await) });
            }
            gauge!("fleetwright_region_servers_waiting", "region" => self.label())
                .set(waiting(&queue));
            let due = queue.next_due();
            let room = working.len() < self.rules.concurrency.get();
            tokio::select! {
                biased;
                Some(ids) = woken.next() => ids.into_iter().for_each(|id| queue.wake(&id)),
                Some((id, answer)) = working.next() => self.ended(&mut queue, id, answer),
                () = until(due), if room => {}
            }
        }
    }

    fn ended(&self, queue: &mut Queue<ServerId>, id: ServerId, answer: Result<Next, StoreError>) {
        let failures = queue.ended(&id, answer.is_err());
        match answer {
            Ok(Next::Again) => queue.wake(&id),
            Ok(Next::At(date)) => queue.wake_at(&id, self.instant(date)),
            Ok(Next::Idle) => queue.rest(&id),
            // Somebody else wrote the record: it is read again, and they are ahead.
            Err(error) if error.conflict().is_some() => queue.wake(&id),
            Err(error) => {
                counter!("fleetwright_region_store_failures_total", "region" => self.label())
                    .increment(1);
                tracing::warn!(server = %id, %error, "the store failed a pass; it is made again");
                let delay = match error.advice() {
                    Advice::ReadAgain | Advice::Later => self.rules.backoff(id, failures),
                    Advice::GiveUp => self.rules.refused_backoff,
                };
                queue.wake_at(&id, Instant::now() + delay);
            }
        }
    }

    /// The servers to look at: first all of the region, then each one whose record changes.
    fn wakes(&self) -> impl Stream<Item = Vec<ServerId>> + Send {
        stream::unfold(None, move |watch: Option<Watch>| async move {
            let mut watch = match watch {
                Some(watch) => watch,
                None => return Some(self.catch_up().await),
            };
            loop {
                match watch.next().await {
                    Ok(commit) => {
                        let ids = commit.changes.iter().filter_map(|change| {
                            let record = change.record();
                            let region = record.value.pointer("/region")?.as_str()?;
                            (region == self.region.as_str()).then(|| id_of(&record.id.key))?
                        });
                        let ids: Vec<_> = ids.collect();
                        if !ids.is_empty() {
                            return Some((ids, Some(watch)));
                        }
                    }
                    Err(error) if error.advice() == Advice::Later => {
                        tracing::warn!(%error, "the watch of servers failed; it goes on");
                        sleep(WATCH_AGAIN).await;
                    }
                    Err(error) => {
                        tracing::warn!(%error, "the watch of servers ended; all are listed again");
                        sleep(WATCH_AGAIN).await;
                        return Some((Vec::new(), None));
                    }
                }
            }
        })
    }

    /// All servers of the region, and a watch from there; again until the store lets it.
    async fn catch_up(&self) -> (Vec<ServerId>, Option<Watch>) {
        loop {
            match self.all().await {
                Ok((ids, watch)) => return (ids, Some(watch)),
                Err(error) => {
                    tracing::warn!(%error, "servers cannot be listed; it is tried again");
                    sleep(WATCH_AGAIN).await;
                }
            }
        }
    }

    async fn all(&self) -> Result<(Vec<ServerId>, Watch), StoreError> {
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

    fn instant(&self, date: DateTime<Utc>) -> Instant {
        let delay = between(self.clock.now(), date).max(TURN);
        let far = Duration::from_secs(3600);
        Instant::now() + delay.min(far)
    }

    fn label(&self) -> String {
        self.region.to_string()
    }
}

fn id_of(key: &Key) -> Option<ServerId> {
    key.as_str().parse().ok()
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
fn waiting(queue: &Queue<ServerId>) -> f64 {
    queue.waiting() as f64
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}
