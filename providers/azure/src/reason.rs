//! The meaning of Azure's error codes and messages. Pure.
//!
//! Owns the list of codes. They come with a refusal or in a failed operation. Some codes have
//! several meanings, which only the status or the message distinguishes.
//!
//! | code | kind |
//! | --- | --- |
//! | `AllocationFailed`, `ZonalAllocationFailed`, `SkuNotAvailable` | capacity |
//! | `SubnetIsFull` | no address |
//! | `QuotaExceeded`, `OperationNotAllowed` with a message about quota | quota |
//! | `TooManyRequests`, `OperationNotAllowed` with status 429 | throttled |
//! | `RetryableErrorDueToAnotherOperation` | conflict, although its status is 429 |
//! | `InternalExecutionError` and the like in an operation | like status 500: worth a retry |
//!
//! A code that is not listed is classified by its form, in any letter case, and then by the status. Microsoft's own lists differ
//! in the case of `OverconstrainedAllocationRequest` and name only the common codes ("Understand common error messages when you
//! manage virtual machines in Azure").

/// What a failure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The resource does not exist.
    NotFound,
    /// Azure has no capacity for the offering.
    Capacity(CapacityScope),
    /// The location does not offer the size, or there is no such size: Azure does not tell which.
    NotOffered,
    /// The subnet has no free address.
    NoAddress,
    /// A quota is used up.
    Quota(QuotaScope),
    /// Too many calls.
    Throttled,
    /// The token was refused.
    Unauthenticated,
    /// The token does not allow the call, or a policy or lock forbids it.
    Forbidden,
    /// Another operation or change excludes the call.
    Conflict,
    /// Azure does not offer the call for this machine.
    Unsupported,
    /// A value of the request was refused.
    Invalid,
    /// The code has no meaning of its own; the status decides.
    Other,
}

/// For which part of the offering capacity is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CapacityScope {
    /// The type, in the whole location.
    Type,
    /// The type, in one zone.
    TypeInZone,
    /// Exactly this combination of type, zone and market.
    Offering,
}

/// Which quota is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuotaScope {
    /// That of a family of types on demand.
    Family,
    /// That of all cores on demand.
    OnDemand,
    /// That of spot machines.
    Spot,
    /// One that no other type or market avoids, such as that of addresses.
    Region,
}

/// Returns the meaning of a code. Its form and the status decide for a code that is not listed.
pub(crate) fn kind_of(code: &str, status: u16, message: &str) -> Kind {
    match code {
        "AllocationFailed" | "InsufficientCapacity" => Kind::Capacity(CapacityScope::Type),
        "ZonalAllocationFailed" => Kind::Capacity(CapacityScope::TypeInZone),
        "OverconstrainedAllocationRequest"
        | "OverconstrainedZonalAllocationRequest"
        | "SkuNotAvailable" => Kind::Capacity(CapacityScope::Offering),
        "SubnetIsFull" | "SubnetWithNoAvailableAddresses" => Kind::NoAddress,
        "QuotaExceeded" | "ResourceQuotaExceeded" => Kind::Quota(quota_scope(message)),
        code if code.ends_with("CountLimitReached") => Kind::Quota(QuotaScope::Region),
        // One code with three meanings: quota, throttling, and a state that forbids the call.
        "OperationNotAllowed" if status == 429 => Kind::Throttled,
        "OperationNotAllowed" if is_about_quota(message) => Kind::Quota(quota_scope(message)),
        // A machine with an ephemeral disk can neither be deallocated nor captured.
        "OperationNotAllowed" if message.to_lowercase().contains("ephemeral") => Kind::Unsupported,
        "OperationNotAllowed" if is_about_disks(message) => Kind::Invalid,
        "OperationNotAllowed" => Kind::Conflict,
        // A conflict, although its status is that of throttling.
        "RetryableErrorDueToAnotherOperation" => Kind::Conflict,
        "TooManyRequests" | "SubscriptionRequestsThrottled" | "ResourceRequestsThrottled" => {
            Kind::Throttled
        }
        "ExpiredAuthenticationToken" | "InvalidAuthenticationToken" | "AuthenticationFailed" => {
            Kind::Unauthenticated
        }
        code if code.starts_with("InvalidAuthenticationToken") => Kind::Unauthenticated,
        "AuthorizationFailed"
        | "LinkedAuthorizationFailed"
        | "RequestDisallowedByPolicy"
        | "ScopeLocked"
        | "ReadOnlyDisabledSubscription"
        | "SubscriptionNotFound"
        | "MissingSubscriptionRegistration"
        | "MarketplacePurchaseEligibilityFailed"
        | "SubscriptionNotAuthorizedForImage" => Kind::Forbidden,
        "ResourceNotFound" | "NotFound" => Kind::NotFound,
        "ResourceGroupNotFound" | "PlatformImageNotFound" | "ImageNotFound" => Kind::Invalid,
        "InvalidParameter" if is_about_offer(message) => Kind::NotOffered,
        "InvalidResourceReference"
        | "NotSupported"
        | "VMSizeIsNotPermittedToEnableAcceleratedNetworking"
        | "InvalidParameter"
        | "BadRequest"
        | "LocationNotAvailableForResourceType" => Kind::Invalid,
        code if status == 404 && code.ends_with("NotFound") => Kind::NotFound,
        _ => of_form(code, message).unwrap_or_else(|| of_status(status)),
    }
}

