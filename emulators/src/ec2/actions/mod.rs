//! The actions: each parses its parameters, calls the engine, and turns the result into shapes.
//!
//! An action reads every parameter that it knows, refuses the rest, and only then calls the engine.
//! It keeps no state.

mod addresses;
mod attributes;
mod common;
mod console;
mod describe;
mod identity;
mod images;
mod launch_request;
mod networks;
mod power;
mod run;
mod snapshots;
mod status;
mod storage;
mod tags;
mod types;
mod view;
mod view_nic;
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
        Action::DescribeAddresses => addresses::describe(&call),
        Action::DescribeAvailabilityZones => zones::describe(&call, engine),
        Action::DescribeSubnets => networks::subnets(&call, engine),
        Action::DescribeSecurityGroups => networks::groups(&call, engine),
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
