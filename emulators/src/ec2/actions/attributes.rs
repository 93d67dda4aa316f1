//! ModifyInstanceAttribute and DescribeInstanceAttribute.
//!
//! One call changes exactly one attribute. The emulator has the attributes instance type, user
//! data, termination protection, EBS optimization and shutdown behaviour.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;

use super::{Call, launch_request, view};
use crate::ec2::{
    engine::{Engine, change::Attribute, launch::ShutdownBehavior},
    error::Refusal,
    shapes::{
        Group,
        instance::{DeviceMapping, EbsDevice},
    },
    wire::xml::Set,
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

/// An element with only a `value`, as EC2 wraps attributes.
#[derive(Debug, Serialize)]
struct Value<T> {
    /// The value; missing for an attribute that is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<T>,
}

impl<T> Value<T> {
    /// Returns the element, also for an attribute without a value.
    const fn some(value: Option<T>) -> Option<Self> {
        Some(Self { value })
    }
}

/// The response of DescribeInstanceAttribute: the id and the one requested attribute.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    /// The instance.
    instance_id: String,
    /// The user data, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_data: Option<Value<String>>,
    /// The instance type.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_type: Option<Value<String>>,
    /// Whether the instance is protected against termination.
    #[serde(skip_serializing_if = "Option::is_none")]
    disable_api_termination: Option<Value<bool>>,
    /// `stop` or `terminate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_initiated_shutdown_behavior: Option<Value<&'static str>>,
    /// Whether the instance is EBS optimized.
    #[serde(skip_serializing_if = "Option::is_none")]
    ebs_optimized: Option<Value<bool>>,
    /// Always true.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_dest_check: Option<Value<bool>>,
    /// The device name of the root volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    root_device_name: Option<Value<String>>,
    /// The security groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    group_set: Option<Set<Group>>,
    /// The attached volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    block_device_mapping: Option<Set<DeviceMapping>>,
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
    let mut response = Response {
        instance_id: id,
        ..Response::default()
    };
    match attribute.as_str() {
        "userData" => {
            response.user_data = Value::some(version.user_data.map(|data| STANDARD.encode(data)));
        }
        "instanceType" => response.instance_type = Value::some(Some(version.instance_type)),
        "disableApiTermination" => {
            response.disable_api_termination = Value::some(Some(version.protected));
        }
        "instanceInitiatedShutdownBehavior" => {
            let word = match version.shutdown {
                ShutdownBehavior::Stop => "stop",
                ShutdownBehavior::Terminate => "terminate",
            };
            response.instance_initiated_shutdown_behavior = Value::some(Some(word));
        }
        "ebsOptimized" => response.ebs_optimized = Value::some(Some(version.ebs_optimized)),
        "sourceDestCheck" => response.source_dest_check = Value::some(Some(true)),
        "rootDeviceName" => {
            response.root_device_name = Value::some(Some(record.fixed.root_device.clone()));
        }
        "groupSet" => response.group_set = Some(view::groups(engine, &record.fixed.groups)),
        "blockDeviceMapping" => {
            let device = |volume: &crate::ec2::engine::storage::Volume| DeviceMapping {
                device_name: volume.device.name.clone(),
                ebs: EbsDevice {
                    volume_id: volume.id.clone(),
                    status: "attached",
                    attach_time: engine.stamp(volume.created),
                    delete_on_termination: volume.device.delete_on_termination,
                },
            };
            let volumes = engine.volumes_of(&record.fixed.id);
            response.block_device_mapping =
                Some(volumes.iter().map(|(_, volume)| device(volume)).collect());
        }
        other => {
            let message =
                format!("Value ({other}) for parameter attribute is invalid. Unknown attribute.");
            return Err(Refusal::invalid(message));
        }
    }
    call.respond(&response)
}
