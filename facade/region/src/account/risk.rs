//! What a call to another account could do, and so how the account is compared for it. Pure.

use fleetwright::{ErrorKind, Operation, ProvisionError};

/// What a call could do in another account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Risk {
    /// Nothing: it reads, and absences are believed by scans alone.
    Read,
    /// A change that can be taken back: power, tags, a console session.
    Reversible,
    /// A machine or an image is created, replaced or destroyed, or a decision about that is based on the result.
    Lasting,
}

impl Risk {
    pub(super) fn of(operation: Operation) -> Self {
        match operation {
            Operation::DescribeInstance
            | Operation::DescribeInstances
            | Operation::ListInstances
            | Operation::StreamInstances
            | Operation::AccountId
            | Operation::ConsoleOutput => Self::Read,
            Operation::StopInstance
            | Operation::StopInstances
            | Operation::StartInstance
            | Operation::StartInstances
            | Operation::UpdateTags
            | Operation::RebootInstance
            | Operation::ConsoleSession => Self::Reversible,
            Operation::LaunchInstance
            | Operation::LaunchInstances
            | Operation::TerminateInstance
            | Operation::TerminateInstances
            | Operation::FindLaunch
            | Operation::ResizeInstance
            | Operation::ReimageInstance
            | Operation::SnapshotImage
            | Operation::DeleteImage => Self::Lasting,
            // A call that was added later.
            _ => Self::Lasting,
        }
    }
}

/// Whether the result of a call says something only if the call reached the region's account.
///
/// An id exists in one account, so a call that succeeded has reached its machine. That it was not found, or is refused, is believed only
/// of the region's account. A launch succeeds anywhere: the controller compares the account after it, because it needs the machine.
pub(super) fn is_doubtful(operation: Operation, error: Option<&ProvisionError>) -> bool {
    if operation == Operation::FindLaunch {
        return true;
    }
    let launches = matches!(
        operation,
        Operation::LaunchInstance | Operation::LaunchInstances
    );
    let changes = Risk::of(operation) != Risk::Read && !launches;
    changes && error.is_some_and(|error| is_verdict(error.kind()))
}

/// Whether an error is the cloud's decision about the request, and not a failure to make one.
fn is_verdict(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::Throttled
        | ErrorKind::Timeout
        | ErrorKind::Unavailable
        | ErrorKind::Unauthenticated
        | ErrorKind::Incomplete
        | ErrorKind::Unexpected => false,
        ErrorKind::Invalid
        | ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::WrongState
        | ErrorKind::TokenConflict
        | ErrorKind::TokenSpent
        | ErrorKind::Capacity
        | ErrorKind::Quota
        | ErrorKind::Forbidden
        | ErrorKind::Unsupported => true,
        _ => true,
    }
}

/// Whether the account could not be read for a reason that says nothing about the credentials.
pub(super) fn is_outage(error: &ProvisionError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Throttled
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_that_creates_or_destroys_is_lasting() {
        for operation in Operation::ALL {
            let name = operation.as_str();
            let lasting = [
                "launch",
                "terminate",
                "resize",
                "reimage",
                "snapshot",
                "delete",
            ];
            let expected = lasting.iter().any(|verb| name.contains(verb));
            assert_eq!(Risk::of(operation) == Risk::Lasting, expected, "{name}");
            let read = operation.is_read() && operation != Operation::FindLaunch;
            assert_eq!(Risk::of(operation) == Risk::Read, read, "{name}");
        }
    }
}
