//! The history of an instance in its operations. Pure.
//!
//! Owns how operations are summed up. Compute Engine keeps no record of a deleted instance, and
//! reports one that is being deleted like one that is being stopped; only its operations know the
//! difference.
//!
//! | operations | history |
//! | --- | --- |
//! | none | empty |
//! | a running insert | creating |
//! | a failed insert, and no other | create failed |
//! | an insert and others | created |
//! | a running delete | deleting |
//! | a delete that succeeded | deleted |
//!
//! A failed delete changes nothing. A preemption is a system event, not a delete: it may have
//! stopped the instance only.

use chrono::{DateTime, Utc};
use google_cloud_compute_v1::model::{Operation, operation::Status};

use crate::error::{Cause, Failure};

/// The state reason of an instance that was deleted.
pub(crate) const DELETED: &str = "deleted";

/// The code of a bulk insert that created fewer instances than the minimum.
const TOO_FEW: &str = "VM_MIN_COUNT_NOT_REACHED";

/// What the operations of an instance say about it.
#[derive(Clone, Debug)]
pub(crate) enum History {
    /// No operation is about it: it never existed, or its operations have expired.
    Empty,
    /// It is being created.
    Creating,
    /// Its creation failed. It never existed, and its name is free.
    CreateFailed(Failure),
    /// It is being deleted.
    Deleting,
    /// It was deleted, with the reason.
    Deleted(String),
    /// It was created, and no operation deleted it.
    Created(LastActivity),
}

/// What operations say about an instance that was created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastActivity {
    /// When its last operation ended.
    pub(crate) last_change: Option<DateTime<Utc>>,
    /// The message of its preemption, which deletes some instances and stops others.
    pub(crate) preemption: Option<String>,
}

/// Sums up `operations`, which must all be about one instance. Their order does not matter.
pub(crate) fn summarize<'a>(operations: impl IntoIterator<Item = &'a Operation>) -> History {
    let (mut activity, mut any, mut creating) = (LastActivity::default(), false, false);
    let (mut created, mut failed, mut deleting, mut deleted) = (false, None, false, false);
    for operation in operations {
        let done = is_over(operation);
        any = true;
        match (kind(operation), done, failure(operation)) {
            (Kind::Insert, true, Some(failure)) => failed = Some(failure),
            (Kind::Insert, true, None) => created = true,
            (Kind::Insert, false, _) => creating = true,
            (Kind::Delete, true, None) => deleted = true,
            (Kind::Delete, false, _) => deleting = true,
            (Kind::Preempted, ..) => activity.preemption = Some(message(operation)),
            (Kind::Delete | Kind::Other, ..) => {}
        }
        activity.last_change = activity.last_change.max(end(operation));
    }
    // A delete makes a concurrent insert fail; the instance then was deleted on purpose. Of two
    // inserts of one name the second fails, which says nothing about the instance of the first.
    match failed {
        _ if deleted => History::Deleted(DELETED.to_owned()),
        _ if deleting => History::Deleting,
        Some(failure) if !created && !creating => History::CreateFailed(failure),
        _ if creating => History::Creating,
        _ if any => History::Created(activity),
        _ => History::Empty,
    }
}

/// The kinds of operations that matter here.
enum Kind {
    /// Creates the instance.
    Insert,
    /// Deletes it.
    Delete,
    /// A system event: Google preempted it.
    Preempted,
    /// Anything else, such as a stop. Proves that the instance existed.
    Other,
}

/// Returns the kind of an operation.
fn kind(operation: &Operation) -> Kind {
    match operation.operation_type.as_deref().unwrap_or_default() {
        "insert" | "bulkInsert" => Kind::Insert,
        "delete" => Kind::Delete,
        "compute.instances.preempted" => Kind::Preempted,
        _ => Kind::Other,
    }
}

/// Whether an operation creates its instance.
pub(crate) fn is_insert(operation: &Operation) -> bool {
    matches!(kind(operation), Kind::Insert)
}

/// Whether an operation deletes its instance, or has deleted it.
pub(crate) fn is_delete(operation: &Operation) -> bool {
    matches!(kind(operation), Kind::Delete) && failure(operation).is_none()
}

/// Returns the reason of a preemption.
fn message(operation: &Operation) -> String {
    let text = operation.status_message.as_deref();
    text.map_or_else(
        || "preempted".to_owned(),
        |text| format!("preempted: {text}"),
    )
}

/// Returns when an operation ended.
fn end(operation: &Operation) -> Option<DateTime<Utc>> {
    operation.end_time.as_deref().and_then(time)
}

/// Parses a time of Compute Engine.
pub(crate) fn time(text: &str) -> Option<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(text).ok()?;
    Some(time.with_timezone(&Utc))
}

