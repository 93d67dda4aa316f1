//! Driving one saga: each round reads it, does the one thing its phase says, and stores what became of it.
//!
//! The process may die between any two lines here. What it had not stored is done again, under the same ticket.

use std::time::Duration;

use fleetwright_store::{Check, RecordId, StoreError, Transaction, Versioned};

use super::{
    LocalError, Phase, Queue, Reason, RemoteError, Saga, SagaError, Sagas,
    record::{Next, Request},
};

use crate::schema::key_for;

/// How often the local step is built anew in one go when others are faster with its records.
const LOCAL_RACES: usize = 16;

/// What has become of a saga.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done, here and there.
    Done,
    /// It is undone, here and there, and this is why.
    Undone(Reason),
    /// It waits to be tried again, after this error.
    Waiting {
        /// What went wrong.
        error: String,
        /// Whether somebody should look at it.
        queue: Queue,
    },
    /// Somebody else has ended it, or there never was one: the record itself tells which.
    Ended,
}

/// What became of one round.
enum Round {
    /// Look at it again.
    Again,
    /// That is all for now.
    Over(Outcome),
}

impl Sagas {
    /// Drives the saga for a record as far as it goes now, in a task of its own: it goes on when this call is dropped,
    /// so no request's deadline cuts off what undoes it.
    pub async fn run_to_end(&self, pays_for: &RecordId) -> Result<Outcome, SagaError> {
        let (sagas, id) = (self.clone(), pays_for.clone());
        let task = tokio::spawn(async move { sagas.drive(&id).await });
        let interrupted = |_| SagaError::Interrupted {
            pays_for: pays_for.clone(),
        };
        task.await.map_err(interrupted)?
    }

    /// Drives the saga for a record as far as it goes now, here. Dropping the call is like a crash: the saga is taken up
    /// by a sweep.
    pub async fn drive(&self, pays_for: &RecordId) -> Result<Outcome, SagaError> {
        let key = key_for(pays_for)?;
        loop {
            let Some(read) = self.table.get(&key).await? else {
                return Ok(Outcome::Ended);
            };
            let round = match read.value.request() {
                Some(request) => self.remote_round(&read, &request).await?,
                None => self.local_round(&read).await?,
            };
            match round {
                Round::Again => {}
                Round::Over(outcome) => return Ok(outcome),
            }
        }
    }

    async fn remote_round(
        &self,
        read: &Versioned<Saga>,
        request: &Request,
    ) -> Result<Round, SagaError> {
        let saga = &read.value;
        match self.send(read, request).await {
            Ok(()) => self.store_done(read, Transaction::new()).await,
            Err(error) => match (&saga.phase, error) {
                (Phase::Charge, RemoteError::Exceeded(exceeded)) => {
                    self.undo(read, Reason::Exceeded(exceeded)).await
                }
                (Phase::Charge, RemoteError::Refused { reason }) => {
                    self.undo(read, Reason::Refused(reason)).await
                }
                (Phase::Charge | Phase::Local | Phase::Settle | Phase::Undo(_), error) => {
                    self.postpone(read, &error.to_string()).await
                }
            },
        }
    }

    async fn send(&self, read: &Versioned<Saga>, request: &Request) -> Result<(), RemoteError> {
        let ticket = read.value.ticket(read.revision);
        let call = async {
            match request {
                Request::Allocate(allocation) => self.remote.allocate(&ticket, allocation).await,
                Request::Update(allocation) => self.remote.update(&ticket, allocation).await,
                Request::Release(pays_for) => self.remote.release(&ticket, pays_for).await,
            }
        };
        let answer = tokio::time::timeout(self.patience.call, call).await;
        answer.unwrap_or_else(|_| {
            let reason = no_answer(self.patience.call);
            Err(RemoteError::Unavailable { reason })
        })
    }

