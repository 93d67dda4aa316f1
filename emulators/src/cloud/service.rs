//! A request from its first byte to its last: fault, throttling, work, delivery.
//!
//! Owns the order of these. What is right to answer is the cloud's to know, and what a fault does to it
//! is `strike`'s.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fleetwright_chaos::{Clock, FaultPlan};

use super::{
    Cloud, CloudEngine as _, CommonKnobs as _, Operation as _, RefusalInfo as _,
    calls::{CallRecord, Calls},
    clock::SkippingClock,
    control,
    fault::{Fault, FaultRule, InjectedError, Phase},
    inject::{apply_delivery_fault, call_context, lost_before_effect, wait},
    throttle::Buckets,
};
use crate::server::{Handler, HttpRequest, HttpResponse, ResponseFuture};

/// How often a call that waits looks again: time may be put forward meanwhile.
const GLANCE: Duration = Duration::from_millis(5);

/// Everything behind the socket.
#[derive(Debug)]
pub(super) struct Service<C: Cloud> {
    clock: Arc<SkippingClock>,
    faults: FaultPlan<Fault>,
    /// Rules that mean nothing in this cloud, so that they are told from those that struck.
    pointless: Mutex<Vec<FaultRule<C::Operation>>>,
    state: Mutex<Inner<C>>,
}

/// What changes with every call.
#[derive(Debug)]
struct Inner<C: Cloud> {
    engine: C::Engine,
    calls: Calls,
    buckets: Buckets,
}

impl<C: Cloud> Service<C> {
    pub(super) fn new(knobs: C::Knobs, clock: Arc<dyn Clock>) -> Self {
        let clock = Arc::new(SkippingClock::new(clock));
        let inner = Inner::new(knobs, &clock);
        Self {
            clock,
            faults: FaultPlan::new(),
            pointless: Mutex::default(),
            state: Mutex::new(inner),
        }
    }

