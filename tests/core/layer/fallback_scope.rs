//! Which alternatives are tried after an error, on a backend that chooses zones and networks itself.

use std::sync::Mutex;

use fleetwright::{
    Capabilities, CloudInstanceState, ErrorKind, InstanceConfig, InstanceFilter, InstanceId,
    InstanceInfo, InstanceProvisioner, InstanceStatus, LaunchRecord, LaunchToken, Market,
    NamePattern, NetworkId, Operation, Result, Scope, TagLimits, TypeFamily, Zone, async_trait,
    layer::{Alternative, FallbackPolicy},
};
use proptest::{collection::vec, option, prelude::*, sample::select};

use super::{fallback::wrap, plain};
use crate::fake::{call, id};

/// The zones with the subnet that a launch into the zone gets.
const SUBNETS: [(&str, &str); 3] = [("a", "net-a"), ("b", "net-b"), ("c", "net-c")];

/// A backend without capacity or quota in some scopes. Without zone and network it launches in the
/// first zone.
#[derive(Debug)]
struct Pools {
    capabilities: Capabilities,
    short: Vec<(ErrorKind, Scope)>,
    sent: Mutex<Vec<(InstanceConfig, Option<Scope>)>>,
}

impl Pools {
    fn new(short: impl IntoIterator<Item = (ErrorKind, Scope)>) -> Self {
        Self {
            capabilities: Capabilities::new("pools", TagLimits::new(9, 99, 99), 99),
            short: short.into_iter().collect(),
            sent: Mutex::default(),
        }
    }

    /// Returns the first scope without capacity that the chosen zone and network of a config are in.
    fn shortage(&self, config: &InstanceConfig) -> Option<&(ErrorKind, Scope)> {
        let placed = placed(config);
        self.short.iter().find(|(_, scope)| scope.covers(&placed))
    }

    fn sent(&self) -> Vec<(InstanceConfig, Option<Scope>)> {
        self.sent.lock().unwrap().clone()
    }
}

/// Returns a config with the zone and network that the backend chooses for it.
fn placed(config: &InstanceConfig) -> InstanceConfig {
    let mut config = config.clone();
    let placement = &mut config.placement;
    let of_network = |network: &NetworkId| SUBNETS.iter().find(|one| one.1 == network.as_str());
    let of_zone = |zone: &Zone| SUBNETS.iter().find(|one| one.0 == zone.as_str());
    let (zone, network) = match (&placement.zone, &placement.network) {
        (Some(zone), _) => of_zone(zone),
        (None, Some(network)) => of_network(network),
        (None, None) => SUBNETS.first(),
    }
    .unwrap();
    placement.zone.get_or_insert(Zone::new(zone).unwrap());
    placement
        .network
        .get_or_insert(NetworkId::new(network).unwrap());
    config
}

#[async_trait]
impl InstanceProvisioner for Pools {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let shortage = self.shortage(config);
        let scope = shortage.map(|(_, scope)| scope.clone());
        self.sent.lock().unwrap().push((config.clone(), scope));
        let call = call(Operation::LaunchInstance);
        match shortage {
            None => Ok(InstanceInfo::new(id("i-1"), CloudInstanceState::Running)),
            Some((ErrorKind::Quota, scope)) => Err(call.quota(scope.clone(), "used up")),
            Some((_, scope)) => Err(call.capacity(scope.clone(), "none")),
        }
    }

    async fn terminate_instance(&self, _: &InstanceId) -> Result<()> {
        Err(call(Operation::TerminateInstance).unsupported())
    }

    async fn stop_instance(&self, _: &InstanceId) -> Result<()> {
        Err(call(Operation::StopInstance).unsupported())
    }

    async fn start_instance(&self, _: &InstanceId) -> Result<InstanceInfo> {
        Err(call(Operation::StartInstance).unsupported())
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        Ok(InstanceStatus::new(id.clone(), CloudInstanceState::Running))
    }

    async fn list_instances(&self, _: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        Ok(Vec::new())
    }

    async fn find_launch(&self, _: &LaunchToken) -> Result<LaunchRecord> {
        Ok(LaunchRecord::NotFound)
    }
}

fn family(patterns: &[&str], market: Option<Market>) -> Scope {
    Scope::Family {
        family: TypeFamily::new(patterns.iter().copied()),
        zones: None,
        market,
    }
}

