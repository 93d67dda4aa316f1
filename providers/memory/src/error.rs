//! The native errors of the simulated cloud, and their mapping to [`ProvisionError`]. Pure.
//!
//! Every native error is a refusal: the call changed nothing. Errors with an unknown effect come
//! from the [wire](crate::wire) only.

use std::time::Duration;

use fleetwright::{
    Call, Effect, ImageId, InstanceId, InstanceType, InvalidValue, LaunchToken, Market,
    ProvisionError, RetryAdvice, Scope, Zone,
};

use crate::state::{NativeState, normalize};

/// The reason why the cloud refused a call. A refused call changed nothing.
#[derive(Clone, Debug)]
pub(crate) enum NativeError {
    /// A value is invalid, or outside the catalog or the declared limits.
    Invalid(InvalidValue),
    /// No record of the instance is visible.
    NoSuchInstance(InstanceId),
    /// The call is not possible in this state; `needed` names the states in which it is.
    WrongState {
        id: InstanceId,
        state: NativeState,
        needed: &'static str,
    },
    /// A transition has to finish first.
    Busy { id: InstanceId, after: Duration },
    /// The token was used with another config.
    TokenMismatch(LaunchToken),
    /// The instances of the token are terminating or terminated.
    TokenSpent(LaunchToken),
    /// The name belongs to a snapshot of another instance.
    NameTaken { name: String },
    /// No snapshot created the image, so it cannot be deleted.
    NotASnapshot(ImageId),
    /// No machine of the offering is free.
    NoCapacity {
        instance_type: InstanceType,
        zone: Zone,
        market: Market,
    },
    /// No machine is free at all; only injected by a fault.
    NoCapacityAnywhere,
    /// The quota of the account is reached.
    QuotaExceeded {
        used: u64,
        requested: u64,
        limit: u64,
    },
    /// The address pool is exhausted.
    NoAddressLeft,
    /// Too many calls; the next one is possible after this time.
    Throttled(Duration),
    /// The credentials have expired; only injected by a fault.
    BadCredentials,
    /// The credentials do not allow the call; only injected by a fault.
    AccessDenied,
    /// Another change has to end first; only injected by a fault.
    ChangeInProgress,
    /// The call is not possible for this instance; only injected by a fault.
    Unsupported,
    /// The zone is unreachable.
    ZoneDown(Zone),
}

