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
        let code = self.code().to_ascii_uppercase();
        let of_operations = code.contains("OPERATION") || code.contains("CONCURRENT");
        matches!(self.cause, Cause::Responded(403 | 429)) && self.is_throttled() && !of_operations
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
mod tests;
