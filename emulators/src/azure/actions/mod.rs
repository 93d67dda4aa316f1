//! The operations: each parses a request, calls the engine, and returns a document.
//!
//! Owns no state and no rule of the cloud: it reads parameters and documents, calls the engine, and
//! lets `shapes` write the result.
//!
//! | file | purpose |
//! | --- | --- |
//! | `vms` | virtual machines, their power and their instance views |
//! | `resources` | disks, images, interfaces, public addresses |
//! | `catalog` | the catalog |
//! | `tasks` | long-running operations: how a call starts one, and how a client polls it |
//! | `diagnostics` | the console of a machine |
//! | `list` | pages and their links |

mod catalog;
mod diagnostics;
mod list;
mod resources;
mod tasks;
mod vms;

use super::{
    engine::Engine,
    error::Refusal,
    wire::{id::Kind, operation::Operation as O, request::Request, response::ApiResponse},
};
use crate::cloud::inject::CallContext;

/// Everything that one call needs.
#[derive(Debug)]
struct Context<'a> {
    /// The state.
    engine: &'a mut Engine,
    /// The parsed request.
    request: &'a Request,
    /// The injected faults that change the result: lag, pages, planned failures, states.
    injected: &'a CallContext,
}

/// Executes a request. The match is total, so an operation without an implementation does not
/// compile.
pub(crate) fn execute(
    request: &Request,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<ApiResponse, Refusal> {
    let Some(operation) = request.operation else {
        return Err(Refusal::internal());
    };
    let mut context = Context {
        engine,
        request,
        injected: context,
    };
    let context = &mut context;
    match operation {
        O::VirtualMachinesCreateOrUpdate => vms::put(context),
        O::VirtualMachinesUpdate => vms::patch(context),
        O::VirtualMachinesGet => vms::get(context),
        O::VirtualMachinesInstanceView => vms::instance_view(context),
        O::VirtualMachinesDelete => vms::delete(context),
        O::VirtualMachinesList => vms::list_group(context),
        O::VirtualMachinesListAll => vms::list_all(context),
        O::VirtualMachinesListByLocation => vms::list_by_location(context),
        O::VirtualMachinesStart => vms::power(context, Engine::start_vm),
        O::VirtualMachinesPowerOff => vms::power(context, Engine::power_off_vm),
        O::VirtualMachinesRestart => vms::power(context, Engine::restart_vm),
        O::VirtualMachinesDeallocate => vms::power(context, Engine::deallocate_vm),
        O::VirtualMachinesGeneralize => vms::generalize(context),
        O::VirtualMachinesSimulateEviction => vms::evict(context),
        O::VirtualMachinesRetrieveBootDiagnosticsData => diagnostics::retrieve(context),
        O::BlobGet => diagnostics::blob(context),
        O::DisksCreateOrUpdate => resources::put_disk(context),
        O::DisksGet => resources::get(context, Kind::Disk),
        O::DisksDelete => resources::delete(context, Kind::Disk, Engine::delete_disk),
        O::DisksList => resources::list(context, Kind::Disk, list::ListScope::Subscription),
        O::DisksListByResourceGroup => resources::list(context, Kind::Disk, list::ListScope::Group),
        O::ImagesCreateOrUpdate => resources::put_image(context),
        O::ImagesGet => resources::get(context, Kind::Image),
        O::ImagesDelete => resources::delete(context, Kind::Image, Engine::delete_image),
        O::ImagesList => resources::list(context, Kind::Image, list::ListScope::Subscription),
        O::ImagesListByResourceGroup => {
            resources::list(context, Kind::Image, list::ListScope::Group)
        }
        O::NetworkInterfacesCreateOrUpdate => resources::put_nic(context),
        O::NetworkInterfacesGet => resources::get(context, Kind::Nic),
        O::NetworkInterfacesDelete => resources::delete(context, Kind::Nic, Engine::delete_nic),
        O::NetworkInterfacesList => resources::list(context, Kind::Nic, list::ListScope::Group),
        O::NetworkInterfacesListAll => {
            resources::list(context, Kind::Nic, list::ListScope::Subscription)
        }
        O::PublicIPAddressesCreateOrUpdate => resources::put_ip(context),
        O::PublicIPAddressesGet => resources::get(context, Kind::PublicIp),
        O::PublicIPAddressesDelete => resources::delete(context, Kind::PublicIp, Engine::delete_ip),
        O::PublicIPAddressesList => {
            resources::list(context, Kind::PublicIp, list::ListScope::Group)
        }
        O::PublicIPAddressesListAll => {
            resources::list(context, Kind::PublicIp, list::ListScope::Subscription)
        }
        O::OperationsGet => tasks::get(context),
        O::ResourceGroupsCheckExistence => catalog::group_exists(context),
        O::ResourceGroupsGet => catalog::group(context),
        O::ResourceGroupsList => catalog::groups(context),
        O::ResourceSkusList => catalog::skus(context),
        O::NetworkSecurityGroupsGet => catalog::security_group(context),
        O::NetworkSecurityGroupsList => catalog::security_groups(context),
        O::ProvidersGet => catalog::provider(context),
        O::SubnetsGet => catalog::subnet(context),
        O::SubnetsList => catalog::subnets(context),
        O::SubscriptionsListLocations => catalog::locations(context),
        O::UsageList => catalog::usages(context),
        O::VirtualMachineSizesList => catalog::sizes(context),
        O::VirtualNetworksGet => catalog::network(context),
        O::VirtualNetworksList => catalog::networks(context, list::ListScope::Group),
        O::VirtualNetworksListAll => catalog::networks(context, list::ListScope::Subscription),
    }
}
