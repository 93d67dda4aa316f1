//! A ledger in another service: what is asked of it, and what it must promise.

use std::fmt::{self, Debug};

use async_trait::async_trait;
use fleetwright_store::{RecordId, Revision};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Allocation, Exceeded};

/// The ledger of another service.
///
/// # Contract
///
/// - **Applied once.** A request with a ticket that was applied answers `Ok` and changes nothing, however often it comes.
/// - **Never late.** A request with a ticket lower than the last that was applied for the same record is
///   [`Superseded`](RemoteError::Superseded) and changes nothing, also when the allocation was released. For that the
///   service keeps the last ticket of a released allocation as long as a request can be under way.
/// - **Judged anew.** A request that was refused is judged again when it comes again.
/// - An error other than [`Unavailable`](RemoteError::Unavailable) means that the request changed nothing.
///
/// A service that knows idempotency keys and no order gets the first promise from [`Ticket::key`]; without the second, a
/// request that is delayed until after its saga has ended can leave an allocation behind.
#[async_trait]
pub trait RemoteLedger: Send + Sync + Debug {
    /// Makes the allocation for a record.
    async fn allocate(&self, ticket: &Ticket, allocation: &Allocation) -> Result<(), RemoteError>;

    /// Gives the allocation for a record these amounts.
    async fn update(&self, ticket: &Ticket, allocation: &Allocation) -> Result<(), RemoteError>;

    /// Ends the allocation for a record. That there is none is fine.
    async fn release(&self, ticket: &Ticket, pays_for: &RecordId) -> Result<(), RemoteError>;
}

/// What a request is known by: the same for every attempt, larger for every later request about the same record.
///
/// It follows from what is stored before the request is sent: the revision of the commit that began the saga, and the
/// step. A process that goes on after a crash sends the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ticket {
    /// The commit that began the saga.
    pub begun: Revision,
    /// Which of its requests.
    pub step: u8,
}

/// Of the idempotency keys, so that they are no other program's. Never changed: keys of sagas under way follow from it.
const NAMESPACE: Uuid = Uuid::from_u128(0x3f0c_5d0e_7a0b_4f6e_9d56_1f1f_8a6b_2c11);

impl Ticket {
    /// The idempotency key of the request about a record: a UUID of version 5.
    pub fn key(&self, pays_for: &RecordId) -> Uuid {
        let name = format!("{pays_for} {} {}", self.begun, self.step);
        Uuid::new_v5(&NAMESPACE, name.as_bytes())
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.begun, self.step)
    }
}

/// Why another service did not do what it was asked to. The reasons are stored and shown: no secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// There would be more than the limit. Nothing changed.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    /// The request cannot be carried out as it is. Nothing changed.
    #[error("the remote ledger refuses: {reason}")]
    Refused {
        /// In the service's words.
        reason: String,
    },
    /// A later request about the same record was applied. Nothing changed.
    #[error("a later request about this record was applied by the remote ledger")]
    Superseded,
    /// No answer, or none that tells. It may have been applied.
    #[error("the remote ledger is unavailable: {reason}")]
    Unavailable {
        /// What happened.
        reason: String,
    },
}
