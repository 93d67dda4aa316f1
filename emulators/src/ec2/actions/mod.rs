//! The actions: each parses its parameters, calls the engine, and turns the result into shapes.
//!
//! An action reads every parameter that it knows, refuses the rest, and only then calls the engine.
//! It keeps no state.

mod account;
mod addresses;
mod attributes;
mod common;
mod console;
mod describe;
mod groups;
mod identity;
mod images;
mod keys;
mod launch_request;
mod networks;
mod options;
mod power;
mod rules;
mod run;
mod snapshots;
mod spot;
mod status;
mod storage;
mod tags;
mod types;
mod view;
mod view_nic;
mod volumes;
mod vpcs;
mod zones;

use super::{
    engine::Engine,
    error::Refusal,
    wire::{action::Action, params::Params},
};
use crate::cloud::inject::CallContext;

/// Executes an action and returns its XML document.
///
/// # Errors
///
/// The refusal of the action, in EC2's codes.
pub(crate) fn execute(
    action: Action,
    params: &Params,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<String, Refusal> {
    let call = Call {
        action,
        params,
        context,
    };
    match action {
        Action::RunInstances => run::run(&call, engine),
        Action::DescribeInstances => describe::describe(&call, engine),
        Action::StartInstances | Action::StopInstances | Action::TerminateInstances => {
            power::change(&call, engine)
        }
        Action::RebootInstances => power::reboot(&call, engine),
        Action::ModifyInstanceAttribute => attributes::modify(&call, engine),
        Action::DescribeInstanceAttribute => attributes::describe(&call, engine),
        Action::DescribeInstanceStatus => status::describe(&call, engine),
        Action::GetConsoleOutput => console::output(&call, engine),
        Action::CreateTags => tags::create(&call, engine),
        Action::DeleteTags => tags::delete(&call, engine),
        Action::GetCallerIdentity => identity::caller(&call, engine),
        Action::DescribeTags => tags::describe(&call, engine),
        Action::CreateImage => images::create(&call, engine),
        Action::DescribeImages => images::describe(&call, engine),
        Action::DeregisterImage => images::deregister(&call, engine),
        Action::DescribeSnapshots => snapshots::describe(&call, engine),
        Action::DeleteSnapshot => snapshots::delete(&call, engine),
        Action::DescribeVolumes => storage::volumes(&call, engine),
        Action::DescribeNetworkInterfaces => storage::nics(&call, engine),
        Action::DescribeInstanceTypes => types::describe(&call, engine),
        Action::AllocateAddress => addresses::allocate(&call, engine),
        Action::AssociateAddress => addresses::associate(&call, engine),
        Action::DescribeAddresses => addresses::describe(&call, engine),
        Action::DescribeAddressesAttribute => addresses::describe_attribute(&call, engine),
        Action::DisassociateAddress => addresses::disassociate(&call, engine),
        Action::ReleaseAddress => addresses::release(&call, engine),
        Action::AttachVolume => volumes::attach(&call, engine),
        Action::CreateVolume => volumes::create(&call, engine),
        Action::DeleteVolume => volumes::delete(&call, engine),
        Action::DescribeVolumesModifications => volumes::modifications(&call, engine),
        Action::DetachVolume => volumes::detach(&call, engine),
        Action::ModifyVolume => volumes::modify(&call, engine),
        Action::AuthorizeSecurityGroupEgress | Action::AuthorizeSecurityGroupIngress => {
            rules::authorize(&call, engine)
        }
        Action::RevokeSecurityGroupEgress | Action::RevokeSecurityGroupIngress => {
            rules::revoke(&call, engine)
        }
        Action::DescribeSecurityGroupRules => rules::describe(&call, engine),
        Action::CreateSecurityGroup => groups::create(&call, engine),
        Action::DeleteSecurityGroup => groups::delete(&call, engine),
        Action::DescribeSecurityGroups => groups::describe(&call, engine),
        Action::CancelSpotInstanceRequests => spot::cancel(&call, engine),
        Action::DescribeSpotInstanceRequests => spot::describe(&call, engine),
        Action::CreateKeyPair => keys::create(&call, engine),
        Action::DeleteKeyPair => keys::delete(&call, engine),
        Action::DescribeKeyPairs => keys::describe(&call, engine),
        Action::ImportKeyPair => keys::import(&call, engine),
        Action::CreateSubnet => networks::create_subnet(&call, engine),
        Action::DeleteSubnet => networks::delete_subnet(&call, engine),
        Action::ModifySubnetAttribute => networks::modify_subnet(&call, engine),
        Action::CreateVpc => vpcs::create(&call, engine),
        Action::DeleteVpc => vpcs::delete(&call, engine),
        Action::DescribeVpcs => vpcs::describe(&call, engine),
        Action::DescribeVpcAttribute => vpcs::describe_attribute(&call, engine),
        Action::ModifyVpcAttribute => vpcs::modify(&call, engine),
        Action::DescribeNetworkAcls => vpcs::acls(&call, engine),
        Action::DescribeRouteTables => vpcs::route_tables(&call, engine),
        Action::DescribeAccountAttributes => account::attributes(&call),
        Action::DescribeRegions => account::regions(&call, engine),
        Action::DescribeInstanceTypeOfferings => account::offerings(&call, engine),
        Action::DescribeImageAttribute => images::describe_attribute(&call, engine),
        Action::DescribeInstanceCreditSpecifications => options::credits(&call, engine),
        Action::ModifyInstanceCreditSpecification => options::modify_credits(&call, engine),
        Action::ModifyInstanceMetadataOptions => options::modify_metadata(&call, engine),
        Action::ModifyNetworkInterfaceAttribute => options::modify_nic(&call, engine),
        Action::MonitorInstances | Action::UnmonitorInstances => options::monitor(&call, engine),
        Action::DescribeAvailabilityZones => zones::describe(&call, engine),
        Action::DescribeSubnets => networks::subnets(&call, engine),
    }
}

/// Records a launch that is refused for lack of capacity or quota, if its parameters are valid.
pub(crate) fn record_refused_launch(params: &Params, engine: &mut Engine) {
    let call = Call {
        action: Action::RunInstances,
        params,
        context: &CallContext::default(),
    };
    if let Ok(request) = launch_request::parse(&call, engine) {
        engine.record_refused_launch(&request);
    }
}

/// One call of an action.
#[derive(Debug)]
struct Call<'a> {
    /// The action.
    action: Action,
    /// The parameters. Reading one marks it; those without a mark are refused at the end.
    params: &'a Params,
    /// What the fault rules say about this call.
    context: &'a CallContext,
}
