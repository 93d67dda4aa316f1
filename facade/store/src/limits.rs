//! Size limits. They are the same for every store, so that stores are interchangeable, and fit into
//! etcd's defaults with space for index entries.

use serde_json::Value;

use crate::Invalid;

/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 512;
/// The longest name of a kind or an index, in bytes.
pub const MAX_NAME_BYTES: usize = 64;
/// The largest value, in bytes of compact JSON.
pub const MAX_VALUE_BYTES: usize = 256 * 1024;
/// The deepest nesting of arrays and objects in a value.
pub const MAX_VALUE_DEPTH: usize = 64;
/// The largest sum of the values of a transaction, in bytes.
pub const MAX_TRANSACTION_BYTES: usize = 1024 * 1024;
/// The largest number of checks, and of writes, in a transaction.
pub const MAX_OPERATIONS: usize = 128;
/// The longest index value, in bytes as [encoded](crate::IndexValue::encoded).
pub const MAX_ENTRY_BYTES: usize = 1024;
/// The largest number of entries of a record in one index: the longest indexed array.
pub const MAX_ENTRIES: usize = 64;
/// The largest number of records in a page.
pub const MAX_PAGE: u32 = 1000;

/// Returns the value as JSON, or an error if it is too large or too deep to be parsed again.
pub(crate) fn to_json(value: &Value) -> Result<String, Invalid> {
    // Checked first, because serializing recurses as deep as the value.
    if is_deeper_than(value, MAX_VALUE_DEPTH) {
        return Err(Invalid::new(format!(
            "the value is nested deeper than {MAX_VALUE_DEPTH}"
        )));
    }
    let json = value.to_string();
    if json.len() > MAX_VALUE_BYTES {
        return Err(Invalid::new(format!(
            "the value has {} bytes, more than {MAX_VALUE_BYTES}",
            json.len()
        )));
    }
    Ok(json)
}

fn is_deeper_than(value: &Value, allowed: usize) -> bool {
    // It recurses only as deep as is allowed.
    let inside = |value: &Value| match allowed.checked_sub(1) {
        Some(allowed) => is_deeper_than(value, allowed),
        None => true,
    };
    match value {
        Value::Array(items) => items.iter().any(inside),
        Value::Object(fields) => fields.values().any(inside),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!(1), |inner, _| json!([inner]))
    }

    #[test]
    fn depth_limit_is_exact() {
        assert!(to_json(&nested(MAX_VALUE_DEPTH)).is_ok());
        assert!(to_json(&nested(MAX_VALUE_DEPTH + 1)).is_err());
    }

    #[test]
    fn size_limit_is_exact() {
        let text = |bytes: usize| Value::String("x".repeat(bytes - 2));
        assert!(to_json(&text(MAX_VALUE_BYTES)).is_ok());
        assert!(to_json(&text(MAX_VALUE_BYTES + 1)).is_err());
    }

    #[test]
    fn accepted_values_can_be_read() {
        let json = to_json(&nested(MAX_VALUE_DEPTH)).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&json).unwrap(),
            nested(MAX_VALUE_DEPTH)
        );
    }
}
