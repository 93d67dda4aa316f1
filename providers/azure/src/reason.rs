//! What Azure's codes and words mean. Pure.
//!
//! Owns the list of them. A code comes with a refusal or in a failed operation; some codes mean several
//! things, which only the status or the words tell apart.

/// What a failure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    NotFound,
    /// There is no machine of a kind.
    Capacity(Short),
    /// The subnet has no address left.
    NoAddress,
    Quota(Limit),
    Throttled,
    Unauthenticated,
    Forbidden,
    Conflict,
    Invalid,
    Other,
}

/// How much of the offer is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Short {
    /// A type, in the whole location.
    Type,
    /// A type, in one zone.
    TypeInZone,
    /// Just this: type, zone and market together.
    All,
}

/// Which quota is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Of a family of types.
    Family,
    /// Of spot machines.
    Spot,
    /// Of everything.
    Whole,
}

/// What a code means; one that is not listed is judged by its status.
pub(crate) fn kind_of(code: &str, status: u16, message: &str) -> Kind {
    match code {
        "AllocationFailed" | "InsufficientCapacity" => Kind::Capacity(Short::Type),
        "ZonalAllocationFailed" => Kind::Capacity(Short::TypeInZone),
        "OverconstrainedAllocationRequest"
        | "OverconstrainedZonalAllocationRequest"
        | "SkuNotAvailable" => Kind::Capacity(Short::All),
        "SubnetIsFull" | "SubnetWithNoAvailableAddresses" => Kind::NoAddress,
        "QuotaExceeded" | "ResourceQuotaExceeded" => Kind::Quota(limit_of(message)),
        code if code.ends_with("CountLimitReached") => Kind::Quota(Limit::Whole),
        // One code for three things: a quota, too many calls, and a state that does not allow it.
        "OperationNotAllowed" if status == 429 => Kind::Throttled,
        "OperationNotAllowed" if is_about_quota(message) => Kind::Quota(limit_of(message)),
        "OperationNotAllowed" => Kind::Conflict,
        // A conflict, although its status is that of too many calls.
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
        | "MarketplacePurchaseEligibilityFailed" => Kind::Forbidden,
        "ResourceNotFound" | "NotFound" => Kind::NotFound,
        "ResourceGroupNotFound" | "PlatformImageNotFound" | "ImageNotFound" => Kind::Invalid,
        "InvalidResourceReference"
        | "InvalidParameter"
        | "BadRequest"
        | "LocationNotAvailableForResourceType" => Kind::Invalid,
        code if status == 404 && code.ends_with("NotFound") => Kind::NotFound,
        _ => of_status(status),
    }
}

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

fn is_about_quota(message: &str) -> bool {
    let message = message.to_lowercase();
    message.contains("quota") || message.contains("approved") && message.contains("cores")
}

/// Which quota the words are about: Azure has one code for all.
fn limit_of(message: &str) -> Limit {
    let message = message.to_lowercase();
    if message.contains("lowpriority")
        || message.contains("low priority")
        || message.contains("spot")
    {
        Limit::Spot
    } else if message.contains("family") {
        Limit::Family
    } else {
        Limit::Whole
    }
}

/// The field of a launch that a refusal is about, as far as its words tell.
pub(crate) fn field_of(code: &str, message: &str) -> &'static str {
    let words = message.to_lowercase();
    let about = |word: &str| words.contains(word);
    match code {
        "ResourceGroupNotFound" => "resource_group",
        "PlatformImageNotFound" | "ImageNotFound" => "image",
        "LocationNotAvailableForResourceType" => "location",
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
    fn one_code_means_what_its_status_and_its_words_say() {
        let quota = "Operation could not be completed as it results in exceeding approved standardDSv5Family Cores quota";
        let spot = "exceeding approved LowPriorityCores quota";
        let whole = "exceeding approved Total Regional Cores quota";
        let code = "OperationNotAllowed";
        assert_eq!(kind_of(code, 409, quota), Kind::Quota(Limit::Family));
        assert_eq!(kind_of(code, 409, spot), Kind::Quota(Limit::Spot));
        assert_eq!(kind_of(code, 409, whole), Kind::Quota(Limit::Whole));
        assert_eq!(kind_of(code, 429, ""), Kind::Throttled);
        assert_eq!(kind_of(code, 409, "the VM is generalized"), Kind::Conflict);
        let other = "RetryableErrorDueToAnotherOperation";
        assert_eq!(kind_of(other, 429, ""), Kind::Conflict);
        assert_eq!(kind_of("Unheard", 429, ""), Kind::Throttled);
        assert_eq!(kind_of("Unheard", 500, ""), Kind::Other);
        let limit = "PublicIPCountLimitReached";
        assert_eq!(kind_of(limit, 400, ""), Kind::Quota(Limit::Whole));
    }

    #[test]
    fn a_refusal_names_the_field_that_it_is_about() {
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
            ("Unheard", "", "config"),
        ];
        for (code, message, field) in cases {
            assert_eq!(field_of(code, message), field, "{code} {message}");
        }
    }
}
