//! Entries of the audit log about the catalog: images that tenants change, and entries that a loaded file changes.

use fleetwright_identity::{Actor, ActorName, AuditEvent, AuditOutcome, Resource, Scope, Verb};
use fleetwright_store::{Invalid, StoreError, Transaction};

use super::{CatalogService, Change, EntryId, Image};

/// The actor of changes by a catalog file. The file is the operator's, and no principal loads it.
const FILE: &str = "catalog-file";

impl CatalogService {
    /// Adds the entry of a change of a tenant's image to its transaction.
    pub(super) fn add_image_entry(
        &self,
        transaction: Transaction,
        actor: &Actor,
        verb: Verb,
        image: &Image,
        outcome: AuditOutcome,
    ) -> Result<Transaction, StoreError> {
        let Some(tenancy) = self.tenancy.get() else {
            return Ok(transaction);
        };
        let event = AuditEvent::new(actor, verb, Resource::Images, &image.id, image.scope());
        let event = event.named(&image.name).outcome(outcome);
        tenancy.audit().add(transaction, &event)
    }

    /// Adds the entry of a change by a file to its transaction.
    pub(super) fn add_file_entry(
        &self,
        transaction: Transaction,
        change: &Change,
    ) -> Result<Transaction, StoreError> {
        let Some(tenancy) = self.tenancy.get() else {
            return Ok(transaction);
        };
        let verb = match change {
            // Nothing is written.
            Change::LeftAlone(_) => return Ok(transaction),
            Change::Added(_) => Verb::Create,
            Change::Changed(..) | Change::Returned(..) | Change::Repaired(_) => Verb::Update,
            Change::Retired(_) => Verb::Delete,
        };
        let (resource, id) = match change.id() {
            EntryId::Flavor(id) => (Resource::Flavors, id.to_string()),
            EntryId::Image(id) => (Resource::Images, id.to_string()),
        };
        let name = ActorName::new(FILE).map_err(|name| Invalid::new(name.to_string()))?;
        let event = AuditEvent::new(&Actor::Service(name), verb, resource, id, Scope::Global);
        tenancy.audit().add(transaction, &event)
    }
}
