//! ModifyInstanceAttribute and DescribeInstanceAttribute.
//!
//! One call changes exactly one attribute. Every attribute of the Amazon EC2 API reference ("DescribeInstanceAttribute") can be
//! described. Those that nothing here depends on (kernel, RAM disk, product codes, SR-IOV, enclaves) have the value of an instance
//! without them, and cannot be changed.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{Call, launch_request, view};
use crate::ec2::{
    engine::{Engine, change::Attribute, launch::ShutdownBehavior, storage::Volume},
    error::Refusal,
    shapes::Group,
    wire::{params::Scope, tree::Tree},
};

/// Changes one attribute, named by its own parameter or by `Attribute` and `Value`.
///
/// # Errors
///
/// `InvalidParameterCombination` unless exactly one attribute is given, `InvalidParameterValue`
/// for a wrong value, `IncorrectInstanceState` if the change needs a stopped instance.
pub(super) fn modify(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let id = root.required("InstanceId")?;
    let mut changes = Vec::new();
    let named = root.text("Attribute");
    // The older form has the attribute's name in one parameter and its value in another.
    let value = |parameter: &str, name: &str| match &named {
        Some(requested) => (requested == name).then(|| root.text("Value")).flatten(),
        None => root
            .scope(parameter)
            .text("Value")
            .or_else(|| root.text(parameter)),
    };
    if let Some(name) = value("InstanceType", "instanceType") {
        changes.push(Attribute::InstanceType(name));
    }
    if let Some(data) = value("UserData", "userData") {
        changes.push(Attribute::UserData(launch_request::user_data(Some(data))?));
    }
    if let Some(on) = value("DisableApiTermination", "disableApiTermination") {
        changes.push(Attribute::Protected(flag(&on)?));
    }
    if let Some(on) = value("EbsOptimized", "ebsOptimized") {
        changes.push(Attribute::EbsOptimized(flag(&on)?));
    }
    if let Some(on) = value("DisableApiStop", "disableApiStop") {
        changes.push(Attribute::StopProtected(flag(&on)?));
    }
    if let Some(on) = value("SourceDestCheck", "sourceDestCheck") {
        changes.push(Attribute::SourceDestCheck(flag(&on)?));
    }
    let groups = root.list("GroupId");
    if !groups.is_empty() {
        changes.push(Attribute::Groups(groups));
    }
    let devices = root.groups("BlockDeviceMapping");
    if !devices.is_empty() {
        let device = |device: &Scope<'_>| {
            let delete = device.scope("Ebs").flag("DeleteOnTermination")?;
            let delete = delete
                .ok_or_else(|| Refusal::missing("BlockDeviceMapping.1.Ebs.DeleteOnTermination"))?;
            Ok((device.required("DeviceName")?, delete))
        };
        let devices: Result<_, Refusal> = devices.iter().map(device).collect();
        changes.push(Attribute::DeleteOnTermination(devices?));
    }
    if let Some(word) = value(
        "InstanceInitiatedShutdownBehavior",
        "instanceInitiatedShutdownBehavior",
    ) {
        changes.push(Attribute::Shutdown(match word.as_str() {
            "stop" => ShutdownBehavior::Stop,
            "terminate" => ShutdownBehavior::Terminate,
            _ => {
                return Err(Refusal::invalid(format!(
                    "Invalid value '{word}' for instanceInitiatedShutdownBehavior."
                )));
            }
        }));
    }
    let mode = call.mode()?;
    call.finish()?;
    let mut changes = changes.into_iter();
    let (Some(change), None) = (changes.next(), changes.next()) else {
        let message = "Exactly one attribute that can be modified must be given.";
        return Err(Refusal::combination(message));
    };
    engine.modify(&id, change, mode)?;
    call.success()
}

/// Parses a boolean, in any case.
fn flag(text: &str) -> Result<bool, Refusal> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(Refusal::invalid(format!(
            "Invalid value '{text}'. Expected 'true' or 'false'."
        ))),
    }
}

/// Returns one attribute of an instance. The read may lag.
///
/// # Errors
///
/// `InvalidInstanceID.NotFound` for a missing instance, `InvalidParameterValue` for an unknown
/// attribute.
pub(super) fn describe(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let id = root.required("InstanceId")?;
    let attribute = root.required("Attribute")?;
    call.finish_read()?;
    let read = engine.instances_by_id(std::slice::from_ref(&id), &[], call.context.read_lag)?;
    let Some((seq, version)) = read.into_iter().next() else {
        return Err(Refusal::internal());
    };
    let Some(record) = engine.instances.get(&seq) else {
        return Err(Refusal::internal());
    };
    let value = |value: Option<String>| Tree::default().some("value", value);
    let some = |text: &str| value(Some(text.to_owned()));
    let flag = |on: bool| value(Some(on.to_string()));
    let response = Tree::default().text("instanceId", &id);
    let response = match attribute.as_str() {
        "userData" => response.tree(
            "userData",
            value(version.user_data.map(|data| STANDARD.encode(data))),
        ),
        "instanceType" => response.tree("instanceType", some(&version.instance_type)),
        "disableApiTermination" => response.tree("disableApiTermination", flag(version.protected)),
        "disableApiStop" => response.tree("disableApiStop", flag(version.stop_protected)),
        "instanceInitiatedShutdownBehavior" => {
            let word = match version.shutdown {
                ShutdownBehavior::Stop => "stop",
                ShutdownBehavior::Terminate => "terminate",
            };
            response.tree("instanceInitiatedShutdownBehavior", some(word))
        }
        "ebsOptimized" => response.tree("ebsOptimized", flag(version.ebs_optimized)),
        "sourceDestCheck" => response.tree("sourceDestCheck", flag(version.source_dest_check)),
        "rootDeviceName" => response.tree("rootDeviceName", some(&record.fixed.root_device)),
        "kernel" => response.tree("kernel", value(None)),
        "ramdisk" => response.tree("ramdisk", value(None)),
        "sriovNetSupport" => response.tree("sriovNetSupport", some("simple")),
        "enaSupport" => response.tree("enaSupport", flag(true)),
        "enclaveOptions" => response.tree("enclaveOptions", Tree::default().text("enabled", false)),
        "productCodes" => response.set("productCodes", []),
        "groupSet" => {
            let group = |group: Group| {
                Tree::default()
                    .text("groupId", group.group_id)
                    .text("groupName", group.group_name)
            };
            let groups = view::group_names(engine, &version.groups);
            response.set("groupSet", groups.into_iter().map(group))
        }
        "blockDeviceMapping" => {
            let device = |(_, volume): (_, &Volume)| {
                let ebs = Tree::default()
                    .text("volumeId", &volume.id)
                    .text("status", "attached")
                    .text("attachTime", engine.stamp(volume.attached))
                    .text("deleteOnTermination", volume.device.delete_on_termination);
                Tree::default()
                    .text("deviceName", &volume.device.name)
                    .tree("ebs", ebs)
            };
            let volumes = engine.volumes_of(&record.fixed.id);
            response.set("blockDeviceMapping", volumes.into_iter().map(device))
        }
        other => {
            let message =
                format!("Value ({other}) for parameter attribute is invalid. Unknown attribute.");
            return Err(Refusal::invalid(message));
        }
    };
    call.respond(&response)
}
