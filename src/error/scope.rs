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
mod tests {
    use super::*;
    use proptest::{option, prelude::*, sample::select};

    fn name<T: std::str::FromStr<Err = crate::InvalidValue> + fmt::Debug>(
        names: &'static [&'static str],
    ) -> impl Strategy<Value = T> {
        select(names).prop_map(|name| name.parse().unwrap_or_else(|error| panic!("{error}")))
    }

    fn types() -> impl Strategy<Value = InstanceType> {
        name(&["m5.large", "m7i.large", "g5.large"])
    }

    fn zones() -> impl Strategy<Value = Zone> {
        name(&["a", "b"])
    }

    fn networks() -> impl Strategy<Value = NetworkId> {
        name(&["net-1", "net-2"])
    }

    fn markets() -> impl Strategy<Value = Market> {
        select(&[Market::OnDemand, Market::Spot])
    }

    fn configs() -> impl Strategy<Value = InstanceConfig> {
        let placement = (
            option::of(zones()),
            option::of(networks()),
            option::of(markets()),
        );
        (types(), placement).prop_map(|(instance_type, (zone, network, market))| {
            let image = crate::ImageId::new("image").unwrap();
            let mut config = InstanceConfig::new(image, instance_type);
            config.placement.zone = zone;
            config.placement.network = network;
            config.placement.market = market;
            config
        })
    }

    fn scopes() -> impl Strategy<Value = Scope> {
        let offering = (
            option::of(types()),
            option::of(zones()),
            option::of(markets()),
        );
        let offering = offering.prop_map(|(instance_type, zone, market)| Scope::Offering {
            instance_type,
            zone,
            market,
        });
        let in_network = (types(), networks(), option::of(markets()));
        let in_network =
            in_network.prop_map(
                |(instance_type, network, market)| Scope::OfferingInNetwork {
                    instance_type,
                    network,
                    market,
                },
            );
        let patterns = select(&["m#*", "g#*", "*"]);
        let zone_patterns = option::of(select(&["a*", "*"]));
        let family = (patterns, zone_patterns, option::of(markets()));
        let family = family.prop_map(|(pattern, zones, market)| Scope::Family {
            family: TypeFamily::new([pattern]),
            zones: zones.map(NamePattern::new),
            market,
        });
        prop_oneof![
            offering,
            in_network,
            family,
            networks().prop_map(Scope::Network),
            Just(Scope::Region),
            Just(Scope::Account),
            Just(Scope::Instance(InstanceId::new("i-1").unwrap())),
        ]
    }

    /// Returns each scope that has one field of `scope` less, and so covers more.
    fn wider(scope: &Scope) -> Vec<Scope> {
        match scope.clone() {
            Scope::Offering {
                instance_type,
                zone,
                market,
            } => {
                let offering = |instance_type, zone, market| Scope::Offering {
                    instance_type,
                    zone,
                    market,
                };
                vec![
                    offering(None, zone.clone(), market),
                    offering(instance_type.clone(), None, market),
                    offering(instance_type, zone, None),
                ]
            }
            Scope::OfferingInNetwork {
                instance_type,
                network,
                market,
            } => vec![
                Scope::Network(network.clone()),
                Scope::OfferingInNetwork {
                    instance_type: instance_type.clone(),
                    network,
                    market: None,
                },
                Scope::Offering {
                    instance_type: Some(instance_type),
                    zone: None,
                    market,
                },
            ],
            Scope::Family {
                family,
                zones,
                market,
            } => vec![
                Scope::Family {
                    family: family.clone(),
                    zones: None,
                    market,
                },
                Scope::Family {
                    family,
                    zones,
                    market: None,
                },
                market.map_or(Scope::Region, Scope::market),
            ],
            Scope::Network(_) | Scope::Instance(_) => vec![Scope::Region],
            Scope::Region => vec![Scope::Account],
            Scope::Account => Vec::new(),
        }
    }

    proptest! {
        #[test]
        fn scope_of_a_config_covers_it(config in configs()) {
            prop_assert!(Scope::of(&config).covers(&config));
        }

        #[test]
        fn wider_scope_covers_at_least_as_much(scope in scopes(), config in configs()) {
            for wider in wider(&scope) {
                prop_assert!(!scope.covers(&config) || wider.covers(&config), "{scope} {wider}");
            }
        }

        #[test]
        fn scope_reads_only_type_zone_network_and_market(scope in scopes(), config in configs()) {
            let mut other = config.clone();
            other.image = crate::ImageId::new("another").unwrap();
            other.tags.insert("a", "b").unwrap();
            other.launch_token = Some("t".parse().unwrap());
            prop_assert_eq!(scope.covers(&config), scope.covers(&other));
        }

        #[test]
        fn covered_config_has_every_named_field(scope in scopes(), config in configs()) {
            if !scope.covers(&config) {
                return Ok(());
            }
            let placement = &config.placement;
            let on_demand_if_unset = placement.market.unwrap_or(Market::OnDemand);
            let markets = |market: Option<Market>| market.is_none_or(|one| one == on_demand_if_unset);
            match scope {
                Scope::Offering { instance_type, zone, market } => {
                    prop_assert!(instance_type.is_none_or(|one| one == config.instance_type));
                    prop_assert!(zone.is_none() || zone == placement.zone);
                    prop_assert!(markets(market));
                }
                Scope::OfferingInNetwork { instance_type, network, market } => {
                    prop_assert_eq!(instance_type, config.instance_type);
                    prop_assert_eq!(Some(network), placement.network.clone());
                    prop_assert!(markets(market));
                }
                Scope::Family { family, zones, market } => {
                    let zone = placement.zone.as_ref().map_or("", Zone::as_str);
                    prop_assert!(family.contains(&config.instance_type) && markets(market));
                    prop_assert!(zones.is_none_or(|zones| zones.matches(zone)));
                }
                Scope::Network(network) => prop_assert_eq!(Some(network), placement.network.clone()),
                Scope::Region | Scope::Account => {}
                Scope::Instance(_) => prop_assert!(false, "an instance is no launch"),
            }
        }

        #[test]
        fn scopes_round_trip(scope in scopes()) {
            let json = serde_json::to_string(&scope).unwrap();
            prop_assert_eq!(serde_json::from_str::<Scope>(&json).unwrap(), scope);
        }
    }
}
