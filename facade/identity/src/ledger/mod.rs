//! The ledger: what each organization and project uses, and for what. It adds to the caller's transaction, so that what
//! is paid for and the payment are written together or not at all.

mod audit;
mod charge;
mod error;
mod quota;

use std::{future::Future, sync::Arc};

use fleetwright_store::{
    Check, Document, Invalid, Part, RecordId, Revision, Store, StoreError, Table, Transaction,
    Write,
};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

pub use audit::{Audit, Difference};
pub use charge::Recharge;
pub use error::{Exceeded, LedgerError};
pub use quota::{Quota, QuotaLine};

use crate::{
    Account, Amounts, OrganizationId, ProjectId, QuotaKinds, account::AccountRecord,
    schema::key_for,
};

/// How often others may be faster before a commit gives up.
const MAX_RACES: usize = 256;
/// How many organizations commit at once in this process. More would only compare more memory.
const LANES: usize = 64;

/// What quota is used for: the payment for one record of the store, found by that record's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// What is paid for, such as an instance. There is never a second allocation for it.
    pub pays_for: RecordId,
    /// Who pays.
    pub organization: OrganizationId,
    /// For which project.
    pub project: ProjectId,
    /// How much.
    pub amounts: Amounts,
}

impl Allocation {
    /// A payment.
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

/// The ledger over a store, whose schema has what [`schema`](crate::schema()) adds.
///
/// # Guarantees
///
/// - What an account has used is the sum of its allocations, after every commit, whoever else writes.
/// - No commit leaves more used than the limit, if it was not so before it.
/// - There is at most one allocation for a record. Charging, recharging and releasing what is already so changes nothing.
/// - The cost of a call does not grow with the number of allocations.
///
/// # Caveats
///
/// The allocations of one organization are written one after another: each commit compares the revision of the
/// organization's account. [`commit`](Self::commit) lets the callers of one process queue for it in order; across
/// processes the slower reads again.
#[derive(Clone, Debug)]
pub struct Ledger {
    store: Arc<dyn Store>,
    kinds: Arc<QuotaKinds>,
    accounts: Table<AccountRecord>,
    allocations: Table<Allocation>,
    lanes: Arc<[Mutex<()>]>,
}

impl Ledger {
    /// Fails if the store's schema lacks what [`schema`](crate::schema()) adds.
    pub fn new(store: Arc<dyn Store>, kinds: Arc<QuotaKinds>) -> Result<Self, Invalid> {
        Ok(Self {
            accounts: Table::new(Arc::clone(&store))?,
            allocations: Table::new(Arc::clone(&store))?,
            store,
            kinds,
            lanes: (0..LANES).map(|_| Mutex::new(())).collect(),
        })
    }

    /// The registry that charges and limits share.
    pub fn kinds(&self) -> &QuotaKinds {
        &self.kinds
    }

    /// Builds a transaction, commits it, and begins anew if the ledger's own records have changed in between. A conflict
    /// about the caller's records is the caller's to judge and is handed back.
    ///
    /// `build` reads what it needs each time. The organization is the one whose accounts it charges; until the commit is
    /// over others of this process wait for it, so `build` must not call `commit`, `audit` or `repair`.
    pub async fn commit<F, R, E>(
        &self,
        organization: OrganizationId,
        mut build: F,
    ) -> Result<Revision, E>
    where
        F: FnMut() -> R,
        R: Future<Output = Result<Transaction, E>>,
        E: From<LedgerError>,
    {
        let _turn = self.lane(organization).lock().await;
        for _ in 0..MAX_RACES {
            let transaction = build().await?;
            match self.store.commit(&transaction).await {
                Err(error) if self.is_ledger_conflict(&error) => {}
                answer => return answer.map_err(|error| LedgerError::from(error).into()),
            }
        }
        Err(LedgerError::Contended { organization }.into())
    }

    /// Whether a commit failed only because somebody else was faster with the ledger's records. Read again, build the
    /// transaction anew, and commit that.
    pub fn is_ledger_conflict(&self, error: &StoreError) -> bool {
        error.conflict().is_some_and(|conflict| {
            let ours = |id: &RecordId| {
                id.kind == *self.accounts.kind() || id.kind == *self.allocations.kind()
            };
            let about = match &conflict.check {
                Check::Absent(id) | Check::Exists(id) | Check::At(id, _) => ours(id),
                Check::Unclaimed(_) => false,
            };
            about && matches!(conflict.part, Part::Check(_))
        })
    }

    /// The allocation for a record, if there is one.
    pub async fn allocation(&self, pays_for: &RecordId) -> Result<Option<Allocation>, LedgerError> {
        let found = self.allocations.get(&key_for(pays_for)?).await?;
        Ok(found.map(|found| found.value))
    }

    fn lane(&self, organization: OrganizationId) -> &Mutex<()> {
        // By the id alone, so that a simulation replays. The remainder is below the number of lanes, so it fits and is there.
        &self.lanes[(organization.as_uuid().as_u128() % LANES as u128) as usize]
    }

    /// An account as the transaction so far leaves it, or as it is stored.
    async fn account(
        &self,
        transaction: &Transaction,
        account: &Account,
    ) -> Result<Opened, LedgerError> {
        let id = self.accounts.id(&account.key()?);
        let blank = || AccountRecord::blank(account);
        let position = transaction
            .writes
            .iter()
            .position(|write| *write.id() == id);
        if let Some(position) = position {
            let record = match &transaction.writes[position] {
                Write::Put(_, value) => read_back(&id, value)?,
                Write::Delete(_) => blank(),
            };
            let seen = Seen::Written(position);
            return Ok(Opened { id, seen, record });
        }
        let found = self.accounts.get(&id.key).await?;
        let (seen, record) = match found {
            Some(found) => (Seen::At(found.revision), found.value),
            None => (Seen::Absent, blank()),
        };
        Ok(Opened { id, seen, record })
    }
}

/// An account that was read to be written in a transaction.
struct Opened {
    id: RecordId,
    seen: Seen,
    record: AccountRecord,
}

/// Where an account was read.
enum Seen {
    /// It is not stored.
    Absent,
    /// It is stored.
    At(Revision),
    /// An earlier part of the same transaction writes it, and checks it.
    Written(usize),
}

impl Opened {
    /// Adds that the account becomes what its record now says, and was as it was read.
    fn close(self, mut transaction: Transaction) -> Result<Transaction, LedgerError> {
        let Self { id, seen, record } = self;
        let write = if record.is_dispensable() {
            Write::Delete(id.clone())
        } else {
            let value = serde_json::to_value(&record);
            let value = value.map_err(|error| Invalid::new(error.to_string()).within(&id))?;
            Write::Put(id.clone(), value)
        };
        Ok(match seen {
            Seen::Absent => transaction.check(Check::Absent(id)).write(write),
            Seen::At(revision) => transaction.check(Check::At(id, revision)).write(write),
            Seen::Written(position) => {
                transaction.writes[position] = write;
                transaction
            }
        })
    }
}

fn read_back(id: &RecordId, value: &serde_json::Value) -> Result<AccountRecord, Invalid> {
    serde_json::from_value(value.clone())
        .map_err(|error| Invalid::new(error.to_string()).within(id))
}
