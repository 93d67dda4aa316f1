//! CreateTags, DeleteTags, DescribeTags.
//!
//! Instances, volumes, network interfaces, images and snapshots have tags. A call applies to all named
//! resources or to none.

use serde::Serialize;

use super::{Call, common};
use crate::ec2::{
    engine::{Engine, tag_list::TagRow},
    error::Refusal,
    wire::xml::Set,
};

/// Adds and replaces tags.
///
/// # Errors
///
/// `MissingParameter` without ids or tags, `InvalidParameterValue` for invalid tags,
/// `TagLimitExceeded` above 50, and the code of the kind for a missing resource.
pub(super) fn create(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let ids = call.ids("ResourceId")?;
    let tags = common::tags_by_key(&call.root());
    let mode = call.mode()?;
    call.finish()?;
    if tags.is_empty() {
        return Err(Refusal::missing("Tag"));
    }
    engine.create_tags(&ids, &tags, mode)?;
    call.success()
}

/// Removes tags: by key, by key and value, or all of them if no tag is named.
///
/// # Errors
///
/// `MissingParameter` without ids, and the code of the kind for a missing resource.
pub(super) fn delete(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let ids = call.ids("ResourceId")?;
    let removals = call.root().groups("Tag");
    let removals = removals
        .iter()
        .map(|tag| Ok((tag.required("Key")?, tag.text("Value"))));
    let removals: Vec<(String, Option<String>)> = removals.collect::<Result<_, Refusal>>()?;
    let mode = call.mode()?;
    call.finish()?;
    engine.delete_tags(&ids, &removals, mode)?;
    call.success()
}

/// The response of DescribeTags.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    /// The tags, one row each.
    tag_set: Set<Row>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

/// A tag of a resource.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    /// The resource.
    resource_id: String,
    /// Its kind, for example `instance`.
    resource_type: &'static str,
    /// The key.
    key: String,
    /// The value, maybe empty.
    value: String,
}

/// Lists tags by filters. Tags of instances may lag.
///
/// # Errors
///
/// `InvalidParameterValue` for an unknown filter.
pub(super) fn describe(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let filters = call.filters()?;
    let (paging, _) = call.paging(engine)?;
    call.finish_read()?;
    let page = engine.tags_page(&filters, &paging, call.context.read_lag)?;
    let row = |tag: TagRow| Row {
        resource_id: tag.resource,
        resource_type: tag.kind.name(),
        key: tag.key,
        value: tag.value,
    };
    call.respond(&Response {
        tag_set: page.items.into_iter().map(row).collect(),
        next_token: call.next_token(page.next),
    })
}
