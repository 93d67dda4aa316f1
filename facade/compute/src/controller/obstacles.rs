//! What prevents an instance's progress, as its tenant reads it: from what it waits for, and from failed calls of the region.

use fleetwright_region::{
    network::RecordError,
    server::{DependencyError, Plan, ServerError},
};

use super::{Obstacle, Wait, messages};
use crate::{instance::ConditionKind, loss::loss};

/// What follows from a failed call of the region.
pub(super) enum Failure {
    /// The tenant sees a condition.
    Reported(Obstacle),
    /// A record changed meanwhile: read everything again.
    Stale,
    /// The reconcile failed and is retried later.
    Retry(ServerError),
}

/// Returns the condition that is shown while an instance waits.
pub(super) fn obstacle(wait: Wait) -> Option<Obstacle> {
    match wait {
        Wait::Server | Wait::ServerDeletion => None,
        Wait::OperatorDeletion => Some(Obstacle::new(
            ConditionKind::ServerDeleting,
            "an operator is deleting the machine of this instance; its disk and addresses will be lost: wait until it is deleted, then replace the instance or delete it",
        )),
        Wait::ServerMissing => Some(Obstacle::new(
            ConditionKind::ServerMissing,
            "the machine of this instance was removed without its tenant's request; its disk and addresses are lost: replace the instance, or delete it",
        )),
        Wait::ServerConflict => Some(Obstacle::new(
            ConditionKind::ServerConflict,
            "the id of this instance is already in use: ask an operator to free it, or delete the instance",
        )),
    }
}

/// Whether a condition can end without a change of the instance or its server, so that the call has to be repeated.
pub(super) fn is_retried(kind: ConditionKind) -> bool {
    match kind {
        ConditionKind::Refused | ConditionKind::ServerConflict => true,
        ConditionKind::NoCapacity
        | ConditionKind::AccountLimit
        | ConditionKind::CloudError
        | ConditionKind::AttemptsExhausted
        | ConditionKind::Lost
        | ConditionKind::NextLaunch
        | ConditionKind::Unsupported
        | ConditionKind::ConsentNeeded
        | ConditionKind::ServerMissing
        | ConditionKind::ServerDeleting
        | ConditionKind::NetworkDeleting => false,
    }
}

/// Classifies a failed call of the region.
pub(super) fn classify(error: ServerError) -> Failure {
    let refused = |message: String| Obstacle::new(ConditionKind::Refused, message);
    let obstacle = match &error {
        ServerError::NotFound(_) | ServerError::NoServerOwnedBy(_) | ServerError::Deleting(_) => {
            return Failure::Stale;
        }
        ServerError::Taken { reason, .. } => Obstacle::new(
            ConditionKind::ServerConflict,
            format!("the server cannot be created: {reason}; ask an operator to resolve that"),
        ),
        ServerError::NeedsConsent { plan, .. } => consent_needed(plan),
        ServerError::Dependency(dependency) if !is_transient(dependency) => {
            refused(dependency.to_string())
        }
        ServerError::UserDataTooLarge { actual, .. } => refused(format!(
            "user data of {actual} bytes is too large: shorten it"
        )),
        ServerError::UserData { source, .. } => refused(source.to_string()),
        ServerError::TooManySecurityGroups { actual, .. } => refused(format!(
            "{actual} security groups are too many: merge their rules into fewer groups"
        )),
        ServerError::Refused(source) => refused(format!(
            "this service lacks a permission: {source}; ask an operator to grant it"
        )),
        ServerError::NoRegion(region) => refused(format!(
            "region {region} is not in service: ask an operator when it will be"
        )),
        ServerError::NotReady { found, wanted, .. } => {
            refused(format!("the instance is {found}: it must be {wanted}"))
        }
        ServerError::Dependency(_)
        | ServerError::Key { .. }
        | ServerError::Busy(_)
        | ServerError::Store(_) => return Failure::Retry(error),
        _ => return Failure::Retry(error),
    };
    Failure::Reported(obstacle)
}

/// Whether a failed check of dependencies can succeed when it is repeated.
fn is_transient(dependency: &DependencyError) -> bool {
    use RecordError::{Busy, Entropy, Store};
    matches!(
        dependency,
        DependencyError::Record(Store(_) | Busy { .. } | Entropy(_))
    )
}

/// The machine was launched after the change was requested, so that applying it now would destroy data.
fn consent_needed(plan: &Plan) -> Obstacle {
    let lost = loss(plan).unwrap_or_else(|| messages::ALL_LOST.to_owned());
    let changes = messages::changes(plan);
    let message = format!(
        "the machine was launched before the change could be applied ({changes}): {lost} if it is applied now; update with consent, or take the change back"
    );
    Obstacle::new(ConditionKind::ConsentNeeded, message)
}
