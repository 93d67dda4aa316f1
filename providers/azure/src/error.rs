//! Azure's failures, and the shared error each becomes. Pure.
//!
//! Owns what a failure says of its effect: a refusal changed nothing, a breakdown may have changed
//! anything. What its code means is `reason`'s.

use std::{fmt, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright::{
    Call, Effect, InstanceConfig, InstanceId, InvalidValue, Market, NetworkId, Problem,
    ProvisionError, RetryAdvice, Scope, Zone,
};

use crate::reason::{Kind, Limit, Short, field_of, kind_of};

/// How long to wait after throttling where nobody says; Azure nearly always does.
const AFTER_THROTTLING: Duration = Duration::from_secs(10);

/// A call that failed, as the client saw it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    /// Azure's code, of the refusal or in the operation.
    pub(crate) code: Option<String>,
    pub(crate) message: String,
    pub(crate) request_id: Option<String>,
    /// What the reply says about when to come back.
    pub(crate) retry_after: Option<Duration>,
    /// What time it was at Azure's when it answered.
    pub(crate) at: Option<DateTime<Utc>>,
}

/// How a call failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The service answered an error with this status.
    Answered(u16),
    /// It was accepted, and its operation failed.
    FailedLater,
    /// No answer came in time.
    TimedOut,
    /// The connection failed, before or after the request arrived.
    #[default]
    Disconnected,
    /// An answer came that cannot be read.
    Unreadable,
    /// Nothing was sent, because there are no credentials.
    NoCredentials,
    /// Nothing was sent, because credentials cannot be had just now.
    NoCredentialsYet,
    /// Nothing was sent, because nobody listens.
    NotConnected,
    /// Nothing was sent, because it would have gone to somebody else.
    Foreign,
    /// Nothing was sent, because the request cannot be built.
    NotSent,
}

/// What a call was about, for errors that name it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct About<'a> {
    pub(crate) id: Option<&'a InstanceId>,
    pub(crate) config: Option<&'a InstanceConfig>,
    pub(crate) zone: Option<&'a Zone>,
    pub(crate) network: Option<&'a NetworkId>,
    /// How long "not found" proves nothing.
    pub(crate) window: Duration,
}

/// Carried through the SDK's own error. Says nothing that could be a secret.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a call of Azure failed")
    }
}

impl std::error::Error for Failure {}