/// Launches with these alternatives and returns image, type, zone, network and market of each launch.
async fn sent(
    short: impl IntoIterator<Item = (ErrorKind, Scope)>,
    alternatives: Vec<Alternative>,
) -> (Result<InstanceInfo>, Vec<String>) {
    let fallback = wrap(Pools::new(short), FallbackPolicy::new(alternatives));
    let launched = fallback.launch_instance(&plain()).await;
    let words = |config: InstanceConfig| {
        let placement = config.placement;
        let zone = placement
            .zone
            .map_or("-".to_owned(), |zone| zone.to_string());
        let network = placement
            .network
            .map_or("-".to_owned(), |one| one.to_string());
        let market = if placement.market == Some(Market::Spot) {
            " spot"
        } else {
            ""
        };
        format!(
            "{} {} {zone} {network}{market}",
            config.image, config.instance_type
        )
    };
    let sent = fallback
        .inner()
        .sent()
        .into_iter()
        .map(|(config, _)| words(config));
    (launched, sent.collect())
}

#[tokio::test(start_paused = true)]
async fn alternative_changes_image_and_network() {
    let alternatives = vec![
        Alternative::new("requested"),
        Alternative::new("arm")
            .instance_type("arm.small")
            .unwrap()
            .image("image-arm")
            .unwrap(),
        Alternative::new("other subnet").network("net-c").unwrap(),
        Alternative::new("other image").image("image-2").unwrap(),
    ];
    let everywhere = (ErrorKind::Capacity, Scope::Instance(id("i-9")));
    let (launched, _) = sent([everywhere], alternatives.clone()).await;
    launched.unwrap();
    // One type has no capacity in one zone; the same type in another subnet is another zone.
    let small_in_a = Scope::Offering {
        instance_type: Some("small".parse().unwrap()),
        zone: Some(Zone::new("a").unwrap()),
        market: Some(Market::OnDemand),
    };
    let arm = family(&["arm.*"], None);
    let short = [(ErrorKind::Capacity, small_in_a), (ErrorKind::Quota, arm)];
    let (launched, sent) = sent(short, alternatives).await;
    launched.unwrap();
    assert_eq!(
        sent,
        [
            "image-1 small - -",
            "image-arm arm.small - -",
            "image-1 small - net-c"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn full_subnet_of_a_zone_is_tried_once() {
    let types = ["small", "medium", "big", "huge"];
    let mut alternatives: Vec<_> = types
        .map(|name| {
            Alternative::new(name)
                .instance_type(name)
                .unwrap()
                .zone("b")
                .unwrap()
        })
        .into();
    alternatives.push(
        Alternative::new("elsewhere")
            .zone("b")
            .unwrap()
            .network("net-c")
            .unwrap(),
    );
    let full = Scope::Network(NetworkId::new("net-b").unwrap());
    let (launched, sent) = sent([(ErrorKind::Capacity, full)], alternatives).await;
    launched.unwrap();
    assert_eq!(sent, ["image-1 small b -", "image-1 small b net-c"]);
}

#[tokio::test(start_paused = true)]
async fn shortage_in_a_chosen_subnet_leaves_other_zones() {
    let alternatives = vec![
        Alternative::new("requested"),
        Alternative::new("b").zone("b").unwrap(),
        Alternative::new("c").zone("c").unwrap(),
    ];
    let in_network = Scope::OfferingInNetwork {
        instance_type: "small".parse().unwrap(),
        network: NetworkId::new("net-a").unwrap(),
        market: None,
    };
    let (launched, sent) = sent([(ErrorKind::Capacity, in_network)], alternatives).await;
    launched.unwrap();
    assert_eq!(sent, ["image-1 small - -", "image-1 small b -"]);
}

#[tokio::test(start_paused = true)]
async fn quota_of_a_family_leaves_other_families_and_markets() {
    let of_type = |name: &str| Alternative::new(name).instance_type(name).unwrap();
    let alternatives = || {
        vec![
            of_type("m5.large"),
            of_type("c5.large"),
            of_type("m5.large").zone("b").unwrap(),
            of_type("m5.large").market(Market::Spot),
            of_type("g5.large"),
        ]
    };
    let on_demand = (
        ErrorKind::Quota,
        family(&["m#*", "c#*"], Some(Market::OnDemand)),
    );
    let (launched, tried) = sent([on_demand.clone()], alternatives()).await;
    launched.unwrap();
    assert_eq!(tried, ["image-1 m5.large - -", "image-1 m5.large - - spot"]);
    let spot = (ErrorKind::Quota, Scope::market(Market::Spot));
    let (launched, tried) = sent([on_demand, spot], alternatives()).await;
    launched.unwrap();
    assert_eq!(
        tried,
        [
            "image-1 m5.large - -",
            "image-1 m5.large - - spot",
            "image-1 g5.large - -"
        ]
    );
    // No alternative needs less of the region or the account.
    for whole in [Scope::Region, Scope::Account] {
        let (launched, sent) = sent([(ErrorKind::Quota, whole.clone())], alternatives()).await;
        let error = launched.unwrap_err();
        assert_eq!(
            (error.kind(), error.scopes()),
            (ErrorKind::Quota, &[whole][..])
        );
        assert_eq!(sent.len(), 1);
    }
}

fn markets() -> impl Strategy<Value = Market> {
    select(&[Market::OnDemand, Market::Spot])
}

fn zones() -> impl Strategy<Value = &'static str> {
    select(&["a", "b", "c"])
}

fn networks() -> impl Strategy<Value = &'static str> {
    select(&["net-a", "net-b", "net-c"])
}

fn types() -> impl Strategy<Value = &'static str> {
    select(&["m5.large", "m7.large", "g5.large"])
}