impl NativeError {
    /// Returns the cloud's error code, which callers see as the native code.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "InvalidParameter",
            Self::NoSuchInstance(_) => "InstanceNotFound",
            Self::WrongState { .. } => "IncorrectState",
            Self::Busy { .. } => "InstanceBusy",
            Self::TokenMismatch(_) => "TokenMismatch",
            Self::TokenSpent(_) => "TokenSpent",
            Self::NameTaken { .. } => "NameTaken",
            Self::NotASnapshot(_) => "NotASnapshot",
            Self::NoCapacity { .. } | Self::NoCapacityAnywhere => "InsufficientCapacity",
            Self::QuotaExceeded { .. } => "QuotaExceeded",
            Self::NoAddressLeft => "AddressesExhausted",
            Self::Throttled(_) => "Throttling",
            Self::BadCredentials => "BadCredentials",
            Self::AccessDenied => "AccessDenied",
            Self::ChangeInProgress => "ChangeInProgress",
            Self::Unsupported => "UnsupportedOperation",
            Self::ZoneDown(_) => "ZoneUnavailable",
        }
    }

    /// Converts to the error of the core. "Not found" advises no retry: a handle waits for its own
    /// launches to show before it returns that error.
    pub(crate) fn into_error(self, call: &Call) -> ProvisionError {
        let code = self.code();
        let error = match self {
            Self::Invalid(value) => call.invalid(value),
            Self::NoSuchInstance(id) => call.not_found(&id),
            Self::WrongState { id, state, needed } => {
                call.wrong_state(&id, normalize(state.as_str()), needed)
            }
            Self::Busy { id, after } => {
                let message = format!("instance {id} is still stopping; retry when it is stopped");
                call.conflict(&message, RetryAdvice::After(after))
                    .with_scope(Scope::Instance(id))
            }
            Self::TokenMismatch(token) => call.token_conflict(&token),
            Self::TokenSpent(token) => call.token_spent(&token),
            Self::NameTaken { name } => {
                let message = format!(
                    "the image name {name} belongs to a snapshot of another instance; \
                     choose another name"
                );
                call.conflict(&message, RetryAdvice::Never)
            }
            Self::NotASnapshot(image) => {
                let message = format!(
                    "no snapshot of an instance created the image {image}, so it is not deleted; \
                     check the id"
                );
                call.conflict(&message, RetryAdvice::Never)
            }
            Self::NoCapacity {
                instance_type,
                zone,
                market,
            } => {
                let message = "no capacity for this instance type, zone and market; \
                               try another offering, or retry later";
                let (instance_type, zone, market) = (Some(instance_type), Some(zone), Some(market));
                call.capacity(
                    Scope::Offering {
                        instance_type,
                        zone,
                        market,
                    },
                    message,
                )
            }
            Self::NoCapacityAnywhere => {
                call.capacity(Scope::Region, "no capacity in the region; retry later")
            }
            Self::QuotaExceeded {
                used,
                requested,
                limit,
            } => {
                let message = format!(
                    "{used} of {limit} instances are in use and {requested} more were requested; \
                     terminate some or raise the quota"
                );
                call.quota(Scope::Account, &message)
            }
            Self::NoAddressLeft => call.quota(
                Scope::Region,
                "all addresses are in use; terminate instances to free some",
            ),
            Self::Throttled(delay) => call.throttled(delay),
            Self::BadCredentials => {
                call.unauthenticated("the credentials have expired; renew them")
            }
            Self::AccessDenied => call.forbidden("the credentials do not allow this call"),
            Self::ChangeInProgress => {
                let message = "another change is in progress; retry when it is over";
                call.conflict(message, RetryAdvice::After(Duration::from_secs(1)))
            }
            Self::Unsupported => {
                call.unsupported_because("the cloud does not offer this call for the instance")
            }
            Self::ZoneDown(zone) => {
                let message = "the zone is unreachable; try another zone, or retry later";
                call.unavailable(Effect::None, message)
                    .with_scope(Scope::zone(zone))
            }
        };
        error.with_native_code(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright::{ErrorKind, Operation, Problem};

    #[test]
    fn every_native_error_maps_to_its_kind_without_effect() {
        let id = InstanceId::new("i-1").unwrap();
        let token = LaunchToken::new("t").unwrap();
        let (zone, instance_type) = (Zone::new("a").unwrap(), InstanceType::new("s").unwrap());
        let second = Duration::from_secs(1);
        let cases = [
            (
                NativeError::Invalid(InvalidValue::new("x", Problem::Empty)),
                ErrorKind::Invalid,
            ),
            (NativeError::NoSuchInstance(id.clone()), ErrorKind::NotFound),
            (
                NativeError::WrongState {
                    id: id.clone(),
                    state: NativeState::Active,
                    needed: "stopped",
                },
                ErrorKind::WrongState,
            ),
            (NativeError::Busy { id, after: second }, ErrorKind::Conflict),
            (
                NativeError::TokenMismatch(token.clone()),
                ErrorKind::TokenConflict,
            ),
            (NativeError::TokenSpent(token), ErrorKind::TokenSpent),
            (
                NativeError::NameTaken { name: "n".into() },
                ErrorKind::Conflict,
            ),
            (
                NativeError::NotASnapshot(ImageId::new("x").unwrap()),
                ErrorKind::Conflict,
            ),
            (
                NativeError::NoCapacity {
                    instance_type,
                    zone: zone.clone(),
                    market: Market::Spot,
                },
                ErrorKind::Capacity,
            ),
            (NativeError::NoCapacityAnywhere, ErrorKind::Capacity),
            (
                NativeError::QuotaExceeded {
                    used: 4,
                    requested: 2,
                    limit: 5,
                },
                ErrorKind::Quota,
            ),
            (NativeError::NoAddressLeft, ErrorKind::Quota),
            (NativeError::Throttled(second), ErrorKind::Throttled),
            (NativeError::BadCredentials, ErrorKind::Unauthenticated),
            (NativeError::AccessDenied, ErrorKind::Forbidden),
            (NativeError::ZoneDown(zone), ErrorKind::Unavailable),
        ];
        let call = Call::new("memory", Operation::LaunchInstance);
        for (error, kind) in cases {
            let code = error.code();
            let error = error.into_error(&call);
            assert_eq!(
                (error.kind(), error.effect()),
                (kind, Effect::None),
                "{error}"
            );
            assert_eq!(error.native_code(), Some(code));
        }
    }
}
