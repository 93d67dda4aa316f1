//! An emulated cloud, a provisioner on it, and the vendor's SDK on it.

use std::{sync::Arc, time::Duration};

use fleetwright::{InstanceConfig, InstanceProvisioner};
use fleetwright_azure::{AzureCredentials, AzureLaunchConfig, AzureOptions, AzureProvisioner};
use fleetwright_ec2::{Ec2LaunchConfig, Ec2Options, Ec2Provisioner};
use fleetwright_emulators::{Cloud, Emulator, azure, ec2, gcp};
use fleetwright_gcp::{
    GcpLaunchConfig, GcpOptions, GcpProvisioner, google_cloud_auth::credentials::anonymous,
};

use super::{
    Calls,
    sdk::{Sdk, TAG, azure as azure_sdk, ec2 as ec2_sdk, gcp as gcp_sdk},
};

use crate::python::Client;

/// The largest number of instances that one external action launches.
const BATCH: u32 = 1_000;

/// A cloud that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// Amazon EC2.
    Ec2,
    /// Google Compute Engine.
    Gcp,
    /// Microsoft Azure.
    Azure,
}

impl Vendor {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ec2, Self::Gcp, Self::Azure];

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ec2 => "EC2",
            Self::Gcp => "Compute Engine",
            Self::Azure => "Azure",
        }
    }
}

impl Vendor {
    /// Returns the names of the Python clients, as `python/client.py` has them.
    pub const fn python_clients(self) -> &'static [&'static str] {
        match self {
            Self::Ec2 => &["boto3", "apache-libcloud"],
            Self::Gcp => &["google-cloud-compute"],
            Self::Azure => &["azure-mgmt-compute"],
        }
    }
}

/// A running emulator of any cloud.
pub trait Emulated: Send + Sync {
    /// Where it listens.
    fn endpoint(&self) -> String;
    /// All calls since the last reset, by name.
    fn calls(&self) -> Calls;
    /// Removes everything. Ids do not repeat with another seed.
    fn reset(&self, seed: u64);
    /// Launches instances with [`TAG`] past the API. Returns their native ids.
    fn populate(&self, count: u32) -> Vec<String>;
}

/// An emulator, how it counts, and how it launches past the API.
struct Running<C: Cloud> {
    emulator: Emulator<C>,
    calls: fn(C::Oracle) -> Calls,
    launch: fn(u32, u32) -> C::ExternalAction,
}

impl<C: Cloud> Emulated for Running<C>
where
    Emulator<C>: Send + Sync,
    C::Refusal: std::fmt::Debug,
{
    fn endpoint(&self) -> String {
        self.emulator.endpoint()
    }

    fn calls(&self) -> Calls {
        (self.calls)(self.emulator.oracle())
    }

    fn reset(&self, seed: u64) {
        self.emulator.reset(Some(seed));
    }

    fn populate(&self, count: u32) -> Vec<String> {
        let mut ids = Vec::new();
        for batch in 0..count.div_ceil(BATCH) {
            let some = BATCH.min(count - batch * BATCH);
            let action = (self.launch)(batch, some);
            let launched = self.emulator.perform_external(action);
            ids.extend(launched.expect("an external launch"));
        }
        ids
    }
}

/// What a measurement needs of one cloud.
#[expect(missing_debug_implementations, reason = "an SDK has none")]
pub struct World {
    /// The cloud.
    pub vendor: Vendor,
    /// The emulator.
    pub emulator: Box<dyn Emulated>,
    /// The vendor's SDK.
    pub sdk: Box<dyn Sdk>,
    /// The provisioner without layers, with its default options; on Azure a launch does not wait for its operation.
    pub bare: Arc<dyn InstanceProvisioner>,
}

impl World {
    /// Starts the Python clients of this cloud. Prints why one cannot start.
    pub fn python_clients(&self) -> Vec<(&'static str, Client)> {
        let names = self.vendor.python_clients().iter();
        let started = names.filter_map(|name| {
            let client = Client::start(name, &self.emulator.endpoint());
            let client = client.map_err(|reason| eprintln!("not measured: {name}: {reason}"));
            Some((*name, client.ok()?))
        });
        started.collect()
    }

    /// Starts an emulator whose transitions take this long.
    pub async fn start(vendor: Vendor, transition: Duration) -> Self {
        match vendor {
            Vendor::Ec2 => Self::ec2(transition),
            Vendor::Gcp => Self::gcp(transition).await,
            Vendor::Azure => Self::azure(transition),
        }
    }

    /// Returns the config of a launch, with a token if one is given.
    pub fn config(&self, token: Option<&str>) -> InstanceConfig {
        let (image, kind) = match self.vendor {
            Vendor::Ec2 => (ec2_sdk::IMAGE, ec2_sdk::TYPE),
            Vendor::Gcp => (gcp_sdk::IMAGE, gcp_sdk::TYPE),
            Vendor::Azure => (azure_sdk::IMAGE, azure_sdk::TYPE),
        };
        let config = InstanceConfig::builder(image, kind).tag(TAG.0, TAG.1);
        let config = match token {
            Some(token) => config.launch_token(token),
            None => config,
        };
        config.build().expect("a valid config")
    }