/// Returns the meaning of a code that is not listed, by its form.
fn of_form(code: &str, message: &str) -> Option<Kind> {
    let code = code.to_ascii_lowercase();
    let ends = |end: &str| code.ends_with(end);
    let kind = if code.starts_with("overconstrained") {
        Kind::Capacity(CapacityScope::Offering)
    } else if ends("zonalallocationfailed") {
        Kind::Capacity(CapacityScope::TypeInZone)
    } else if ends("allocationfailed") || ends("insufficientcapacity") {
        Kind::Capacity(CapacityScope::Type)
    } else if ends("quotaexceeded") || ends("limitexceeded") || ends("limitreached") {
        Kind::Quota(quota_scope(message))
    } else if ends("throttled") {
        Kind::Throttled
    } else if ends("disallowedbypolicy") {
        Kind::Forbidden
    } else {
        return None;
    };
    Some(kind)
}

/// Returns the HTTP status that the failure of an operation with this code stands for, if it has one. An
/// operation has no status of its own, but some codes mean that Azure broke down and that a retry can
/// succeed. There is one for each part of Azure, such as `NetworkingInternalOperationError`, so their form decides.
///
/// - "Resilient create and delete for Virtual Machine Scale Sets", Microsoft: Azure itself retries
///   `InternalExecutionError`, `TransientFailure`, `InternalOperationError` and `VMStartTimedOut`.
/// - "Understand common error messages when you manage virtual machines in Azure", Microsoft: the internal errors
///   of networks, disks and images.
/// - terraform-provider-azurerm#16928: `RetryableError`.
pub(crate) fn operation_status(code: &str) -> Option<u16> {
    // What failed here is inside a machine that Azure has created.
    let is_inside = code.starts_with("OSProvisioning") || code.starts_with("VMExtension");
    let is_breakdown = code.contains("Internal") && code.ends_with("Error")
        || ["TimedOut", "TooBusy", "Unavailable"]
            .iter()
            .any(|end| code.ends_with(end))
        || ["RetryableError", "TransientFailure"].contains(&code);
    (is_breakdown && !is_inside).then_some(500)
}

/// Returns the meaning of a status without a known code.
fn of_status(status: u16) -> Kind {
    match status {
        400 => Kind::Invalid,
        401 => Kind::Unauthenticated,
        403 => Kind::Forbidden,
        409 | 412 => Kind::Conflict,
        429 => Kind::Throttled,
        _ => Kind::Other,
    }
}

/// Whether a message says that the location does not offer a size.
fn is_about_offer(message: &str) -> bool {
    let message = message.to_lowercase();
    let refused = ["is not available in", "is not valid in the current region"];
    message.contains("vm size") && refused.iter().any(|words| message.contains(words))
}

/// Whether a message refuses the disks of a machine: too many for its size, or smaller than the image.
fn is_about_disks(message: &str) -> bool {
    let message = message.to_lowercase();
    message.contains("maximum number of data disks")
        || message.contains("disk with size") && message.contains("smaller than")
}

/// Whether a message is about a quota.
fn is_about_quota(message: &str) -> bool {
    let message = message.to_lowercase();
    message.contains("quota") || message.contains("approved") && message.contains("cores")
}

/// Returns which quota a message is about. Azure has one code for all.
fn quota_scope(message: &str) -> QuotaScope {
    let message = message.to_lowercase();
    if message.contains("lowpriority")
        || message.contains("low priority")
        || message.contains("spot")
    {
        QuotaScope::Spot
    } else if message.contains("family") {
        QuotaScope::Family
    } else if message.contains("cores") {
        QuotaScope::OnDemand
    } else {
        QuotaScope::Region
    }
}

