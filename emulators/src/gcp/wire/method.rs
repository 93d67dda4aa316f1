//! The methods that the emulator supports, by the names of Google's discovery document.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A method of the API. In JSON it is its name, for example `instances.insert`.
///
/// ```
/// use fleetwright_emulators::gcp::Method;
/// assert_eq!(Method::InstancesInsert.name(), "instances.insert");
/// assert_eq!(Method::from_name("instances.insert"), Some(Method::InstancesInsert));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Method {
    /// Lists the static addresses of all regions: always empty.
    AddressesAggregatedList,
    /// Lists the static addresses of a region: always empty.
    AddressesList,
    /// Lists the disk types of all zones.
    DiskTypesAggregatedList,
    /// Returns a disk type.
    DiskTypesGet,
    /// Lists the disk types of a zone.
    DiskTypesList,
    /// Lists the disks of all zones.
    DisksAggregatedList,
    /// Deletes a disk that is not attached.
    DisksDelete,
    /// Returns a disk.
    DisksGet,
    /// Lists the disks of a zone.
    DisksList,
    /// Lists the operations of all zones and regions, and the global ones.
    GlobalOperationsAggregatedList,
    /// Returns a global operation.
    GlobalOperationsGet,
    /// Lists the global operations, which are those of images.
    GlobalOperationsList,
    /// Waits for a global operation.
    GlobalOperationsWait,
    /// Deletes an image.
    ImagesDelete,
    /// Returns an image.
    ImagesGet,
    /// Returns the newest image of a family.
    ImagesGetFromFamily,
    /// Creates an image of a disk.
    ImagesInsert,
    /// Lists the images of a project.
    ImagesList,
    /// Lists the instances of all zones.
    InstancesAggregatedList,
    /// Creates many instances in a zone.
    InstancesBulkInsert,
    /// Deletes an instance.
    InstancesDelete,
    /// Returns an instance.
    InstancesGet,
    /// Returns the output of a serial port.
    InstancesGetSerialPortOutput,
    /// Creates an instance.
    InstancesInsert,
    /// Lists the instances of a zone.
    InstancesList,
    /// Reboots an instance at once.
    InstancesReset,
    /// Resumes a suspended instance.
    InstancesResume,
    /// Replaces the labels of an instance.
    InstancesSetLabels,
    /// Changes the machine type of a stopped instance.
    InstancesSetMachineType,
    /// Replaces the metadata of an instance.
    InstancesSetMetadata,
    /// Starts a stopped instance.
    InstancesStart,
    /// Stops an instance.
    InstancesStop,
    /// Suspends a running instance.
    InstancesSuspend,
    /// Lists the machine types of all zones.
    MachineTypesAggregatedList,
    /// Returns a machine type.
    MachineTypesGet,
    /// Lists the machine types of a zone.
    MachineTypesList,
    /// Returns a network.
    NetworksGet,
    /// Lists the networks.
    NetworksList,
    /// Returns a project.
    ProjectsGet,
    /// Returns an operation of a region.
    RegionOperationsGet,
    /// Lists the operations of a region.
    RegionOperationsList,
    /// Waits for an operation of a region.
    RegionOperationsWait,
    /// Returns a region with its quotas.
    RegionsGet,
    /// Lists the regions.
    RegionsList,
    /// Lists the subnetworks of all regions.
    SubnetworksAggregatedList,
    /// Returns a subnetwork.
    SubnetworksGet,
    /// Lists the subnetworks of a region.
    SubnetworksList,
    /// Returns an operation of a zone.
    ZoneOperationsGet,
    /// Lists the operations of a zone.
    ZoneOperationsList,
    /// Waits for an operation of a zone.
    ZoneOperationsWait,
    /// Returns a zone.
    ZonesGet,
    /// Lists the zones.
    ZonesList,
}

