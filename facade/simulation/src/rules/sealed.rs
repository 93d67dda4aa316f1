//! Rule: no user data is stored in clear by a service that seals it.

use fleetwright_store::{Transaction, Write};
use serde_json::Value;

use super::Rules;
use crate::scenario::UserDataAtRest;

/// The field with user data, wherever it is in a record.
const FIELD: &str = "user_data";
/// How a sealed value begins.
const SEALED: &str = "sealed:";

impl Rules {
    /// Checks what a transaction writes, as it is stored.
    pub fn check_sealed(&self, transaction: &Transaction) {
        match self.user_data {
            UserDataAtRest::Clear => return,
            UserDataAtRest::Sealed => {}
        }
        for write in &transaction.writes {
            match write {
                Write::Put(id, value) if has_clear_user_data(value) => {
                    self.report(format!("{id} is stored with user data in clear"));
                }
                Write::Put(..) | Write::Delete(_) => {}
            }
        }
    }
}

fn has_clear_user_data(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, field)| match field {
            Value::String(text) => name == FIELD && !text.starts_with(SEALED),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => has_clear_user_data(field),
        }),
        Value::Array(items) => items.iter().any(has_clear_user_data),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
