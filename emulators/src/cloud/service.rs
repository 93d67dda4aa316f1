//! Handles a request: fault, throttling, execution, delivery.
//!
//! Owns the order of these steps. The cloud knows the right response, and `inject` applies the
//! fault.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{NaiveDate, NaiveTime};
use fleetwright_chaos::{Clock, FaultPlan};

use super::{
    Cloud, CloudEngine as _, CommonKnobs as _, Operation as _, RefusalInfo as _,
    calls::{CallRecord, Calls},
    clock::SkippingClock,
    control,
    fault::{Fault, FaultRule, InjectedError, Phase},
    inject::{apply_delivery_fault, call_context, delay, lost_before_effect},
    throttle::Buckets,
};
use crate::server::{Handler, HttpRequest, HttpResponse, ResponseFuture};

/// How often a waiting call checks again: a test may advance the time meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The time can be advanced to the beginning of this year, which leaves room for the times of later events.
pub(super) const LAST_YEAR: i32 = 9_900;

/// Everything behind the socket.
#[derive(Debug)]
pub(super) struct Service<C: Cloud> {
    clock: Arc<SkippingClock>,
    faults: FaultPlan<Fault>,
    /// Rules with faults that this cloud cannot inject. They are kept to be reported as unused.
    unsupported: Mutex<Vec<FaultRule<C::Operation>>>,
    state: Mutex<State<C>>,
}

/// The state that calls change.
#[derive(Debug)]
struct State<C: Cloud> {
    engine: C::Engine,
    calls: Calls,
    buckets: Buckets,
}

impl<C: Cloud> Service<C> {
    pub(super) fn new(knobs: C::Knobs, clock: Arc<dyn Clock>) -> Self {
        let clock = Arc::new(SkippingClock::new(clock));
        let inner = State::new(knobs, &clock);
        Self {
            clock,
            faults: FaultPlan::new(),
            unsupported: Mutex::default(),
            state: Mutex::new(inner),
        }
    }

