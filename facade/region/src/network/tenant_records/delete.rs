//! Deleting a record to which no other refers.

use fleetwright_identity::{AuditOutcome, Principal, Resource, Scope, Verb};
use fleetwright_store::{Check, Conflict, Found, RecordId, StoreError, Transaction, Versioned};

use super::{ATTEMPTS, RecordError, TenantRecord, TenantRecords, busy};
use crate::{
    schema::{SECURITY_GROUP_KIND, SERVER_KIND},
    server::Owner,
};

impl<T: TenantRecord> TenantRecords<T> {
    /// Deletes a record to which no other refers.
    pub(in crate::network) async fn delete(
        &self,
        principal: &Principal,
        id: T::Id,
    ) -> Result<(), RecordError> {
        for _ in 0..ATTEMPTS {
            let found = self.find(principal, Verb::Delete, id).await?;
            let mut transaction = Transaction::new();
            for reference in &self.references {
                transaction = transaction.check(reference.absent(id.to_string())?);
            }
            let transaction = self.table.remove(transaction, &found);
            let transaction = self.add_entry(
                transaction,
                principal,
                Verb::Delete,
                &found.value,
                AuditOutcome::Done,
            )?;
            match self.commit_removal(&found, transaction).await {
                Ok(()) => return Ok(()),
                Err(RecordError::Store(error)) => match referrer(&error) {
                    Some(by) => {
                        let scope = found.value.scope();
                        let by = self.visible_name(principal, &scope, &by).await;
                        return Err(in_use::<T>(id, by));
                    }
                    None if error.conflict().is_some() => {}
                    None => return Err(error.into()),
                },
                Err(error) => return Err(error),
            }
        }
        Err(busy::<T>(id))
    }

    /// Commits the removal of a record together with the release of its quota.
    pub(in crate::network) async fn commit_removal(
        &self,
        found: &Versioned<T>,
        transaction: Transaction,
    ) -> Result<(), RecordError> {
        match (&self.ledger, found.value.scope()) {
            (Some(ledger), Scope::Project(organization, _)) if T::quota().is_some() => {
                let charged = self.table.id(&found.key);
                let build = || async {
                    let transaction = transaction.clone();
                    Ok::<_, RecordError>(ledger.release(transaction, &charged).await?)
                };
                ledger.commit(organization, build).await?;
            }
            _ => {
                self.store.commit(&transaction).await?;
            }
        }
        Ok(())
    }

    /// Returns the name of a referring record for a message to the caller. A server is named as its instance. If the caller may not
    /// read the record, the name has no id.
    async fn visible_name(&self, principal: &Principal, scope: &Scope, by: &RecordId) -> String {
        let (resource, some) = match by.kind.as_str() {
            SECURITY_GROUP_KIND => (Resource::SecurityGroups, "a security group"),
            // Servers belong to instances, and other crates keep records of what instances are made of.
            _ => (Resource::Instances, "an instance"),
        };
        if principal.authorize(Verb::Read, resource, scope).is_err() {
            return some.to_owned();
        }
        if by.kind.as_str() != SERVER_KIND {
            return format!("{} {}", by.kind, by.key);
        }
        let found = self.store.get(by).await.ok().flatten();
        let owner = found.and_then(|record| record.value.get("owner").cloned());
        let owner = owner.and_then(|owner| serde_json::from_value::<Owner>(owner).ok());
        owner.map_or_else(|| "an instance".to_owned(), |owner| owner.to_string())
    }
}

fn in_use<T: TenantRecord>(id: T::Id, by: String) -> RecordError {
    RecordError::InUse {
        what: T::WHAT,
        id: id.to_string(),
        by,
    }
}

/// Returns a record that refers to the one to delete, if that is why the commit failed.
pub(in crate::network) fn referrer(error: &StoreError) -> Option<RecordId> {
    match error.conflict()? {
        Conflict {
            check: Check::Unclaimed(claim),
            found: Found::HeldBy(key),
            ..
        } => Some(RecordId {
            kind: claim.kind.clone(),
            key: key.clone(),
        }),
        Conflict { .. } => None,
    }
}
