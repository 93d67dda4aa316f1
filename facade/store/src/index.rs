//! What a record has under an index: scalars, written so that comparing bytes compares values.
//!
//! Every part ends by itself, so the encoding of the first parts of a value begins the encoding of every
//! value that begins with them, and of no other. A lookup by some of the parts is a range of bytes.

use std::fmt;

use serde_json::Value;

use crate::{Invalid, limits::MAX_ENTRY_BYTES};

/// One part of a value under an index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// A text.
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
    /// What a JSON value is under an index: nothing for null, an error for what has no order.
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
            Value::Array(_) => Err(Invalid::new("an array stands where one value belongs")),
            Value::Object(_) => Err(Invalid::new("an object stands where one value belongs")),
        }
    }

    fn write_to(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Bool(value) => bytes.extend([BOOL, u8::from(*value)]),
            Self::Integer(value) => {
                bytes.push(INTEGER);
                // The sign bit turned, so that negative numbers come first.
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

const BOOL: u8 = 1;
const INTEGER: u8 = 2;
const TEXT: u8 = 3;
const END: u8 = 0;
const ESCAPED: u8 = 0xff;

/// What a record has under an index, or the first parts of that: `("acme", "web")` for an index over two
/// fields. From one scalar, an array or a vector of them.
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
    /// As bytes that compare as the values do; an error if they are too many to be stored.
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
        fn bytes_compare_as_values_do(a in parts(), b in parts()) {
            let (first, second) = (IndexValue(a), IndexValue(b));
            prop_assert_eq!(
                first.encoded().unwrap().cmp(&second.encoded().unwrap()),
                first.cmp(&second)
            );
        }

        #[test]
        fn first_parts_are_a_prefix_and_nothing_else_is(a in parts(), b in parts()) {
            let begins = b.starts_with(&a);
            let (short, long) = (IndexValue(a).encoded().unwrap(), IndexValue(b).encoded().unwrap());
            prop_assert_eq!(long.starts_with(&short), begins);
        }
    }

    #[test]
    fn what_has_no_order_is_refused() {
        for value in [
            serde_json::json!(1.5),
            serde_json::json!({}),
            serde_json::json!([1]),
        ] {
            assert!(Scalar::of(&value).is_err(), "{value}");
        }
    }
}
