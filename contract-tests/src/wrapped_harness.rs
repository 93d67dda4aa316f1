//! A harness whose handles are wrapped, to test a stack of layers against the contract of its
//! backend.
//!
//! Owns the forwarding of every harness method. Faults and the oracle are never wrapped.

use std::{fmt, num::NonZeroUsize, sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright::{
    ImageId, InstanceConfig, InstanceId, InstanceProvisioner, InstanceType, Placement, Zone,
};

use crate::{
    ExternalActor, Faults, Harness, NotApplicable, OnMissing, Oracle, StateWaiter, Time,
    waiver::Peer,
};

/// The function that wraps a handle.
type Wrap = dyn Fn(Arc<dyn InstanceProvisioner>) -> Arc<dyn InstanceProvisioner> + Send + Sync;

/// The harness of a backend whose handles are all wrapped, usually in layers. Faults and the oracle
/// stay those of the backend: they act below the layers.
///
/// ```
/// # use std::sync::Arc;
/// # use fleetwright::{InstanceConfig, InstanceId, InstanceProvisioner, async_trait};
/// # use fleetwright_contract_tests::Harness;
/// # struct MyHarness(fleetwright_memory::MemoryCloud);
/// # impl MyHarness {
/// #     fn new() -> Self { Self(fleetwright_memory::MemoryCloud::new()) }
/// # }
/// # #[async_trait]
/// # impl Harness for MyHarness {
/// #     fn name(&self) -> String { "my cloud".to_owned() }
/// #     async fn open(&self) -> Arc<dyn InstanceProvisioner> { Arc::new(self.0.provisioner()) }
/// #     fn config(&self) -> InstanceConfig { InstanceConfig::builder("image-1", "small").build().unwrap() }
/// #     fn unknown_id(&self) -> InstanceId { InstanceId::new("i-unknown").unwrap() }
/// # }
/// use fleetwright::layer::Stack;
/// use fleetwright_contract_tests::{WrappedHarness, contract_tests};
///
/// fn layered() -> WrappedHarness<MyHarness> {
///     WrappedHarness::new("my-cloud-layered", MyHarness::new(), |inner| Stack::default().wrap(inner))
/// }
///
/// contract_tests!(layered);
/// # fn main() {}
/// ```
pub struct WrappedHarness<H> {
    name: String,
    base: H,
    wrap: Box<Wrap>,
}

impl<H: Harness> WrappedHarness<H> {
    /// Wraps every handle of `base` with `wrap`. Reports use `name`.
    pub fn new(
        name: impl Into<String>,
        base: H,
        wrap: impl Fn(Arc<dyn InstanceProvisioner>) -> Arc<dyn InstanceProvisioner>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            base,
            wrap: Box::new(wrap),
        }
    }
}

impl<H> fmt::Debug for WrappedHarness<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WrappedHarness")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<H: Harness> Harness for WrappedHarness<H> {
    fn name(&self) -> String {
        self.name.clone()
    }

    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        (self.wrap)(self.base.open().await)
    }

    async fn open_with_other_options(&self) -> Arc<dyn InstanceProvisioner> {
        (self.wrap)(self.base.open_with_other_options().await)
    }
    fn config(&self) -> InstanceConfig {
        self.base.config()
    }

    fn unknown_id(&self) -> InstanceId {
        self.base.unknown_id()
    }

    fn time(&self) -> Time {
        self.base.time()
    }

    fn budget(&self) -> Duration {
        self.base.budget()
    }

    fn sweep_accounts(&self) -> NonZeroUsize {
        self.base.sweep_accounts()
    }

    fn not_applicable(&self) -> Vec<NotApplicable> {
        self.base.not_applicable()
    }

    fn policy_tag_keys(&self) -> Vec<String> {
        self.base.policy_tag_keys()
    }

    fn unknown_image(&self) -> Option<ImageId> {
        self.base.unknown_image()
    }

    fn unknown_type(&self) -> Option<InstanceType> {
        self.base.unknown_type()
    }

    fn other_image(&self) -> Option<ImageId> {
        self.base.other_image()
    }

    fn other_type(&self) -> Option<InstanceType> {
        self.base.other_type()
    }

    fn zone(&self) -> Option<Zone> {
        self.base.zone()
    }

    fn placement(&self) -> Placement {
        self.base.placement()
    }

    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        self.base.oracle()
    }

    fn faults(&self) -> Option<Arc<dyn Faults>> {
        self.base.faults()
    }

    fn external_actor(&self) -> Option<Arc<dyn ExternalActor>> {
        self.base.external_actor()
    }

    fn secrets(&self) -> Vec<String> {
        self.base.secrets()
    }

    fn peer(&self) -> Option<Peer> {
        self.base.peer()
    }

    fn waivers(&self) -> String {
        self.base.waivers()
    }

    fn on_missing(&self) -> OnMissing {
        self.base.on_missing()
    }

    fn state_waiter(&self) -> Arc<dyn StateWaiter> {
        self.base.state_waiter()
    }
}