    fn ec2(transition: Duration) -> Self {
        let mut knobs = ec2::Knobs::default();
        knobs.timing.boot = transition;
        knobs.timing.stop = transition;
        knobs.timing.terminate = transition;
        knobs.subnets.truncate(1);
        knobs.subnets[0].cidr = "10.0.0.0/12".parse().expect("a range");
        let emulator = ec2::Ec2Emulator::start(knobs).expect("an emulator");
        let endpoint = emulator.endpoint();
        let settings = ec2_sdk::settings(&endpoint);
        let (launch, options) = (Ec2LaunchConfig::new(), Ec2Options::default());
        let bare = Ec2Provisioner::new(&settings, launch, options).expect("valid settings");
        Self {
            vendor: Vendor::Ec2,
            sdk: Box::new(ec2_sdk::Ec2Sdk::new(&endpoint)),
            bare: Arc::new(bare),
            emulator: Box::new(Running {
                emulator,
                calls: |oracle| oracle.calls,
                launch: |_, count| ec2::ExternalAction::LaunchExternal {
                    image: None,
                    instance_type: None,
                    zone: None,
                    count,
                    tags: [(TAG.0.to_owned(), TAG.1.to_owned())].into(),
                },
            }),
        }
    }

    async fn gcp(transition: Duration) -> Self {
        let mut knobs = gcp::Knobs::default();
        knobs.timing = gcp::Timing::all(transition);
        knobs.timing.pending = Duration::ZERO;
        // Repeated lists of a large fleet would exhaust it, and a refusal is not what is measured.
        knobs.filtered_list_quota = 1_000_000_000_000;
        let range = "10.0.0.0/12".parse().expect("a range");
        knobs.subnetworks = vec![gcp::Subnetwork::new("us-central1", range)];
        let emulator = gcp::GcpEmulator::start(knobs).expect("an emulator");
        let endpoint = emulator.endpoint();
        let zone = gcp_sdk::ZONE.parse().expect("a zone");
        let launch = GcpLaunchConfig::new(gcp_sdk::PROJECT, [zone]);
        let keys = anonymous::Builder::new().build();
        let bare = GcpProvisioner::new(keys, Some(&endpoint), launch, GcpOptions::default()).await;
        Self {
            vendor: Vendor::Gcp,
            sdk: Box::new(gcp_sdk::GcpSdk::new(&endpoint).await),
            bare: Arc::new(bare.expect("valid settings")),
            emulator: Box::new(Running {
                emulator,
                calls: |oracle| oracle.calls,
                launch: |batch, count| gcp::ExternalAction::LaunchExternal {
                    project: gcp_sdk::PROJECT.to_owned(),
                    zone: Some(gcp_sdk::ZONE.to_owned()),
                    name: Some(format!("vm-{batch}")),
                    machine_type: None,
                    count,
                    labels: [(TAG.0.to_owned(), TAG.1.to_owned())].into(),
                    metadata: [].into(),
                },
            }),
        }
    }

    fn azure(transition: Duration) -> Self {
        let mut knobs = azure::Knobs::default();
        knobs.timing = azure::Timing::all(transition);
        knobs.timing.update = Duration::ZERO;
        let range = "10.0.0.0/12".parse().expect("a range");
        let network = azure::VirtualNetwork::new(azure_sdk::GROUP, "vnet", "eastus", range);
        knobs.virtual_networks = vec![network];
        let emulator = azure::AzureEmulator::start(knobs).expect("an emulator");
        let endpoint = emulator.endpoint();
        let subnet = "vnet/default".parse().expect("a subnet");
        let launch = AzureLaunchConfig::new(
            azure_sdk::SUBSCRIPTION,
            azure_sdk::GROUP,
            "eastus",
            subnet,
            azure_sdk::KEY,
        );
        let mut options = AzureOptions::default();
        options.endpoint.clone_from(&endpoint);
        // As the SDK's call, a launch returns when it is accepted.
        options.launch_wait = Duration::ZERO;
        let bare = AzureProvisioner::new(AzureCredentials::token("any"), launch, options);
        Self {
            vendor: Vendor::Azure,
            sdk: Box::new(azure_sdk::AzureSdk::new(&endpoint)),
            bare: Arc::new(bare.expect("valid settings")),
            emulator: Box::new(Running {
                emulator,
                calls: |oracle| oracle.calls,
                launch: |batch, count| azure::ExternalAction::CreateExternal {
                    subscription: Some(azure_sdk::SUBSCRIPTION.to_owned()),
                    resource_group: Some(azure_sdk::GROUP.to_owned()),
                    prefix: Some(format!("vm-{batch}-")),
                    size: None,
                    count,
                    tags: [(TAG.0.to_owned(), TAG.1.to_owned())].into(),
                },
            }),
        }
    }
}
