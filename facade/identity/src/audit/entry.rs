//! One entry of the audit log, and its stored form.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use fleetwright_store::{Document, Invalid, Key};
use serde::{Deserialize, Serialize, Serializer};

use crate::{Actor, OrganizationId, ProjectId, Refused, Resource, Scope, Verb};

/// The name of the log of what belongs to no organization.
const PLATFORM: &str = "platform";

/// What happened, as a service describes it to the log.
///
/// ```
/// use fleetwright_identity::{Actor, ActorName, AuditEvent, AuditOutcome, Resource, Scope, Verb};
///
/// let ada = Actor::User(ActorName::new("ada")?);
/// let event = AuditEvent::new(&ada, Verb::Delete, Resource::Flavors, "small", Scope::Global)
///     .named("Small")
///     .outcome(AuditOutcome::Requested);
/// # drop(event);
/// # Ok::<(), fleetwright_identity::InvalidName>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an event is recorded only in a transaction"]
pub struct AuditEvent {
    actor: Actor,
    verb: Verb,
    resource: Resource,
    record: String,
    name: Option<String>,
    scope: Scope,
    generation: Option<u64>,
    outcome: AuditOutcome,
}

impl AuditEvent {
    /// Describes a change that is complete with the transaction: the actor, what it did, and the id and scope of the record.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers pass ids and names as they have them"
    )]
    pub fn new(
        actor: &Actor,
        verb: Verb,
        resource: Resource,
        record: impl ToString,
        scope: Scope,
    ) -> Self {
        Self {
            actor: actor.clone(),
            verb,
            resource,
            record: record.to_string(),
            name: None,
            scope,
            generation: None,
            outcome: AuditOutcome::Done,
        }
    }

    /// Describes a refused call on a record.
    pub(super) fn refused(refused: &Refused, record: impl ToString, name: Option<&str>) -> Self {
        let Refused {
            actor,
            verb,
            resource,
            scope,
        } = refused;
        let event = Self::new(actor, *verb, *resource, record, *scope);
        Self {
            name: name.map(ToOwned::to_owned),
            outcome: AuditOutcome::Refused,
            ..event
        }
    }

    /// Adds the name of the record.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers pass ids and names as they have them"
    )]
    pub fn named(mut self, name: impl ToString) -> Self {
        self.name = Some(name.to_string());
        self
    }

    /// Adds the generation of the record's desired state after the change.
    pub fn generation(mut self, generation: u64) -> Self {
        self.generation = Some(generation);
        self
    }

    /// Sets what became of the call. Default: [`AuditOutcome::Done`].
    pub fn outcome(mut self, outcome: AuditOutcome) -> Self {
        self.outcome = outcome;
        self
    }

    pub(super) fn at(&self, at: DateTime<Utc>) -> Stored {
        let Self {
            actor,
            verb,
            resource,
            record,
            name,
            scope,
            generation,
            outcome,
        } = self.clone();
        let entry = AuditEntry {
            at,
            actor,
            verb,
            resource,
            record,
            name,
            organization: scope.organization(),
            project: scope.project(),
            generation,
            outcome,
        };
        Stored { entry }
    }
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditOutcome {
    /// The change was complete with the entry.
    Done,
    /// The request was recorded with the entry, and a controller carries it out.
    Requested,
    /// A secret was shown to the caller. The entry was committed first.
    Disclosed,
    /// The caller may read the record, and lacks the permission for the call. Nothing was changed or shown.
    Refused,
}

impl AuditOutcome {
    /// Returns the serialized name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Requested => "requested",
            Self::Disclosed => "disclosed",
            Self::Refused => "refused",
        }
    }
}

/// One entry of the audit log. Nothing changes it after it was written.
///
/// Its text form is one line: date, actor, verb, resource, id, name, scope, generation and outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditEntry {
    /// When it was written.
    pub at: DateTime<Utc>,
    /// Who made the call.
    pub actor: Actor,
    /// What was done.
    pub verb: Verb,
    /// To which kind of record.
    pub resource: Resource,
    /// The id of the record, which may no longer exist.
    pub record: String,
    /// The name of the record at that time, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The organization of the record. `None` for what belongs to the whole installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<OrganizationId>,
    /// The project of the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectId>,
    /// The generation of the record's desired state after the change, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// What became of the call.
    pub outcome: AuditOutcome,
}

impl AuditEntry {
    /// Returns the scope of the record.
    pub fn scope(&self) -> Scope {
        match (self.organization, self.project) {
            (None, _) => Scope::Global,
            (Some(organization), None) => Scope::Organization(organization),
            (Some(organization), Some(project)) => Scope::Project(organization, project),
        }
    }
}

