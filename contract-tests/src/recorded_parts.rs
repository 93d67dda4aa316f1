//! The parts of a harness that change the account behind the handles, with their actions recorded.
//!
//! Owns the lines of the external actor and of faults in the transcript: without them, the calls of the
//! handles do not explain a violation. It changes nothing about what the parts do.

use std::sync::Arc;

use async_trait::async_trait;
use fleetwright::{InstanceId, Operation, Scope, Tags};
use tokio::time::Instant;

use crate::{
    ExternalActor, Faults, NativeError, WireFault, WireOp, shown::in_words, transcript::Transcript,
};

/// An external actor whose actions are recorded.
pub(crate) struct RecordedActor {
    inner: Arc<dyn ExternalActor>,
    transcript: Transcript,
}

impl RecordedActor {
    pub(crate) fn new(inner: Arc<dyn ExternalActor>, transcript: Transcript) -> Self {
        Self { inner, transcript }
    }

    fn note(&self, start: Instant, what: &str) {
        self.transcript
            .note_since(start, format!("external actor: {what}"));
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ExternalActor for RecordedActor {
    async fn launch(&self, tags: Tags) -> InstanceId {
        let start = Instant::now();
        let id = self.inner.launch(tags).await;
        self.note(start, &format!("launch -> {id}"));
        id
    }

    async fn stop(&self, id: &InstanceId) {
        let start = Instant::now();
        self.inner.stop(id).await;
        self.note(start, &format!("stop {id}"));
    }

    async fn terminate(&self, id: &InstanceId) {
        let start = Instant::now();
        self.inner.terminate(id).await;
        self.note(start, &format!("terminate {id}"));
    }

    async fn disconnect(&self, id: &InstanceId) -> Option<Scope> {
        let start = Instant::now();
        let part = self.inner.disconnect(id).await;
        let shown = part
            .as_ref()
            .map_or_else(|| "the cloud has no parts".to_owned(), ToString::to_string);
        self.note(start, &format!("disconnect the part with {id} -> {shown}"));
        part
    }

    async fn reconnect(&self) {
        let start = Instant::now();
        self.inner.reconnect().await;
        self.note(start, "reconnect every part");
    }

    async fn limit_capacity(&self, count: u64) -> bool {
        let start = Instant::now();
        let limited = self.inner.limit_capacity(count).await;
        let shown = if limited { "ok" } else { "not possible" };
        self.note(
            start,
            &format!("limit the capacity to {count} more -> {shown}"),
        );
        limited
    }
}

/// A fault injector whose actions are recorded.
pub(crate) struct RecordedFaults {
    inner: Arc<dyn Faults>,
    transcript: Transcript,
}

impl RecordedFaults {
    pub(crate) fn new(inner: Arc<dyn Faults>, transcript: Transcript) -> Self {
        Self { inner, transcript }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Faults for RecordedFaults {
    fn supports(&self, fault: &WireFault) -> bool {
        self.inner.supports(fault)
    }

    fn late_failure_code(&self) -> &str {
        self.inner.late_failure_code()
    }

    fn late_capacity_code(&self) -> Option<&str> {
        self.inner.late_capacity_code()
    }

    fn native_errors(&self) -> Vec<NativeError> {
        self.inner.native_errors()
    }

    async fn inject_native(&self, operation: Operation, error: &NativeError) -> bool {
        self.transcript.note(format!(
            "faults: {error} at every native call of {operation}"
        ));
        self.inner.inject_native(operation, error).await
    }

    async fn inject(&self, operation: WireOp, nth: u64, fault: WireFault) {
        let (call, shown) = (in_words(&operation), in_words(&fault));
        self.transcript
            .note(format!("faults: {shown} at native call {nth} ({call})"));
        self.inner.inject(operation, nth, fault).await;
    }

    async fn inject_always(&self, operation: WireOp, fault: WireFault) {
        let (call, shown) = (in_words(&operation), in_words(&fault));
        self.transcript
            .note(format!("faults: {shown} at every native call ({call})"));
        self.inner.inject_always(operation, fault).await;
    }

    async fn all_injected(&self) -> bool {
        self.inner.all_injected().await
    }

    async fn clear(&self) -> bool {
        let all = self.inner.clear().await;
        self.transcript.note(if all {
            "faults: removed"
        } else {
            "faults: removed, although one was never injected"
        });
        all
    }
}
