//! The knobs of the emulated Azure, with which a test makes it slow, scarce, strict or
//! inconsistent.
//!
//! Owns only values. The same JSON document is the program's `--knobs` file and the body of the
//! control endpoint's `/_emulator/knobs`; durations are milliseconds there. Fields that a file
//! leaves out have their defaults; fields that a `PATCH` leaves out keep their values.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    time::Duration,
};

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

use super::catalog::{
    Location, MarketplaceImage, ResourceGroup, SecurityGroup, SizeSpec, VirtualNetwork,
};
use crate::cloud::impl_common_knobs;
pub use crate::cloud::{
    knobs::{Capacity, Counts, LateFailure, LimitCheck, Market, Refill, Throttle},
    lag::Lag,
};

/// The settings of the emulated Azure. [`Knobs::default`] is a cloud without lag, limits or
/// failures.
///
/// ```
/// use fleetwright_emulators::azure::{AzureEmulator, Knobs, LateFailure, RetryAfter};
///
/// let mut knobs = Knobs::default();
/// knobs.vcpu_quota = Some(4);
/// knobs.retry_after = RetryAfter::Date;
/// knobs.late_failures = vec![LateFailure::new("AllocationFailed", "no capacity")];
/// AzureEmulator::start(knobs)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Knobs {
    /// The seed of all random choices: ids and lags. Default 0. A change takes effect at the next
    /// reset.
    pub seed: u64,
    /// The subscriptions that exist. Default: empty, which accepts any id.
    pub subscriptions: BTreeSet<String>,
    /// The bearer tokens that are accepted. Default: empty, which accepts any token.
    pub tokens: BTreeSet<String>,
    /// How long transitions take, and how long things are remembered. Default: [`Timing::default`].
    pub timing: Timing,
    /// Eventual consistency of reads and writes. Default: none.
    pub lag: Lag,
    /// Reads that do not show resources that exist. Default: none.
    pub omissions: Omissions,
    /// What a list of a whole subscription returns. Default: everything.
    pub subscription_lists: SubscriptionLists,
    /// The maximum number of items on a page. Default 500.
    pub page_size: NonZeroU32,
    /// The seconds of the `Retry-After` header of an operation in progress; `None` omits the
    /// header. Default 0.
    pub poll_after_secs: Option<u64>,
    /// The form of `Retry-After` in the response to a throttled call. Default: seconds.
    pub retry_after: RetryAfter,
    /// Scheme, host and port of operation URLs. Default: those of the request.
    pub polling_origin: Option<String>,
    /// Scheme, host and port of the `nextLink` of a page. Default: those of the request.
    pub link_origin: Option<String>,
    /// The maximum number of vCPUs in a location, of allocated and deallocated machines. Default:
    /// no limit.
    pub vcpu_quota: Option<u64>,
    /// The maximum number of vCPUs of spot machines in a location. Default: no limit.
    pub spot_vcpu_quota: Option<u64>,
    /// The maximum number of vCPUs in a location by size family. Default: no limit.
    pub family_quota: BTreeMap<String, u64>,
    /// The maximum number of virtual machines in a location. Default: no limit.
    pub vm_quota: Option<u64>,
    /// When an exhausted quota is reported. Default: immediately, 409 `OperationNotAllowed`.
    pub quota_check: LimitCheck,
    /// How many machines there are. Default: no rule, so there is no limit.
    pub capacity: Vec<Capacity>,
    /// When missing capacity is reported. Default: in the operation, `AllocationFailed` or
    /// `ZonalAllocationFailed`; immediately it is `SkuNotAvailable`.
    pub capacity_check: LimitCheck,
    /// Creations that are accepted and whose operation fails; the failed machine remains. Default:
    /// none.
    pub late_failures: Vec<LateFailure>,
    /// Token buckets by operation. All operations without their own bucket share the bucket `*`.
    /// Default: none.
    pub throttle: BTreeMap<String, Throttle>,
    /// The locations; external actions use the first one. Default `eastus` and `westus`.
    pub locations: Vec<Location>,
    /// The resource groups, in every subscription. Default `rg` and `other`.
    pub resource_groups: Vec<ResourceGroup>,
    /// The virtual networks, in every subscription. Default: `vnet` in `rg`, 10.0.0.0/16.
    pub virtual_networks: Vec<VirtualNetwork>,
    /// The network security groups, in every subscription. Default: `nsg` in `rg`.
    pub network_security_groups: Vec<SecurityGroup>,
    /// The images of the marketplace. Default: Linux for `x64` and `Arm64`, and Windows for `x64`.
    pub images: Vec<MarketplaceImage>,
    /// The sizes of virtual machines. Default: seven common ones.
    pub sizes: Vec<SizeSpec>,
}

impl Default for Knobs {
    fn default() -> Self {
        let network = Ipv4Net::new_assert([10, 0, 0, 0].into(), 16);
        Self {
            seed: 0,
            subscriptions: BTreeSet::new(),
            tokens: BTreeSet::new(),
            timing: Timing::default(),
            lag: Lag::default(),
            omissions: Omissions::default(),
            subscription_lists: SubscriptionLists::default(),
            page_size: NonZeroU32::MIN.saturating_add(499),
            poll_after_secs: Some(0),
            retry_after: RetryAfter::Seconds,
            polling_origin: None,
            link_origin: None,
            vcpu_quota: None,
            spot_vcpu_quota: None,
            family_quota: BTreeMap::new(),
            vm_quota: None,
            quota_check: LimitCheck::Immediate,
            capacity: Vec::new(),
            capacity_check: LimitCheck::InOperation,
            late_failures: Vec::new(),
            throttle: BTreeMap::new(),
            locations: Location::standard(),
            resource_groups: vec![
                ResourceGroup::new("rg", "eastus"),
                ResourceGroup::new("other", "westus"),
            ],
            virtual_networks: vec![VirtualNetwork::new("rg", "vnet", "eastus", network)],
            network_security_groups: vec![SecurityGroup::new("rg", "nsg", "eastus")],
            images: MarketplaceImage::standard(),
            sizes: SizeSpec::standard(),
        }
    }
}