/// Whether an operation is done, successfully or not.
pub(crate) fn is_over(operation: &Operation) -> bool {
    operation.status == Some(Status::Done)
}

/// Returns why an operation failed. `None` if it runs or has succeeded. The SDK returns a failed
/// operation like any other.
///
/// Keeps the code of the first error, all messages, and the name of the operation as the request
/// id.
pub(crate) fn failure(operation: &Operation) -> Option<Failure> {
    if !is_over(operation) {
        return None;
    }
    // The SDK decides, but it consumes an operation. Without any of these there is nothing to decide.
    let may_have_failed = operation.error.is_some()
        || operation.http_error_status_code.is_some()
        || operation.http_error_message.is_some()
        || operation.instances_bulk_insert_operation_metadata.is_some()
        || operation
            .set_common_instance_metadata_operation_metadata
            .is_some();
    let failed = may_have_failed && operation.clone().to_result().is_err();
    failed.then(|| {
        let errors = operation
            .error
            .as_ref()
            .map(|error| error.errors.as_slice());
        let errors = errors.unwrap_or_default();
        let messages: Vec<_> = errors
            .iter()
            .filter_map(|error| error.message.as_deref())
            .collect();
        let message = if messages.is_empty() {
            operation.http_error_message.clone().unwrap_or_default()
        } else {
            messages.join("; ")
        };
        let status = operation.http_error_status_code;
        let status = status.and_then(|code| code.try_into().ok()).unwrap_or(400);
        // A bulk insert that created too few names that first, and the cause after it.
        let codes = || errors.iter().filter_map(|error| error.code.clone());
        let cause = codes().find(|code| code != TOO_FEW);
        let code = cause.or_else(|| codes().next());
        Failure::new(Cause::OperationFailed(Some(status)), message)
            .with_code(code.unwrap_or_default())
            .with_request_id(operation.name.clone())
    })
}

/// Returns the state reason of an instance whose creation failed: code and message.
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
    fn operations_are_summed_up_in_any_order() {
        let insert = operation("insert", Status::Done);
        let stop = operation("stop", Status::Done).set_end_time("2026-01-02T03:04:05.678-07:00");
        let deleting = operation("delete", Status::Running);
        let deleted = operation("delete", Status::Done);
        let preempted = operation("compute.instances.preempted", Status::Done);
        let undeleted = failed("delete", &["RESOURCE_NOT_READY"]);
        assert!(matches!(summarize([]), History::Empty));
        assert!(matches!(
            summarize([&operation("insert", Status::Pending)]),
            History::Creating
        ));
        assert!(matches!(summarize([&deleting, &insert]), History::Deleting));
        assert!(
            matches!(summarize([&insert, &deleted]), History::Deleted(reason) if reason == "deleted")
        );
        assert!(matches!(
            summarize([&deleted, &stop, &insert]),
            History::Deleted(_)
        ));
        let History::Created(activity) = summarize([&preempted, &insert]) else {
            panic!("a preemption alone may have stopped it")
        };
        assert_eq!(activity.preemption.as_deref(), Some("preempted"));
        assert!(matches!(
            summarize([&undeleted, &insert]),
            History::Created(_)
        ));
        let overtaken = failed("insert", &["RESOURCE_NOT_FOUND"]);
        for both in [[&overtaken, &deleted], [&deleted, &overtaken]] {
            assert!(
                matches!(summarize(both), History::Deleted(_)),
                "its token is spent"
            );
        }
        let second = failed("insert", &["RESOURCE_ALREADY_EXISTS"]);
        for both in [[&second, &insert], [&insert, &second]] {
            assert!(
                matches!(summarize(both), History::Created(_)),
                "the first one exists"
            );
        }
        let History::Created(activity) = summarize([&insert, &stop]) else {
            panic!("it was created")
        };
        let last_change = activity.last_change.unwrap().to_rfc3339();
        assert_eq!(last_change, "2026-01-02T10:04:05.678+00:00");
    }

    #[test]
    fn failed_operation_keeps_code_messages_and_name() {
        let both = failed(
            "insert",
            &["ZONE_RESOURCE_POOL_EXHAUSTED", "QUOTA_EXCEEDED"],
        );
        let History::CreateFailed(creation) = summarize([&both]) else {
            panic!("it failed")
        };
        assert_eq!(creation.cause, Cause::OperationFailed(Some(503)));
        assert_eq!(reason(&creation), "ZONE_RESOURCE_POOL_EXHAUSTED: no; no");
        assert_eq!(creation.request_id.as_deref(), Some("operation-1"));
        assert!(failure(&operation("insert", Status::Done)).is_none());
        let odd = operation("insert", Status::Done).set_http_error_message("BAD GATEWAY");
        assert_eq!(reason(&failure(&odd).unwrap()), "BAD GATEWAY");
    }
}
