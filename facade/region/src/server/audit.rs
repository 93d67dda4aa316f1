//! The entries of the audit log about servers: who changed one directly.

use fleetwright_identity::{Actor, AuditEvent, AuditLog, AuditOutcome, Principal, Resource, Verb};
use fleetwright_store::{StoreError, Transaction};

use super::{Server, Servers};

impl Servers {
    /// Adds an entry to the audit log for every change that a user makes, in its transaction, and for every one that is refused. Services of
    /// this system call for others, and record those themselves.
    #[must_use]
    pub fn with_audit(mut self, audit: AuditLog) -> Self {
        self.audit = Some(audit);
        self
    }

    /// Adds the entry of a user's change.
    pub(super) fn add_entry(
        &self,
        transaction: Transaction,
        principal: &Principal,
        verb: Verb,
        server: &Server,
    ) -> Result<Transaction, StoreError> {
        let (Some(audit), Actor::User(_)) = (&self.audit, principal.actor()) else {
            return Ok(transaction);
        };
        let (actor, scope) = (principal.actor(), server.scope());
        let event = AuditEvent::new(actor, verb, Resource::Servers, server.id, scope)
            .generation(server.generation)
            .outcome(AuditOutcome::Requested);
        audit.add(transaction, &event)
    }
}
