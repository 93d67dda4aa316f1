//! What a launch token has launched. Pure.
//!
//! Owns how the instances of one launch token are grouped by launch, and which launch is the token's own
//! if there are several. There are several only if handles with different options used the token in
//! different zones at the same moment.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::types::Instance;
use fleetwright::Fingerprint;

use crate::{convert, state};

/// The instances of one `RunInstances` call, in the order of that call. Never empty.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// The instances.
    pub(crate) instances: Vec<Instance>,
}

/// When a launch happened: EC2's time in seconds, then the lowest id. Orders the launches of a token the
/// same way for every reader.
pub(crate) type Age = (i64, String);

impl Launch {
    /// Creates a launch. `None` without instances.
    pub(crate) fn new(mut instances: Vec<Instance>) -> Option<Self> {
        instances.sort_by_key(|instance| instance.ami_launch_index());
        (!instances.is_empty()).then_some(Self { instances })
    }

    /// Returns whether any of its instances is neither terminating nor terminated.
    pub(crate) fn is_alive(&self) -> bool {
        self.instances.iter().any(is_alive)
    }

    /// Returns the fingerprint of its config. EC2 removes the tags of a terminated instance before the
    /// instance itself.
    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        self.instances.iter().find_map(convert::fingerprint)
    }

    /// Returns whether both have an instance in common.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let others: BTreeSet<_> = other.ids().collect();
        self.ids().any(|id| others.contains(id))
    }

    fn ids(&self) -> impl Iterator<Item = &str> {
        self.instances.iter().filter_map(Instance::instance_id)
    }

    /// Returns when it happened.
    pub(crate) fn age(&self) -> Age {
        let seconds = self.instances.iter().map(launched_at).min();
        let id = self.ids().min().unwrap_or_default().to_owned();
        (seconds.unwrap_or(i64::MAX), id)
    }
}

/// Sorts the instances of a token by launch, the token's own launch first: a live one before an ended one,
/// then the oldest.
pub(crate) fn launches(instances: Vec<Instance>) -> Vec<Launch> {
    // EC2 keeps client tokens by zone, so one client token can have launched in several zones.
    let mut by_launch: BTreeMap<(Option<String>, Option<String>), Vec<Instance>> = BTreeMap::new();
    for instance in instances {
        let zone = instance.placement().and_then(|at| at.availability_zone());
        let key = (instance.client_token.clone(), zone.map(ToOwned::to_owned));
        by_launch.entry(key).or_default().push(instance);
    }
    let mut launches: Vec<_> = by_launch.into_values().filter_map(Launch::new).collect();
    launches.sort_by_key(|launch| (!launch.is_alive(), launch.age()));
    launches
}

/// Returns the instances of the token's launches that a caller must know: all launches that are alive, or
/// the first one if none is.
pub(crate) fn visible(mut launches: Vec<Launch>) -> Vec<Instance> {
    let alive = launches.iter().filter(|launch| launch.is_alive()).count();
    launches.truncate(alive.max(1));
    launches
        .into_iter()
        .flat_map(|launch| launch.instances)
        .collect()
}

fn is_alive(instance: &Instance) -> bool {
    let name = instance.state().and_then(|state| state.name());
    name.is_none_or(|name| !state::normalize(name.as_str()).is_ending())
}

/// Returns when an instance was launched, in seconds. A start of a stopped instance replaces its launch time,
/// but not the time at which its first network card was attached.
fn launched_at(instance: &Instance) -> i64 {
    let cards = instance.network_interfaces().iter();
    let attached = cards.filter_map(|card| card.attachment()?.attach_time());
    let times = attached.chain(instance.launch_time());
    times.map(|time| time.secs()).min().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_ec2::{
        primitives::DateTime,
        types::{
            InstanceNetworkInterface, InstanceNetworkInterfaceAttachment, InstanceState,
            InstanceStateName, Placement,
        },
    };

    fn instance(id: &str, zone: &str, seconds: i64, state: &str) -> Instance {
        let name = InstanceStateName::from(state);
        Instance::builder()
            .instance_id(id)
            .client_token("t")
            .placement(Placement::builder().availability_zone(zone).build())
            .launch_time(DateTime::from_secs(seconds))
            .state(InstanceState::builder().name(name).build())
            .build()
    }

    fn ids(instances: &[Instance]) -> Vec<&str> {
        instances.iter().filter_map(Instance::instance_id).collect()
    }

    #[test]
    fn oldest_live_launch_is_first_and_the_id_decides_a_tie() {
        let all = vec![
            instance("i-4", "a", 1, "terminated"),
            instance("i-3", "b", 5, "running"),
            instance("i-2", "c", 5, "pending"),
            instance("i-1", "d", 9, "running"),
        ];
        let sorted = launches(all.clone());
        let sorted: Vec<_> = sorted
            .iter()
            .map(|launch| ids(&launch.instances)[0])
            .collect();
        assert_eq!(sorted, ["i-2", "i-3", "i-1", "i-4"]);
        assert_eq!(ids(&visible(launches(all.clone()))), ["i-2", "i-3", "i-1"]);
        assert_eq!(ids(&visible(launches(all[..1].to_vec()))), ["i-4"]);
        assert!(visible(Vec::new()).is_empty());
    }

    #[test]
    fn batch_is_one_launch_in_its_order() {
        let mut batch = vec![
            instance("i-1", "a", 3, "running"),
            instance("i-2", "a", 3, "terminated"),
        ];
        batch[0].ami_launch_index = Some(1);
        batch[1].ami_launch_index = Some(0);
        let launches = launches(batch);
        assert_eq!(launches.len(), 1);
        assert_eq!(ids(&launches[0].instances), ["i-2", "i-1"]);
        assert!(launches[0].is_alive() && launches[0].is_same(&launches[0]));
    }

    #[test]
    fn age_survives_a_restart_of_the_instance() {
        let attachment = InstanceNetworkInterfaceAttachment::builder()
            .attach_time(DateTime::from_secs(2))
            .build();
        let card = InstanceNetworkInterface::builder().attachment(attachment);
        let mut restarted = instance("i-1", "a", 50, "running");
        restarted.network_interfaces = Some(vec![card.build()]);
        let launch = Launch::new(vec![restarted]).unwrap();
        assert_eq!(launch.age(), (2, "i-1".to_owned()));
    }
}
