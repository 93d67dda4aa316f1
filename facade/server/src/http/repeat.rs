//! Carries out a request with an idempotency key once, and repeats its response.

use std::{collections::BTreeSet, future::Future, sync::OnceLock, time::Duration};

use axum::{
    body::Body,
    extract::{MatchedPath, Request, State},
    http::{HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use fleetwright_store::Versioned;
use tracing::Instrument as _;

use super::{
    caller::{Admitted, Caller},
    extract,
};
use crate::{
    document,
    failure::Failure,
    idempotency::{self, Claim, Idempotency, Recorded, Stored},
    router,
    service::Service,
};

/// The headers of a response that are repeated.
const KEPT: [HeaderName; 3] = [header::CONTENT_TYPE, header::ETAG, header::LOCATION];
/// After this time a request with a key is given up. Less than the time after which its key can be taken over.
const GIVE_UP_AFTER: Duration = Duration::from_secs(60);
/// Marks a repeated response.
const REPEATED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The layer around every handler. Requests without a key pass.
pub(crate) async fn once(
    State(service): State<Service>,
    caller: Caller,
    request: Request,
    next: Next,
) -> Response {
    match run(&service, &caller, request, next).await {
        Ok(response) => response,
        Err(failure) => failure.into_response(),
    }
}

/// Whether the address of a request has its method.
fn is_declared(request: &Request) -> bool {
    static DECLARED: OnceLock<BTreeSet<(String, String)>> = OnceLock::new();
    let declared = DECLARED.get_or_init(|| document::methods(&router::document()));
    let address = request.extensions().get::<MatchedPath>();
    address.is_some_and(|address| {
        let wanted = (address.as_str().to_owned(), request.method().to_string());
        declared.contains(&wanted)
    })
}

/// Whether the request may be carried out again after it was interrupted. A second replacement would destroy what was written since the first,
/// and a second reboot would stop what runs. Other requests find what the first one did: a name that is taken, a state that is reached.
fn may_run_again(request: &Request) -> bool {
    let address = request.extensions().get::<MatchedPath>();
    address.is_some_and(|address| {
        let verb = address.as_str().rsplit('/').next();
        !matches!(verb, Some("replace" | "reboot"))
    })
}

async fn run(
    service: &Service,
    caller: &Caller,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    // What the address does not have is refused as such, whatever the headers say.
    if !is_declared(&request) {
        return Ok(next.run(request).await);
    }
    let Some(key) = idempotency::key_of(request.headers())? else {
        return Ok(next.run(request).await);
    };
    if request.method() != Method::POST {
        let problem = "only creates and verbs, which are POST requests, have a key: leave it out";
        return Err(Failure::invalid("Idempotency-Key", problem));
    }
    let may_run_again = may_run_again(&request);
    let (parts, body) = request.into_parts();
    let bytes = extract::read(body, service).await?;
    let target = parts
        .uri
        .path_and_query()
        .map_or("", |target| target.as_str());
    let fingerprint = idempotency::fingerprint(parts.method.as_str(), target, &bytes);
    match service
        .idempotency
        .claim(caller.0.actor(), &key, fingerprint, may_run_again)
        .await?
    {
        Claim::Repeat(stored) => Ok(repeat(stored)),
        Claim::Run(claimed) => {
            let admitted = parts.extensions.get::<Admitted>().cloned();
            let request = Request::from_parts(parts, Body::from(bytes));
            let work = async move {
                let response = next.run(request).await;
                // The request counts as under way until it is carried out, also if its caller is gone.
                drop(admitted);
                response
            };
            carry_out(service.idempotency.clone(), *claimed, work, GIVE_UP_AFTER).await
        }
    }
}

/// Carries out a request and records its response, also if the caller is gone or its time is over meanwhile: otherwise what was committed would
/// have a key without a response, and a retry would do it again.
async fn carry_out(
    idempotency: Idempotency,
    claimed: Versioned<Recorded>,
    work: impl Future<Output = Response> + Send + 'static,
    within: Duration,
) -> Result<Response, Failure> {
    let all = async move {
        let response = tokio::time::timeout(within, work).await;
        let response = response.map_err(|_| Failure::may_be_done())?;
        let failure = response.extensions().get::<Failure>();
        if failure.is_some_and(|failure| failure.may_be_done) {
            return Ok(response);
        }
        let (response, stored) = keep(response).await?;
        if let Err(error) = idempotency.finish(&claimed, stored).await {
            tracing::warn!(%error, "the response to a request with an idempotency key is not recorded: a repeated request counts as interrupted");
        }
        Ok(response)
    };
    let ran = tokio::spawn(all.in_current_span()).await;
    ran.unwrap_or_else(|_| Err(Failure::internal("the handler panicked")))
}

/// Reads a response, so that it can be stored. One that failed is not stored: nothing was changed, and a retry may succeed.
async fn keep(response: Response) -> Result<(Response, Option<Stored>), Failure> {
    if !response.status().is_success() {
        return Ok((response, None));
    }
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await;
    let bytes = bytes.map_err(|error| Failure::internal(error.to_string()))?;
    let headers = KEPT.iter().filter_map(|name| {
        let value = parts.headers.get(name)?.to_str().ok()?;
        Some((name.to_string(), value.to_owned()))
    });
    let stored = Stored {
        status: parts.status.as_u16(),
        headers: headers.collect(),
        body: String::from_utf8_lossy(&bytes).into_owned(),
    };
    Ok((Response::from_parts(parts, Body::from(bytes)), Some(stored)))
}

fn repeat(stored: Stored) -> Response {
    let status = StatusCode::from_u16(stored.status).unwrap_or(StatusCode::OK);
    let mut response = (status, stored.body).into_response();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    for (name, value) in stored.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    headers.insert(REPEATED, HeaderValue::from_static("true"));
    response
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use chrono::{DateTime, Utc};
    use fleetwright_identity::{Actor, ActorName};
    use fleetwright_runtime::clock::{Clock, later};
    use fleetwright_store::{MemoryStore, Schema};
    use tokio::sync::oneshot;

    use super::*;

    /// A clock that a test moves.
    #[derive(Clone, Debug, Default)]
    struct TestClock(Arc<Mutex<DateTime<Utc>>>);

    impl TestClock {
        fn advance(&self, time: Duration) {
            let mut now = self.0.lock().unwrap();
            *now = later(*now, time);
        }
    }

    impl Clock for TestClock {
        fn now(&self) -> DateTime<Utc> {
            *self.0.lock().unwrap()
        }
    }

    fn idempotency() -> (Idempotency, TestClock) {
        let schema = Schema::builder()
            .kind(idempotency::KIND)
            .index(idempotency::BY_CALLER, ["/caller"]);
        let store = MemoryStore::new(schema.build().unwrap());
        let clock = TestClock::default();
        let idempotency = Idempotency::new(Arc::new(store), Arc::new(clock.clone()));
        (idempotency.unwrap(), clock)
    }

    async fn claim(idempotency: &Idempotency, may_run_again: bool) -> Result<Claim, Failure> {
        let ada = Actor::User(ActorName::new("ada").unwrap());
        let fingerprint = "f".to_owned();
        idempotency
            .claim(&ada, "k-1", fingerprint, may_run_again)
            .await
    }

    async fn claimed(idempotency: &Idempotency) -> Versioned<Recorded> {
        match claim(idempotency, false).await.unwrap() {
            Claim::Run(claimed) => *claimed,
            Claim::Repeat(stored) => panic!("{stored:?}"),
        }
    }

    #[tokio::test]
    async fn a_caller_that_goes_away_does_not_interrupt_its_request() {
        let (idempotency, _) = idempotency();
        let (go_on, wait) = oneshot::channel::<()>();
        let (done, is_done) = oneshot::channel::<()>();
        let work = async move {
            wait.await.unwrap();
            let _alive_until_here = done;
            StatusCode::ACCEPTED.into_response()
        };
        let ran = carry_out(
            idempotency.clone(),
            claimed(&idempotency).await,
            work,
            GIVE_UP_AFTER,
        );
        let ran = tokio::time::timeout(Duration::from_millis(1), ran).await;
        assert!(ran.is_err());
        go_on.send(()).unwrap();
        assert!(is_done.await.is_err());
        // The response is recorded a few steps later.
        let stored = loop {
            match claim(&idempotency, false).await {
                Ok(Claim::Repeat(stored)) => break stored,
                Ok(Claim::Run(_)) => panic!("it would be carried out again"),
                Err(_) => tokio::task::yield_now().await,
            }
        };
        assert_eq!(stored.status, 202);
    }

    #[tokio::test]
    async fn what_may_have_been_carried_out_is_not_carried_out_again() {
        for case in ["unknown", "endless", "panicking"] {
            let (idempotency, clock) = idempotency();
            let work = async move {
                match case {
                    "unknown" => Failure::may_be_done().into_response(),
                    "endless" => std::future::pending().await,
                    _ => panic!("a mistake"),
                }
            };
            let claimed = claimed(&idempotency).await;
            let within = Duration::from_millis(10);
            let ran = carry_out(idempotency.clone(), claimed, work, within).await;
            let response = ran.unwrap_or_else(Failure::into_response);
            let failure = response.extensions().get::<Failure>().unwrap();
            assert_eq!(
                (failure.status.is_server_error(), failure.retry_after),
                (true, None)
            );
            let under_way = claim(&idempotency, false).await.err().unwrap();
            assert!(under_way.retry_after.is_some(), "{under_way:?}");
            clock.advance(Duration::from_secs(91));
            let interrupted = claim(&idempotency, false).await.err().unwrap();
            assert_eq!(
                (interrupted.code, interrupted.retry_after),
                ("conflict", None)
            );
            assert!(interrupted.detail.contains("was interrupted"));
            // What is protected by a name may run again.
            assert!(matches!(claim(&idempotency, true).await, Ok(Claim::Run(_))));
        }
    }

    #[tokio::test]
    async fn a_request_that_failed_frees_its_key() {
        let (idempotency, _) = idempotency();
        let work = async { StatusCode::CONFLICT.into_response() };
        let claimed = claimed(&idempotency).await;
        carry_out(idempotency.clone(), claimed, work, GIVE_UP_AFTER)
            .await
            .unwrap();
        assert!(matches!(
            claim(&idempotency, false).await,
            Ok(Claim::Run(_))
        ));
    }

    #[tokio::test]
    async fn eight_attempts_outlast_an_interrupted_request() {
        let (idempotency, clock) = idempotency();
        claimed(&idempotency).await;
        for attempt in 1..=8 {
            match claim(&idempotency, true).await {
                Ok(Claim::Run(_)) => return,
                Ok(Claim::Repeat(stored)) => panic!("{attempt}: {stored:?}"),
                Err(failure) => clock.advance(failure.retry_after.unwrap()),
            }
        }
        assert!(matches!(claim(&idempotency, true).await, Ok(Claim::Run(_))));
    }
}
