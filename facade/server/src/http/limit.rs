//! How much one caller may do, and how long a request may take.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    extract::{Request, State},
    http::StatusCode,
    middleware::Next,
    response::{IntoResponse, Response},
};
use fleetwright_identity::Actor;
use governor::{Quota, RateLimiter, clock::Clock as _, clock::DefaultClock};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{config::Limits, failure::Failure, service::Service};

/// After how many callers the idle ones are forgotten.
const FORGET_ABOVE: usize = 10_000;

type Rate = governor::DefaultDirectRateLimiter;

/// The limits of each caller.
pub(crate) struct CallerLimits {
    limits: Limits,
    clock: DefaultClock,
    callers: Mutex<HashMap<Actor, Arc<Allowance>>>,
}

struct Allowance {
    rate: Rate,
    requests: Arc<Semaphore>,
    watches: Arc<Semaphore>,
}

impl CallerLimits {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            limits: limits.clone(),
            clock: DefaultClock::default(),
            callers: Mutex::default(),
        }
    }

    /// Admits a request of a caller until the permit is dropped.
    pub(crate) fn enter(&self, actor: &Actor) -> Result<OwnedSemaphorePermit, Failure> {
        let allowance = self.allowance(actor);
        if let Err(wait) = allowance.rate.check() {
            let wait = wait.wait_time_from(self.clock.now());
            let detail = "the caller sends more requests per second than are allowed: send fewer";
            return Err(Failure::busy(StatusCode::TOO_MANY_REQUESTS, detail, wait));
        }
        let permit = Arc::clone(&allowance.requests).try_acquire_owned();
        permit.map_err(|_| {
            let detail =
                "the caller has more requests under way than are allowed: wait for the responses";
            Failure::busy(
                StatusCode::TOO_MANY_REQUESTS,
                detail,
                std::time::Duration::from_secs(1),
            )
        })
    }

    /// Admits a watch of a caller until the permit is dropped.
    pub(crate) fn watch(&self, actor: &Actor) -> Result<OwnedSemaphorePermit, Failure> {
        let permit = Arc::clone(&self.allowance(actor).watches).try_acquire_owned();
        permit.map_err(|_| {
            let detail = "the caller has more watches open than are allowed: close one";
            Failure::busy(
                StatusCode::TOO_MANY_REQUESTS,
                detail,
                std::time::Duration::from_secs(10),
            )
        })
    }

    fn allowance(&self, actor: &Actor) -> Arc<Allowance> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = callers.get(actor) {
            return Arc::clone(found);
        }
        if callers.len() >= FORGET_ABOVE {
            callers.retain(|_, allowance| Arc::strong_count(&allowance.watches) > 1);
        }
        let per_second = NonZeroU32::new(self.limits.rate).unwrap_or(NonZeroU32::MIN);
        let burst = per_second.saturating_mul(NonZeroU32::MIN.saturating_add(1));
        let allowance = Arc::new(Allowance {
            rate: RateLimiter::direct(Quota::per_second(per_second).allow_burst(burst)),
            requests: Arc::new(Semaphore::new(self.limits.concurrency)),
            watches: Arc::new(Semaphore::new(self.limits.watches)),
        });
        callers.insert(actor.clone(), Arc::clone(&allowance));
        allowance
    }
}

/// Ends a request that takes too long. What it has committed stays, and one with an idempotency key is carried out to its end.
pub(crate) async fn in_time(
    State(service): State<Service>,
    request: Request,
    next: Next,
) -> Response {
    let limit = service.limits.request_time;
    let is_safe = request.method().is_safe();
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) if is_safe => {
            let detail = "the request took too long: retry";
            let wait = std::time::Duration::from_secs(1);
            Failure::busy(StatusCode::SERVICE_UNAVAILABLE, detail, wait).into_response()
        }
        // Without advice to retry, which says that nothing was changed.
        Err(_) => Failure::may_be_done().into_response(),
    }
}
