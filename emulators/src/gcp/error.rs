//! Compute Engine's refusals: status, reason, message.
//!
//! Owns the constructors of refusals that more than one place returns, and the envelope. It
//! decides nothing: the caller decides. A client must use the reason: status 403 alone is
//! ambiguous, because it is `forbidden`, `quotaExceeded` or `rateLimitExceeded`.
//!
//! Google's front end refuses requests before Compute Engine sees them; its errors also have a
//! canonical status such as `INVALID_ARGUMENT`.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::cloud::fault::Failure;

/// The constraint on instances with an external address.
pub(crate) const EXTERNAL_ACCESS: &str = "constraints/compute.vmExternalIpAccess";

/// An error response of the cloud.
///
/// ```
/// use fleetwright_emulators::gcp::Refusal;
/// let refusal = Refusal::new(404, "notFound", "The resource 'x' was not found");
/// assert_eq!((refusal.status, &*refusal.reason), (404, "notFound"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// Google's reason, for example `notFound`.
    pub reason: Cow<'static, str>,
    /// The message for humans.
    pub message: String,
    /// Google's canonical name of the status, which only the front end sends.
    pub canonical: Option<&'static str>,
}

impl Refusal {
    /// Creates a refusal of Compute Engine itself.
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

    /// A field with a wrong value: 400 `invalid`. `problem` is appended to the message.
    pub(crate) fn invalid(field: &str, value: &str, problem: &str) -> Self {
        let message = format!("Invalid value for field '{field}': '{value}'. {problem}");
        Self::new(400, "invalid", message)
    }

    /// A field that is not a resource name: 400 `invalid`.
    pub(crate) fn mismatch(field: &str, value: &str) -> Self {
        let problem = "Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'";
        Self::invalid(field, value, problem)
    }

    /// A field or parameter that is missing: 400 `required`.
    pub(crate) fn required(field: &str) -> Self {
        let message = format!("Required field '{field}' not specified");
        Self::new(400, "required", message)
    }

    /// A feature of Compute Engine that the emulator does not have: 400 `notSupported`.
    ///
    /// The emulator refuses such a request, so that a test never passes because a field was
    /// ignored.
    pub(crate) fn not_emulated(what: &str) -> Self {
        let message = format!("{what} is not emulated");
        Self::new(400, "notSupported", message)
    }

    /// A body or a query that does not match the API: 400 `badRequest` of the front end.
    pub(crate) fn payload(message: impl Into<String>) -> Self {
        Self::front(400, "badRequest", "INVALID_ARGUMENT", message.into())
    }

    /// A path or verb that the API does not have: 404 `notFound` of the front end.
    pub(crate) fn no_such_path() -> Self {
        Self::front(404, "notFound", "NOT_FOUND", "Not Found".to_owned())
    }

    /// A resource that does not exist: 404 `notFound`.
    pub(crate) fn not_found(path: &str) -> Self {
        let message = format!("The resource '{path}' was not found");
        Self::new(404, "notFound", message)
    }

    /// A name that is in use: 409 `alreadyExists`.
    pub(crate) fn already_exists(path: &str) -> Self {
        let message = format!("The resource '{path}' already exists");
        Self::new(409, "alreadyExists", message)
    }

    /// An external launch of `count` instances of which one would fail in its operation: 400 `limitExceeded`.
    pub(crate) fn limit_of_external_launch(count: u32, failure: &Failure) -> Self {
        let Failure { code, message, .. } = failure;
        let message = format!(
            "{count} instances can not be created: {code}: {message} Change the knobs, for example for a larger \
             subnetwork or more capacity."
        );
        Self::new(400, "limitExceeded", message)
    }

    /// A resource in a state that does not allow the call: 400 `resourceNotReady`.
    pub(crate) fn not_ready(path: &str) -> Self {
        let message = format!("The resource '{path}' is not ready");
        Self::new(400, "resourceNotReady", message)
    }

