//! Finds out why EC2 refused a batch call: because of the call, of an id, of an instance's state. Pure.
//!
//! Owns the meaning of codes and messages. What is sent next is decided elsewhere.

use fleetwright::InstanceId;
use fleetwright_provider_support::{Class, Service as _};

use crate::error::{Cause, Ec2, ErrorContext, Failure};

/// The part of a batch call that EC2 refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concern {
    /// The call as a whole: its caller, its rate, the service.
    Call,
    /// An id that EC2 does not know.
    UnknownId,
    /// The permission for one of the ids, or for the call. Under an IAM condition on tags also an id that
    /// EC2 does not know.
    Permission,
    /// The state of an instance.
    State,
    /// The kind of an instance, such as a one-time spot instance, which cannot be stopped.
    Kind,
    /// The capacity for an instance's offering.
    Capacity,
    /// The quota for an instance's offering.
    Quota,
    /// Something else about an instance, if the message names it: its protection, its disks.
    Instance,
}

/// Returns the part of a batch call that EC2 refused, as far as the code says.
pub(crate) fn concern(failure: &Failure) -> Concern {
    let Cause::Responded(status) = failure.cause else {
        return Concern::Call;
    };
    match Ec2::classify(failure, &ErrorContext::default()) {
        Class::NotFound => Concern::UnknownId,
        Class::Capacity(_) => Concern::Capacity,
        Class::Quota(_) => Concern::Quota,
        Class::Unsupported => Concern::Kind,
        Class::Forbidden if failure.code() == "OperationNotPermitted" => Concern::Instance,
        Class::Forbidden => Concern::Permission,
        Class::Invalid(_) => Concern::Instance,
        Class::Conflict | Class::Other if failure.code().starts_with("IncorrectInstanceState") => {
            Concern::State
        }
        Class::Conflict | Class::Other if (400..500).contains(&status) => Concern::Instance,
        Class::Conflict
        | Class::Other
        | Class::Throttled
        | Class::Unauthenticated
        | Class::TokenConflict
        | Class::TokenSpent => Concern::Call,
    }
}

/// Returns whether an instance is protected against termination.
pub(crate) fn is_protected(failure: &Failure) -> bool {
    failure.code() == "OperationNotPermitted"
}

/// Returns whether EC2's message names some of the ids and not all of them.
pub(crate) fn names_a_part(failure: &Failure, ids: &[InstanceId]) -> bool {
    let named = ids.iter().filter(|id| names(failure, id)).count();
    named > 0 && named < ids.len()
}

/// Returns whether EC2's message names the id, and not only a longer one that begins with it.
pub(crate) fn names(failure: &Failure, id: &InstanceId) -> bool {
    let mut found = failure.message.match_indices(id.as_str());
    found.any(|(start, id)| {
        let next = failure.message[start + id.len()..].chars().next();
        next.is_none_or(|next| !next.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_whole_ids_only() {
        let failure = Failure::new(Cause::Responded(400), "The instance 'i-12' and i-345.");
        let id = |text: &str| InstanceId::new(text).unwrap();
        let named: Vec<_> = ["i-1", "i-12", "i-34", "i-345", "i-3456"]
            .map(id)
            .into_iter()
            .filter(|id| names(&failure, id))
            .collect();
        assert_eq!(named, [id("i-12"), id("i-345")]);
        assert!(!names_a_part(&failure, &named));
        assert!(names_a_part(&failure, &[id("i-1"), id("i-12")]));
    }
}
