//! Entries of the audit log about instances.

use fleetwright_identity::{Actor, AuditEvent, AuditOutcome, Principal, Resource, Verb};
use fleetwright_store::{StoreError, Transaction};

use super::Instances;
use crate::{ComputeError, instance::Instance};

/// The event of a call on an instance, whose record is as the call leaves it.
pub(crate) fn event(
    actor: &Actor,
    verb: Verb,
    instance: &Instance,
    outcome: AuditOutcome,
) -> AuditEvent {
    AuditEvent::new(
        actor,
        verb,
        Resource::Instances,
        instance.id,
        instance.scope(),
    )
    .named(&instance.name)
    .generation(instance.generation)
    .outcome(outcome)
}

impl Instances {
    /// Adds the entry of a request to the transaction that records the request.
    pub(super) fn add_entry(
        &self,
        transaction: Transaction,
        principal: &Principal,
        verb: Verb,
        instance: &Instance,
    ) -> Result<Transaction, StoreError> {
        let event = event(principal.actor(), verb, instance, AuditOutcome::Requested);
        self.tenancy.audit().add(transaction, &event)
    }

    /// Records that a secret is about to be shown. If this fails, it must not be shown.
    pub(super) async fn record_disclosure(
        &self,
        principal: &Principal,
        verb: Verb,
        instance: &Instance,
    ) -> Result<(), ComputeError> {
        let event = event(principal.actor(), verb, instance, AuditOutcome::Disclosed);
        Ok(self.tenancy.audit().record(&event).await?)
    }
}
