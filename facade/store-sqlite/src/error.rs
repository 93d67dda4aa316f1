//! Conversion of SQLite errors into store errors.
//!
//! Owns the decision which SQLite error means what to a caller: no space is `Full`, damage is
//! `Corrupt`, and everything else is assumed to be temporary and is `Unavailable`. Whether a failed commit
//! had an effect is decided by the [`writer`](crate::writer), which calls [`unknown`] if it cannot
//! decide.
//!
//! A message names the failed step and SQLite's error code. The text of the SQLite error is the
//! source and is not repeated. No message contains a value.

use std::sync::Arc;

use fleetwright_store::StoreError;
use rusqlite::ErrorCode;

/// Converts the error of a call that wrote nothing. `context` says which step failed.
pub(crate) fn store_error(context: &str, error: rusqlite::Error) -> StoreError {
    let reason = format!("{context}: {}", code_of(&error));
    let kind = classify(&error);
    let source: Option<fleetwright_store::Cause> = Some(Arc::new(error));
    match kind {
        ErrorClass::Full => StoreError::Full { reason, source },
        ErrorClass::Damage => StoreError::Corrupt {
            what: reason,
            source,
        },
        ErrorClass::Transient => StoreError::Unavailable { reason, source },
    }
}

/// Converts an error that may have happened before or after the commit.
pub(crate) fn unknown(context: &str, error: rusqlite::Error) -> StoreError {
    StoreError::UnknownOutcome {
        reason: format!("{context}: {}", code_of(&error)),
        source: Some(Arc::new(error)),
    }
}

/// Returns an error for a store that cannot be used now.
pub(crate) fn unavailable(reason: impl Into<String>) -> StoreError {
    StoreError::Unavailable {
        reason: reason.into(),
        source: None,
    }
}

/// Returns an error for data that this program did not write like this.
pub(crate) fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt {
        what: what.into(),
        source: None,
    }
}

/// Returns whether SQLite ran out of space. It has rolled back the whole transaction then.
pub(crate) fn is_full(error: &rusqlite::Error) -> bool {
    matches!(classify(error), ErrorClass::Full)
}

/// What an SQLite error means to a caller.
enum ErrorClass {
    /// No space: `max_bytes` is reached or the disk is full.
    Full,
    /// The file is not a database, or its content breaks its own rules.
    Damage,
    /// Locks, input and output, and anything else that may succeed later.
    Transient,
}

/// Classifies an error by its primary code.
fn classify(error: &rusqlite::Error) -> ErrorClass {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => ErrorClass::Full,
        Some(
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::ConstraintViolation,
        ) => ErrorClass::Damage,
        Some(_) => ErrorClass::Transient,
        // The rest concerns column types, so this program did not write the data.
        None => ErrorClass::Damage,
    }
}

/// Returns SQLite's name of the error kind. The source has the longer message.
fn code_of(error: &rusqlite::Error) -> String {
    match error.sqlite_error() {
        Some(code) => rusqlite::ffi::code_to_str(code.extended_code).to_owned(),
        None => "a column has an unexpected type".to_owned(),
    }
}
