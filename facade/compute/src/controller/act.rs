//! Carrying out a step: at most one call of the region, then one write of the instance if its status changed. A new server and the
//! status that names it are written in one transaction.
//!
//! Every call of the region checks, in its transaction, that the instance's record is still at the revision that was read. So no
//! server is created for an instance that is gone, and the server of a later instance with the same id is never deleted on behalf of
//! an earlier one.

use fleetwright_region::server::{
    Consent, EnsuredServer, Field, NewServer, OWNER_INDEX, Server, ServerError, ServerView,
};
use fleetwright_runtime::Action;
use fleetwright_store::{
    Check, Claim, IndexName, IndexValue, Scalar, StoreError, Transaction, Versioned,
};
use metrics::{counter, histogram};

use super::{
    Controller, Inputs, Obstacle, Step, Wait, events_between,
    failure::store_error,
    obstacles::{Failure, classify, is_retried, obstacle},
    project,
};
use crate::{
    ComputeError,
    instance::{ConditionKind, Instance},
};

pub(super) type Outcome = Result<Action, ComputeError>;
pub(super) type Read = Versioned<Instance>;

impl Controller {
    /// Carries out a step that was decided on this very record.
    pub(super) async fn act(&self, read: Read, server: Option<&Server>, step: Step) -> Outcome {
        match step {
            Step::CreateServer => self.create_server(read).await,
            Step::Apply => self.apply(read, server).await,
            Step::DeleteServer => self.delete_server(read).await,
            Step::RemoveInstance => self.remove_instance(read).await,
            Step::Wait(wait) => {
                let obstacle = obstacle(wait);
                // A server of another owner is not shown.
                let own = server.filter(|_| wait != Wait::ServerConflict);
                self.show(read, own, obstacle.as_ref()).await
            }
            Step::Idle if has_shrunk(&read.value, server) => self.release_rest(read).await,
            Step::Idle => self.show(read, server, None).await,
        }
    }

    async fn create_server(&self, read: Read) -> Outcome {
        let instance = &read.value;
        let desired = instance.desired_state();
        let mut new = NewServer::new(
            instance.server,
            instance.id.owner(),
            instance.region.clone(),
            (instance.organization, instance.project),
            desired.spec,
        );
        new.intent = desired.intent;
        new.guards = self.guards(&read);
        // The status with the new server is written in the transaction that creates it.
        let shown = |server: &Server| {
            let shown = self.shown(&read, Some(server), None);
            match &shown.instance {
                Some(instance) => self.instances.replace(Transaction::new(), &read, instance),
                None => Ok(Transaction::new()),
            }
        };
        match self.servers.ensure_with(&self.service, &new, shown).await {
            Ok(EnsuredServer::Created(view)) => {
                let shown = self.shown(&read, Some(&view.server), None);
                self.report_shown(&read.value, &shown);
                Ok(shown.next)
            }
            Ok(EnsuredServer::Existing(view)) => self.show(read, Some(&view.server), None).await,
            Err(error) => self.report_failure(read, None, error).await,
        }
    }

    async fn apply(&self, read: Read, server: Option<&Server>) -> Outcome {
        let instance = &read.value;
        let consent = instance.consent;
        let (desired, guards) = (instance.desired_state(), self.guards(&read));
        let applied =
            self.servers
                .apply_if(&self.service, instance.server, &desired, consent, &guards);
        match applied.await {
            Ok((ServerView { server, .. }, _)) => self.show(read, Some(&server), None).await,
            Err(error) => match (classify(error), server) {
                (Failure::Reported(refusal), Some(server)) => {
                    self.apply_power(read, server, refusal).await
                }
                (failure, server) => self.report(read, server, failure).await,
            },
        }
    }

    /// Applies the requested power state and reboots although the requested spec is refused, and reports the refusal. The server keeps its
    /// spec and its machine.
    async fn apply_power(&self, read: Read, server: &Server, refusal: Obstacle) -> Outcome {
        let mut desired = read.value.desired_state();
        desired.spec = server.spec.clone();
        desired.intent.replaces = server.intent.replaces;
        if desired.holds_for(server) {
            return self.show(read, Some(server), Some(&refusal)).await;
        }
        let (id, guards) = (read.value.server, self.guards(&read));
        let keep = Consent::KeepEverything;
        let applied = self
            .servers
            .apply_if(&self.service, id, &desired, keep, &guards);
        match applied.await {
            Ok((view, _)) => self.show(read, Some(&view.server), Some(&refusal)).await,
            Err(error) => self.report_failure(read, Some(server), error).await,
        }
    }