    async fn local_round(&self, read: &Versioned<Saga>) -> Result<Round, SagaError> {
        let mut last = None;
        for _ in 0..LOCAL_RACES {
            let built = self.local.transaction(&read.value);
            let built = tokio::time::timeout(self.patience.call, built).await;
            let built =
                built.unwrap_or_else(|_| Err(LocalError::Later(no_answer(self.patience.call))));
            let transaction = match built {
                Ok(transaction) => transaction,
                Err(LocalError::Refused(reason)) => {
                    return self.undo(read, Reason::Local(reason)).await;
                }
                Err(LocalError::Later(reason)) => return self.postpone(read, &reason).await,
            };
            match self.store_done(read, transaction).await {
                // Somebody else was faster with what the step writes: it judges anew.
                Err(SagaError::Store(error)) if error.conflict().is_some() => last = Some(error),
                // It never fits into a store, whoever tries.
                Err(SagaError::Store(StoreError::Invalid(invalid))) => {
                    return self.undo(read, Reason::Local(invalid.to_string())).await;
                }
                answer => return answer,
            }
        }
        let error = last.map(|error| error.to_string()).unwrap_or_default();
        self.postpone(read, &error).await
    }

    /// Stores that the phase is done, together with what it writes here.
    async fn store_done(
        &self,
        read: &Versioned<Saga>,
        transaction: Transaction,
    ) -> Result<Round, SagaError> {
        let outcome = match &read.value.phase {
            Phase::Undo(reason) => Outcome::Undone(reason.clone()),
            Phase::Charge | Phase::Local | Phase::Settle => Outcome::Done,
        };
        let next = read.value.done(read.revision);
        self.store_next(read, transaction, next, outcome).await
    }

    async fn undo(&self, read: &Versioned<Saga>, reason: Reason) -> Result<Round, SagaError> {
        let next = read.value.undone(read.revision, reason.clone());
        let outcome = Outcome::Undone(reason);
        self.store_next(read, Transaction::new(), next, outcome)
            .await
    }

    async fn postpone(&self, read: &Versioned<Saga>, error: &str) -> Result<Round, SagaError> {
        let saga = &read.value;
        let failures = saga.attempts.saturating_add(1);
        let queue = match saga.phase {
            Phase::Charge | Phase::Local if failures >= self.patience.give_up_after => {
                return self.undo(read, Reason::GivenUp(error.to_owned())).await;
            }
            Phase::Settle | Phase::Undo(_) if failures >= self.patience.stuck_after => Queue::Stuck,
            Phase::Charge | Phase::Local | Phase::Settle | Phase::Undo(_) => Queue::Waiting,
        };
        let failed = saga.failed(read.revision, error, queue);
        let failed = failed.due_in(self.now(), self.patience.pause(failures));
        let write = self.table.replace(Transaction::new(), read, &failed)?;
        let error = error.to_owned();
        self.commit(read, write, Round::Over(Outcome::Waiting { error, queue }))
            .await
    }

    async fn store_next(
        &self,
        read: &Versioned<Saga>,
        transaction: Transaction,
        next: Next,
        outcome: Outcome,
    ) -> Result<Round, SagaError> {
        match next {
            Next::Saga(next) => {
                let next = next.due_in(self.now(), self.patience.lease);
                let write = self.table.replace(transaction, read, &next)?;
                self.commit(read, write, Round::Again).await
            }
            Next::End => {
                let write = self.table.remove(transaction, read);
                self.commit(read, write, Round::Over(outcome)).await
            }
        }
    }

    /// Commits. If somebody else has moved the saga, or nobody knows, it is looked at again.
    async fn commit(
        &self,
        read: &Versioned<Saga>,
        transaction: Transaction,
        then: Round,
    ) -> Result<Round, SagaError> {
        match self.store.commit(&transaction).await {
            Ok(_) => Ok(then),
            Err(StoreError::UnknownOutcome { .. }) => Ok(Round::Again),
            Err(error) => {
                let moved = error
                    .conflict()
                    .is_some_and(|conflict| match &conflict.check {
                        Check::At(id, _) => *id == self.table.id(&read.key),
                        Check::Absent(_) | Check::Exists(_) | Check::Unclaimed(_) => false,
                    });
                if moved {
                    Ok(Round::Again)
                } else {
                    Err(error.into())
                }
            }
        }
    }
}

fn no_answer(within: Duration) -> String {
    format!("no answer within {within:?}")
}
