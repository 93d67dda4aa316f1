//! Compute Engine's failures, and the shared error each becomes. Pure.
//!
//! Owns what a failure says of its effect: a refusal changed nothing, a breakdown may have changed
//! anything, an operation that failed has undone what it began. What its code means is `reason`'s.

use std::time::Duration;

use fleetwright::{
    Call, Effect, InstanceConfig, InstanceId, InvalidValue, Market, NetworkId, Problem,
    ProvisionError, RetryAdvice, Scope, Zone,
};

use crate::reason::{Kind, field_of, kind_of, missing};

/// How long to wait after throttling where nobody says; rates are counted by the minute, in slices.
const AFTER_THROTTLING: Duration = Duration::from_secs(5);

/// What the path of metadata has in it where a message names a field.
const METADATA: &str = "metadata.items";

/// A call that failed, as the client saw it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    /// The reason of a refusal, or the code in an operation.
    pub(crate) code: Option<String>,
    pub(crate) message: String,
    /// The name of the operation that failed.
    pub(crate) request_id: Option<String>,
    /// What the reply says about when to come back.
    pub(crate) retry_after: Option<Duration>,
}

/// How a call failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The service answered an error with this status.
    Answered(u16),
    /// It was accepted, and its operation failed with this status. What it began was undone.
    FailedLater(u16),
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

impl Failure {
    /// Whether there is nothing where the call looked.
    pub(crate) fn is_not_found(&self) -> bool {
        self.cause == Cause::Answered(404)
    }

    /// Whether the name is taken.
    pub(crate) fn is_taken(&self) -> bool {
        let code = self.code.as_deref().unwrap_or_default();
        self.cause == Cause::Answered(409)
            && matches!(code, "" | "alreadyExists" | "ALREADY_EXISTS" | "conflict")
            || matches!(code, "RESOURCE_ALREADY_EXISTS")
    }

    /// Whether somebody else changed the thing since it was read.
    pub(crate) fn is_stale(&self) -> bool {
        matches!(self.cause, Cause::Answered(412) | Cause::FailedLater(412))
    }

    /// Whether a stop was refused because it would lose local disks.
    pub(crate) fn is_about_local_ssds(&self) -> bool {
        matches!(self.cause, Cause::Answered(400)) && self.message.contains("Local SSD")
    }

    /// Whether the service refused because of what the thing is just now, as far as the answer tells.
    pub(crate) fn may_be_about_state(&self) -> bool {
        let (Cause::Answered(status) | Cause::FailedLater(status)) = self.cause else {
            return false;
        };
        let code = self.code.as_deref().unwrap_or_default();
        match kind_of(code, status, &self.message) {
            Kind::Conflict | Kind::Invalid => true,
            Kind::Other => status < 500,
            // What was there when it was accepted may have been deleted since.
            Kind::NotFound => matches!(self.cause, Cause::FailedLater(_)),
            Kind::Capacity
            | Kind::NoAddress
            | Kind::Quota
            | Kind::Throttled
            | Kind::Unauthenticated
            | Kind::Forbidden => false,
        }
    }

    /// Whether the service broke down or cannot be reached, as far as the answer tells.
    pub(crate) fn is_breakdown(&self) -> bool {
        matches!(self.cause, Cause::Answered(500..=599))
    }

