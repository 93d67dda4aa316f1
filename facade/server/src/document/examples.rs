//! Examples: one for each operation, from a file that a test executes and writes.
//!
//! The file has for each operation the parameters and the body of a request, and the response to it. Ids are the same everywhere, so the examples
//! are about the same instance in the same network.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use utoipa::openapi::{
    OpenApi, RefOr,
    content::Content,
    path::{Operation, Parameter, ParameterBuilder},
};

/// The examples. `tests/examples.rs` executes each of them, and writes the responses.
const EXAMPLES: &str = include_str!("examples.json");

/// The example of one operation.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Example {
    #[serde(default)]
    parameters: BTreeMap<String, Value>,
    request: Option<Value>,
    /// The status of the response.
    #[serde(default)]
    status: Option<u16>,
    response: Option<Value>,
}

/// Adds the examples to a document.
pub(crate) fn add(document: &mut OpenApi) {
    let mut examples: BTreeMap<String, Example> =
        serde_json::from_str(EXAMPLES).unwrap_or_default();
    for operation in super::all_operations(document) {
        let id = operation.operation_id.clone().unwrap_or_default();
        if let Some(example) = examples.remove(&id) {
            add_example(operation, example);
        }
    }
}

fn add_example(operation: &mut Operation, mut example: Example) {
    let parameters = operation.parameters.iter_mut().flatten();
    for parameter in parameters {
        if let Some(value) = example.parameters.remove(&parameter.name) {
            *parameter = with_example(parameter, value);
        }
    }
    if let (Some(body), Some(request)) = (&mut operation.request_body, example.request) {
        set_example(body.content.values_mut().next(), request);
    }
    let status = example.status.unwrap_or_default().to_string();
    let response = operation.responses.responses.get_mut(&status);
    if let (Some(RefOr::T(response)), Some(shown)) = (response, example.response) {
        set_example(response.content.values_mut().next(), shown);
    }
}

fn with_example(parameter: &Parameter, value: Value) -> Parameter {
    ParameterBuilder::from(parameter.clone())
        .example(Some(value))
        .build()
}

fn set_example(content: Option<&mut Content>, example: Value) {
    if let Some(content) = content {
        content.example = Some(example);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_belongs_to_an_operation_and_its_parameters() {
        let examples: BTreeMap<String, Example> = serde_json::from_str(EXAMPLES).unwrap();
        let mut document = crate::router::document();
        let known: BTreeMap<_, _> = super::super::all_operations(&mut document)
            .map(|operation| (operation.operation_id.clone().unwrap(), operation.clone()))
            .collect();
        for (id, example) in examples {
            let operation = known.get(&id).unwrap_or_else(|| panic!("{id}"));
            for name in example.parameters.keys() {
                let mut parameters = operation.parameters.iter().flatten();
                assert!(
                    parameters.any(|parameter| parameter.name == *name),
                    "{id}: {name}"
                );
            }
            assert_eq!(
                example.request.is_some(),
                operation.request_body.is_some(),
                "{id}"
            );
        }
    }
}
