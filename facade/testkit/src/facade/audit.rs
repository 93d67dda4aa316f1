//! Reading the audit log, and comparing it with what was committed.

use fleetwright_identity::{AuditEntry, AuditQuery, PageRequest, Scope};
use fleetwright_store::{Commit, Interest, Revision, Store};

use super::TestFacade;
use crate::operator;

impl TestFacade {
    /// All entries of the audit log, oldest first.
    pub async fn audit_entries(&self) -> Vec<AuditEntry> {
        self.audit_entries_with(AuditQuery::within(Scope::Global))
            .await
    }

    /// The entries about the record with this id, oldest first.
    pub async fn audit_entries_of(&self, id: impl ToString) -> Vec<AuditEntry> {
        let query = AuditQuery::within(Scope::Global).record(id);
        self.audit_entries_with(query).await
    }

    /// All entries that match a query, oldest first.
    pub async fn audit_entries_with(&self, query: AuditQuery) -> Vec<AuditEntry> {
        let mut query = query.page(PageRequest::default().limit(500));
        let mut entries = Vec::new();
        loop {
            let page = self.audit.list(&operator(), &query).await.unwrap();
            assert!(page.damaged.is_empty(), "{:?}", page.damaged);
            entries.extend(page.items);
            match page.next {
                Some(next) => query.page = query.page.after(next),
                None => return entries,
            }
        }
    }
}

/// Every commit of a store after a revision.
pub async fn commits_after(store: &dyn Store, after: Revision) -> Vec<Commit> {
    let head = store.head().await.unwrap();
    let mut watch = store.watch(after, Interest::all()).await.unwrap();
    let mut commits: Vec<Commit> = Vec::new();
    let last = |commits: &[Commit]| commits.last().map_or(after, |commit| commit.revision);
    while last(&commits) < head {
        commits.push(watch.next().await.unwrap());
    }
    commits
}
