//! Marking every instance of a network for deletion, in one transaction each.

use fleetwright_identity::{AuditOutcome, Verb};
use fleetwright_region::ids::NetworkId;
use fleetwright_store::{Query, StoreError, Transaction, Versioned};
use metrics::counter;

use super::NetworkDeletionController;
use crate::{
    ComputeError,
    instance::{DeletionCause, Instance},
    service::event,
};

/// The number of attempts when other callers write the same instance.
const ATTEMPTS: usize = 16;

impl NetworkDeletionController {
    /// Marks every instance of a network. A failure does not stop the others; the first error is returned after all were tried.
    pub(super) async fn mark_all(&self, network: NetworkId) -> Result<(), ComputeError> {
        let mut query = self.query(network)?;
        let mut first = None;
        loop {
            let page = self.instances.list(&query).await?;
            let damaged = page.damaged.into_iter().map(|damaged| {
                let error = StoreError::from(damaged);
                Err(ComputeError::from(error))
            });
            let mut outcomes: Vec<_> = damaged.collect();
            for read in page.items {
                outcomes.push(self.mark(read).await);
            }
            for error in outcomes.into_iter().filter_map(Result::err) {
                counter!("fleetwright_compute_network_marks_total", "outcome" => "failed")
                    .increment(1);
                let cause = &error as &dyn std::error::Error;
                tracing::warn!(
                    error = cause,
                    "an instance of a deleted network was not marked; it is retried"
                );
                first.get_or_insert(error);
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        first.map_or(Ok(()), Err)
    }

    /// Marks an instance, unless it is marked or deleted already.
    async fn mark(&self, mut read: Versioned<Instance>) -> Result<(), ComputeError> {
        let id = read.value.id;
        for _ in 0..ATTEMPTS {
            let mut instance = read.value.clone();
            let actor = self.service.actor();
            if !instance.mark_deleted(self.clock.now(), actor, DeletionCause::Network) {
                return Ok(());
            }
            let transaction = self
                .instances
                .replace(Transaction::new(), &read, &instance)?;
            let transaction = match &self.audit {
                Some(audit) => {
                    let outcome = AuditOutcome::Requested;
                    let event = event(actor, Verb::Delete, &instance, outcome);
                    audit.add(transaction, &event)?
                }
                None => transaction,
            };
            match self.store.commit(&transaction).await {
                Ok(_) => {
                    counter!("fleetwright_compute_network_marks_total", "outcome" => "marked")
                        .increment(1);
                    return Ok(());
                }
                Err(error) if error.conflict().is_some() => {}
                Err(error) => return Err(error.into()),
            }
            match self.instances.get(&read.key).await? {
                Some(newer) => read = newer,
                None => return Ok(()),
            }
        }
        Err(ComputeError::Busy(id))
    }

    /// Whether a network has no instance. Unreadable records count as instances.
    pub(super) async fn is_empty(&self, network: NetworkId) -> Result<bool, ComputeError> {
        let query = self.query(network)?.limit(1);
        let page = self.store.list(&query).await?;
        Ok(page.records.is_empty() && page.damaged.is_empty())
    }

    fn query(&self, network: NetworkId) -> Result<Query, ComputeError> {
        let (kind, index) = crate::schema::INSTANCE_NETWORK.names()?;
        Ok(Query::by(kind, index, network.to_string().as_str()))
    }
}
