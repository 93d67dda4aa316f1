//! Reads of instances by id, with one implementation of everything around the native call.
//!
//! Owns what "not found" means while reads may be stale. It never changes an instance.

use async_trait::async_trait;
use fleetwright::{
    Call, CloudInstanceState, Effect, InstanceId, InstanceInfo, InstanceProvisioner, Operation,
    ProvisionError, Result,
};
use futures_util::future::BoxFuture;

use crate::{RecentLaunches, read_until, read_until_state};

/// A backend that reads many instances with few native calls. It implements the native calls once, in
/// [`describe_once`](Self::describe_once), and gets the rest.
///
/// Each method takes the [`Operation`] that the caller sent, because errors name it. `read.rs` of the EC2 provider
/// is an example.
#[async_trait]
pub trait ReadInstances: InstanceProvisioner {
    /// Returns the recent launches of this handle.
    fn recent_launches(&self) -> &RecentLaunches;

    /// Reads instances with as few native calls as possible. Returns one result for each id, in the same
    /// order; an instance that no read shows is [`not_found_yet`](Self::not_found_yet).
    async fn describe_once(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>>;

    /// Returns the constructor of errors for a call of this backend.
    fn call(&self, operation: Operation) -> Call {
        Call::new(self.capabilities().provider.as_str(), operation)
    }

    /// Returns the error for an instance that reads do not show. It advises a retry only for a recent launch
    /// of this handle: any other instance does not exist, as far as this handle can know.
    fn not_found_yet(&self, call: &Call, id: &InstanceId) -> ProvisionError {
        let hidden_for = self.recent_launches().hidden_for(id, self.capabilities());
        call.not_found_yet(id, hidden_for)
    }

    /// Reads instances, and waits for recent launches of this handle to show.
    async fn describe_all(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let send = |ids: Vec<InstanceId>| -> BoxFuture<'_, _> {
            Box::pin(async move { self.describe_once(operation, &ids).await })
        };
        let launches = self.recent_launches();
        launches
            .retry_not_found(ids, self.capabilities(), send)
            .await
    }

    /// Reads one instance, like [`describe_all`](Self::describe_all).
    async fn describe_one(&self, operation: Operation, id: &InstanceId) -> Result<InstanceInfo> {
        let results = self.describe_all(operation, std::slice::from_ref(id)).await;
        let missing = || Err(self.not_found_yet(&self.call(operation), id));
        results.into_iter().next().unwrap_or_else(missing)
    }

    /// Reads one instance until `accept` returns `true` or the result cannot be stale anymore. See
    /// [`read_until`].
    async fn describe_until(
        &self,
        operation: Operation,
        id: &InstanceId,
        accept: impl for<'i> Fn(&'i InstanceInfo) -> bool + Send + Sync,
    ) -> Result<InstanceInfo>
    where
        Self: Sized,
    {
        let read = || self.describe_one(operation, id);
        read_until(self.capabilities(), read, accept).await
    }

    /// Reads one instance until it is in one of `states`. See [`read_until_state`].
    ///
    /// # Errors
    ///
    /// [`WrongState`](fleetwright::ErrorKind::WrongState) that says that `needed` is required. No error has
    /// an effect.
    async fn describe_in_state(
        &self,
        operation: Operation,
        id: &InstanceId,
        states: &[CloudInstanceState],
        needed: &str,
    ) -> Result<InstanceInfo> {
        let call = self.call(operation);
        let read = || self.describe_one(operation, id);
        read_until_state(self.capabilities(), &call, id, (states, needed), read).await
    }

    /// Reads one instance that was just started, past stale reads from before the start.
    ///
    /// # Errors
    ///
    /// All have the effect [`Done`](Effect::Done): the start has happened.
    async fn describe_started(&self, operation: Operation, id: &InstanceId) -> Result<InstanceInfo>
    where
        Self: Sized,
    {
        let info = self.describe_until(operation, id, is_after_start).await;
        info.map_err(|error| error.with_effect(Effect::Done))
    }
}

/// Returns whether a read of a started instance shows it after the start.
///
/// ```
/// use fleetwright::{CloudInstanceState, InstanceId, InstanceInfo};
/// use fleetwright_provider_support::is_after_start;
///
/// let in_state = |state| InstanceInfo::new(InstanceId::new("i-1").unwrap(), state);
/// assert!(is_after_start(&in_state(CloudInstanceState::Running)));
/// assert!(!is_after_start(&in_state(CloudInstanceState::Stopped)), "a stale read");
/// ```
pub fn is_after_start(info: &InstanceInfo) -> bool {
    let before = [CloudInstanceState::Stopped, CloudInstanceState::Stopping];
    !before.contains(&info.state)
}
