//! External actions on a subscription. They bypass the wire: no token, no throttling, no fault, no
//! call record.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Engine,
    disk_plan::DiskPlan,
    vm::{Power, Provisioning},
};
use crate::{
    azure::{
        error::Refusal,
        wire::{
            body::{DeleteOption, Tags},
            id::{Id, Kind},
            vm_body::VmBody,
        },
    },
    cloud::{fault::Failure, index::Seq},
};

/// The maximum number of virtual machines that one action creates.
const MAX_CREATED: u32 = 100_000;

/// An action of an external actor on a subscription, past the API.
///
/// An `id` is a resource id. In JSON, `action` is the name of the variant in snake case, for
/// example `{"action": "delete", "id": "/subscriptions/…"}`.
///
/// ```
/// use fleetwright_emulators::azure::{AzureEmulator, ExternalAction, Knobs};
///
/// let emulator = AzureEmulator::start(Knobs::default())?;
/// let create = serde_json::json!({ "action": "create_external", "count": 2 });
/// let create: ExternalAction = serde_json::from_value(create)?;
/// let ids = emulator.perform_external(create).expect("two virtual machines");
/// let tags = [("owner".to_owned(), "somebody".to_owned())].into();
/// let id = ids[0].clone();
/// emulator.perform_external(ExternalAction::SetTags { id, tags }).expect("new tags");
/// assert_eq!(emulator.oracle().vms[0].tags["owner"], "somebody");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ExternalAction {
    /// Creates virtual machines, each with an interface that is deleted with it.
    CreateExternal {
        /// Their names are this and a number.
        #[serde(default)]
        prefix: Option<String>,
        /// How many; by default 1.
        count: u32,
        /// Their tags.
        #[serde(default)]
        tags: Tags,
        /// The subscription; by default one of zeros.
        #[serde(default)]
        subscription: Option<String>,
        /// The resource group; by default the first.
        #[serde(default)]
        resource_group: Option<String>,
        /// The size; by default the first.
        #[serde(default)]
        size: Option<String>,
    },
    /// Creates a disk that is not attached, in the first location.
    CreateExternalDisk {
        /// Its id.
        id: String,
        /// Its size in GiB.
        gib: u32,
        /// Its tags.
        #[serde(default)]
        tags: Tags,
    },
    /// Begins to deallocate a virtual machine.
    Deallocate {
        /// Its id.
        id: String,
    },
    /// Begins to delete a virtual machine.
    Delete {
        /// Its id.
        id: String,
    },
    /// Evicts a spot machine, as its eviction policy says.
    Evict {
        /// Its id.
        id: String,
    },
    /// Shuts a running machine down from inside: it is stopped, and still allocated.
    GuestShutdown {
        /// Its id.
        id: String,
    },
    /// Marks the latest operation on a virtual machine as failed. The power state stays.
    Fail {
        /// Its id.
        id: String,
        /// The code of the reason.
        code: String,
        /// The message of the reason.
        message: String,
    },
    /// Replaces the tags of a virtual machine.
    SetTags {
        /// Its id.
        id: String,
        /// Its new tags.
        tags: Tags,
    },
}

impl Engine {
    /// Performs an external action, and returns the ids of the resources that it created or
    /// changed. The action does not count as a call.
    ///
    /// # Errors
    ///
    /// Those of the corresponding API call.
    pub(crate) fn perform(&mut self, action: ExternalAction) -> Result<Vec<String>, Refusal> {
        let paused = self.core.pause_observation();
        let result = self.perform_unobserved(action);
        self.core.resume_observation(&paused);
        result
    }

    /// Performs an external action.
    fn perform_unobserved(&mut self, action: ExternalAction) -> Result<Vec<String>, Refusal> {
        match action {
            ExternalAction::CreateExternal {
                prefix,
                count,
                tags,
                subscription,
                resource_group,
                size,
            } => {
                let subscription = subscription
                    .unwrap_or_else(|| "00000000-0000-0000-0000-000000000000".to_owned());
                let group = resource_group.or_else(|| {
                    let first = self.core.knobs.resource_groups.first();
                    first.map(|group| group.name.clone())
                });
                let prefix = prefix.unwrap_or_else(|| "external".to_owned());
                let place = Id::new(
                    Kind::VirtualMachine,
                    &subscription,
                    &group.unwrap_or_default(),
                    &prefix,
                );
                self.create_external(&place, count.min(MAX_CREATED), &tags, size.as_deref())
            }
            ExternalAction::CreateExternalDisk { id, gib, tags } => {
                let id = Id::read(Kind::Disk, &id)?;
                self.check_group(&id.subscription, &id.group)?;
                let plan = DiskPlan {
                    id,
                    existing: None,
                    lun: None,
                    gib,
                    sku: "Standard_LRS".to_owned(),
                    os_type: None,
                    delete: DeleteOption::Detach,
                };
                let first = self.core.knobs.locations.first();
                let location = first.map(|it| it.name.clone()).unwrap_or_default();
                self.create_disk(&plan, &location, None, tags);
                Ok(vec![plan.id.path()])
            }
            ExternalAction::Deallocate { id } => {
                self.with_vm(&id, |engine, id| engine.deallocate_vm(id).map(drop))
            }
            ExternalAction::Delete { id } => {
                self.with_vm(&id, |engine, id| engine.delete_vm(id).map(drop))
            }
            ExternalAction::Evict { id } => self.with_vm(&id, Self::evict_vm),
            ExternalAction::GuestShutdown { id } => self.with_vm(&id, Self::shut_down_guest),
            ExternalAction::Fail { id, code, message } => self.with_vm(&id, |engine, id| {
                let seq = engine.current_vm(id)?;
                engine.edit_vm(seq, |vm| {
                    vm.provisioning = Provisioning::Failed;
                    vm.failure = Some(Failure::new(code, message));
                });
                Ok(())
            }),
            ExternalAction::SetTags { id, tags } => self.with_vm(&id, |engine, id| {
                let seq = engine.current_vm(id)?;
                engine.edit_vm(seq, |vm| vm.tags = tags.into());
                Ok(())
            }),
        }
    }

