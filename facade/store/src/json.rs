//! JSON values that are shared between records, and parsed once.

use std::{
    any::Any,
    fmt,
    ops::{Deref, DerefMut},
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::Value;

/// A JSON value. Clones share it, so that a store in memory can return the same value many times.
///
/// It is read and changed like a [`Value`]; a change does not affect the clones. [`parse`](Self::parse) keeps its result for the other clones.
///
/// ```
/// use fleetwright_store::Json;
/// use serde_json::json;
///
/// let value = Json::from(json!({"owner": "ada", "ports": [22, 80]}));
/// assert_eq!(value["owner"], "ada");
/// assert_eq!(*value.pointer("/ports").ok_or("missing")?, json!([22, 80]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Json(Arc<Shared>);

#[derive(Default)]
struct Shared {
    value: Value,
    /// The last result of [`Json::parse`], an `Arc<T>`.
    parsed: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Json {
    /// Parses the value. Clones of this value that are parsed into the same type later share the result.
    ///
    /// # Errors
    ///
    /// The value does not match the type.
    pub fn parse<T>(&self) -> Result<Arc<T>, serde_json::Error>
    where
        T: DeserializeOwned + Send + Sync + 'static,
    {
        let known = self.0.parsed.get().cloned();
        if let Some(known) = known.and_then(|known| known.downcast::<T>().ok()) {
            return Ok(known);
        }
        let parsed = Arc::new(T::deserialize(&self.0.value)?);
        // Another type may be kept already: the first one is the one that is read most.
        let _ = self
            .0
            .parsed
            .set(Arc::clone(&parsed) as Arc<dyn Any + Send + Sync>);
        Ok(parsed)
    }

    /// Parses the value like [`parse`](Self::parse), for a caller that needs a copy of its own. A value without clones is not copied.
    ///
    /// # Errors
    ///
    /// The value does not match the type.
    pub fn parse_owned<T>(self) -> Result<T, serde_json::Error>
    where
        T: DeserializeOwned + Clone + Send + Sync + 'static,
    {
        match Arc::try_unwrap(self.0) {
            Ok(shared) => serde_json::from_value(shared.value),
            Err(shared) => Ok(T::clone(&*Self(shared).parse::<T>()?)),
        }
    }

    /// Returns the value. It is copied only if there are clones.
    pub fn into_value(self) -> Value {
        match Arc::try_unwrap(self.0) {
            Ok(shared) => shared.value,
            Err(shared) => shared.value.clone(),
        }
    }
}

/// The copy that a clone gets when it is changed.
impl Clone for Shared {
    fn clone(&self) -> Self {
        Self::from(self.value.clone())
    }
}

impl From<Value> for Shared {
    fn from(value: Value) -> Self {
        Self {
            value,
            parsed: OnceLock::new(),
        }
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self(Arc::new(value.into()))
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Value::from(text).into()
    }
}

impl Deref for Json {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.value
    }
}

impl DerefMut for Json {
    /// Returns the value for a change. Clones keep what they have.
    fn deref_mut(&mut self) -> &mut Value {
        let shared = Arc::make_mut(&mut self.0);
        shared.parsed = OnceLock::new();
        &mut shared.value
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl PartialEq<Value> for Json {
    fn eq(&self, other: &Value) -> bool {
        **self == *other
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Json {
    /// Writes compact JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn clones_share_the_parsed_value() {
        let value = Json::from(json!(["a", "b"]));
        let first = value.clone().parse::<Vec<String>>().unwrap();
        let second = value.parse::<Vec<String>>().unwrap();
        assert!(Arc::ptr_eq(&first, &second));
    }

    #[test]
    fn value_can_be_parsed_into_several_types() {
        let value = Json::from(json!(["a", "b"]));
        assert_eq!(value.parse::<Vec<String>>().unwrap().len(), 2);
        assert_eq!(*value.parse::<Value>().unwrap(), json!(["a", "b"]));
        assert!(value.parse::<u64>().is_err());
        assert!(value.clone().parse_owned::<u64>().is_err());
        assert_eq!(value.parse_owned::<Vec<String>>().unwrap(), ["a", "b"]);
    }

    #[test]
    fn changed_value_is_parsed_again_and_its_clones_are_unchanged() {
        let mut value = Json::from(json!(1));
        let clone = value.clone();
        for (number, changed) in [(2, json!(2)), (3, json!(3))] {
            assert_ne!(*value.parse::<u64>().unwrap(), number);
            *value = changed;
            assert_eq!(*value.parse::<u64>().unwrap(), number);
        }
        assert_eq!(
            (clone.into_value(), value.into_value()),
            (json!(1), json!(3))
        );
    }
}
