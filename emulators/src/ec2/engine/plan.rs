//! The plan of a launch: everything it needs, looked up and checked before anything is created.
//!
//! A plan changes nothing. Capacity and quota are checked after it, because a dry run does not
//! need them.

use super::{
    Engine,
    image::ImageRecord,
    launch::{DeviceRequest, LaunchRequest},
    storage::{Device, Nic},
};
use crate::ec2::{
    catalog::{Subnet, TypeSpec, VPC},
    error::Refusal,
};

/// A launch request with all its names resolved.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The image, which is available.
    pub(crate) image: ImageRecord,
    /// The instance type.
    pub(crate) spec: TypeSpec,
    /// The subnets that are possible; never empty.
    pub(crate) subnets: Vec<Subnet>,
    /// The ids of the security groups.
    pub(crate) groups: Vec<String>,
    /// The volumes of each instance, the root volume first.
    pub(crate) devices: Vec<Device>,
}

impl Engine {
    /// Resolves and checks a launch request.
    ///
    /// # Errors
    ///
    /// `InvalidAMIID.NotFound`, `InvalidAMIID.Unavailable`, `InvalidKeyPair.NotFound`,
    /// `InvalidGroup.NotFound`, `InvalidSubnetID.NotFound`, `InvalidBlockDeviceMapping`,
    /// `Unsupported` for a type that no possible zone offers, and `InvalidParameterValue` for an
    /// unknown type, zone or profile.
    pub(super) fn plan(&self, request: &LaunchRequest) -> Result<Plan, Refusal> {
        let image = self.image_for_launch(&request.image)?.clone();
        let spec = self.spec(&request.instance_type)?.clone();
        if spec.architecture != image.architecture {
            return Err(Refusal::invalid(format!(
                "The architecture '{}' of the specified instance type does not match the architecture '{}' of the \
                 specified AMI. Specify an instance type and an AMI that have matching architectures, and try again.",
                spec.architecture, image.architecture
            )));
        }
        check_cpu(request, &spec)?;
        self.check_key(request.key_name.as_deref())?;
        self.check_profile(request.profile.as_deref())?;
        let subnets = self.subnets(request, &spec)?;
        self.check_private_ip(request, &subnets)?;
        let vpc = subnets.first().map_or(VPC, |subnet| &subnet.vpc);
        Ok(Plan {
            groups: self.groups(&request.groups, vpc)?,
            devices: devices(&image, &request.devices)?,
            image,
            spec,
            subnets,
        })
    }

    /// Returns an instance type of the catalog.
    ///
    /// # Errors
    ///
    /// `InvalidParameterValue` for an unknown name.
    pub(super) fn spec(&self, name: &str) -> Result<&TypeSpec, Refusal> {
        let known = self.core.knobs.types.iter().find(|spec| spec.name == name);
        known.ok_or_else(|| Refusal::invalid(format!("Invalid value '{name}' for InstanceType.")))
    }

