//! The ledger: what each organization and project uses, and for which records.
//!
//! It adds checks and writes to the caller's transaction, so that a record and its allocation are
//! written together or not at all. It never commits a transaction itself.

mod audit;
mod charge;
mod error;
mod join;
mod quota;

use std::{future::Future, sync::Arc};

use fleetwright_store::{
    Base, Check, Document, Invalid, Json, Part, RecordId, Revision, Store, StoreError, Table,
    Transaction, Write,
};
use serde::{Deserialize, Serialize};

pub use audit::{Audit, Difference};
pub use charge::Recharge;
pub use error::{Exceeded, LedgerError};
use join::Queue;
pub use quota::{Quota, QuotaLine};

use crate::{
    Account, Amounts, OrganizationId, ProjectId, QuotaKinds, Tenancy, account::AccountRecord,
    schema::key_for,
};

/// The number of lost races after which a commit gives up.
const MAX_RACES: usize = 256;
/// The number of queues. Organizations are distributed over them; each queue commits one at a time.
const QUEUES: usize = 64;

/// The quota that one record uses. Its key is the record's id.
///
/// ```
/// use fleetwright_identity::{Allocation, Amounts, OrganizationId, ProjectId, QuotaKind};
/// use fleetwright_store::RecordId;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let acme: OrganizationId = "5ba1e150-0000-4000-8000-000000000001".parse()?;
/// let web: ProjectId = "5ba1e150-0000-4000-8000-000000000002".parse()?;
/// let amounts = Amounts::new().with(QuotaKind::servers(), 1).with(QuotaKind::gpus(), 8);
/// let allocation = Allocation::new(RecordId::new("instance", "i-1")?, acme, web, amounts);
/// assert_eq!(allocation.amounts.of(&QuotaKind::gpus()), 8);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// The record that is paid for, such as an instance. It has at most one allocation.
    pub pays_for: RecordId,
    /// The organization that pays.
    pub organization: OrganizationId,
    /// The project that pays.
    pub project: ProjectId,
    /// The amounts.
    pub amounts: Amounts,
}

impl Allocation {
    /// Creates an allocation.
    pub fn new(
        pays_for: RecordId,
        organization: OrganizationId,
        project: ProjectId,
        amounts: Amounts,
    ) -> Self {
        Self {
            pays_for,
            organization,
            project,
            amounts,
        }
    }
}

impl Document for Allocation {
    const KIND: &'static str = "allocation";
}

/// The ledger of a store whose schema contains the kinds of [`schema`](crate::schema()).
///
/// ```
/// # use std::sync::Arc;
/// use fleetwright_identity::{
///     Account, Allocation, Amounts, Ledger, LedgerError, OrganizationId, ProjectId, QuotaKind, QuotaKinds, schema,
/// };
/// use fleetwright_store::{MemoryStore, RecordId, Schema, Transaction};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Arc::new(MemoryStore::new(schema(Schema::builder().kind("instance")).build()?));
/// let ledger = Ledger::new(store, Arc::new(QuotaKinds::standard()))?;
/// # let acme: OrganizationId = "5ba1e150-0000-4000-8000-000000000001".parse()?;
/// # let web: ProjectId = "5ba1e150-0000-4000-8000-000000000002".parse()?;
/// let id = RecordId::new("instance", "i-1")?;
/// let cost = Amounts::new().with(QuotaKind::servers(), 1);
/// let allocation = Allocation::new(id.clone(), acme, web, cost);
///
/// // The record and its charge are committed together, or not at all.
/// let build = || ledger.charge(Transaction::new().create(id.clone(), "new"), &allocation);
/// ledger.commit::<_, _, LedgerError>(acme, build).await?;
/// assert_eq!(ledger.allocation(&id).await?, Some(allocation));
/// # Ok(())
/// # }
/// ```
///
/// # Guarantees
///
/// - After every commit, the use of an account is the sum of its allocations, also with concurrent
///   writers.
/// - No commit raises the use above the limit.
/// - A record has at most one allocation. Charging, recharging and releasing are idempotent.
/// - The cost of a call does not grow with the number of allocations.
///
/// # Caveats
///
/// Charges of one organization are serialized, because each commit checks the revision of the
/// organization's account. [`commit`](Self::commit) queues the callers of one process in order, and
/// [`commit_charge`](Self::commit_charge) commits those that wait together. Across processes, the loser of a race reads again.
#[derive(Clone, Debug)]
pub struct Ledger {
    store: Arc<dyn Store>,
    kinds: Arc<QuotaKinds>,
    accounts: Table<AccountRecord>,
    allocations: Table<Allocation>,
    queues: Arc<[Arc<Queue>]>,
    tenancy: Option<Tenancy>,
}

impl Ledger {
    /// Opens the ledger of a store.
    ///
    /// # Errors
    ///
    /// The store's schema lacks a kind of [`schema`](crate::schema()).
    pub fn new(store: Arc<dyn Store>, kinds: Arc<QuotaKinds>) -> Result<Self, Invalid> {
        Ok(Self {
            accounts: Table::new(Arc::clone(&store))?,
            allocations: Table::new(Arc::clone(&store))?,
            store,
            kinds,
            queues: (0..QUEUES).map(|_| Arc::default()).collect(),
            tenancy: None,
        })
    }

    /// Sets limits only of organizations and projects that exist, and adds an entry to the audit log for each. Without it neither is done.
    #[must_use]
    pub fn with_tenancy(mut self, tenancy: Tenancy) -> Self {
        self.tenancy = Some(tenancy);
        self
    }

    /// Returns the registry of kinds.
    pub fn kinds(&self) -> &QuotaKinds {
        &self.kinds
    }