impl Failure {
    pub(crate) fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self {
            cause,
            message: message.into(),
            ..Self::default()
        }
    }

    /// Whether Azure says that there is nothing where the call looked. A page of somebody else's with that status
    /// says nothing, nor does a subscription that we cannot see any more: what is in it lives on.
    pub(crate) fn is_not_found(&self) -> bool {
        let code = self.code.as_deref().unwrap_or_default();
        self.cause == Cause::Answered(404)
            && matches!(
                code,
                "ResourceNotFound"
                    | "NotFound"
                    | "ResourceGroupNotFound"
                    | "ParentResourceNotFound"
            )
    }

    /// Whether there is not even a resource group.
    pub(crate) fn is_without_group(&self) -> bool {
        self.is_not_found() && self.code.as_deref() == Some("ResourceGroupNotFound")
    }

    /// Whether it was refused because of what else goes on.
    pub(crate) fn is_conflict(&self) -> bool {
        let code = self.code.as_deref().unwrap_or_default();
        matches!(self.cause, Cause::Answered(status) if kind_of(code, status, &self.message) == Kind::Conflict)
    }

    /// Whether somebody else changed the thing since it was read.
    pub(crate) fn is_stale(&self) -> bool {
        self.cause == Cause::Answered(412)
    }

    /// Whether another operation came after this one and took its place.
    pub(crate) fn is_overtaken(&self) -> bool {
        let code = self.code.as_deref().unwrap_or_default();
        self.cause == Cause::FailedLater
            && matches!(
                code,
                "OperationPreempted" | "OperationPreemptedByDelete" | "Canceled"
            )
    }

    /// Whether it failed for want of what a machine is made of, so that there was never any power.
    pub(crate) fn is_before_power(&self) -> bool {
        let code = self.code.as_deref().unwrap_or_default();
        matches!(
            kind_of(code, 0, &self.message),
            Kind::Capacity(_) | Kind::NoAddress | Kind::Quota(_)
        )
    }

    /// Whether the service refused because of what the thing is just now, as far as the answer tells.
    pub(crate) fn may_be_about_state(&self) -> bool {
        let status = match self.cause {
            Cause::Answered(status) => status,
            Cause::FailedLater => 409,
            Cause::TimedOut
            | Cause::Disconnected
            | Cause::Unreadable
            | Cause::NoCredentials
            | Cause::NoCredentialsYet
            | Cause::NotConnected
            | Cause::Foreign
            | Cause::NotSent => return false,
        };
        let code = self.code.as_deref().unwrap_or_default();
        match kind_of(code, status, &self.message) {
            Kind::Conflict | Kind::Invalid | Kind::NotFound => true,
            Kind::Other => status < 500,
            Kind::Capacity(_)
            | Kind::NoAddress
            | Kind::Quota(_)
            | Kind::Throttled
            | Kind::Unauthenticated
            | Kind::Forbidden => false,
        }
    }

    /// Whether the same call may have an answer in a moment.
    pub(crate) fn may_pass(&self) -> bool {
        match self.cause {
            Cause::Answered(status) => status >= 500 || status == 429 || status == 408,
            Cause::TimedOut | Cause::Disconnected | Cause::Unreadable => true,
            Cause::NoCredentialsYet | Cause::NotConnected => true,
            Cause::FailedLater | Cause::NoCredentials | Cause::Foreign | Cause::NotSent => false,
        }
    }

    /// The shared error.
    pub(crate) fn into_error(self, call: &Call, about: About<'_>) -> ProvisionError {
        let error = self.judged(call, about);
        let error = match self.code {
            Some(code) => error.with_native_code(code),
            None => error,
        };
        match self.request_id {
            Some(id) => error.with_request_id(id),
            None => error,
        }
    }

    fn judged(&self, call: &Call, about: About<'_>) -> ProvisionError {
        let message = &self.message;
        match self.cause {
            Cause::TimedOut => call.timeout(Effect::Unknown),
            Cause::Disconnected => call.unavailable(Effect::Unknown, message),
            Cause::Unreadable => call.unexpected(Effect::Unknown, message),
            Cause::NoCredentials => call.unauthenticated(message),
            Cause::NoCredentialsYet | Cause::NotConnected => {
                call.unavailable(Effect::None, message)
            }
            Cause::Foreign | Cause::NotSent => call.unexpected(Effect::None, message),
            Cause::Answered(status) => self.of_code(call, about, status),
            // Operations have no status; what breaks down in one is not known to have done nothing.
            Cause::FailedLater => self.of_code(call, about, 0),
        }
    }

    fn of_code(&self, call: &Call, about: About<'_>, status: u16) -> ProvisionError {
        let message = &self.message;
        let code = self.code.as_deref().unwrap_or_default();
        match (kind_of(code, status, message), about.id) {
            (Kind::NotFound, Some(id)) => call.not_found_yet(id, about.window),
            (Kind::NotFound | Kind::Invalid, _) => {
                let instead = format!("Azure says: {message}");
                let problem = Problem::NotOffered { instead };
                call.invalid(InvalidValue::new(field_of(code, message), problem))
            }
            (Kind::Capacity(short), _) => call.capacity(offering(about, short), message),
            (Kind::NoAddress, _) => {
                let network = about.network.cloned().map(Scope::Network);
                call.capacity(network.unwrap_or(Scope::Region), message)
            }
            (Kind::Quota(limit), _) => call.quota(quota(about, limit), message),
            (Kind::Throttled, _) => call.throttled(self.retry_after.unwrap_or(AFTER_THROTTLING)),
            (Kind::Unauthenticated, _) => call.unauthenticated(message),
            (Kind::Forbidden, _) => call.forbidden(message),
            (Kind::Conflict, _) => {
                let retry = RetryAdvice::After(self.retry_after.unwrap_or(AFTER_THROTTLING));
                call.conflict(message, retry)
            }
            (Kind::Other, _) => match status {
                // The first is said by who gave up waiting for the rest.
                408 | 500..=599 => call.unavailable(Effect::Unknown, message),
                400..=499 => call.unexpected(Effect::None, message),
                _ => call.unexpected(Effect::Unknown, message),
            },
        }
    }
}