/// Reads that do not show resources that exist, however old these are. In percent; values above 100
/// count as 100.
///
/// - azure-sdk-for-go#17195, azure-cli#24612: a list of virtual machines is empty for minutes, while a GET of
///   each machine succeeds. azure-powershell#20724: the resource manager's list of resources omits 31 of 340
///   machines that the list of virtual machines has.
/// - terraform-provider-azurerm#18268 quotes Microsoft: the resource manager copies its data between regions
///   asynchronously, so a GET returns 404 or not depending on the region that serves it.
/// - terraform-provider-azurerm#4682, azure-sdk-for-go#21608: a creation in a resource group that exists is
///   refused because the group is not found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Omissions {
    /// How likely a list of virtual machines omits a machine. Each list and each machine is decided
    /// separately. Default 0.
    pub lists: u8,
    /// How likely a GET of a virtual machine, interface or public address returns 404
    /// `ResourceNotFound`. Default 0.
    pub reads: u8,
    /// How many GETs of a resource in a row return 404 at most. Default: no limit.
    pub reads_in_a_row: Option<u8>,
    /// How likely the creation of a virtual machine returns 404 `ResourceGroupNotFound`. Default 0.
    pub groups: u8,
    /// How many creations in a resource group in a row return that 404 at most. Default: no limit.
    pub groups_in_a_row: Option<u8>,
}

/// What a list of a whole subscription returns to a client whose rights cover one resource group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubscriptionLists {
    /// Everything: the client has rights on the subscription.
    #[default]
    Complete,
    /// 403 `AuthorizationFailed`.
    Forbidden,
    /// An empty list, as azure-sdk-for-go#14110 reports.
    Empty,
}

/// The form of a `Retry-After` header. HTTP allows both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfter {
    /// Seconds from now.
    #[default]
    Seconds,
    /// The date of the next attempt.
    Date,
}

/// How long transitions take, and how long things are remembered. In JSON, milliseconds.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_emulators::azure::Knobs;
///
/// let mut knobs = Knobs::default();
/// knobs.timing.boot = Duration::from_secs(30);
/// knobs.timing.operation_retention = Duration::from_secs(60);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Timing {
    /// From creation or start to running. Default 100 ms.
    #[serde(with = "crate::cloud::millis")]
    pub boot: Duration,
    /// How much longer a creation or start takes to fail than to succeed: missing capacity arrives in the
    /// operation (Azure/azure-cli#2401, MicrosoftDocs/azure-docs#41402). Default 100 ms, at the scale of the
    /// other steps. That the state of the failed creation is `Creating` until then is assumed.
    #[serde(with = "crate::cloud::millis")]
    pub shortage: Duration,
    /// From powerOff to stopped, and from deallocate to deallocated. Default 100 ms.
    #[serde(with = "crate::cloud::millis")]
    pub stop: Duration,
    /// From delete until a virtual machine is removed. Default 100 ms.
    #[serde(with = "crate::cloud::millis")]
    pub delete: Duration,
    /// The duration of all other changes, for example of tags, disks and interfaces. Default 0.
    #[serde(with = "crate::cloud::millis")]
    pub update: Duration,
    /// The duration of the creation of an image. Default 100 ms.
    #[serde(with = "crate::cloud::millis")]
    pub image: Duration,
    /// How long an operation is kept after its end. Default one day.
    #[serde(with = "crate::cloud::millis")]
    pub operation_retention: Duration,
    /// How long an interface is reserved after a failure for the virtual machine that failed.
    /// Default three minutes, as Azure's error text says.
    #[serde(with = "crate::cloud::millis")]
    pub nic_reservation: Duration,
    /// How long after the deletion of a virtual machine a creation under its name is refused with 404
    /// `NotFound`. Default 0. Azure then takes the creation for a change of the deleted machine;
    /// azure-sdk-for-go#1828, terraform-provider-azurerm#8367.
    #[serde(with = "crate::cloud::millis")]
    pub recreation: Duration,
    /// How long after its deletion a resource is reported as `NotFound` by the provider, before the
    /// resource manager reports it as `ResourceNotFound`. Default 100 ms.
    #[serde(with = "crate::cloud::millis")]
    pub deleted_retention: Duration,
}

impl Timing {
    /// Sets the duration of every transition. How long things are remembered keeps its default.
    pub fn all(duration: Duration) -> Self {
        Self {
            boot: duration,
            shortage: duration,
            stop: duration,
            delete: duration,
            update: duration,
            image: duration,
            ..Self::default()
        }
    }
}

impl Default for Timing {
    /// A tenth of a second for transitions, nothing for small changes, a day for operations, and
    /// three minutes for reserved interfaces.
    fn default() -> Self {
        let tenth = Duration::from_millis(100);
        Self {
            boot: tenth,
            shortage: tenth,
            stop: tenth,
            delete: tenth,
            update: Duration::ZERO,
            image: tenth,
            operation_retention: Duration::from_secs(24 * 3600),
            nic_reservation: Duration::from_secs(180),
            recreation: Duration::ZERO,
            deleted_retention: tenth,
        }
    }
}

impl_common_knobs!(Knobs);
