//! What the OpenAPI document has beyond the descriptions of the handlers: examples, and the links from a response to the operations that its ids
//! lead to.

mod examples;
mod links;

use std::collections::BTreeSet;

use utoipa::openapi::{
    OpenApi, PathItem, RefOr, Schema, Type, path::Operation, schema::SchemaType,
};

pub(crate) use examples::add as add_examples;
pub(crate) use links::add as add_links;

/// The document as text.
pub(crate) fn render(document: &OpenApi) -> String {
    let text = document.to_pretty_json().unwrap_or_default();
    // utoipa 5 writes two fields of links with other names than OpenAPI. No other field has them, and in a text a quote is escaped.
    text.replace("\"operation_id\": ", "\"operationId\": ")
        .replace("\"request_body\": ", "\"requestBody\": ")
}

/// The methods of every address.
pub(crate) fn methods(document: &OpenApi) -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    for (address, path) in &document.paths.paths {
        let methods = [
            ("GET", &path.get),
            ("PUT", &path.put),
            ("POST", &path.post),
            ("DELETE", &path.delete),
        ];
        let present = methods.iter().filter(|(_, operation)| operation.is_some());
        all.extend(present.map(|(method, _)| (address.clone(), (*method).to_owned())));
    }
    all
}

/// Parameters of texts cannot be null: a header of `null` is that word.
pub(crate) fn without_null(document: &mut OpenApi) {
    for operation in all_operations(document) {
        for parameter in operation.parameters.iter_mut().flatten() {
            if let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema
                && schema.schema_type == SchemaType::from_iter([Type::String, Type::Null])
            {
                schema.schema_type = SchemaType::Type(Type::String);
            }
        }
    }
}

/// Every operation of a path.
fn operations(path: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let methods = [
        &mut path.get,
        &mut path.put,
        &mut path.post,
        &mut path.delete,
    ];
    methods.into_iter().flatten()
}

/// Every operation of the document.
fn all_operations(document: &mut OpenApi) -> impl Iterator<Item = &mut Operation> {
    document.paths.paths.values_mut().flat_map(operations)
}