    /// The state, with everything done that is due.
    fn state(&self) -> MutexGuard<'_, Inner<C>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.engine.catch_up();
        state
    }

    async fn serve(self: Arc<Self>, request: HttpRequest) -> HttpResponse {
        if control::is_control(&request) {
            return control::handle(&self, &request);
        }
        let (operation, call) = match self.prepare(&request) {
            Ok(prepared) => prepared,
            Err(refused) => return refused,
        };
        let fault = self.faults.next_fault(operation.name());
        self.state().calls.count(operation.name());
        wait(fault.as_ref(), Phase::Before).await;
        if let Some(lost) = lost_before_effect(fault.as_ref()) {
            self.keep_lost(operation, &call, fault.as_ref());
            return lost;
        }
        let since = self.clock.elapsed();
        while let Some(pause) = self.pause(&call, since, fault.as_ref()) {
            tokio::time::sleep(pause).await;
        }
        let reply = self.execute(operation, &call, fault.as_ref());
        wait(fault.as_ref(), Phase::After).await;
        apply_delivery_fault(reply, fault.as_ref())
    }

    /// Everything that is refused before it counts as a call.
    fn prepare(&self, request: &HttpRequest) -> Result<(C::Operation, C::Call), HttpResponse> {
        let mut state = self.state();
        C::parse(request, &state.engine).map_err(|refusal| {
            let request_id = state.engine.request_id();
            C::response(Err(refusal), &request_id)
        })
    }

    /// How long to sleep before looking again, for a call that waits for something.
    fn pause(&self, call: &C::Call, since: Duration, fault: Option<&Fault>) -> Option<Duration> {
        // What is refused is refused at once.
        if fault.is_some_and(|fault| fault.injected_error().is_some() || fault.needs_operations()) {
            return None;
        }
        let left = C::remaining_wait(call, &self.state().engine, since)?;
        Some(left.min(GLANCE)).filter(|pause| !pause.is_zero())
    }

    /// Keeps the record of a call that was lost before it had an effect.
    fn keep_lost(&self, operation: C::Operation, call: &C::Call, fault: Option<&Fault>) {
        let mut state = self.state();
        let request_id = state.engine.request_id();
        let kept = record::<C>(operation, call, request_id, fault);
        state.calls.keep(kept);
    }

    /// Carries a call out, as far as its fault lets it, and keeps its record.
    fn execute(
        &self,
        operation: C::Operation,
        call: &C::Call,
        fault: Option<&Fault>,
    ) -> HttpResponse {
        let mut state = self.state();
        let Inner {
            engine,
            calls,
            buckets,
        } = &mut *state;
        let context = call_context(engine.request_id(), fault);
        let mut retry_after = fault.and_then(Fault::retry_after_secs);
        let done = match fault.and_then(Fault::injected_error) {
            Some(why) => Err(C::injected_refusal(why, engine)),
            None => match buckets.take(operation.name(), C::resource_count(call)) {
                Ok(()) => C::execute(call, engine, &context),
                Err(early) => {
                    retry_after = early.retry_after_secs;
                    Err(C::injected_refusal(InjectedError::Throttled, engine))
                }
            },
        };
        let done = match fault {
            Some(Fault::ServerError {
                phase: Phase::After,
            }) => Err(C::injected_refusal(InjectedError::Internal, engine)),
            Some(_) | None => done,
        };
        let code = done.as_ref().err().map(|refusal| refusal.code().to_owned());
        let mut reply = C::response(done, &context.request_id);
        let retry_after =
            retry_after.map(|seconds| ("retry-after", C::retry_after(engine, seconds)));
        reply.headers.extend(retry_after);
        let date = C::date(engine).map(|date| ("date", date));
        reply.headers.extend(date);
        let mut kept = record::<C>(operation, call, context.request_id, fault);
        (kept.status, kept.code) = (Some(reply.status), code);
        calls.keep(kept);
        reply
    }

    pub(super) fn knobs(&self) -> C::Knobs {
        self.state().engine.knobs().clone()
    }

    pub(super) fn set_knobs(&self, knobs: C::Knobs) {
        let clock: Arc<dyn Clock> = self.clock.clone();
        let mut state = self.state();
        state.buckets = Buckets::new(knobs.throttle(), &clock);
        state.engine.set_knobs(knobs);
    }

    pub(super) fn reset(&self, seed: Option<u64>) {
        let mut knobs = self.knobs();
        knobs.set_seed(seed.unwrap_or(knobs.seed()));
        self.clear_faults();
        *self.state() = Inner::new(knobs, &self.clock);
    }

    pub(super) fn perform_external(
        &self,
        action: C::ExternalAction,
    ) -> Result<Vec<String>, C::Refusal> {
        C::perform_external(&mut self.state().engine, action)
    }

    pub(super) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    pub(super) fn add_fault(&self, rule: FaultRule<C::Operation>) {
        if C::supports_fault(&rule.fault) {
            self.faults.add(rule.into());
        } else {
            self.pointless().push(rule);
        }
    }

    pub(super) fn clear_faults(&self) {
        self.faults.clear();
        self.pointless().clear();
    }

    pub(super) fn unused_faults(&self) -> Vec<FaultRule<C::Operation>> {
        let mut rules: Vec<_> = self.pointless().clone();
        rules.extend(self.faults.unused_rules().into_iter().map(FaultRule::from));
        rules
    }

    fn pointless(&self) -> MutexGuard<'_, Vec<FaultRule<C::Operation>>> {
        self.pointless
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn oracle(&self) -> C::Oracle {
        let state = self.state();
        C::oracle(&state.engine, state.calls.counts(), self.unused_faults())
    }

    pub(super) fn call_records(&self) -> Vec<CallRecord> {
        self.state().calls.latest()
    }
}

impl<C: Cloud> Inner<C> {
    fn new(knobs: C::Knobs, clock: &Arc<SkippingClock>) -> Self {
        let clock: Arc<dyn Clock> = clock.clone();
        Self {
            buckets: Buckets::new(knobs.throttle(), &clock),
            calls: Calls::default(),
            engine: C::Engine::new(knobs, clock),
        }
    }
}

impl<C: Cloud> Handler for Service<C> {
    fn handle(self: Arc<Self>, request: HttpRequest) -> ResponseFuture {
        Box::pin(self.serve(request))
    }
}

/// The record of a call, without what it came to.
fn record<C: Cloud>(
    operation: C::Operation,
    call: &C::Call,
    request_id: String,
    fault: Option<&Fault>,
) -> CallRecord {
    CallRecord {
        operation: operation.name().to_owned(),
        parameters: C::recorded_parameters(call),
        request_id,
        status: None,
        code: None,
        fault: fault.map(|fault| format!("{fault:?}")),
    }
}
