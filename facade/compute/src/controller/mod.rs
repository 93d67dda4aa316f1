//! The controller of instances: keeps one server for each instance, and records the instance's status.
//!
//! It calls the region and never a cloud. The store's watch wakes it: a change of an instance's record, or of its server's, which names
//! its owner. A reconcile reads the instance and its server, [decides](decide()), carries out one [step](Step), and writes the
//! instance's status if it changed. The cost of a reconcile does not grow with the number of instances.
//!
//! # Steps
//!
//! | the instance | its server | step | until |
//! | --- | --- | --- | --- |
//! | exists | was never created | create server | the server exists |
//! | exists | was deleted outside this service | wait | its tenant requests a replacement: create server |
//! | exists | belongs to another owner | wait | an operator has removed it |
//! | exists | is being deleted by an operator | wait | it is deleted |
//! | exists | has another desired state | apply | it has received the desired state; or consent is needed, or it is refused |
//! | exists | has not applied the desired state yet | wait | it has |
//! | exists | has applied everything | idle | |
//! | is being deleted | exists | delete server | it is being deleted |
//! | is being deleted | is being deleted | wait | it is deleted |
//! | is being deleted | does not exist, or belongs to another owner | remove instance | the instance and its allocation are gone, in one transaction |
//!
//! # What a crash leaves
//!
//! A call of the region is one transaction, and so is the write of a status. A crash between the two leaves a server with the desired
//! state and a status that does not say so; the next reconcile finds nothing to apply and writes the status. The transaction that
//! creates a server checks the instance's record, and the one that removes an instance checks that it has no server: so there is never
//! a server without its instance, however late a process is.

mod act;
mod decide;
mod failure;
mod messages;
mod obstacles;
mod orphans;
mod policy;
mod project;
#[cfg(test)]
mod tests;
mod wait_gauge;
mod wakes;

