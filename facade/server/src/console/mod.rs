//! The console: a page for tenants that is part of the program. It has no build step, names no other host, and uses the interface that every
//! other client uses, with the token that its user pastes.

use axum::{Router, response::Redirect, routing::get};

use crate::{http::asset::Asset, service::Service};

/// The page.
const PAGE: Asset = Asset::new("text/html; charset=utf-8", include_str!("page/index.html"));

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// A file of the page, by its name.
macro_rules! file {
    ($kind:expr, $name:literal) => {
        (
            concat!("/console/", $name),
            Asset::new($kind, include_str!(concat!("page/", $name))),
        )
    };
}

/// Everything that the page loads.
const FILES: [(&str, Asset); 25] = [
    file!("image/svg+xml", "icon.svg"),
    file!(STYLE, "style.css"),
    file!(STYLE, "parts.css"),
    file!(SCRIPT, "api.js"),
    file!(SCRIPT, "app.js"),
    file!(SCRIPT, "catalog.js"),
    file!(SCRIPT, "change.js"),
    file!(SCRIPT, "create.js"),
    file!(SCRIPT, "delete.js"),
    file!(SCRIPT, "dialog.js"),
    file!(SCRIPT, "dom.js"),
    file!(SCRIPT, "fleet.js"),
    file!(SCRIPT, "header.js"),
    file!(SCRIPT, "instance.js"),
    file!(SCRIPT, "instances.js"),
    file!(SCRIPT, "networks.js"),
    file!(SCRIPT, "plan.js"),
    file!(SCRIPT, "problem.js"),
    file!(SCRIPT, "quota.js"),
    file!(SCRIPT, "scope.js"),
    file!(SCRIPT, "session.js"),
    file!(SCRIPT, "sign-in.js"),
    file!(SCRIPT, "stream.js"),
    file!(SCRIPT, "tags.js"),
    file!(SCRIPT, "words.js"),
];

/// The page and its files. They need no token and say nothing about tenants.
pub(crate) fn routes() -> Router<Service> {
    let page = PAGE.served();
    let mut router = Router::new()
        .route("/", get(|| async { Redirect::to("/console") }))
        .route("/console/", get(|| async { Redirect::to("/console") }))
        .route("/console", get(page));
    for (path, asset) in FILES {
        router = router.route(path, get(asset.served()));
    }
    router
}
