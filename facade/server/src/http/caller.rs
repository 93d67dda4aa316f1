//! The caller of a request. Nothing behind this layer answers without a token.

use std::sync::{Arc, OnceLock};

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{header, request::Parts},
    middleware::Next,
    response::Response,
};
use fleetwright_identity::{Actor, Principal};
use tokio::sync::OwnedSemaphorePermit;

use crate::{auth::Identity, failure::Failure, service::Service};

/// Who sends the request, with the roles of this moment.
#[derive(Clone, Debug)]
pub(crate) struct Caller(pub(crate) Principal);

/// The actor of a request, for the log. It is known from the moment when the token is.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoggedActor(pub(crate) Arc<OnceLock<Actor>>);

/// One of the requests that a caller may have under way. It is, until the last copy is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Admitted(#[expect(dead_code, reason = "it is held")] Arc<OwnedSemaphorePermit>);

/// The bearer token of a request.
pub(crate) fn token(headers: &axum::http::HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer") && values.next().is_none();
    is_bearer.then(|| token.trim())
}

/// Finds out who the caller is, and holds it to its limits.
pub(crate) async fn identify(
    State(service): State<Service>,
    mut request: Request,
    next: Next,
) -> Response {
    match enter(&service, &mut request).await {
        Ok(admitted) => {
            let response = next.run(request).await;
            drop(admitted);
            response
        }
        Err(failure) => axum::response::IntoResponse::into_response(failure),
    }
}

async fn enter(service: &Service, request: &mut Request) -> Result<Admitted, Failure> {
    let now = service.facade.clock.now();
    let token = token(request.headers()).ok_or_else(Failure::unauthenticated)?;
    let identity = service.authenticator.authenticate(token, now);
    let identity = identity.map_err(|refused| Failure::refused_token(refused.0))?;
    if let Some(logged) = request.extensions().get::<LoggedActor>() {
        logged.0.get_or_init(|| identity.actor.clone());
    }
    let admitted = Admitted(Arc::new(service.callers.enter(&identity.actor)?));
    let principal = principal(service, &identity).await?;
    request.extensions_mut().insert(Caller(principal));
    request.extensions_mut().insert(admitted.clone());
    Ok(admitted)
}

/// The principal of an identity, with the roles of this moment.
pub(crate) async fn principal(
    service: &Service,
    Identity { actor, roles }: &Identity,
) -> Result<Principal, Failure> {
    let resolved = service.facade.tenancy.principal_with(actor, roles).await?;
    for ignored in resolved.ignored {
        tracing::warn!(%actor, binding = ignored, "a role binding grants nothing: its role does not exist, or it cannot be read");
    }
    Ok(resolved.principal)
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(Failure::unauthenticated)
    }
}
