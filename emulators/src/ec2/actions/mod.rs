//! What each action means: parameters into a request to the engine, the engine's answer into shapes.
//!
//! An action reads every parameter it knows, refuses the rest, and only then acts. It keeps no state.

mod addresses;
mod attributes;
mod common;
mod console;
mod describe;
mod images;
mod networks;
mod order;
mod power;
mod run;
mod status;
mod storage;
mod tags;
mod types;
mod view;
mod view_nic;
mod zones;

use super::{
    engine::World,
    error::Refusal,
    wire::{action::Action, params::Params},
};
use crate::cloud::strike::Served;

/// Carries out an action and answers its document.
pub(crate) fn act(
    action: Action,
    params: &Params,
    world: &mut World,
    served: &Served,
) -> Result<String, Refusal> {
    let call = Call {
        action,
        params,
        served,
    };
    match action {
        Action::RunInstances => run::run(&call, world),
        Action::DescribeInstances => describe::describe(&call, world),
        Action::StartInstances | Action::StopInstances | Action::TerminateInstances => {
            power::change(&call, world)
        }
        Action::RebootInstances => power::reboot(&call, world),
        Action::ModifyInstanceAttribute => attributes::modify(&call, world),
        Action::DescribeInstanceAttribute => attributes::describe(&call, world),
        Action::DescribeInstanceStatus => status::describe(&call, world),
        Action::GetConsoleOutput => console::output(&call, world),
        Action::CreateTags => tags::create(&call, world),
        Action::DeleteTags => tags::delete(&call, world),
        Action::DescribeTags => tags::describe(&call, world),
        Action::CreateImage => images::create(&call, world),
        Action::DescribeImages => images::describe(&call, world),
        Action::DescribeVolumes => storage::volumes(&call, world),
        Action::DescribeNetworkInterfaces => storage::nics(&call, world),
        Action::DescribeInstanceTypes => types::describe(&call, world),
        Action::DescribeAddresses => addresses::describe(&call),
        Action::DescribeAvailabilityZones => zones::describe(&call, world),
        Action::DescribeSubnets => networks::subnets(&call, world),
        Action::DescribeSecurityGroups => networks::groups(&call, world),
    }
}

/// One call of an action.
#[derive(Debug)]
struct Call<'a> {
    action: Action,
    params: &'a Params,
    served: &'a Served,
}
