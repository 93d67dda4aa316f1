//! What operations tell of an instance that is not there, or not there for long. Pure.
//!
//! Owns how a fate is read from them. Compute Engine keeps no record of a deleted instance, and shows
//! one that is being deleted like one that is being stopped; only its operations know.

use chrono::{DateTime, Utc};
use google_cloud_compute_v1::model::{Operation, operation::Status};

use crate::error::{Cause, Failure};

/// What became of an instance, as far as its operations tell.
#[derive(Clone, Debug)]
pub(crate) enum Fate {
    /// No operation names it: it never was, or that was long ago.
    Unknown,
    /// It is being made.
    Coming,
    /// It could not be made.
    Failed(Failure),
    /// It is being deleted.
    Going,
    /// It is gone, with the reason.
    Gone(String),
    /// It was made, and nothing says that it is gone.
    Made(Past),
}

/// What is known of an instance that was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Past {
    /// When something last happened to it.
    pub(crate) since: Option<DateTime<Utc>>,
    /// That it was preempted, which ends some and stops others.
    pub(crate) preempted: Option<String>,
}

/// The fate of the one instance that all of `operations` are about.
pub(crate) fn fate<'a>(operations: impl IntoIterator<Item = &'a Operation>) -> Fate {
    let (mut past, mut seen, mut coming) = (Past::default(), false, false);
    let (mut made, mut failed, mut going, mut gone) = (false, None, false, false);
    for operation in operations {
        let done = is_over(operation);
        seen = true;
        match (kind(operation), done, failure(operation)) {
            (Kind::Insert, true, Some(failure)) => failed = Some(failure),
            (Kind::Insert, true, None) => made = true,
            (Kind::Insert, false, _) => coming = true,
            (Kind::Delete, true, None) => gone = true,
            (Kind::Delete, false, _) => going = true,
            (Kind::Preempted, ..) => past.preempted = Some(message(operation)),
            (Kind::Delete | Kind::Other, ..) => {}
        }
        past.since = past.since.max(end(operation));
    }
    // A delete that overtakes an insert fails it: it ended because somebody wanted it to. And of two
    // inserts of one name the second fails, and says nothing of what the first has made.
    match failed {
        _ if gone => Fate::Gone("deleted".to_owned()),
        _ if going => Fate::Going,
        Some(failure) if !made && !coming => Fate::Failed(failure),
        _ if coming => Fate::Coming,
        _ if seen => Fate::Made(past),
        _ => Fate::Unknown,
    }
}

enum Kind {
    Insert,
    Delete,
    Preempted,
    Other,
}

fn kind(operation: &Operation) -> Kind {
    match operation.operation_type.as_deref().unwrap_or_default() {
        "insert" | "bulkInsert" => Kind::Insert,
        "delete" => Kind::Delete,
        "compute.instances.preempted" => Kind::Preempted,
        _ => Kind::Other,
    }
}

fn message(operation: &Operation) -> String {
    let said = operation.status_message.as_deref();
    said.map_or_else(
        || "preempted".to_owned(),
        |text| format!("preempted: {text}"),
    )
}

fn end(operation: &Operation) -> Option<DateTime<Utc>> {
    operation.end_time.as_deref().and_then(time)
}

/// A time as Compute Engine writes it.
pub(crate) fn time(text: &str) -> Option<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(text).ok()?;
    Some(time.with_timezone(&Utc))
}

/// Whether an operation is over, for better or worse.
pub(crate) fn is_over(operation: &Operation) -> bool {
    operation.status == Some(Status::Done)
}

/// Whether an operation is over and done for, and why. The SDK answers such an operation like any other.
pub(crate) fn failure(operation: &Operation) -> Option<Failure> {
    if !is_over(operation) {
        return None;
    }
    let failed = operation.clone().to_result().is_err();
    failed.then(|| {
        let errors = operation
            .error
            .as_ref()
            .map(|error| error.errors.as_slice());
        let errors = errors.unwrap_or_default();
        let told: Vec<_> = errors
            .iter()
            .filter_map(|error| error.message.as_deref())
            .collect();
        let message = if told.is_empty() {
            operation.http_error_message.clone().unwrap_or_default()
        } else {
            told.join("; ")
        };
        let status = operation.http_error_status_code;
        let status = status.and_then(|code| code.try_into().ok()).unwrap_or(400);
        let code = errors.iter().find_map(|error| error.code.clone());
        Failure::new(Cause::OperationFailed(Some(status)), message)
            .with_code(code.unwrap_or_default())
            .with_request_id(operation.name.clone())
    })
}

