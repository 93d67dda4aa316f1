//! Azure's failures. Pure.
//!
//! Owns which failures the provider handles itself, and the scope of an error. What a code means is in
//! `reason`.

use std::time::Duration;

use fleetwright::{Market, Scope};
pub(crate) use fleetwright_provider_support::{Cause, ErrorContext};
use fleetwright_provider_support::{Class, Service};

use crate::reason::{Kind, Limit, Short, field_of, kind_of};

/// A call to Azure that failed. Operations have no HTTP status.
pub(crate) type Failure = fleetwright_provider_support::Failure<Azure>;

/// Azure's errors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Azure {}

impl Service for Azure {
    const NAME: &'static str = "Azure";
    /// Azure nearly always says how long to wait.
    const RETRY_DELAY: Duration = Duration::from_secs(10);

    fn classify(failure: &Failure, context: &ErrorContext<'_>) -> Class {
        let (code, message) = (failure.code(), &failure.message);
        match kind_of(code, failure.status().unwrap_or_default(), message) {
            Kind::NotFound if context.instance.is_some() => Class::NotFound,
            Kind::NotFound | Kind::Invalid => Class::Invalid(field_of(code, message)),
            Kind::Capacity(short) => Class::Capacity(offering(context, short)),
            Kind::NoAddress => {
                let network = context.network.cloned().map(Scope::Network);
                Class::Capacity(network.unwrap_or(Scope::Region))
            }
            Kind::Quota(limit) => Class::Quota(quota(context, limit)),
            Kind::Throttled => Class::Throttled,
            Kind::Unauthenticated => Class::Unauthenticated,
            Kind::Forbidden => Class::Forbidden,
            Kind::Conflict => Class::Conflict,
            Kind::Other => Class::Other,
        }
    }
}

/// What the provider asks of a failure, beyond the shared error.
pub(crate) trait AzureFailure {
    /// Whether Azure says that there is nothing where the call looked. A page of somebody else's with that status
    /// says nothing, nor does a subscription that we cannot see any more: what is in it lives on.
    fn is_not_found(&self) -> bool;

    /// Whether there is not even a resource group.
    fn is_without_group(&self) -> bool;

    /// Whether it was refused because of what else goes on.
    fn is_conflict(&self) -> bool;

    /// Whether somebody else changed the thing since it was read.
    fn is_stale(&self) -> bool;

    /// Whether another operation came after this one and took its place.
    fn is_overtaken(&self) -> bool;

    /// Whether it failed for want of what a machine is made of, so that there was never any power.
    fn is_before_power(&self) -> bool;

    /// Whether the service refused because of what the thing is just now, as far as the answer tells.
    fn may_be_about_state(&self) -> bool;

    /// Whether the same call may have an answer in a moment.
    fn may_pass(&self) -> bool;
}

impl AzureFailure for Failure {
    fn is_not_found(&self) -> bool {
        let code = self.code();
        self.cause == Cause::Responded(404)
            && matches!(
                code,
                "ResourceNotFound"
                    | "NotFound"
                    | "ResourceGroupNotFound"
                    | "ParentResourceNotFound"
            )
    }

    fn is_without_group(&self) -> bool {
        self.is_not_found() && self.code() == "ResourceGroupNotFound"
    }

    fn is_conflict(&self) -> bool {
        let code = self.code();
        matches!(self.cause, Cause::Responded(status) if kind_of(code, status, &self.message) == Kind::Conflict)
    }

    fn is_stale(&self) -> bool {
        self.cause == Cause::Responded(412)
    }

    fn is_overtaken(&self) -> bool {
        let code = self.code();
        matches!(self.cause, Cause::OperationFailed(_))
            && matches!(
                code,
                "OperationPreempted" | "OperationPreemptedByDelete" | "Canceled"
            )
    }

    fn is_before_power(&self) -> bool {
        let code = self.code();
        matches!(
            kind_of(code, 0, &self.message),
            Kind::Capacity(_) | Kind::NoAddress | Kind::Quota(_)
        )
    }

    fn may_be_about_state(&self) -> bool {
        let status = match self.cause {
            Cause::Responded(status) => status,
            Cause::OperationFailed(_) => 409,
            Cause::TimedOut
            | Cause::Disconnected
            | Cause::Unreadable
            | Cause::NoCredentials
            | Cause::CredentialsUnavailable
            | Cause::NotConnected
            | Cause::WrongHost
            | Cause::NotSent => return false,
        };
        let code = self.code();
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

    fn may_pass(&self) -> bool {
        match self.cause {
            Cause::Responded(status) => status >= 500 || status == 429 || status == 408,
            Cause::TimedOut | Cause::Disconnected | Cause::Unreadable => true,
            Cause::CredentialsUnavailable | Cause::NotConnected => true,
            Cause::OperationFailed(_)
            | Cause::NoCredentials
            | Cause::WrongHost
            | Cause::NotSent => false,
        }
    }
}

/// What is short, as far as a refusal says.
fn offering(context: &ErrorContext<'_>, short: Short) -> Scope {
    let Some(config) = context.config else {
        return context.zone.cloned().map_or(Scope::Region, Scope::zone);
    };
    let zone = context.zone.cloned();
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
fn quota(context: &ErrorContext<'_>, limit: Limit) -> Scope {
    let instance_type = context.config.map(|config| config.instance_type.clone());
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
    use fleetwright::{
        Call, Effect, ErrorKind, InstanceConfig, NetworkId, Operation, RetryAdvice, Zone,
    };

    fn failed(cause: Cause, code: &str, message: &str) -> Failure {
        Failure::new(cause, message).with_code(code)
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
            let failure = failed(Cause::Responded(status), code, message);
            let error = failure.into_error(&launch(), ErrorContext::default());
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
        let absent = |status, code| failed(Cause::Responded(status), code, "").is_not_found();
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
        let context = ErrorContext {
            config: Some(&config),
            zone: Some(&zone),
            network: Some(&network),
            ..ErrorContext::default()
        };
        let scope = |code: &str, message: &str| {
            let failure = failed(Cause::OperationFailed(None), code, message);
            failure.into_error(&launch(), context).scopes().to_vec()
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
                Cause::CredentialsUnavailable,
                ErrorKind::Unavailable,
                Effect::None,
            ),
            (Cause::NotConnected, ErrorKind::Unavailable, Effect::None),
            (Cause::WrongHost, ErrorKind::Unexpected, Effect::None),
            (Cause::NotSent, ErrorKind::Unexpected, Effect::None),
            (
                Cause::OperationFailed(None),
                ErrorKind::Unexpected,
                Effect::Unknown,
            ),
        ];
        for (cause, kind, effect) in cases {
            let error = failed(cause, "", "x").into_error(&launch(), ErrorContext::default());
            assert_eq!((error.kind(), error.effect()), (kind, effect), "{cause:?}");
        }
    }

    #[test]
    fn throttling_keeps_the_time_that_is_asked_for() {
        let mut failure = failed(Cause::Responded(429), "TooManyRequests", "slow down");
        let retry = |failure: &Failure| {
            let error = failure
                .clone()
                .into_error(&launch(), ErrorContext::default());
            error.retry()
        };
        assert_eq!(retry(&failure), RetryAdvice::After(Azure::RETRY_DELAY));
        failure.retry_after = Some(Duration::from_secs(1200));
        assert_eq!(
            retry(&failure),
            RetryAdvice::After(Duration::from_secs(1200))
        );
    }
}
