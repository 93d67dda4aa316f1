//! Names of cloud resources, each with its own type so that they cannot be confused.
//!
//! Owns the common rules: a name is not empty, has at most [`MAX_NAME_BYTES`] bytes, and contains no
//! space or control character. It never interprets a name: that is up to the backend.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{InvalidValue, Problem};

/// The longest name in bytes. The longest resource paths of the clouds fit.
pub const MAX_NAME_BYTES: usize = 2048;

/// Checks `text` as the name in `field`.
fn check(field: &'static str, text: &str) -> Result<Arc<str>, InvalidValue> {
    if text.trim().is_empty() {
        return Err(InvalidValue::new(field, Problem::Empty));
    }
    if text.len() > MAX_NAME_BYTES {
        let (actual, limit) = (text.len(), MAX_NAME_BYTES);
        return Err(InvalidValue::new(
            field,
            Problem::TooLong {
                actual,
                limit,
                unit: "bytes",
            },
        ));
    }
    let bad = |c: &char| c.is_control() || c.is_whitespace();
    if let Some(found) = text.chars().find(bad) {
        let allowed = "characters that are neither space nor control";
        return Err(InvalidValue::new(
            field,
            Problem::BadCharacter { found, allowed },
        ));
    }
    Ok(text.into())
}

/// Declares a name type. A macro, because the impls below cannot be generic over the type.
macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $field:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Creates a name from `text`, unchanged.
            ///
            /// # Errors
            /// [`InvalidValue`] if the text is empty, longer than [`MAX_NAME_BYTES`], or contains a
            /// space or control character.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidValue> {
                check($field, text.as_ref()).map(Self)
            }

            /// Returns the name's text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), &*self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidValue;
            fn from_str(text: &str) -> Result<Self, InvalidValue> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidValue;
            fn try_from(text: String) -> Result<Self, InvalidValue> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = InvalidValue;
            fn try_from(text: &str) -> Result<Self, InvalidValue> {
                Self::new(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.as_ref().to_owned()
            }
        }
    };
}

name_type! {
    /// The cloud's id of an instance, unique in its account and never reused.
    ///
    /// Treat it as opaque: it contains whatever its backend needs to find the instance again.
    ///
    /// ```
    /// use fleetwright::InstanceId;
    ///
    /// let id: InstanceId = "i-0abc".parse()?;
    /// assert_eq!(id.as_str(), "i-0abc");
    /// assert!(InstanceId::new("two words").is_err());
    /// # Ok::<(), fleetwright::InvalidValue>(())
    /// ```
    InstanceId, "instance id"
}
name_type! {
    /// Which instances a handle manages: the cloud, the account and, where a list covers no more, the
    /// region, project or resource group.
    ///
    /// Two handles with the same id list the same instances. Compare ids as a whole, and show them to
    /// operators: an id names the account and is no secret.
    /// [`account_id`](crate::InstanceProvisioner::account_id) returns it.
    AccountId, "account id"
}
name_type! {
    /// A machine image: an AMI, a Compute Engine image, an Azure image reference.
    ///
    /// [`snapshot_image`](crate::InstanceProvisioner::snapshot_image) creates one from an instance.
    ImageId, "image"
}
name_type! {
    /// An instance type in the cloud's own terms: `m5.xlarge`, `n2-standard-4`.
    InstanceType, "instance type"
}
name_type! {
    /// A zone inside the backend's region: `eu-west-1a`, `europe-west4-b`, `1`.
    ///
    /// Backends that support zones say so with [`PlacementField::Zone`](crate::PlacementField::Zone).
    Zone, "placement.zone"
}
name_type! {
    /// A network or subnet to attach to, in the cloud's own terms.
    NetworkId, "placement.network"
}
name_type! {
    /// A security group, firewall tag or network security group, in the cloud's own terms.
    ///
    /// A config may have several; they are a set, so their order does not matter.
    SecurityGroupId, "placement.security_groups"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn invalid_names_are_refused_with_field_and_rule() {
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        let cases = [
            ("", "image: is empty; give a value or leave the field out"),
            (
                " \t",
                "image: is empty; give a value or leave the field out",
            ),
            (&long, "image: has 2049 bytes; the limit is 2048"),
            (
                "a b",
                "image: contains ' '; use only characters that are neither space nor control",
            ),
            (
                "a\0",
                "image: contains '\\0'; use only characters that are neither space nor control",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(ImageId::new(text).unwrap_err().to_string(), message);
            assert!(serde_json::from_value::<ImageId>(text.into()).is_err());
        }
        assert!(ImageId::new("x".repeat(MAX_NAME_BYTES)).is_ok());
    }

    #[test]
    fn only_debug_contains_the_type_name() {
        let zone = Zone::new("eu-1a").unwrap();
        assert_eq!(
            format!("{zone} {zone:?} {zone:>7}"),
            "eu-1a Zone(\"eu-1a\")   eu-1a"
        );
    }

    proptest! {
        #[test]
        fn any_name_round_trips_to_the_byte(text in r"[^\s\p{C}]{1,64}") {
            let id = InstanceId::new(&text).unwrap();
            prop_assert_eq!((id.as_str(), id.as_ref()), (text.as_str(), text.as_str()));
            prop_assert_eq!(&text.parse::<InstanceId>().unwrap(), &id);
            prop_assert_eq!(&InstanceId::try_from(text.as_str()).unwrap(), &id);
            let json = serde_json::to_string(&id).unwrap();
            prop_assert_eq!(&serde_json::from_str::<InstanceId>(&json).unwrap(), &id);
            prop_assert_eq!(String::from(id), text);
        }

        #[test]
        fn any_text_is_accepted_unchanged_or_refused(text in ".*") {
            match InstanceId::new(&text) {
                Ok(id) => prop_assert_eq!(id.as_str(), &text),
                Err(error) => prop_assert!(!error.to_string().contains('\n')),
            }
        }
    }
}
