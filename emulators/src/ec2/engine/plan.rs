//! What a launch needs, looked up and checked before anything is made.

use super::{
    Engine,
    image::ImageRecord,
    launch::{DeviceOrder, Order},
    read,
    storage::Device,
};
use crate::ec2::{
    catalog::{Subnet, TypeSpec},
    error::Refusal,
};

/// An order whose every name is known.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) image: ImageRecord,
    pub(crate) spec: TypeSpec,
    /// Where it may be launched; never empty.
    pub(crate) places: Vec<Subnet>,
    pub(crate) groups: Vec<String>,
    pub(crate) devices: Vec<Device>,
}

impl Engine {
    pub(super) fn plan(&self, order: &Order) -> Result<Plan, Refusal> {
        let image = self.image_for_launch(&order.image)?.clone();
        let spec = self.spec(&order.instance_type)?.clone();
        if spec.architecture != image.architecture {
            return Err(Refusal::invalid(format!(
                "The architecture '{}' of the specified instance type does not match the architecture '{}' of the \
                 specified AMI. Specify an instance type and an AMI that have matching architectures, and try again.",
                spec.architecture, image.architecture
            )));
        }
        self.check_key(order.key_name.as_deref())?;
        self.check_profile(order.profile.as_deref())?;
        Ok(Plan {
            places: self.places(order, &spec)?,
            groups: self.groups(&order.groups)?,
            devices: devices(&image, &order.devices)?,
            image,
            spec,
        })
    }

    /// A type of the catalog.
    pub(super) fn spec(&self, name: &str) -> Result<&TypeSpec, Refusal> {
        let known = self.core.knobs.types.iter().find(|spec| spec.name == name);
        known.ok_or_else(|| Refusal::invalid(format!("Invalid value '{name}' for InstanceType.")))
    }

    /// The subnets in which an order may be carried out, the preferred first.
    fn places(&self, order: &Order, spec: &TypeSpec) -> Result<Vec<Subnet>, Refusal> {
        let subnets = &self.core.knobs.subnets;
        let asked: Vec<&Subnet> = if let Some(id) = &order.subnet {
            vec![self.subnet(id)?]
        } else {
            let zones = &self.core.knobs.zones;
            if let Some(zone) = order.zone.as_ref().filter(|zone| !zones.contains(zone)) {
                return Err(Refusal::invalid(format!(
                    "Invalid availability zone: [{zone}]"
                )));
            }
            let wanted = zones
                .iter()
                .filter(|zone| order.zone.as_ref().is_none_or(|only| only == *zone));
            wanted
                .filter_map(|zone| subnets.iter().find(|subnet| subnet.zone == *zone))
                .collect()
        };
        let Some(first) = asked.first() else {
            let message = "No default subnet for availability zone: 'null'.";
            return Err(Refusal::client("MissingInput", message));
        };
        if let Some(zone) = order.zone.as_ref().filter(|zone| first.zone != **zone) {
            return Err(Refusal::invalid(format!(
                "The subnet '{}' is not in the zone '{zone}'.",
                first.id
            )));
        }
        let offered: Vec<Subnet> = asked
            .iter()
            .filter(|subnet| spec.is_in(&subnet.zone))
            .copied()
            .cloned()
            .collect();
        if offered.is_empty() {
            let message = format!(
                "Your requested instance type ({}) is not supported in your requested Availability Zone ({}). Please \
                 retry your request by not specifying an Availability Zone.",
                spec.name, first.zone
            );
            return Err(Refusal::client("Unsupported", message));
        }
        Ok(offered)
    }

    pub(super) fn subnet(&self, id: &str) -> Result<&Subnet, Refusal> {
        let known = self
            .core
            .knobs
            .subnets
            .iter()
            .find(|subnet| subnet.id == id);
        known.ok_or_else(|| Refusal::not_found("InvalidSubnetID.NotFound", "subnet", &[id]))
    }

    /// The ids of groups, or the default group if none is asked for.
    fn groups(&self, asked: &[String]) -> Result<Vec<String>, Refusal> {
        let known = &self.core.knobs.security_groups;
        if asked.is_empty() {
            return Ok(known.iter().take(1).map(|group| group.id.clone()).collect());
        }
        read::check_ids(asked, "sg", "InvalidGroupId.Malformed")?;
        let unknown = asked
            .iter()
            .find(|id| !known.iter().any(|group| group.id == **id));
        match unknown {
            None => Ok(asked.to_vec()),
            Some(id) => {
                let message = format!("The security group '{id}' does not exist");
                Err(Refusal::client("InvalidGroup.NotFound", message))
            }
        }
    }

    fn check_key(&self, name: Option<&str>) -> Result<(), Refusal> {
        let Some(name) = name else { return Ok(()) };
        if self
            .core
            .knobs
            .key_pairs
            .iter()
            .any(|pair| pair.name == name)
        {
            return Ok(());
        }
        let message = format!("The key pair '{name}' does not exist");
        Err(Refusal::client("InvalidKeyPair.NotFound", message))
    }

    fn check_profile(&self, profile: Option<&str>) -> Result<(), Refusal> {
        let Some(profile) = profile else {
            return Ok(());
        };
        let name = profile.rsplit('/').next().unwrap_or(profile);
        let known = &self.core.knobs.instance_profiles;
        if known.is_empty() || known.contains(name) {
            return Ok(());
        }
        let message = format!(
            "Value ({profile}) for parameter iamInstanceProfile is invalid. Invalid IAM Instance Profile name"
        );
        Err(Refusal::invalid(message))
    }
}

/// The image's root volume, changed as asked, and what is asked for besides.
fn devices(image: &ImageRecord, orders: &[DeviceOrder]) -> Result<Vec<Device>, Refusal> {
    let bad = |message: String| Err(Refusal::client("InvalidBlockDeviceMapping", message));
    let mut devices = vec![Device {
        name: image.root_device.clone(),
        gib: image.root_gib,
        kind: "gp3".to_owned(),
        snapshot: Some(image.snapshot.clone()),
        iops: None,
        encrypted: false,
        goes_with_instance: true,
    }];
    for (number, order) in orders.iter().enumerate() {
        let name = &order.name;
        if orders.iter().take(number).any(|other| other.name == *name) {
            return bad(format!(
                "The device '{name}' is used in more than one block-device mapping"
            ));
        }
        if *name == image.root_device {
            if order.absent {
                return bad(format!("The root device '{name}' can not be left out"));
            }
            if let Some(gib) = order.gib.filter(|gib| *gib < image.root_gib) {
                return bad(format!(
                    "Volume of size {gib}GB is smaller than snapshot '{}', expect size >= {}GB",
                    image.snapshot, image.root_gib
                ));
            }
            if let Some(root) = devices.first_mut() {
                root.change(order);
            }
        } else if !order.absent {
            let Some(gib) = order.gib else {
                return bad(format!(
                    "The device '{name}' needs a size or a snapshot of this account"
                ));
            };
            let mut device = Device::new(name, gib);
            device.change(order);
            devices.push(device);
        }
    }
    Ok(devices)
}
