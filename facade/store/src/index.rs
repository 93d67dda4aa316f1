//! Index values, encoded so that bytes compare like the values.
//!
//! Every part is self-delimiting, so the encoding of the first parts is a prefix of the encoding of
//! every value that starts with them, and of no other value. A lookup by some of the parts is a
//! byte range.

use std::fmt;

use serde_json::Value;

use crate::{Invalid, limits::MAX_ENTRY_BYTES};

/// One part of an index value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scalar {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Integer(i128),
    /// A string.
    Text(String),
}

impl From<bool> for Scalar {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Scalar {
    fn from(value: i64) -> Self {
        Self::Integer(value.into())
    }
}

impl From<u64> for Scalar {
    fn from(value: u64) -> Self {
        Self::Integer(value.into())
    }
}

impl From<&str> for Scalar {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Scalar {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Text(value) => write!(f, "{value:?}"),
        }
    }
}

impl Scalar {
    /// Converts a JSON value. `None` for null, an error for values without an order, such as
    /// floats.
    pub(crate) fn of(value: &Value) -> Result<Option<Self>, Invalid> {
        match value {
            Value::Null => Ok(None),
            Value::Bool(value) => Ok(Some(Self::Bool(*value))),
            Value::String(value) => Ok(Some(Self::Text(value.clone()))),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Ok(Some(value.into())),
                (None, Some(value)) => Ok(Some(value.into())),
                (None, None) => Err(Invalid::new(format!("{number} is not a whole number"))),
            },
            Value::Array(_) => Err(Invalid::new(
                "expected text, a whole number or a boolean, found an array",
            )),
            Value::Object(_) => Err(Invalid::new(
                "expected text, a whole number or a boolean, found an object",
            )),
        }
    }

    /// Appends the encoding: a tag for the type, then bytes that compare like the value. Text ends
    /// with two zero bytes, and a zero byte inside it is escaped, so that no text is a prefix of
    /// another.
    fn write_to(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Bool(value) => bytes.extend([BOOL, u8::from(*value)]),
            Self::Integer(value) => {
                bytes.push(INTEGER);
                // The sign bit is inverted, so that negative numbers come first.
                bytes.extend((value ^ i128::MIN).to_be_bytes());
            }
            Self::Text(value) => {
                bytes.push(TEXT);
                for byte in value.bytes() {
                    bytes.push(byte);
                    if byte == END {
                        bytes.push(ESCAPED);
                    }
                }
                bytes.extend([END, END]);
            }
        }
    }
}

/// The tags of the types. Their order is the order of values of different types.
const BOOL: u8 = 1;
const INTEGER: u8 = 2;
const TEXT: u8 = 3;
/// Two of these end a text; one that is followed by [`ESCAPED`] is a zero byte of the text.
const END: u8 = 0;
const ESCAPED: u8 = 0xff;

/// The value of a record in an index, or the first parts of one: `("acme", "web")` for an index
/// over two fields. Converts from one scalar, an array or a vector.
///
/// ```
/// use fleetwright_store::IndexValue;
///
/// let prefix = IndexValue::from("acme").encoded()?;
/// let whole = IndexValue::from(["acme", "web"]).encoded()?;
/// assert!(whole.starts_with(&prefix));
/// # Ok::<(), fleetwright_store::Invalid>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexValue(pub Vec<Scalar>);

impl<T: Into<Scalar>> From<T> for IndexValue {
    fn from(part: T) -> Self {
        Self(vec![part.into()])
    }
}

impl<T: Into<Scalar>, const N: usize> From<[T; N]> for IndexValue {
    fn from(parts: [T; N]) -> Self {
        Self(parts.into_iter().map(Into::into).collect())
    }
}

impl From<Vec<Scalar>> for IndexValue {
    fn from(parts: Vec<Scalar>) -> Self {
        Self(parts)
    }
}

impl fmt::Display for IndexValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        write!(f, "({})", parts.join(", "))
    }
}

impl IndexValue {
    /// Returns bytes that compare like the values.
    ///
    /// # Errors
    ///
    /// The encoding is longer than [`MAX_ENTRY_BYTES`].
    pub fn encoded(&self) -> Result<Vec<u8>, Invalid> {
        let mut bytes = Vec::new();
        for part in &self.0 {
            part.write_to(&mut bytes);
        }
        if bytes.len() > MAX_ENTRY_BYTES {
            let length = bytes.len();
            return Err(Invalid::new(format!(
                "a value of {length} bytes is too long for an index, which takes {MAX_ENTRY_BYTES}"
            )));
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scalar() -> impl Strategy<Value = Scalar> {
        prop_oneof![
            any::<bool>().prop_map(Scalar::Bool),
            any::<i64>().prop_map(Scalar::from),
            any::<u64>().prop_map(Scalar::from),
            "[\u{0}a-cä]{0,4}".prop_map(Scalar::Text),
        ]
    }

    fn parts() -> impl Strategy<Value = Vec<Scalar>> {
        proptest::collection::vec(scalar(), 0..4)
    }

    proptest! {
        #[test]
        fn encoded_bytes_compare_like_values(a in parts(), b in parts()) {
            let (first, second) = (IndexValue(a), IndexValue(b));
            prop_assert_eq!(
                first.encoded().unwrap().cmp(&second.encoded().unwrap()),
                first.cmp(&second)
            );
        }

        #[test]
        fn first_parts_are_the_only_prefixes(a in parts(), b in parts()) {
            let begins = b.starts_with(&a);
            let (short, long) = (IndexValue(a).encoded().unwrap(), IndexValue(b).encoded().unwrap());
            prop_assert_eq!(long.starts_with(&short), begins);
        }
    }

    #[test]
    fn values_without_order_are_refused() {
        for value in [
            serde_json::json!(1.5),
            serde_json::json!({}),
            serde_json::json!([1]),
        ] {
            assert!(Scalar::of(&value).is_err(), "{value}");
        }
    }
}
