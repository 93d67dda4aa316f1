//! What is in the way of an instance, in words for its tenant: what was waited for, and what was not granted.

use fleetwright_region::{
    network::RecordError,
    server::{DependencyError, Plan, ServerError},
};

use super::{Obstacle, Wait, words};
use crate::{instance::ConditionKind, lost::lost};

/// What a wish that was not granted comes to.
pub(super) enum Trouble {
    /// It is shown.
    Shown(Obstacle),
    /// The world has moved on: everything is read again.
    Stale,
    /// The pass has failed and is made again later.
    Failed(ServerError),
}

/// What is in the way while something is waited for.
pub(super) fn obstacle(wait: Wait) -> Option<Obstacle> {
    match wait {
        Wait::Server | Wait::End => None,
        Wait::Going => Some(Obstacle::new(
            ConditionKind::ServerGoing,
            "its server is being deleted, and its disk and addresses with it, by an operator: wait until it is gone, then ask for a replacement",
        )),
        Wait::Missing => Some(Obstacle::new(
            ConditionKind::ServerMissing,
            "its server is gone, and its disk and addresses with it, by nobody's word here: ask for a replacement, or delete it",
        )),
        Wait::Taken => Some(Obstacle::new(
            ConditionKind::ServerTaken,
            "the server of its id is another owner's or in another place: an operator has to see to it, or delete it",
        )),
    }
}

/// Whether what is in the way may end without the instance or its server being written.
pub(super) fn is_asked_again(kind: ConditionKind) -> bool {
    match kind {
        ConditionKind::Refused | ConditionKind::ServerTaken => true,
        ConditionKind::NoCapacity
        | ConditionKind::AccountLimit
        | ConditionKind::CloudError
        | ConditionKind::AttemptsExhausted
        | ConditionKind::Lost
        | ConditionKind::NextLaunch
        | ConditionKind::Unsupported
        | ConditionKind::ConsentNeeded
        | ConditionKind::ServerMissing
        | ConditionKind::ServerGoing
        | ConditionKind::NetworkGoing => false,
    }
}

/// What an error of a wish comes to.
pub(super) fn trouble(error: ServerError) -> Trouble {
    let refused = |words: String| Obstacle::new(ConditionKind::Refused, words);
    let obstacle = match &error {
        ServerError::NotFound(_) | ServerError::NoServerOwnedBy(_) | ServerError::Deleting(_) => {
            return Trouble::Stale;
        }
        ServerError::Taken { reason, .. } => Obstacle::new(
            ConditionKind::ServerTaken,
            format!("its server cannot be made: {reason}; an operator has to see to it"),
        ),
        ServerError::NeedsConsent { plan, .. } => consent_needed(plan),
        ServerError::Dependency(ground) if !passes(ground) => refused(ground.to_string()),
        ServerError::UserDataTooLarge { actual, .. } => refused(format!(
            "user data of {actual} bytes is too large: ask for less"
        )),
        ServerError::UserData { source, .. } => refused(source.to_string()),
        ServerError::TooManySecurityGroups { actual, .. } => refused(format!(
            "{actual} security groups are too many: put their rules into fewer"
        )),
        ServerError::Refused(source) => refused(format!(
            "this service is not permitted: {source}; an operator has to see to it"
        )),
        ServerError::NoRegion(region) => refused(format!(
            "region {region} is not served now: an operator has to see to it"
        )),
        ServerError::NotReady { .. } => refused(error.to_string()),
        ServerError::Dependency(_)
        | ServerError::Key { .. }
        | ServerError::Busy(_)
        | ServerError::Store(_) => return Trouble::Failed(error),
        _ => return Trouble::Failed(error),
    };
    Trouble::Shown(obstacle)
}

/// Whether what is in the way of a server's ground passes without anybody's word.
fn passes(ground: &DependencyError) -> bool {
    use RecordError::{Busy, EntropyError, Store};
    matches!(
        ground,
        DependencyError::Record(Store(_) | Busy { .. } | EntropyError(_))
    )
}

/// Its machine came up after this was asked for, and now something would be lost by it.
fn consent_needed(plan: &Plan) -> Obstacle {
    let lost = lost(plan).unwrap_or_else(|| words::ALL_LOST.to_owned());
    let changes = words::changes(plan);
    let words = format!(
        "its machine came up before this could be done without loss ({changes}): {lost}; consent to it, or ask for what it has"
    );
    Obstacle::new(ConditionKind::ConsentNeeded, words)
}
