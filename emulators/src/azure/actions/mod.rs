//! The operations: each parses a request, calls the engine, and returns a document.
//!
//! Owns no state and no rule of the cloud: it reads parameters and documents, calls the engine, and
//! lets `shapes` write the result.
//!
//! | file | purpose |
//! | --- | --- |
//! | `vms` | virtual machines, their power and their instance views |
//! | `resources` | disks, images, interfaces, public addresses |
//! | `documents` | resource groups, networks, security groups, snapshots, SSH keys |
//! | `inventory`, `filter` | all resources and their tags, and the filters of their lists |
//! | `directory` | subscriptions, tenants, providers, images of the marketplace |
//! | `catalog` | locations, sizes, quotas |
//! | `tasks` | long-running operations: how a call starts one, and how a client polls it |
//! | `diagnostics` | the console of a machine |
//! | `list` | pages and their links |

mod catalog;
mod diagnostics;
mod directory;
mod documents;
mod filter;
mod inventory;
mod list;
mod resources;
mod tasks;
mod vms;

use self::{
    documents::Part,
    list::ListScope::{Group, Subscription},
};
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
        O::OperationsGetResult => tasks::get_result(context),
        O::ResourceGroupsCheckExistence => documents::group_exists(context),
        O::ResourceGroupsCreateOrUpdate => documents::put(context, Kind::ResourceGroup),
        O::ResourceGroupsUpdate => documents::patch(context, Kind::ResourceGroup),
        O::ResourceGroupsDelete => documents::delete(context, Kind::ResourceGroup),
        O::ResourceGroupsGet => documents::get(context, Kind::ResourceGroup),
        O::ResourceGroupsList => documents::list(context, Kind::ResourceGroup, Subscription),
        O::ResourcesList => inventory::list(context, Subscription),
        O::ResourcesListByResourceGroup => inventory::list(context, Group),
        O::TagsCreateOrUpdateAtScope | O::TagsUpdateAtScope => inventory::set_tags(context),
        O::TagsDeleteAtScope => inventory::delete_tags(context),
        O::TagsGetAtScope => inventory::tags(context),
        O::TagsList => inventory::tag_names(context),
        O::ResourceSkusList => catalog::skus(context),
        O::NetworkSecurityGroupsCreateOrUpdate => documents::put(context, Kind::SecurityGroup),
        O::NetworkSecurityGroupsUpdateTags => documents::patch(context, Kind::SecurityGroup),
        O::NetworkSecurityGroupsDelete => documents::delete(context, Kind::SecurityGroup),
        O::NetworkSecurityGroupsGet => documents::get(context, Kind::SecurityGroup),
        O::NetworkSecurityGroupsList => documents::list(context, Kind::SecurityGroup, Group),
        O::NetworkSecurityGroupsListAll => {
            documents::list(context, Kind::SecurityGroup, Subscription)
        }
        O::SecurityRulesCreateOrUpdate => documents::put_part(context, Part::Rule),
        O::SecurityRulesDelete => documents::delete_part(context, Part::Rule),
        O::SecurityRulesGet => documents::get_part(context, Part::Rule),
        O::SecurityRulesList => documents::list_parts(context, Part::Rule),
        O::DefaultSecurityRulesList => documents::list_parts(context, Part::DefaultRule),
        O::SubnetsCreateOrUpdate => documents::put_part(context, Part::Subnet),
        O::SubnetsDelete => documents::delete_part(context, Part::Subnet),
        O::SubnetsGet => documents::get_part(context, Part::Subnet),
        O::SubnetsList => documents::list_parts(context, Part::Subnet),
        O::VirtualNetworksCreateOrUpdate => documents::put(context, Kind::VirtualNetwork),
        O::VirtualNetworksUpdateTags => documents::patch(context, Kind::VirtualNetwork),
        O::VirtualNetworksDelete => documents::delete(context, Kind::VirtualNetwork),
        O::VirtualNetworksGet => documents::get(context, Kind::VirtualNetwork),
        O::VirtualNetworksList => documents::list(context, Kind::VirtualNetwork, Group),
        O::VirtualNetworksListAll => documents::list(context, Kind::VirtualNetwork, Subscription),
        O::SnapshotsCreateOrUpdate => documents::put(context, Kind::Snapshot),
        O::SnapshotsUpdate => documents::patch(context, Kind::Snapshot),
        O::SnapshotsDelete => documents::delete(context, Kind::Snapshot),
        O::SnapshotsGet => documents::get(context, Kind::Snapshot),
        O::SnapshotsList => documents::list(context, Kind::Snapshot, Subscription),
        O::SnapshotsListByResourceGroup => documents::list(context, Kind::Snapshot, Group),
        O::SshPublicKeysCreate => documents::put(context, Kind::SshKey),
        O::SshPublicKeysUpdate => documents::patch(context, Kind::SshKey),
        O::SshPublicKeysDelete => documents::delete(context, Kind::SshKey),
        O::SshPublicKeysGet => documents::get(context, Kind::SshKey),
        O::SshPublicKeysListByResourceGroup => documents::list(context, Kind::SshKey, Group),
        O::SshPublicKeysListBySubscription => documents::list(context, Kind::SshKey, Subscription),
        O::DisksUpdate => resources::patch_disk(context),
        O::ImagesUpdate => resources::patch_tags(context, Kind::Image),
        O::NetworkInterfacesUpdateTags => resources::patch_tags(context, Kind::Nic),
        O::PublicIPAddressesUpdateTags => resources::patch_tags(context, Kind::PublicIp),
        O::ProvidersGet | O::ProvidersRegister => directory::provider(context),
        O::ProvidersList => directory::providers(context),
        O::SubscriptionsGet => Ok(directory::subscription(context)),
        O::SubscriptionsList => directory::subscriptions(context),
        O::SubscriptionsListLocations => catalog::locations(context),
        O::TenantsList => directory::tenants(context),
        O::MetadataEndpoints => Ok(directory::endpoints(context)),
        O::UsageList => catalog::usages(context),
        O::VirtualMachineSizesList => catalog::sizes(context),
        O::VirtualMachinesListAvailableSizes => vms::sizes(context),
        O::VirtualMachinesRedeploy => vms::power(context, Engine::redeploy_vm),
        O::VirtualMachinesReapply => vms::power(context, Engine::reapply_vm),
        O::VirtualMachineExtensionsList => vms::extensions(context),
        O::VirtualMachineExtensionsGet => vms::extension(context),
        O::VirtualMachineExtensionsDelete => vms::delete_extension(context),
        O::VirtualMachineImagesListPublishers
        | O::VirtualMachineImagesListOffers
        | O::VirtualMachineImagesListSkus
        | O::VirtualMachineImagesList => directory::images(context),
        O::VirtualMachineImagesGet => directory::image(context),
    }
}