fn alternatives() -> impl Strategy<Value = Vec<Alternative>> {
    let one = (
        option::of(types()),
        option::of(zones()),
        option::of(networks()),
        option::of(markets()),
    );
    let one = one.prop_map(|(instance_type, zone, network, market)| {
        let mut one = Alternative::new("one");
        if let Some(name) = instance_type {
            one = one.instance_type(name).unwrap();
        }
        if let Some(name) = zone {
            one = one.zone(name).unwrap();
        }
        if let Some(name) = network {
            one = one.network(name).unwrap();
        }
        if let Some(market) = market {
            one = one.market(market);
        }
        one
    });
    vec(one, 1..8)
}

fn scopes() -> impl Strategy<Value = Scope> {
    let offering = (
        option::of(types()),
        option::of(zones()),
        option::of(markets()),
    );
    let offering = offering.prop_map(|(name, zone, market)| Scope::Offering {
        instance_type: name.map(|name| name.parse().unwrap()),
        zone: zone.map(|zone| zone.parse().unwrap()),
        market,
    });
    let in_network = (types(), networks(), option::of(markets()));
    let in_network = in_network.prop_map(|(name, network, market)| Scope::OfferingInNetwork {
        instance_type: name.parse().unwrap(),
        network: network.parse().unwrap(),
        market,
    });
    let network = networks().prop_map(|network| Scope::Network(network.parse().unwrap()));
    let zones = option::of(select(&["a*", "b*"]));
    let of_family = (zones, option::of(markets())).prop_map(|(zones, market)| Scope::Family {
        family: TypeFamily::new(["m#*"]),
        zones: zones.map(NamePattern::new),
        market,
    });
    prop_oneof![offering, in_network, network, of_family]
}

proptest! {
    /// With exact scopes, the first alternative that is possible is launched, and no launch is sent into
    /// a scope that is known to be short.
    #[test]
    fn first_possible_alternative_is_launched_and_no_scope_is_tried_twice(
        alternatives in alternatives(),
        short in vec((select(&[ErrorKind::Capacity, ErrorKind::Quota]), scopes()), 0..5),
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        let (launched, sent) = runtime.block_on(async {
            let policy = FallbackPolicy::new(alternatives.clone());
            let fallback = wrap(Pools::new(short.clone()), policy);
            let launched = fallback.launch_instance(&plain()).await;
            (launched, fallback.inner().sent())
        });
        // A backend that launches everything shows the configs in their order.
        let all: Vec<_> = alternatives.iter().map(|one| {
            let policy = FallbackPolicy::new([one.clone()]);
            let fallback = wrap(Pools::new([]), policy);
            futures_util::FutureExt::now_or_never(fallback.launch_instance(&plain()));
            fallback.inner().sent().remove(0).0
        }).collect();
        let pools = Pools::new(short);
        let possible = all.iter().find(|config| pools.shortage(config).is_none());
        prop_assert_eq!(launched.is_ok(), possible.is_some());
        if let Some(possible) = possible {
            prop_assert_eq!(&sent.last().unwrap().0, possible);
        }
        for (at, (config, scope)) in sent.iter().enumerate() {
            let Some(scope) = scope else { continue };
            for (later, _) in &sent[at + 1..] {
                let placement = |one: &InstanceConfig| (one.placement.zone.clone(), one.placement.network.clone());
                let same_choice = placement(later) == placement(config) && scope.covers(&placed(later));
                prop_assert!(!scope.covers(later) && !same_choice, "{scope}: {later:?}");
            }
        }
    }
}
