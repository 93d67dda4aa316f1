//! How large things may be. The limits are the same for every store, so that what one accepts another
//! does not refuse; they fit into what etcd takes by default, with room for its index entries.

use serde_json::Value;

use crate::Invalid;

/// Bytes of a key.
pub const MAX_KEY_BYTES: usize = 512;
/// Bytes of the name of a kind or an index.
pub const MAX_NAME_BYTES: usize = 64;
/// Bytes of a value, written as JSON without spaces.
pub const MAX_VALUE_BYTES: usize = 256 * 1024;
/// How deep arrays and objects may stand in each other in a value.
pub const MAX_VALUE_DEPTH: usize = 64;
/// Bytes of all values of a transaction together.
pub const MAX_TRANSACTION_BYTES: usize = 1024 * 1024;
/// How many checks a transaction may have, and how many writes.
pub const MAX_OPERATIONS: usize = 128;
/// Bytes of what a record has under one index, as [`IndexValue::encoded`](crate::IndexValue::encoded)
/// writes it.
pub const MAX_ENTRY_BYTES: usize = 1024;
/// How many entries a record may have under one index: the longest array that is indexed.
pub const MAX_ENTRIES: usize = 64;
/// How many records a page may have.
pub const MAX_PAGE: u32 = 1000;

/// The value as JSON, unless it is too large or too deep to be read back.
pub(crate) fn written(value: &Value) -> Result<String, Invalid> {
    // First: writing out a value recurses as deep as it is.
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
    let mut level: Vec<&Value> = vec![value];
    for _ in 0..=allowed {
        level = level.into_iter().flat_map(children).collect();
        if level.is_empty() {
            return false;
        }
    }
    true
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
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
    fn depth_is_counted_to_the_last_level() {
        assert!(written(&nested(MAX_VALUE_DEPTH)).is_ok());
        assert!(written(&nested(MAX_VALUE_DEPTH + 1)).is_err());
    }

    #[test]
    fn size_is_counted_to_the_last_byte() {
        let text = |bytes: usize| Value::String("x".repeat(bytes - 2));
        assert!(written(&text(MAX_VALUE_BYTES)).is_ok());
        assert!(written(&text(MAX_VALUE_BYTES + 1)).is_err());
    }

    #[test]
    fn what_is_accepted_can_be_read_back() {
        let json = written(&nested(MAX_VALUE_DEPTH)).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&json).unwrap(),
            nested(MAX_VALUE_DEPTH)
        );
    }
}