    /// Returns the subnets that are possible for a launch, the preferred one first.
    ///
    /// Without a subnet these are the default subnets of the zones that offer the type.
    ///
    /// # Errors
    ///
    /// `InvalidParameterValue` for an unknown zone or a subnet of another zone, `MissingInput`
    /// without any subnet, `Unsupported` if no zone offers the type.
    fn subnets(&self, request: &LaunchRequest, spec: &TypeSpec) -> Result<Vec<Subnet>, Refusal> {
        let requested: Vec<&Subnet> = if let Some(id) = &request.subnet {
            vec![self.subnet(id)?]
        } else {
            let zones = &self.core.knobs.zones;
            if let Some(zone) = request.zone.as_ref().filter(|zone| !zones.contains(zone)) {
                return Err(Refusal::invalid(format!(
                    "Invalid availability zone: [{zone}]"
                )));
            }
            let needs_address = zones
                .iter()
                .filter(|zone| request.zone.as_ref().is_none_or(|only| only == *zone));
            needs_address
                .filter_map(|zone| self.default_subnet(zone))
                .collect()
        };
        let Some(first) = requested.first() else {
            let message = "No default subnet for availability zone: 'null'.";
            return Err(Refusal::client("MissingInput", message));
        };
        let checks = self.core.knobs.check_zone_of_subnet;
        let other = |zone: &&String| checks && first.zone != **zone;
        if let Some(zone) = request.zone.as_ref().filter(other) {
            return Err(Refusal::invalid(format!(
                "Value ({zone}) for parameter availabilityZone is invalid. Subnet '{}' is in the availability zone {}",
                first.id, first.zone
            )));
        }
        let offered: Vec<Subnet> = requested
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

    /// Returns the default subnet of a zone: the first one of the knobs, unless it was deleted.
    pub(crate) fn default_subnet(&self, zone: &str) -> Option<&Subnet> {
        let mut listed = self.core.knobs.subnets.iter();
        let first = listed.find(|subnet| subnet.zone == zone && subnet.vpc == VPC)?;
        self.network.subnets.get(&first.id)
    }

    /// Returns a subnet by its id.
    ///
    /// # Errors
    ///
    /// `InvalidSubnetID.NotFound`
    pub(crate) fn subnet(&self, id: &str) -> Result<&Subnet, Refusal> {
        let known = self.network.subnets.get(id);
        known.ok_or_else(|| Refusal::not_found("InvalidSubnetID.NotFound", "subnet", &[id]))
    }

    /// Returns the ids of the requested groups, or of the default group of a VPC.
    ///
    /// # Errors
    ///
    /// `InvalidGroupId.Malformed`, `InvalidGroup.NotFound`, or `InvalidParameter` for a group of another VPC.
    pub(crate) fn groups(&self, requested: &[String], vpc: &str) -> Result<Vec<String>, Refusal> {
        if requested.is_empty() {
            let default = self.network.default_group(vpc);
            return Ok(default.map(|group| group.id.clone()).into_iter().collect());
        }
        for id in requested {
            if self.group(id)?.vpc != vpc {
                let message =
                    format!("Security group {id} and the subnet belong to different networks.");
                return Err(Refusal::client("InvalidParameter", message));
            }
        }
        Ok(requested.to_vec())
    }

    /// Refuses a private address that a launch cannot have (Amazon EC2 API reference, "Error codes").
    ///
    /// # Errors
    ///
    /// `InvalidParameterCombination` for several instances, `InvalidParameterValue` for an address outside the subnet, and
    /// `InvalidIPAddress.InUse`.
    fn check_private_ip(&self, request: &LaunchRequest, subnets: &[Subnet]) -> Result<(), Refusal> {
        let Some(address) = request.private_ip else {
            return Ok(());
        };
        if request.max > 1 {
            let message = "The private IP address of several instances cannot be the same";
            return Err(Refusal::combination(message));
        }
        let in_subnet = |subnet: &&Subnet| subnet.cidr.contains(&address);
        let Some(subnet) = subnets.first().filter(in_subnet) else {
            let message = "Address does not fall within the subnet's address range";
            return Err(Refusal::invalid(message));
        };
        let used = |nic: &Nic| nic.subnet == subnet.id && nic.private_ip == address;
        if self.nics.values().any(used) {
            let message = format!("Address {address} is in use.");
            return Err(Refusal::client("InvalidIPAddress.InUse", message));
        }
        Ok(())
    }

    /// Refuses an unknown key pair with `InvalidKeyPair.NotFound`.
    fn check_key(&self, name: Option<&str>) -> Result<(), Refusal> {
        let Some(name) = name else { return Ok(()) };
        if self.network.key(name).is_some() {
            return Ok(());
        }
        let message = format!("The key pair '{name}' does not exist");
        Err(Refusal::client("InvalidKeyPair.NotFound", message))
    }

    /// Refuses an unknown instance profile with `InvalidParameterValue`, if the knobs name any.
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

/// Refuses more threads than the instance type has.
///
/// # Errors
///
/// `InvalidParameterValue`
fn check_cpu(request: &LaunchRequest, spec: &TypeSpec) -> Result<(), Refusal> {
    match request.cpu {
        Some((cores, threads)) if cores.saturating_mul(threads) > spec.vcpus => {
            Err(Refusal::invalid(format!(
                "The {cores} cores with {threads} threads each exceed the {} vCPUs of the instance type {}.",
                spec.vcpus, spec.name
            )))
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns the image's root volume with the requested changes, and the further volumes.
///
/// # Errors
///
/// `InvalidBlockDeviceMapping` for a device that is given twice, a root volume that is left out or
/// smaller than the image, and a further volume without a size.
fn devices(image: &ImageRecord, requests: &[DeviceRequest]) -> Result<Vec<Device>, Refusal> {
    let refuse = |message: String| Err(Refusal::client("InvalidBlockDeviceMapping", message));
    let mut devices = vec![Device {
        name: image.root_device.clone(),
        gib: image.root_gib,
        kind: "gp3".to_owned(),
        snapshot: Some(image.snapshot.clone()),
        iops: None,
        throughput: None,
        encrypted: false,
        delete_on_termination: true,
    }];
    for (number, request) in requests.iter().enumerate() {
        let name = &request.name;
        if requests
            .iter()
            .take(number)
            .any(|other| other.name == *name)
        {
            return refuse(format!(
                "The device '{name}' is used in more than one block-device mapping"
            ));
        }
        if *name == image.root_device {
            if request.absent {
                return refuse(format!("The root device '{name}' can not be left out"));
            }
            if let Some(gib) = request.gib.filter(|gib| *gib < image.root_gib) {
                return refuse(format!(
                    "Volume of size {gib}GB is smaller than snapshot '{}', expect size >= {}GB",
                    image.snapshot, image.root_gib
                ));
            }
            if let Some(root) = devices.first_mut() {
                root.change(request);
            }
        } else if !request.absent {
            let Some(gib) = request.gib else {
                return refuse(format!(
                    "The device '{name}' needs a size or a snapshot of this account"
                ));
            };
            let mut device = Device::new(name, gib);
            device.change(request);
            devices.push(device);
        }
    }
    Ok(devices)
}
