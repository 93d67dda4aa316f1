//! Carrying out a step: at most one wish of the server, then one write of the instance if anything about it has changed.
//!
//! Every wish has the instance's record, as it was read, among its checks. So nothing is asked of a server in the name of an
//! instance that has changed or is gone: no server is made for one that is no more, and a server that was made for a later
//! instance of the same id is not ended in an earlier one's name.

use fleetwright_region::server::{NewServer, OWNER_INDEX, Server, ServerError, ServerView};
use fleetwright_runtime::Action;
use fleetwright_store::{
    Check, Claim, IndexName, IndexValue, Scalar, StoreError, Transaction, Versioned,
};
use metrics::{counter, histogram};

use super::{
    Controller, Found, Obstacle, Step, Wait,
    failure::store_error,
    happened, project,
    trouble::{Trouble, is_asked_again, obstacle, trouble},
};
use crate::{
    ComputeError,
    instance::{ConditionKind, Instance},
};

pub(super) type Answer = Result<Action, ComputeError>;
pub(super) type Read = Versioned<Instance>;

impl Controller {
    /// Carries out a step that was decided on this very record.
    pub(super) async fn act(&self, read: Read, server: Option<&Server>, step: Step) -> Answer {
        match step {
            Step::Make => self.make(read).await,
            Step::Pass => self.pass(read, server).await,
            Step::End => self.end(read).await,
            Step::Forget => self.forget(read).await,
            Step::Wait(wait) => {
                let obstacle = obstacle(wait);
                // Another's server is no part of the instance.
                let own = server.filter(|_| wait != Wait::Taken);
                self.show(read, own, obstacle.as_ref()).await
            }
            Step::Rest => self.show(read, server, None).await,
        }
    }

    async fn make(&self, read: Read) -> Answer {
        let instance = &read.value;
        let wish = instance.wish();
        let mut new = NewServer::new(
            instance.server,
            instance.id.owner(),
            instance.region.clone(),
            (instance.organization, instance.project),
            wish.spec,
        );
        new.intent = wish.intent;
        new.guards = self.guards(&read);
        match self.servers.ensure(&self.service, &new).await {
            Ok(view) => self.show(read, Some(&view.server), None).await,
            Err(error) => self.not_granted(read, None, error).await,
        }
    }

    async fn pass(&self, read: Read, server: Option<&Server>) -> Answer {
        let instance = &read.value;
        let consent = instance.consent;
        let (wish, guards) = (instance.wish(), self.guards(&read));
        let applied =
            self.servers
                .apply_if(&self.service, instance.server, &wish, consent, &guards);
        match applied.await {
            Ok((ServerView { server, .. }, _)) => self.show(read, Some(&server), None).await,
            Err(error) => self.not_granted(read, server, error).await,
        }
    }

    /// Asks the server to go. Its end is told by its record, which wakes the instance.
    async fn end(&self, read: Read) -> Answer {
        let guards = self.guards(&read);
        let id = read.value.server;
        match self.servers.delete_if(&self.service, id, &guards).await {
            Ok(view) => self.show(read, Some(&view.server), None).await,
            Err(error) => self.not_granted(read, None, error).await,
        }
    }

    /// Lets the instance be gone, and what pays for it, in one transaction which proves that it has no server.
    async fn forget(&self, read: Read) -> Answer {
        let transaction = self.instances.remove(Transaction::new(), &read);
        let transaction = transaction.check(self.unserved(&read.value)?);
        match self.release(&read, transaction).await {
            Ok(()) => {}
            // None can have come since the instance was read: it is one that is not found where it should be.
            Err(error) if is_served(&error) => {
                let served = obstacle(Wait::Taken);
                return self.show(read, None, served.as_ref()).await;
            }
            Err(error) => return Err(error),
        }
        counter!("fleetwright_compute_instances_forgotten_total").increment(1);
        if let Some(mark) = &read.value.deletion {
            histogram!("fleetwright_compute_deletion_seconds").record(self.seconds_since(mark.at));
        }
        tracing::info!("the instance is gone");
        Ok(Action::AwaitChange)
    }

