//! The rules of tags: their number, length and characters. Names that differ only in case are
//! duplicates.

use serde::Deserialize as _;
use serde_json::Value;

use super::Engine;
use crate::azure::{error::Refusal, wire::body::Tags};

/// The maximum number of tags of a resource.
const MAX_TAGS: usize = 50;

/// The maximum length of a tag's name in characters.
const MAX_NAME_LENGTH: usize = 512;

/// The maximum length of a tag's value in characters. A value may be empty.
const MAX_VALUE_LENGTH: usize = 256;

/// Characters that a tag's name may not contain. Values may contain any character.
const FORBIDDEN: &str = "<>%&\\?/";

impl Engine {
    /// Checks the tags of a document. A document without tags is valid.
    ///
    /// # Errors
    ///
    /// 400 `TooManyTags`, `InvalidRequestContent` (duplicate names), `InvalidTagName`,
    /// `InvalidTagNameCharacters` or `InvalidTagValueLength`.
    #[expect(
        clippy::unused_self,
        reason = "kept a method like the engine's other checks"
    )]
    pub(crate) fn check_tags(&self, tags: Option<&Tags>) -> Result<(), Refusal> {
        tags.map_or(Ok(()), check)
    }
}

/// Reads the tags of a document; `None` if it has none.
///
/// # Errors
///
/// 400 `BadRequest` for tags that are not texts.
pub(crate) fn read(value: &Value) -> Result<Option<Tags>, Refusal> {
    if value.is_null() {
        return Ok(None);
    }
    Tags::deserialize(value)
        .map(Some)
        .map_err(|error| Refusal::client("BadRequest", format!("tags: {error}")))
}

/// Checks the rules one after the other, and returns the first violation.
fn check(tags: &Tags) -> Result<(), Refusal> {
    if tags.len() > MAX_TAGS {
        let message = format!(
            "The number of tags '{}' exceeded the maximum number of tags allowed, '{MAX_TAGS}'.",
            tags.len()
        );
        return Err(Refusal::client("TooManyTags", message));
    }
    let mut names: Vec<String> = tags.keys().map(|name| name.to_lowercase()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair.first() == pair.last()) {
        let name = pair.first().map_or("", String::as_str);
        let message =
            format!("Duplicate tag name '{name}': the names of tags are case-insensitive.");
        return Err(Refusal::client("InvalidRequestContent", message));
    }
    for (name, value) in tags {
        if name.is_empty() || name.chars().count() > MAX_NAME_LENGTH {
            let message = format!(
                "The length of tag name '{name}' is not within 1 to {MAX_NAME_LENGTH} characters."
            );
            return Err(Refusal::client("InvalidTagName", message));
        }
        if name.contains(|c: char| c.is_control() || FORBIDDEN.contains(c)) {
            let message = format!(
                "The tag name '{name}' has reserved characters '{FORBIDDEN}' or control characters."
            );
            return Err(Refusal::client("InvalidTagNameCharacters", message));
        }
        if value.chars().count() > MAX_VALUE_LENGTH {
            let message =
                format!("The value of tag '{name}' is longer than {MAX_VALUE_LENGTH} characters.");
            return Err(Refusal::client("InvalidTagValueLength", message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(tags: &[(&str, &str)]) -> String {
        let tags = tags
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        check(&tags.collect())
            .map_or_else(|refusal| refusal.code.into_owned(), |()| "fine".to_owned())
    }

    #[test]
    fn tags_have_limits() {
        let (name, value) = ("n".repeat(512), "é".repeat(256));
        assert_eq!(
            code(&[
                (&name, &value),
                ("Managed By", ""),
                ("ünïcode 🦀", "a/b?<>")
            ]),
            "fine"
        );
        assert_eq!(code(&[(&format!("{name}n"), "")]), "InvalidTagName");
        assert_eq!(code(&[("", "")]), "InvalidTagName");
        assert_eq!(
            code(&[("a", &format!("{value}é"))]),
            "InvalidTagValueLength"
        );
        for c in FORBIDDEN.chars() {
            assert_eq!(code(&[(&format!("a{c}b"), "")]), "InvalidTagNameCharacters");
        }
        assert_eq!(
            code(&[("Owner", "a"), ("owner", "b")]),
            "InvalidRequestContent"
        );
        let many: Tags = (0..51).map(|n| (format!("t{n}"), String::new())).collect();
        assert_eq!(check(&many).unwrap_err().code, "TooManyTags");
    }
}
