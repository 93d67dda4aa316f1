//! The bearer token. It is shown nowhere: not by `Debug`, not in errors, not in events of `tracing`.

use std::fmt;

use reqwest::header::HeaderValue;

use crate::Error;

/// A bearer token. `Debug` does not show it.
///
/// ```
/// use fleetwright_client::Token;
///
/// let token = Token::new("fw_secret\n")?; // white space around it, as in a file, is ignored
/// assert_eq!(format!("{token:?}"), "Token(..)");
/// assert!(Token::new("two words").is_err());
/// # Ok::<(), fleetwright_client::Error>(())
/// ```
#[derive(Clone)]
pub struct Token(HeaderValue);

impl Token {
    /// Checks that a text can be a token: one word of visible ASCII characters.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], without the text.
    pub fn new(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Error::invalid("token", "it is empty"));
        }
        let header = HeaderValue::from_str(&format!("Bearer {text}"));
        match header {
            Ok(mut header) if text.bytes().all(|byte| byte.is_ascii_graphic()) => {
                header.set_sensitive(true);
                Ok(Self(header))
            }
            Ok(_) | Err(_) => Err(Error::invalid(
                "token",
                "expected one word of visible ASCII characters",
            )),
        }
    }

    pub(crate) fn header(&self) -> &HeaderValue {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}
