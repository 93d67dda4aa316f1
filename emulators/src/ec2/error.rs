//! EC2's refusals: status, code, message.
//!
//! Owns the constructors of refusals that more than one place returns. It decides nothing: the
//! caller decides. The codes are those of the EC2 API reference, the messages those of known EC2
//! responses.

use std::borrow::Cow;

use super::wire::service::Service;

/// An error response of the cloud.
///
/// ```
/// use fleetwright_emulators::ec2::Refusal;
/// let refusal = Refusal::new(503, "RequestLimitExceeded", "Request limit exceeded.");
/// assert_eq!((refusal.status, &*refusal.code), (503, "RequestLimitExceeded"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// EC2's code, for example `InvalidInstanceID.NotFound`.
    pub code: Cow<'static, str>,
    /// The message for humans.
    pub message: String,
    /// The service that refuses, which decides the document.
    pub(crate) service: Service,
}

impl Refusal {
    /// Creates a refusal with a status.
    pub fn new(
        status: u16,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            status,
            code: code.into(),
            message: message.into(),
            service: Service::Ec2,
        }
    }

    /// Creates a refusal for a mistake of the client, status 400.
    pub(crate) fn client(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(400, code, message)
    }

    /// A parameter with a wrong value: `InvalidParameterValue`.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::client("InvalidParameterValue", message)
    }

    /// A parameter that is missing: `MissingParameter`.
    pub(crate) fn missing(parameter: &str) -> Self {
        let message = format!("The request must contain the parameter {parameter}");
        Self::client("MissingParameter", message)
    }

    /// Parameters that exclude each other: `InvalidParameterCombination`.
    pub(crate) fn combination(message: impl Into<String>) -> Self {
        Self::client("InvalidParameterCombination", message)
    }

    /// A call that the resource does not support: `UnsupportedOperation`.
    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::client("UnsupportedOperation", message)
    }

    /// A call that the instance's state does not allow: `IncorrectInstanceState`.
    pub(crate) fn wrong_state(message: impl Into<String>) -> Self {
        Self::client("IncorrectInstanceState", message)
    }

    /// Ids that do not exist, with the given code; `what` is the word before "ID" in the message.
    pub(crate) fn not_found(code: &'static str, what: &str, ids: &[&str]) -> Self {
        let message = match ids {
            [id] => format!("The {what} ID '{id}' does not exist"),
            ids => format!("The {what} IDs '{}' do not exist", ids.join(", ")),
        };
        Self::client(code, message)
    }

    /// A page token of another list, or a damaged one: `InvalidPaginationToken`.
    pub(crate) fn bad_page_token() -> Self {
        let message = "The specified pagination token is not valid or has expired.";
        Self::client("InvalidPaginationToken", message)
    }

    /// Too many calls: 503 `RequestLimitExceeded`.
    pub(crate) fn throttled() -> Self {
        Self::new(503, "RequestLimitExceeded", "Request limit exceeded.")
    }

    /// A failure inside EC2: 500 `InternalError`.
    pub(crate) fn internal() -> Self {
        Self::new(500, "InternalError", "An internal error has occurred")
    }

    /// A dry run that would have succeeded: 412 `DryRunOperation`.
    pub(crate) fn dry_run() -> Self {
        let message = "Request would have succeeded, but DryRun flag is set.";
        Self::new(412, "DryRunOperation", message)
    }

    /// A missing permission: 403 `UnauthorizedOperation`.
    pub(crate) fn unauthorized() -> Self {
        let message = "You are not authorized to perform this operation.";
        Self::new(403, "UnauthorizedOperation", message)
    }

    /// Expired credentials: `RequestExpired`.
    pub(crate) fn expired() -> Self {
        Self::client("RequestExpired", "Request has expired.")
    }

    /// A zone without capacity for a type: 500 `InsufficientInstanceCapacity`.
    pub(crate) fn capacity(instance_type: &str, zone: &str) -> Self {
        let message = format!(
            "We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested \
             ({zone}). Our system will be working on provisioning additional capacity."
        );
        Self::new(500, "InsufficientInstanceCapacity", message)
    }

    /// An exhausted vCPU quota on demand: `VcpuLimitExceeded`.
    pub(crate) fn vcpu_quota(limit: u64) -> Self {
        let message = format!(
            "You have requested more vCPU capacity than your current vCPU limit of {limit} allows for the instance \
             bucket that the specified instance type belongs to."
        );
        Self::client("VcpuLimitExceeded", message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_differ_for_one_and_several_ids() {
        let code = "InvalidInstanceID.NotFound";
        let one = Refusal::not_found(code, "instance", &["i-1"]);
        assert_eq!(one.message, "The instance ID 'i-1' does not exist");
        let two = Refusal::not_found(code, "instance", &["i-1", "i-2"]);
        assert_eq!(two.message, "The instance IDs 'i-1, i-2' do not exist");
        assert_eq!((two.status, &*two.code), (400, code));
    }
}
