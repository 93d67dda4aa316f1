//! CreateTags, DeleteTags, DescribeTags.

use serde::Serialize;

use super::{Call, common};
use crate::ec2::{
    engine::{Engine, tag_list::TagRow},
    error::Refusal,
    wire::xml::Set,
};

pub(super) fn create(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let ids = call.ids("ResourceId")?;
    let tags = common::tags_of(&call.root())?;
    let mode = call.mode()?;
    call.finish()?;
    if tags.is_empty() {
        return Err(Refusal::missing("Tag"));
    }
    engine.create_tags(&ids, &tags, mode)?;
    call.success()
}

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

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Reply {
    tag_set: Set<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    resource_id: String,
    resource_type: &'static str,
    key: String,
    value: String,
}

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
    call.reply(&Reply {
        tag_set: page.items.into_iter().map(row).collect(),
        next_token: call.next_token(page.next),
    })
}
