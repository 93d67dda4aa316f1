//! A harness whose handles have something around them: how a stack of layers is held to the contract
//! that its backend keeps.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright::{ImageId, InstanceConfig, InstanceId, InstanceProvisioner, InstanceType, Zone};

use crate::{Faults, Harness, Missing, Oracle, Outsider, Time, Waiter, waiver::Peer};

/// What is put around a handle.
type Wrap = dyn Fn(Arc<dyn InstanceProvisioner>) -> Arc<dyn InstanceProvisioner> + Send + Sync;

/// The harness of a backend, with something around every handle that it opens. Faults and the
/// truth stay those of the backend: they are below what is tested.
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
/// #     fn config(&self) -> InstanceConfig { unimplemented!() }
/// #     fn unknown_id(&self) -> InstanceId { unimplemented!() }
/// # }
/// use fleetwright::layer::Stack;
/// use fleetwright_contract_tests::{Wrapped, contract_tests};
///
/// fn layered() -> Wrapped<MyHarness> {
///     Wrapped::new("my-cloud-layered", MyHarness::new(), |inner| Stack::default().wrap(inner))
/// }
///
/// contract_tests!(layered);
/// # fn main() {}
/// ```
pub struct Wrapped<H> {
    name: String,
    base: H,
    wrap: Box<Wrap>,
}

impl<H: Harness> Wrapped<H> {
    /// `base` under the name `name`, with `wrap` around its handles.
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

impl<H> fmt::Debug for Wrapped<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wrapped")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<H: Harness> Harness for Wrapped<H> {
    fn name(&self) -> String {
        self.name.clone()
    }

    async fn open(&self) -> Arc<dyn InstanceProvisioner> {
        (self.wrap)(self.base.open().await)
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

    fn unknown_image(&self) -> Option<ImageId> {
        self.base.unknown_image()
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

    fn oracle(&self) -> Option<Arc<dyn Oracle>> {
        self.base.oracle()
    }

    fn faults(&self) -> Option<Arc<dyn Faults>> {
        self.base.faults()
    }

    fn outsider(&self) -> Option<Arc<dyn Outsider>> {
        self.base.outsider()
    }

    fn peer(&self) -> Option<Peer> {
        self.base.peer()
    }

    fn waivers(&self) -> String {
        self.base.waivers()
    }

    fn when_missing(&self) -> Missing {
        self.base.when_missing()
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        self.base.waiter()
    }
}
