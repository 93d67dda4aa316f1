//! The meaning of Compute Engine's error codes and messages. Pure.
//!
//! Owns the list of codes. They come with a refusal or in a failed operation, in two spellings.
//! Which value of a launch is wrong is only in the message.
//!
//! A code has priority over the status: status 403 alone can mean permissions, quota or rate.
//! Examples:
//!
//! | code | kind |
//! | --- | --- |
//! | `ZONE_RESOURCE_POOL_EXHAUSTED`, `stockout` | capacity |
//! | `IP_SPACE_EXHAUSTED` | no address |
//! | `quotaExceeded`, `QUOTA_EXCEEDED` | quota |
//! | `rateLimitExceeded`, `OPERATION_RATE_EXCEEDED` | throttled |
//! | `resourceNotReady`, `conditionNotMet` | conflict |
//! | `conditionNotMet` with a constraint in the message | forbidden: an organization policy |
//!
//! A code that is not listed is classified by its form, then by Google's usual message, then by the status. Google
//! describes one shortage by several codes: an operation fails with `ZONE_RESOURCE_POOL_EXHAUSTED` and names
//! `resource_availability` in its details (ai-on-gke#849), which a refusal has as its reason and with status 429
//! (Google's "AIP-193: Errors").

/// What a failure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The resource does not exist.
    NotFound,
    /// The zone has no capacity for the offering.
    Capacity,
    /// The subnetwork has no free address.
    NoAddress,
    /// A quota of the project is used up.
    Quota,
    /// Too many calls or operations.
    Throttled,
    /// The credentials were refused.
    Unauthenticated,
    /// The credentials do not allow the call.
    Forbidden,
    /// Another operation or change excludes the call.
    Conflict,
    /// A value of the request was refused.
    Invalid,
    /// The code has no meaning of its own; the status decides.
    Other,
}

/// Returns the meaning of a code. Its form, the message and the status decide for a code that is not listed.
pub(crate) fn kind_of(code: &str, status: u16, message: &str) -> Kind {
    match code {
        // Google reports a violated organization policy like a stale fingerprint.
        _ if status == 412 && names_policy(message) => Kind::Forbidden,
        "conditionNotMet" | "CONDITION_NOT_MET" if names_policy(message) => Kind::Forbidden,
        "ZONE_RESOURCE_POOL_EXHAUSTED"
        | "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
        | "REGION_RESOURCE_POOL_EXHAUSTED"
        | "RESOURCE_POOL_EXHAUSTED"
        | "VM_MIN_COUNT_NOT_REACHED"
        // A bulk insert that the zone has no capacity for ("Troubleshooting bulk VM creation").
        | "insufficientCapacity"
        | "stockout"
        | "STOCKOUT" => Kind::Capacity,
        // A spot instance that was preempted before it was created.
        "UNSUPPORTED_OPERATION" if message.to_lowercase().contains("preempt") => Kind::Capacity,
        "IP_SPACE_EXHAUSTED" | "IP_SPACE_EXHAUSTED_WITH_DETAILS" => Kind::NoAddress,
        "quotaExceeded" | "QUOTA_EXCEEDED" | "limitExceeded" | "LIMIT_EXCEEDED" => Kind::Quota,
        "rateLimitExceeded"
        | "userRateLimitExceeded"
        | "RATE_LIMIT_EXCEEDED"
        | "OPERATION_RATE_EXCEEDED"
        | "RESOURCE_OPERATION_RATE_EXCEEDED"
        | "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED"
        | "concurrentLimitExceeded" => Kind::Throttled,
        "authError" | "expired" | "UNAUTHENTICATED" | "ACCESS_TOKEN_EXPIRED" => {
            Kind::Unauthenticated
        }
        "forbidden"
        | "accessNotConfigured"
        | "insufficientPermissions"
        | "ACCESS_TOKEN_SCOPE_INSUFFICIENT"
        | "IAM_PERMISSION_DENIED"
        | "PERMISSION_DENIED"
        | "PERMISSIONS_ERROR"
        | "SERVICE_DISABLED" => Kind::Forbidden,
        "resourceNotReady"
        | "RESOURCE_NOT_READY"
        | "resourceInUseByAnotherResource"
        | "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"
        | "operationInProgress"
        | "conditionNotMet"
        | "CONDITION_NOT_MET" => Kind::Conflict,
        "notFound" | "RESOURCE_NOT_FOUND" => Kind::NotFound,
        // A machine type that the zone does not offer.
        "invalid" | "INVALID_ARGUMENT" | "INVALID_FIELD_VALUE"
            if message.contains("does not exist in zone") =>
        {
            Kind::Capacity
        }
        "invalid"
        | "required"
        | "badRequest"
        | "invalidParameter"
        | "parseError"
        | "INVALID_ARGUMENT"
        | "INVALID_FIELD_VALUE"
        | "INVALID_USAGE" => Kind::Invalid,
        _ => of_form(code, message).unwrap_or_else(|| of_status(status)),
    }
}

