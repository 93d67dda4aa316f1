//! Comparing the account of the provider with the recorded one.

use std::{
    sync::{
        Arc, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};
use fleetwright::{AccountId, InstanceId, InstanceProvisioner, ProvisionError};
use fleetwright_store::{Invalid, Store, StoreError, Table, Transaction, Versioned};
use tokio::{sync::Mutex, time::Instant};

use super::{
    ConfirmedAccount, LeakedLaunch, NotFoundMachine, OtherAccount, RegionAccount, risk::is_outage,
};
use crate::ids::RegionId;

/// How long a comparison is used again for calls that only read.
const CHECKED_FOR: Duration = Duration::from_secs(1);
/// How often a leak is recorded when others write the record.
const TRIES: usize = 8;

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccountState {
    /// The provider reports no account, or none is recorded yet. With what the provider reports.
    NotRecorded(Option<AccountId>),
    /// The provider uses the recorded account.
    Same,
    /// The provider uses another account.
    Other {
        /// The account of the region's machines.
        recorded: AccountId,
        /// The account that the provider uses.
        current: AccountId,
    },
}

/// Why the accounts could not be compared.
#[derive(Clone, Debug)]
pub(crate) enum AccountError {
    /// The provider could not read its account.
    Cloud(ProvisionError),
    /// The record could not be read or written.
    Store(StoreError),
}

impl From<StoreError> for AccountError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Invalid> for AccountError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

/// Compares the account of a provider with the recorded one of a region.
#[derive(Debug)]
pub(crate) struct AccountGuard {
    region: RegionId,
    store: Arc<dyn Store>,
    accounts: Table<RegionAccount>,
    cloud: Arc<dyn InstanceProvisioner>,
    /// The last comparison. Concurrent callers wait for one comparison.
    last: Mutex<Option<Comparison>>,
    /// What the parts of the region share.
    confirmed: std::sync::RwLock<ConfirmedAccount>,
    /// Numbers requests for a comparison and starts of comparisons, in their order.
    order: AtomicU64,
}

#[derive(Debug)]
struct Comparison {
    started: u64,
    at: Instant,
    state: AccountState,
}

impl AccountGuard {
    /// Guards a region. `cloud` is the provider itself.
    pub(super) fn new(
        region: RegionId,
        store: Arc<dyn Store>,
        accounts: Table<RegionAccount>,
        cloud: Arc<dyn InstanceProvisioner>,
    ) -> Self {
        Self {
            region,
            store,
            accounts,
            cloud,
            last: Mutex::default(),
            confirmed: std::sync::RwLock::default(),
            order: AtomicU64::new(0),
        }
    }

    /// Counts its comparisons together with those of the other parts of the region.
    pub(crate) fn share(&self, confirmed: &ConfirmedAccount) {
        let mut shared = self
            .confirmed
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *shared = confirmed.clone();
    }

    fn confirmed(&self) -> ConfirmedAccount {
        let shared = self.confirmed.read();
        shared.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Compares the accounts, or returns a comparison that is less than a second old.
    pub(crate) async fn recent(&self) -> Result<AccountState, AccountError> {
        let mut last = self.last.lock().await;
        if let Some(comparison) = &*last {
            if comparison.at.elapsed() < CHECKED_FOR {
                return Ok(comparison.state.clone());
            }
        }
        self.renew(&mut last).await
    }

    /// Returns a comparison that started after this call. Callers that wait at the same time share one.
    pub(crate) async fn current(&self) -> Result<AccountState, AccountError> {
        let requested = self.order.fetch_add(1, Ordering::SeqCst);
        let mut last = self.last.lock().await;
        match &*last {
            Some(comparison) if comparison.started > requested => Ok(comparison.state.clone()),
            Some(_) | None => self.renew(&mut last).await,
        }
    }

    /// Whether the account was confirmed a short while ago and cannot be read now because of an outage. What destroys and creates nothing
    /// goes on then.
    pub(crate) fn is_recently_confirmed(&self, error: &AccountError) -> bool {
        let AccountError::Cloud(error) = error else {
            return false;
        };
        is_outage(error) && self.confirmed().is_recent()
    }

    async fn renew(&self, last: &mut Option<Comparison>) -> Result<AccountState, AccountError> {
        // A comparison that fails or is dropped is made again by the next caller.
        *last = None;
        let (started, at) = (self.order.fetch_add(1, Ordering::SeqCst), Instant::now());
        let current = self.cloud.account_id().await.map_err(AccountError::Cloud)?;
        let recorded = self.record().await?;
        let state = match (recorded, current) {
            (None, current) => AccountState::NotRecorded(current),
            (Some(_), None) => AccountState::NotRecorded(None),
            (Some(recorded), Some(current)) if recorded.value.account == current => {
                AccountState::Same
            }
            (Some(recorded), Some(current)) => AccountState::Other {
                recorded: recorded.value.account,
                current,
            },
        };
        self.confirmed().set(at, state == AccountState::Same);
        // An account that is about to be recorded must be compared by the next call.
        if !matches!(state, AccountState::NotRecorded(Some(_))) {
            let state = state.clone();
            *last = Some(Comparison { started, at, state });
        }
        Ok(state)
    }

    async fn record(&self) -> Result<Option<Versioned<RegionAccount>>, StoreError> {
        self.accounts.get(&RegionAccount::key(&self.region)?).await
    }

    /// Adds the record of the account to the transaction of a region's first launch.
    pub(crate) fn add_record(
        &self,
        transaction: Transaction,
        account: AccountId,
        now: DateTime<Utc>,
    ) -> Result<Transaction, StoreError> {
        let key = RegionAccount::key(&self.region)?;
        let record = RegionAccount::new(self.region.clone(), account, now);
        self.accounts.create(transaction, &key, &record)
    }

    /// Records an account that was found to have a machine of the region. Another writer may have recorded one before.
    pub(crate) async fn adopt(
        &self,
        account: AccountId,
        now: DateTime<Utc>,
    ) -> Result<(), AccountError> {
        let transaction = self.add_record(Transaction::new(), account, now)?;
        self.commit(&transaction).await
    }

    /// Records a launch that reached another account. A region without a recorded account has nothing to compare with.
    pub(crate) async fn record_leak(&self, leak: &LeakedLaunch) -> Result<(), StoreError> {
        leak.log(&self.region);
        let mut conflict = None;
        for _ in 0..TRIES {
            let Some(read) = self.record().await? else {
                return Ok(());
            };
            let mut record = read.value.clone();
            record.add_leak(leak.clone());
            if record == read.value {
                return Ok(());
            }
            let transaction = self.accounts.replace(Transaction::new(), &read, &record)?;
            match self.store.commit(&transaction).await {
                Ok(_) => return Ok(()),
                Err(error) if error.conflict().is_some() => conflict = Some(error),
                Err(error) => return Err(error),
            }
        }
        conflict.map_or(Ok(()), Err)
    }

    /// Writes to the record which other account the provider uses, or that it uses none, if that has changed. Returns how many leaked
    /// launches wait for an operator.
    pub(crate) async fn report(
        &self,
        other: Option<&AccountId>,
        now: DateTime<Utc>,
    ) -> Result<usize, AccountError> {
        let Some(read) = self.record().await? else {
            return Ok(0);
        };
        let leaked = read.value.leaked.len();
        let known = read.value.other.as_ref().map(|other| &other.account);
        if known == other {
            return Ok(leaked);
        }
        let mut record = read.value.clone();
        record.other = other.map(|account| OtherAccount {
            account: account.clone(),
            since: now,
        });
        let transaction = self.accounts.replace(Transaction::new(), &read, &record)?;
        self.commit(&transaction).await?;
        Ok(leaked)
    }

    /// Returns whether a machine is one of those that were not found when they were to be terminated.
    pub(crate) async fn is_not_found(&self, machine: &InstanceId) -> Result<bool, AccountError> {
        let record = self.record().await?;
        let listed = record.map_or_else(Vec::new, |read| read.value.not_found);
        Ok(listed.iter().any(|one| one.machine == *machine))
    }

    /// Records a machine that was not found when it was to be terminated, unless it is recorded already: if it appears, it is terminated.
    /// If the region's account has never shown it, it may be in another one, and its launch is recorded as leaked.
    ///
    /// Fails with a conflict if another writer changed the record meanwhile.
    pub(crate) async fn add_not_found(
        &self,
        leak: LeakedLaunch,
        machine: NotFoundMachine,
        shown_at: Option<DateTime<Utc>>,
    ) -> Result<(), StoreError> {
        let Some(read) = self.record().await? else {
            return Ok(());
        };
        let mut record = read.value.clone();
        record.add_not_found(machine);
        if shown_at.is_none_or(|at| at < record.recorded_at) {
            leak.log(&self.region);
            record.add_leak(leak);
        }
        if record == read.value {
            return Ok(());
        }
        let transaction = self.accounts.replace(Transaction::new(), &read, &record)?;
        self.store.commit(&transaction).await?;
        Ok(())
    }

    /// Commits a transaction. After a conflict the next comparison sees what the other writer wrote.
    async fn commit(&self, transaction: &Transaction) -> Result<(), AccountError> {
        match self.store.commit(transaction).await {
            Ok(_) => Ok(()),
            Err(error) if error.conflict().is_some() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
