//! Translating the errors of a cloud for the caller. Pure.

use std::time::Duration;

use fleetwright::{ErrorKind, ProvisionError};
use fleetwright_identity::Verb;

use super::{MachineError, readiness::RETRY_AFTER};
use crate::server::Server;

/// The retry delay of an unavailable cloud that states none.
const UNAVAILABLE: Duration = Duration::from_secs(15);

/// Returns the error for the caller of a verb that failed at the cloud.
pub(super) fn translate_error(server: &Server, verb: Verb, error: ProvisionError) -> MachineError {
    let id = server.id;
    let requested = error.retry().delay().unwrap_or_default();
    let not_ready = |found, wanted| MachineError::NotReady {
        id,
        found,
        wanted,
        retry_after: requested.max(RETRY_AFTER),
    };
    match error.kind() {
        ErrorKind::NotFound => not_ready("not listed by its cloud", "listed"),
        ErrorKind::Conflict => not_ready("being changed", "unchanged"),
        ErrorKind::WrongState => not_ready("in another state than last observed", "observed again"),
        ErrorKind::Unsupported => MachineError::Unsupported {
            region: server.region.clone(),
            verb,
        },
        ErrorKind::Invalid | ErrorKind::TokenConflict | ErrorKind::TokenSpent => {
            MachineError::Declined {
                id,
                verb,
                source: error,
            }
        }
        ErrorKind::Capacity
        | ErrorKind::Quota
        | ErrorKind::Throttled
        | ErrorKind::Unauthenticated
        | ErrorKind::Forbidden
        | ErrorKind::Incomplete
        | ErrorKind::Timeout
        | ErrorKind::Unavailable
        | ErrorKind::Unexpected
        // All present kinds are named above. A future kind counts as unavailable.
        | _ => MachineError::Unavailable {
            id,
            verb,
            retry_after: if requested.is_zero() { UNAVAILABLE } else { requested },
            source: error,
        },
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};
    use fleetwright::{
        Call, CloudInstanceState, Effect, InstanceId, InvalidValue, LaunchToken, Operation,
        Problem, RetryAdvice, Scope,
    };
    use uuid::Uuid;

    use super::*;
    use crate::{
        ids::{FlavorId, ImageId, NetworkId, RegionId},
        server::{NewServer, Owner, ServerId, ServerSpec, new_record},
        testing::{organization, project},
    };

    fn server() -> Server {
        let id = ServerId::from_uuid(Uuid::from_u128(7));
        let network = NetworkId::from_uuid(Uuid::from_u128(8));
        let flavor = FlavorId::new("small").unwrap();
        let spec = ServerSpec::new(flavor, ImageId::new("linux").unwrap(), network);
        let tenant = (organization(1), project(1));
        let region = RegionId::new("north").unwrap();
        let owner = Owner::new("instance", "web");
        let new = NewServer::new(id, owner, region, tenant, spec);
        new_record(&new, DateTime::<Utc>::UNIX_EPOCH)
    }

    /// An error of each kind, as a backend makes it.
    fn error(kind: ErrorKind) -> ProvisionError {
        let call = Call::new("test", Operation::ConsoleOutput);
        let id = InstanceId::new("i-1").unwrap();
        let token = LaunchToken::from(Uuid::from_u128(1));
        let state = CloudInstanceState::Stopped;
        match kind {
            ErrorKind::Invalid => call.invalid(InvalidValue::new("it", Problem::Empty)),
            ErrorKind::NotFound => call.not_found(&id),
            ErrorKind::Conflict => call.conflict("busy", RetryAdvice::SameToken),
            ErrorKind::WrongState => call.wrong_state(&id, state, "running"),
            ErrorKind::TokenConflict => call.token_conflict(&token),
            ErrorKind::TokenSpent => call.token_spent(&token),
            ErrorKind::Capacity => call.capacity(Scope::Region, "full"),
            ErrorKind::Quota => call.quota(Scope::Account, "full"),
            ErrorKind::Throttled => call.throttled(Duration::from_secs(99)),
            ErrorKind::Unauthenticated => call.unauthenticated("who"),
            ErrorKind::Forbidden => call.forbidden("no"),
            ErrorKind::Unsupported => call.unsupported(),
            ErrorKind::Incomplete => call.incomplete([Scope::Region]),
            ErrorKind::Timeout => call.timeout(Effect::None),
            ErrorKind::Unavailable => call.unavailable(Effect::None, "down"),
            ErrorKind::Unexpected => call.unexpected(Effect::None, "what"),
            other => unreachable!("{other} is new: add its translation here"),
        }
    }

    #[test]
    fn every_error_kind_maps_to_an_actionable_error() {
        let waits = [
            ErrorKind::NotFound,
            ErrorKind::Conflict,
            ErrorKind::WrongState,
        ];
        let finals = [
            ErrorKind::Invalid,
            ErrorKind::TokenConflict,
            ErrorKind::TokenSpent,
        ];
        for kind in ErrorKind::ALL {
            let translated = translate_error(&server(), Verb::ConsoleOutput, error(kind));
            let (sort, seconds) = if waits.contains(&kind) {
                ("not-ready", Some(5))
            } else if finals.contains(&kind) {
                ("declined", None)
            } else if kind == ErrorKind::Unsupported {
                ("unsupported", None)
            } else if kind == ErrorKind::Throttled {
                ("unavailable", Some(99))
            } else {
                ("unavailable", Some(15))
            };
            assert_eq!(translated.outcome(), sort, "{kind}");
            assert_eq!(
                translated.retry_after(),
                seconds.map(Duration::from_secs),
                "{kind}"
            );
        }
    }
}
