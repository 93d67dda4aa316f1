//! Backends that break the family errors.

mod advice;
mod effects;
mod native;

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    Call, Effect, ErrorKind, InstanceConfig, InstanceId, InstanceInfo, InstanceStatus,
    InvalidValue, LaunchRecord, LaunchToken, Operation, Problem, ProvisionError, Result, Scope,
};

use self::advice::{AdvisesRetry, AdvisesRetryForGone};
use self::effects::{
    FailedDescriptionsHaveEffect, FailedListClaimsSurvivors, FailedStreamHasEffect,
    LostResponseHasNoEffect, ReturnsOtherForFailed, ReturnsOtherForLost, ServerErrorHasNoEffect,
    StopsWithoutCredentials,
};
use self::native::{
    BatchQuotaIsOutage, ConflictIsFinal, ConflictPassesAtOnce, InvalidPasses, Misreads,
    NamesAnotherField, QuotaHasNoScope, QuotaIsOutage, QuotaPassesAtOnce, RefusalMayHaveEffect,
    ShortageIsElsewhere, ShortageIsRegional, UnsupportedPasses,
};
use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};

/// At least one for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "quota is reported as unavailable",
        violates: "ERRORS-01",
        make: OverrideHarness::factory::<QuotaIsTransient>,
    },
    Mutant {
        name: "capacity is reported as quota",
        violates: "ERRORS-02",
        make: OverrideHarness::factory::<CapacityIsQuota>,
    },
    Mutant {
        name: "throttling is reported as permanent",
        violates: "ERRORS-03",
        make: OverrideHarness::factory::<ThrottleIsPermanent>,
    },
    Mutant {
        name: "the demanded retry delay is ignored",
        violates: "ERRORS-03",
        make: OverrideHarness::factory::<IgnoresRetryAfter>,
    },
    Mutant {
        name: "bad credentials are reported as not found",
        violates: "ERRORS-04",
        make: OverrideHarness::factory::<AuthFailureIsNotFound>,
    },
    Mutant {
        name: "a stop with bad credentials is carried out",
        violates: "ERRORS-04",
        make: OverrideHarness::factory::<StopsWithoutCredentials>,
    },
    Mutant {
        name: "missing permissions are reported as expired credentials",
        violates: "ERRORS-05",
        make: OverrideHarness::factory::<ForbiddenIsUnauthenticated>,
    },
    Mutant {
        name: "a server error is reported as not found",
        violates: "ERRORS-06",
        make: OverrideHarness::factory::<ServerErrorIsNotFound>,
    },
    Mutant {
        name: "a server error of find_launch is reported as not found",
        violates: "ERRORS-06",
        make: OverrideHarness::factory::<LookupErrorIsNotFound>,
    },
    Mutant {
        name: "a server error of a launch is reported as without effect",
        violates: "ERRORS-06",
        make: OverrideHarness::factory::<ServerErrorHasNoEffect>,
    },
    Mutant {
        name: "a server error of a launch returns another instance",
        violates: "ERRORS-06",
        make: OverrideHarness::factory::<ReturnsOtherForFailed>,
    },
    Mutant {
        name: "malformed body panics",
        violates: "ERRORS-07",
        make: OverrideHarness::factory::<MalformedPanics>,
    },
    Mutant {
        name: "a lost response is reported as without effect",
        violates: "ERRORS-08",
        make: OverrideHarness::factory::<LostResponseHasNoEffect>,
    },
    Mutant {
        name: "a launch whose response was lost returns another instance",
        violates: "ERRORS-08",
        make: OverrideHarness::factory::<ReturnsOtherForLost>,
    },
    Mutant {
        name: "an error names another operation",
        violates: "ERRORS-09",
        make: OverrideHarness::factory::<NamesAnotherOperation>,
    },
    Mutant {
        name: "the debug output of a handle contains user data",
        violates: "ERRORS-10",
        make: OverrideHarness::factory::<SecretInDebug>,
    },
    Mutant {
        name: "an error contains user data",
        violates: "ERRORS-10",
        make: OverrideHarness::factory::<SecretInError>,
    },
    Mutant {
        name: "a failed list reports survivors",
        violates: "ERRORS-11",
        make: OverrideHarness::factory::<FailedListClaimsSurvivors>,
    },
    Mutant {
        name: "a failed batch of descriptions has an unknown effect",
        violates: "ERRORS-11",
        make: OverrideHarness::factory::<FailedDescriptionsHaveEffect>,
    },
    Mutant {
        name: "a failed stream has an unknown effect",
        violates: "ERRORS-11",
        make: OverrideHarness::factory::<FailedStreamHasEffect>,
    },
    Mutant {
        name: "not found of a description advises a retry",
        violates: "ERRORS-13",
        make: OverrideHarness::factory::<AdvisesRetry<0>>,
    },
    Mutant {
        name: "not found of a start advises a retry",
        violates: "ERRORS-13",
        make: OverrideHarness::factory::<AdvisesRetry<1>>,
    },
    Mutant {
        name: "not found of a stop advises a retry",
        violates: "ERRORS-13",
        make: OverrideHarness::factory::<AdvisesRetry<2>>,
    },
    Mutant {
        name: "not found of a terminate advises a retry",
        violates: "ERRORS-13",
        make: OverrideHarness::factory::<AdvisesRetry<3>>,
    },
    Mutant {
        name: "not found of a batch of descriptions advises a retry",
        violates: "ERRORS-13",
        make: OverrideHarness::factory::<AdvisesRetry<4>>,
    },
    Mutant {
        name: "not found of a batch of starts advises a retry",
        violates: "ERRORS-13",
        make: OverrideHarness::factory::<AdvisesRetry<5>>,
    },
    Mutant {
        name: "not found of a batch of stops advises a retry",
        violates: "ERRORS-13",
        make: OverrideHarness::factory::<AdvisesRetry<6>>,
    },
    Mutant {
        name: "not found of a batch of terminates advises a retry",
        violates: "ERRORS-13",
        make: OverrideHarness::factory::<AdvisesRetry<7>>,
    },
    Mutant {
        name: "not found of an instance that is long gone advises a retry",
        violates: "ERRORS-13",
        make: OverrideHarness::factory::<AdvisesRetryForGone>,
    },
    Mutant {
        name: "one of several codes of a quota is reported as unavailable",
        violates: "ERRORS-15",
        make: OverrideHarness::factory::<Misreads<QuotaIsOutage>>,
    },
    Mutant {
        name: "one of several codes of a quota is reported as unavailable by a batch",
        violates: "ERRORS-15",
        make: OverrideHarness::factory::<Misreads<BatchQuotaIsOutage>>,
    },
    Mutant {
        name: "a refused value has an unknown effect",
        violates: "ERRORS-15",
        make: OverrideHarness::factory::<Misreads<RefusalMayHaveEffect>>,
    },
    Mutant {
        name: "a conflict that passes advises no retry",
        violates: "ERRORS-15",
        make: OverrideHarness::factory::<Misreads<ConflictIsFinal>>,
    },
    Mutant {
        name: "a conflict advises a retry without a delay",
        violates: "ERRORS-15",
        make: OverrideHarness::factory::<Misreads<ConflictPassesAtOnce>>,
    },
    Mutant {
        name: "a refused value advises a retry",
        violates: "ERRORS-15",
        make: OverrideHarness::factory::<Misreads<InvalidPasses>>,
    },
    Mutant {
        name: "a call that is not offered advises a retry",
        violates: "ERRORS-15",
        make: OverrideHarness::factory::<Misreads<UnsupportedPasses>>,
    },
    Mutant {
        name: "one of several codes of a quota advises a retry at once",
        violates: "ERRORS-15",
        make: OverrideHarness::factory::<Misreads<QuotaPassesAtOnce>>,
    },
    Mutant {
        name: "a refused value is reported with another field",
        violates: "ERRORS-15",
        make: OverrideHarness::factory::<Misreads<NamesAnotherField>>,
    },
    Mutant {
        name: "missing capacity of one offering is reported for the region",
        violates: "ERRORS-16",
        make: OverrideHarness::factory::<Misreads<ShortageIsRegional>>,
    },
    Mutant {
        name: "missing capacity is reported for another zone",
        violates: "ERRORS-16",
        make: OverrideHarness::factory::<Misreads<ShortageIsElsewhere>>,
    },
    Mutant {
        name: "a quota is reported without a scope",
        violates: "ERRORS-16",
        make: OverrideHarness::factory::<Misreads<QuotaHasNoScope>>,
    },
];