    /// Whether the same call may have an answer in a moment.
    pub(crate) fn may_pass(&self) -> bool {
        match self.cause {
            Cause::Answered(status) => {
                let code = self.code.as_deref().unwrap_or_default();
                status >= 500 || kind_of(code, status, &self.message) == Kind::Throttled
            }
            Cause::TimedOut | Cause::Disconnected | Cause::Unreadable => true,
            Cause::NoCredentialsYet | Cause::NotConnected => true,
            Cause::FailedLater(_) | Cause::NoCredentials | Cause::NotSent => false,
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

    /// Compute Engine's words, but for metadata that it quotes: that is the caller's user data.
    pub(crate) fn told(&self) -> &str {
        let quoted = self.message.find(METADATA).and_then(|at| {
            let rest = &self.message[at..];
            rest.find('\'').map(|end| &self.message[..at + end])
        });
        quoted.unwrap_or(&self.message)
    }

    fn judged(&self, call: &Call, about: About<'_>) -> ProvisionError {
        let message = self.told();
        match self.cause {
            Cause::TimedOut => call.timeout(Effect::Unknown),
            Cause::Disconnected => call.unavailable(Effect::Unknown, message),
            Cause::Unreadable => call.unexpected(Effect::Unknown, message),
            Cause::NoCredentials => call.unauthenticated(message),
            Cause::NoCredentialsYet | Cause::NotConnected => {
                call.unavailable(Effect::None, message)
            }
            Cause::NotSent => call.unexpected(Effect::None, message),
            Cause::Answered(status) => self.of_code(call, about, status),
            Cause::FailedLater(status) => {
                // An operation that failed has undone what it began.
                self.of_code(call, about, status).with_effect(Effect::None)
            }
        }
    }

    fn of_code(&self, call: &Call, about: About<'_>, status: u16) -> ProvisionError {
        let message = self.told();
        let code = self.code.as_deref().unwrap_or_default();
        match (kind_of(code, status, message), about.id) {
            (Kind::NotFound, Some(id)) => call.not_found_yet(id, about.window),
            (Kind::NotFound, None) => self.refused(call, missing(message)),
            (Kind::Capacity, _) => call.capacity(offering(about), message),
            (Kind::NoAddress, _) => call.capacity(network(about), message),
            (Kind::Quota, _) => call.quota(Scope::Account, message),
            (Kind::Throttled, _) => call.throttled(self.retry_after.unwrap_or(AFTER_THROTTLING)),
            (Kind::Unauthenticated, _) => call.unauthenticated(message),
            (Kind::Forbidden, _) => call.forbidden(message),
            (Kind::Conflict, _) => {
                let retry = RetryAdvice::After(self.retry_after.unwrap_or(AFTER_THROTTLING));
                call.conflict(message, retry)
            }
            (Kind::Invalid, _) => self.refused(call, field_of(message)),
            (Kind::Other, _) => match status {
                500..=599 => call.unavailable(Effect::Unknown, message),
                400..=499 => call.unexpected(Effect::None, message),
                _ => call.unexpected(Effect::Unknown, message),
            },
        }
    }

    fn refused(&self, call: &Call, field: &'static str) -> ProvisionError {
        let instead = format!("Compute Engine says: {}", self.told());
        call.invalid(InvalidValue::new(field, Problem::NotOffered { instead }))
    }
}

fn offering(about: About<'_>) -> Scope {
    let zone = about.zone.cloned();
    let Some(config) = about.config else {
        return zone.map_or(Scope::Region, Scope::zone);
    };
    Scope::Offering {
        instance_type: Some(config.instance_type.clone()),
        zone: zone.or_else(|| config.placement.zone.clone()),
        market: Some(config.placement.market.unwrap_or(Market::OnDemand)),
    }
}

/// Addresses are of the subnetwork, whatever the type: another one of the same network has none either.
fn network(about: About<'_>) -> Scope {
    let network = about.network.cloned();
    network.map_or_else(|| offering(about), Scope::Network)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::{ErrorKind, Operation};

    fn failed(cause: Cause, code: &str, message: &str) -> Failure {
        Failure {
            cause,
            code: (!code.is_empty()).then(|| code.to_owned()),
            message: message.to_owned(),
            ..Failure::default()
        }
    }

    fn launch() -> Call {
        Call::new("gcp", Operation::LaunchInstance)
    }

    #[test]
    fn a_reason_decides_and_a_status_only_without_one() {
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
    fn an_operation_that_failed_left_nothing() {
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
            let failure = failed(Cause::FailedLater(status), code, message);
            let error = failure.into_error(&launch(), About::default());
            assert_eq!(error.kind(), kind, "{code}: {error}");
            assert_eq!(error.effect(), Effect::None, "{code}: {error}");
            assert_eq!(error.native_code(), Some(code));
        }
    }

    #[test]
    fn what_was_deleted_since_is_about_its_state_and_what_was_never_there_is_not() {
        for (cause, about_state) in [
            (Cause::FailedLater(404), true),
            (Cause::FailedLater(400), true),
            (Cause::Answered(404), false),
        ] {
            let failure = failed(cause, "RESOURCE_NOT_FOUND", "");
            assert_eq!(failure.may_be_about_state(), about_state, "{cause:?}");
        }
    }

    #[test]
    fn capacity_says_what_and_where() {
        let config = InstanceConfig::builder("debian", "n2-standard-4")
            .build()
            .unwrap();
        let (zone, network) = (
            Zone::new("us-central1-a").unwrap(),
            NetworkId::new("fleet").unwrap(),
        );
        let about = About {
            config: Some(&config),
            zone: Some(&zone),
            network: Some(&network),
            ..About::default()
        };
        let later = Cause::FailedLater(503);
        let error = failed(later, "ZONE_RESOURCE_POOL_EXHAUSTED", "").into_error(&launch(), about);
        let offering = Scope::Offering {
            instance_type: Some(config.instance_type.clone()),
            zone: Some(zone.clone()),
            market: Some(Market::OnDemand),
        };
        assert_eq!(error.scopes(), [offering]);
        let error = failed(later, "IP_SPACE_EXHAUSTED", "").into_error(&launch(), about);
        assert_eq!(error.scopes(), [Scope::Network(network.clone())]);
    }

    #[test]
    fn throttling_keeps_the_time_that_is_asked_for() {
        let mut failure = failed(Cause::Answered(403), "rateLimitExceeded", "slow down");
        let told = |failure: &Failure| {
            let error = failure.clone().into_error(&launch(), About::default());
            error.retry()
        };
        assert_eq!(told(&failure), RetryAdvice::After(AFTER_THROTTLING));
        failure.retry_after = Some(Duration::from_secs(7));
        assert_eq!(told(&failure), RetryAdvice::After(Duration::from_secs(7)));
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
            (Cause::NotSent, ErrorKind::Unexpected, Effect::None),
        ];
        for (cause, kind, effect) in cases {
            let error = failed(cause, "", "x").into_error(&launch(), About::default());
            assert_eq!((error.kind(), error.effect()), (kind, effect), "{cause:?}");
        }
    }
}