impl fmt::Display for AuditEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.to_rfc3339_opts(SecondsFormat::Secs, true);
        let (verb, resource) = (self.verb.as_str(), self.resource.as_str());
        write!(f, "{at} {} {verb} {resource} {}", self.actor, self.record)?;
        if let Some(name) = &self.name {
            write!(f, " ({name})")?;
        }
        match self.scope() {
            Scope::Global => {}
            scope @ (Scope::Organization(_) | Scope::Project(..)) => write!(f, " in {scope}")?,
        }
        if let Some(generation) = self.generation {
            write!(f, ", generation {generation}")?;
        }
        write!(f, ": {}", self.outcome.as_str())
    }
}

/// The stored form of an entry: with the log that it belongs to, by which entries are found.
///
/// It is read without `flatten`, which would lose the place of a value that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Stored {
    pub(super) entry: AuditEntry,
}

impl Serialize for Stored {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct InLog<'a> {
            /// The id of the organization, or `platform`.
            log: String,
            #[serde(flatten)]
            entry: &'a AuditEntry,
        }
        let (log, entry) = (log_of(&self.entry.scope()), &self.entry);
        InLog { log, entry }.serialize(serializer)
    }
}

impl Document for Stored {
    const KIND: &'static str = "audit-entry";
}

/// Returns the log to which the entries of a scope belong.
pub(super) fn log_of(scope: &Scope) -> String {
    match scope.organization() {
        Some(organization) => organization.to_string(),
        None => PLATFORM.to_owned(),
    }
}

/// The key of an entry: its date, then a number that orders the entries of one process, then random digits. Keys compare like dates.
pub(super) fn key(at: DateTime<Utc>, number: u64, random: u64) -> Result<Key, Invalid> {
    Key::new(format!("{}-{number:016x}-{random:016x}", position(at)?))
}

/// A position before all entries of a date and after all earlier ones.
pub(super) fn position(at: DateTime<Utc>) -> Result<Key, Invalid> {
    // Dates before 1970 and after 2262 are those of a wrong clock, and are in the first and last place.
    let latest = if at.timestamp() < 0 { 0 } else { i64::MAX };
    let nanos = at.timestamp_nanos_opt().unwrap_or(latest).max(0);
    Key::new(format!("{nanos:019}"))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::ActorName;

    proptest! {
        #[test]
        fn keys_are_in_the_order_of_dates(one in any::<i64>(), two in any::<i64>(), numbers in any::<(u64, u64)>()) {
            let date = |nanos: i64| DateTime::UNIX_EPOCH + TimeDelta::nanoseconds(nanos & i64::MAX);
            let key = |nanos, number| key(date(nanos), number, 7).unwrap();
            prop_assert_eq!(
                key(one, numbers.0).cmp(&key(two, numbers.1)),
                (date(one), numbers.0).cmp(&(date(two), numbers.1))
            );
            prop_assert!(position(date(one)).unwrap() < key(one, 0));
            prop_assert!(date(one) <= date(two) || key(two, u64::MAX) < position(date(one)).unwrap());
        }
    }

    #[test]
    fn dates_of_a_wrong_clock_have_a_position() {
        let first = position(DateTime::<Utc>::MIN_UTC).unwrap();
        let last = position(DateTime::<Utc>::MAX_UTC).unwrap();
        assert!(first < last && first.as_str().len() == last.as_str().len());
    }

    #[test]
    fn entry_is_one_line_and_round_trips() {
        let actor = Actor::User(ActorName::new("ada").unwrap());
        let scope = Scope::Project(Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
        let event = AuditEvent::new(&actor, Verb::SshKey, Resource::Instances, "i-1", scope)
            .named("web")
            .generation(3)
            .outcome(AuditOutcome::Disclosed);
        let stored = event.at(DateTime::UNIX_EPOCH);
        assert_eq!(
            stored.entry.to_string(),
            "1970-01-01T00:00:00Z user ada ssh-key instances i-1 (web) in project 00000000-0000-0000-0000-000000000002 of \
             organization 00000000-0000-0000-0000-000000000001, generation 3: disclosed"
        );
        assert_eq!(stored.entry.scope(), scope);
        let json = serde_json::to_value(&stored).unwrap();
        assert_eq!(json["log"], "00000000-0000-0000-0000-000000000001");
        assert_eq!(json["actor"]["name"], "ada");
        assert_eq!(serde_json::from_value::<Stored>(json).unwrap(), stored);
        for outcome in [
            AuditOutcome::Done,
            AuditOutcome::Requested,
            AuditOutcome::Disclosed,
            AuditOutcome::Refused,
        ] {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.as_str());
        }
    }
}
