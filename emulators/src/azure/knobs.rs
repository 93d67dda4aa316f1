//! The knobs of the emulated Azure: what a test turns to make it slow, scarce, strict or late.
//!
//! Owns only values. The same document is the program's `--knobs` file and the body of the control
//! endpoint's `knobs`; durations there are milliseconds, and what is left out keeps its value.

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
    knobs::{Capacity, Counts, LateFailure, LimitCheck, Market, Throttle},
    lag::Lag,
};

/// Everything that can be turned. [`Knobs::default`] is a well-behaved subscription that answers at
/// once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Knobs {
    /// Where all chance comes from: ids, lags. Counts from the next reset.
    pub seed: u64,
    /// The subscriptions that exist; empty, any does.
    pub subscriptions: BTreeSet<String>,
    /// The bearer tokens that are good; empty, any is.
    pub tokens: BTreeSet<String>,
    /// How long things take.
    pub timing: Timing,
    /// How far reads and writes trail behind.
    pub lag: Lag,
    /// The most that a page holds.
    pub page_size: NonZeroU32,
    /// The seconds of the `Retry-After` header of an operation that goes on; none, no header.
    pub poll_after_secs: Option<u64>,
    /// How `Retry-After` is written where a call is throttled.
    pub retry_after: RetryAfter,
    /// The scheme, host and port of the URLs of operations; none, those that were asked.
    pub polling_origin: Option<String>,
    /// The same, of the links that lead from a page to the next.
    pub link_origin: Option<String>,
    /// The most vCPUs at once in a location, of machines that run or are deallocated.
    pub vcpu_quota: Option<u64>,
    /// The same, on the spot market.
    pub spot_vcpu_quota: Option<u64>,
    /// The same, by family.
    pub family_quota: BTreeMap<String, u64>,
    /// The most virtual machines at once in a location.
    pub vm_quota: Option<u64>,
    /// When a quota is found to be used up.
    pub quota_check: LimitCheck,
    /// How many machines there are; none said, no limit.
    pub capacity: Vec<Capacity>,
    /// When machines are found to be missing.
    pub capacity_check: LimitCheck,
    /// Creations that are accepted and fail in their operation.
    pub late_failures: Vec<LateFailure>,
    /// Token buckets by operation; `*` is shared by all operations that have none of their own.
    pub throttle: BTreeMap<String, Throttle>,
    /// The locations; the first is the default of what others make.
    pub locations: Vec<Location>,
    /// The resource groups, in every subscription.
    pub resource_groups: Vec<ResourceGroup>,
    /// The virtual networks, in every subscription.
    pub virtual_networks: Vec<VirtualNetwork>,
    /// The network security groups, in every subscription.
    pub network_security_groups: Vec<SecurityGroup>,
    /// The images that others publish.
    pub images: Vec<MarketplaceImage>,
    /// The sizes of virtual machines.
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

/// How a `Retry-After` header is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfter {
    /// As seconds from now.
    #[default]
    Seconds,
    /// As the date to come back at.
    Date,
}

/// How long things take, in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Timing {
    /// From creation or start to running.
    #[serde(with = "crate::cloud::millis")]
    pub boot: Duration,
    /// From powerOff or deallocate to stopped or deallocated.
    #[serde(with = "crate::cloud::millis")]
    pub stop: Duration,
    /// From delete until a virtual machine is gone.
    #[serde(with = "crate::cloud::millis")]
    pub delete: Duration,
    /// How long a change of anything else takes, such as of tags, disks and interfaces.
    #[serde(with = "crate::cloud::millis")]
    pub update: Duration,
    /// How long an image takes to be made.
    #[serde(with = "crate::cloud::millis")]
    pub image: Duration,
    /// For how long after its end an operation is remembered.
    #[serde(with = "crate::cloud::millis")]
    pub operation_retention: Duration,
    /// For how long after a failure an interface is reserved for the virtual machine that failed.
    #[serde(with = "crate::cloud::millis")]
    pub nic_reservation: Duration,
    /// For how long after its end the resource manager still asks the provider for a resource, so that
    /// it is `NotFound` and not yet `ResourceNotFound`.
    #[serde(with = "crate::cloud::millis")]
    pub deleted_retention: Duration,
}

impl Timing {
    /// Every transition takes `duration`; what is remembered is remembered as long as by default.
    pub fn all(duration: Duration) -> Self {
        Self {
            boot: duration,
            stop: duration,
            delete: duration,
            update: duration,
            image: duration,
            ..Self::default()
        }
    }
}

impl Default for Timing {
    /// A tenth of a second for what Azure takes up to minutes for, nothing for small changes, a day
    /// for operations, three minutes for reserved interfaces.
    fn default() -> Self {
        let tenth = Duration::from_millis(100);
        Self {
            boot: tenth,
            stop: tenth,
            delete: tenth,
            update: Duration::ZERO,
            image: tenth,
            operation_retention: Duration::from_secs(24 * 3600),
            nic_reservation: Duration::from_secs(180),
            deleted_retention: tenth,
        }
    }
}

impl_common_knobs!(Knobs);
