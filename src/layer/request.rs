//! The trait of a layer, and the description of a call that a layer gets.
//!
//! Owns the interface between [`Layered`](super::Layered) and a layer. It never exposes the
//! contents of a call that a layer has no business to read, such as a filter or tag changes.

use std::{
    borrow::Cow,
    fmt::{self, Debug},
    num::NonZeroU32,
};

use futures_util::future::BoxFuture;

use crate::{
    BoxStream, Call, Capabilities, Effect, InstanceConfig, InstanceId, InstanceInfo,
    InstanceProvisioner, LaunchToken, ListItem, Operation, Result,
};

/// The description of a call that passes through a layer.
///
/// It does not contain the arguments of the call, so that a layer cannot depend on them; a launch
/// passes its config to [`Layer::launch`] in addition. `Debug` prints the number of ids only.
#[derive(Clone)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The call. It creates the errors that the layer returns.
    pub call: Call,
    /// The instances of the call: one, or those of a batch. Empty for launches, lists and deletions of images.
    pub ids: &'a [InstanceId],
    /// The token of a launch or of a [`find_launch`](InstanceProvisioner::find_launch).
    pub token: Option<&'a LaunchToken>,
    /// How many instances a launch creates; 1 for every other call.
    pub count: NonZeroU32,
    /// The provisioner below the layer, to find out what became of a launch.
    pub inner: &'a dyn InstanceProvisioner,
}

impl<'a> Request<'a> {
    /// Describes a call without instances or token.
    pub(crate) fn new(inner: &'a dyn InstanceProvisioner, call: Call) -> Self {
        Self {
            call,
            ids: &[],
            token: None,
            count: NonZeroU32::MIN,
            inner,
        }
    }

    /// Sets the instances of the call.
    pub(crate) fn about(self, ids: &'a [InstanceId]) -> Self {
        Self { ids, ..self }
    }

    /// Sets the token of the call.
    pub(crate) fn with_token(self, token: Option<&'a LaunchToken>) -> Self {
        Self { token, ..self }
    }

    /// Sets how many instances the launch creates.
    pub(crate) fn with_count(self, count: NonZeroU32) -> Self {
        Self { count, ..self }
    }

    /// Returns the operation of the call.
    pub fn operation(&self) -> Operation {
        self.call.operation()
    }

    /// Returns the backend's capabilities.
    pub fn capabilities(&self) -> &'a Capabilities {
        self.inner.capabilities()
    }

    /// Returns the number of native calls that this call needs in the ordinary case, as the backend
    /// [declares](Capabilities::native_calls) it, and at least one.
    pub fn native_calls(&self) -> NonZeroU32 {
        let instances = match self.operation() {
            Operation::LaunchInstance | Operation::LaunchInstances => {
                usize::try_from(self.count.get()).unwrap_or(usize::MAX)
            }
            Operation::FindLaunch
            | Operation::AccountId
            | Operation::DeleteImage
            | Operation::ListInstances
            | Operation::StreamInstances => 1,
            Operation::TerminateInstance
            | Operation::TerminateInstances
            | Operation::StopInstance
            | Operation::StopInstances
            | Operation::StartInstance
            | Operation::StartInstances
            | Operation::DescribeInstance
            | Operation::DescribeInstances
            | Operation::UpdateTags
            | Operation::RebootInstance
            | Operation::ResizeInstance
            | Operation::ReimageInstance
            | Operation::ConsoleOutput
            | Operation::ConsoleSession
            | Operation::SnapshotImage => self.ids.len(),
        };
        let capabilities = self.capabilities();
        capabilities.native_calls(self.operation(), instances)
    }

    /// Returns `results` if there are `expected` of them. A backend that returned another number
    /// gets an error for each id instead, because no result can be attributed to an id.
    pub(crate) fn one_result_per_id<T>(
        &self,
        expected: usize,
        results: Vec<Result<T>>,
    ) -> Vec<Result<T>> {
        if results.len() == expected {
            return results;
        }
        let returned = results.len();
        let message = format!("the backend returned {returned} results for {expected} instances");
        let error = self.call.unexpected(Effect::Unknown, &message);
        (0..expected).map(|_| Err(error.clone())).collect()
    }
}

impl Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("call", &self.call)
            .field("ids", &self.ids.len())
            .field("token", &self.token)
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

