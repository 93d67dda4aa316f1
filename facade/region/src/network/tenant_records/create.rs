//! Creating a record, with its name, its quota and its audit entry.

use fleetwright_identity::{
    Allocation, Amounts, AuditOutcome, LedgerError, Principal, Scope, Verb,
};
use fleetwright_store::{IndexName, Key, Part, Revision, Transaction, Versioned};

use super::{ATTEMPTS, RecordError, TenantRecord, TenantRecords, busy, key};
use crate::schema::BY_NAME;

impl<T: TenantRecord> TenantRecords<T> {
    /// Creates a record in a project that is open. `new` returns the record, with another id for each attempt.
    pub(in crate::network) async fn create_in_project(
        &self,
        principal: &Principal,
        project: &Scope,
        new: impl Fn() -> Result<T, RecordError>,
    ) -> Result<Versioned<T>, RecordError> {
        let mut attempts = 1;
        loop {
            let open = self.begin(project).await?;
            let record = new()?;
            let name = record.name().clone();
            let created = self.create(principal, open, record).await;
            match created.map_err(|error| error.for_caller(principal))? {
                Some(created) => return Ok(created),
                None if attempts == ATTEMPTS => return Err(busy::<T>(name)),
                None => attempts += 1,
            }
        }
    }

    /// Starts a transaction that creates something in a project, with the check that the project is open.
    async fn begin(&self, project: &Scope) -> Result<Transaction, RecordError> {
        let mut transaction = Transaction::new();
        if let Some(tenancy) = &self.tenancy {
            transaction
                .checks
                .extend(tenancy.check_open(project).await?);
        }
        Ok(transaction)
    }

    /// Adds the creation of a record and its audit entry to a transaction and commits it. Returns `None` if a check of the transaction failed, so that the
    /// caller can read again and retry.
    pub(in crate::network) async fn create(
        &self,
        principal: &Principal,
        transaction: Transaction,
        value: T,
    ) -> Result<Option<Versioned<T>>, RecordError> {
        let key = key(value.id())?;
        let transaction = self.table.create(transaction, &key, &value)?;
        let transaction = self.add_entry(
            transaction,
            principal,
            Verb::Create,
            &value,
            AuditOutcome::Done,
        )?;
        match self.commit_creation(&key, &value, transaction).await {
            Ok(revision) => Ok(Some(Versioned::created(key, revision, value))),
            Err(RecordError::Store(error)) => {
                match error.conflict().map(|conflict| conflict.part) {
                    Some(Part::Write(_)) => Err(RecordError::NameTaken {
                        what: T::WHAT,
                        name: value.name().clone(),
                    }),
                    Some(Part::Check(_)) => Ok(None),
                    None => Err(error.into()),
                }
            }
            // A caller whose first response was lost learns that the name is taken, also if the quota is used up.
            Err(error @ RecordError::Ledger(LedgerError::Exceeded(_))) => {
                let index = IndexName::new(BY_NAME)?;
                match self.table.find(&index, value.unique_name()).await? {
                    Some(_) => Err(RecordError::NameTaken {
                        what: T::WHAT,
                        name: value.name().clone(),
                    }),
                    None => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Commits the creation of a record together with the charge of its quota.
    async fn commit_creation(
        &self,
        key: &Key,
        value: &T,
        transaction: Transaction,
    ) -> Result<Revision, RecordError> {
        match (&self.ledger, value.scope(), T::quota()) {
            (Some(ledger), Scope::Project(organization, project), Some(kind)) => {
                let amounts = Amounts::new().with(kind, 1);
                let charged = self.table.id(key);
                let allocation = Allocation::new(charged, organization, project, amounts);
                let build = || async {
                    let transaction = transaction.clone();
                    Ok::<_, RecordError>(ledger.charge(transaction, &allocation).await?)
                };
                ledger.commit(organization, build).await
            }
            _ => Ok(self.store.commit(&transaction).await?),
        }
    }
}
