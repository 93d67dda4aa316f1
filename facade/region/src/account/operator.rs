//! The operator's calls: reading the account of a region, and accepting another one.

use std::sync::Arc;

use fleetwright::{AccountId, LaunchToken};
use fleetwright_identity::{AuditEvent, AuditLog, Principal, Refused, Resource, Scope, Verb};
use fleetwright_runtime::clock::Clock;
use fleetwright_store::{Invalid, Store, StoreError, Table, Transaction};

use super::{LeakedLaunch, RegionAccount};
use crate::ids::RegionId;

/// Reads and changes the accounts of regions, for operators.
///
/// ```
/// use std::sync::Arc;
/// use fleetwright::{AccountId, InstanceProvisioner as _};
/// use fleetwright_memory::MemoryCloud;
/// use fleetwright_region::{account::RegionAccounts, ids::RegionId, schema};
/// use fleetwright_runtime::clock::SystemClock;
/// use fleetwright_store::{MemoryStore, Schema};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Arc::new(MemoryStore::new(schema::add_kinds(Schema::builder()).build()?));
/// let accounts = RegionAccounts::new(store, Arc::new(SystemClock))?;
/// let north = RegionId::new("north")?;
/// // Nothing was launched in the region yet.
/// assert_eq!(accounts.read(&north).await?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RegionAccounts {
    store: Arc<dyn Store>,
    accounts: Table<RegionAccount>,
    clock: Arc<dyn Clock>,
    audit: Option<AuditLog>,
}

/// Why an account was not accepted.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// The caller may not update regions.
    #[error("not permitted")]
    Refused(#[from] Refused),
    /// Nothing was launched in the region yet: the first launch records its account.
    #[error("no account is recorded for region {0}: the first launch records it")]
    NotRecorded(RegionId),
    /// The region has another account than the caller believes.
    #[error("region {region} has the account {recorded}, not {expected}: read it again")]
    Changed {
        /// The region.
        region: RegionId,
        /// The recorded account.
        recorded: AccountId,
        /// What the caller believed.
        expected: AccountId,
    },
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl From<Invalid> for AcceptError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

impl RegionAccounts {
    /// Opens the accounts of a store with [the region's kinds](crate::schema::add_kinds).
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Result<Self, Invalid> {
        Ok(Self {
            accounts: Table::new(Arc::clone(&store))?,
            store,
            clock,
            audit: None,
        })
    }

    /// Adds an entry to the audit log for every account that is accepted, and for every leak that is resolved. Without it none is added.
    #[must_use]
    pub fn with_audit(mut self, audit: AuditLog) -> Self {
        self.audit = Some(audit);
        self
    }

    /// Returns the account of a region. `None` if nothing was launched in it, or if its provider reports no account.
    pub async fn read(&self, region: &RegionId) -> Result<Option<RegionAccount>, StoreError> {
        let found = self.accounts.get(&RegionAccount::key(region)?).await?;
        Ok(found.map(|found| found.value))
    }

    /// Removes a leaked launch from the record, after its machine was terminated in the other account, or was found not to exist there.
    /// Returns whether the record had it. It needs the permission to update regions.
    ///
    /// # Errors
    ///
    /// [`AcceptError::NotRecorded`] if the region has no account, or the store fails; with a conflict, call it again.
    pub async fn resolve_leak(
        &self,
        principal: &Principal,
        region: &RegionId,
        token: &LaunchToken,
    ) -> Result<bool, AcceptError> {
        principal.authorize(Verb::Update, Resource::Regions, &Scope::Global)?;
        let found = self.accounts.get(&RegionAccount::key(region)?).await?;
        let read = found.ok_or_else(|| AcceptError::NotRecorded(region.clone()))?;
        let mut record = read.value.clone();
        record.leaked.retain(|leak| leak.token != *token);
        if record == read.value {
            return Ok(false);
        }
        let transaction = self.accounts.replace(Transaction::new(), &read, &record)?;
        let transaction = self.add_entry(transaction, principal, region, token)?;
        self.store.commit(&transaction).await?;
        Ok(true)
    }

    /// Records that the machines of a region are in another account from now on. It needs the permission to update regions, which only
    /// roles of the platform have.
    ///
    /// `expected` is the account that was recorded until now. Only for machines that were really moved: those that the new account does
    /// not have are reported as lost, and cannot be reached by the region any more.
    ///
    /// # Errors
    ///
    /// [`AcceptError::Refused`] without the permission, [`AcceptError::Changed`] if the region has another account than `expected`.
    pub async fn accept(
        &self,
        principal: &Principal,
        region: &RegionId,
        expected: &AccountId,
        account: AccountId,
    ) -> Result<RegionAccount, AcceptError> {
        principal.authorize(Verb::Update, Resource::Regions, &Scope::Global)?;
        let found = self.accounts.get(&RegionAccount::key(region)?).await?;
        let read = found.ok_or_else(|| AcceptError::NotRecorded(region.clone()))?;
        if read.value.account != *expected {
            return Err(AcceptError::Changed {
                region: region.clone(),
                recorded: read.value.account,
                expected: expected.clone(),
            });
        }
        let mut record = RegionAccount::new(region.clone(), account, self.clock.now());
        record.not_found.clone_from(&read.value.not_found);
        // The region reaches those of its new account by itself: they are orphans there.
        let elsewhere = |leak: &LeakedLaunch| leak.account.as_ref() != Some(&record.account);
        record.leaked = read
            .value
            .leaked
            .iter()
            .filter(|leak| elsewhere(leak))
            .cloned()
            .collect();
        let transaction = self.accounts.replace(Transaction::new(), &read, &record)?;
        let transaction = self.add_entry(transaction, principal, region, &record.account)?;
        self.store.commit(&transaction).await?;
        tracing::warn!(%region, before = %expected, account = %record.account, "the operator accepted another account");
        Ok(record)
    }

    /// Adds the entry of a change, with the account or the launch that it is about.
    fn add_entry(
        &self,
        transaction: Transaction,
        principal: &Principal,
        region: &RegionId,
        about: &dyn ToString,
    ) -> Result<Transaction, StoreError> {
        let Some(audit) = &self.audit else {
            return Ok(transaction);
        };
        let (actor, scope) = (principal.actor(), Scope::Global);
        let event = AuditEvent::new(actor, Verb::Update, Resource::Regions, region, scope);
        audit.add(transaction, &event.named(about.to_string()))
    }
}
