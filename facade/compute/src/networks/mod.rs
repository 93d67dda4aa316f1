//! The network deletion controller: deletes the instances of networks whose deletion was requested, and then the networks.
//!
//! Only a call deletes a network. A network that does not exist, or that no mapping names, never causes the deletion of instances. Each
//! instance is marked in a transaction of its own, as if its tenant had deleted it, and the controller of instances deletes it. Once the
//! network has no instance, its record is deleted. A crash at any point leaves valid marks and a network in deletion, from which
//! the next process continues.

mod mark;

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fleetwright_identity::{AuditLog, Principal};
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
    controller::{ControllerPolicy, advice, after, is_conflict},
    instance::Instance,
};

/// Deletes the instances of networks that are being deleted, and then the networks. Clones share everything.
///
/// ```
/// use fleetwright_compute::{networks::NetworkDeletionController, service::compute_principal};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let facade = fleetwright_facade_testkit::TestFacade::new().await;
/// # let (store, networks, clock) = (facade.store.clone(), facade.networks.clone(), facade.clock.clone());
/// let controller = NetworkDeletionController::new(store, networks, clock, compute_principal()?)?;
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
/// - No instance is deleted because of its network unless the network's own record says that it is being deleted.
/// - Every instance of a network in deletion is marked, each with an event. A failure is counted and retried, and delays no other
///   instance.
/// - A network's record is deleted only by a transaction that checks that nothing refers to it.
///
/// # Assumptions
///
/// A [controller](crate::controller::Controller) of instances works on the same store: without it instances are marked
/// and never deleted.
#[derive(Clone)]
pub struct NetworkDeletionController {
    store: Arc<dyn Store>,
    instances: Table<Instance>,
    networks: Arc<Networks>,
    clock: Arc<dyn Clock>,
    service: Principal,
    policy: ControllerPolicy,
    audit: Option<AuditLog>,
    /// Networks in which every instance is marked. Marking once is enough: a network in deletion accepts no new instance, and marks are
    /// never removed.
    marked: Arc<Mutex<BTreeSet<NetworkId>>>,
}

impl NetworkDeletionController {
    /// Creates the controller of a store with [every kind](crate::schema::add_all_kinds). It lists and deletes networks as `service`.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the store's schema lacks a kind or the index of instances by network.
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
            policy: ControllerPolicy::default(),
            audit: None,
            marked: Arc::default(),
        })
    }

    /// Adds an entry to the audit log for every instance that is deleted with its network. Without it none is added.
    #[must_use]
    pub fn with_audit(mut self, audit: AuditLog) -> Self {
        self.audit = Some(audit);
        self
    }

    /// Sets another policy.
    #[must_use]
    pub fn with_policy(mut self, policy: ControllerPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Reconciles one network: if it is being deleted, marks its instances, and deletes its record if it has none.
    ///
    /// # Errors
    ///
    /// If a record cannot be read or written. The reconcile is safe to repeat.
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
            return Ok(self.recheck());
        }
        match self.networks.finish(&self.service, id).await? {
            Deletion::Deleted => {
                self.marked().remove(&id);
                counter!("fleetwright_compute_networks_deleted_total").increment(1);
                tracing::info!("the network is deleted");
                Ok(Action::AwaitChange)
            }
            Deletion::Waiting => {
                tracing::warn!(
                    "the network has no instance, and other records still refer to it; its deletion waits for them"
                );
                Ok(self.recheck())
            }
        }
    }

    /// Reconciles networks until the future is dropped.
    pub async fn run(&self) {
        let keys = watch_keys("networks", || self.list_all(), keys_of);
        let error_policy =
            |id: &NetworkId, error: &ComputeError, failures| self.error_delay(*id, error, failures);
        Runner::new(keys, Arc::clone(&self.clock))
            .concurrency(self.policy.concurrency)
            .on_queue_length(|length| {
                gauge!("fleetwright_compute_networks_queued").set(length as f64);
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
            Advice::ReadAgain | Advice::Later => self.policy.backoff(id.as_uuid(), failures),
            Advice::GiveUp => self.policy.refused_backoff,
        }
    }

    /// Lists the networks that are being deleted, with a watch from before the list.
    async fn list_all(&self) -> Result<(Vec<NetworkId>, Watch), RecordError> {
        let head = self.store.head().await?;
        let deleting = self.networks.deleting(&self.service).await?;
        for damaged in &deleting.damaged {
            counter!("fleetwright_compute_unreadable_records_total").increment(1);
            tracing::warn!(record = %damaged.id, reason = %damaged.reason, "a network that is being deleted cannot be read");
        }
        let kinds = [
            Kind::new(fleetwright_region::schema::NETWORK_KIND)?,
            self.instances.kind().clone(),
        ];
        let watch = self.store.watch(head, Interest::kinds(kinds)).await?;
        let ids = deleting.items.iter().map(|found| found.value.id).collect();
        Ok((ids, watch))
    }

    fn recheck(&self) -> Action {
        Action::RequeueAt(after(self.clock.now(), self.policy.network_recheck))
    }

    fn marked(&self) -> MutexGuard<'_, BTreeSet<NetworkId>> {
        self.marked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The networks whose deletion a commit requests, and those whose instances it deletes.
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
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