    /// Requests the deletion of the server. The end of its record wakes the instance.
    async fn delete_server(&self, read: Read) -> Outcome {
        let guards = self.guards(&read);
        let id = read.value.server;
        match self.servers.delete_if(&self.service, id, &guards).await {
            Ok(view) => self.show(read, Some(&view.server), None).await,
            Err(error) => self.report_failure(read, None, error).await,
        }
    }

    /// Deletes the instance and its allocation in one transaction, which checks that it has no server.
    async fn remove_instance(&self, read: Read) -> Outcome {
        let transaction = self.instances.remove(Transaction::new(), &read);
        let transaction = transaction.check(self.check_no_server(&read.value)?);
        match self.release(&read, transaction).await {
            Ok(()) => {}
            // No server can have been created since the instance was read: one exists that has another id.
            Err(error) if is_served(&error) => {
                let served = obstacle(Wait::ServerConflict);
                return self.show(read, None, served.as_ref()).await;
            }
            Err(error) => return Err(error),
        }
        counter!("fleetwright_compute_instances_deleted_total").increment(1);
        if let Some(mark) = &read.value.deletion {
            histogram!("fleetwright_compute_deletion_seconds").record(self.seconds_since(mark.at));
        }
        tracing::info!("the instance is deleted");
        Ok(Action::AwaitChange)
    }

    /// Releases what the machine used before its last change, in the transaction that removes the note of it.
    async fn release_rest(&self, read: Read) -> Outcome {
        let mut instance = read.value.clone();
        let Some(amounts) = instance.release_to.take() else {
            return Ok(Action::Requeue);
        };
        let charged = self.instances.id(&read.key);
        let replaced = self
            .instances
            .replace(Transaction::new(), &read, &instance)?;
        let build = || async {
            let recharged = self.ledger.recharge(replaced.clone(), &charged, &amounts);
            Ok::<_, ComputeError>(recharged.await?.transaction)
        };
        self.ledger.commit(instance.organization, build).await?;
        Ok(Action::Requeue)
    }

    /// Commits a transaction together with the release of an instance's allocation.
    async fn release(&self, read: &Read, transaction: Transaction) -> Result<(), ComputeError> {
        let charged = self.instances.id(&read.key);
        let build = || async {
            let transaction = transaction.clone();
            Ok::<_, ComputeError>(self.ledger.release(transaction, &charged).await?)
        };
        self.ledger.commit(read.value.organization, build).await?;
        Ok(())
    }

    /// The check that every transaction on the server includes.
    fn guards(&self, read: &Read) -> Vec<Check> {
        vec![Check::At(self.instances.id(&read.key), read.revision)]
    }

    /// The check that an instance has no server.
    fn check_no_server(&self, instance: &Instance) -> Result<Check, ComputeError> {
        let owner = instance.id.owner();
        let parts = [owner.kind, owner.id].map(Scalar::from);
        let index = IndexName::new(OWNER_INDEX)?;
        let claim = Claim::new(self.server_kind.clone(), index, IndexValue(parts.into()));
        Ok(Check::Unclaimed(claim))
    }

    async fn report_failure(
        &self,
        read: Read,
        server: Option<&Server>,
        error: ServerError,
    ) -> Outcome {
        self.report(read, server, classify(error)).await
    }

    async fn report(&self, read: Read, server: Option<&Server>, failure: Failure) -> Outcome {
        match failure {
            Failure::Reported(obstacle) => self.show(read, server, Some(&obstacle)).await,
            Failure::Stale => Ok(Action::Requeue),
            Failure::Retry(error) => Err(error.into()),
        }
    }

