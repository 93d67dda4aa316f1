//! Which instances to reconcile: those whose record changed, and the owners of changed servers. A commit causes no list.

use fleetwright_store::{
    Commit, Interest, Kind, Query, Record, RecordId, Revision, StoreError, Watch,
};
use metrics::counter;

use super::Controller;
use crate::instance::InstanceId;

impl Controller {
    /// Lists all instances and all owners of servers, with a watch from the first page on.
    pub(super) async fn list_all(&self) -> Result<(Vec<InstanceId>, Watch), StoreError> {
        let mut ids = Vec::new();
        let instance = |record: &Record| ids.push(id_of(record.id.key.as_str()));
        let first_revision = self.each(self.instances.kind(), instance).await?;
        let server = |record: &Record| ids.push(owner_of(record));
        self.each(&self.server_kind, server).await?;
        let kinds = [self.instances.kind().clone(), self.server_kind.clone()];
        let watch = self
            .store
            .watch(first_revision, Interest::kinds(kinds))
            .await?;
        let mut ids: Vec<_> = ids.into_iter().flatten().collect();
        ids.sort_unstable();
        ids.dedup();
        Ok((ids, watch))
    }

    /// Passes every record of a kind to `visit`, page by page. Returns the revision of the first page.
    async fn each(
        &self,
        kind: &Kind,
        mut visit: impl FnMut(&Record) + Send,
    ) -> Result<Revision, StoreError> {
        let mut query = Query::all(kind.clone());
        let mut first_revision = None;
        loop {
            let page = self.store.list(&query).await?;
            first_revision.get_or_insert(page.revision);
            page.records.iter().for_each(&mut visit);
            for damaged in &page.damaged {
                unreadable(&damaged.id, &damaged.reason);
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(first_revision.unwrap_or(page.revision)),
            }
        }
    }
}

/// The instances that a commit affects: those that it wrote, and the owners of the servers that it wrote.
pub(super) fn keys_of(commit: &Commit) -> Vec<InstanceId> {
    let ids = commit.changes.iter().filter_map(|change| {
        let record = change.record();
        match record.id.kind.as_str() {
            crate::schema::INSTANCE_KIND => id_of(record.id.key.as_str()),
            _ => owner_of(record),
        }
    });
    ids.collect()
}

/// The instance that owns a server. If its record has no owner, the instance of the same id.
fn owner_of(record: &Record) -> Option<InstanceId> {
    let part = |path| record.value.pointer(path).and_then(|part| part.as_str());
    match (part("/owner/kind"), part("/owner/id")) {
        (Some(crate::schema::INSTANCE_KIND), Some(id)) => {
            let found = id_of(id);
            if found.is_none() {
                unreadable(&record.id, "its owner's id is not the id of an instance");
            }
            found
        }
        (Some(_), _) => None,
        (None, _) => id_of(record.id.key.as_str()),
    }
}

fn id_of(text: &str) -> Option<InstanceId> {
    text.parse().ok()
}

fn unreadable(record: &RecordId, reason: &str) {
    counter!("fleetwright_compute_unreadable_records_total").increment(1);
    tracing::warn!(%record, %reason, "a record cannot be read; an operator has to see to it");
}
