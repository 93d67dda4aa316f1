//! Which launches a scope covers.

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
