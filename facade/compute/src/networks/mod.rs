//! Networks that are going take their instances with them.
//!
//! A network goes because somebody asked for that, by a call, and for no other reason: a network that is not there, or that no file
//! names, says nothing about its instances. Each instance in it is marked as its tenant would, one transaction each, and ends as every
//! other does; once nothing stands in the network, it is let go. Whoever dies at any point leaves marks that hold and a network that
//! is still going, from which the next one goes on.

mod mark;

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fleetwright_identity::Principal;
use fleetwright_region::{
    ids::NetworkId,
    network::{Deletion, NetworkState, Networks, RecordError},
};
use fleetwright_runtime::{Action, Runner, clock::Clock, watch_keys};
use fleetwright_store::{
    Advice, Change, Commit, Interest, Invalid, Kind, Record, Store, Table, Watch,
};
use metrics::{counter, gauge};
use tracing::Instrument as _;

use crate::{
    ComputeError,
    controller::{Rules, advice, after, is_conflict},
    instance::Instance,
};

/// Deletes what stands in networks that are going, and lets them be gone. Clones are the same.
///
/// # Guarantees
///
/// - No instance goes by its network unless the network's own record says that it is going.
/// - Every instance of such a network is marked, each with an event; what fails is counted, holds up no other one, and is tried again.
/// - A network is let go only by a transaction that proves that nothing stands in it.
///
/// # Assumptions
///
/// A [controller](crate::controller::Controller) of instances works on the same store: without it they are marked and stay.
#[derive(Clone)]
pub struct NetworkDeletionController {
    store: Arc<dyn Store>,
    instances: Table<Instance>,
    networks: Arc<Networks>,
    clock: Arc<dyn Clock>,
    service: Principal,
    rules: Rules,
    /// Networks in which every instance is marked. Nothing new comes into a network that is going, and no mark is taken back, so
    /// that once is enough.
    marked: Arc<Mutex<BTreeSet<NetworkId>>>,
}

impl NetworkDeletionController {
    /// Of a store with [every kind](crate::schema::add_all_kinds). `service` is in whose name networks are listed and let go.
    pub fn new(
        store: Arc<dyn Store>,
        networks: Arc<Networks>,
        clock: Arc<dyn Clock>,
        service: Principal,
    ) -> Result<Self, Invalid> {
        crate::schema::INSTANCE_NETWORK.check_schema(store.schema())?;
        Ok(Self {
            instances: Table::new(Arc::clone(&store))?,
            store,
            networks,
            clock,
            service,
            rules: Rules::default(),
            marked: Arc::default(),
        })
    }

    /// With other rules.
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// One pass over one network: if it is going, marks what stands in it, and lets it be gone if nothing does.
    pub async fn reconcile(&self, id: NetworkId) -> Result<Action, ComputeError> {
        let span = tracing::info_span!("network", %id);
        self.one_pass(id).instrument(span).await
    }

    async fn one_pass(&self, id: NetworkId) -> Result<Action, ComputeError> {
        let found = match self.networks.get(&self.service, id).await {
            Ok(found) => found,
            Err(RecordError::NotFound { .. }) => {
                self.marked().remove(&id);
                return Ok(Action::AwaitChange);
            }
            Err(error) => return Err(error.into()),
        };
        match found.value.state {
            NetworkState::Ready => return Ok(Action::AwaitChange),
            NetworkState::Deleting => {}
        }
        let known = self.marked().contains(&id);
        if !known {
            self.mark_all(id).await?;
            self.marked().insert(id);
        }
        if !self.is_empty(id).await? {
            return Ok(self.look_again());
        }
        match self.networks.finish(&self.service, id).await? {
            Deletion::Deleted => {
                self.marked().remove(&id);
                counter!("fleetwright_compute_networks_deleted_total").increment(1);
                tracing::info!("the network is gone");
                Ok(Action::AwaitChange)
            }
            Deletion::Waiting => {
                tracing::warn!("something that is no instance stands in a network that is going");
                Ok(self.look_again())
            }
        }
    }

    /// Reconciles networks until the future is dropped.
    pub async fn run(&self) {
        let keys = watch_keys("networks", || self.list_all(), keys_of);
        let error_policy =
            |id: &NetworkId, error: &ComputeError, failures| self.error_delay(*id, error, failures);
        Runner::new(keys, Arc::clone(&self.clock))
            .concurrency(self.rules.concurrency)
            .on_queue_length(|length| {
                gauge!("fleetwright_compute_networks_queued").set(length as f64)
            })
            .run(|id| self.reconcile(id), error_policy)
            .await;
    }

    /// Returns the delay before a key whose reconcile failed is reconciled again.
    fn error_delay(&self, id: NetworkId, error: &ComputeError, failures: u32) -> Duration {
        if is_conflict(error) {
            // Another writer changed a record first: read it again at once.
            return Duration::ZERO;
        }
        counter!("fleetwright_compute_network_reconcile_failures_total").increment(1);
        let cause = error as &dyn std::error::Error;
        tracing::warn!(network = %id, error = cause, failures, "the reconcile of a deleted network failed; it is retried");
        match advice(error) {
            Advice::ReadAgain | Advice::Later => self.rules.backoff(id.as_uuid(), failures),
            Advice::GiveUp => self.rules.refused_backoff,
        }
    }

    /// All networks that are going, and a watch from before they were listed.
    async fn list_all(&self) -> Result<(Vec<NetworkId>, Watch), RecordError> {
        let head = self.store.head().await?;
        let going = self.networks.deleting(&self.service).await?;
        for damaged in &going.damaged {
            counter!("fleetwright_compute_unreadable_records_total").increment(1);
            tracing::warn!(record = %damaged.id, reason = %damaged.reason, "a network that is going cannot be read");
        }
        let kinds = [
            Kind::new(fleetwright_region::schema::NETWORK_KIND)?,
            self.instances.kind().clone(),
        ];
        let watch = self.store.watch(head, Interest::kinds(kinds)).await?;
        let ids = going.items.iter().map(|found| found.value.id).collect();
        Ok((ids, watch))
    }

    fn look_again(&self) -> Action {
        Action::RequeueAt(after(self.clock.now(), self.rules.network_recheck))
    }

    fn marked(&self) -> MutexGuard<'_, BTreeSet<NetworkId>> {
        self.marked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The networks that a commit asks to go, and those that an instance has left.
fn keys_of(commit: &Commit) -> Vec<NetworkId> {
    let ids = commit.changes.iter().filter_map(|change| match change {
        Change::Put(record)
            if record.id.kind.as_str() == fleetwright_region::schema::NETWORK_KIND =>
        {
            let deleting = text(record, "/state") == Some("deleting");
            deleting.then(|| text(record, "/id"))?
        }
        Change::Deleted(record) if record.id.kind.as_str() == crate::schema::INSTANCE_KIND => {
            text(record, "/network")
        }
        Change::Put(_) | Change::Deleted(_) => None,
    });
    ids.filter_map(|id| NetworkId::new(id).ok()).collect()
}

fn text<'r>(record: &'r Record, path: &str) -> Option<&'r str> {
    record.value.pointer(path)?.as_str()
}

impl fmt::Debug for NetworkDeletionController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkDeletionController")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
