//! Azure's failures. Pure.
//!
//! Owns which failures the provider handles itself, and the scope of an error. [`crate::reason`]
//! owns the meaning of codes. Operations have no HTTP status, so only their code counts.
//!
//! | failure | scope of the error |
//! | --- | --- |
//! | no capacity | type; type and zone; or type, zone and market, by the code |
//! | no address | the subnet |
//! | quota | the family on demand, one market, or the region, by the message |

use std::time::Duration;

use fleetwright::{InstanceType, Market, Scope, TypeFamily};
pub(crate) use fleetwright_provider_support::{Cause, ErrorContext};
use fleetwright_provider_support::{Class, Service};

use crate::reason::{CapacityScope, Kind, QuotaScope, field_of, kind_of};

/// A call to Azure that failed. Operations have no HTTP status.
pub(crate) type Failure = fleetwright_provider_support::Failure<Azure>;

/// The service, for the shared failure type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Azure {}

impl Service for Azure {
    const NAME: &'static str = "Azure";
    /// Azure nearly always says how long to wait.
    const RETRY_DELAY: Duration = Duration::from_secs(10);

    fn classify(failure: &Failure, context: &ErrorContext<'_>) -> Class {
        let (code, message) = (failure.code(), &failure.message);
        match kind_of(code, failure.status().unwrap_or_default(), message) {
            Kind::NotFound if context.instance.is_some() => Class::NotFound,
            Kind::NotFound | Kind::Invalid => Class::Invalid(field_of(code, message)),
            Kind::Capacity(short) => Class::Capacity(offering(context, short)),
            Kind::NotOffered if context.config.is_some() => {
                Class::Capacity(offering(context, CapacityScope::Type))
            }
            Kind::NotOffered => Class::Invalid(field_of(code, message)),
            Kind::NoAddress => {
                let network = context.network.cloned().map(Scope::Network);
                Class::Capacity(network.unwrap_or(Scope::Region))
            }
            Kind::Quota(limit) => Class::Quota(quota(context, limit)),
            Kind::Throttled => Class::Throttled,
            Kind::Unauthenticated => Class::Unauthenticated,
            Kind::Forbidden => Class::Forbidden,
            Kind::Conflict => Class::Conflict,
            Kind::Unsupported => Class::Unsupported,
            Kind::Other => Class::Other,
        }
    }
}

/// What the provider needs to know about a failure, beyond the shared error.
pub(crate) trait AzureFailure {
    /// Whether Azure reports that the resource does not exist. A 404 of a proxy does not count, nor
    /// one for a subscription that is no longer visible: its machines still exist.
    fn is_not_found(&self) -> bool;

    /// Whether Azure refused the creation of the machine `name` because it does not find that machine:
    /// it takes the creation for a change of a machine that it has just deleted.
    fn is_name_not_free(&self, name: &str) -> bool;

    /// Whether the resource group does not exist.
    fn is_group_missing(&self) -> bool;

    /// Whether Azure refused the call because a permission is missing.
    fn is_forbidden(&self) -> bool;

    /// Whether the call was refused because the name is taken or another operation runs.
    fn is_conflict(&self) -> bool;

    /// Whether another actor changed the resource since it was read.
    /// Machines have an etag, which detects it.
    fn is_stale(&self) -> bool;

    /// Whether a later operation replaced this one.
    /// For example, a stop cancels a start.
    fn is_overtaken(&self) -> bool;

    /// Whether a creation failed for lack of capacity, addresses or quota, so that the machine
    /// never had power.
    fn is_before_creation(&self) -> bool;

    /// Whether the call may have been refused because of the state of the machine.
    fn may_be_about_state(&self) -> bool;

    /// Whether a repetition of the same call can succeed soon.
    fn may_pass(&self) -> bool;
}

impl AzureFailure for Failure {
    fn is_not_found(&self) -> bool {
        let code = self.code();
        self.cause == Cause::Responded(404)
            && matches!(
                code,
                "ResourceNotFound"
                    | "NotFound"
                    | "ResourceGroupNotFound"
                    | "ParentResourceNotFound"
            )
    }

    fn is_name_not_free(&self, name: &str) -> bool {
        let message = self.message.to_lowercase();
        self.cause == Cause::Responded(404)
            && match self.code() {
                // An image that does not exist has the same code (Azure/vagrant-azure#147).
                "NotFound" => !message.contains("image"),
                "ResourceNotFound" => message.contains(&name.to_lowercase()),
                _ => false,
            }
    }

