//! What Compute Engine's capacity and quota errors are about. Pure.
//!
//! Owns how a launch and Google's message become a [`Scope`]. It must never be wider than the error,
//! because callers avoid everything inside it. Quotas are per region: of a family of machine types, of
//! spot instances, or of the region; a few are global.
//!
//! | quota in the message | scope |
//! | --- | --- |
//! | `CPUS` | machine types without a quota of their own, on the market of the launch |
//! | `N2_CPUS` and the like, `CPUS_PER_VM_FAMILY` | types of that series, on the market of the launch |
//! | `PREEMPTIBLE_CPUS` and other `PREEMPTIBLE_` ones | spot instances |
//! | `CPUS_ALL_REGIONS`, or the word `globally` | the account |
//! | any other, such as `IN_USE_ADDRESSES` | the region |
//!
//! Sources: mesosphere-backup/terraform-dcos#61 (`CPUS` in a region),
//! GoogleCloudPlatform/pubsec-declarative-toolkit#627 (`N2_CPUS` used up, E2 launches),
//! fastai/course-v3#165 (global), state-of-the-art/BlendNet#139 (spot instances use `CPUS` where the
//! project has no spot quota), and Google's page "Allocation quotas". The reference of `Operation` (`QuotaExceededInfo`)
//! describes `CPUS_PER_VM_FAMILY`: the one metric of all newer series, with the series as a dimension.

use fleetwright::{InstanceConfig, Market, NamePattern, Scope, TypeFamily};
use fleetwright_provider_support::ErrorContext;

use crate::address::region_of;

/// Returns the offering of a launch, for a capacity error.
pub(crate) fn offering(context: &ErrorContext<'_>) -> Scope {
    let zone = context.zone.cloned();
    let Some(config) = context.config else {
        return zone.map_or(Scope::Region, Scope::zone);
    };
    Scope::Offering {
        instance_type: Some(config.instance_type.clone()),
        zone: zone.or_else(|| config.placement.zone.clone()),
        market: Some(config.placement.market.unwrap_or(Market::OnDemand)),
    }
}

/// Returns the network of a launch. Its addresses are used up for every instance type.
pub(crate) fn network(context: &ErrorContext<'_>) -> Scope {
    let network = context.network.cloned();
    network.map_or_else(|| offering(context), Scope::Network)
}

/// Returns the scope of the quota that a message names.
pub(crate) fn quota(context: &ErrorContext<'_>, message: &str) -> Scope {
    let metric = metric(message);
    if message.contains("globally") || metric.is_some_and(|it| it.ends_with("_ALL_REGIONS")) {
        return Scope::Account;
    }
    let zones = region(context, message).map(|region| NamePattern::new(format!("{region}-*")));
    let market = context.config.map(|config| config.placement.market);
    let market = market.map(|market| market.unwrap_or(Market::OnDemand));
    let (family, market) = match metric {
        Some(metric) if metric.starts_with("PREEMPTIBLE_") => (all_types(), Some(Market::Spot)),
        // A spot launch needs this quota if the project has none for spot. Then it is short for both.
        Some("CPUS") => (
            shared_types(),
            market.filter(|one| *one == Market::OnDemand),
        ),
        Some(metric) => match series(context, metric, message) {
            Some(series) => (
                series_types(&series),
                market.filter(|one| *one == Market::OnDemand),
            ),
            None => (all_types(), None),
        },
        None => (all_types(), None),
    };
    // What was refused is always a part of the scope.
    let is_outside = |config: &InstanceConfig| !family.contains(&config.instance_type);
    let family = match context.config {
        Some(config) if is_outside(config) => series_types(&series_of(config)),
        Some(_) | None => family,
    };
    if zones.is_none() && family == all_types() && market.is_none() {
        return Scope::Region;
    }
    Scope::Family {
        family,
        zones,
        market,
    }
}

/// Returns the series that a quota of vCPUs or of local disks is for.
fn series(context: &ErrorContext<'_>, metric: &str, message: &str) -> Option<String> {
    if !metric.ends_with("_PER_VM_FAMILY") {
        return metric.strip_suffix("_CPUS").map(ToOwned::to_owned);
    }
    let named = message.split_once("vm_family:").map(|(_, rest)| {
        let rest = rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
        rest[..end.unwrap_or(rest.len())].to_owned()
    });
    named.or_else(|| context.config.map(series_of))
}

/// Returns the series of a launch's machine type.
fn series_of(config: &InstanceConfig) -> String {
    let name = config.instance_type.as_str();
    name.split('-').next().unwrap_or(name).to_owned()
}

/// Returns the quota in a message such as "Quota 'CPUS' exceeded.  Limit: 8.0 in region us-east1."
fn metric(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("Quota '")?;
    let (metric, _) = rest.split_once('\'')?;
    Some(metric)
}

