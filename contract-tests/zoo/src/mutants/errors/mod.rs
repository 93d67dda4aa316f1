//! Backends that break the family errors.

mod effects;

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    Call, Effect, ErrorKind, InstanceConfig, InstanceId, InstanceInfo, InstanceStatus,
    InvalidValue, LaunchRecord, LaunchToken, Operation, Problem, ProvisionError, Result, Scope,
};

use self::effects::{
    FailedDescriptionsHaveEffect, FailedListClaimsSurvivors, FailedStreamHasEffect,
    LostReplyHasNoEffect, MistakesFailedLaunches, MistakesLostLaunches, ServerErrorHasNoEffect,
    StopsWithoutCredentials,
};
use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};

/// One for each clause of the family, or more.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "quota reported as transient",
        violates: "ERRORS-01",
        make: OverrideHarness::factory::<QuotaIsTransient>,
    },
    Mutant {
        name: "capacity reported as quota",
        violates: "ERRORS-02",
        make: OverrideHarness::factory::<CapacityIsQuota>,
    },
    Mutant {
        name: "throttle reported as permanent",
        violates: "ERRORS-03",
        make: OverrideHarness::factory::<ThrottleIsPermanent>,
    },
    Mutant {
        name: "Retry-After ignored",
        violates: "ERRORS-03",
        make: OverrideHarness::factory::<IgnoresRetryAfter>,
    },
    Mutant {
        name: "auth failure as not found",
        violates: "ERRORS-04",
        make: OverrideHarness::factory::<AuthFailureIsNotFound>,
    },
    Mutant {
        name: "stop with bad credentials carried out",
        violates: "ERRORS-04",
        make: OverrideHarness::factory::<StopsWithoutCredentials>,
    },
    Mutant {
        name: "missing rights as expired credentials",
        violates: "ERRORS-05",
        make: OverrideHarness::factory::<ForbiddenIsUnauthenticated>,
    },
    Mutant {
        name: "500 as not found",
        violates: "ERRORS-06",
        make: OverrideHarness::factory::<ServerErrorIsNotFound>,
    },
    Mutant {
        name: "500 of a look-up as a launch that was not seen",
        violates: "ERRORS-06",
        make: OverrideHarness::factory::<ServerErrorIsNotSeen>,
    },
    Mutant {
        name: "500 of a launch as without effect",
        violates: "ERRORS-06",
        make: OverrideHarness::factory::<ServerErrorHasNoEffect>,
    },
    Mutant {
        name: "500 of a launch taken for another instance",
        violates: "ERRORS-06",
        make: OverrideHarness::factory::<MistakesFailedLaunches>,
    },
    Mutant {
        name: "malformed body panics",
        violates: "ERRORS-07",
        make: OverrideHarness::factory::<MalformedPanics>,
    },
    Mutant {
        name: "lost reply reported as without effect",
        violates: "ERRORS-08",
        make: OverrideHarness::factory::<LostReplyHasNoEffect>,
    },
    Mutant {
        name: "lost launch taken for another instance",
        violates: "ERRORS-08",
        make: OverrideHarness::factory::<MistakesLostLaunches>,
    },
    Mutant {
        name: "error names another operation",
        violates: "ERRORS-09",
        make: OverrideHarness::factory::<NamesAnotherOperation>,
    },
    Mutant {
        name: "secret in Debug",
        violates: "ERRORS-10",
        make: OverrideHarness::factory::<SecretInDebug>,
    },
    Mutant {
        name: "secret in an error",
        violates: "ERRORS-10",
        make: OverrideHarness::factory::<SecretInError>,
    },
    Mutant {
        name: "failed list claims survivors",
        violates: "ERRORS-11",
        make: OverrideHarness::factory::<FailedListClaimsSurvivors>,
    },
    Mutant {
        name: "failed batch of descriptions of unknown effect",
        violates: "ERRORS-11",
        make: OverrideHarness::factory::<FailedDescriptionsHaveEffect>,
    },
    Mutant {
        name: "failed stream of unknown effect",
        violates: "ERRORS-11",
        make: OverrideHarness::factory::<FailedStreamHasEffect>,
    },
];

/// Says another error instead of one of `kind`.
fn instead<T>(
    answer: Result<T>,
    kind: ErrorKind,
    other: impl FnOnce(&Call) -> ProvisionError,
) -> Result<T> {
    answer.map_err(|error| match error.kind() {
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
        let answer = at.inner.launch_instance(config).await;
        instead(answer, ErrorKind::Quota, |call| {
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
        let answer = at.inner.launch_instance(config).await;
        instead(answer, ErrorKind::Capacity, |call| {
            call.quota(Scope::Account, "no machine for this account")
        })
    }
}

#[derive(Default)]
struct ThrottleIsPermanent;

#[async_trait]
impl Override for ThrottleIsPermanent {
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let answer = at.inner.find_launch(token).await;
        instead(answer, ErrorKind::Throttled, |call| {
            call.quota(Scope::Account, "too many calls")
        })
    }
}

#[derive(Default)]
struct IgnoresRetryAfter;

#[async_trait]
impl Override for IgnoresRetryAfter {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let answer = at.inner.stop_instance(id).await;
        instead(answer, ErrorKind::Throttled, |call| {
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
        let answer = at.inner.describe_instance(id).await;
        instead(answer, ErrorKind::Unauthenticated, |call| {
            call.not_found(id)
        })
    }
}

#[derive(Default)]
struct ForbiddenIsUnauthenticated;

#[async_trait]
impl Override for ForbiddenIsUnauthenticated {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let answer = at.inner.terminate_instance(id).await;
        instead(answer, ErrorKind::Forbidden, |call| {
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
        let answer = at.inner.describe_instance(id).await;
        instead(answer, ErrorKind::Unavailable, |call| call.not_found(id))
    }
}

#[derive(Default)]
struct ServerErrorIsNotSeen;

#[async_trait]
impl Override for ServerErrorIsNotSeen {
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        match at.inner.find_launch(token).await {
            Err(error) if error.kind() == ErrorKind::Unavailable => Ok(LaunchRecord::NotFound),
            answer => answer,
        }
    }
}

#[derive(Default)]
struct MalformedPanics;

#[async_trait]
impl Override for MalformedPanics {
    #[expect(clippy::panic, reason = "this mutant is wrong on purpose")]
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let answer = at.inner.find_launch(token).await;
        match answer {
            Err(error) if error.kind() == ErrorKind::Unexpected => panic!("no such field"),
            answer => answer,
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
        let answer = at.inner.describe_instance(id).await;
        let list = Call::new("memory", Operation::ListInstances);
        instead(answer, ErrorKind::NotFound, |_| list.not_found(id))
    }
}

/// Keeps its last request, and shows it whole.
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

/// Quotes what it refuses.
#[derive(Default)]
struct SecretInError;

#[async_trait]
impl Override for SecretInError {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let answer = at.inner.launch_instance(config).await;
        let Some(data) = &config.user_data else {
            return answer;
        };
        let start = &data.as_bytes()[..data.as_bytes().len().min(40)];
        let instead_of = format!("shorten {}", String::from_utf8_lossy(start));
        instead(answer, ErrorKind::Invalid, |call| {
            let problem = Problem::NotOffered {
                instead: instead_of,
            };
            call.invalid(InvalidValue::new("user data", problem))
        })
    }
}