    fn is_group_missing(&self) -> bool {
        self.is_not_found() && self.code() == "ResourceGroupNotFound"
    }

    fn is_forbidden(&self) -> bool {
        self.cause == Cause::Responded(403) && self.code() == "AuthorizationFailed"
    }

    fn is_conflict(&self) -> bool {
        let code = self.code();
        matches!(self.cause, Cause::Responded(status) if kind_of(code, status, &self.message) == Kind::Conflict)
    }

    fn is_stale(&self) -> bool {
        self.cause == Cause::Responded(412)
    }

    fn is_overtaken(&self) -> bool {
        let code = self.code();
        matches!(self.cause, Cause::OperationFailed(_))
            && matches!(
                code,
                "OperationPreempted" | "OperationPreemptedByDelete" | "Canceled"
            )
    }

    fn is_before_creation(&self) -> bool {
        let code = self.code();
        matches!(
            kind_of(code, 0, &self.message),
            Kind::Capacity(_) | Kind::NotOffered | Kind::NoAddress | Kind::Quota(_)
        )
    }

    fn may_be_about_state(&self) -> bool {
        // An operation that failed was accepted, so its own status does not matter.
        let has_failed = matches!(self.cause, Cause::OperationFailed(_));
        let Some(status) = has_failed.then_some(409).or(self.status()) else {
            return false;
        };
        let code = self.code();
        match kind_of(code, status, &self.message) {
            Kind::Conflict | Kind::Invalid | Kind::NotFound => true,
            Kind::Other => status < 500,
            Kind::Capacity(_)
            | Kind::NotOffered
            | Kind::NoAddress
            | Kind::Quota(_)
            | Kind::Throttled
            | Kind::Unauthenticated
            | Kind::Unsupported
            | Kind::Forbidden => false,
        }
    }

    fn may_pass(&self) -> bool {
        self.is_transient(|status| status >= 500 || status == 429 || status == 408)
    }
}

/// Returns the part of the offering that has no capacity.
fn offering(context: &ErrorContext<'_>, short: CapacityScope) -> Scope {
    let Some(config) = context.config else {
        return context.zone.cloned().map_or(Scope::Region, Scope::zone);
    };
    let zone = context.zone.cloned();
    let market = config.placement.market.unwrap_or(Market::OnDemand);
    Scope::Offering {
        instance_type: Some(config.instance_type.clone()),
        zone: match short {
            CapacityScope::Type => None,
            CapacityScope::TypeInZone | CapacityScope::Offering => zone,
        },
        market: match short {
            CapacityScope::Type | CapacityScope::TypeInZone => None,
            CapacityScope::Offering => Some(market),
        },
    }
}

/// Returns the scope of a quota: another family, or another market, may have room. Spot machines have
/// one quota for all families, which does not count against the others.
fn quota(context: &ErrorContext<'_>, limit: QuotaScope) -> Scope {
    let instance_type = context.config.map(|config| config.instance_type.clone());
    match limit {
        QuotaScope::Family => instance_type.map_or(Scope::Region, |instance_type| Scope::Family {
            family: family(&instance_type),
            zones: None,
            market: Some(Market::OnDemand),
        }),
        QuotaScope::OnDemand => Scope::market(Market::OnDemand),
        QuotaScope::Spot => Scope::market(Market::Spot),
        QuotaScope::Region => Scope::Region,
    }
}

/// Returns the sizes that share a quota with this one: those that differ only in the number of their
/// cores, such as `Standard_D4s_v3` and `Standard_D16s_v3`.
fn family(instance_type: &InstanceType) -> TypeFamily {
    let parts = instance_type.as_str().splitn(3, '_');
    let parts: Vec<_> = parts.collect();
    let [tier, size, rest @ ..] = &parts[..] else {
        return TypeFamily::new([instance_type.as_str()]);
    };
    // A size with fewer cores than its machine has both numbers: `E8-4s`.
    let first_digit = |c: char| c.is_ascii_digit();
    let (letters, features) = size.split_at(size.find(first_digit).unwrap_or(size.len()));
    let features = features.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
    let end: String = rest.iter().map(|part| format!("_{part}")).collect();
    TypeFamily::new([
        format!("{tier}_{letters}#{features}{end}"),
        format!("{tier}_{letters}#-#{features}{end}"),
    ])
}

#[cfg(test)]
mod tests;
