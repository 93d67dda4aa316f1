//! The launch token: the caller's name for one launch.
//!
//! Owns the syntax of tokens and the values derived from them. The caller stores a token before the
//! launch, so that after a crash the same launch can be replayed or looked up and never happens
//! twice. Derived values are frozen: they never change between versions.

use std::{fmt, num::NonZeroU32, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{InvalidValue, Problem};

/// The longest token, in bytes.
pub const MAX_TOKEN_BYTES: usize = 128;

/// The namespace of every UUID derived from a token. Frozen: changing it would forget launches.
const NAMESPACE: Uuid = Uuid::from_u128(0x5f0f_8c6e_1d5b_4e43_9c53_2a7f_5d21_e6b7);

/// The caller's name for one launch: 1 to 128 visible ASCII characters.
///
/// Launches with the same token and the same config create one instance, through lost responses,
/// retries, races and restarts. Use a random UUID or a name derived from your own records, and store
/// it **before** launching. A token is spent once its instance is terminating; use another one, such
/// as the next [`attempt`](Self::attempt), to launch again.
///
/// Tokens are not secret, but traces contain only a digest of them.
///
/// ```
/// use std::num::NonZeroU32;
/// use fleetwright::LaunchToken;
///
/// let token = LaunchToken::new("runner-17")?;
/// assert_eq!(token.derive("request"), token.derive("request")); // the same in every process
/// assert_ne!(token.item(0), token.item(1));
///
/// let attempt = |n| token.attempt(NonZeroU32::new(n).unwrap());
/// assert_eq!(attempt(1), token);
/// assert_ne!(attempt(2), attempt(3));
///
/// assert!(LaunchToken::new("not visible: \n").is_err());
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LaunchToken(Arc<str>);

impl LaunchToken {
    /// Creates a token from 1 to [`MAX_TOKEN_BYTES`] visible ASCII characters (`!` to `~`).
    ///
    /// # Errors
    /// [`InvalidValue`] if the text is empty, too long or contains another character.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidValue> {
        const FIELD: &str = "launch token";
        let text = text.as_ref();
        if text.is_empty() {
            return Err(InvalidValue::new(FIELD, Problem::Empty));
        }
        if let Some(found) = text.chars().find(|c| !c.is_ascii_graphic()) {
            let allowed = "visible ASCII characters";
            return Err(InvalidValue::new(
                FIELD,
                Problem::BadCharacter { found, allowed },
            ));
        }
        if text.len() > MAX_TOKEN_BYTES {
            let (actual, limit) = (text.len(), MAX_TOKEN_BYTES);
            let problem = Problem::TooLong {
                actual,
                limit,
                unit: "characters",
            };
            return Err(InvalidValue::new(FIELD, problem));
        }
        Ok(Self(text.into()))
    }

    /// Returns the token's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Derives a UUID from the token and `purpose` alone. Backends use it for the values that a cloud
    /// expects (a client token, a request id, a resource name), so that they are the same in every
    /// process.
    pub fn derive(&self, purpose: &str) -> Uuid {
        // The lengths keep ("ab", "c") apart from ("a", "bc").
        let text = format!("{}:{purpose}:{}", purpose.len(), self.0);
        Uuid::new_v5(&NAMESPACE, text.as_bytes())
    }

    /// Returns the token of item `index` of a batch that was launched with this token. Item 0 has this
    /// token itself; each later one has a token of its own.
    ///
    /// So a single launch and a batch with one token compete for the same token, and a backend that
    /// compares configs refuses the second one: [`InstanceConfig::batch`](crate::InstanceConfig::batch)
    /// makes the configs different.
    pub fn item(&self, index: u32) -> Self {
        match index {
            0 => self.clone(),
            later => Self::from(self.derive(&format!("item-{later}"))),
        }
    }

    /// Returns the token of attempt `number` of a launch. Attempt 1 is this token itself; each later
    /// one is a token of its own.
    ///
    /// [`launch_next_attempt`](crate::InstanceProvisionerExt::launch_next_attempt) uses it to launch
    /// again after the instance of an attempt was terminated.
    pub fn attempt(&self, number: NonZeroU32) -> Self {
        match number {
            NonZeroU32::MIN => self.clone(),
            later => Self::from(self.derive(&format!("attempt-{later}"))),
        }
    }
}

