//! Backends that break the operations that are about no change of an instance: the account and the console.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use fleetwright::{
    AccountId, Call, ConsoleSession, ErrorKind, InstanceFilter, InstanceId, Operation, Reboot,
    Result,
};

use super::{CallContext, Override};

/// Makes a native call for the account, as a cloud does that must be asked for it, and reports every failure of
/// that call as forbidden.
#[derive(Default)]
pub(super) struct UnreadableAccountIsForbidden;

#[async_trait]
impl Override for UnreadableAccountIsForbidden {
    async fn account_id(&self, at: CallContext<'_>) -> Result<Option<AccountId>> {
        match at.inner.list_instances(&InstanceFilter::new()).await {
            Ok(_) => at.inner.account_id().await,
            Err(_) => Err(at
                .call(Operation::AccountId)
                .forbidden("the account cannot be read")),
        }
    }
}

/// Makes a native call for the account, and returns another one from the next read after a failure.
#[derive(Default)]
pub(super) struct AnotherAccountAfterFailure(AtomicBool);

#[async_trait]
impl Override for AnotherAccountAfterFailure {
    async fn account_id(&self, at: CallContext<'_>) -> Result<Option<AccountId>> {
        if self.0.swap(false, Ordering::SeqCst) {
            return Ok(None);
        }
        match at.inner.list_instances(&InstanceFilter::new()).await {
            Ok(_) => at.inner.account_id().await,
            Err(error) => {
                self.0.store(true, Ordering::SeqCst);
                let call = at.call(Operation::AccountId);
                let (kind, effect, retry) = (error.kind(), error.effect(), error.retry());
                Err(call.reported(kind, effect, retry, "the account cannot be read"))
            }
        }
    }
}

#[derive(Default)]
pub(super) struct SessionNamesAnotherCall;

#[async_trait]
impl Override for SessionNamesAnotherCall {
    async fn console_session(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<ConsoleSession> {
        let opened = at.inner.console_session(id).await;
        opened.map_err(|error| {
            let call = Call::new(error.provider(), Operation::ConsoleOutput);
            let (kind, effect, retry) = (error.kind(), error.effect(), error.retry());
            call.reported(kind, effect, retry, "the console cannot be reached")
        })
    }
}

#[derive(Default)]
pub(super) struct ThrottledSessionStops;

#[async_trait]
impl Override for ThrottledSessionStops {
    async fn console_session(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<ConsoleSession> {
        let opened = at.inner.console_session(id).await;
        if matches!(&opened, Err(error) if error.kind() == ErrorKind::Throttled) {
            at.inner.stop_instance(id).await?;
        }
        opened
    }
}

#[derive(Default)]
pub(super) struct SessionReboots;

#[async_trait]
impl Override for SessionReboots {
    async fn console_session(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<ConsoleSession> {
        let session = at.inner.console_session(id).await?;
        at.inner.reboot_instance(id, Reboot::Hard).await?;
        Ok(session)
    }
}