    /// Locks the state and processes all events that are due.
    fn state(&self) -> MutexGuard<'_, State<C>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.engine.catch_up();
        state
    }

    async fn serve(self: Arc<Self>, request: HttpRequest) -> HttpResponse {
        if control::is_control(&request) {
            return control::handle(&self, &request);
        }
        let (operation, call) = match self.parse(&request) {
            Ok(parsed) => parsed,
            Err(refused) => return refused,
        };
        let fault = self.faults.next_fault(operation.name());
        self.state().calls.count(operation.name());
        delay(fault.as_ref(), Phase::Before).await;
        if let Some(lost) = lost_before_effect(fault.as_ref()) {
            self.record_lost(operation, &call, fault.as_ref());
            return lost;
        }
        let since = self.clock.elapsed();
        while let Some(pause) = self.pause(&call, since, fault.as_ref()) {
            tokio::time::sleep(pause).await;
        }
        let response = self.execute(operation, &call, fault.as_ref());
        delay(fault.as_ref(), Phase::After).await;
        apply_delivery_fault(response, fault.as_ref())
    }

    /// Parses a request, or returns the response to one that is not a call.
    fn parse(&self, request: &HttpRequest) -> Result<(C::Operation, C::Call), HttpResponse> {
        let mut state = self.state();
        C::parse(request, &state.engine).map_err(|refusal| {
            let request_id = state.engine.request_id();
            let (operation, parameters) = C::name_request(request);
            let code = Some(refusal.code().to_owned());
            let response = C::response(Err(refusal), &request_id);
            if C::Operation::from_name(&operation).is_none() {
                state.calls.count_unknown(&operation);
            }
            state.calls.record(CallRecord {
                operation,
                parameters,
                request_id,
                status: Some(response.status),
                code,
                fault: None,
            });
            response
        })
    }

    /// Returns how long a waiting call sleeps before it checks again, or `None` if it does not
    /// wait.
    fn pause(&self, call: &C::Call, since: Duration, fault: Option<&Fault>) -> Option<Duration> {
        // A call with an injected error does not wait.
        if fault.is_some_and(|fault| fault.injected_error().is_some() || fault.needs_operations()) {
            return None;
        }
        let left = C::remaining_wait(call, &self.state().engine, since)?;
        Some(left.min(POLL_INTERVAL)).filter(|pause| !pause.is_zero())
    }

    /// Records a call that was lost before it had an effect.
    fn record_lost(&self, operation: C::Operation, call: &C::Call, fault: Option<&Fault>) {
        let mut state = self.state();
        let request_id = state.engine.request_id();
        let record = new_record::<C>(operation, call, request_id, fault);
        state.calls.record(record);
    }

    /// Executes a call, as far as its fault lets it, and records it.
    fn execute(
        &self,
        operation: C::Operation,
        call: &C::Call,
        fault: Option<&Fault>,
    ) -> HttpResponse {
        let mut state = self.state();
        let State {
            engine,
            calls,
            buckets,
        } = &mut *state;
        let context = call_context(engine.request_id(), fault);
        let mut retry_after = fault.and_then(Fault::retry_after_secs);
        let result = match fault.and_then(Fault::injected_error) {
            Some(error) => {
                C::record_refusal(call, engine, error);
                Err(C::injected_refusal(call, error, engine))
            }
            None => match buckets.take(operation.name(), C::resource_count(call)) {
                Ok(()) => C::execute(call, engine, &context),
                Err(throttled) => {
                    retry_after = throttled.retry_after_secs;
                    Err(C::injected_refusal(call, InjectedError::Throttled, engine))
                }
            },
        };
        let result = match fault {
            Some(Fault::ServerError {
                phase: Phase::After,
            }) => Err(C::injected_refusal(call, InjectedError::Internal, engine)),
            Some(_) | None => result,
        };
        let code = result
            .as_ref()
            .err()
            .map(|refusal| refusal.code().to_owned());
        let mut response = C::response(result, &context.request_id);
        let retry_after =
            retry_after.map(|seconds| ("retry-after", C::retry_after(engine, seconds)));
        response.headers.extend(retry_after);
        let date = C::date(engine).map(|date| ("date", date));
        response.headers.extend(date);
        let mut record = new_record::<C>(operation, call, context.request_id, fault);
        (record.status, record.code) = (Some(response.status), code);
        calls.record(record);
        response
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
        *self.state() = State::new(knobs, &self.clock);
    }

    pub(super) fn perform_external(
        &self,
        action: C::ExternalAction,
    ) -> Result<Vec<String>, C::Refusal> {
        C::perform_external(&mut self.state().engine, action)
    }

    /// Advances the time, but at most by [`Service::max_advance`].
    pub(super) fn advance(&self, by: Duration) {
        self.clock.advance(by.min(self.max_advance()));
    }

    /// Returns by how much the time can be advanced: dates after [`LAST_YEAR`] have more than four digits for a year, which
    /// clients cannot parse.
    pub(super) fn max_advance(&self) -> Duration {
        let now = self.clock.date_at(self.clock.elapsed());
        let last = NaiveDate::from_ymd_opt(LAST_YEAR, 1, 1).unwrap_or_default();
        let left = last.and_time(NaiveTime::MIN).and_utc() - now;
        left.to_std().unwrap_or_default()
    }

    pub(super) fn add_fault(&self, rule: FaultRule<C::Operation>) {
        if C::supports_fault(&rule.fault) {
            self.faults.add(rule.into());
        } else {
            self.unsupported().push(rule);
        }
    }

    pub(super) fn clear_faults(&self) {
        self.faults.clear();
        self.unsupported().clear();
    }

    pub(super) fn unused_faults(&self) -> Vec<FaultRule<C::Operation>> {
        let mut rules: Vec<_> = self.unsupported().clone();
        rules.extend(self.faults.unused_rules().into_iter().map(FaultRule::from));
        rules
    }

    fn unsupported(&self) -> MutexGuard<'_, Vec<FaultRule<C::Operation>>> {
        self.unsupported
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

impl<C: Cloud> State<C> {
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

/// Creates the record of a call, without its result.
fn new_record<C: Cloud>(
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
