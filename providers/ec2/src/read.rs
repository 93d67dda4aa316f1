//! Reading instances by id and by filter.
//!
//! Owns the pages of a list. It must never return a part of a list as the whole: the first page that
//! cannot be read, or an instance that cannot be converted, is an error.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::Instance;
use fleetwright::{
    BoxStream, Call, Effect, InstanceFilter, InstanceId, InstanceInfo, ListItem, Operation, Result,
    async_trait,
};
use fleetwright_provider_support::{ReadInstances, RecentLaunches, batch::repeat_error};
use futures_util::{StreamExt as _, stream};

use crate::{Ec2Provisioner, batch, convert, error::ErrorContext};

#[async_trait]
impl ReadInstances for Ec2Provisioner {
    fn recent_launches(&self) -> &RecentLaunches {
        &self.recent_launches
    }

    /// Reads each 1,000 ids with one native call. A failed call is the result of each of its ids; an id
    /// that EC2 does not know is `NotFound`, which may pass for a recent launch of this handle.
    async fn describe_once(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let call = self.call(operation);
        let mut results = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(self.capabilities.batch_size.get()) {
            match batch::read(&self.client, chunk).await {
                Ok(natives) => {
                    self.failed_launches.record(&natives);
                    // The SDK's type is large, so it is neither copied nor moved into the map.
                    let by_id = natives
                        .iter()
                        .filter_map(|native| Some((native.instance_id()?, native)));
                    let found: BTreeMap<_, _> = by_id.collect();
                    results.extend(chunk.iter().map(|id| match found.get(id.as_str()) {
                        Some(native) => info(&call, native),
                        None => Err(self.not_found_yet(&call, id)),
                    }));
                }
                Err(failure) => {
                    let error = failure.into_error(&call, ErrorContext::default());
                    results.extend(repeat_error(chunk, &error));
                }
            }
        }
        results
    }
}

impl Ec2Provisioner {
    /// Streams the instances that `filter` selects, page by page. EC2 has no partial lists, so there are no
    /// gaps: the first page that cannot be read ends the stream with its error.
    pub(crate) fn stream_pages<'a>(
        &'a self,
        operation: Operation,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        // The state is the token of the next page: `Some(None)` at the start, `None` after the last page.
        let next_page = move |position: Option<Option<String>>| async move {
            let page_token = position?;
            let call = self.call(operation);
            let size = self.options.page_size.get();
            let page = self
                .client
                .page(convert::filters(filter), size, page_token)
                .await
                .map_err(|failure| failure.into_error(&call, ErrorContext::default()));
            let page = page.and_then(|(natives, next)| Ok((infos(&call, &natives)?, next)));
            Some(match page {
                Ok((infos, next)) => {
                    let selected = infos.into_iter().filter(|info| filter.matches(info));
                    let items = selected.map(|info| Ok(ListItem::from(info))).collect();
                    (items, next.map(Some))
                }
                Err(error) => (vec![Err(error)], None),
            })
        };
        stream::unfold(Some(None), next_page)
            .flat_map(stream::iter)
            .boxed()
    }
}

/// Converts a native instance.
///
/// # Errors
///
/// An unexpected error if EC2 left out the id or the state. The effect of a launch with such a
/// response is unknown; errors of reads have no effect anyway.
pub(crate) fn info(call: &Call, native: &Instance) -> Result<InstanceInfo> {
    convert::info(native).map_err(|problem| call.unexpected(Effect::Unknown, &problem))
}

/// Converts native instances, or returns the error of the first that cannot be converted.
pub(crate) fn infos(call: &Call, natives: &[Instance]) -> Result<Vec<InstanceInfo>> {
    natives.iter().map(|native| info(call, native)).collect()
}
