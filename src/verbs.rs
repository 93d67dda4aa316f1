//! Arguments and results of the optional calls.
//!
//! Owns tag changes, reboots, consoles and snapshot requests. Console contents and addresses are
//! never printed by `Debug`.

use std::{collections::BTreeSet, fmt};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{InvalidValue, Problem, Tags, tags};

/// A change of tags that is applied as a whole or not at all.
///
/// ```
/// use fleetwright::{TagChange, Tags};
///
/// let change = TagChange::new().set("slot", "2")?.remove("draining")?;
/// let before = Tags::new().with("slot", "1")?.with("draining", "yes")?;
/// assert_eq!(change.apply(&before)?, Tags::new().with("slot", "2")?);
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawTagChange")]
#[non_exhaustive]
pub struct TagChange {
    /// Tags to add or replace.
    pub set: Tags,
    /// Keys to remove. A missing key is not an error.
    pub remove: BTreeSet<String>,
}

/// A deserialized change whose keys were not checked yet.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RawTagChange {
    set: Tags,
    remove: BTreeSet<String>,
}

impl TryFrom<RawTagChange> for TagChange {
    type Error = InvalidValue;
    fn try_from(raw: RawTagChange) -> Result<Self, InvalidValue> {
        let RawTagChange { set, remove } = raw;
        remove.iter().try_for_each(|key| tags::check_key(key))?;
        Ok(Self { set, remove })
    }
}

impl TagChange {
    /// Creates an empty change.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets one tag. Replaces an earlier `set` or `remove` of the key.
    ///
    /// # Errors
    /// [`InvalidValue`] if the key is empty or reserved.
    pub fn set(
        mut self,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<Self, InvalidValue> {
        let key = key.into();
        self.remove.remove(&key);
        self.set.insert(key, value)?;
        Ok(self)
    }

    /// Removes one tag. Replaces an earlier `set` or `remove` of the key.
    ///
    /// # Errors
    /// [`InvalidValue`] if the key is empty or reserved.
    pub fn remove(mut self, key: impl Into<String>) -> Result<Self, InvalidValue> {
        let key = key.into();
        tags::check_key(&key)?;
        self.set.remove(&key);
        self.remove.insert(key);
        Ok(self)
    }

    /// Returns `before` with the change applied.
    pub fn apply(&self, before: &Tags) -> Result<Tags, InvalidValue> {
        let kept = before.iter().filter(|(key, _)| !self.remove.contains(*key));
        kept.chain(&self.set)
            .try_fold(Tags::new(), |tags, (key, value)| tags.with(key, value))
    }
}

/// How to reboot an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reboot {
    /// Through the operating system.
    Soft,
    /// Like a power cut: the operating system is not informed.
    Hard,
}

/// The output of an instance on its console. `Debug` prints only its length.
///
/// ```
/// use fleetwright::ConsoleOutput;
///
/// let output = ConsoleOutput::new("login: ");
/// assert_eq!(output.text, "login: ");
/// assert!(!format!("{output:?}").contains("login"), "`Debug` hides the text");
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConsoleOutput {
    /// The end of the output as text. Invalid UTF-8 is replaced.
    pub text: String,
    /// When the cloud captured it.
    #[serde(default)]
    pub captured_at: Option<DateTime<Utc>>,
}

impl ConsoleOutput {
    /// Creates output without a capture time. The field is public.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            captured_at: None,
        }
    }
}

impl fmt::Debug for ConsoleOutput {
    /// Omits the text, because instances print passwords and keys when they boot.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsoleOutput")
            .field("bytes", &self.text.len())
            .field("captured_at", &self.captured_at)
            .finish()
    }
}

/// A temporary connection to an instance's console. `Debug` omits the address.
///
/// ```
/// use fleetwright::ConsoleSession;
///
/// let session = ConsoleSession::new("wss://console.example/session?key=secret");
/// assert_eq!(session.expires_at, None);
/// assert!(!format!("{session:?}").contains("secret"), "`Debug` hides the address");
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConsoleSession {
    /// The address to connect to. It grants access: treat it like a password.
    pub url: String,
    /// When the session expires, if the cloud reports it.
    #[serde(default)]
    pub expires_at: Option<DateTime<Utc>>,
}

impl ConsoleSession {
    /// Creates a session without an expiry time. The field is public.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            expires_at: None,
        }
    }
}

impl fmt::Debug for ConsoleSession {
    /// Omits the address, because it grants access.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsoleSession")
            .field("url", &"hidden")
            .field("expires_at", &self.expires_at)
            .finish()
    }
}

/// The image to create from an instance.
///
/// ```
/// use fleetwright::{SnapshotRequest, Tags};
///
/// let mut request = SnapshotRequest::new("golden-2026-01")?;
/// request.tags = Tags::new().with("fleet", "blue")?;
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawSnapshotRequest")]
#[non_exhaustive]
pub struct SnapshotRequest {
    /// The image's name, unique in the account. A second request with the same name and instance
    /// returns the same image, so it can be retried after a lost response.
    pub name: String,
    /// The image's tags.
    pub tags: Tags,
}

