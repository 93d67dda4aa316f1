//! The native refusals of the simulated cloud, and the shared error each becomes. Pure.

use std::time::Duration;

use fleetwright::{
    Call, Effect, InstanceId, InstanceType, InvalidValue, LaunchToken, Market, ProvisionError,
    RetryAdvice, Scope, Zone,
};

use crate::state::{NativeState, normalize};

/// Why the cloud refused a call. A refused call changed nothing.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    Invalid(InvalidValue),
    NoSuchInstance(InstanceId),
    WrongState {
        id: InstanceId,
        state: NativeState,
        needed: &'static str,
    },
    Busy {
        id: InstanceId,
        after: Duration,
    },
    TokenMismatch(LaunchToken),
    TokenSpent(LaunchToken),
    NameTaken {
        name: String,
    },
    NoCapacity {
        instance_type: InstanceType,
        zone: Zone,
        market: Market,
    },
    NoCapacityAnywhere,
    QuotaExceeded {
        used: u64,
        asked: u64,
        limit: u64,
    },
    NoAddressLeft,
    Throttled(Duration),
    BadCredentials,
    AccessDenied,
    ZoneDown(Zone),
}

impl Refusal {
    /// The cloud's code for it.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "InvalidParameter",
            Self::NoSuchInstance(_) => "InstanceNotFound",
            Self::WrongState { .. } => "IncorrectState",
            Self::Busy { .. } => "InstanceBusy",
            Self::TokenMismatch(_) => "TokenMismatch",
            Self::TokenSpent(_) => "TokenSpent",
            Self::NameTaken { .. } => "NameTaken",
            Self::NoCapacity { .. } | Self::NoCapacityAnywhere => "InsufficientCapacity",
            Self::QuotaExceeded { .. } => "QuotaExceeded",
            Self::NoAddressLeft => "AddressesExhausted",
            Self::Throttled(_) => "Throttling",
            Self::BadCredentials => "BadCredentials",
            Self::AccessDenied => "AccessDenied",
            Self::ZoneDown(_) => "ZoneUnavailable",
        }
    }

    /// The shared error. `window` is how long "not found" proves nothing.
    pub(crate) fn into_error(self, call: &Call, window: Duration) -> ProvisionError {
        let code = self.code();
        let error = match self {
            Self::Invalid(value) => call.invalid(value),
            Self::NoSuchInstance(id) if window.is_zero() => call.not_found(&id),
            Self::NoSuchInstance(id) => call.not_found(&id).retry_after(window),
            Self::WrongState { id, state, needed } => {
                call.wrong_state(&id, normalize(state.word()), needed)
            }
            Self::Busy { id, after } => {
                let message = format!("instance {id} is still stopping; try again when it has");
                call.conflict(&message, RetryAdvice::After(after))
                    .with_scope(Scope::Instance(id))
            }
            Self::TokenMismatch(token) => call.token_conflict(&token),
            Self::TokenSpent(token) => call.token_spent(&token),
            Self::NameTaken { name } => {
                let message = format!("another image is named {name}; choose another name");
                call.conflict(&message, RetryAdvice::Never)
            }
            Self::NoCapacity {
                instance_type,
                zone,
                market,
            } => {
                let message = "no machine of this kind is free there; try another or later";
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
                call.capacity(Scope::Region, "no machine is free; try later")
            }
            Self::QuotaExceeded { used, asked, limit } => {
                let message = format!(
                    "{used} of {limit} instances are in use and {asked} more were asked for; \
                     terminate some or raise the quota"
                );
                call.quota(Scope::Account, &message)
            }
            Self::NoAddressLeft => call.quota(
                Scope::Region,
                "every address is in use; terminate something",
            ),
            Self::Throttled(delay) => call.throttled(delay),
            Self::BadCredentials => call.unauthenticated("the credentials expired; renew them"),
            Self::AccessDenied => call.forbidden("these credentials do not allow the call"),
            Self::ZoneDown(zone) => {
                let message = "the zone cannot be reached; try another or later";
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
    fn every_refusal_has_its_kind_and_changes_nothing() {
        let id = InstanceId::new("i-1").unwrap();
        let token = LaunchToken::new("t").unwrap();
        let (zone, instance_type) = (Zone::new("a").unwrap(), InstanceType::new("s").unwrap());
        let second = Duration::from_secs(1);
        let cases = [
            (
                Refusal::Invalid(InvalidValue::new("x", Problem::Empty)),
                ErrorKind::Invalid,
            ),
            (Refusal::NoSuchInstance(id.clone()), ErrorKind::NotFound),
            (
                Refusal::WrongState {
                    id: id.clone(),
                    state: NativeState::Active,
                    needed: "stopped",
                },
                ErrorKind::WrongState,
            ),
            (Refusal::Busy { id, after: second }, ErrorKind::Conflict),
            (
                Refusal::TokenMismatch(token.clone()),
                ErrorKind::TokenConflict,
            ),
            (Refusal::TokenSpent(token), ErrorKind::TokenSpent),
            (Refusal::NameTaken { name: "n".into() }, ErrorKind::Conflict),
            (
                Refusal::NoCapacity {
                    instance_type,
                    zone: zone.clone(),
                    market: Market::Spot,
                },
                ErrorKind::Capacity,
            ),
            (Refusal::NoCapacityAnywhere, ErrorKind::Capacity),
            (
                Refusal::QuotaExceeded {
                    used: 4,
                    asked: 2,
                    limit: 5,
                },
                ErrorKind::Quota,
            ),
            (Refusal::NoAddressLeft, ErrorKind::Quota),
            (Refusal::Throttled(second), ErrorKind::Throttled),
            (Refusal::BadCredentials, ErrorKind::Unauthenticated),
            (Refusal::AccessDenied, ErrorKind::Forbidden),
            (Refusal::ZoneDown(zone), ErrorKind::Unavailable),
        ];
        let call = Call::new("memory", Operation::LaunchInstance);
        for (refusal, kind) in cases {
            let code = refusal.code();
            let error = refusal.into_error(&call, Duration::ZERO);
            assert_eq!(
                (error.kind(), error.effect()),
                (kind, Effect::None),
                "{error}"
            );
            assert_eq!(error.native_code(), Some(code));
        }
    }

    #[test]
    fn not_found_asks_to_wait_out_the_window() {
        let id = InstanceId::new("i-1").unwrap();
        let call = Call::new("memory", Operation::DescribeInstance);
        let retry = |window| {
            Refusal::NoSuchInstance(id.clone())
                .into_error(&call, window)
                .retry()
        };
        assert_eq!(retry(Duration::ZERO), RetryAdvice::Never);
        assert_eq!(
            retry(Duration::from_secs(3)),
            RetryAdvice::After(Duration::from_secs(3))
        );
    }
}
