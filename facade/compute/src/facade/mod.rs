//! The whole façade in one value: built from a store, a catalog and regions; it has every service and runs every loop.
//!
//! Owns how the parts are put together, and nothing else: each part keeps its own rules and can be built by hand. It never calls a
//! cloud or writes a record itself.

mod build;
mod builder;
mod check;
mod error;
mod run;
mod sources;

use std::{fmt, sync::Arc};

use fleetwright::InstanceProvisioner;
use fleetwright_identity::{
    AuditEvent, AuditLog, AuditOutcome, Ledger, Principal, Resource, Scope, Tenancy, Verb,
};
use fleetwright_region::{
    account::RegionAccounts,
    catalog::CatalogService,
    controller as servers,
    ids::RegionId,
    machine::MachineAccess,
    mapping::LaunchPlanner,
    monitor::Monitor,
    network::{Networks, SecurityGroups, SshAuthorities},
    secret::{KeyError, ResealReport, SealedStore, SshKeys},
    server::{DependencyChecker, Servers},
    snapshot::Snapshots,
};
use fleetwright_runtime::clock::Clock;
use fleetwright_store::Store;

pub use builder::FacadeBuilder;
pub use error::FacadeError;
pub use run::RunningFacade;

use crate::{controller::Controller, networks::NetworkDeletionController, service::Instances};

/// A façade: the services that programs call, and the loops that make the services' records true at the clouds.
///
/// Build it with [`Facade::builder`]. A process that only serves calls never starts the loops; another process on the same store
/// does. Clones share everything.
///
/// ```
/// use std::sync::Arc;
/// use fleetwright_compute::prelude::*;
/// use fleetwright_memory::MemoryCloud;
///
/// # const CATALOG: &str = r#"
/// #     [[flavor]]
/// #     id = "small"
/// #     cpus = 2
/// #     memory = "4 GiB"
/// #     disk = "20 GB"
/// #     architecture = "x86_64"
/// #     [[image]]
/// #     id = "debian"
/// #     architecture = "x86_64"
/// #     size = "10 GiB"
/// #     virtualization = "any"
/// #     visibility = "global"
/// #     os = { family = "debian", distro = "debian", version = "13" }
/// # "#;
/// # const MAPPING: &str = r#"
/// #     region = "north"
/// #     provider = "memory"
/// #     flavors = { small = "m1" }
/// #     images = { debian = "img-7" }
/// #     [networks.default]
/// #     subnet = "net-1"
/// # "#;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let clock = Arc::new(TokioClock::starting_at(chrono::DateTime::UNIX_EPOCH));
/// let cloud = Arc::new(MemoryCloud::new().provisioner());
/// let facade = Facade::builder()
///     .store(Arc::new(MemoryStore::new(Facade::schema()?)))
///     .catalog(CATALOG)
///     .region(cloud, MAPPING)
///     .without_server_keys()
/// #   .clock(clock)
///     .build()
///     .await?;
/// let running = facade.start();
///
/// // The operator names the first administrator, who creates an organization, a project and its user.
/// let olga = Actor::User(ActorName::new("olga")?);
/// facade.tenancy.bootstrap(&olga).await?;
/// let olga = facade.tenancy.principal(&olga).await?.principal;
/// let new = NewOrganization::new(TenantName::new("acme")?);
/// let organization = facade.tenancy.create_organization(&olga, &new).await?.id;
/// let new = NewProject::new(organization, TenantName::new("shop")?);
/// let project = facade.tenancy.create_project(&olga, &new).await?.id;
/// let ada = Actor::User(ActorName::new("ada")?);
/// let scope = Scope::Project(organization, project);
/// let binding = NewRoleBinding::new(ada.clone(), RoleName::new("project-user")?, scope);
/// facade.tenancy.bind(&olga, &binding).await?;
///
/// // Each request of hers is made with the principal that her bindings give her now.
/// let ada = facade.tenancy.principal(&ada).await?.principal;
/// let network = NewNetwork {
///     organization, project, region: "north".parse()?, name: "blue".parse()?,
///     prefix: "10.0.0.0/16".parse()?, dns: Vec::new(),
/// };
/// let network = facade.networks.create(&ada, &network).await?.value.id;
/// let spec = InstanceSpec::new("small".parse()?, "debian".parse()?);
/// let new = NewInstance::new("web-1".parse()?, (organization, project), network, spec);
/// let id = facade.instances.create(&ada, &new).await?.instance.id;
/// let view = facade.instances.wait_until_provisioned(&ada, id, Duration::from_secs(60)).await?;
/// assert_eq!(view.instance.status.phase, Phase::Running);
/// running.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Facade {
    /// Where every record is kept. User data is sealed in what is written through it, and opened in what is read.
    pub store: Arc<dyn Store>,
    /// The same store, for operators who seal user data again.
    pub sealed_store: Arc<SealedStore>,
    /// The source of every date.
    pub clock: Arc<dyn Clock>,
    /// Organizations, projects and role bindings, and the principals of users.
    pub tenancy: Tenancy,
    /// Who did what, and when.
    pub audit: AuditLog,
    /// The accounts of the regions at their clouds, for operators.
    pub accounts: Arc<RegionAccounts>,
    /// The flavors and images on offer.
    pub catalog: Arc<CatalogService>,
    /// The tenants' networks.
    pub networks: Arc<Networks>,
    /// The tenants' security groups.
    pub security_groups: Arc<SecurityGroups>,
    /// The tenants' SSH certificate authorities.
    pub ssh_authorities: Arc<SshAuthorities>,
    /// Quotas, and what each instance uses of them.
    pub ledger: Ledger,
    /// The tenants' instances: the service that most programs call.
    pub instances: Instances,
    /// The servers behind the instances, for operators.
    pub servers: Servers,
    /// Consoles, keys and snapshots of the servers' machines, for operators.
    pub machines: MachineAccess,
    /// Whether servers have SSH key pairs, and the service that keeps them.
    pub server_keys: SshKeys,
    /// Checks that what an instance refers to exists and that its tenant may use it.
    pub dependencies: Arc<dyn DependencyChecker>,
    /// Keeps one server for each instance, and records its status.
    pub instance_controller: Controller,
    /// Deletes the instances of networks that are being deleted, and then the networks.
    pub network_controller: NetworkDeletionController,
    /// The regions, in the order in which they were added.
    pub regions: Arc<[FacadeRegion]>,
}

