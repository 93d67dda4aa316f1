//! The names by which an instance is found again: the tags that it carries, and the token that its launch has.
//!
//! Owns both mappings. They are frozen: with other tags or tokens, a new version of the program would not find the machines of the
//! version before.

use std::fmt;

use fleetwright::{InstanceFilter, InstanceInfo, InvalidValue, LaunchToken, Tags};
use uuid::Uuid;

use crate::failure::Failure;

/// The keys of the tags of every instance.
pub(crate) mod key {
    /// The controller that owns the instance.
    pub(crate) const CONTROLLER: &str = "garm-controller-id";
    /// The pool that the instance belongs to.
    pub(crate) const POOL: &str = "garm-pool-id";
    /// The name that GARM gave the instance.
    pub(crate) const NAME: &str = "garm-name";
    /// The operating system of the pool.
    pub(crate) const OS_TYPE: &str = "garm-os-type";
    /// The architecture of the pool.
    pub(crate) const OS_ARCH: &str = "garm-os-arch";
    /// What every key of this program starts with. Operators cannot set such tags.
    pub(crate) const PREFIX: &str = "garm-";
}

/// The namespace of the tokens of long names. Frozen.
const NAMESPACE: Uuid = Uuid::from_u128(0x0f6d_4a55_2c5e_4b0e_8a57_93f1_8e0b_6d21);

/// The longest id or name. It fits into a tag of every cloud.
const MAX_BYTES: usize = 128;

/// The id of one GARM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Controller(String);

impl Controller {
    /// Reads the id that GARM sets as `GARM_CONTROLLER_ID`.
    ///
    /// # Errors
    /// It is empty, too long, or has characters that a UUID or a name cannot have.
    pub(crate) fn new(text: &str) -> Result<Self, Failure> {
        check_word("GARM_CONTROLLER_ID", text).map(Self)
    }

    /// Returns the id.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the launch token of a name: the same in every process, and another one for every other controller or name.
    pub(crate) fn token(&self, name: &InstanceName) -> LaunchToken {
        let text = format!("garm/{}/{name}", self.0);
        LaunchToken::new(&text)
            .unwrap_or_else(|_| LaunchToken::from(Uuid::new_v5(&NAMESPACE, text.as_bytes())))
    }

    /// Returns the tags of an instance.
    ///
    /// # Errors
    /// None that can happen: the keys are valid.
    pub(crate) fn tags(&self, name: &InstanceName, pool: &Pool) -> Result<Tags, InvalidValue> {
        Tags::new()
            .with(key::CONTROLLER, self.as_str())?
            .with(key::POOL, pool.as_str())?
            .with(key::NAME, name.as_str())
    }

    /// Selects the instances of this controller that are not terminated.
    pub(crate) fn filter(&self) -> Result<InstanceFilter, Failure> {
        let filter = InstanceFilter::tagged(key::CONTROLLER, self.as_str());
        filter.map_err(|invalid| Failure::new(invalid.to_string()))
    }

    /// Returns whether an instance belongs to this controller.
    pub(crate) fn owns(&self, info: &InstanceInfo) -> bool {
        info.tags.get(key::CONTROLLER) == Some(self.as_str())
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of a pool or of a scale set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pool(String);

impl Pool {
    /// Reads the id that GARM sets as `GARM_POOL_ID`.
    ///
    /// # Errors
    /// As those of [`Controller::new`].
    pub(crate) fn new(text: &str) -> Result<Self, Failure> {
        check_word("GARM_POOL_ID", text).map(Self)
    }

    /// Returns the id.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name that GARM gave an instance. GARM makes it of the pool's prefix and twelve random characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstanceName(String);

impl InstanceName {
    /// Reads a name.
    ///
    /// # Errors
    /// It is empty, longer than 128 bytes, or has control characters or spaces at its ends.
    pub(crate) fn new(text: &str) -> Result<Self, Failure> {
        let fits = !text.is_empty() && text.len() <= MAX_BYTES;
        if fits && text.trim() == text && !text.chars().any(char::is_control) {
            return Ok(Self(text.to_owned()));
        }
        Err(Failure::new(format!(
            "the instance name {text:?} is not usable: it must have 1 to {MAX_BYTES} bytes, no control characters and no spaces at its \
             ends; correct the runner prefix of the pool"
        )))
    }

    /// Returns the name.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InstanceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the name that GARM gave an instance, if it has one.
pub(crate) fn name_of(info: &InstanceInfo) -> Option<&str> {
    info.tags.get(key::NAME).filter(|name| !name.is_empty())
}

/// Reads an id without a slash, so that no two pairs of controller and name have one token.
fn check_word(variable: &str, text: &str) -> Result<String, Failure> {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !text.is_empty() && text.len() <= 64 && text.bytes().all(inside) {
        return Ok(text.to_owned());
    }
    Err(Failure::new(if text.is_empty() {
        format!("{variable} is not set: GARM sets it; set it to call the program by hand")
    } else {
        format!(
            "{variable} is {text:?}: expected 1 to 64 letters, digits, and any of -_. as in a UUID"
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tokens_are_frozen() {
        let controller = Controller::new("c").unwrap();
        let token = |name: &str| controller.token(&InstanceName::new(name).unwrap());
        assert_eq!(token("garm-1").as_str(), "garm/c/garm-1");
        assert_eq!(
            token("Größe").as_str(),
            Uuid::new_v5(&NAMESPACE, "garm/c/Größe".as_bytes()).to_string()
        );
    }

    proptest! {
        #[test]
        fn no_two_pairs_have_one_token(
            first in ("[a-z0-9._-]{1,64}", "\\PC{1,40}"),
            second in ("[a-z0-9._-]{1,64}", "\\PC{1,40}"),
        ) {
            let token = |(controller, name): &(String, String)| {
                let controller = Controller::new(controller).unwrap();
                InstanceName::new(name).ok().map(|name| controller.token(&name))
            };
            if let (Some(one), Some(other)) = (token(&first), token(&second)) {
                prop_assert_eq!(one == other, first == second);
            }
        }

        #[test]
        fn tags_name_controller_pool_and_name(
            controller in "[a-f0-9-]{36}", pool in "[a-f0-9-]{36}", name in "[!-~]{1,128}",
        ) {
            let controller = Controller::new(&controller).unwrap();
            let (pool, name) = (Pool::new(&pool).unwrap(), InstanceName::new(&name).unwrap());
            let tags = controller.tags(&name, &pool).unwrap();
            prop_assert_eq!(tags.get(key::CONTROLLER), Some(controller.as_str()));
            prop_assert_eq!(tags.get(key::POOL), Some(pool.as_str()));
            prop_assert_eq!(tags.get(key::NAME), Some(name.as_str()));
            let token = controller.token(&name);
            prop_assert!(token.as_str().len() <= 128);
        }
    }

    #[test]
    fn ids_and_names_that_no_cloud_takes_are_refused() {
        for text in ["", "a b", "a/b", "a\n", &"x".repeat(65)] {
            assert!(Controller::new(text).is_err(), "{text:?}");
        }
        for text in ["", " a", "a\nb", &"x".repeat(129)] {
            assert!(InstanceName::new(text).is_err(), "{text:?}");
        }
    }
}