/// Replaces an error of `kind` with another one.
fn replace_error<T>(
    result: Result<T>,
    kind: ErrorKind,
    other: impl FnOnce(&Call) -> ProvisionError,
) -> Result<T> {
    result.map_err(|error| match error.kind() {
        found if found == kind => other(&Call::new("memory", error.operation())),
        _ => error,
    })
}

#[derive(Default)]
struct QuotaIsTransient;

#[async_trait]
impl Override for QuotaIsTransient {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        replace_error(result, ErrorKind::Quota, |call| {
            call.unavailable(Effect::None, "try again")
        })
    }
}

#[derive(Default)]
struct CapacityIsQuota;

#[async_trait]
impl Override for CapacityIsQuota {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        replace_error(result, ErrorKind::Capacity, |call| {
            call.quota(Scope::Account, "no machine for this account")
        })
    }
}

#[derive(Default)]
struct ThrottleIsPermanent;

#[async_trait]
impl Override for ThrottleIsPermanent {
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let result = at.inner.find_launch(token).await;
        replace_error(result, ErrorKind::Throttled, |call| {
            call.quota(Scope::Account, "too many calls")
        })
    }
}

#[derive(Default)]
struct IgnoresRetryAfter;

#[async_trait]
impl Override for IgnoresRetryAfter {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let result = at.inner.stop_instance(id).await;
        replace_error(result, ErrorKind::Throttled, |call| {
            call.throttled(Duration::ZERO)
        })
    }
}