    /// Writes the status of an instance if it changed, and returns when to reconcile again.
    async fn show(
        &self,
        read: Read,
        server: Option<&Server>,
        obstacle: Option<&Obstacle>,
    ) -> Outcome {
        let shown = self.shown(&read, server, obstacle);
        if let Some(instance) = &shown.instance {
            let transaction = self
                .instances
                .replace(Transaction::new(), &read, instance)?;
            self.store.commit(&transaction).await?;
            self.report_shown(&read.value, &shown);
        }
        Ok(shown.next)
    }

    /// Returns an instance with its present status and the events that led to it.
    fn shown(&self, read: &Read, server: Option<&Server>, obstacle: Option<&Obstacle>) -> Shown {
        let now = self.clock.now();
        let plan = server.map(|server| self.servers.plan(server, &read.value.desired_state().spec));
        // There is no plan in a region that this process does not know.
        let plan = plan.and_then(Result::ok).unwrap_or_default();
        let found = Inputs {
            server,
            plan: &plan,
            obstacle,
        };
        let status = project(&read.value, &found, now);
        let next = match obstacle {
            Some(obstacle) if is_retried(obstacle.kind) => {
                let since = status
                    .condition(obstacle.kind)
                    .map_or(now, |held| held.since);
                Action::RequeueAt(self.policy.retry_refused_at(since, now))
            }
            Some(_) | None => Action::AwaitChange,
        };
        let changed = status != read.value.status;
        let instance = changed.then(|| {
            let mut instance = read.value.clone();
            for (kind, message) in events_between(&instance.status, &status) {
                instance.note(now, self.service.actor(), kind, message);
            }
            instance.status = status;
            instance
        });
        Shown { next, instance }
    }

    /// Logs and counts a status that was written.
    fn report_shown(&self, before: &Instance, shown: &Shown) {
        let Some(after) = &shown.instance else {
            return;
        };
        for (kind, message) in events_between(&before.status, &after.status) {
            tracing::info!(?kind, %message, "recorded an event");
        }
        self.count(before, &after.status);
    }

    /// Counts the conditions that a new status adds.
    fn count(&self, before: &Instance, status: &crate::instance::Status) {
        let begins =
            |kind| status.condition(kind).is_some() && before.status.condition(kind).is_none();
        if begins(ConditionKind::MachineRemoved) {
            counter!("fleetwright_compute_servers_missing_total").increment(1);
            tracing::warn!(
                "the server was deleted outside this service; its tenant has to replace the instance"
            );
        }
        if begins(ConditionKind::IdConflict) {
            counter!("fleetwright_compute_server_conflicts_total").increment(1);
            tracing::warn!(server = %before.server, "another server has the id of this instance's server: an operator has to resolve that");
        }
        if begins(ConditionKind::ConsentNeeded) {
            counter!("fleetwright_compute_consents_needed_total").increment(1);
        }
        let settled = status.observed_generation != before.status.observed_generation;
        let requested = before.modified.as_ref().map(|change| change.at);
        if settled {
            let requested = requested.unwrap_or(before.created_at);
            histogram!("fleetwright_compute_apply_seconds").record(self.seconds_since(requested));
        }
    }
}

/// What a reconcile shows of an instance.
struct Shown {
    /// When to reconcile again.
    next: Action,
    /// The instance with its new status, if the status changed.
    instance: Option<Instance>,
}

/// Whether an instance is charged for more than its spec, and its machine has the spec now. By the server's record, which is written after
/// the cloud has confirmed a change.
fn has_shrunk(instance: &Instance, server: Option<&Server>) -> bool {
    let Some(server) = server.filter(|_| instance.release_to.is_some()) else {
        return false;
    };
    let spec = instance.desired_state().spec;
    let charged = [Field::Flavor, Field::PublicIp];
    server.machine.as_ref().is_none_or(|machine| {
        let pending = machine.applied.changed(&spec);
        let is_pending =
            |field| pending.contains(field) || machine.unconfirmed.fields.contains(field);
        !charged.iter().any(is_pending)
    })
}

/// Whether a transaction failed because the instance has a server.
fn is_served(error: &ComputeError) -> bool {
    let conflict = store_error(error).and_then(StoreError::conflict);
    conflict.is_some_and(|conflict| matches!(conflict.check, Check::Unclaimed(_)))
}