    /// Builds and commits a transaction, and starts again if the ledger's own records changed meanwhile.
    ///
    /// `build` is called for each attempt and must read its input again. `organization` is the one whose
    /// accounts it charges. Other callers of the organization in this process wait until the commit ends,
    /// so `build` must not call `commit`, `commit_charge`, `audit` or `repair`.
    ///
    /// # Errors
    ///
    /// `build` failed, the store failed, a conflict concerns the caller's own records, or too many races
    /// were lost.
    pub async fn commit<F, R, E>(
        &self,
        organization: OrganizationId,
        build: F,
    ) -> Result<Revision, E>
    where
        F: FnMut() -> R,
        R: Future<Output = Result<Transaction, E>>,
        E: From<LedgerError>,
    {
        let _guard = self.queue(organization).turn().await;
        self.commit_in_turn(organization, build).await
    }

    /// Like [`commit`](Self::commit), for a caller whose turn it is.
    async fn commit_in_turn<F, R, E>(
        &self,
        organization: OrganizationId,
        mut build: F,
    ) -> Result<Revision, E>
    where
        F: FnMut() -> R,
        R: Future<Output = Result<Transaction, E>>,
        E: From<LedgerError>,
    {
        for _ in 0..MAX_RACES {
            let transaction = build().await?;
            match self.store.commit(&transaction).await {
                Err(error) if self.is_ledger_conflict(&error) => {}
                result => return result.map_err(|error| LedgerError::from(error).into()),
            }
        }
        Err(LedgerError::Contended { organization }.into())
    }

    /// Returns whether a commit failed only because another one changed the ledger's records. Then build
    /// and commit the transaction again.
    pub fn is_ledger_conflict(&self, error: &StoreError) -> bool {
        error.conflict().is_some_and(|conflict| {
            let is_ledger_record = |id: &RecordId| {
                id.kind == *self.accounts.kind() || id.kind == *self.allocations.kind()
            };
            let is_ours = match &conflict.check {
                Check::Absent(id) | Check::Exists(id) | Check::At(id, _) => is_ledger_record(id),
                Check::Unclaimed(_) => false,
            };
            is_ours && matches!(conflict.part, Part::Check(_))
        })
    }

    /// Returns the allocation of a record.
    pub async fn allocation(&self, pays_for: &RecordId) -> Result<Option<Allocation>, LedgerError> {
        let found = self.allocations.get(&key_for(pays_for)?).await?;
        Ok(found.map(|found| found.value))
    }

    fn queue(&self, organization: OrganizationId) -> &Arc<Queue> {
        // Derived from the id alone, so that a simulation is reproducible. The remainder is a valid index.
        &self.queues[(organization.as_uuid().as_u128() % QUEUES as u128) as usize]
    }

    /// Returns an account as the transaction leaves it so far, or as it is stored.
    async fn account(
        &self,
        transaction: &Transaction,
        account: &Account,
    ) -> Result<OpenAccount, LedgerError> {
        let id = self.accounts.id(&account.key()?);
        let empty = || AccountRecord::empty(account);
        let position = transaction
            .writes
            .iter()
            .position(|write| *write.id() == id);
        if let Some(position) = position {
            let (base, record) = match &transaction.writes[position] {
                Write::Put(id, value) => {
                    // The revision is not used: the transaction has the check already.
                    let base = Base::new(Revision::ZERO, value.clone());
                    (Some(base), parse_account(id, value)?)
                }
                Write::Delete(_) => (None, empty()),
            };
            let read = ReadState::Written(position, base);
            return Ok(OpenAccount { id, read, record });
        }
        let found = self.accounts.get(&id.key).await?;
        let (read, record) = match found {
            Some(found) => (ReadState::At(found.base()), found.value),
            None => (ReadState::Absent, empty()),
        };
        Ok(OpenAccount { id, read, record })
    }
}

/// An account that was read in order to be changed in a transaction.
struct OpenAccount {
    id: RecordId,
    read: ReadState,
    record: AccountRecord,
}

/// How an account was read.
enum ReadState {
    /// It does not exist.
    Absent,
    /// It exists in this form and at this revision.
    At(Base),
    /// An earlier write of the same transaction, at this position, changes it to this form or deletes it.
    Written(usize, Option<Base>),
}

impl ReadState {
    fn base(&self) -> Option<&Base> {
        match self {
            Self::Absent => None,
            Self::At(base) => Some(base),
            Self::Written(_, base) => base.as_ref(),
        }
    }
}

impl OpenAccount {
    /// Adds the changed account to the transaction, with a check that it was not changed meanwhile.
    ///
    /// An account that says the same as its absence is deleted, unless a newer version has stored something in it.
    fn close(
        self,
        accounts: &Table<AccountRecord>,
        mut transaction: Transaction,
    ) -> Result<Transaction, LedgerError> {
        let Self { id, read, record } = self;
        let has_unknown = match read.base() {
            Some(base) => accounts.has_unknown(&id.key, base)?,
            None => false,
        };
        let write = if record.is_deletable() && !has_unknown {
            Write::Delete(id.clone())
        } else {
            let created = Base::without_form(Revision::ZERO);
            let base = read.base().unwrap_or(&created);
            Write::Put(id.clone(), accounts.stored_form(&id.key, base, &record)?)
        };
        Ok(match read {
            ReadState::Absent => transaction.check(Check::Absent(id)).write(write),
            ReadState::At(base) => {
                let unchanged = Check::At(id, base.revision());
                transaction.check(unchanged).write(write)
            }
            ReadState::Written(position, _) => {
                transaction.writes[position] = write;
                transaction
            }
        })
    }
}

fn parse_account(id: &RecordId, value: &Json) -> Result<AccountRecord, Invalid> {
    let parsed = value.clone().parse_owned();
    parsed.map_err(|error| Invalid::new(error.to_string()).within(id))
}
