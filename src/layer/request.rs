//! What a layer is, and what it is shown of a call.

use std::{
    fmt::{self, Debug},
    num::NonZeroU32,
};

use futures_util::future::BoxFuture;

use crate::{
    BoxStream, Call, Capabilities, Effect, InstanceConfig, InstanceId, InstanceInfo,
    InstanceProvisioner, LaunchToken, ListItem, Operation, Result,
};

/// A call on its way down, as far as a layer may know it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The call, which makes its errors.
    pub call: Call,
    /// What it is about: one instance, or those of a batch. Empty for launches and lists.
    pub ids: &'a [InstanceId],
    /// The token of a launch or of a look-up.
    pub token: Option<&'a LaunchToken>,
    /// How many instances a launch asks for.
    pub count: NonZeroU32,
    /// What is below the layer, for looking up what became of a launch.
    pub inner: &'a dyn InstanceProvisioner,
}

impl<'a> Request<'a> {
    /// A call of `operation` that is about no instance.
    pub(crate) fn new(inner: &'a dyn InstanceProvisioner, operation: Operation) -> Self {
        Self {
            call: Call::new(inner.capabilities().provider.as_str(), operation),
            ids: &[],
            token: None,
            count: NonZeroU32::MIN,
            inner,
        }
    }

    /// The same about `ids`.
    pub(crate) fn about(self, ids: &'a [InstanceId]) -> Self {
        Self { ids, ..self }
    }

    /// The same with `token`.
    pub(crate) fn with_token(self, token: Option<&'a LaunchToken>) -> Self {
        Self { token, ..self }
    }

    /// The same for `count` instances.
    pub(crate) fn for_instances(self, count: NonZeroU32) -> Self {
        Self { count, ..self }
    }

    /// The operation.
    pub fn operation(&self) -> Operation {
        self.call.operation()
    }

    /// What the backend declares.
    pub fn capabilities(&self) -> &'a Capabilities {
        self.inner.capabilities()
    }

    /// The least number of native calls that this one takes.
    pub fn native_calls(&self) -> NonZeroU32 {
        let batches = self
            .ids
            .len()
            .div_ceil(self.capabilities().batch_size.get());
        let batches = u32::try_from(batches).unwrap_or(u32::MAX);
        NonZeroU32::new(batches).unwrap_or(NonZeroU32::MIN)
    }

    /// One answer for each id, whatever a backend answers that has lost count.
    pub(crate) fn fitted<T>(&self, asked: usize, mut answers: Vec<Result<T>>) -> Vec<Result<T>> {
        if answers.len() != asked {
            let answered = answers.len();
            let message = format!("asked for {asked} instances, {answered} were answered");
            // Which answer is whose cannot be known.
            let error = self.call.unexpected(Effect::Unknown, &message);
            answers = (0..asked).map(|_| Err(error.clone())).collect();
        }
        answers
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

/// Something around every call of a provisioner; [`Layered`](super::Layered) puts it there.
///
/// A layer sends a call by the function it is given, once, again or not at all. It must be ready to
/// be dropped at any point.
pub trait Layer: Send + Sync + Debug {
    /// Around a call with one answer.
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>>;

    /// Around a batch with an answer for each id, in the order asked. A part of it may be sent.
    fn batch<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn(Vec<InstanceId>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<Result<T>>>;

    /// Around a streaming list.
    fn stream<'a>(
        &'a self,
        request: Request<'a>,
        open: impl Fn() -> BoxStream<'a, Result<ListItem>> + Send + Sync + 'a,
    ) -> BoxStream<'a, Result<ListItem>>;

    /// Around a launch, of `config` or of what the layer makes of it.
    fn launch<'a, T: LaunchOutput + 'a>(
        &'a self,
        request: Request<'a>,
        config: &'a InstanceConfig,
        send: impl Fn(InstanceConfig) -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        self.call(request, move || send(config.clone()))
    }
}

/// What a launch answers: one instance or a batch.
pub trait LaunchOutput: Sized + Send {
    /// The answer to a launch that was looked up and is whole: `count` instances, none of them
    /// going.
    fn complete(found: Vec<InstanceInfo>, count: NonZeroU32) -> Option<Self>;
}

impl LaunchOutput for InstanceInfo {
    fn complete(found: Vec<InstanceInfo>, _: NonZeroU32) -> Option<Self> {
        let mut live = found.into_iter().filter(|info| !info.state.is_ending());
        live.next()
    }
}

impl LaunchOutput for Vec<InstanceInfo> {
    fn complete(found: Vec<InstanceInfo>, count: NonZeroU32) -> Option<Self> {
        let live = found.iter().filter(|info| !info.state.is_ending()).count();
        let all = u32::try_from(live) == Ok(count.get()) && found.len() == live;
        all.then_some(found)
    }
}