/// A deserialized request whose name was not checked yet.
#[derive(Deserialize)]
struct RawSnapshotRequest {
    name: String,
    #[serde(default)]
    tags: Tags,
}

impl TryFrom<RawSnapshotRequest> for SnapshotRequest {
    type Error = InvalidValue;
    fn try_from(raw: RawSnapshotRequest) -> Result<Self, InvalidValue> {
        Ok(Self {
            tags: raw.tags,
            ..Self::new(raw.name)?
        })
    }
}

impl SnapshotRequest {
    /// Creates a request for an image with this name: 1 to 128 visible ASCII characters.
    ///
    /// # Errors
    /// [`InvalidValue`] if the name is empty, too long or contains another character.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidValue> {
        const FIELD: &str = "snapshot name";
        let name = name.into();
        if name.is_empty() {
            return Err(InvalidValue::new(FIELD, Problem::Empty));
        }
        if let Some(found) = name.chars().find(|c| !c.is_ascii_graphic()) {
            let allowed = "visible ASCII characters";
            return Err(InvalidValue::new(
                FIELD,
                Problem::BadCharacter { found, allowed },
            ));
        }
        if name.len() > 128 {
            let actual = name.len();
            let problem = Problem::TooLong {
                actual,
                limit: 128,
                unit: "characters",
            };
            return Err(InvalidValue::new(FIELD, problem));
        }
        Ok(Self {
            name,
            tags: Tags::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn last_change_of_a_key_wins() {
        let before = Tags::new()
            .with("keep", "1")
            .unwrap()
            .with("drop", "2")
            .unwrap();
        let change = TagChange::new()
            .set("new", "3")
            .and_then(|c| c.remove("drop"))
            .and_then(|c| c.remove("gone"))
            .and_then(|c| c.set("drop", "4"))
            .and_then(|c| c.remove("new"))
            .unwrap();
        let after: Vec<_> = change
            .apply(&before)
            .unwrap()
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        assert_eq!(after, ["drop=4", "keep=1"]);
        assert!(change.remove.contains("gone") && change.remove.contains("new"));
        assert!(TagChange::new().set("fleetwright:x", "").is_err());
        assert!(TagChange::new().remove("fleetwright:x").is_err());
        let back: TagChange = serde_json::from_str(r#"{"later":1}"#).unwrap();
        assert_eq!(back, TagChange::new());
        let json = serde_json::to_string(&change).unwrap();
        assert_eq!(serde_json::from_str::<TagChange>(&json).unwrap(), change);
        for reserved in [r#"{"remove":["fleetwright:x"]}"#, r#"{"remove":[""]}"#] {
            assert!(
                serde_json::from_str::<TagChange>(reserved).is_err(),
                "{reserved}"
            );
        }
    }

    #[test]
    fn debug_omits_console_contents_and_addresses() {
        let mut session = ConsoleSession::new("wss://c?key=hunter2");
        session.expires_at = DateTime::from_timestamp(0, 0);
        let output = ConsoleOutput::new("password: hunter2");
        let shown = format!("{session:?} {output:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(
            shown.contains("1970") && shown.contains("bytes: 17"),
            "{shown}"
        );
    }

    #[test]
    fn invalid_snapshot_names_are_refused() {
        assert!(SnapshotRequest::new("x".repeat(128)).is_ok());
        for (name, part) in [
            (String::new(), "is empty"),
            ("a b".into(), "' '"),
            ("x".repeat(129), "the limit is 128"),
        ] {
            let error = SnapshotRequest::new(name).unwrap_err().to_string();
            assert!(
                error.starts_with("snapshot name: ") && error.contains(part),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_change_and_any_snapshot_round_trips(
            set in proptest::collection::btree_map("[a-zé ]{1,4}", "[a-zé ]{0,4}", 0..4),
            remove in proptest::collection::btree_set("[A-Z]{1,4}", 0..4),
            name in "[!-~]{1,128}",
        ) {
            let tags = Tags::try_from(set).unwrap();
            let change = TagChange { set: tags.clone(), remove };
            let json = serde_json::to_string(&change).unwrap();
            prop_assert_eq!(serde_json::from_str::<TagChange>(&json).unwrap(), change);
            let request = SnapshotRequest { tags, ..SnapshotRequest::new(name).unwrap() };
            let json = serde_json::to_string(&request).unwrap();
            prop_assert_eq!(serde_json::from_str::<SnapshotRequest>(&json).unwrap(), request);
        }

        #[test]
        fn snapshot_names_are_checked_the_same_by_constructor_and_deserializer(name in ".{0,8}") {
            let read = serde_json::from_value(serde_json::json!({ "name": name, "later": 1 }));
            match SnapshotRequest::new(name) {
                Ok(request) => prop_assert_eq!(request, read.unwrap()),
                Err(_) => prop_assert!(read.is_err()),
            }
        }
    }
}