    /// Commits a transaction together with the end of what pays for an instance.
    async fn release(&self, read: &Read, transaction: Transaction) -> Result<(), ComputeError> {
        let paid = self.instances.id(&read.key);
        let build = || async {
            let transaction = transaction.clone();
            Ok::<_, ComputeError>(self.ledger.release(transaction, &paid).await?)
        };
        self.ledger.commit(read.value.organization, build).await?;
        Ok(())
    }

    /// What must hold of an instance in every transaction that asks something of its server.
    fn guards(&self, read: &Read) -> Vec<Check> {
        vec![Check::At(self.instances.id(&read.key), read.revision)]
    }

    /// That an instance has no server.
    fn unserved(&self, instance: &Instance) -> Result<Check, ComputeError> {
        let owner = instance.id.owner();
        let parts = [owner.kind, owner.id].map(Scalar::from);
        let index = IndexName::new(OWNER_INDEX)?;
        let claim = Claim::new(self.server_kind.clone(), index, IndexValue(parts.into()));
        Ok(Check::Unclaimed(claim))
    }

    async fn not_granted(&self, read: Read, server: Option<&Server>, error: ServerError) -> Answer {
        match trouble(error) {
            Trouble::Shown(obstacle) => self.show(read, server, Some(&obstacle)).await,
            Trouble::Stale => Ok(Action::Requeue),
            Trouble::Failed(error) => Err(error.into()),
        }
    }

    /// Writes down what is known of an instance, if that is news, and answers when to look again.
    async fn show(
        &self,
        read: Read,
        server: Option<&Server>,
        obstacle: Option<&Obstacle>,
    ) -> Answer {
        let now = self.clock.now();
        let plan = server.map(|server| self.servers.plan(server, &read.value.wish().spec));
        // A region that this process does not know has no plan that could be told.
        let plan = plan.and_then(Result::ok).unwrap_or_default();
        let found = Found {
            server,
            plan: &plan,
            obstacle,
        };
        let status = project(&read.value, &found, now);
        let next = match obstacle {
            Some(obstacle) if is_asked_again(obstacle.kind) => {
                let since = status
                    .condition(obstacle.kind)
                    .map_or(now, |held| held.since);
                Action::RequeueAt(self.rules.ask_again(since, now))
            }
            Some(_) | None => Action::AwaitChange,
        };
        if status == read.value.status {
            return Ok(next);
        }
        let mut instance = read.value.clone();
        for (kind, message) in happened(&instance.status, &status) {
            tracing::info!(?kind, %message, "told the tenant");
            instance.note(now, self.service.actor(), kind, message);
        }
        self.count(&read.value, &status);
        instance.status = status;
        let transaction = self
            .instances
            .replace(Transaction::new(), &read, &instance)?;
        self.store.commit(&transaction).await?;
        Ok(next)
    }

    /// Counts what comes into force with a status.
    fn count(&self, before: &Instance, status: &crate::instance::Status) {
        let comes =
            |kind| status.condition(kind).is_some() && before.status.condition(kind).is_none();
        if comes(ConditionKind::ServerMissing) {
            counter!("fleetwright_compute_servers_missing_total").increment(1);
            tracing::warn!(
                "its server is missing, by nobody's word here; its tenant has to ask for a replacement"
            );
        }
        if comes(ConditionKind::ServerTaken) {
            counter!("fleetwright_compute_servers_taken_total").increment(1);
            tracing::warn!(server = %before.server, "its server is another owner's: an operator has to see to it");
        }
        if comes(ConditionKind::ConsentNeeded) {
            counter!("fleetwright_compute_consents_needed_total").increment(1);
        }
        let settled = status.observed_generation != before.status.observed_generation;
        let asked = before.modified.as_ref().map(|change| change.at);
        if settled {
            let asked = asked.unwrap_or(before.created_at);
            histogram!("fleetwright_compute_settling_seconds").record(self.seconds_since(asked));
        }
    }
}

/// Whether a transaction failed because the instance has a server.
fn is_served(error: &ComputeError) -> bool {
    let conflict = store_error(error).and_then(StoreError::conflict);
    conflict.is_some_and(|conflict| matches!(conflict.check, Check::Unclaimed(_)))
}
