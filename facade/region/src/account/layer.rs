//! The check in front of every call to the cloud.

use std::{borrow::Cow, sync::Arc};

use fleetwright::{
    BoxFuture, BoxStream, Effect, InstanceId, InstanceProvisioner, ListItem, Operation, Result,
    layer::{Layer, Layered, Request},
};
use fleetwright_store::{Store, Table};
use futures_util::{StreamExt as _, stream};

use super::{
    AccountError, AccountGuard, AccountState, RegionAccount,
    risk::{Risk, is_doubtful},
};
use crate::ids::RegionId;

/// The message of a refused call. Tenants see it, so it names no account.
const REFUSED: &str = "the region is not connected to the account of its machines now; its operator has to restore that";

/// The message of a call that waits until the account can be read. Tenants see it.
pub(crate) const UNREADABLE: &str = "the region cannot confirm now that it is connected to the account of its machines; it continues when it can";

/// The message of a call that was made while the account may have changed.
const IN_DOUBT: &str = "the region may not have been connected to the account of its machines; the call is repeated when it is";

/// Returns the handle that refuses every call while the provider uses another account than the recorded one, and its guard.
pub(crate) fn guarded(
    region: &RegionId,
    store: &Arc<dyn Store>,
    accounts: Table<RegionAccount>,
    cloud: Arc<dyn InstanceProvisioner>,
) -> (Arc<dyn InstanceProvisioner>, Arc<AccountGuard>) {
    let store = Arc::clone(store);
    let guard = AccountGuard::new(region.clone(), store, accounts, Arc::clone(&cloud));
    let guard = Arc::new(guard);
    let layer = AccountCheck(Arc::clone(&guard));
    (Arc::new(Layered::new(cloud, layer)), guard)
}

#[derive(Debug)]
struct AccountCheck(Arc<AccountGuard>);

impl AccountCheck {
    /// Refuses a call if the provider uses another account, or if that cannot be found out.
    async fn check(&self, request: &Request<'_>) -> Result<()> {
        if request.operation() == Operation::AccountId {
            return Ok(());
        }
        let unavailable = |message: &str| request.call.unavailable(Effect::None, message);
        let risk = Risk::of(request.operation());
        let state = match risk {
            Risk::Read => self.0.recent().await,
            Risk::Reversible | Risk::Lasting => self.0.current().await,
        };
        match state {
            Err(error) if risk != Risk::Lasting && self.0.is_recently_confirmed(&error) => Ok(()),
            Ok(AccountState::Same | AccountState::NotRecorded(_)) => Ok(()),
            Ok(AccountState::Other { recorded, current }) => {
                let operation = request.operation().as_str();
                tracing::warn!(%recorded, %current, operation, "a call is refused: the provider uses another account");
                // The credentials are wrong for this region. Unlike a failure of the cloud, that is no reason to give a change up.
                Err(request.call.unauthenticated(REFUSED))
            }
            Err(AccountError::Cloud(error)) => {
                let operation = request.operation().as_str();
                tracing::warn!(%error, operation, "a call is refused: the account of the provider cannot be read");
                Err(request.call.unauthenticated(UNREADABLE))
            }
            Err(AccountError::Store(error)) => {
                tracing::warn!(%error, "the account of the region cannot be read");
                Err(unavailable("the account of the region cannot be read now"))
            }
        }
    }
}

impl AccountCheck {
    /// Returns the result of a call, unless it says something only of the region's account and the account may have changed.
    async fn confirm<T>(&self, request: &Request<'_>, result: Result<T>) -> Result<T> {
        if !is_doubtful(request.operation(), result.as_ref().err()) {
            return result;
        }
        match self.0.current().await {
            Ok(AccountState::Same | AccountState::NotRecorded(_)) => result,
            Ok(AccountState::Other { .. }) | Err(_) => {
                let operation = request.operation().as_str();
                tracing::warn!(
                    operation,
                    "the account changed during a call, or cannot be read"
                );
                Err(request.call.unavailable(Effect::Unknown, IN_DOUBT))
            }
        }
    }
}

impl Layer for AccountCheck {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            self.check(&request).await?;
            let result = send().await;
            self.confirm(&request, result).await
        })
    }

    fn batch<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn(Cow<'a, [InstanceId]>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<Result<T>>> {
        Box::pin(async move {
            match self.check(&request).await {
                Ok(()) => {
                    let mut results = Vec::new();
                    for result in send(Cow::Borrowed(request.ids)).await {
                        results.push(self.confirm(&request, result).await);
                    }
                    results
                }
                Err(error) => request.ids.iter().map(|_| Err(error.clone())).collect(),
            }
        })
    }

    fn stream<'a>(
        &'a self,
        request: Request<'a>,
        open: impl Fn() -> BoxStream<'a, Result<ListItem>> + Send + Sync + 'a,
    ) -> BoxStream<'a, Result<ListItem>> {
        let opened = async move {
            match self.check(&request).await {
                Ok(()) => open(),
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        };
        stream::once(opened).flatten().boxed()
    }
}
