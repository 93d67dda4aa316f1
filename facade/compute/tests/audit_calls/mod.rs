//! What every call of the services leaves in the audit log.

use std::collections::BTreeMap;

use fleetwright_identity::{Resource, Verb};

/// What a call leaves in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    /// One entry with this resource and verb.
    Entry(Resource, Verb),
    /// One entry for each of several records, with this resource.
    Entries(Resource),
    /// None: it reads what its caller may read, and shows no secret.
    Reads,
    /// None: it prepares or carries out what another call has recorded, or is a part of one. With the reason.
    Nothing(&'static str),
}

pub(crate) use Log::{Entries, Entry, Nothing, Reads};

/// Every public asynchronous call of the services.
pub(crate) fn calls() -> BTreeMap<&'static str, Log> {
    const PART: Log = Nothing("adds to the transaction of its caller, which has the entry");
    const FOR_OTHERS: Log = Nothing("for services, which record the call of their caller");
    BTreeMap::from([
        // Of networks, security groups and authorities, by a macro.
        ("$service::get", Reads),
        ("$service::list", Reads),
        ("$service::show", Reads),
        ("AuditLog::list", Reads),
        (
            "AuditLog::prune",
            Nothing("removes what is older than the operator configured"),
        ),
        ("AuditLog::record", Nothing("writes the entry itself")),
        (
            "AuditLog::record_refusal",
            Nothing("writes the entry itself"),
        ),
        ("AuditLog::run", Nothing("prunes")),
        (
            "CatalogService::add_image",
            Entry(Resource::Images, Verb::Create),
        ),
        (
            "CatalogService::delete_image",
            Entry(Resource::Images, Verb::Delete),
        ),
        ("CatalogService::follow", Reads),
        ("CatalogService::known_flavor", Reads),
        ("CatalogService::load", Entries(Resource::Flavors)),
        (
            "CatalogService::load_file",
            Nothing("reads a file and calls load"),
        ),
        ("CatalogService::open", Reads),
        ("CatalogService::read_flavors", Reads),
        ("CatalogService::read_images", Reads),
        ("CatalogService::refresh", Reads),
        ("CatalogService::show_flavor", Reads),
        ("CatalogService::show_image", Reads),
        ("CatalogService::renew", Reads),
        (
            "CatalogService::retire_image",
            Entry(Resource::Images, Verb::Delete),
        ),
        (
            "CatalogService::set_progress",
            Nothing("the image controller carries out a request"),
        ),
        (
            "CatalogService::share_image",
            Entry(Resource::Images, Verb::Update),
        ),
        ("Facade::reseal", Entry(Resource::Regions, Verb::Update)),
        ("Facade::run", Nothing("runs the controllers")),
        (
            "Instances::console_output",
            Entry(Resource::Instances, Verb::ConsoleOutput),
        ),
        (
            "Instances::console_session",
            Entry(Resource::Instances, Verb::ConsoleSession),
        ),
        (
            "Instances::create",
            Entry(Resource::Instances, Verb::Create),
        ),
        (
            "Instances::delete",
            Entry(Resource::Instances, Verb::Delete),
        ),
        ("Instances::events", Reads),
        ("Instances::inspect", Reads),
        ("Instances::list", Reads),
        ("Instances::plan_update", Reads),
        ("Instances::read", Reads),
        (
            "Instances::reboot",
            Entry(Resource::Instances, Verb::Reboot),
        ),
        (
            "Instances::replace",
            Entry(Resource::Instances, Verb::Update),
        ),
        ("Instances::snapshot", Entries(Resource::Images)),
        (
            "Instances::ssh_key",
            Entry(Resource::Instances, Verb::SshKey),
        ),
        ("Instances::start", Entry(Resource::Instances, Verb::Start)),
        ("Instances::stop", Entry(Resource::Instances, Verb::Stop)),
        (
            "Instances::update",
            Entry(Resource::Instances, Verb::Update),
        ),
        ("Instances::wait_until_provisioned", Reads),
        ("Ledger::allocation", Reads),
        ("Ledger::audit", Reads),
        ("Ledger::charge", PART),
        ("Ledger::commit", PART),
        ("Ledger::commit_charge", PART),
        ("Ledger::quota", Reads),
        ("Ledger::recharge", PART),
        ("Ledger::release", PART),
        ("Ledger::repair", Entry(Resource::Allocations, Verb::Update)),
        ("Ledger::set_limits", Entry(Resource::Quotas, Verb::Update)),
        (
            "MachineAccess::console_output",
            Entry(Resource::Servers, Verb::ConsoleOutput),
        ),
        (
            "MachineAccess::console_session",
            Entry(Resource::Servers, Verb::ConsoleSession),
        ),
        ("MachineAccess::snapshot", Entries(Resource::Images)),
        ("MachineAccess::snapshot_for", FOR_OTHERS),
        (
            "MachineAccess::ssh_key",
            Entry(Resource::Servers, Verb::SshKey),
        ),
        ("Networks::create", Entry(Resource::Networks, Verb::Create)),
        ("Networks::delete", Entry(Resource::Networks, Verb::Delete)),
        ("Networks::deleting", Reads),
        (
            "Networks::finish",
            Nothing("carries out a recorded deletion"),
        ),
        (
            "RegionAccounts::accept",
            Entry(Resource::Regions, Verb::Update),
        ),
        ("RegionAccounts::read", Reads),
        (
            "RegionAccounts::resolve_leak",
            Entry(Resource::Regions, Verb::Update),
        ),
        ("SealedStore::reseal", Nothing("a part of Facade::reseal")),
        (
            "SecurityGroups::create",
            Entry(Resource::SecurityGroups, Verb::Create),
        ),
        (
            "SecurityGroups::delete",
            Entry(Resource::SecurityGroups, Verb::Delete),
        ),
        ("SecurityGroups::for_server", Reads),
        (
            "SecurityGroups::set_rules",
            Entry(Resource::SecurityGroups, Verb::Update),
        ),
        (
            "ServerKeys::private_key",
            Nothing("MachineAccess::ssh_key records before it calls"),
        ),
        ("ServerKeys::public_key", Reads),
        ("ServerKeys::reseal", Nothing("a part of Facade::reseal")),
        ("Servers::apply", Entry(Resource::Servers, Verb::Update)),
        ("Servers::apply_if", Nothing("apply, with further checks")),
        ("Servers::delete", Entry(Resource::Servers, Verb::Delete)),
        ("Servers::delete_if", Nothing("delete, with further checks")),
        ("Servers::ensure", Entry(Resource::Servers, Verb::Create)),
        (
            "Servers::ensure_with",
            Nothing("ensure, written with other records"),
        ),
        ("Servers::list", Reads),
        ("Servers::plan_spec", Reads),
        ("Servers::read", Reads),
        ("Servers::read_by_owner", Reads),
        ("Servers::refusal_of_new", Reads),
        ("Servers::refusal_of_spec", Reads),
        ("Servers::region_scan", Reads),
        (
            "Servers::request_reboot",
            Entry(Resource::Servers, Verb::Reboot),
        ),
        (
            "Servers::request_replace",
            Entry(Resource::Servers, Verb::Update),
        ),
        ("Servers::set_power", Entry(Resource::Servers, Verb::Stop)),
        ("Servers::set_spec", Entry(Resource::Servers, Verb::Update)),
        (
            "SshAuthorities::create",
            Entry(Resource::SshCertificateAuthorities, Verb::Create),
        ),
        (
            "SshAuthorities::delete",
            Entry(Resource::SshCertificateAuthorities, Verb::Delete),
        ),
        ("SshAuthorities::for_server", Reads),
        ("Tenancy::bind", Entry(Resource::RoleBindings, Verb::Create)),
        ("Tenancy::binding", Reads),
        ("Tenancy::bindings", Reads),
        (
            "Tenancy::bootstrap",
            Entry(Resource::RoleBindings, Verb::Create),
        ),
        ("Tenancy::check_open", Reads),
        (
            "Tenancy::create_organization",
            Entry(Resource::Organizations, Verb::Create),
        ),
        (
            "Tenancy::create_project",
            Entry(Resource::Projects, Verb::Create),
        ),
        (
            "Tenancy::delete_organization",
            Entry(Resource::Organizations, Verb::Delete),
        ),
        (
            "Tenancy::delete_project",
            Entry(Resource::Projects, Verb::Delete),
        ),
        (
            "Tenancy::finish_deletions",
            Nothing("carries out a recorded deletion"),
        ),
        ("Tenancy::organization", Reads),
        ("Tenancy::organizations", Reads),
        ("Tenancy::principal", Reads),
        ("Tenancy::principal_with", Reads),
        ("Tenancy::project", Reads),
        ("Tenancy::projects", Reads),
        ("Tenancy::show_binding", Reads),
        ("Tenancy::show_organization", Reads),
        ("Tenancy::show_project", Reads),
        (
            "Tenancy::unbind",
            Entry(Resource::RoleBindings, Verb::Delete),
        ),
    ])
}

/// Types with public asynchronous calls that are no services: loops, which carry out what is recorded, and parts that write nothing.
pub(crate) const NO_SERVICES: [&str; 11] = [
    "Controller",
    "FacadeBuilder",
    "FacadeRegion",
    "LaunchConfigs",
    "Monitor",
    "NetworkDeletionController",
    "RegionPlanner",
    "RunningFacade",
    "Snapshots",
    "TestFacade",
    "TestRegion",
];