/// One region of a façade, with the loops that work for it.
///
/// A process can run the loops of one region alone:
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// # let facade = fleetwright_facade_testkit::TestFacade::new().await;
/// let north = facade.regions.iter().find(|region| region.id.as_str() == "north").unwrap();
/// tokio::select! {
///     () = north.run() => {} // it runs until it is dropped
///     () = tokio::time::sleep(std::time::Duration::from_secs(60)) => {}
/// }
/// # }
/// ```
#[non_exhaustive]
pub struct FacadeRegion {
    /// The region.
    pub id: RegionId,
    /// The handle of its cloud.
    pub provisioner: Arc<dyn InstanceProvisioner>,
    /// Turns flavors, images and networks into the cloud's own names.
    pub planner: Arc<dyn LaunchPlanner>,
    /// Brings each server of the region to its desired state.
    pub controller: servers::Controller,
    /// Scans the cloud and records what it observes.
    pub monitor: Monitor,
    /// Creates the images that were requested as snapshots.
    pub snapshots: Snapshots,
}

impl Facade {
    /// Seals every secret again that is not sealed with the current key of the keyring: user data and SSH keys. When it returns a report
    /// without any record, the old keys can be removed from the keyring.
    ///
    /// It needs the permission to update regions, which only roles of the platform have. The audit log gets an entry about the record
    /// `keyring` before anything is sealed.
    ///
    /// # Errors
    ///
    /// The permission is missing; or the store or the entropy fails. What was sealed before stays so: call it again.
    pub async fn reseal(&self, principal: &Principal) -> Result<ResealReport, KeyError> {
        let (verb, resource, scope) = (Verb::Update, Resource::Regions, Scope::Global);
        principal.authorize(verb, resource, &scope)?;
        let event = AuditEvent::new(principal.actor(), verb, resource, "keyring", scope);
        let event = event.outcome(AuditOutcome::Requested);
        self.audit.record(&event).await?;
        let mut report = self.sealed_store.reseal().await?;
        if let SshKeys::OnePerServer(keys) = &self.server_keys {
            let of_keys = keys.reseal().await?;
            report.count += of_keys.count;
            report.failed.extend(of_keys.failed);
            report.damaged.extend(of_keys.damaged);
        }
        Ok(report)
    }
}

impl fmt::Debug for Facade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let regions: Vec<_> = self.regions.iter().map(|region| &region.id).collect();
        f.debug_struct("Facade")
            .field("regions", &regions)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for FacadeRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FacadeRegion")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
