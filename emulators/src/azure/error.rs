//! The refusals of Azure Resource Manager: status, code, message.
//!
//! Owns the constructors of refusals that more than one place returns. It decides nothing. Codes
//! are Azure's; messages have the words that clients look for, shortened.

use std::borrow::Cow;

use super::engine::quota_text;

/// An error response of the cloud. Serialized as `{"error": {"code", "message", "target"}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// Azure's code, for example `ResourceNotFound`.
    pub code: Cow<'static, str>,
    /// The message for humans.
    pub message: String,
    /// The property that caused it, if there is one.
    pub target: Option<String>,
}

impl Refusal {
    /// Creates a refusal with a status, without a target.
    pub fn new(
        status: u16,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            status,
            code: code.into(),
            message: message.into(),
            target: None,
        }
    }

    /// Creates a refusal for a mistake of the client, status 400.
    pub(crate) fn client(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(400, code, message)
    }

    /// Creates 400 `InvalidParameter`, for a property with an invalid value.
    pub(crate) fn invalid(target: &str, message: impl Into<String>) -> Self {
        let mut refusal = Self::client("InvalidParameter", message);
        refusal.target = Some(target.to_owned());
        refusal
    }

    /// Creates 400 `InvalidParameter`, for a required property that is missing.
    pub(crate) fn missing(target: &str) -> Self {
        Self::invalid(
            target,
            format!("Required parameter '{target}' is missing (null)."),
        )
    }

    /// Creates 400 `InvalidRequestContent`, for a body that is not the expected JSON.
    pub(crate) fn content(problem: &str) -> Self {
        let message =
            format!("The request content was invalid and could not be deserialized: '{problem}'.");
        Self::client("InvalidRequestContent", message)
    }

    /// Creates 409 `Conflict`, for a call that collides with another operation.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, "Conflict", message)
    }

    /// Creates 409 `OperationNotAllowed`, for a call that the state or a quota forbids.
    pub(crate) fn not_allowed(message: impl Into<String>) -> Self {
        Self::new(409, "OperationNotAllowed", message)
    }

    /// Creates 409 `PropertyChangeNotAllowed`, for a property that never changes.
    pub(crate) fn immutable(property: &str) -> Self {
        let message = format!("Changing property '{property}' is not allowed.");
        let mut refusal = Self::new(409, "PropertyChangeNotAllowed", message);
        refusal.target = Some(property.to_owned());
        refusal
    }

    /// Creates 400 `NotSupported`, for a property that Azure has and the emulator does not.
    pub(crate) fn unsupported(property: &str) -> Self {
        let mut refusal = Self::client("NotSupported", format!("'{property}' is not emulated."));
        refusal.target = Some(property.to_owned());
        refusal
    }

    /// Creates 404 `ResourceNotFound`: the resource manager does not know the resource.
    pub(crate) fn manager_not_found(kind: &str, name: &str, group: &str) -> Self {
        let message = format!(
            "The Resource '{kind}/{name}' under resource group '{group}' was not found. For more details please go \
             to https://aka.ms/ARMResourceNotFoundFix"
        );
        Self::new(404, "ResourceNotFound", message)
    }

    /// Creates 404 `NotFound`: the resource provider does not know the resource, although the
    /// resource manager still does.
    pub(crate) fn provider_not_found() -> Self {
        let message = "The entity was not found in this Azure location.";
        Self::new(404, "NotFound", message)
    }

    /// Creates 404 `ResourceGroupNotFound`.
    pub(crate) fn group_not_found(name: &str) -> Self {
        let message = format!("Resource group '{name}' could not be found.");
        Self::new(404, "ResourceGroupNotFound", message)
    }

    /// Creates 400 `InvalidResourceReference`, for a reference to a missing resource.
    pub(crate) fn invalid_reference(id: &str) -> Self {
        let message = format!(
            "Resource {id} referenced by the request was not found. Please make sure that the referenced resource \
             exists, and that both resources are in the same region."
        );
        Self::client("InvalidResourceReference", message)
    }

    /// Creates a refusal of the credentials, status 401.
    pub(crate) fn unauthenticated(code: &'static str, message: &str) -> Self {
        Self::new(401, code, message)
    }

    /// Creates 403 `AuthorizationFailed`.
    pub(crate) fn forbidden() -> Self {
        let message = "The client does not have authorization to perform the action over the scope, or the scope is \
                       invalid.";
        Self::new(403, "AuthorizationFailed", message)
    }

    /// Creates 429 `TooManyRequests`.
    pub(crate) fn throttled() -> Self {
        let message =
            "The request is being throttled as the limit has been reached for the operation type.";
        Self::new(429, "TooManyRequests", message)
    }

    /// Creates 500 `InternalExecutionError`.
    pub(crate) fn internal() -> Self {
        let message = "An internal execution error occurred. Please retry later.";
        Self::new(500, "InternalExecutionError", message)
    }

    /// Creates 409 `SkuNotAvailable`, for a size without capacity or not offered, reported
    /// immediately.
    pub(crate) fn sku_not_available(size: &str, place: &str) -> Self {
        let message = format!(
            "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: {size}' is \
             currently not available in location '{place}'. Please try another size or deploy to a different \
             location or different zone. See https://aka.ms/azureskunotavailable for details."
        );
        Self::new(409, "SkuNotAvailable", message)
    }

    /// Creates 409 `OperationNotAllowed` with the message of an exhausted quota. Only faults use
    /// it.
    pub(crate) fn quota() -> Self {
        Self::not_allowed(quota_text("Total Regional Cores", "any", 0, 0, 1))
    }

    /// Creates 412 `PreconditionFailed`.
    pub(crate) fn precondition(message: &str) -> Self {
        Self::new(412, "PreconditionFailed", message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_found_codes_of_provider_and_manager_differ() {
        let manager = Refusal::manager_not_found("Microsoft.Compute/virtualMachines", "a", "rg");
        let provider = Refusal::provider_not_found();
        assert_eq!((manager.status, provider.status), (404, 404));
        assert_eq!(
            (&*manager.code, &*provider.code),
            ("ResourceNotFound", "NotFound")
        );
        assert!(
            manager
                .message
                .contains("'Microsoft.Compute/virtualMachines/a'")
        );
    }

    #[test]
    fn property_refusals_have_a_target() {
        assert_eq!(
            Refusal::missing("location").target.as_deref(),
            Some("location")
        );
        let refusal = Refusal::immutable("zones");
        assert_eq!(
            (refusal.status, refusal.target.as_deref()),
            (409, Some("zones"))
        );
    }
}
