//! The start-up data of an instance.
//!
//! Owns the bytes, unchanged, and never prints them: start-up scripts often contain credentials.

use std::{fmt, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{InvalidValue, Problem};

/// Start-up data for the first boot: any bytes, at least one.
///
/// The instance gets exactly these bytes, or the launch is refused. The backend encodes them for its
/// cloud. Serialized as base64; `Debug` prints only the length.
///
/// The size limit depends on the backend: see
/// [`Capabilities::max_user_data_bytes`](crate::Capabilities::max_user_data_bytes).
///
/// ```
/// use fleetwright::UserData;
///
/// let data = UserData::new("#!/bin/sh\nexec runner\n")?;
/// assert_eq!(data.as_bytes().len(), 22);
/// assert_eq!(format!("{data:?}"), "UserData(22 bytes)");
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct UserData(Arc<[u8]>);

impl UserData {
    /// Creates user data from bytes, unchanged.
    ///
    /// # Errors
    /// [`InvalidValue`] if there are no bytes. A config without user data has `None` instead.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, InvalidValue> {
        let bytes = bytes.as_ref();
        if bytes.is_empty() {
            return Err(InvalidValue::new("user data", Problem::Empty));
        }
        Ok(Self(bytes.into()))
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Checks that there are at most `limit` bytes.
    ///
    /// # Errors
    /// [`InvalidValue`] with the length and the limit.
    pub fn check(&self, limit: usize) -> Result<(), InvalidValue> {
        let actual = self.0.len();
        if actual > limit {
            let problem = Problem::TooLong {
                actual,
                limit,
                unit: "bytes",
            };
            return Err(InvalidValue::new("user data", problem));
        }
        Ok(())
    }
}

impl fmt::Debug for UserData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserData({} bytes)", self.0.len())
    }
}

impl Serialize for UserData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for UserData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // The decoder's message would contain a byte of the data.
        let bytes = STANDARD
            .decode(text)
            .map_err(|_| de::Error::custom("user data: is not base64"))?;
        Self::new(bytes).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn empty_and_oversized_data_are_refused() {
        let message = UserData::new("").unwrap_err().to_string();
        assert_eq!(
            message,
            "user data: is empty; give a value or leave the field out"
        );
        let data = UserData::new([0; 5]).unwrap();
        assert!(data.check(5).is_ok());
        let message = data.check(4).unwrap_err().to_string();
        assert_eq!(message, "user data: has 5 bytes; the limit is 4");
    }

    #[test]
    fn data_is_never_printed() {
        let data = UserData::new("export TOKEN=hunter2").unwrap();
        assert_eq!(format!("{data:?}"), "UserData(20 bytes)");
        let error = serde_json::from_str::<UserData>("\"hunter2 !\"")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("is not base64") && !error.contains("hunter2"),
            "{error}"
        );
        assert!(serde_json::from_str::<UserData>("\"\"").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_round_trip(bytes in proptest::collection::vec(any::<u8>(), 1..300)) {
            let data = UserData::new(&bytes).unwrap();
            prop_assert_eq!(data.as_bytes(), &bytes[..]);
            let json = serde_json::to_string(&data).unwrap();
            prop_assert_eq!(serde_json::from_str::<UserData>(&json).unwrap(), data);
        }
    }
}