/// What is short, as far as a refusal says.
fn offering(about: About<'_>, short: Short) -> Scope {
    let Some(config) = about.config else {
        return about.zone.cloned().map_or(Scope::Region, Scope::zone);
    };
    let zone = about.zone.cloned();
    let market = config.placement.market.unwrap_or(Market::OnDemand);
    Scope::Offering {
        instance_type: Some(config.instance_type.clone()),
        zone: match short {
            Short::Type => None,
            Short::TypeInZone | Short::All => zone,
        },
        market: match short {
            Short::Type | Short::TypeInZone => None,
            Short::All => Some(market),
        },
    }
}

/// Whom a quota is of: another family, or another market, may have room.
fn quota(about: About<'_>, limit: Limit) -> Scope {
    let instance_type = about.config.map(|config| config.instance_type.clone());
    match limit {
        Limit::Family if instance_type.is_some() => Scope::Offering {
            instance_type,
            zone: None,
            market: None,
        },
        Limit::Spot => Scope::Offering {
            instance_type: None,
            zone: None,
            market: Some(Market::Spot),
        },
        Limit::Family | Limit::Whole => Scope::Account,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::{ErrorKind, Operation};

    fn failed(cause: Cause, code: &str, message: &str) -> Failure {
        Failure {
            code: (!code.is_empty()).then(|| code.to_owned()),
            ..Failure::new(cause, message)
        }
    }

    fn launch() -> Call {
        Call::new("azure", Operation::LaunchInstance)
    }

    #[test]
    fn a_code_decides_and_a_status_only_without_one() {
        let cases = [
            (409, "OperationNotAllowed", "quota", ErrorKind::Quota),
            (409, "OperationNotAllowed", "", ErrorKind::Conflict),
            (429, "OperationNotAllowed", "", ErrorKind::Throttled),
            (429, "TooManyRequests", "", ErrorKind::Throttled),
            (
                429,
                "RetryableErrorDueToAnotherOperation",
                "",
                ErrorKind::Conflict,
            ),
            (409, "SkuNotAvailable", "", ErrorKind::Capacity),
            (
                401,
                "ExpiredAuthenticationToken",
                "",
                ErrorKind::Unauthenticated,
            ),
            (403, "AuthorizationFailed", "", ErrorKind::Forbidden),
            (
                409,
                "ReadOnlyDisabledSubscription",
                "",
                ErrorKind::Forbidden,
            ),
            (404, "ResourceGroupNotFound", "", ErrorKind::Invalid),
            (404, "PlatformImageNotFound", "", ErrorKind::Invalid),
            (404, "ResourceNotFound", "", ErrorKind::Invalid),
            (404, "GalleryImageNotFound", "", ErrorKind::Invalid),
            (404, "SubscriptionNotFound", "", ErrorKind::Forbidden),
            (404, "InvalidResourceType", "", ErrorKind::Unexpected),
            (404, "", "", ErrorKind::Unexpected),
            (408, "", "", ErrorKind::Unavailable),
            (400, "InvalidParameter", "", ErrorKind::Invalid),
            (400, "SubnetIsFull", "", ErrorKind::Capacity),
            (409, "Conflict", "", ErrorKind::Conflict),
            (412, "PreconditionFailed", "", ErrorKind::Conflict),
            (500, "InternalExecutionError", "", ErrorKind::Unavailable),
            (503, "", "", ErrorKind::Unavailable),
            (418, "Teapot", "", ErrorKind::Unexpected),
        ];
        for (status, code, message, kind) in cases {
            let failure = failed(Cause::Answered(status), code, message);
            let error = failure.into_error(&launch(), About::default());
            assert_eq!(error.kind(), kind, "{status} {code}: {error}");
            let broke_down = kind == ErrorKind::Unavailable;
            let effect = if broke_down {
                Effect::Unknown
            } else {
                Effect::None
            };
            assert_eq!(error.effect(), effect, "{status} {code}: {error}");
        }
    }

    #[test]
    fn only_azure_s_own_word_makes_a_thing_absent() {
        let absent = |status, code| failed(Cause::Answered(status), code, "").is_not_found();
        for code in ["ResourceNotFound", "NotFound", "ResourceGroupNotFound"] {
            assert!(absent(404, code), "{code}");
            assert!(!absent(409, code), "{code}");
        }
        for code in ["", "SubscriptionNotFound", "InvalidResourceType"] {
            assert!(!absent(404, code), "{code}");
        }
    }

    #[test]
    fn what_is_short_and_whose_quota_it_is_are_told() {
        let config = InstanceConfig::builder("a:b:c:d", "Standard_B1s")
            .build()
            .unwrap();
        let (zone, network) = (Zone::new("1").unwrap(), NetworkId::new("a/b").unwrap());
        let about = About {
            config: Some(&config),
            zone: Some(&zone),
            network: Some(&network),
            ..About::default()
        };
        let scope = |code: &str, message: &str| {
            let failure = failed(Cause::FailedLater, code, message);
            failure.into_error(&launch(), about).scopes().to_vec()
        };
        let offering = |zone, market| Scope::Offering {
            instance_type: Some(config.instance_type.clone()),
            zone,
            market,
        };
        assert_eq!(scope("AllocationFailed", ""), [offering(None, None)]);
        assert_eq!(
            scope("ZonalAllocationFailed", ""),
            [offering(Some(zone.clone()), None)]
        );
        assert_eq!(
            scope("OverconstrainedZonalAllocationRequest", ""),
            [offering(Some(zone.clone()), Some(Market::OnDemand))]
        );
        assert_eq!(scope("SubnetIsFull", ""), [Scope::Network(network.clone())]);
        let family = scope("QuotaExceeded", "standardBSFamily Cores quota");
        assert_eq!(family, [offering(None, None)]);
        let whole = scope("QuotaExceeded", "Total Regional Cores quota");
        assert_eq!(whole, [Scope::Account]);
        let spot = Scope::Offering {
            instance_type: None,
            zone: None,
            market: Some(Market::Spot),
        };
        assert_eq!(scope("QuotaExceeded", "LowPriorityCores quota"), [spot]);
    }

    #[test]
    fn what_never_arrived_and_what_nobody_knows_are_told_apart() {
        let cases = [
            (Cause::TimedOut, ErrorKind::Timeout, Effect::Unknown),
            (Cause::Disconnected, ErrorKind::Unavailable, Effect::Unknown),
            (Cause::Unreadable, ErrorKind::Unexpected, Effect::Unknown),
            (
                Cause::NoCredentials,
                ErrorKind::Unauthenticated,
                Effect::None,
            ),
            (
                Cause::NoCredentialsYet,
                ErrorKind::Unavailable,
                Effect::None,
            ),
            (Cause::NotConnected, ErrorKind::Unavailable, Effect::None),
            (Cause::Foreign, ErrorKind::Unexpected, Effect::None),
            (Cause::NotSent, ErrorKind::Unexpected, Effect::None),
            (Cause::FailedLater, ErrorKind::Unexpected, Effect::Unknown),
        ];
        for (cause, kind, effect) in cases {
            let error = failed(cause, "", "x").into_error(&launch(), About::default());
            assert_eq!((error.kind(), error.effect()), (kind, effect), "{cause:?}");
        }
    }

    #[test]
    fn throttling_keeps_the_time_that_is_asked_for() {
        let mut failure = failed(Cause::Answered(429), "TooManyRequests", "slow down");
        let told = |failure: &Failure| {
            let error = failure.clone().into_error(&launch(), About::default());
            error.retry()
        };
        assert_eq!(told(&failure), RetryAdvice::After(AFTER_THROTTLING));
        failure.retry_after = Some(Duration::from_secs(1200));
        assert_eq!(
            told(&failure),
            RetryAdvice::After(Duration::from_secs(1200))
        );
    }
}
