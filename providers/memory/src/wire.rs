//! The simulated network between a handle and the cloud.
//!
//! Owns latency, faults and crashes. The engine behind it is always correct, and the provisioner in
//! front of it experiences what a real network does. It must not know what a call means.

use std::{
    fmt,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use fleetwright::{Call, Effect, Operation, ProvisionError, Result};
use tokio::time::sleep;

use crate::{
    cloud::Shared,
    engine::{Lag, World},
    error::NativeError,
    fault::{Fault, Phase},
};

/// A native call of the simulated cloud: the unit of faults, throttling and counts.
///
/// One trait method may send several, for example one [`ListPage`](Self::ListPage) per page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WireCall {
    /// Launches one or more instances.
    Launch,
    /// Terminates a batch of instances.
    Terminate,
    /// Stops a batch of instances.
    Stop,
    /// Starts a batch of instances.
    Start,
    /// Describes a batch of instances.
    Describe,
    /// Returns one page of a list.
    ListPage,
    /// Finds the instances of a launch token.
    FindLaunch,
    /// Changes the tags of an instance.
    UpdateTags,
    /// Reboots an instance.
    Reboot,
    /// Changes the type of an instance.
    Resize,
    /// Replaces the image and the disk of an instance.
    Reimage,
    /// Returns the console output of an instance.
    ConsoleOutput,
    /// Opens a console session.
    ConsoleSession,
    /// Creates an image of an instance.
    Snapshot,
    /// Deletes an image of an instance.
    DeleteImage,
}

impl WireCall {
    /// All calls.
    pub const ALL: [Self; 15] = [
        Self::Launch,
        Self::Terminate,
        Self::Stop,
        Self::Start,
        Self::Describe,
        Self::ListPage,
        Self::FindLaunch,
        Self::UpdateTags,
        Self::Reboot,
        Self::Resize,
        Self::Reimage,
        Self::ConsoleOutput,
        Self::ConsoleSession,
        Self::Snapshot,
        Self::DeleteImage,
    ];

    /// Returns the name, as used in fault rules: the variant in snake case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Terminate => "terminate",
            Self::Stop => "stop",
            Self::Start => "start",
            Self::Describe => "describe",
            Self::ListPage => "list_page",
            Self::FindLaunch => "find_launch",
            Self::UpdateTags => "update_tags",
            Self::Reboot => "reboot",
            Self::Resize => "resize",
            Self::Reimage => "reimage",
            Self::ConsoleOutput => "console_output",
            Self::ConsoleSession => "console_session",
            Self::Snapshot => "snapshot",
            Self::DeleteImage => "delete_image",
        }
    }
}

impl fmt::Display for WireCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<WireCall> for String {
    fn from(call: WireCall) -> Self {
        call.as_str().to_owned()
    }
}

/// One handle's connection to the cloud.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) shared: Arc<Shared>,
    /// Set by [`Fault::Crash`]; no later call of this handle returns.
    crashed: AtomicBool,
}

/// The parameters of one call that the engine needs, as the fault plan sets them.
#[derive(Debug)]
pub(crate) struct RequestContext {
    /// The cloud's id of the request.
    pub(crate) request: String,
    /// By how much reads lag.
    pub(crate) lag: Lag,
    /// The native state to report for every instance instead of the true one.
    pub(crate) native: Option<String>,
    /// The reason with which the launched instances fail to boot.
    pub(crate) boot_failure: Option<String>,
}

impl Wire {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            crashed: AtomicBool::new(false),
        }
    }

    /// Sends one call: half of the latency, then `work` in the cloud, then the other half.
    ///
    /// # Errors
    ///
    /// The cloud's refusal, or the error of an injected fault; both with the request id.
    pub(crate) async fn call<T>(
        &self,
        operation: Operation,
        wire_call: WireCall,
        work: impl FnOnce(&mut World, &RequestContext) -> Result<T, NativeError> + Send,
    ) -> Result<T> {
        let shared = &*self.shared;
        let call = Call::new(shared.capabilities.provider.as_str(), operation);
        self.transmit().await;
        let fault = shared.faults.next_fault(wire_call.as_str());
        let request = format!("req-{}", shared.count(wire_call));
        let context = RequestContext::with_fault(fault.as_ref(), request);
        let with_request_id =
            |error: ProvisionError| error.with_request_id(context.request.as_str());
        if let Some(fault) = &fault {
            self.inject(fault, Phase::Before, &call)
                .await
                .map_err(with_request_id)?;
        }
        let result = shared.handle(wire_call, |world| work(world, &context));
        if let Some(fault) = &fault {
            self.inject(fault, Phase::After, &call)
                .await
                .map_err(with_request_id)?;
        }
        self.transmit().await;
        result.map_err(|error| with_request_id(error.into_error(&call)))
    }

    /// Waits for half of the latency. In a crashed process, this never returns.
    async fn transmit(&self) {
        let one_way = self.shared.latency / 2;
        if one_way > Duration::ZERO {
            sleep(one_way).await;
        }
        if self.crashed.load(Ordering::SeqCst) {
            pending::<()>().await;
        }
    }

    /// Applies a fault in this phase of a call. `Ok(())` means that the call continues.
    async fn inject(&self, fault: &Fault, now: Phase, call: &Call) -> Result<()> {
        match fault {
            // Injected at the first opportunity, which is before the cloud handles the call.
            Fault::Refused(refused) => Err(NativeError::from(*refused).into_error(call)),
            Fault::Lost(phase) if now == *phase => Err(call.timeout(Effect::Unknown)),
            Fault::ServerError(phase) if now == *phase => {
                let error =
                    call.unavailable(Effect::Unknown, "the cloud reported an internal error");
                Err(error.with_native_code("InternalError"))
            }
            Fault::Hang(phase) if now == *phase => pending().await,
            Fault::Crash(phase) if now == *phase => {
                self.crashed.store(true, Ordering::SeqCst);
                pending().await
            }
            Fault::Malformed if now == Phase::After => Err(call.unexpected(
                Effect::Unknown,
                "the response of the cloud cannot be parsed",
            )),
            Fault::Lost(_)
            | Fault::ServerError(_)
            | Fault::Hang(_)
            | Fault::Crash(_)
            | Fault::Malformed
            | Fault::StaleRead
            | Fault::UnknownState(_)
            | Fault::FailsLate { .. } => Ok(()),
        }
    }
}

impl RequestContext {
    /// Returns the context of a call under `fault`.
    fn with_fault(fault: Option<&Fault>, request: String) -> Self {
        let mut context = Self {
            request,
            lag: Lag::Random,
            native: None,
            boot_failure: None,
        };
        match fault {
            Some(Fault::StaleRead) => context.lag = Lag::Full,
            Some(Fault::UnknownState(name)) => context.native = Some(name.clone()),
            Some(Fault::FailsLate { code, message }) => {
                context.boot_failure = Some(format!("{code}: {message}"));
            }
            Some(
                Fault::Refused(_)
                | Fault::Lost(_)
                | Fault::ServerError(_)
                | Fault::Hang(_)
                | Fault::Crash(_)
                | Fault::Malformed,
            )
            | None => {}
        }
        context
    }
}
