//! Following a launch that the cloud has accepted, until it runs or has failed.
//!
//! Owns when a pending launch counts as failed. It only describes instances, and changes nothing: what
//! a crashed process followed, the next one finds by the launch token.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{LaunchOutput, Request};
use crate::{
    CloudInstanceState, ErrorKind, InstanceConfig, InstanceInfo, Market, ProvisionError, Scope,
    TypeFamily, ext::with_status,
};

/// The longest time that a launch is followed, 136 years, because an `Instant` can overflow.
pub(super) const MAX_TIME: Duration = Duration::from_secs(1 << 32);

/// Follows the instances of `launched` for `time`, and updates them. Returns early when none is pending.
///
/// # Errors
/// The failure of the launch, if an instance failed late. If other instances of it live, the error
/// carries them as survivors.
pub(super) async fn follow<T: LaunchOutput>(
    request: &Request<'_>,
    config: &InstanceConfig,
    mut launched: T,
    time: Duration,
) -> Result<T, ProvisionError> {
    let deadline = Instant::now() + time.min(MAX_TIME);
    let interval = request.capabilities().poll_interval;
    let interval = interval.max(Duration::from_millis(1));
    let instances = launched.instances();
    let pending = |info: &&InstanceInfo| info.state == CloudInstanceState::Pending;
    let mut open: Vec<_> = instances
        .iter()
        .filter(pending)
        .map(|info| info.id.clone())
        .collect();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if open.is_empty() || left.is_zero() {
            let failed = instances
                .iter()
                .find_map(|info| failure(request, config, info));
            let Some(error) = failed else {
                return Ok(launched);
            };
            let live = instances.iter().filter(|info| !has_ended(info));
            return Err(error.with_survivors(live.cloned().collect()));
        }
        sleep(interval.min(left)).await;
        let statuses = match &open[..] {
            [one] => vec![request.inner.describe_instance(one).await],
            many => request.inner.describe_instances(many).await,
        };
        // A failed read says nothing. The next one may.
        for status in statuses.into_iter().flatten() {
            let failed = status.launch_failure.is_some();
            // While one is terminating, its failure may not show yet.
            let still_open = [CloudInstanceState::Pending, CloudInstanceState::Terminating];
            if failed || !still_open.contains(&status.state) {
                open.retain(|id| *id != status.id);
            }
            // One that somebody terminated stays as the launch returned it: a launch returns no
            // terminated instance.
            let terminated = status.state.is_ending() && !failed;
            let mut infos = instances.iter_mut().filter(|_| !terminated);
            if let Some(info) = infos.find(|info| info.id == status.id) {
                *info = with_status(info.clone(), status);
            }
        }
    }
}

fn has_ended(info: &InstanceInfo) -> bool {
    info.launch_failure.is_some() || info.state.is_ending()
}

/// Returns the error of an instance that failed late.
fn failure(
    request: &Request<'_>,
    config: &InstanceConfig,
    info: &InstanceInfo,
) -> Option<ProvisionError> {
    let mut failure = info.launch_failure.clone()?;
    for scope in &mut failure.scopes {
        if failure.kind == ErrorKind::Capacity {
            narrow_capacity(scope, config);
        } else if failure.kind == ErrorKind::Quota {
            narrow_quota(scope, config);
        }
    }
    let reason = info.state_reason.as_deref();
    Some(request.call.launch_failed(&failure, reason))
}

/// Adds the type and market of the launch to a scope of missing capacity that names only a place, or none. The
/// cloud keeps no record of a launch that failed, so its backend may not know them.
fn narrow_capacity(scope: &mut Scope, config: &InstanceConfig) {
    if *scope == Scope::Region {
        *scope = Scope::of(config);
    }
    if let Scope::Offering {
        instance_type: instance_type @ None,
        market,
        ..
    } = scope
    {
        *instance_type = Some(config.instance_type.clone());
        market.get_or_insert(config.placement.market.unwrap_or(Market::OnDemand));
    }
}

/// Adds the market of the launch to a quota of some types whose market is not known. A quota that
/// holds for all types does not depend on the market.
fn narrow_quota(scope: &mut Scope, config: &InstanceConfig) {
    if let Scope::Family { family, market, .. } = scope {
        if *family != TypeFamily::new(["*"]) {
            market.get_or_insert(config.placement.market.unwrap_or(Market::OnDemand));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Zone;

    #[test]
    fn quota_of_some_types_is_narrowed_to_the_market() {
        let config = InstanceConfig::builder("image", "small").build().unwrap();
        for (pattern, expected) in [("s*", Some(Market::OnDemand)), ("*", None)] {
            let mut scope = Scope::Family {
                family: TypeFamily::new([pattern]),
                zones: None,
                market: None,
            };
            narrow_quota(&mut scope, &config);
            assert!(matches!(scope, Scope::Family { market, .. } if market == expected));
        }
    }

    #[test]
    fn place_without_capacity_is_narrowed_to_the_launch() {
        let config = InstanceConfig::builder("image", "small").build().unwrap();
        let zone = Zone::new("a").unwrap();
        let mut place = Scope::zone(zone.clone());
        narrow_capacity(&mut place, &config);
        let offering = Scope::Offering {
            instance_type: Some(config.instance_type.clone()),
            zone: Some(zone),
            market: Some(Market::OnDemand),
        };
        assert_eq!(place, offering);
        let mut nowhere = Scope::Region;
        narrow_capacity(&mut nowhere, &config);
        assert_eq!(nowhere, Scope::of(&config));
        let exact = Scope::Offering {
            instance_type: Some("big".parse().unwrap()),
            zone: None,
            market: None,
        };
        for other in [exact, Scope::Account] {
            let mut scope = other.clone();
            narrow_capacity(&mut scope, &config);
            assert_eq!(scope, other);
        }
    }
}
