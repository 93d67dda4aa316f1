//! One field of a record that is sealed at rest: its two stored forms, and reading it into a type.
//!
//! In clear it is a text in base64, as [`UserData`] is serialized; sealed it is the text of the sealed value, so that a newer version
//! cannot add a part to it that this one would drop. Sealed, it never deserializes: a program that reads it without [`SealedStore`](super::SealedStore) gets an error with the id of the key, and never a
//! record without user data.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fleetwright::{InstanceConfig, UserData};
use fleetwright_runtime::entropy::Entropy;
use fleetwright_store::RecordId;
use serde::{Deserialize as _, Deserializer, de};
use serde_json::{Value, json};

use super::{Keyring, OpenError, SealError, Sealed, Secret};

/// The member with the sealed value of a field that could not be opened. Such an object is never stored.
const SEALED: &str = "sealed";
/// The member that says why it could not be opened.
const PROBLEM: &str = "problem";

/// A field that [`SealedStore`](super::SealedStore) seals: the kind of its record, and its JSON pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedField {
    /// The kind of the record.
    pub kind: &'static str,
    /// The JSON pointer of the field.
    pub pointer: &'static str,
}

impl SealedField {
    /// Returns what the field is sealed for. It contains the tenant, so that a record with another tenant written into it does not
    /// open.
    fn place(&self, value: &Value) -> String {
        let part = |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let (organization, project) = (part("/organization"), part("/project"));
        format!("{} of {organization} {project}", self.pointer)
    }

    /// Seals the field of a record, if it has one in clear.
    pub(super) fn seal(
        &self,
        keyring: &Keyring,
        entropy: &dyn Entropy,
        record: &RecordId,
        value: &mut Value,
    ) -> Result<(), SealError> {
        let place = self.place(value);
        let Some(field) = value.pointer_mut(self.pointer) else {
            return Ok(());
        };
        if let Some(sealed) = sealed_value(field) {
            *field = Value::String(sealed.to_text());
            return Ok(());
        }
        // What is not base64 is no user data: reading the record reports it.
        let bytes = field.as_str().map(|text| STANDARD.decode(text));
        let Some(Ok(bytes)) = bytes else {
            return Ok(());
        };
        let sealed = keyring.seal(record, &place, &Secret::new(bytes), entropy)?;
        *field = Value::String(sealed.to_text());
        Ok(())
    }

    /// Opens the field of a record, if it has a sealed one. A field that does not open stays sealed, with the reason.
    pub(super) fn open(
        &self,
        keyring: Option<&Keyring>,
        record: &RecordId,
        value: &mut Value,
    ) -> Result<(), OpenError> {
        let place = self.place(value);
        let field = value.pointer_mut(self.pointer);
        let Some((field, sealed)) = field.and_then(|field| {
            let sealed = sealed_value(field)?;
            Some((field, sealed))
        }) else {
            return Ok(());
        };
        let opened = match keyring {
            Some(keyring) => keyring.open(record, &place, &sealed),
            None => Err(OpenError::NoKey {
                record: record.clone(),
                key: sealed.key().clone(),
            }),
        };
        match opened {
            Ok(secret) => {
                *field = Value::String(STANDARD.encode(secret.expose()));
                Ok(())
            }
            Err(error) => {
                *field = json!({ SEALED: sealed.to_text(), PROBLEM: error.to_string() });
                Err(error)
            }
        }
    }

    /// Returns whether the field is in clear, or sealed with another key than the current one.
    pub(super) fn is_due(&self, keyring: &Keyring, value: &Value) -> bool {
        match value.pointer(self.pointer) {
            Some(Value::String(text)) => {
                Sealed::from_text(text).is_none_or(|sealed| sealed.key() != keyring.current())
            }
            Some(_) | None => false,
        }
    }
}

/// Returns the sealed value of a field, as it is stored or as it could not be opened.
fn sealed_value(field: &Value) -> Option<Sealed> {
    let text = field.as_str().or_else(|| field.get(SEALED)?.as_str())?;
    Sealed::from_text(text)
}

/// Why a sealed field cannot be read: the reason that was found when it was opened, or that nobody tried to.
fn problem(field: &Value) -> Option<String> {
    let sealed = sealed_value(field)?;
    if let Some(problem) = field.get(PROBLEM).and_then(Value::as_str) {
        return Some(problem.to_owned());
    }
    Some(format!(
        "the user data is sealed with key {}: open the store with the keyring that has this key",
        sealed.key()
    ))
}

/// Reads the user data of a record's field, for `#[serde(deserialize_with)]`.
///
/// ```
/// use fleetwright::UserData;
/// use fleetwright_region::secret::read_user_data;
/// use serde_json::json;
///
/// assert_eq!(read_user_data(json!("IyE=")).unwrap(), UserData::new("#!").ok());
/// assert!(read_user_data(json!("sealed:may:AA==:AA==")).unwrap_err().to_string().contains("key may"));
/// ```
///
/// # Errors
///
/// The field is sealed, with the id of its key; or it is not user data.
pub fn read_user_data<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<UserData>, D::Error> {
    let Some(field) = Option::<Value>::deserialize(deserializer)? else {
        return Ok(None);
    };
    match problem(&field) {
        Some(problem) => Err(de::Error::custom(problem)),
        None => UserData::deserialize(field)
            .map(Some)
            .map_err(de::Error::custom),
    }
}

/// Reads the config of a stored launch, as [`read_user_data`] reads user data.
pub(crate) fn read_config<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<InstanceConfig, D::Error> {
    let config = Value::deserialize(deserializer)?;
    match config.get("user_data").and_then(problem) {
        Some(problem) => Err(de::Error::custom(problem)),
        None => InstanceConfig::deserialize(config).map_err(de::Error::custom),
    }
}

/// Returns the id of the key with which a field of a record is sealed, and why it could not be opened. `None` if it is not sealed.
///
/// ```
/// use fleetwright_region::secret::{SealedField, sealed_with};
/// use serde_json::json;
///
/// let field = SealedField { kind: "server", pointer: "/spec/user_data" };
/// let record = json!({ "spec": { "user_data": "sealed:may:AA==:AA==" } });
/// assert_eq!(sealed_with(&record, field).map(|(key, _)| key).as_deref(), Some("may"));
/// assert_eq!(sealed_with(&json!({ "spec": {} }), field), None);
/// ```
pub fn sealed_with(value: &Value, field: SealedField) -> Option<(String, String)> {
    let field = value.pointer(field.pointer)?;
    let key = sealed_value(field)?.key().to_string();
    Some((key, problem(field)?))
}