use std::{fmt, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright_identity::{Ledger, Principal};
use fleetwright_region::server::{Server, ServerError, Servers};
use fleetwright_runtime::{Action, Runner, clock::Clock, watch_keys};
use fleetwright_store::{Advice, Document as _, Invalid, Kind, Store, Table};
use metrics::{counter, gauge};
use tracing::Instrument as _;

pub use decide::{Step, Wait, decide};
use failure::is_left_alone;
pub(crate) use failure::{advice, is_conflict};
pub use orphans::OrphanServer;
pub use policy::ControllerPolicy;
pub(crate) use policy::after;
pub use project::{Inputs, Obstacle, events_between, project};

use crate::{
    ComputeError,
    instance::{Instance, InstanceId},
};
use wait_gauge::WaitGauge;

/// What the gauge calls an instance that this version leaves alone, because a newer one wrote its record or that of its server.
const LEFT_ALONE: &str = "left-alone";

/// Keeps one server for each instance. Clones share everything.
///
/// ```
/// use fleetwright_compute::{controller::{Controller, ControllerPolicy}, service::compute_principal};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let facade = fleetwright_facade_testkit::TestFacade::new().await;
/// # let (store, servers, ledger, clock) =
/// #     (facade.store.clone(), facade.servers.clone(), facade.ledger.clone(), facade.clock.clone());
/// let controller = Controller::new(store, servers, ledger, clock, compute_principal()?)?
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
/// - At most one server for each instance, and no server without an instance, at whatever point a future is dropped, a process dies, a call
///   fails or a response is lost.
/// - The desired state of every instance is applied once the region, the store and the tenant's consent permit it. What prevents that
///   is a condition in its status.
/// - No change that destroys a disk or addresses is applied to a server unless the record has the tenant's consent.
/// - An instance and its allocation are deleted together, and not before its server.
/// - Dropping [`run`](Self::run) at any point is as safe as killing the process.
///
/// # Assumptions
///
/// The region's controllers and monitors work on the same store. One controller works on it at a time; several repeat each other's
/// work, and the revisions of the records keep it consistent.
#[derive(Clone)]
pub struct Controller {
    store: Arc<dyn Store>,
    instances: Table<Instance>,
    server_kind: Kind,
    servers: Servers,
    ledger: Ledger,
    clock: Arc<dyn Clock>,
    service: Principal,
    policy: ControllerPolicy,
    waits: WaitGauge,
}

impl Controller {
    /// Creates the controller of all instances of a store with [every kind](crate::schema::add_all_kinds).
    ///
    /// `servers` must have every region. `service` is the principal of calls to the region, which needs the permissions of
    /// [`compute_permissions`](crate::service::compute_permissions).
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the store's schema lacks the kind of instances.
    pub fn new(
        store: Arc<dyn Store>,
        servers: Servers,
        ledger: Ledger,
        clock: Arc<dyn Clock>,
        service: Principal,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            instances: Table::new(Arc::clone(&store))?,
            server_kind: Kind::new(Server::KIND)?,
            store,
            servers,
            ledger,
            clock,
            service,
            policy: ControllerPolicy::default(),
            waits: WaitGauge::default(),
        })
    }

    /// Sets another policy.
    #[must_use]
    pub fn with_policy(mut self, policy: ControllerPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Reconciles one instance: reads it and its server, decides, carries out one step, and returns when to do so again.
    ///
    /// [`run`](Self::run) calls it; tests and tools can call it for one instance.
    ///
    /// # Errors
    ///
    /// If a record cannot be read or written, or the region fails. The reconcile is safe to repeat. A refused call is no error: it
    /// becomes a condition of the instance.
    pub async fn reconcile(&self, id: InstanceId) -> Result<Action, ComputeError> {
        let span = tracing::info_span!("instance", %id);
        let result = self.one_pass(id).instrument(span).await;
        if result.as_ref().is_err_and(is_left_alone) {
            self.waits.set(id, Some(LEFT_ALONE));
        }
        result
    }

    async fn one_pass(&self, id: InstanceId) -> Result<Action, ComputeError> {
        let Some(read) = self.instances.get(&id.key()?).await? else {
            return self.without_instance(id).await;
        };
        let server = match self.servers.read(&self.service, read.value.server).await {
            Ok(view) => Some(view.server),
            Err(ServerError::NotFound(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let step = decide(&read.value, server.as_ref());
        counter!("fleetwright_compute_steps_total", "step" => step.name()).increment(1);
        tracing::debug!(step = step.name(), "decided");
        let result = self.act(read, server.as_ref(), step).await;
        let waits_for = match step {
            Step::RemoveInstance if result.is_ok() => None,
            Step::Idle => None,
            Step::CreateServer
            | Step::Apply
            | Step::DeleteServer
            | Step::RemoveInstance
            | Step::Wait(_) => Some(step.name()),
        };
        self.waits.set(id, waits_for);
        result
    }

    /// Reconciles instances until the future is dropped.
    pub async fn run(&self) {
        let keys = watch_keys("instances", || self.list_all(), wakes::keys_of);
        let error_policy = |id: &InstanceId, error: &ComputeError, failures| {
            self.error_delay(*id, error, failures)
        };
        Runner::new(keys, Arc::clone(&self.clock))
            .concurrency(self.policy.concurrency)
            .on_queue_length(|length| {
                gauge!("fleetwright_compute_instances_queued").set(length as f64);
            })
            .run(|id| self.reconcile(id), error_policy)
            .await;
    }

    /// Returns the delay before a key whose reconcile failed is reconciled again.
    fn error_delay(&self, id: InstanceId, error: &ComputeError, failures: u32) -> Duration {
        if is_conflict(error) {
            // Another writer changed a record first: read it again at once.
            return Duration::ZERO;
        }
        counter!("fleetwright_compute_reconcile_failures_total").increment(1);
        let cause = error as &dyn std::error::Error;
        tracing::warn!(instance = %id, error = cause, failures, "the reconcile of an instance failed; it is retried");
        match advice(error) {
            Advice::ReadAgain | Advice::Later => self.policy.backoff(id.as_uuid(), failures),
            Advice::GiveUp => self.policy.refused_backoff,
        }
    }

    fn seconds_since(&self, date: DateTime<Utc>) -> f64 {
        let since = self.clock.now().signed_duration_since(date);
        since.to_std().unwrap_or_default().as_secs_f64()
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
