//! Backends that misunderstand one of the errors that their cloud sends.

use std::{num::NonZeroU32, time::Duration};

use async_trait::async_trait;
use fleetwright::{
    Call, Effect, ErrorKind, InstanceConfig, InstanceId, InstanceInfo, InvalidValue, Problem,
    ProvisionError, Result, RetryAdvice, Scope, Zone,
};

use super::{CallContext, Override};

/// What a backend makes of one native code of a launch, instead of its meaning.
pub(super) trait Misread: Default + Send + Sync {
    /// The code.
    const CODE: &'static str;
    /// Whether only the launch of a batch is concerned.
    const ONLY_BATCH: bool = false;

    /// Returns the wrong error.
    fn misread(error: ProvisionError, call: &Call) -> ProvisionError;
}

/// A backend that misreads a code.
#[derive(Default)]
pub(super) struct Misreads<M>(M);

fn misread<T, M: Misread>(result: Result<T>) -> Result<T> {
    result.map_err(|error| {
        if error.native_code() == Some(M::CODE) {
            M::misread(error.clone(), &Call::new("memory", error.operation()))
        } else {
            error
        }
    })
}

#[async_trait]
impl<M: Misread> Override for Misreads<M> {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        if M::ONLY_BATCH {
            return result;
        }
        misread::<_, M>(result)
    }
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        misread::<_, M>(at.inner.launch_instances(config, count).await)
    }
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        misread::<_, M>(at.inner.stop_instance(id).await)
    }
}

/// Creates a misreading.
macro_rules! misreads {
    ($($(#[$doc:meta])* $name:ident $code:literal ($error:ident, $call:ident) $wrong:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Default)]
        pub(super) struct $name;

        impl Misread for $name {
            const CODE: &'static str = $code;

            fn misread($error: ProvisionError, $call: &Call) -> ProvisionError {
                let _ = (&$error, $call);
                $wrong
            }
        }
    )+};
}

misreads! {
    /// One of two codes of a quota.
    QuotaIsOutage "QuotaExceeded" (error, call) call.unavailable(Effect::None, "try again");
    /// It has no effect, but that is not known.
    RefusalMayHaveEffect "InvalidParameter" (error, call) error.with_effect(Effect::Unknown);
    /// Without a delay.
    ConflictIsFinal "ChangeInProgress" (error, call) call.conflict("in use", RetryAdvice::Never);
    /// At once.
    ConflictPassesAtOnce "ChangeInProgress" (error, call) call.conflict("in use", RetryAdvice::After(Duration::ZERO));
    /// The same request is refused again.
    InvalidPasses "InvalidParameter" (error, call) error.retry_after(Duration::from_secs(1));
    /// The same call is refused again.
    UnsupportedPasses "UnsupportedOperation" (error, call) error.retry_after(Duration::from_secs(1));
    /// Nobody raises a quota at once.
    QuotaPassesAtOnce "QuotaExceeded" (error, call) {
        let wrong = call.reported(ErrorKind::Quota, Effect::None, RetryAdvice::SameToken, "the quota is reached");
        wrong.with_scope(Scope::Account)
    };
    /// The caller corrects the wrong one.
    NamesAnotherField "InvalidParameter" (error, call) {
        let instead = "another size".to_owned();
        call.invalid(InvalidValue::new("image", Problem::NotOffered { instead }))
    };
    /// The caller tries the next region for one offering.
    ShortageIsRegional "InsufficientCapacity" (error, call) call.capacity(Scope::Region, "no capacity");
    /// The caller avoids the wrong zone.
    ShortageIsElsewhere "InsufficientCapacity" (error, call) {
        let other = Zone::new("zone-of-nobody").map(Scope::zone);
        call.capacity(other.unwrap_or(Scope::Account), "no capacity")
    };
    /// The caller does not know what to avoid.
    QuotaHasNoScope "QuotaExceeded" (error, call) {
        call.reported(ErrorKind::Quota, Effect::None, RetryAdvice::Never, "the quota is reached")
    };
}

/// Understands the code for one instance, and not for several.
#[derive(Default)]
pub(super) struct BatchQuotaIsOutage;

impl Misread for BatchQuotaIsOutage {
    const CODE: &'static str = QuotaIsOutage::CODE;
    const ONLY_BATCH: bool = true;

    fn misread(error: ProvisionError, call: &Call) -> ProvisionError {
        QuotaIsOutage::misread(error, call)
    }
}
