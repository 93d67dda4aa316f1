//! The check in front of every call to the cloud.

use std::sync::Arc;

use fleetwright::{
    BoxFuture, BoxStream, Effect, InstanceId, InstanceProvisioner, ListItem, Operation,
    ProvisionError, Result,
    layer::{Layer, Layered, Request},
};
use fleetwright_store::{Store, Table};
use futures_util::{StreamExt as _, stream};

use super::{AccountError, AccountGuard, AccountState, RegionAccount};
use crate::ids::RegionId;

/// The message of a refused call. Tenants see it, so it names no account.
const REFUSED: &str = "the region is not connected to the account of its machines now; its operator has to restore that";

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
        match self.0.recent().await {
            Ok(AccountState::Same | AccountState::NotRecorded(_)) => Ok(()),
            Ok(AccountState::Other { recorded, current }) => {
                let operation = request.operation().as_str();
                tracing::warn!(%recorded, %current, operation, "a call is refused: the provider uses another account");
                Err(unavailable(REFUSED))
            }
            Err(AccountError::Cloud(error)) => Err(without_effect(&error, request)),
            Err(AccountError::Store(error)) => {
                tracing::warn!(%error, "the account of the region cannot be read");
                Err(unavailable("the account of the region cannot be read now"))
            }
        }
    }
}

/// Returns an error of the check as one of the call, which was not sent.
fn without_effect(error: &ProvisionError, request: &Request<'_>) -> ProvisionError {
    error.clone().with_operation(request.operation())
}

impl Layer for AccountCheck {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            self.check(&request).await?;
            send().await
        })
    }

    fn batch<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn(Vec<InstanceId>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<Result<T>>> {
        Box::pin(async move {
            match self.check(&request).await {
                Ok(()) => send(request.ids.to_vec()).await,
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
