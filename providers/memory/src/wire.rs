//! The wire between a handle and the cloud: where time passes and things go wrong.
//!
//! Owns latency, throttling, faults and crashes, so that the engine behind it is always right and
//! the provisioner before it meets everything that a real network does.

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
    error::Refusal,
    fault::{Fault, Phase},
};

/// A call on the wire: what faults, throttling and counts go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum WireCall {
    Launch,
    Terminate,
    Stop,
    Start,
    Describe,
    /// One page of a list.
    ListPage,
    FindLaunch,
    UpdateTags,
    Reboot,
    Resize,
    Reimage,
    ConsoleOutput,
    ConsoleSession,
    Snapshot,
}

impl WireCall {
    /// Every call.
    pub const ALL: [Self; 14] = [
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
    ];

    /// The name that a fault rule goes by.
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

/// One handle's end of the wire.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) shared: Arc<Shared>,
    crashed: AtomicBool,
}

/// What the engine's work is told about the call that it serves.
#[derive(Debug)]
pub(crate) struct Served {
    /// The cloud's name for the request.
    pub(crate) request: String,
    /// How far reads lag behind.
    pub(crate) lag: Lag,
    /// The native state to show for every instance, if the cloud says something nobody knows.
    pub(crate) native: Option<String>,
    /// Why what is launched is going to fail.
    pub(crate) doom: Option<String>,
}

impl Wire {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            crashed: AtomicBool::new(false),
        }
    }

    /// Makes one call: the request travels, the cloud does `work`, the reply travels.
    pub(crate) async fn call<T>(
        &self,
        operation: Operation,
        wire_call: WireCall,
        work: impl FnOnce(&mut World, &Served) -> Result<T, Refusal> + Send,
    ) -> Result<T> {
        let shared = &*self.shared;
        let call = Call::new(shared.capabilities.provider.as_str(), operation);
        self.travel().await;
        let fault = shared.faults.next_fault(wire_call.as_str());
        let request = format!("req-{}", shared.count(wire_call));
        let served = Served::under(fault.as_ref(), request);
        let told = |error: ProvisionError| error.with_request_id(served.request.as_str());
        if let Some(fault) = &fault {
            self.strike(fault, Phase::Before, &call)
                .await
                .map_err(told)?;
        }
        let answer = shared.serve(wire_call, |world| work(world, &served));
        if let Some(fault) = &fault {
            self.strike(fault, Phase::After, &call)
                .await
                .map_err(told)?;
        }
        self.travel().await;
        let window = shared.capabilities.consistency_window;
        answer.map_err(|refusal| told(refusal.into_error(&call, window)))
    }

    /// Half of the way. In a process that has died, nothing ever arrives.
    async fn travel(&self) {
        let each_way = self.shared.latency / 2;
        if each_way > Duration::ZERO {
            sleep(each_way).await;
        }
        if self.crashed.load(Ordering::SeqCst) {
            pending::<()>().await;
        }
    }

    /// What a fault does in this phase of a call.
    async fn strike(&self, fault: &Fault, now: Phase, call: &Call) -> Result<()> {
        match fault {
            // Before the cloud acts, which is the first time that it is asked.
            Fault::Refused(refused) => {
                let window = self.shared.capabilities.consistency_window;
                Err(Refusal::from(*refused).into_error(call, window))
            }
            Fault::Lost(phase) if now == *phase => Err(call.timeout(Effect::Unknown)),
            Fault::ServerError(phase) if now == *phase => {
                let error = call.unavailable(Effect::Unknown, "internal error of the cloud");
                Err(error.with_native_code("InternalError"))
            }
            Fault::Hang(phase) if now == *phase => pending().await,
            Fault::Crash(phase) if now == *phase => {
                self.crashed.store(true, Ordering::SeqCst);
                pending().await
            }
            Fault::Malformed if now == Phase::After => {
                Err(call.unexpected(Effect::Unknown, "the cloud's answer cannot be read"))
            }
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

impl Served {
    fn under(fault: Option<&Fault>, request: String) -> Self {
        let mut served = Self {
            request,
            lag: Lag::Chance,
            native: None,
            doom: None,
        };
        match fault {
            Some(Fault::StaleRead) => served.lag = Lag::Whole,
            Some(Fault::UnknownState(word)) => served.native = Some(word.clone()),
            Some(Fault::FailsLate { code, message }) => {
                served.doom = Some(format!("{code}: {message}"));
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
        served
    }
}
