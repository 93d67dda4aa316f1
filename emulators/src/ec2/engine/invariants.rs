//! Invariants that hold after every call. For tests only: the unit tests check them after each
//! step.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Engine,
    record::{Key, State},
};
use crate::{cloud::records::Record as _, ec2::knobs::Market};

impl Engine {
    /// Panics if the state of the region is inconsistent.
    pub(crate) fn check_invariants(&self) {
        self.check_index();
        self.check_machines();
        self.check_attachments();
        self.check_addresses();
        self.check_tokens();
    }

    /// Every instance is under each of its keys, and under no state that none of its versions has.
    fn check_index(&self) {
        let all: Vec<_> = self.instances.find(&[Key::All], 0).collect();
        assert_eq!(all, self.instances.keys().copied().collect::<Vec<_>>());
        assert_eq!(self.by_id.len(), self.instances.len());
        for (seq, instance) in self.instances.iter() {
            assert_eq!(self.by_id.get(&instance.fixed.id), Some(seq));
            for key in instance.keys() {
                assert!(
                    self.instances
                        .find(&[key], seq - 1)
                        .any(|found| found == *seq)
                );
            }
        }
        for state in State::ALL {
            for seq in self.instances.find(&[Key::State(state)], 0) {
                let instance = &self.instances[&seq];
                assert!(
                    instance
                        .versions
                        .iter()
                        .any(|version| version.state == state)
                );
            }
        }
    }

    /// The machines in use are those of the instances, and no capacity rule is exceeded.
    ///
    /// Pending, running and stopping instances have a machine; stopped and terminated ones do not.
    fn check_machines(&self) {
        let mut counted = BTreeMap::new();
        for instance in self.instances.values() {
            let version = instance.current();
            match version.state {
                State::Pending | State::Running | State::Stopping => {
                    assert!(instance.holds_machine);
                }
                State::Stopped | State::Terminated => assert!(!instance.holds_machine),
                // It has a machine, unless it was stopped before.
                State::ShuttingDown => {}
            }
            if instance.holds_machine {
                let kind = (version.instance_type.clone(), instance.fixed.zone.clone());
                *counted
                    .entry((kind.0, kind.1, instance.fixed.market))
                    .or_insert(0) += 1;
            }
        }
        assert_eq!(self.machines_in_use(), counted);
        for rule in &self.core.knobs.capacity {
            let of_rule = |(kind, zone, market): &(String, String, Market)| {
                rule.instance_type.as_ref().is_none_or(|only| only == kind)
                    && rule.zone.as_ref().is_none_or(|only| only == zone)
                    && rule.market.is_none_or(|only| only == *market)
            };
            let used: u64 = counted
                .iter()
                .filter(|(kind, _)| of_rule(kind))
                .map(|(_, n)| n)
                .sum();
            assert!(used <= rule.machines, "{used} of {rule:?}");
        }
    }

    /// Instances and their volumes and interfaces name each other, and a terminated instance has
    /// none.
    fn check_attachments(&self) {
        for instance in self.instances.values() {
            let ended = instance.current().state == State::Terminated;
            assert!(!ended || (instance.volumes.is_empty() && instance.nics.is_empty()));
            for volume in instance.volumes.iter().map(|seq| &self.volumes[seq]) {
                assert_eq!(volume.attached_to.as_ref(), Some(&instance.fixed.id));
            }
            for nic in instance.nics.iter().map(|seq| &self.nics[seq]) {
                assert_eq!(nic.attached_to.as_ref(), Some(&instance.fixed.id));
            }
        }
        for (seq, volume) in &self.volumes {
            let owner = volume.attached_to.as_ref();
            let owner = owner.map(|id| self.instance(id).expect("attached to something"));
            assert!(owner.is_none_or(|instance| instance.volumes.contains(seq)));
        }
        assert_eq!(self.volume_ids.len(), self.volumes.len());
        assert_eq!(self.nic_ids.len(), self.nics.len());
    }

    /// No address is used twice, and only running instances have a public one.
    fn check_addresses(&self) {
        let private: BTreeSet<_> = self.nics.values().map(|nic| nic.private_ip).collect();
        assert_eq!(private.len(), self.nics.len());
        let public = self
            .instances
            .values()
            .filter_map(|i| i.current().public_ip);
        let public: Vec<_> = public.collect();
        assert_eq!(public.iter().collect::<BTreeSet<_>>().len(), public.len());
        for instance in self.instances.values() {
            let version = instance.current();
            assert!(version.public_ip.is_none() || version.state == State::Running);
        }
    }

    /// The count of live instances of every token is right.
    fn check_tokens(&self) {
        for (key, (alive, instances)) in self.known_tokens() {
            let living = instances.iter().filter_map(|seq| self.instances.get(seq));
            let living = living.filter(|i| i.current().state != State::Terminated);
            assert_eq!(alive, living.count(), "{key:?}");
        }
    }
}