/// Code around every call of a provisioner. [`Layered`](super::Layered) puts it there.
///
/// Each method gets a description of the call and a function that sends it to the provisioner below.
/// The layer may send the call once, several times or not at all, and may change the result. Every
/// default body passes the call on unchanged, so implement only what the layer changes. The
/// [module](super#writing-a-layer) has an example.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use fleetwright::{BoxFuture, InstanceFilter, InstanceProvisioner as _, Result, layer::{Layer, Layered, Request}};
/// use fleetwright_memory::MemoryCloud;
///
/// /// Counts calls with one result, and passes them on.
/// #[derive(Debug, Default)]
/// struct Count(AtomicU64);
///
/// impl Layer for &Count {
///     fn call<'a, T: Send + 'a>(
///         &'a self,
///         _: Request<'a>,
///         send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
///     ) -> BoxFuture<'a, Result<T>> {
///         self.0.fetch_add(1, Ordering::Relaxed);
///         send()
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let count = Count::default();
/// let counted = Layered::new(MemoryCloud::new().provisioner(), &count);
/// counted.list_instances(&InstanceFilter::default()).await?;
/// assert_eq!(count.0.load(Ordering::Relaxed), 1);
/// # Ok(())
/// # }
/// ```
///
/// # Rules for implementations
///
/// - A method runs when the call is made. What must wait until the call is polled belongs into the future.
/// - A future or stream that a method returns may be dropped at any point. The layer must not keep a
///   permit or a lock after that.
/// - Send a launch again only with the same token, or after an error without
///   [effect](crate::Effect).
/// - Create errors with [`Request::call`], so that they name the provider and the operation.
pub trait Layer: Send + Sync + Debug {
    /// Handles a call with one result: all calls except launches, batches and the stream.
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        let _ = request;
        send()
    }

    /// Handles a batch call, which has one result for each id, in the order of
    /// [`Request::ids`]. The layer may send a part of the ids, which it then owns.
    fn batch<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn(Cow<'a, [InstanceId]>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<Result<T>>> {
        send(Cow::Borrowed(request.ids))
    }

    /// Handles [`stream_instances`](InstanceProvisioner::stream_instances).
    fn stream<'a>(
        &'a self,
        request: Request<'a>,
        open: impl Fn() -> BoxStream<'a, Result<ListItem>> + Send + Sync + 'a,
    ) -> BoxStream<'a, Result<ListItem>> {
        let _ = request;
        open()
    }

    /// Handles a launch of one instance or of a batch. The layer may send another config, which it then owns.
    ///
    /// The default body handles it as a [`call`](Self::call) with the config unchanged.
    fn launch<'a, T: LaunchOutput + 'a>(
        &'a self,
        request: Request<'a>,
        config: &'a InstanceConfig,
        send: impl Fn(Cow<'a, InstanceConfig>) -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        self.call(request, move || send(Cow::Borrowed(config)))
    }
}

/// The output of a launch: one [`InstanceInfo`], or a `Vec` of them for a batch.
///
/// ```
/// use std::num::NonZeroU32;
/// use fleetwright::{CloudInstanceState, InstanceId, InstanceInfo, layer::LaunchOutput as _};
///
/// let running = InstanceInfo::new(InstanceId::new("i-1")?, CloudInstanceState::Running);
/// let two = NonZeroU32::new(2).expect("not zero");
/// assert!(InstanceInfo::complete(vec![running.clone()], NonZeroU32::MIN).is_some());
/// assert!(Vec::complete(vec![running], two).is_none(), "one of two instances is missing");
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
pub trait LaunchOutput: Sized + Send {
    /// Builds the output of a launch of `count` instances from the instances that a look-up of its
    /// token `found`. Returns `None` if the launch is incomplete: instances are missing, or some are
    /// terminating or terminated.
    fn complete(found: Vec<InstanceInfo>, count: NonZeroU32) -> Option<Self>;

    /// Returns the launched instances.
    fn instances(&mut self) -> &mut [InstanceInfo];
}

impl LaunchOutput for InstanceInfo {
    fn complete(found: Vec<InstanceInfo>, _: NonZeroU32) -> Option<Self> {
        let mut live = found.into_iter().filter(|info| !info.state.is_ending());
        live.next()
    }

    fn instances(&mut self) -> &mut [InstanceInfo] {
        std::slice::from_mut(self)
    }
}

impl LaunchOutput for Vec<InstanceInfo> {
    fn complete(found: Vec<InstanceInfo>, count: NonZeroU32) -> Option<Self> {
        let live = found.iter().filter(|info| !info.state.is_ending()).count();
        let all = u32::try_from(live) == Ok(count.get()) && found.len() == live;
        all.then_some(found)
    }

    fn instances(&mut self) -> &mut [InstanceInfo] {
        self
    }
}
