//! What Compute Engine's codes and words mean. Pure.
//!
//! Owns the list of them. Codes come with a refusal or in a failed operation, in two spellings; what is
//! wrong with a launch is told in words only.

/// What a failure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    NotFound,
    Capacity,
    NoAddress,
    Quota,
    Throttled,
    Unauthenticated,
    Forbidden,
    Conflict,
    Invalid,
    Other,
}

/// What a code means; one that is not listed is judged by its status.
pub(crate) fn kind_of(code: &str, status: u16, message: &str) -> Kind {
    match code {
        "ZONE_RESOURCE_POOL_EXHAUSTED"
        | "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
        | "REGION_RESOURCE_POOL_EXHAUSTED"
        | "RESOURCE_POOL_EXHAUSTED"
        | "VM_MIN_COUNT_NOT_REACHED"
        | "stockout"
        | "STOCKOUT" => Kind::Capacity,
        // A spot instance that was preempted before it was made.
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
        // Machines that a zone does not have at all.
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
        _ => of_status(status),
    }
}

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

/// What a launch named that does not exist, by the path in Compute Engine's words.
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

/// What Compute Engine complains about, by the field in its words.
pub(crate) fn field_of(message: &str) -> &'static str {
    let words = [
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
    let found = words.iter().find(|(word, _)| message.contains(word));
    found.map_or_else(|| missing(message), |(_, field)| field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_wrong_is_named() {
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
