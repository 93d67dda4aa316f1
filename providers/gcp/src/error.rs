//! Compute Engine's failures. Pure.
//!
//! Owns which failures the provider handles itself. A failed operation has undone what it began, so
//! its error has no effect. [`crate::reason`] owns the meaning of codes, [`crate::scope`] what an error
//! is about.

use std::time::Duration;

use chrono::{DateTime, Utc};
pub(crate) use fleetwright_provider_support::{Cause, ErrorContext};
use fleetwright_provider_support::{Class, Service};

use crate::{
    reason::{Kind, field_of, kind_of, missing, names_policy},
    scope,
};

/// The path of metadata in a message that names a field.
const METADATA: &str = "metadata.items";

/// A call to Compute Engine that failed.
pub(crate) type Failure = fleetwright_provider_support::Failure<ComputeEngine>;

/// The service, for the shared failure type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ComputeEngine {}

impl Service for ComputeEngine {
    const NAME: &'static str = "Compute Engine";
    /// For limits of concurrent operations and for conflicts. A rate quota has its own delay.
    const RETRY_DELAY: Duration = Duration::from_secs(5);
    const UNDOES_FAILED_OPERATIONS: bool = true;

    /// A rate quota is full again at the next full minute of the cloud's clock.
    fn retry_delay(failure: &Failure) -> Duration {
        if failure.is_rate_limited() {
            return until_refill(failure.server_time);
        }
        Self::RETRY_DELAY
    }

    fn classify(failure: &Failure, context: &ErrorContext<'_>) -> Class {
        let (status, message) = (failure.status().unwrap_or_default(), failure.safe_message());
        match kind_of(failure.code(), status, message) {
            Kind::NotFound if context.instance.is_some() => Class::NotFound,
            Kind::NotFound => Class::Invalid(missing(message)),
            Kind::Capacity => Class::Capacity(scope::offering(context)),
            Kind::NoAddress => Class::Capacity(scope::network(context)),
            Kind::Quota => Class::Quota(scope::quota(context, message)),
            Kind::Throttled => Class::Throttled,
            Kind::Unauthenticated => Class::Unauthenticated,
            Kind::Forbidden => Class::Forbidden,
            Kind::Conflict => Class::Conflict,
            Kind::Invalid => Class::Invalid(field_of(message)),
            Kind::Other => Class::Other,
        }
    }

    /// Cuts off metadata that a message quotes: that is the caller's user data.
    ///
    /// Only messages about the field `metadata.items` quote it.
    fn safe_message(message: &str) -> &str {
        let quoted = message.find(METADATA).and_then(|at| {
            let rest = &message[at..];
            rest.find('\'').map(|end| &message[..at + end])
        });
        quoted.unwrap_or(message)
    }
}

/// What the provider needs to know about a failure, beyond the shared error.
pub(crate) trait GcpFailure {
    /// Whether the resource of the call does not exist.
    fn is_not_found(&self) -> bool;

    /// Whether another resource has the name.
    /// Compute Engine reports it in the response or later in the operation.
    fn is_taken(&self) -> bool;

    /// Whether another actor changed the resource since it was read.
    /// Labels and metadata are replaced by fingerprint, which detects it.
    fn is_stale(&self) -> bool;

    /// Whether a stop was refused because it would discard local SSDs.
    fn is_about_local_ssds(&self) -> bool;

    /// Whether the call may have been refused because of the state of the instance.
    /// A read then explains the refusal.
    fn may_be_about_state(&self) -> bool;

    /// Whether the service failed, or a zone of it did not respond.
    fn is_unavailable(&self) -> bool;

    /// Whether the call was refused because of too many calls or operations.
    fn is_throttled(&self) -> bool;

    /// Whether the call was refused because a rate quota is used up, which is full again at the next
    /// full minute. Other limits, such as that of concurrent operations, have no such time.
    fn is_rate_limited(&self) -> bool;

    /// Whether a repetition of the same call can succeed soon.
    fn may_pass(&self) -> bool;
}

impl GcpFailure for Failure {
    fn is_not_found(&self) -> bool {
        self.cause == Cause::Responded(404)
    }

    fn is_taken(&self) -> bool {
        let code = self.code();
        self.cause == Cause::Responded(409)
            && matches!(code, "" | "alreadyExists" | "ALREADY_EXISTS" | "conflict")
            || matches!(code, "RESOURCE_ALREADY_EXISTS")
    }

