//! Reading: instances by id and by filter, page by page.

use std::slice;

use aws_sdk_ec2::types::Instance;
use fleetwright::{
    BoxStream, Call, CloudInstanceState, Effect, InstanceFilter, InstanceId, InstanceInfo,
    ListItem, Operation, ProvisionError, Result,
};
use fleetwright_provider_support::{read_until, read_until_state};
use futures_util::{StreamExt as _, future::BoxFuture, stream};

use crate::{Ec2Provisioner, batch, convert, error::ErrorContext};

impl Ec2Provisioner {
    /// The instances by id, each as it is or not found.
    pub(crate) async fn described(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let once = |ids: Vec<InstanceId>| -> BoxFuture<'_, _> {
            Box::pin(async move { self.described_once(operation, &ids).await })
        };
        self.fresh
            .retry_not_found(ids, &self.capabilities, once)
            .await
    }

    pub(crate) async fn described_once(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let call = self.call(operation);
        let mut answers = Vec::with_capacity(ids.len());
        for some in ids.chunks(self.capabilities.batch_size.get()) {
            match batch::read(&self.client, some).await {
                Ok(found) => answers.extend(some.iter().map(|id| match found.get(id) {
                    Some(native) => info(&call, native),
                    None => Err(self.missing(&call, id)),
                })),
                Err(failure) => {
                    let error = failure.into_error(&call, ErrorContext::default());
                    answers.extend(some.iter().map(|_| Err(error.clone())));
                }
            }
        }
        answers
    }

    pub(crate) fn missing(&self, call: &Call, id: &InstanceId) -> ProvisionError {
        call.not_found_yet(id, self.capabilities.consistency_window)
    }

    pub(crate) async fn one(&self, operation: Operation, id: &InstanceId) -> Result<InstanceInfo> {
        let mut answers = self.described(operation, slice::from_ref(id)).await;
        answers
            .pop()
            .unwrap_or_else(|| Err(self.missing(&self.call(operation), id)))
    }

    /// Reads one until the answer is `enough` or cannot be of the past any more.
    pub(crate) async fn read_until(
        &self,
        operation: Operation,
        id: &InstanceId,
        enough: impl Fn(&InstanceInfo) -> bool + Send + Sync,
    ) -> Result<InstanceInfo> {
        let read = || -> BoxFuture<'_, _> { Box::pin(self.one(operation, id)) };
        read_until(&self.capabilities, read, enough).await
    }

    /// An instance that an optional verb is about, in one of the states that the verb needs.
    pub(crate) async fn in_state(
        &self,
        operation: Operation,
        id: &InstanceId,
        states: &[CloudInstanceState],
        needed: &str,
    ) -> Result<InstanceInfo> {
        let call = self.call(operation);
        let read = || -> BoxFuture<'_, _> { Box::pin(self.one(operation, id)) };
        read_until_state(&self.capabilities, &call, id, (states, needed), read).await
    }

    pub(crate) fn pages<'a>(
        &'a self,
        operation: Operation,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let page = move |at: Option<Option<String>>| async move {
            let after = at?;
            let call = self.call(operation);
            let size = self.options.page_size.get();
            let answer = self
                .client
                .page(convert::filters(filter), size, after)
                .await;
            let read = answer.map_err(|failure| failure.into_error(&call, ErrorContext::default()));
            let read = read.and_then(|(natives, next)| Ok((infos(&call, &natives)?, next)));
            Some(match read {
                Ok((infos, next)) => {
                    let ours = infos.into_iter().filter(|info| filter.matches(info));
                    (
                        ours.map(|info| Ok(ListItem::from(info))).collect(),
                        next.map(Some),
                    )
                }
                Err(error) => (vec![Err(error)], None),
            })
        };
        stream::unfold(Some(None), page)
            .flat_map(stream::iter)
            .boxed()
    }
}

pub(crate) fn info(call: &Call, native: &Instance) -> Result<InstanceInfo> {
    convert::info(native).map_err(|wrong| call.unexpected(Effect::Unknown, &wrong))
}

pub(crate) fn infos(call: &Call, natives: &[Instance]) -> Result<Vec<InstanceInfo>> {
    natives.iter().map(|native| info(call, native)).collect()
}
