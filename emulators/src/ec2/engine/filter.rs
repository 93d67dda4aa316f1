//! EC2's filters: names, values with wildcards, and the comparison with a resource.
//!
//! The values of a filter are alternatives, and every filter must match. The
//! comparison is case-sensitive.

use super::record::Tags;
use crate::ec2::error::Refusal;

/// The maximum number of values in the filters of one request.
const MAX_VALUES: usize = 200;

/// One filter. It matches if any of its values does; all filters must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    /// The name, for example `instance-state-name` or `tag:env`.
    pub(crate) name: String,
    /// The values, which may have wildcards.
    pub(crate) values: Vec<String>,
}

/// A resource that can be filtered.
pub(crate) trait Filtered {
    /// The names of its filters besides `tag:KEY` and `tag-key`.
    const NAMES: &'static [&'static str];

    /// Returns the values under one of [`Self::NAMES`]; a filter matches if any of them does.
    fn values(&self, name: &str) -> Vec<String>;

    /// Its tags.
    fn tags(&self) -> Option<&Tags>;
}

/// Refuses filters that the resource does not have.
///
/// # Errors
///
/// `InvalidParameterValue` for an unknown filter or one without values, `FilterLimitExceeded` for
/// more than 200 values.
pub(crate) fn check<T: Filtered>(filters: &[Filter]) -> Result<(), Refusal> {
    for Filter { name, values } in filters {
        let known = T::NAMES.contains(&name.as_str()) || name == "tag-key" || is_tag(name);
        if !known {
            return Err(Refusal::invalid(format!("The filter '{name}' is invalid")));
        }
        if values.is_empty() {
            let message = format!("The filter '{name}' has no values");
            return Err(Refusal::invalid(message));
        }
    }
    if filters
        .iter()
        .map(|filter| filter.values.len())
        .sum::<usize>()
        > MAX_VALUES
    {
        let message = format!(
            "The maximum number of filter values specified on a single call is {MAX_VALUES}"
        );
        return Err(Refusal::client("FilterLimitExceeded", message));
    }
    Ok(())
}

/// Returns whether a filter name is `tag:` and a key.
fn is_tag(name: &str) -> bool {
    name.strip_prefix("tag:").is_some_and(|key| !key.is_empty())
}

/// Whether a resource passes every filter.
pub(crate) fn passes<T: Filtered>(resource: &T, filters: &[Filter]) -> bool {
    filters.iter().all(|Filter { name, values }| {
        let has: Vec<String> = if let Some(key) = name.strip_prefix("tag:") {
            let value = resource.tags().and_then(|tags| tags.get(key));
            value.cloned().into_iter().collect()
        } else if name == "tag-key" {
            resource
                .tags()
                .map(|tags| tags.keys().cloned().collect())
                .unwrap_or_default()
        } else {
            resource.values(name)
        };
        let any = |pattern: &String| has.iter().any(|text| matches(pattern, text));
        values.iter().any(any)
    })
}

/// Whether a filter value has no wildcard, so that an index can find it.
pub(crate) fn is_plain(value: &str) -> bool {
    !value.contains(['*', '?', '\\'])
}

/// Matches EC2's wildcards: `*` is any text, `?` any character, `\` escapes the next one. Takes
/// time in proportion to the product of the lengths at worst.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let pattern = parse(pattern);
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // Where to continue after the last `*` has matched one more character.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(PatternToken::Many) => {
                star = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(PatternToken::One) => {
                (p, t) = (p + 1, t + 1);
                continue;
            }
            Some(PatternToken::Plain(c)) if *c == text[t] => {
                (p, t) = (p + 1, t + 1);
                continue;
            }
            Some(PatternToken::Plain(_)) | None => {}
        }
        let Some((after, star_end)) = star else {
            return false;
        };
        (p, t) = (after, star_end + 1);
        star = Some((after, t));
    }
    pattern[p..]
        .iter()
        .all(|token| matches!(token, PatternToken::Many))
}

/// A part of a filter value.
enum PatternToken {
    /// This character.
    Plain(char),
    /// `?`: any one character.
    One,
    /// `*`: any text, also none.
    Many,
}

/// Splits a filter value into its parts. A backslash at the end stands for itself.
fn parse(pattern: &str) -> Vec<PatternToken> {
    let mut tokens = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '*' => PatternToken::Many,
            '?' => PatternToken::One,
            '\\' => PatternToken::Plain(chars.next().unwrap_or('\\')),
            c => PatternToken::Plain(c),
        });
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wildcards_match_as_ec2_documents_them() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("web", "web", true),
            ("web", "Web", false),
            ("web*", "web-1", true),
            ("*", "", true),
            ("*b", "aabab", true),
            ("*b", "aaba", false),
            ("w?b", "web", true),
            ("w?b", "wb", false),
            ("a*b*c", "a1b2b3c", true),
            ("\\*amazon\\?\\\\", "*amazon?\\", true),
            ("\\*", "x", false),
            ("a\\", "a\\", true),
            ("é?", "éü", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    proptest! {
        #[test]
        fn escaped_text_matches_itself(text in "[a-c*?\\\\]{0,12}", tail in "[a-c]{0,4}") {
            let escaped: String = text.chars().flat_map(|c| ['\\', c]).collect();
            prop_assert!(matches(&escaped, &text));
            let starred = format!("{escaped}*");
            let longer = format!("{text}{tail}");
            prop_assert!(matches(&starred, &longer));
            prop_assert_eq!(is_plain(&text), !text.contains(['*', '?', '\\']));
        }
    }
}