/// Returns the field of a launch that Azure refused, by code and message.
/// Falls back to `config`.
pub(crate) fn field_of(code: &str, message: &str) -> &'static str {
    let message = message.to_lowercase();
    let about = |word: &str| message.contains(word);
    match code {
        "ResourceGroupNotFound" => "resource_group",
        "PlatformImageNotFound" | "ImageNotFound" => "image",
        "LocationNotAvailableForResourceType" => "location",
        "VMSizeIsNotPermittedToEnableAcceleratedNetworking" => "accelerated_networking",
        _ if about("ephemeral") => "system_disk",
        _ if about("number of data disks") => "data_disks",
        _ if about("disk with size") => "disk_size_gb",
        _ if about("/images/") || about("imagereference") || about("platform image") => "image",
        _ if about("vmsize") || about("vm size") => "instance_type",
        _ if about("/subnets/") => "placement.network",
        _ if about("/networksecuritygroups/") => "placement.security_groups",
        _ if about("zone") => "placement.zone",
        _ if about("customdata") || about("userdata") => "user_data",
        _ if about("disksizegb") || about("disk size") => "disk_size_gb",
        _ if about("tag") => "tags",
        _ => "config",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_codes_are_classified_by_status_and_message() {
        let quota = "Operation could not be completed as it results in exceeding approved standardDSv5Family Cores quota";
        let spot = "exceeding approved LowPriorityCores quota";
        let whole = "exceeding approved Total Regional Cores quota";
        let code = "OperationNotAllowed";
        assert_eq!(kind_of(code, 409, quota), Kind::Quota(QuotaScope::Family));
        assert_eq!(kind_of(code, 409, spot), Kind::Quota(QuotaScope::Spot));
        assert_eq!(kind_of(code, 409, whole), Kind::Quota(QuotaScope::OnDemand));
        assert_eq!(kind_of(code, 429, ""), Kind::Throttled);
        assert_eq!(kind_of(code, 409, "the VM is generalized"), Kind::Conflict);
        let ephemeral = "not supported for VMs using an ephemeral OS disk";
        assert_eq!(kind_of(code, 409, ephemeral), Kind::Unsupported);
        let other = "RetryableErrorDueToAnotherOperation";
        assert_eq!(kind_of(other, 429, ""), Kind::Conflict);
        assert_eq!(kind_of("Unheard", 429, ""), Kind::Throttled);
        assert_eq!(kind_of("Unheard", 500, ""), Kind::Other);
        let size = "The requested VM size Standard_X is not available in the current region. The sizes available";
        let unknown =
            "The value Standard_X provided for the VM size is not valid in the current region.";
        for message in [size, unknown] {
            assert_eq!(kind_of("InvalidParameter", 400, message), Kind::NotOffered);
        }
        for disks in [
            "The maximum number of data disks allowed to be attached to a VM of this size is 4.",
            "Disk with size 8GB, which is smaller than the size 30GB of corresponding disk in Image, is not allowed.",
        ] {
            assert_eq!(kind_of(code, 409, disks), Kind::Invalid, "{disks}");
        }
        let limit = "PublicIPCountLimitReached";
        assert_eq!(kind_of(limit, 400, ""), Kind::Quota(QuotaScope::Region));
    }

    #[test]
    fn code_that_is_not_listed_is_classified_by_its_form() {
        use CapacityScope::{Offering, Type, TypeInZone};
        for (code, kind) in [
            ("OverConstrainedAllocationRequest", Kind::Capacity(Offering)),
            ("DedicatedHostAllocationFailed", Kind::Capacity(Type)),
            ("SpotZonalAllocationFailed", Kind::Capacity(TypeInZone)),
            ("SomeQuotaExceeded", Kind::Quota(QuotaScope::Region)),
            ("SomeLimitExceeded", Kind::Quota(QuotaScope::Region)),
            ("SomeRequestsThrottled", Kind::Throttled),
            ("SomethingDisallowedByPolicy", Kind::Forbidden),
            ("SomethingNew", Kind::Invalid),
        ] {
            assert_eq!(kind_of(code, 400, ""), kind, "{code}");
        }
    }

    #[test]
    fn only_a_breakdown_of_azure_can_be_retried() {
        for code in [
            "InternalExecutionError",
            "InternalServerError",
            "NetworkingInternalOperationError",
            "InternalDiskManagementError",
            "VMArtifactRepositoryInternalError",
            "OperationTimedOut",
            "StorageAccountTooBusy",
            "ServiceUnavailable",
            "RetryableError",
        ] {
            assert_eq!(operation_status(code), Some(500), "{code}");
        }
        for code in [
            "OSProvisioningTimedOut",
            "OSProvisioningInternalError",
            "VMExtensionManagementInternalError",
            "DiskImageNotReady",
            "AllocationFailed",
            "SomethingNew",
        ] {
            assert_eq!(operation_status(code), None, "{code}");
        }
    }

    #[test]
    fn messages_name_the_refused_field() {
        let cases = [
            ("PlatformImageNotFound", "", "image"),
            ("ResourceGroupNotFound", "", "resource_group"),
            (
                "InvalidResourceReference",
                "Resource /x/virtualNetworks/a/subnets/b referenced",
                "placement.network",
            ),
            (
                "InvalidParameter",
                "The value of parameter vmSize is invalid",
                "instance_type",
            ),
            (
                "NotSupported",
                "OS disk of Ephemeral VM with size greater than 0 GB is not allowed",
                "system_disk",
            ),
            (
                "OperationNotAllowed",
                "The maximum number of data disks allowed to be attached to a VM of this size is 4.",
                "data_disks",
            ),
            ("Unheard", "", "config"),
        ];
        for (code, message, field) in cases {
            assert_eq!(field_of(code, message), field, "{code} {message}");
        }
    }
}