#[derive(Default)]
struct AuthFailureIsNotFound;

#[async_trait]
impl Override for AuthFailureIsNotFound {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let result = at.inner.describe_instance(id).await;
        replace_error(result, ErrorKind::Unauthenticated, |call| {
            call.not_found(id)
        })
    }
}

#[derive(Default)]
struct ForbiddenIsUnauthenticated;

#[async_trait]
impl Override for ForbiddenIsUnauthenticated {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let result = at.inner.terminate_instance(id).await;
        replace_error(result, ErrorKind::Forbidden, |call| {
            call.unauthenticated("not allowed")
        })
    }
}

#[derive(Default)]
struct ServerErrorIsNotFound;

#[async_trait]
impl Override for ServerErrorIsNotFound {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let result = at.inner.describe_instance(id).await;
        replace_error(result, ErrorKind::Unavailable, |call| call.not_found(id))
    }
}

#[derive(Default)]
struct LookupErrorIsNotFound;

#[async_trait]
impl Override for LookupErrorIsNotFound {
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        match at.inner.find_launch(token).await {
            Err(error) if error.kind() == ErrorKind::Unavailable => Ok(LaunchRecord::NotFound),
            result => result,
        }
    }
}

#[derive(Default)]
struct MalformedPanics;

#[async_trait]
impl Override for MalformedPanics {
    #[expect(clippy::panic, reason = "this mutant is wrong on purpose")]
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let result = at.inner.find_launch(token).await;
        match result {
            Err(error) if error.kind() == ErrorKind::Unexpected => panic!("no such field"),
            result => result,
        }
    }
}

#[derive(Default)]
struct NamesAnotherOperation;

#[async_trait]
impl Override for NamesAnotherOperation {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let result = at.inner.describe_instance(id).await;
        let list = Call::new("memory", Operation::ListInstances);
        replace_error(result, ErrorKind::NotFound, |_| list.not_found(id))
    }
}

/// Shows its last request in debug output.
#[derive(Default)]
struct SecretInDebug(Mutex<String>);

#[async_trait]
impl Override for SecretInDebug {
    fn debug(&self) -> String {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone()
    }
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        if let Some(data) = &config.user_data {
            let text = String::from_utf8_lossy(data.as_bytes()).into_owned();
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
        at.inner.launch_instance(config).await
    }
}

/// Quotes the refused user data in the error.
#[derive(Default)]
struct SecretInError;

#[async_trait]
impl Override for SecretInError {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        let Some(data) = &config.user_data else {
            return result;
        };
        let start = &data.as_bytes()[..data.as_bytes().len().min(40)];
        let instead = format!("shorten {}", String::from_utf8_lossy(start));
        replace_error(result, ErrorKind::Invalid, |call| {
            let problem = Problem::NotOffered { instead };
            call.invalid(InvalidValue::new("user data", problem))
        })
    }
}
