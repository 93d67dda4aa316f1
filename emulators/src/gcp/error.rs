//! Compute Engine's refusals: status, reason, message.
//!
//! Owns the constructors of refusals that more than one place returns, and the envelope. It decides
//! nothing: the caller decides. A client must use the reason: status 403 alone is ambiguous.

use std::borrow::Cow;

use serde_json::{Value, json};

/// An error response of the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// Google's reason, for example `notFound`.
    pub reason: Cow<'static, str>,
    /// The message for humans.
    pub message: String,
    /// Google's canonical name of the status, which only the front end gives.
    pub canonical: Option<&'static str>,
}

impl Refusal {
    /// Creates a refusal with a status.
    pub fn new(
        status: u16,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            status,
            reason: reason.into(),
            message: message.into(),
            canonical: None,
        }
    }

    /// Creates a refusal of the front end.
    fn front(status: u16, reason: &'static str, canonical: &'static str, message: String) -> Self {
        Self {
            canonical: Some(canonical),
            ..Self::new(status, reason, message)
        }
    }

    /// A value that is wrong.
    pub(crate) fn invalid(field: &str, value: &str, why: &str) -> Self {
        let message = format!("Invalid value for field '{field}': '{value}'. {why}");
        Self::new(400, "invalid", message)
    }

    /// A value that is no name.
    pub(crate) fn mismatch(field: &str, value: &str) -> Self {
        let why = "Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'";
        Self::invalid(field, value, why)
    }

    pub(crate) fn required(field: &str) -> Self {
        let message = format!("Required field '{field}' not specified");
        Self::new(400, "required", message)
    }

    /// What Compute Engine can do and this emulator can not.
    pub(crate) fn not_emulated(what: &str) -> Self {
        let message = format!("{what} is not emulated");
        Self::new(400, "notSupported", message)
    }

    /// The refusal of a body or a query that does not match the API.
    pub(crate) fn payload(message: impl Into<String>) -> Self {
        Self::front(400, "badRequest", "INVALID_ARGUMENT", message.into())
    }

    pub(crate) fn no_such_path() -> Self {
        Self::front(404, "notFound", "NOT_FOUND", "Not Found".to_owned())
    }

    pub(crate) fn not_found(path: &str) -> Self {
        let message = format!("The resource '{path}' was not found");
        Self::new(404, "notFound", message)
    }

    pub(crate) fn already_exists(path: &str) -> Self {
        let message = format!("The resource '{path}' already exists");
        Self::new(409, "alreadyExists", message)
    }

    pub(crate) fn not_ready(path: &str) -> Self {
        let message = format!("The resource '{path}' is not ready");
        Self::new(400, "resourceNotReady", message)
    }

    pub(crate) fn in_use(path: &str, by: &str) -> Self {
        let message = format!("The resource '{path}' is already being used by '{by}'");
        Self::new(400, "resourceInUseByAnotherResource", message)
    }

    pub(crate) fn stale(message: &str) -> Self {
        Self::new(412, "conditionNotMet", message)
    }

    pub(crate) fn quota(metric: &str, limit: u64, region: &str) -> Self {
        let message = format!("Quota '{metric}' exceeded.  Limit: {limit}.0 in region {region}.");
        Self::new(403, "quotaExceeded", message)
    }

    pub(crate) fn stockout(zone_path: &str) -> Self {
        let message = format!(
            "The zone '{zone_path}' does not have enough resources available to fulfill the request.  Try a \
             different zone, or try again later."
        );
        Self::new(503, "ZONE_RESOURCE_POOL_EXHAUSTED", message)
    }

    /// The refusal of too many calls, by Compute Engine or by its front end.
    pub(crate) fn throttled(status: u16) -> Self {
        let message = "Rate Limit Exceeded".to_owned();
        if status == 429 {
            return Self::front(429, "rateLimitExceeded", "RESOURCE_EXHAUSTED", message);
        }
        Self::new(403, "rateLimitExceeded", message)
    }

    pub(crate) fn unauthenticated() -> Self {
        let message = "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie \
                       or other valid authentication credential.";
        Self::front(401, "authError", "UNAUTHENTICATED", message.to_owned())
    }

    pub(crate) fn forbidden(path: &str) -> Self {
        let message = format!("Required permission for '{path}' is missing");
        Self::new(403, "forbidden", message)
    }

    pub(crate) fn internal() -> Self {
        let message = "Internal error. Please try again or contact Google Support.";
        Self::new(500, "backendError", message)
    }

    /// The refusal of an unreachable zone.
    pub(crate) fn unreachable(zone_path: &str) -> Self {
        let message =
            format!("The resource '{zone_path}' is currently unreachable. Please try again.");
        Self::new(503, "backendError", message)
    }

    /// The document that a client gets.
    pub(crate) fn document(&self) -> Value {
        let domain = match &*self.reason {
            "quotaExceeded" | "rateLimitExceeded" => "usageLimits",
            _ => "global",
        };
        let mut one = json!({
            "message": self.message,
            "domain": domain,
            "reason": self.reason,
        });
        if self.reason == "authError" {
            one["location"] = "Authorization".into();
            one["locationType"] = "header".into();
        }
        let mut error = json!({
            "code": self.status,
            "message": self.message,
            "errors": [one],
        });
        if let Some(canonical) = self.canonical {
            error["status"] = canonical.into();
        }
        json!({ "error": error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_has_the_reason_and_its_domain() {
        let missing = Refusal::not_found("projects/p/zones/z/instances/n").document();
        assert_eq!(missing["error"]["code"], 404);
        assert_eq!(
            missing["error"]["message"],
            "The resource 'projects/p/zones/z/instances/n' was not found"
        );
        let one = &missing["error"]["errors"][0];
        assert_eq!(
            (&one["domain"], &one["reason"]),
            (&json!("global"), &json!("notFound"))
        );
        assert_eq!(missing["error"].get("status"), None);
        let throttled = Refusal::throttled(403).document();
        assert_eq!(throttled["error"]["errors"][0]["domain"], "usageLimits");
        let front = Refusal::throttled(429).document();
        assert_eq!(front["error"]["status"], "RESOURCE_EXHAUSTED");
        let who = Refusal::unauthenticated().document();
        assert_eq!(who["error"]["errors"][0]["locationType"], "header");
    }
}
