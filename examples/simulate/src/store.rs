//! The store as a process sees it: each commit is a step at which something may go wrong.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright_region::{
    monitor::Pulse,
    server::{Presence, Server},
};
use fleetwright_store::{
    Document as _, Interest, MemoryStore, Page, Query, Record, RecordId, Result, Revision, Schema,
    Store, StoreError, Transaction, Watch, Write,
};

use crate::{
    fault::{Kind, Site},
    ledger::Ledger,
    truth::Truth,
};

/// Who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what its name says")]
pub enum Actor {
    Service,
    Controller,
    Monitor,
}

/// A handle of one part of one process.
#[derive(Debug)]
pub struct FaultyStore {
    /// Who writes.
    pub actor: Actor,
    /// The store that outlives the process.
    pub inner: MemoryStore,
    /// Where steps are counted.
    pub ledger: Arc<Ledger>,
    /// The world behind, for the rules.
    pub truth: Truth,
}

impl FaultyStore {
    /// What a transaction is for.
    async fn site(&self, transaction: &Transaction) -> Site {
        let Some(write) = transaction.writes.first() else {
            return Site::Note;
        };
        let before = self.inner.get(write.id()).await.ok().flatten();
        let value = match write {
            Write::Delete(_) => return Site::Forget,
            Write::Put(id, _) if id.kind.as_str() == Pulse::KIND => return Site::Beat,
            Write::Put(_, value) => value,
        };
        match (self.actor, &before) {
            (Actor::Service, None) => return Site::Make,
            (Actor::Service, Some(_)) => return Site::Ask,
            (Actor::Monitor, _) => return Site::Observe,
            (Actor::Controller, _) => {}
        }
        let before = before.map(|record| record.value).unwrap_or_default();
        let differs = |path: &str| before.pointer(path) != value.pointer(path);
        let is_set = |path: &str| value.pointer(path).is_some_and(|found| !found.is_null());
        if differs("/launch/incarnation") {
            Site::Begin
        } else if differs("/instance/id") {
            Site::Record
        } else if differs("/launch/sent_at") && is_set("/launch/sent_at") {
            Site::Resend
        } else if differs("/instance/ending/accepted_at") && is_set("/instance/ending/accepted_at")
        {
            Site::Ended
        } else if differs("/instance/ending") {
            Site::Ending
        } else if differs("/instance/acted") {
            Site::Change
        } else if differs("/instance/doubt") && !differs("/retry") {
            Site::Attempt
        } else {
            Site::Note
        }
    }

    /// Whether what is written is true.
    fn judge(&self, site: Site, transaction: &Transaction) {
        if site == Site::Beat && self.ledger.notes(|notes| notes.list_failed) {
            self.ledger
                .violated("the pulse goes on, and nothing was looked at");
        }
        for write in &transaction.writes {
            let Write::Put(_, value) = write else {
                continue;
            };
            let Ok(server) = serde_json::from_value::<Server>(value.clone()) else {
                continue;
            };
            let Some(seen) = server.seen() else {
                continue;
            };
            let missing = matches!(seen.presence, Presence::Missing(_));
            if site == Site::Observe && missing && self.truth.exists(&seen.instance) {
                self.ledger.violated(format!(
                    "machine {} is declared missing, and exists",
                    seen.instance
                ));
            }
        }
    }
}

fn lost() -> StoreError {
    StoreError::UnknownOutcome {
        reason: "injected".to_owned(),
        source: None,
    }
}

#[async_trait]
impl Store for FaultyStore {
    fn schema(&self) -> &Schema {
        self.inner.schema()
    }

    async fn get(&self, id: &RecordId) -> Result<Option<Record>> {
        self.ledger.pause(Duration::ZERO).await;
        self.inner.get(id).await
    }

    async fn list(&self, query: &Query) -> Result<Page> {
        self.ledger.pause(Duration::ZERO).await;
        self.inner.list(query).await
    }

    async fn commit(&self, transaction: &Transaction) -> Result<Revision> {
        self.ledger.pause(Duration::from_millis(30)).await;
        let site = self.site(transaction).await;
        let fault = self.ledger.strike(site);
        match fault {
            Some(Kind::CrashBefore) => self.ledger.die().await,
            Some(Kind::Error) => {
                return Err(StoreError::Unavailable {
                    reason: "injected".to_owned(),
                    source: None,
                });
            }
            Some(Kind::LostRequest) => return Err(lost()),
            Some(Kind::CrashAfter | Kind::LostReply) | None => {}
        }
        let answer = self.inner.commit(transaction).await;
        if answer.is_ok() {
            self.judge(site, transaction);
        }
        match fault {
            Some(Kind::CrashAfter) => self.ledger.die().await,
            Some(Kind::LostReply) => return Err(lost()),
            Some(Kind::CrashBefore | Kind::Error | Kind::LostRequest) | None => {}
        }
        answer
    }

    async fn head(&self) -> Result<Revision> {
        self.inner.head().await
    }

    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch> {
        self.inner.watch(after, interest).await
    }

    async fn compact(&self, through: Revision) -> Result<()> {
        self.inner.compact(through).await
    }
}