    fn is_stale(&self) -> bool {
        self.status() == Some(412) && !names_policy(&self.message)
    }

    fn is_about_local_ssds(&self) -> bool {
        matches!(self.cause, Cause::Responded(400)) && self.message.contains("Local SSD")
    }

    fn may_be_about_state(&self) -> bool {
        let Some(status) = self.status() else {
            return false;
        };
        let code = self.code();
        match kind_of(code, status, &self.message) {
            Kind::Conflict | Kind::Invalid => true,
            Kind::Other => status < 500,
            // The instance may have been deleted since the call was accepted.
            Kind::NotFound => matches!(self.cause, Cause::OperationFailed(_)),
            Kind::Capacity
            | Kind::NoAddress
            | Kind::Quota
            | Kind::Throttled
            | Kind::Unauthenticated
            | Kind::Forbidden => false,
        }
    }

    fn is_unavailable(&self) -> bool {
        matches!(self.cause, Cause::Responded(500..=599))
    }

    fn is_throttled(&self) -> bool {
        let status = self.status();
        status.is_some_and(|status| kind_of(self.code(), status, &self.message) == Kind::Throttled)
    }

    fn is_rate_limited(&self) -> bool {
        let by_code = matches!(
            self.code(),
            "rateLimitExceeded" | "userRateLimitExceeded" | "RATE_LIMIT_EXCEEDED"
        );
        matches!(self.cause, Cause::Responded(403 | 429)) && by_code
            || self.cause == Cause::Responded(429) && self.code().is_empty()
    }

    fn may_pass(&self) -> bool {
        self.is_transient(|status| status >= 500 || self.is_throttled())
    }
}