/// Returns the region of a quota: the one in the message, or else that of the launch.
fn region<'a>(context: &ErrorContext<'a>, message: &'a str) -> Option<&'a str> {
    let named = message.split_once("in region ").and_then(|(_, rest)| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let name = &rest[..end.unwrap_or(rest.len())];
        name.contains('-').then_some(name)
    });
    named.or_else(|| context.zone.map(region_of))
}

/// Every machine type.
fn all_types() -> TypeFamily {
    TypeFamily::new(["*"])
}

/// The machine types that share the quota `CPUS`. All later series have a quota of their own.
fn shared_types() -> TypeFamily {
    TypeFamily::new(["e2-*", "n1-*", "f1-*", "g1-*", "custom-*"])
}

/// The machine types of one series.
fn series_types(series: &str) -> TypeFamily {
    TypeFamily::new([format!("{}-*", series.to_ascii_lowercase())])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(instance_type: &str, zone: &str, market: Market) -> InstanceConfig {
        let mut config = InstanceConfig::builder("debian", instance_type)
            .build()
            .unwrap();
        config.placement.zone = Some(zone.parse().unwrap());
        config.placement.market = Some(market);
        config
    }

    #[test]
    fn quota_covers_what_shares_it_and_nothing_else() {
        let on = |instance_type| config(instance_type, "us-central1-a", Market::OnDemand);
        let spot = |instance_type| config(instance_type, "us-central1-a", Market::Spot);
        let other_region = config("e2-micro", "europe-west1-b", Market::OnDemand);
        let cases: [(&str, InstanceConfig, &[InstanceConfig], &[InstanceConfig]); 10] = [
            (
                "Quota 'CPUS' exceeded.  Limit: 8.0 in region us-central1.",
                on("e2-micro"),
                &[on("e2-micro"), on("n1-standard-1")],
                &[on("n2-standard-2"), spot("e2-micro"), other_region.clone()],
            ),
            (
                "Quota 'CPUS' exceeded.  Limit: 8.0 in region us-central1.",
                spot("e2-micro"),
                &[on("e2-micro"), spot("n1-standard-1")],
                &[on("n2-standard-2"), other_region.clone()],
            ),
            (
                "Quota 'N2_CPUS' exceeded.  Limit: 8.0 in region us-central1.",
                on("n2-standard-2"),
                &[on("n2-custom-4-8192")],
                &[on("n2d-standard-2"), on("e2-micro"), spot("n2-standard-2")],
            ),
            (
                "Quota 'CPUS_PER_VM_FAMILY' exceeded.  Limit: 0.0 in region us-central1. dimensions = map[region:us-central1 vm_family:C4]",
                on("c4-standard-8"),
                &[on("c4-highcpu-2")],
                &[on("c4a-standard-1"), on("e2-micro"), spot("c4-standard-8")],
            ),
            (
                "Quota 'CPUS_PER_VM_FAMILY' exceeded.",
                on("c3-standard-8"),
                &[on("c3-highcpu-4")],
                &[on("c3d-standard-4"), on("n2-standard-2")],
            ),
            (
                "Quota 'CPUS' exceeded.  Limit: 8.0 in region us-central1.",
                on("n9-standard-2"),
                &[on("n9-standard-4")],
                &[on("n2-standard-2")],
            ),
            (
                "Quota 'PREEMPTIBLE_CPUS' exceeded.  Limit: 0.0 in region us-central1.",
                spot("e2-micro"),
                &[spot("n2-standard-2")],
                &[
                    on("e2-micro"),
                    config("e2-micro", "europe-west1-b", Market::Spot),
                ],
            ),
            (
                "Quota 'IN_USE_ADDRESSES' exceeded.  Limit: 4.0 in region us-central1.",
                on("e2-micro"),
                &[on("n2-standard-2"), spot("e2-micro")],
                std::slice::from_ref(&other_region),
            ),
            (
                "Quota 'CPUS_ALL_REGIONS' exceeded.  Limit: 12.0 globally.",
                on("e2-micro"),
                &[other_region.clone(), spot("n2-standard-2")],
                &[],
            ),
            (
                "used up",
                on("e2-micro"),
                &[spot("n2-standard-2")],
                std::slice::from_ref(&other_region),
            ),
        ];
        for (message, launched, covered, others) in cases {
            let context = ErrorContext {
                config: Some(&launched),
                zone: launched.placement.zone.as_ref(),
                ..ErrorContext::default()
            };
            let scope = quota(&context, message);
            assert!(scope.covers(&launched), "{message} {scope}");
            assert!(
                covered.iter().all(|one| scope.covers(one)),
                "{message} {scope}"
            );
            assert!(
                !others.iter().any(|one| scope.covers(one)),
                "{message} {scope}"
            );
        }
        assert_eq!(quota(&ErrorContext::default(), "used up"), Scope::Region);
        assert_eq!(quota(&ErrorContext::default(), "Quota 'X"), Scope::Region);
    }
}
