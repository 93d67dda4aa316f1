//! What resources have in common.

use serde::{Deserialize, Serialize};

/// A tag. Names are unique in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tag {
    /// Its name: 1 to 128 characters.
    #[cfg_attr(
        feature = "openapi",
        schema(
            min_length = 1,
            max_length = 128,
            pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$"
        )
    )]
    pub name: String,
    /// Its value: at most 256 characters.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$")
    )]
    pub value: String,
}

/// The metadata that a caller writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MetadataWrite {
    /// The name: 1 to 63 letters, digits, `-`, `_` and `.`, beginning and ending with a letter or a digit.
    #[cfg_attr(
        feature = "openapi",
        schema(
            max_length = 63,
            pattern = "^[0-9A-Za-z](?:[0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?$"
        )
    )]
    pub name: String,
    /// A text for people: at most 1024 characters.
    #[cfg_attr(feature = "openapi", schema(max_length = 1024))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Tags, at most 32. A write replaces all of them.
    #[cfg_attr(feature = "openapi", schema(max_items = 32))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
}