impl Method {
    /// All methods, sorted by name.
    pub const ALL: [Self; 52] = [
        Self::AddressesAggregatedList,
        Self::AddressesList,
        Self::DiskTypesAggregatedList,
        Self::DiskTypesGet,
        Self::DiskTypesList,
        Self::DisksAggregatedList,
        Self::DisksDelete,
        Self::DisksGet,
        Self::DisksList,
        Self::GlobalOperationsAggregatedList,
        Self::GlobalOperationsGet,
        Self::GlobalOperationsList,
        Self::GlobalOperationsWait,
        Self::ImagesDelete,
        Self::ImagesGet,
        Self::ImagesGetFromFamily,
        Self::ImagesInsert,
        Self::ImagesList,
        Self::InstancesAggregatedList,
        Self::InstancesBulkInsert,
        Self::InstancesDelete,
        Self::InstancesGet,
        Self::InstancesGetSerialPortOutput,
        Self::InstancesInsert,
        Self::InstancesList,
        Self::InstancesReset,
        Self::InstancesResume,
        Self::InstancesSetLabels,
        Self::InstancesSetMachineType,
        Self::InstancesSetMetadata,
        Self::InstancesStart,
        Self::InstancesStop,
        Self::InstancesSuspend,
        Self::MachineTypesAggregatedList,
        Self::MachineTypesGet,
        Self::MachineTypesList,
        Self::NetworksGet,
        Self::NetworksList,
        Self::ProjectsGet,
        Self::RegionOperationsGet,
        Self::RegionOperationsList,
        Self::RegionOperationsWait,
        Self::RegionsGet,
        Self::RegionsList,
        Self::SubnetworksAggregatedList,
        Self::SubnetworksGet,
        Self::SubnetworksList,
        Self::ZoneOperationsGet,
        Self::ZoneOperationsList,
        Self::ZoneOperationsWait,
        Self::ZonesGet,
        Self::ZonesList,
    ];

    /// Returns the name, which fault rules, token buckets and call counts use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AddressesAggregatedList => "addresses.aggregatedList",
            Self::AddressesList => "addresses.list",
            Self::DiskTypesAggregatedList => "diskTypes.aggregatedList",
            Self::DiskTypesGet => "diskTypes.get",
            Self::DiskTypesList => "diskTypes.list",
            Self::DisksAggregatedList => "disks.aggregatedList",
            Self::DisksDelete => "disks.delete",
            Self::DisksGet => "disks.get",
            Self::DisksList => "disks.list",
            Self::GlobalOperationsAggregatedList => "globalOperations.aggregatedList",
            Self::GlobalOperationsGet => "globalOperations.get",
            Self::GlobalOperationsList => "globalOperations.list",
            Self::GlobalOperationsWait => "globalOperations.wait",
            Self::ImagesDelete => "images.delete",
            Self::ImagesGet => "images.get",
            Self::ImagesGetFromFamily => "images.getFromFamily",
            Self::ImagesInsert => "images.insert",
            Self::ImagesList => "images.list",
            Self::InstancesAggregatedList => "instances.aggregatedList",
            Self::InstancesBulkInsert => "instances.bulkInsert",
            Self::InstancesDelete => "instances.delete",
            Self::InstancesGet => "instances.get",
            Self::InstancesGetSerialPortOutput => "instances.getSerialPortOutput",
            Self::InstancesInsert => "instances.insert",
            Self::InstancesList => "instances.list",
            Self::InstancesReset => "instances.reset",
            Self::InstancesResume => "instances.resume",
            Self::InstancesSetLabels => "instances.setLabels",
            Self::InstancesSetMachineType => "instances.setMachineType",
            Self::InstancesSetMetadata => "instances.setMetadata",
            Self::InstancesStart => "instances.start",
            Self::InstancesStop => "instances.stop",
            Self::InstancesSuspend => "instances.suspend",
            Self::MachineTypesAggregatedList => "machineTypes.aggregatedList",
            Self::MachineTypesGet => "machineTypes.get",
            Self::MachineTypesList => "machineTypes.list",
            Self::NetworksGet => "networks.get",
            Self::NetworksList => "networks.list",
            Self::ProjectsGet => "projects.get",
            Self::RegionOperationsGet => "regionOperations.get",
            Self::RegionOperationsList => "regionOperations.list",
            Self::RegionOperationsWait => "regionOperations.wait",
            Self::RegionsGet => "regions.get",
            Self::RegionsList => "regions.list",
            Self::SubnetworksAggregatedList => "subnetworks.aggregatedList",
            Self::SubnetworksGet => "subnetworks.get",
            Self::SubnetworksList => "subnetworks.list",
            Self::ZoneOperationsGet => "zoneOperations.get",
            Self::ZoneOperationsList => "zoneOperations.list",
            Self::ZoneOperationsWait => "zoneOperations.wait",
            Self::ZonesGet => "zones.get",
            Self::ZonesList => "zones.list",
        }
    }

    /// Returns the method with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

impl Serialize for Method {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Method {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        Self::from_name(&name).ok_or_else(|| de::Error::custom(format!("no method {name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_lead_back() {
        assert!(Method::ALL.is_sorted_by_key(|method| method.name()));
        for method in Method::ALL {
            assert_eq!(Method::from_name(method.name()), Some(method));
            let text = serde_json::to_string(&method).unwrap();
            assert_eq!(serde_json::from_str::<Method>(&text).unwrap(), method);
        }
        assert_eq!(Method::from_name("instances.Insert"), None);
        assert!(serde_json::from_str::<Method>("\"insert\"").is_err());
    }
}
