//! The methods that the emulator supports, by the names of Google's discovery document.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A method of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant is the API method of that name")]
pub enum Method {
    AddressesAggregatedList,
    AddressesList,
    DiskTypesAggregatedList,
    DiskTypesGet,
    DiskTypesList,
    DisksAggregatedList,
    DisksDelete,
    DisksGet,
    DisksList,
    GlobalOperationsAggregatedList,
    GlobalOperationsGet,
    GlobalOperationsList,
    GlobalOperationsWait,
    ImagesDelete,
    ImagesGet,
    ImagesGetFromFamily,
    ImagesInsert,
    ImagesList,
    InstancesAggregatedList,
    InstancesBulkInsert,
    InstancesDelete,
    InstancesGet,
    InstancesGetSerialPortOutput,
    InstancesInsert,
    InstancesList,
    InstancesReset,
    InstancesResume,
    InstancesSetLabels,
    InstancesSetMachineType,
    InstancesSetMetadata,
    InstancesStart,
    InstancesStop,
    InstancesSuspend,
    MachineTypesAggregatedList,
    MachineTypesGet,
    MachineTypesList,
    NetworksGet,
    NetworksList,
    ProjectsGet,
    RegionOperationsGet,
    RegionOperationsList,
    RegionOperationsWait,
    RegionsGet,
    RegionsList,
    SubnetworksAggregatedList,
    SubnetworksGet,
    SubnetworksList,
    ZoneOperationsGet,
    ZoneOperationsList,
    ZoneOperationsWait,
    ZonesGet,
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
