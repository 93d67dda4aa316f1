//! The private addresses of several instances.

use std::{collections::BTreeMap, net::IpAddr, num::NonZeroU32};

use fleetwright::{
    CloudInstanceState::{Running, Stopped},
    InstanceId, InstanceInfo, NetworkId,
};

use crate::{Context, Failure, Outcome, Pass, clauses::fields::truths, require};

/// LAUNCH-14: a backend must give the instances of one network that are not terminated different private
/// addresses.
///
/// Two instances with one address cannot be reached, and work that is meant for one goes to the other.
///
/// Launches two instances, stops one, launches a batch of two meanwhile, and starts the stopped one. Then compares
/// the addresses in the list and, if there is one, those of the oracle. Instances that are in different networks
/// may have the same address.
pub(crate) async fn launch_14_private_addresses_are_different(cx: &Context) -> Outcome {
    let two = NonZeroU32::MIN.saturating_add(1);
    let mut ids = cx.launch_many(2).await?;
    for id in &ids {
        cx.wait_for_state(id, Running).await?;
    }
    cx.stop(&ids[0]).await?;
    cx.wait_for_state(&ids[0], Stopped).await?;
    let batch = cx.provisioner().launch_instances(&cx.config(), two).await;
    let batch = batch.map_err(|error| Failure::call_failed("launch_instances", &error))?;
    ids.extend(batch.into_iter().map(|info| info.id));
    cx.start(&ids[0]).await?;
    for id in &ids {
        cx.wait_for_state(id, Running).await?;
    }
    cx.wait_for_consistent_reads().await;
    let listed = cx.list(&cx.filter()).await?;
    require_different_addresses(&listed, "the list shows")?;
    let truths = truths(cx).await.into_values().map(|truth| truth.info);
    let live: Vec<_> = truths.filter(|info| !info.state.is_final()).collect();
    require_different_addresses(&live, "the cloud has")?;
    Ok(Pass::Held)
}

/// Requires that no two of these instances have one address in one network.
fn require_different_addresses(infos: &[InstanceInfo], read: &str) -> Result<(), Failure> {
    let mut taken: BTreeMap<(Option<&NetworkId>, IpAddr), &InstanceId> = BTreeMap::new();
    for info in infos {
        let Some(address) = info.private_ip else {
            continue;
        };
        let place = (info.placement.network.as_ref(), address);
        let other = taken.insert(place, &info.id);
        require(other.is_none(), || {
            let other = other.map(ToString::to_string).unwrap_or_default();
            format!(
                "{read} the private address {address} for both {other} and {}",
                info.id
            )
        })?;
    }
    Ok(())
}
