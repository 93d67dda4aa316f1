//! EC2's structures as XML elements: names and order only, no decisions.
//!
//! Every element is in botocore's service model; `emulators/peers/run` checks each response against
//! it.

pub(crate) mod catalog;
pub(crate) mod image;
pub(crate) mod instance;
pub(crate) mod storage;
pub(crate) mod types;

use serde::Serialize;

use super::{engine::record::Tags, wire::xml::Set};

/// A tag.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Tag {
    /// The key.
    pub(crate) key: String,
    /// The value, maybe empty.
    pub(crate) value: String,
}

/// Returns tags as a set, in the order of their keys.
pub(crate) fn tag_set(tags: &Tags) -> Set<Tag> {
    let tag = |(key, value): (&String, &String)| Tag {
        key: key.clone(),
        value: value.clone(),
    };
    tags.iter().map(tag).collect()
}

/// A security group by id and name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Group {
    /// The id.
    pub(crate) group_id: String,
    /// The name.
    pub(crate) group_name: String,
}