    /// A disk that an instance uses: 400 `resourceInUseByAnotherResource`.
    pub(crate) fn in_use(path: &str, by: &str) -> Self {
        let message = format!("The resource '{path}' is already being used by '{by}'");
        Self::new(400, "resourceInUseByAnotherResource", message)
    }

    /// A fingerprint that is not current: 412 `conditionNotMet`.
    pub(crate) fn stale(message: &str) -> Self {
        Self::new(412, "conditionNotMet", message)
    }

    /// A violated organization policy: 412 `conditionNotMet`.
    pub(crate) fn policy(constraint: &str, project: &str, instance_path: &str) -> Self {
        let message = if constraint == EXTERNAL_ACCESS {
            format!(
                "Constraint {constraint} violated for project {project}. Add instance \
                 {instance_path} to the constraint to use external IP with it."
            )
        } else {
            format!("Constraint {constraint} violated for project {project}.")
        };
        Self::new(412, "conditionNotMet", message)
    }

    /// An exhausted quota: 403 `quotaExceeded`.
    pub(crate) fn quota(metric: &str, limit: u64, region: &str) -> Self {
        let message = format!("Quota '{metric}' exceeded.  Limit: {limit}.0 in region {region}.");
        Self::new(403, "quotaExceeded", message)
    }

    /// A zone without capacity: 503 `ZONE_RESOURCE_POOL_EXHAUSTED`.
    pub(crate) fn stockout(zone_path: &str) -> Self {
        let message = format!(
            "The zone '{zone_path}' does not have enough resources available to fulfill the request.  Try a \
             different zone, or try again later."
        );
        Self::new(503, "ZONE_RESOURCE_POOL_EXHAUSTED", message)
    }

    /// Too many calls: 429 of the front end, or 403 of Compute Engine; both `rateLimitExceeded`.
    pub(crate) fn throttled(status: u16) -> Self {
        let message = "Rate Limit Exceeded".to_owned();
        if status == 429 {
            return Self::front(429, "rateLimitExceeded", "RESOURCE_EXHAUSTED", message);
        }
        Self::new(403, "rateLimitExceeded", message)
    }

    /// The quota of lists with a filter is used up: 403 `rateLimitExceeded`.
    pub(crate) fn filtered_list_quota(project: &str) -> Self {
        let message = format!(
            "Quota exceeded for quota metric 'Filtered list cost overhead' and limit 'Filtered list \
             cost overhead per minute' of service 'compute.googleapis.com' for consumer \
             'project:{project}'."
        );
        Self::new(403, "rateLimitExceeded", message)
    }

    /// A missing or unknown access token: 401 `authError` of the front end.
    pub(crate) fn unauthenticated() -> Self {
        let message = "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie \
                       or other valid authentication credential.";
        Self::front(401, "authError", "UNAUTHENTICATED", message.to_owned())
    }

    /// A missing permission: 403 `forbidden`.
    pub(crate) fn forbidden(path: &str) -> Self {
        let message = format!("Required permission for '{path}' is missing");
        Self::new(403, "forbidden", message)
    }

    /// A failure inside Compute Engine: 500 `backendError`.
    pub(crate) fn internal() -> Self {
        let message = "Internal error. Please try again or contact Google Support.";
        Self::new(500, "backendError", message)
    }

    /// A zone that is unreachable: 503 `backendError`.
    pub(crate) fn unreachable(zone_path: &str) -> Self {
        let message =
            format!("The resource '{zone_path}' is currently unreachable. Please try again.");
        Self::new(503, "backendError", message)
    }

    /// Returns the error envelope that a client gets.
    ///
    /// It has the message twice, at the top and in the list `errors`, with the domain
    /// `usageLimits` for quotas and throttling and `global` for everything else.
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
    fn envelope_has_the_reason_and_its_domain() {
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
        let refusal = Refusal::unauthenticated().document();
        assert_eq!(refusal["error"]["errors"][0]["locationType"], "header");
    }
}