impl fmt::Display for LaunchToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for LaunchToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LaunchToken({:?})", &*self.0)
    }
}

impl From<Uuid> for LaunchToken {
    fn from(uuid: Uuid) -> Self {
        Self(uuid.hyphenated().to_string().into())
    }
}

impl FromStr for LaunchToken {
    type Err = InvalidValue;
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        Self::new(text)
    }
}

impl TryFrom<String> for LaunchToken {
    type Error = InvalidValue;
    fn try_from(text: String) -> Result<Self, InvalidValue> {
        Self::new(text)
    }
}

impl TryFrom<&str> for LaunchToken {
    type Error = InvalidValue;
    fn try_from(text: &str) -> Result<Self, InvalidValue> {
        Self::new(text)
    }
}

impl AsRef<str> for LaunchToken {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<LaunchToken> for String {
    fn from(token: LaunchToken) -> Self {
        token.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn invalid_tokens_are_refused() {
        let cases = [
            (
                String::new(),
                "launch token: is empty; give a value or leave the field out",
            ),
            (
                "a b".into(),
                "launch token: contains ' '; use only visible ASCII characters",
            ),
            (
                "naïve".into(),
                "launch token: contains 'ï'; use only visible ASCII characters",
            ),
            (
                "x".repeat(129),
                "launch token: has 129 characters; the limit is 128",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(LaunchToken::new(&text).unwrap_err().to_string(), message);
            assert!(serde_json::from_value::<LaunchToken>(text.into()).is_err());
        }
        assert!(LaunchToken::new("x".repeat(128)).is_ok());
    }

    #[test]
    fn derived_values_are_frozen() {
        let token = LaunchToken::new("golden").unwrap();
        assert_eq!(
            token.derive("request").to_string(),
            "fb6e7cb2-a669-569b-9111-b7befbd2dc6c"
        );
        assert_eq!(token.item(0), token);
        assert_eq!(
            token.item(1).as_str(),
            "77b54c4b-7c42-51cc-b6bd-629350510a62"
        );
        assert_eq!(token.attempt(NonZeroU32::MIN), token);
        let third = token.attempt(NonZeroU32::new(3).unwrap());
        assert_eq!(
            third.as_str(),
            Uuid::new_v5(&NAMESPACE, b"9:attempt-3:golden").to_string()
        );
        assert_eq!(
            format!("{token} {token:?} {token:>7}"),
            "golden LaunchToken(\"golden\")  golden"
        );
    }

    proptest! {
        #[test]
        fn any_token_round_trips(text in "[!-~]{1,128}") {
            let token: LaunchToken = text.parse().unwrap();
            prop_assert_eq!((token.as_str(), token.as_ref()), (text.as_str(), text.as_str()));
            prop_assert_eq!(&LaunchToken::try_from(text.as_str()).unwrap(), &token);
            let json = serde_json::to_string(&token).unwrap();
            prop_assert_eq!(&serde_json::from_str::<LaunchToken>(&json).unwrap(), &token);
            prop_assert_eq!(String::from(token), text);
        }

        #[test]
        fn different_tokens_or_purposes_derive_different_uuids(
            a in "[!-~]{1,8}", b in "[!-~]{1,8}", p in "[!-~]{0,8}", q in "[!-~]{0,8}",
        ) {
            let (left, right) = (LaunchToken::new(&a).unwrap(), LaunchToken::new(&b).unwrap());
            prop_assert_eq!(left.derive(&p) == right.derive(&q), a == b && p == q);
        }

        #[test]
        fn uuid_is_a_valid_token(bits: u128) {
            let uuid = Uuid::from_u128(bits);
            prop_assert_eq!(LaunchToken::from(uuid).as_str().parse::<Uuid>().unwrap(), uuid);
        }
    }
}
