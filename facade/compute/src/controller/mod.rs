//! The controller of instances: has each instance realised by one server, and tells its tenant what became of it.
//!
//! It asks the region for servers and never a cloud. It is woken by the store's watch: by a change of an instance's own record, and by
//! one of its server's, which names its owner. It reads the instance and its server, [decides](decide()), carries out one
//! [step](Step) and writes the instance's status if that is news. Nothing in a pass grows with the fleet.
//!
//! # Steps
//!
//! | the instance | its server | step | then |
//! | --- | --- | --- | --- |
//! | is asked for | never was | make | it is there |
//! | is asked for | is gone, by nobody's word here | wait | its tenant asks for a replacement: make |
//! | is asked for | is another owner's | wait | an operator has seen to it |
//! | is asked for | is being deleted by an operator | wait | it is gone |
//! | is asked for | was asked for something else | pass | it has heard; or consent is needed, or it is refused, in words |
//! | is asked for | has heard, and is not there yet | wait | it is |
//! | is asked for | is as asked for | rest | |
//! | is to go | is there | end | it is being deleted |
//! | is to go | is being deleted | wait | it is gone |
//! | is to go | is not there, or another owner's | forget | the instance and what pays for it are gone, in one transaction |
//!
//! # What a crash leaves
//!
//! A wish of a server is one transaction, and so is a status. Whoever dies between the two leaves a server that has heard and a status
//! that does not say so; the next pass finds nothing to ask for and writes the status. The transaction that makes a server
//! checks the instance's record, and the one that lets an instance be gone checks that it has no server: so there is never a server
//! without its instance, whoever is late.

mod act;
#[cfg(test)]
mod any;
mod board;
mod decide;
mod failure;
mod orphans;
mod project;
mod rules;
#[cfg(test)]
mod tests;
mod trouble;
mod wakes;
mod words;

use std::{fmt, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright_identity::{Ledger, Principal};
use fleetwright_region::server::{Server, ServerError, Servers};
use fleetwright_runtime::{Action, Runner, clock::Clock, watch_keys};
use fleetwright_store::{Advice, Document as _, Invalid, Kind, Store, Table};
use metrics::{counter, gauge};
use tracing::Instrument as _;

pub use decide::{Step, Wait, decide};
pub(crate) use failure::{advice, is_conflict};
pub use orphans::OrphanServer;
pub use project::{Found, Obstacle, happened, project};
pub use rules::Rules;
pub(crate) use rules::after;

use crate::{
    ComputeError,
    instance::{Instance, InstanceId},
};
use board::Board;

/// Has each instance realised by one server. Clones are the same.
///
/// # Guarantees
///
/// - At most one server for each instance, and none without one, whatever is dropped, dies, fails or is lost, and whenever.
/// - Every instance comes to what its record asks for, once the region, the store and what its tenant consented to let it. What is in
///   the way is in its status, in words.
/// - Nothing that destroys a disk or addresses is asked of a server unless the tenant consented to that in the record.
/// - An instance and what pays for it end together, and not before its server.
/// - Dropping [`run`](Self::run) at any point is as safe as killing the process.
///
/// # Assumptions
///
/// The region's controllers and monitors work on the same store. One controller works on it at a time; several do the same work
/// several times, and are held apart by the records' revisions.
#[derive(Clone)]
pub struct Controller {
    store: Arc<dyn Store>,
    instances: Table<Instance>,
    server_kind: Kind,
    servers: Servers,
    ledger: Ledger,
    clock: Arc<dyn Clock>,
    service: Principal,
    rules: Rules,
    board: Board,
}

impl Controller {
    /// The controller of all instances of a store with [every kind](crate::schema::add_all_kinds). The servers know every
    /// region; `service` is whom they are asked by, who may do everything to them and see what they stand on.
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
            rules: Rules::default(),
            board: Board::default(),
        })
    }

    /// With other rules.
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// One pass over one instance: reads it and its server, decides, carries out one step.
    pub async fn reconcile(&self, id: InstanceId) -> Result<Action, ComputeError> {
        let span = tracing::info_span!("instance", %id);
        self.one_pass(id).instrument(span).await
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
        let answer = self.act(read, server.as_ref(), step).await;
        let waits_for = match step {
            Step::Forget if answer.is_ok() => None,
            Step::Rest => None,
            Step::Make | Step::Pass | Step::End | Step::Forget | Step::Wait(_) => Some(step.name()),
        };
        self.board.set(id, waits_for);
        answer
    }

    /// Reconciles instances until the future is dropped.
    pub async fn run(&self) {
        let keys = watch_keys("instances", || self.list_all(), wakes::keys_of);
        let error_policy = |id: &InstanceId, error: &ComputeError, failures| {
            self.error_delay(*id, error, failures)
        };
        Runner::new(keys, Arc::clone(&self.clock))
            .concurrency(self.rules.concurrency)
            .on_queue_length(|length| {
                gauge!("fleetwright_compute_instances_queued").set(length as f64)
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
        counter!("fleetwright_compute_pass_failures_total").increment(1);
        let cause = error as &dyn std::error::Error;
        tracing::warn!(instance = %id, error = cause, failures, "the reconcile of an instance failed; it is retried");
        match advice(error) {
            Advice::ReadAgain | Advice::Later => self.rules.backoff(id.as_uuid(), failures),
            Advice::GiveUp => self.rules.refused_backoff,
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
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
