//! The OpenAPI document, completed with what is the same for every operation, and the page that shows it.

use std::fmt::Write as _;

use fleetwright_api::{InstanceChange, InstanceGone, Problem};
use utoipa::{
    OpenApi,
    openapi::{
        ContentBuilder, ObjectBuilder, OpenApi as Api, Ref, RefOr, Required, ResponseBuilder, Type,
        path::{Operation, ParameterBuilder, ParameterIn},
        security::{Http, HttpAuthScheme, SecurityScheme},
    },
};

use crate::{document, failure::CODES, http::asset::Asset};

/// The style of the page.
pub(crate) const STYLE: Asset = Asset::new("text/css; charset=utf-8", include_str!("docs.css"));

/// What the document begins with.
#[derive(OpenApi)]
#[openapi(
    info(title = "fleetwright", description = "Tenants' instances on any cloud."),
    components(schemas(Problem, InstanceChange, InstanceGone)),
    security(("bearer" = []))
)]
pub(crate) struct Document;

/// Adds the response of every failure, the token, and the idempotency key.
pub(crate) fn complete(mut document: Api) -> Api {
    let components = document.components.get_or_insert_default();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components.add_security_scheme("bearer", bearer);
    for path in document.paths.paths.values_mut() {
        let with_body = [&mut path.get, &mut path.put, &mut path.delete];
        for operation in with_body.into_iter().flatten() {
            add_problem(operation);
        }
        if let Some(operation) = &mut path.post {
            add_problem(operation);
            let key = ParameterBuilder::new()
                .name("Idempotency-Key")
                .parameter_in(ParameterIn::Header)
                .required(Required::False)
                .description(Some("A key of 1 to 128 visible characters: a request that is repeated with it within a day is carried out once"))
                .schema(Some(key_schema()))
                .build();
            operation.parameters.get_or_insert_default().push(key);
        }
    }
    document::without_null(&mut document);
    document::add_examples(&mut document);
    document::add_links(&mut document);
    document
}

fn key_schema() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some("^[!-~]{1,128}$"))
}

fn add_problem(operation: &mut Operation) {
    let schema = RefOr::Ref(Ref::from_schema_name("Problem"));
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let response = ResponseBuilder::new()
        .description("Why the request failed")
        .content("application/problem+json", content)
        .build();
    operation
        .responses
        .responses
        .insert("default".to_owned(), RefOr::T(response));
}

/// A page with every operation and code. It has no script and refers to no other host.
pub(crate) fn page(document: &Api) -> String {
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
        <meta name=\"viewport\" content=\"width=device-width\">\n<title>fleetwright</title>\n\
        <link rel=\"icon\" href=\"/console/icon.svg\" type=\"image/svg+xml\">\n<link rel=\"stylesheet\" href=\"/docs.css\">\n</head>\n<body>\n<h1>fleetwright</h1>\n\
        <p>Every operation needs <code>Authorization: Bearer</code> with a token. The <a href=\"/openapi.json\">OpenAPI document</a> has the schemas. The <a href=\"/console\">console</a> is a page for people.</p>\n",
    );
    for (address, path) in &document.paths.paths {
        let methods = [
            ("GET", &path.get),
            ("POST", &path.post),
            ("PUT", &path.put),
            ("DELETE", &path.delete),
        ];
        for (method, operation) in methods {
            if let Some(operation) = operation {
                add_operation(&mut page, method, address, operation);
            }
        }
    }
    page.push_str("<h2>Codes of problems</h2>\n<dl>\n");
    for (code, title) in CODES {
        let _ = writeln!(
            page,
            "<dt id=\"{code}\"><code>{code}</code></dt><dd>{title}.</dd>"
        );
    }
    page.push_str("</dl>\n</body>\n</html>\n");
    page
}

fn add_operation(page: &mut String, method: &str, address: &str, operation: &Operation) {
    let id = operation.operation_id.as_deref().unwrap_or_default();
    let summary = escape(operation.summary.as_deref().unwrap_or_default());
    let _ = writeln!(
        page,
        "<section id=\"{id}\">\n<h3><code>{method} {}</code></h3>\n<p>{summary}</p>",
        escape(address)
    );
    if let Some(description) = &operation.description {
        let _ = writeln!(page, "<p>{}</p>", escape(description));
    }
    let parameters = operation.parameters.iter().flatten();
    let rows: String = parameters
        .map(|parameter| {
            let text = parameter.description.as_deref().unwrap_or_default();
            format!(
                "<dt><code>{}</code></dt><dd>{}</dd>\n",
                escape(&parameter.name),
                escape(text)
            )
        })
        .collect();
    if !rows.is_empty() {
        let _ = writeln!(page, "<dl>\n{rows}</dl>");
    }
    page.push_str("</section>\n");
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
