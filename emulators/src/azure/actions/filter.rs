//! The filters of lists of resources and resource groups: conditions of the form
//! `name eq 'value'`, joined by `and`.

use serde_json::Value;

use super::list::unknown_filter;
use crate::azure::{catalog::same, error::Refusal};

/// A condition: the name, and the value that it must have.
pub(super) type Condition = (String, String);

/// Parses a filter that may use these names.
///
/// # Errors
///
/// 400 `InvalidFilterInQueryString` for any other name or form.
pub(super) fn read(filter: &str, names: &[&str]) -> Result<Vec<Condition>, Refusal> {
    let condition = |text: &str| {
        let (name, value) = text.trim().split_once(" eq ")?;
        let value = value.trim().strip_prefix('\'')?.strip_suffix('\'')?;
        let name = names.iter().find(|known| same(known, name.trim()))?;
        Some(((*name).to_owned(), value.to_owned()))
    };
    let conditions = filter
        .split(" and ")
        .map(condition)
        .collect::<Option<Vec<_>>>();
    conditions.ok_or_else(|| unknown_filter(filter))
}

/// Whether a document passes all conditions. `tagValue` is about the tag that `tagName` names.
pub(super) fn passes(document: &Value, conditions: &[Condition]) -> bool {
    let tag = conditions
        .iter()
        .find(|(name, _)| name == "tagName")
        .map(|(_, value)| value);
    let tag_value = || {
        let tags = document["tags"].as_object()?;
        let (_, value) = tags
            .iter()
            .find(|(name, _)| tag.is_some_and(|tag| same(name, tag)))?;
        value.as_str()
    };
    conditions
        .iter()
        .all(|(name, expected)| match name.as_str() {
            "tagName" => tag_value().is_some(),
            "tagValue" => tag_value() == Some(expected),
            "resourceType" => document["type"]
                .as_str()
                .is_some_and(|it| same(it, expected)),
            "resourceGroup" => {
                let id = document["id"].as_str().unwrap_or_default();
                id.split('/').nth(4).is_some_and(|it| same(it, expected))
            }
            name => document[name].as_str().is_some_and(|it| same(it, expected)),
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_are_joined() {
        let document = json!({ "name": "a", "type": "X/y", "tags": { "Fleet": "blue" }, "id": "/subscriptions/s/resourceGroups/g" });
        let names = [
            "name",
            "resourceType",
            "resourceGroup",
            "tagName",
            "tagValue",
        ];
        for (filter, expected) in [
            ("tagName eq 'fleet' and tagValue eq 'blue'", true),
            ("tagName eq 'fleet' and tagValue eq 'red'", false),
            ("tagName eq 'other'", false),
            ("resourceType eq 'x/Y'", true),
            ("resourceGroup eq 'G' and name eq 'a'", true),
            ("name eq 'b'", false),
        ] {
            let conditions = read(filter, &names).unwrap();
            assert_eq!(passes(&document, &conditions), expected, "{filter}");
        }
        for bad in ["", "colour eq 'red'", "name ne 'a'", "name eq a"] {
            assert!(read(bad, &names).is_err(), "{bad}");
        }
    }
}
