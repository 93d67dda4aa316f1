//! A remote ledger in the process, with faults, for tests: strict where a real one would forgive.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use fleetwright_store::RecordId;

use super::{RemoteError, RemoteLedger, Ticket, record::Request};
use crate::{Account, Allocation, Amounts, Exceeded, OrganizationId, QuotaKinds};

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It never arrives.
    LostRequest,
    /// It is carried out, and nobody is told.
    LostReply,
    /// The service answers that it cannot now.
    Failure,
    /// The service answers that it will not, though it might.
    Refusal,
    /// It is under way until [`RemoteDouble::deliver_late`].
    Late,
    /// It is carried out, and the caller waits for the answer for ever.
    Silence,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 6] = [
        Self::LostRequest,
        Self::LostReply,
        Self::Failure,
        Self::Refusal,
        Self::Late,
        Self::Silence,
    ];
}

/// A remote ledger in the process, with the limits of a registry. Clones are the same one.
#[derive(Clone, Debug)]
pub struct RemoteDouble {
    kinds: Arc<QuotaKinds>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// For every record that there ever was a request about: the last that was applied, and what there is now.
    records: BTreeMap<RecordId, (Ticket, Option<Allocation>)>,
    faults: BTreeMap<usize, Fault>,
    calls: usize,
    late: Vec<(Ticket, Request)>,
}

impl RemoteDouble {
    /// An empty ledger.
    pub fn new(kinds: Arc<QuotaKinds>) -> Self {
        let state = Arc::default();
        Self { kinds, state }
    }

    /// Lets something go wrong with the request of this number, from 0 and counted from the ledger's beginning.
    pub fn fault(&self, request: usize, fault: Fault) {
        self.state().faults.insert(request, fault);
    }

    /// How many requests there were.
    pub fn calls(&self) -> usize {
        self.state().calls
    }

    /// The allocation for a record.
    pub fn allocation(&self, pays_for: &RecordId) -> Option<Allocation> {
        let state = self.state();
        let (_, allocation) = state.records.get(pays_for)?;
        allocation.clone()
    }

    /// Delivers what was late, and answers how many requests that were.
    pub fn deliver_late(&self) -> usize {
        let late = std::mem::take(&mut self.state().late);
        for (ticket, request) in &late {
            // Nobody waits for the answer any more.
            let _ = self.apply(ticket, request);
        }
        late.len()
    }

    async fn receive(&self, ticket: &Ticket, request: Request) -> Result<(), RemoteError> {
        let fault = {
            let mut state = self.state();
            let number = state.calls;
            state.calls += 1;
            state.faults.remove(&number)
        };
        let unavailable = |reason: &str| {
            let reason = reason.to_owned();
            Err(RemoteError::Unavailable { reason })
        };
        match fault {
            None => self.apply(ticket, &request),
            Some(Fault::LostRequest) => unavailable("the request was lost"),
            Some(Fault::LostReply) => {
                let _ = self.apply(ticket, &request);
                unavailable("the reply was lost")
            }
            Some(Fault::Failure) => unavailable("it cannot now"),
            Some(Fault::Refusal) => Err(RemoteError::Refused {
                reason: "it will not".to_owned(),
            }),
            Some(Fault::Late) => {
                self.state().late.push((*ticket, request));
                unavailable("the request is under way")
            }
            Some(Fault::Silence) => {
                let _ = self.apply(ticket, &request);
                std::future::pending().await
            }
        }
    }

    fn apply(&self, ticket: &Ticket, request: &Request) -> Result<(), RemoteError> {
        let refused = |reason: &str| {
            let reason = reason.to_owned();
            Err(RemoteError::Refused { reason })
        };
        let mut state = self.state();
        let pays_for = match request {
            Request::Allocate(allocation) | Request::Update(allocation) => &allocation.pays_for,
            Request::Release(pays_for) => pays_for,
        };
        let there = match state.records.get(pays_for) {
            Some((last, _)) if ticket < last => return Err(RemoteError::Superseded),
            Some((last, _)) if ticket == last => return Ok(()),
            Some((_, there)) => there.clone(),
            None => None,
        };
        let next = match (request, there) {
            (Request::Allocate(_), Some(_)) => return refused("there is such an allocation"),
            (Request::Update(_), None) => return refused("there is no such allocation"),
            (Request::Allocate(next), None) | (Request::Update(next), Some(_)) => {
                self.holds(&state, next)?;
                Some(next.clone())
            }
            (Request::Release(_), Some(_) | None) => None,
        };
        state.records.insert(pays_for.clone(), (*ticket, next));
        Ok(())
    }

    /// Whether the organization's limits hold with an allocation in the place of the one there is for its record.
    fn holds(&self, state: &State, next: &Allocation) -> Result<(), Exceeded> {
        let before = state.records.get(&next.pays_for);
        let before = before.and_then(|(_, allocation)| allocation.clone());
        let before = before
            .map(|allocation| allocation.amounts)
            .unwrap_or_default();
        let others = self.used_but_for(state, next.organization, &next.pays_for);
        for (kind, defaults) in self.kinds.iter() {
            let total = others.of(kind).saturating_add(next.amounts.of(kind));
            if total > defaults.organization && next.amounts.of(kind) > before.of(kind) {
                return Err(Exceeded {
                    account: Account::Organization(next.organization),
                    kind: kind.clone(),
                    total,
                    limit: defaults.organization,
                });
            }
        }
        Ok(())
    }

    fn used_but_for(&self, state: &State, of: OrganizationId, but: &RecordId) -> Amounts {
        let all = state
            .records
            .values()
            .filter_map(|(_, there)| there.as_ref());
        let others: Vec<_> = all
            .filter(|there| there.organization == of && there.pays_for != *but)
            .collect();
        let sum = |kind| {
            others
                .iter()
                .map(|there| there.amounts.of(kind))
                .sum::<u64>()
        };
        let each = self.kinds.iter().map(|(kind, _)| (kind.clone(), sum(kind)));
        each.collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl RemoteLedger for RemoteDouble {
    async fn allocate(&self, ticket: &Ticket, allocation: &Allocation) -> Result<(), RemoteError> {
        self.receive(ticket, Request::Allocate(allocation.clone()))
            .await
    }

    async fn update(&self, ticket: &Ticket, allocation: &Allocation) -> Result<(), RemoteError> {
        self.receive(ticket, Request::Update(allocation.clone()))
            .await
    }

    async fn release(&self, ticket: &Ticket, pays_for: &RecordId) -> Result<(), RemoteError> {
        self.receive(ticket, Request::Release(pays_for.clone()))
            .await
    }
}
