//! What prevents an instance's progress, as its tenant reads it: from what it waits for, and from failed calls of the region.

use fleetwright_region::{
    network::RecordError,
    server::{DependencyError, MAX_SECURITY_GROUPS, MAX_USER_DATA_BYTES, Plan, ServerError},
};
use fleetwright_store::StoreError;

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
            ConditionKind::MachineDeleting,
            "an operator is deleting the machine of this instance; its disk and addresses will be lost: wait until it is deleted, then replace the instance or delete it",
        )),
        Wait::ServerMissing => Some(Obstacle::new(
            ConditionKind::MachineRemoved,
            "the machine of this instance was removed without its tenant's request; its disk and addresses are lost: replace the instance, or delete it",
        )),
        Wait::ServerConflict => Some(id_conflict()),
    }
}

fn id_conflict() -> Obstacle {
    Obstacle::new(
        ConditionKind::IdConflict,
        "the id of this instance is already in use: ask an operator to free it, or delete the instance",
    )
}

/// Whether a condition can end without a change of the instance or its server, so that the call has to be repeated.
pub(super) fn is_retried(kind: ConditionKind) -> bool {
    match kind {
        ConditionKind::Refused | ConditionKind::IdConflict => true,
        ConditionKind::NoCapacity
        | ConditionKind::AccountLimit
        | ConditionKind::CloudError
        | ConditionKind::AttemptsExhausted
        | ConditionKind::Lost
        | ConditionKind::NextLaunch
        | ConditionKind::Unsupported
        | ConditionKind::ConsentNeeded
        | ConditionKind::MachineRemoved
        | ConditionKind::MachineDeleting
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
        ServerError::Taken { .. } => id_conflict(),
        ServerError::NeedsConsent { plan, .. } => consent_needed(plan),
        // Only a newer version, or an operator, can change that. Meanwhile the instance can be stopped and deleted.
        ServerError::Dependency(DependencyError::Record(RecordError::Store(
            source @ (StoreError::Incompatible { .. } | StoreError::Corrupt { .. }),
        ))) => refused(format!("what it uses cannot be read: {source}")),
        ServerError::Dependency(dependency) if !is_transient(dependency) => {
            refused(dependency.to_string())
        }
        ServerError::UserDataTooLarge { actual, .. } => refused(format!(
            "user data of {actual} bytes is too large: at most {MAX_USER_DATA_BYTES} are allowed; shorten it"
        )),
        ServerError::UserData { source, .. } => refused(source.to_string()),
        ServerError::Sealed { key, .. } => refused(format!(
            "the user data is sealed with key {key}, which does not open it: ask an operator to restore that key, or give other user data"
        )),
        ServerError::TooManySecurityGroups { actual, .. } => refused(format!(
            "{actual} security groups are too many: at most {MAX_SECURITY_GROUPS} are allowed; merge their rules into fewer groups"
        )),
        ServerError::Refused(source) => {
            // The permission is one on servers, which tenants do not know.
            tracing::error!(%source, "the principal of this service lacks a permission");
            refused("this service lacks a permission: ask an operator to grant it".to_owned())
        }
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