/// The reason of a launch that failed, as the shared view shows it.
pub(crate) fn reason(failure: &Failure) -> String {
    match (&failure.code, failure.safe_message()) {
        (Some(code), "") => code.clone(),
        (Some(code), message) => format!("{code}: {message}"),
        (None, message) => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use google_cloud_compute_v1::model::operation::{Error, error::Errors};

    fn operation(kind: &str, status: Status) -> Operation {
        Operation::new().set_operation_type(kind).set_status(status)
    }

    fn failed(kind: &str, codes: &[&str]) -> Operation {
        let errors = codes
            .iter()
            .map(|code| Errors::new().set_code(*code).set_message("no"));
        operation(kind, Status::Done)
            .set_name("operation-1")
            .set_http_error_status_code(503)
            .set_error(Error::new().set_errors(errors))
    }

    #[test]
    fn a_fate_is_read_from_all_operations_in_any_order() {
        let insert = operation("insert", Status::Done);
        let stop = operation("stop", Status::Done).set_end_time("2026-01-02T03:04:05.678-07:00");
        let deleting = operation("delete", Status::Running);
        let deleted = operation("delete", Status::Done);
        let preempted = operation("compute.instances.preempted", Status::Done);
        let undeleted = failed("delete", &["RESOURCE_NOT_READY"]);
        assert!(matches!(fate([]), Fate::Unknown));
        assert!(matches!(
            fate([&operation("insert", Status::Pending)]),
            Fate::Coming
        ));
        assert!(matches!(fate([&deleting, &insert]), Fate::Going));
        assert!(matches!(fate([&insert, &deleted]), Fate::Gone(reason) if reason == "deleted"));
        assert!(matches!(fate([&deleted, &stop, &insert]), Fate::Gone(_)));
        let Fate::Made(past) = fate([&preempted, &insert]) else {
            panic!("a preemption alone may have stopped it")
        };
        assert_eq!(past.preempted.as_deref(), Some("preempted"));
        assert!(matches!(fate([&undeleted, &insert]), Fate::Made(_)));
        let overtaken = failed("insert", &["RESOURCE_NOT_FOUND"]);
        for both in [[&overtaken, &deleted], [&deleted, &overtaken]] {
            assert!(matches!(fate(both), Fate::Gone(_)), "its token is spent");
        }
        let second = failed("insert", &["RESOURCE_ALREADY_EXISTS"]);
        for both in [[&second, &insert], [&insert, &second]] {
            assert!(matches!(fate(both), Fate::Made(_)), "the first is there");
        }
        let Fate::Made(past) = fate([&insert, &stop]) else {
            panic!("it was made")
        };
        let since = past.since.unwrap().to_rfc3339();
        assert_eq!(since, "2026-01-02T10:04:05.678+00:00");
    }

    #[test]
    fn a_failed_operation_is_a_failure_with_all_it_says() {
        let both = failed(
            "insert",
            &["ZONE_RESOURCE_POOL_EXHAUSTED", "QUOTA_EXCEEDED"],
        );
        let Fate::Failed(why) = fate([&both]) else {
            panic!("it failed")
        };
        assert_eq!(why.cause, Cause::OperationFailed(Some(503)));
        assert_eq!(reason(&why), "ZONE_RESOURCE_POOL_EXHAUSTED: no; no");
        assert_eq!(why.request_id.as_deref(), Some("operation-1"));
        assert!(failure(&operation("insert", Status::Done)).is_none());
        let odd = operation("insert", Status::Done).set_http_error_message("BAD GATEWAY");
        assert_eq!(reason(&failure(&odd).unwrap()), "BAD GATEWAY");
    }
}
