//! Conversion of SQLite errors into store errors.

use std::sync::Arc;

use fleetwright_store::StoreError;
use rusqlite::ErrorCode;

/// Converts the error of a call that wrote nothing.
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

pub(crate) fn unavailable(reason: impl Into<String>) -> StoreError {
    StoreError::Unavailable {
        reason: reason.into(),
        source: None,
    }
}

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

enum ErrorClass {
    Full,
    Damage,
    Transient,
}

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
