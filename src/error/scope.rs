//! The part of the cloud that a failure applies to.
//!
//! Owns [`Scope`] and which launches a scope covers. A backend names the narrowest part that the cloud's
//! error is about; it never widens it, because a caller avoids everything in the scope.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    InstanceConfig, InstanceId, InstanceType, Market, NamePattern, NetworkId, TypeFamily, Zone,
};

/// The part of the cloud that a failure applies to.
///
/// A caller that avoids a scope must still try everything outside of it, so a scope is exactly what
/// the cloud's error is about: a type in a zone on a market for missing capacity, a family on a market
/// for a quota, a subnet without free addresses.
///
/// ```
/// use fleetwright::{InstanceConfig, Market, Scope, Zone};
///
/// let mut config = InstanceConfig::builder("image-1", "m7i.large").build()?;
/// config.placement.zone = Some(Zone::new("zone-a")?);
/// let scope = Scope::Offering {
///     instance_type: Some(config.instance_type.clone()),
///     zone: config.placement.zone.clone(),
///     market: Some(Market::OnDemand),
/// };
/// assert!(scope.covers(&config));
/// config.placement.zone = Some(Zone::new("zone-b")?);
/// assert!(!scope.covers(&config));
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scope {
    /// One instance.
    Instance(InstanceId),
    /// An offering. A field that is `None` means every type, zone or market.
    Offering {
        /// The instance type.
        instance_type: Option<InstanceType>,
        /// The zone.
        zone: Option<Zone>,
        /// The market.
        market: Option<Market>,
    },
    /// A type in the zone of a network or subnet, if the cloud does not say which zone that is.
    OfferingInNetwork {
        /// The instance type.
        instance_type: InstanceType,
        /// The network or subnet.
        network: NetworkId,
        /// The market. `None` means both.
        market: Option<Market>,
    },
    /// The instance types that share a quota.
    Family {
        /// The types.
        family: TypeFamily,
        /// The zones, if the backend launches in several regions. `None` means every zone.
        zones: Option<NamePattern>,
        /// The market. `None` means both.
        market: Option<Market>,
    },
    /// A network or subnet.
    Network(NetworkId),
    /// The whole region of the backend.
    Region,
    /// The whole account.
    Account,
}

impl Scope {
    /// Returns the scope of everything in one zone.
    pub const fn zone(zone: Zone) -> Self {
        Self::Offering {
            instance_type: None,
            zone: Some(zone),
            market: None,
        }
    }

    /// Returns the scope of everything on one market.
    pub const fn market(market: Market) -> Self {
        Self::Offering {
            instance_type: None,
            zone: None,
            market: Some(market),
        }
    }

    /// Returns the offering that `config` requests. A config without a market is on demand.
    pub fn of(config: &InstanceConfig) -> Self {
        let placement = &config.placement;
        let market = Some(placement.market.unwrap_or(Market::OnDemand));
        match (&placement.zone, &placement.network) {
            (None, Some(network)) => Self::OfferingInNetwork {
                instance_type: config.instance_type.clone(),
                network: network.clone(),
                market,
            },
            (zone, _) => Self::Offering {
                instance_type: Some(config.instance_type.clone()),
                zone: zone.clone(),
                market,
            },
        }
    }

    /// Returns whether a launch of `config` falls into this scope.
    ///
    /// A config without a market is on demand. A config that leaves zone or network to the backend is in
    /// no particular one: a scope that names one does not cover it.
    pub fn covers(&self, config: &InstanceConfig) -> bool {
        let placement = &config.placement;
        let requested_market = placement.market.unwrap_or(Market::OnDemand);
        let on_market = |market: &Option<Market>| market.is_none_or(|one| one == requested_market);
        match self {
            Self::Offering {
                instance_type,
                zone,
                market,
            } => {
                let of_type = |wanted: &_| *wanted == config.instance_type;
                let in_zone = |wanted| placement.zone.as_ref() == Some(wanted);
                instance_type.as_ref().is_none_or(of_type)
                    && zone.as_ref().is_none_or(in_zone)
                    && on_market(market)
            }
            Self::OfferingInNetwork {
                instance_type,
                network,
                market,
            } => {
                *instance_type == config.instance_type
                    && placement.network.as_ref() == Some(network)
                    && on_market(market)
            }
            Self::Family {
                family,
                zones,
                market,
            } => {
                let in_zone = |zones: &NamePattern| {
                    let zone = placement.zone.as_ref();
                    zone.is_some_and(|zone| zones.matches(zone.as_str()))
                };
                family.contains(&config.instance_type)
                    && zones.as_ref().is_none_or(in_zone)
                    && on_market(market)
            }
            Self::Network(network) => placement.network.as_ref() == Some(network),
            Self::Region | Self::Account => true,
            Self::Instance(_) => false,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instance(id) => write!(f, "instance {id}"),
            Self::Offering {
                instance_type,
                zone,
                market,
            } => {
                let mut words = Vec::new();
                words.extend(instance_type.as_ref().map(|t| format!("type {t}")));
                words.extend(zone.as_ref().map(|z| format!("zone {z}")));
                words.extend(market.map(|m| market_word(m).to_owned()));
                if words.is_empty() {
                    f.write_str("every offering")
                } else {
                    f.write_str(&words.join(" "))
                }
            }
            Self::OfferingInNetwork {
                instance_type,
                network,
                market,
            } => {
                write!(f, "type {instance_type} in the zone of network {network}")?;
                write_market(f, *market)
            }
            Self::Family {
                family,
                zones,
                market,
            } => {
                write!(f, "types {family}")?;
                if let Some(zones) = zones {
                    write!(f, " zones {zones}")?;
                }
                write_market(f, *market)
            }
            Self::Network(id) => write!(f, "network {id}"),
            Self::Region => f.write_str("region"),
            Self::Account => f.write_str("account"),
        }
    }
}

const fn market_word(market: Market) -> &'static str {
    match market {
        Market::OnDemand => "on demand",
        Market::Spot => "spot",
    }
}

fn write_market(f: &mut fmt::Formatter<'_>, market: Option<Market>) -> fmt::Result {
    market.map_or(Ok(()), |market| write!(f, " {}", market_word(market)))
}

#[cfg(test)]
mod tests;
