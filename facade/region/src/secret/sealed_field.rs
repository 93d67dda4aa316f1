//! One field of a record that is sealed at rest: its two stored forms, and reading it into a type.
//!
//! In clear it is a text in base64, as [`UserData`] is serialized; sealed it is the text of the sealed value, so that a newer version
//! cannot add a part to it that this one would drop. Sealed, it never deserializes: a program that reads it without [`SealedStore`](super::SealedStore) gets an error with the id of the key, and never a
//! record without user data. What [`SealedStore`](super::SealedStore) cannot open is read as [`UnopenedUserData`], in a member of its own, and
//! written back as it is stored.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fleetwright::{InstanceConfig, UserData};
use fleetwright_runtime::entropy::Entropy;
use fleetwright_store::RecordId;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

use super::{Keyring, OpenError, SealError, Sealed, Secret};

/// A field that [`SealedStore`](super::SealedStore) seals: the kind of its record, and its JSON pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedField {
    /// The kind of the record.
    pub kind: &'static str,
    /// The JSON pointer of the field.
    pub pointer: &'static str,
    /// The JSON pointer of the member that has its [`UnopenedUserData`] in what is read. It is never stored.
    pub unopened: &'static str,
}

/// User data that is stored and cannot be opened: its key is missing, or does not fit.
///
/// A record with it can be read, started, stopped and deleted, and no machine can be launched from it. It belongs to one field of one record:
/// [`SealedStore`](super::SealedStore) refuses to write it anywhere else, because it could not be opened there either when the key is back.
/// Two of them count as equal, because nothing says that they differ.
#[derive(Clone, Debug, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnopenedUserData {
    /// The id of its key.
    pub key: String,
    /// Why it cannot be opened, for an operator.
    pub problem: String,
    /// The field to which it belongs.
    place: String,
    /// The sealed value.
    text: String,
}

impl PartialEq for UnopenedUserData {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl SealedField {
    /// Returns what the field is sealed for. It contains the tenant, so that a record with another tenant written into it does not
    /// open.
    fn place(&self, value: &Value) -> String {
        let part = |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let (organization, project) = (part("/organization"), part("/project"));
        format!("{} of {organization} {project}", self.pointer)
    }

    /// Returns whether a record has the field, or user data of it that could not be opened.
    pub(super) fn is_present(&self, value: &Value) -> bool {
        let field = value.pointer(self.pointer);
        field.is_some_and(|field| !field.is_null()) || value.pointer(self.unopened).is_some()
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
        // What is not base64 is no user data: reading the record reports it.
        let bytes = field.as_str().map(|text| STANDARD.decode(text));
        let Some(Ok(bytes)) = bytes else {
            return Ok(());
        };
        let sealed = keyring.seal(record, &place, &Secret::new(bytes), entropy)?;
        *field = Value::String(sealed.to_text());
        Ok(())
    }

    /// Puts sealed user data that could not be opened back into its field, unless the field has other user data now.
    ///
    /// Fails if it belongs to another field, which would lose it.
    pub(super) fn restore(&self, record: &RecordId, value: &mut Value) -> Result<(), Misplaced> {
        let place = format!("{record} {}", self.place(value));
        let Some((object, name)) = member_of(value, self.unopened) else {
            return Ok(());
        };
        let Some(unopened) = object.remove(name) else {
            return Ok(());
        };
        let Ok(unopened) = UnopenedUserData::deserialize(unopened) else {
            return Err(Misplaced(place));
        };
        let Some((object, name)) = member_of(value, self.pointer) else {
            return Err(Misplaced(place));
        };
        if object.get(name).is_some_and(|field| !field.is_null()) {
            return Ok(());
        }
        if unopened.place != place {
            return Err(Misplaced(place));
        }
        object.insert(name.to_owned(), Value::String(unopened.text));
        Ok(())
    }

    /// Opens the field of a record, if it has a sealed one. One that does not open is moved to its member for that, with the reason.
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
                let unopened = UnopenedUserData {
                    key: sealed.key().to_string(),
                    problem: error.to_string(),
                    place: format!("{record} {place}"),
                    text: sealed.to_text(),
                };
                // Without a place for it the field stays sealed, and does not deserialize.
                if let Ok(unopened) = serde_json::to_value(unopened) {
                    if let Some((object, name)) = member_of(value, self.unopened) {
                        object.insert(name.to_owned(), unopened);
                        if let Some((object, name)) = member_of(value, self.pointer) {
                            object.remove(name);
                        }
                    }
                }
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

/// User data that could not be opened was to be written to another field than its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misplaced(pub(super) String);

/// Returns the object of a member by its JSON pointer, and the member's name.
fn member_of<'a, 'b>(
    value: &'a mut Value,
    pointer: &'b str,
) -> Option<(&'a mut serde_json::Map<String, Value>, &'b str)> {
    let (object, name) = pointer.rsplit_once('/')?;
    Some((value.pointer_mut(object)?.as_object_mut()?, name))
}

/// Returns the sealed value of a field.
fn sealed_value(field: &Value) -> Option<Sealed> {
    Sealed::from_text(field.as_str()?)
}

/// Why a sealed field cannot be read, if it is one.
fn problem(field: &Value) -> Option<String> {
    let sealed = sealed_value(field)?;
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