/// Returns the meaning of a code that is not listed, by its form or by the words of the message.
fn of_form(code: &str, message: &str) -> Option<Kind> {
    let code = code.to_ascii_uppercase();
    let has = |part: &str| code.contains(part);
    let says = |words: &str| message.contains(words);
    let kind = if has("POOL_EXHAUSTED") || has("STOCKOUT") || has("RESOURCE_AVAILABILITY") {
        Kind::Capacity
    } else if has("IP_SPACE_EXHAUSTED") {
        Kind::NoAddress
    } else if has("RATE_EXCEEDED") || has("RATE_LIMIT") || has("RATELIMIT") {
        Kind::Throttled
    } else if has("QUOTA") {
        Kind::Quota
    } else if says("does not have enough resources available") {
        Kind::Capacity
    } else if says("Quota exceeded for quota metric") {
        Kind::Throttled
    } else if says("Quota '") && says("' exceeded") {
        Kind::Quota
    } else {
        return None;
    };
    Some(kind)
}

/// Whether a message names the constraint of an organization policy, such as
/// `constraints/compute.vmExternalIpAccess`. Constraints of the customer begin with
/// `customConstraints/`.
pub(crate) fn names_policy(message: &str) -> bool {
    message.contains("constraints/") || message.contains("customConstraints/")
}

/// Returns the meaning of a status without a known code.
fn of_status(status: u16) -> Kind {
    match status {
        401 => Kind::Unauthenticated,
        403 => Kind::Forbidden,
        404 => Kind::NotFound,
        409 | 412 => Kind::Conflict,
        429 => Kind::Throttled,
        _ => Kind::Other,
    }
}

/// Returns the field of a launch that names a resource that does not exist, by the path in the
/// message.
pub(crate) fn missing(message: &str) -> &'static str {
    let parts = [
        ("/images/", "image"),
        ("/machineTypes/", "instance type"),
        ("/subnetworks/", "placement.network"),
        ("/networks/", "placement.network"),
        ("/diskTypes/", "disk_type"),
        ("/acceleratorTypes/", "accelerators"),
        ("/zones/", "placement.zone"),
    ];
    let found = parts.iter().find(|(part, _)| message.contains(part));
    found.map_or("config", |(_, field)| field)
}

/// Returns the field of a launch that Compute Engine refused, by the native field in the message.
/// Falls back to the path of a missing resource, and then to `config`.
pub(crate) fn field_of(message: &str) -> &'static str {
    let native_fields = [
        ("machineType", "instance type"),
        ("sourceImage", "image"),
        ("diskSizeGb", "disk size"),
        ("disk size", "disk size"),
        ("Disk size", "disk size"),
        ("labels", "tags"),
        ("metadata", "user data"),
        ("subnetwork", "placement.network"),
        ("network", "placement.network"),
        ("zone", "placement.zone"),
    ];
    let found = native_fields
        .iter()
        .find(|(native, _)| message.contains(native));
    found.map_or_else(|| missing(message), |(_, field)| field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violated_policy_is_forbidden_and_a_stale_fingerprint_a_conflict() {
        let policy = "Constraint constraints/compute.vmExternalIpAccess violated for project 1.";
        let custom = "Operation denied by org policy: [\"customConstraints/custom.a\": \"b\"].";
        for (code, status, message, kind) in [
            ("conditionNotMet", 412, policy, Kind::Forbidden),
            ("CONDITION_NOT_MET", 400, policy, Kind::Forbidden),
            ("CONDITION_NOT_MET", 412, custom, Kind::Forbidden),
            ("", 412, policy, Kind::Forbidden),
            (
                "conditionNotMet",
                412,
                "the fingerprint is old",
                Kind::Conflict,
            ),
            ("CONDITION_NOT_MET", 412, "", Kind::Conflict),
        ] {
            assert_eq!(kind_of(code, status, message), kind, "{code} {message}");
        }
    }

    #[test]
    fn code_that_is_not_listed_is_classified_by_its_form_or_its_message() {
        let short = "The zone 'projects/p/zones/z' does not have enough resources available to fulfill the request.";
        let rate = "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service 'x'.";
        let quota = "Quota 'CPUS_PER_VM_FAMILY' exceeded.  Limit: 24.0 in region us-central1.";
        for (code, status, message, kind) in [
            ("resource_availability", 429, "", Kind::Capacity),
            ("RESOURCE_AVAILABILITY", 429, "", Kind::Capacity),
            (
                "ZONE_RESOURCE_POOL_EXHAUSTED_AGAIN",
                400,
                "",
                Kind::Capacity,
            ),
            ("UNSUPPORTED_OPERATION", 400, short, Kind::Capacity),
            ("", 503, short, Kind::Capacity),
            ("IP_SPACE_EXHAUSTED_AGAIN", 400, "", Kind::NoAddress),
            ("REGIONAL_QUOTA_EXCEEDED", 400, "", Kind::Quota),
            ("", 403, quota, Kind::Quota),
            ("", 403, rate, Kind::Throttled),
            ("OTHER_RATE_EXCEEDED", 400, "", Kind::Throttled),
            ("", 403, "no", Kind::Forbidden),
            ("SOMETHING_NEW", 400, "no", Kind::Other),
        ] {
            assert_eq!(kind_of(code, status, message), kind, "{code} {message}");
        }
    }

    #[test]
    fn messages_name_the_missing_or_invalid_field() {
        for (message, field) in [
            (
                "The resource 'projects/p/global/images/x' was not found",
                "image",
            ),
            (
                "'projects/p/zones/z/machineTypes/m' was not found",
                "instance type",
            ),
            ("'projects/p/zones/z' was not found", "placement.zone"),
        ] {
            assert_eq!(missing(message), field, "{message}");
        }
        let size = "Invalid value for field 'resource.disks[0].initializeParams.diskSizeGb'";
        assert_eq!(field_of(size), "disk size");
        assert_eq!(field_of("Invalid value"), "config");
    }
}
