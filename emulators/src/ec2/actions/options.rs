//! Options of instances that have actions of their own: CPU credits, metadata service, monitoring, network interface.

use super::{Call, launch_request};
use crate::ec2::{
    engine::{Engine, Mode, change::Attribute, tags::nic_not_found},
    error::Refusal,
    wire::{action::Action, tree::Tree},
};

/// Describes how instances spend CPU credits: the named ones, or all with the option `unlimited` (API reference,
/// "DescribeInstanceCreditSpecifications").
///
/// # Errors
///
/// `InvalidInstanceID.NotFound`, or `UnsupportedOperation` for a named instance of a type without credits.
pub(super) fn credits(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let ids = call.root().list("InstanceId");
    let filters = call.filters()?;
    let paging = call.paging(engine)?;
    call.finish_read()?;
    let page = call.read_instances(engine, &ids, &filters, &paging)?;
    let mut found = Vec::new();
    for (seq, version) in &page.items {
        let Some(record) = engine.instances.get(seq) else {
            continue;
        };
        let id = &record.fixed.id;
        match version.credits {
            Some(credits) if !ids.is_empty() || credits.name() == "unlimited" => {
                let tree = Tree::default().text("instanceId", id);
                found.push(tree.text("cpuCredits", credits.name()));
            }
            None if !ids.is_empty() => {
                return Err(Refusal::unsupported(format!(
                    "The instance '{id}' has the type {}, which has no CPU credits",
                    version.instance_type
                )));
            }
            Some(_) | None => {}
        }
    }
    let next = call.next_token(page.next);
    call.respond_list("instanceCreditSpecificationSet", found, next)
}

/// Changes how instances spend CPU credits. What fails for one of them is part of the response.
///
/// # Errors
///
/// `MissingParameter` or `InvalidParameterValue`.
pub(super) fn modify_credits(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let _token = call.root().text("ClientToken");
    let mut requests = Vec::new();
    for scope in call.root().groups("InstanceCreditSpecification") {
        let credits = launch_request::credits(&scope)?;
        let credits = credits.ok_or_else(|| Refusal::missing("CpuCredits"))?;
        requests.push((scope.required("InstanceId")?, credits));
    }
    let mode = call.mode()?;
    call.finish()?;
    if requests.is_empty() {
        return Err(Refusal::missing("InstanceCreditSpecification"));
    }
    mode.check_dry_run()?;
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for (id, credits) in requests {
        let found = engine.find(std::slice::from_ref(&id));
        let has_credits = found.map(|found| {
            let instance = found.first().and_then(|seq| engine.instances.get(seq));
            instance.is_some_and(|instance| instance.current().credits.is_some())
        });
        let changed = match has_credits {
            Err(refusal) => Err(("InvalidInstanceID.NotFound", refusal.message)),
            Ok(false) => Err((
                "InstanceCreditSpecification.NotSupported",
                format!("The instance '{id}' has no CPU credits"),
            )),
            Ok(true) => engine
                .modify(&id, Attribute::Credits(credits), Mode::Execute)
                .map_err(|refusal| ("IncorrectInstanceState", refusal.message)),
        };
        let tree = Tree::default().text("instanceId", &id);
        match changed {
            Ok(()) => done.push(tree),
            Err((code, message)) => {
                let error = Tree::default().text("code", code).text("message", message);
                failed.push(tree.tree("error", error));
            }
        }
    }
    let response = Tree::default()
        .set("successfulInstanceCreditSpecificationSet", done)
        .set("unsuccessfulInstanceCreditSpecificationSet", failed);
    call.respond(&response)
}

/// Changes the options of an instance's metadata service.
///
/// # Errors
///
/// `InvalidInstanceID.NotFound`, `InvalidParameterValue` or `IncorrectInstanceState`.
pub(super) fn modify_metadata(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let id = root.required("InstanceId")?;
    let found = engine.find(std::slice::from_ref(&id))?;
    let instance = found.first().and_then(|seq| engine.instances.get(seq));
    let before = instance.map(|instance| instance.current().metadata.clone());
    let options = launch_request::metadata(&root, &before.unwrap_or_default())?;
    let mode = call.mode()?;
    call.finish()?;
    engine.modify(&id, Attribute::Metadata(options.clone()), mode)?;
    let on_off = |on: bool| if on { "enabled" } else { "disabled" };
    let tokens = if options.tokens_required {
        "required"
    } else {
        "optional"
    };
    let tree = Tree::default()
        .text("state", "pending")
        .text("httpTokens", tokens)
        .text("httpPutResponseHopLimit", options.hop_limit)
        .text("httpEndpoint", on_off(options.enabled))
        .text("httpProtocolIpv6", "disabled")
        .text("instanceMetadataTags", on_off(options.tags));
    let modified = Tree::default().text("instanceId", id);
    call.respond(&modified.tree("instanceMetadataOptions", tree))
}

/// Changes the security groups, or the check of addresses, of a network interface with an instance.
///
/// # Errors
///
/// `InvalidNetworkInterfaceID.NotFound`, `UnsupportedOperation` for an interface without an instance,
/// `InvalidParameterCombination` unless exactly one attribute is given.
pub(super) fn modify_nic(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let id = root.required("NetworkInterfaceId")?;
    let groups = root.list("SecurityGroupId");
    let check = root.scope("SourceDestCheck").flag("Value")?;
    let mode = call.mode()?;
    call.finish()?;
    let change = match (groups.is_empty(), check) {
        (false, None) => Attribute::Groups(groups),
        (true, Some(on)) => Attribute::SourceDestCheck(on),
        (false, Some(_)) | (true, None) => {
            let message = "Exactly one attribute that can be modified must be given.";
            return Err(Refusal::combination(message));
        }
    };
    let nic = engine.nic(&id).ok_or_else(|| nic_not_found(&id))?;
    let Some(instance) = nic.attached_to.clone() else {
        return Err(Refusal::unsupported(
            "A change of a network interface without an instance is not emulated.",
        ));
    };
    engine.modify(&instance, change, mode)?;
    call.success()
}

/// Enables or disables the detailed monitoring of instances.
///
/// # Errors
///
/// `InvalidInstanceID.NotFound` or `IncorrectInstanceState`.
pub(super) fn monitor(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let on = call.action == Action::MonitorInstances;
    let ids = call.ids("InstanceId")?;
    let mode = call.mode()?;
    call.finish()?;
    engine.find(&ids)?;
    mode.check_dry_run()?;
    for id in &ids {
        engine.modify(id, Attribute::Monitoring(on), mode)?;
    }
    let state = if on { "enabled" } else { "disabled" };
    let changed = ids.iter().map(|id| {
        let monitoring = Tree::default().text("state", state);
        Tree::default()
            .text("instanceId", id)
            .tree("monitoring", monitoring)
    });
    call.respond_list("instancesSet", changed, None)
}