    /// Applies an action to a virtual machine, and returns its id. 404 `ResourceNotFound` if it
    /// does not exist.
    fn with_vm(
        &mut self,
        path: &str,
        action: impl FnOnce(&mut Self, &Id) -> Result<(), Refusal>,
    ) -> Result<Vec<String>, Refusal> {
        let id = Id::read(Kind::VirtualMachine, path)?;
        self.current_vm(&id)?;
        action(self, &id)?;
        Ok(vec![id.path()])
    }

    /// Finds a virtual machine without lag.
    fn current_vm(&self, id: &Id) -> Result<Seq, Refusal> {
        self.vms.seq(id).ok_or_else(|| id.not_found())
    }

    /// Creates virtual machines whose names are a prefix and a number.
    fn create_external(
        &mut self,
        place: &Id,
        count: u32,
        tags: &Tags,
        size: Option<&str>,
    ) -> Result<Vec<String>, Refusal> {
        let body = self.external_body(place, tags, size)?;
        let mut created = Vec::new();
        for _ in 0..count {
            let number = self.names.count();
            let id = place.sibling(Kind::VirtualMachine, &format!("{}-{number}", place.name));
            self.create_vm(&id, &body, true)?;
            created.push(id.path());
        }
        Ok(created)
    }

    /// Returns a valid document with the first network, image and size of the catalog.
    fn external_body(
        &self,
        place: &Id,
        tags: &Tags,
        size: Option<&str>,
    ) -> Result<VmBody, Refusal> {
        let knobs = &self.core.knobs;
        let (Some(network), Some(image), Some(first)) = (
            knobs.virtual_networks.first(),
            knobs.images.first(),
            knobs.sizes.first(),
        ) else {
            let message = "There is no network, no image or no size to make it of.";
            return Err(Refusal::client("BadRequest", message));
        };
        let subnet = network.subnets.first().map(|subnet| &subnet.name);
        let network_path = format!(
            "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network/virtualNetworks/{}",
            place.subscription, network.resource_group, network.name
        );
        let subnet = subnet.map(|subnet| format!("{network_path}/subnets/{subnet}"));
        let body: Value = json!({
            "location": network.location,
            "tags": tags,
            "properties": {
                "hardwareProfile": { "vmSize": size.unwrap_or(&first.name) },
                "storageProfile": {
                    "imageReference": {
                        "publisher": image.publisher, "offer": image.offer, "sku": image.sku,
                        "version": image.version,
                    },
                    "osDisk": { "createOption": "FromImage", "deleteOption": "Delete" },
                },
                "osProfile": { "adminUsername": "somebody", "adminPassword": "else" },
                "networkProfile": {
                    "networkApiVersion": "2020-11-01",
                    "networkInterfaceConfigurations": [{
                        "name": "nic",
                        "properties": {
                            "primary": true, "deleteOption": "Delete",
                            "ipConfigurations": [{
                                "name": "ip", "properties": { "subnet": { "id": subnet } },
                            }],
                        },
                    }],
                },
            },
        });
        serde_json::from_value(body)
            .map_err(|error| Refusal::client("BadRequest", error.to_string()))
    }

    /// Stops a running machine as if its guest had shut down. 409 `OperationNotAllowed` unless it
    /// runs.
    fn shut_down_guest(&mut self, id: &Id) -> Result<(), Refusal> {
        let seq = self.current_vm(id)?;
        if self.vms.get(seq).and_then(|vm| vm.power) != Some(Power::Running) {
            let message = "The operation requires the VM to be running (or set to run).";
            return Err(Refusal::not_allowed(message));
        }
        self.edit_vm(seq, |vm| vm.power = Some(Power::Stopped));
        self.log(seq, "shut down from inside");
        Ok(())
    }
}
