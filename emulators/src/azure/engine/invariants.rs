//! Invariants that hold after every call. Compiled for tests only.

use std::collections::{BTreeMap, BTreeSet};

use super::{Engine, vm::Power};

impl Engine {
    /// Panics if the state of the subscriptions is inconsistent.
    pub(crate) fn check_invariants(&self) {
        self.check_machines();
        self.check_attachments();
        self.check_addresses();
        self.check_tasks();
    }

    /// Checks that capacity and quota count exactly the machines that exist, and that the power
    /// state and the allocation agree.
    fn check_machines(&self) {
        let (mut allocated, mut existing) = (BTreeMap::new(), BTreeMap::new());
        for (_, vm) in self.vms.iter() {
            if vm.allocated {
                *allocated.entry(vm.kind()).or_insert(0) += 1;
            }
            let place = (vm.location.clone(), vm.kind());
            *existing.entry(place).or_insert(0) += 1;
            match vm.power {
                Some(Power::Running | Power::Stopping | Power::Stopped) => {
                    assert!(vm.allocated);
                }
                Some(Power::Deallocated) => assert!(!vm.allocated),
                Some(Power::Starting | Power::Deallocating) | None => {}
            }
        }
        let counted = |(kind, count): (&_, u64)| (Clone::clone(kind), count);
        let machines: BTreeMap<_, _> = self.core.usage.in_use().map(counted).collect();
        assert_eq!(machines, allocated);
        let mut counted = BTreeMap::new();
        for (location, machines) in &self.existing {
            for (kind, count) in machines.in_use() {
                counted.insert((location.clone(), kind.clone()), count);
            }
        }
        assert_eq!(counted, existing);
    }

    /// Checks that machines, interfaces and disks refer to each other in both directions.
    fn check_attachments(&self) {
        for (_, vm) in self.vms.iter() {
            for nic in &vm.nics {
                let (_, nic) = self.nics.find(&nic.id).expect("its interface is there");
                assert_eq!(nic.attached.as_ref().map(|id| id.key()), Some(vm.id.key()));
            }
            for disk in &vm.disks {
                let (_, disk) = self.disks.find(&disk.id).expect("its disk is there");
                assert_eq!(disk.attached.as_ref().map(|id| id.key()), Some(vm.id.key()));
            }
        }
        for (_, nic) in self.nics.iter() {
            let Some(vm) = &nic.attached else { continue };
            let (_, vm) = self.vms.find(vm).expect("attached to something");
            assert!(vm.nics.iter().any(|it| it.id.key() == nic.id.key()));
        }
        for (_, disk) in self.disks.iter() {
            let Some(vm) = &disk.attached else { continue };
            let (_, vm) = self.vms.find(vm).expect("attached to something");
            let listed = vm.disks.iter().map(|it| &it.id).chain(&vm.detaching_disks);
            assert!(listed.map(|id| id.key()).any(|key| key == disk.id.key()));
        }
    }

    /// Checks that no address is used twice, and that every static public address has an address.
    fn check_addresses(&self) {
        let (mut private, mut public) = (BTreeSet::new(), BTreeSet::new());
        for (_, nic) in self.nics.iter() {
            for address in &nic.addresses {
                assert!(private.insert((address.subnet.to_ascii_lowercase(), address.private)));
                let Some((id, _)) = &address.public else {
                    continue;
                };
                let (_, ip) = self.ips.find(id).expect("its public address is there");
                assert_eq!(ip.attached, Some(nic.address_path(&address.name)));
            }
        }
        for (_, ip) in self.ips.iter() {
            assert!(ip.address.is_none_or(|address| public.insert(address)));
            assert!(!ip.is_static || ip.address.is_some());
        }
    }

    /// Checks that a virtual machine's operation is in progress and about that machine.
    fn check_tasks(&self) {
        assert_eq!(self.tasks.len(), self.task_ids.len());
        for (seq, vm) in self.vms.iter() {
            let Some(task) = vm.task else { continue };
            let task = &self.tasks[&task];
            assert_eq!((task.work.vm(), task.ended), (Some(seq), None));
        }
    }
}
