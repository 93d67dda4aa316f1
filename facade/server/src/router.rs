//! Every operation with its address, and the layers around them. The OpenAPI document is made of the same list.

use axum::{
    Router,
    extract::State,
    http::{HeaderValue, StatusCode},
    middleware,
    routing::get,
};
use utoipa::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    console, docs,
    failure::Failure,
    http::{asset::Asset, caller, cors, limit, repeat, trace},
    resource::{
        access, audit, authorities, bindings, catalog, groups, health, images, instances, networks,
        operator, organizations, projects, quotas, verbs, watch,
    },
    service::Service,
};

/// The operations that need a token.
fn operations() -> OpenApiRouter<Service> {
    OpenApiRouter::with_openapi(docs::Document::openapi())
        .routes(routes!(health::version))
        .routes(routes!(health::metrics))
        .routes(routes!(instances::list, instances::create))
        .routes(routes!(
            instances::read,
            instances::update,
            instances::delete
        ))
        .routes(routes!(instances::events))
        .routes(routes!(watch::watch))
        .routes(routes!(verbs::start))
        .routes(routes!(verbs::stop))
        .routes(routes!(verbs::reboot))
        .routes(routes!(verbs::replace))
        .routes(routes!(access::ssh_key))
        .routes(routes!(access::console_session))
        .routes(routes!(access::console_output))
        .routes(routes!(access::snapshot))
        .routes(routes!(networks::list, networks::create))
        .routes(routes!(networks::read, networks::delete))
        .routes(routes!(groups::list, groups::create))
        .routes(routes!(groups::read, groups::update, groups::delete))
        .routes(routes!(authorities::list, authorities::create))
        .routes(routes!(authorities::read, authorities::delete))
        .routes(routes!(organizations::list, organizations::create))
        .routes(routes!(organizations::read, organizations::delete))
        .routes(routes!(projects::list, projects::create))
        .routes(routes!(projects::read, projects::delete))
        .routes(routes!(quotas::read, quotas::update))
        .routes(routes!(quotas::read_project, quotas::update_project))
        .routes(routes!(bindings::list, bindings::create))
        .routes(routes!(bindings::read, bindings::delete))
        .routes(routes!(bindings::roles))
        .routes(routes!(bindings::caller))
        .routes(routes!(audit::list))
        .routes(routes!(catalog::regions))
        .routes(routes!(catalog::flavors))
        .routes(routes!(catalog::images))
        .routes(routes!(images::read, images::delete))
        .routes(routes!(images::share))
        .routes(routes!(operator::inspect))
        .routes(routes!(operator::regions))
        .routes(routes!(operator::accept_account))
        .routes(routes!(operator::resolve_leak))
}

/// The operations that need none, and say nothing about tenants.
fn public_operations() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(health::health))
        .routes(routes!(health::ready))
}

/// The OpenAPI document.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    let mut document = operations().into_openapi();
    document.merge(public_operations().into_openapi());
    docs::complete(document)
}

/// The whole service.
pub(crate) fn router(service: &Service, origins: Vec<HeaderValue>) -> Router {
    let page = docs::page(&document());
    let json = crate::document::render(&document());
    let (operations, _) = operations().split_for_parts();
    let (public, _) = public_operations().split_for_parts();
    let documents = Router::new()
        .route(
            "/openapi.json",
            get(Asset::written("application/json", json).served()),
        )
        .route(
            "/docs",
            get(Asset::written("text/html; charset=utf-8", page).served()),
        )
        .route("/docs.css", get(docs::STYLE.served()));
    let state = || State(service.clone()).0;
    operations
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(not_found)
        .layer(middleware::from_fn_with_state(state(), repeat::once))
        .layer(middleware::from_fn_with_state(state(), caller::identify))
        .merge(public)
        .merge(documents)
        .merge(console::routes())
        .layer(middleware::from_fn_with_state(state(), limit::in_time))
        .layer(tower::util::option_layer(cors::layer(origins)))
        .layer(middleware::from_fn(trace::record))
        .with_state(state())
}

async fn not_found() -> Failure {
    let detail = "there is nothing at this address: see /docs";
    Failure::new(StatusCode::NOT_FOUND, "not_found", detail)
}

async fn method_not_allowed() -> Failure {
    let detail = "the address does not have this method: see /docs";
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
}