/// Returns how long it takes until Compute Engine refills its rate quotas: until the next full minute
/// on its clock, or a minute if that is unknown.
fn until_refill(server_time: Option<DateTime<Utc>>) -> Duration {
    let second = server_time.map_or(0, |now| now.timestamp().rem_euclid(60));
    Duration::from_secs(u64::try_from(60 - second).unwrap_or(60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::{
        Call, Effect, ErrorKind, InstanceConfig, Market, NetworkId, Operation, RetryAdvice, Scope,
        Zone,
    };
    use fleetwright_provider_testkit::errors::check_error_kinds;

    fn failed(cause: Cause, code: &str, message: &str) -> Failure {
        Failure::new(cause, message).with_code(code)
    }

    fn launch() -> Call {
        Call::new("gcp", Operation::LaunchInstance)
    }

    #[test]
    fn code_decides_before_status() {
        let cases = [
            (403, "quotaExceeded", "", ErrorKind::Quota),
            (403, "rateLimitExceeded", "", ErrorKind::Throttled),
            (403, "forbidden", "", ErrorKind::Forbidden),
            (403, "", "", ErrorKind::Forbidden),
            (401, "authError", "", ErrorKind::Unauthenticated),
            (401, "", "", ErrorKind::Unauthenticated),
            (429, "", "", ErrorKind::Throttled),
            (400, "resourceNotReady", "", ErrorKind::Conflict),
            (
                400,
                "invalid",
                "Invalid value for field",
                ErrorKind::Invalid,
            ),
            (
                400,
                "invalid",
                "Machine type x does not exist in zone y",
                ErrorKind::Capacity,
            ),
            (
                404,
                "notFound",
                "'projects/p/global/images/x' was not found",
                ErrorKind::Invalid,
            ),
            (412, "conditionNotMet", "", ErrorKind::Conflict),
            (500, "backendError", "", ErrorKind::Unavailable),
            (503, "", "", ErrorKind::Unavailable),
            (418, "teapot", "", ErrorKind::Unexpected),
        ];
        check_error_kinds::<ComputeEngine>(&launch(), ErrorContext::default(), &cases);
    }

    #[test]
    fn failed_operation_has_no_effect() {
        let cases = [
            ("ZONE_RESOURCE_POOL_EXHAUSTED", "", ErrorKind::Capacity),
            (
                "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
                "",
                ErrorKind::Capacity,
            ),
            ("VM_MIN_COUNT_NOT_REACHED", "", ErrorKind::Capacity),
            (
                "UNSUPPORTED_OPERATION",
                "Instance was preempted",
                ErrorKind::Capacity,
            ),
            (
                "UNSUPPORTED_OPERATION",
                "no such thing",
                ErrorKind::Unexpected,
            ),
            ("IP_SPACE_EXHAUSTED", "", ErrorKind::Capacity),
            ("QUOTA_EXCEEDED", "", ErrorKind::Quota),
            ("RESOURCE_OPERATION_RATE_EXCEEDED", "", ErrorKind::Throttled),
            ("PERMISSIONS_ERROR", "", ErrorKind::Forbidden),
            ("RESOURCE_NOT_READY", "", ErrorKind::Conflict),
            ("INTERNAL_ERROR", "", ErrorKind::Unavailable),
        ];
        for (code, message, kind) in cases {
            let status = if code == "INTERNAL_ERROR" { 503 } else { 400 };
            let failure = failed(Cause::OperationFailed(Some(status)), code, message);
            let error = failure.into_error(&launch(), ErrorContext::default());
            assert_eq!(error.kind(), kind, "{code}: {error}");
            assert_eq!(error.effect(), Effect::None, "{code}: {error}");
            assert_eq!(error.native_code(), Some(code));
        }
    }

    #[test]
    fn not_found_in_an_operation_may_be_about_state() {
        for (cause, about_state) in [
            (Cause::OperationFailed(Some(404)), true),
            (Cause::OperationFailed(Some(400)), true),
            (Cause::Responded(404), false),
        ] {
            let failure = failed(cause, "RESOURCE_NOT_FOUND", "");
            assert_eq!(failure.may_be_about_state(), about_state, "{cause:?}");
        }
    }

    #[test]
    fn capacity_error_names_the_offering() {
        let config = InstanceConfig::builder("debian", "n2-standard-4")
            .build()
            .unwrap();
        let (zone, network) = (
            Zone::new("us-central1-a").unwrap(),
            NetworkId::new("fleet").unwrap(),
        );
        let context = ErrorContext {
            config: Some(&config),
            zone: Some(&zone),
            network: Some(&network),
            ..ErrorContext::default()
        };
        let later = Cause::OperationFailed(Some(503));
        let error =
            failed(later, "ZONE_RESOURCE_POOL_EXHAUSTED", "").into_error(&launch(), context);
        let offering = Scope::Offering {
            instance_type: Some(config.instance_type.clone()),
            zone: Some(zone.clone()),
            market: Some(Market::OnDemand),
        };
        assert_eq!(error.scopes(), [offering]);
        let error = failed(later, "IP_SPACE_EXHAUSTED", "").into_error(&launch(), context);
        assert_eq!(error.scopes(), [Scope::Network(network.clone())]);
    }

    #[test]
    fn throttling_keeps_the_retry_delay() {
        let mut failure = failed(Cause::Responded(403), "rateLimitExceeded", "slow down");
        let retry = |failure: &Failure| {
            let error = failure
                .clone()
                .into_error(&launch(), ErrorContext::default());
            error.retry()
        };
        for (now, seconds) in [
            (Some("2026-11-16T10:00:15Z"), 45),
            (Some("2026-11-16T10:00:59Z"), 1),
            (Some("2026-11-16T10:01:00Z"), 60),
            (None, 60),
        ] {
            failure.server_time = now.and_then(|now: &str| now.parse().ok());
            let delay = Duration::from_secs(seconds);
            assert_eq!(retry(&failure), RetryAdvice::After(delay), "{now:?}");
        }
        failure.retry_after = Some(Duration::from_secs(7));
        assert_eq!(retry(&failure), RetryAdvice::After(Duration::from_secs(7)));
    }

    #[test]
    fn only_a_rate_quota_is_refilled_each_minute() {
        for (cause, code, limited) in [
            (Cause::Responded(403), "rateLimitExceeded", true),
            (Cause::Responded(429), "RATE_LIMIT_EXCEEDED", true),
            (Cause::Responded(429), "", true),
            (
                Cause::Responded(403),
                "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED",
                false,
            ),
            (Cause::Responded(403), "quotaExceeded", false),
            (Cause::Responded(403), "", false),
            (
                Cause::OperationFailed(Some(403)),
                "rateLimitExceeded",
                false,
            ),
        ] {
            let failure = failed(cause, code, "");
            assert_eq!(failure.is_rate_limited(), limited, "{cause:?} {code}");
        }
    }
}
