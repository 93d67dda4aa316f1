//! Reading the audit log: pages in the order of time, with filters.

use chrono::{DateTime, Utc};
use fleetwright_store::{IndexName, IndexValue, Invalid, Partial, Query, Scalar, StoreError};

use super::{
    AuditEntry, AuditLog,
    entry::{log_of, position},
};
use crate::{
    Actor, ListPage, PageRequest, Principal, Refused, Resource, Scope, Verb,
    page::{MAX_LIST_PAGE, continue_after},
};

/// The largest number of entries that one page reads. With a filter a page can be shorter than requested and still have a next one.
const MAX_READ: usize = 1000;

/// Which entries to return.
///
/// ```
/// use fleetwright_identity::{AuditQuery, Resource, Scope};
///
/// let keys = AuditQuery::within(Scope::Global).resource(Resource::Instances).record("i-1");
/// assert_eq!(keys.record.as_deref(), Some("i-1"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditQuery {
    /// The scope: entries of records in it. The caller needs the permission there.
    pub within: Scope,
    /// Only what this actor did.
    pub actor: Option<Actor>,
    /// Only what was done to this kind of record.
    pub resource: Option<Resource>,
    /// Only what was done to the record with this id.
    pub record: Option<String>,
    /// Only entries of this date and later ones.
    pub from: Option<DateTime<Utc>>,
    /// Only entries before this date.
    pub until: Option<DateTime<Utc>>,
    /// Which page.
    pub page: PageRequest,
}

impl AuditQuery {
    /// All entries of a scope.
    pub fn within(scope: Scope) -> Self {
        Self {
            within: scope,
            actor: None,
            resource: None,
            record: None,
            from: None,
            until: None,
            page: PageRequest::default(),
        }
    }

    /// Only what this actor did.
    #[must_use]
    pub fn actor(mut self, actor: Actor) -> Self {
        self.actor = Some(actor);
        self
    }

    /// Only what was done to this kind of record.
    #[must_use]
    pub fn resource(mut self, resource: Resource) -> Self {
        self.resource = Some(resource);
        self
    }

    /// Only what was done to the record with this id.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers pass ids and names as they have them"
    )]
    pub fn record(mut self, id: impl ToString) -> Self {
        self.record = Some(id.to_string());
        self
    }

    /// Only entries from the first date on and before the second.
    #[must_use]
    pub fn between(mut self, from: DateTime<Utc>, until: DateTime<Utc>) -> Self {
        (self.from, self.until) = (Some(from), Some(until));
        self
    }

    /// Sets the page.
    #[must_use]
    pub fn page(mut self, page: PageRequest) -> Self {
        self.page = page;
        self
    }

    /// Returns whether an entry matches everything but the dates.
    fn matches(&self, entry: &AuditEntry) -> bool {
        self.matches_where(entry, |_| true)
    }

    /// Returns whether what is understood of an entry matches everything.
    fn matches_partly(&self, shown: &Partial<AuditEntry>) -> bool {
        let is_late = self.until.is_some_and(|until| shown.value.at >= until);
        !is_late && self.matches_where(&shown.value, |member| shown.shows(member))
    }

    fn matches_where(&self, entry: &AuditEntry, is_known: impl Fn(&str) -> bool) -> bool {
        let (actor, record) = (self.actor.as_ref(), self.record.as_ref());
        let (resource, matches) = (self.resource, |member: &str, is_same| {
            is_same || !is_known(member)
        });
        self.within.contains(&entry.scope())
            && actor.is_none_or(|actor| matches("actor", *actor == entry.actor))
            && resource.is_none_or(|resource| matches("resource", resource == entry.resource))
            && record.is_none_or(|record| *record == entry.record)
    }
}

/// Why the log could not be read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The caller may not read the log of this scope (HTTP 403).
    #[error("not permitted")]
    Refused(#[from] Refused),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl From<Invalid> for AuditError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

impl AuditLog {
    /// Returns a page of entries, oldest first. It needs the permission to list the audit log in the scope.
    ///
    /// The cost of a page does not grow with the log: it reads at most a thousand entries. With a filter a page can be shorter than
    /// requested, and even empty, and still have a [next](ListPage::next) one.
    ///
    /// # Errors
    ///
    /// The caller lacks the permission, or the store fails. Neither depends on whether the organization or project exists.
    pub async fn list(
        &self,
        principal: &Principal,
        query: &AuditQuery,
    ) -> Result<ListPage<AuditEntry>, AuditError> {
        principal.authorize(Verb::List, Resource::AuditLog, &query.within)?;
        let range = self.range(query)?;
        let wanted = query.page.size() as usize;
        let mut reached = Self::start(query)?;
        let mut page = ListPage {
            items: Vec::new(),
            newer: Vec::new(),
            damaged: Vec::new(),
            next: None,
        };
        let mut read = 0;
        loop {
            let schema = self.store.schema();
            let mut part = range.clone().limit(MAX_LIST_PAGE.min(wanted as u32 + 1));
            if let Some(reached) = &reached {
                part = continue_after(part, schema, reached)?;
            }
            let mut found = self.entries.list(&part).await?;
            read += found.items.len() + found.damaged.len();
            let damaged = found.damaged.iter().map(|damaged| damaged.id.key.clone());
            let last_damaged = damaged.max();
            let newer = found.take_newer().into_iter();
            let newer = newer.map(|shown| shown.map(|stored| stored.entry));
            page.newer
                .extend(newer.filter(|shown| query.matches_partly(shown)));
            page.damaged.extend(found.damaged);
            for stored in found.items {
                let entry = stored.value.entry;
                if query.until.is_some_and(|until| entry.at >= until) {
                    return Ok(page);
                }
                if !query.matches(&entry) {
                    reached = Some(stored.key.to_string());
                    continue;
                }
                if page.items.len() == wanted {
                    page.next = reached;
                    return Ok(page);
                }
                reached = Some(stored.key.to_string());
                page.items.push(entry);
            }
            if found.next.is_none() {
                return Ok(page);
            }
            let last_damaged = last_damaged.map(|key| key.to_string());
            reached = reached.max(last_damaged);
            if read >= MAX_READ {
                page.next = reached;
                return Ok(page);
            }
        }
    }

    /// The smallest range of the store that has all the entries. Each index value is complete, so entries are in the order of time.
    fn range(&self, query: &AuditQuery) -> Result<Query, Invalid> {
        let log = log_of(&query.within);
        let by = |index: &str, parts: Vec<Scalar>| {
            Ok(self.entries.by(&IndexName::new(index)?, IndexValue(parts)))
        };
        match (&query.within, &query.record, &query.actor, query.resource) {
            (Scope::Global, ..) => Ok(self.entries.all()),
            (Scope::Organization(_) | Scope::Project(..), Some(record), ..) => {
                by("record", vec![log.into(), record.as_str().into()])
            }
            (Scope::Organization(_) | Scope::Project(..), None, Some(actor), _) => {
                let (kind, name) = actor.parts();
                by("actor", vec![log.into(), kind.into(), name.as_str().into()])
            }
            (Scope::Project(_, project), None, None, _) => {
                by("project", vec![log.into(), project.to_string().into()])
            }
            (Scope::Organization(_), None, None, Some(resource)) => {
                by("resource", vec![log.into(), resource.as_str().into()])
            }
            (Scope::Organization(_), None, None, None) => by("log", vec![log.into()]),
        }
    }

    fn start(query: &AuditQuery) -> Result<Option<String>, Invalid> {
        let from = query.from.map(position).transpose()?;
        let from = from.map(|key| key.to_string());
        Ok(query.page.after.clone().max(from))
    }
}
