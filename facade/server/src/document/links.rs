//! Links: which operations the ids of a response lead to.
//!
//! A source says where a response has which ids. It is linked with every operation whose path needs no others, so that a new operation has its
//! links without a line here.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use utoipa::openapi::{
    OpenApi, RefOr, Response,
    link::LinkBuilder,
    path::{Operation, ParameterIn},
};

/// Where a response has an id: the parameter that takes it, and the place in the body.
type Id = (&'static str, &'static str);

/// A response with ids.
struct Source {
    operation: &'static str,
    status: &'static str,
    ids: &'static [Id],
}

const ORGANIZATION: &[Id] = &[("organizationId", "/id")];
const PROJECT: &[Id] = &[("organizationId", "/organizationId"), ("projectId", "/id")];
const NETWORK: &[Id] = &[
    ("organizationId", "/organizationId"),
    ("projectId", "/projectId"),
    ("networkId", "/id"),
];
const GROUP: &[Id] = &[("securityGroupId", "/id")];
const AUTHORITY: &[Id] = &[("sshCertificateAuthorityId", "/id")];
const BINDING: &[Id] = &[("roleBindingId", "/id")];
const INSTANCE: &[Id] = &[("instanceId", "/metadata/id")];
const IMAGE: &[Id] = &[("imageId", "/id")];
const REPORT: &[Id] = &[
    ("regionId", "/items/0/id"),
    ("expected", "/items/0/account"),
    ("account", "/items/0/account"),
];

const SOURCES: &[Source] = &[
    source("createOrganization", "201", ORGANIZATION),
    source("createProject", "201", PROJECT),
    source("createNetwork", "201", NETWORK),
    source("createSecurityGroup", "201", GROUP),
    source("createSshAuthority", "201", AUTHORITY),
    source("createRoleBinding", "201", BINDING),
    source("createInstance", "201", INSTANCE),
    source("snapshotInstance", "201", IMAGE),
    source("listRegionReports", "200", REPORT),
];

/// What may be in the body of an operation that a link leads to. The operations that it lists are the ones that need nothing that a caller has to choose.
const BODIES: &[(&str, &[&str])] = &[
    ("createNetwork", &["organizationId", "projectId"]),
    ("createSecurityGroup", &["networkId"]),
    ("createSshAuthority", &["organizationId", "projectId"]),
    ("acceptRegionAccount", &["expected", "account"]),
];

const fn source(operation: &'static str, status: &'static str, ids: &'static [Id]) -> Source {
    Source {
        operation,
        status,
        ids,
    }
}

/// Adds the links to a document.
pub(crate) fn add(document: &mut OpenApi) {
    let targets: Vec<Target> = super::all_operations(document).map(Target::of).collect();
    for operation in super::all_operations(document) {
        let id = operation.operation_id.clone().unwrap_or_default();
        for source in SOURCES.iter().filter(|source| source.operation == id) {
            let found = operation.responses.responses.get_mut(source.status);
            if let Some(RefOr::T(response)) = found {
                link(response, source, &targets);
            }
        }
    }
}

/// An operation that a link may lead to.
struct Target {
    id: String,
    path: Vec<String>,
    body: &'static [&'static str],
}

impl Target {
    fn of(operation: &mut Operation) -> Self {
        let id = operation.operation_id.clone().unwrap_or_default();
        let parameters = operation.parameters.iter().flatten();
        let path = parameters
            .filter(|parameter| parameter.parameter_in == ParameterIn::Path)
            .map(|parameter| parameter.name.clone());
        let body = BODIES.iter().find(|(name, _)| *name == id);
        Self {
            path: path.collect(),
            body: body.map_or(&[], |(_, fields)| fields),
            id,
        }
    }
}

fn link(response: &mut Response, source: &Source, targets: &[Target]) {
    let ids: BTreeMap<_, _> = source.ids.iter().copied().collect();
    let expression = |name: &str| {
        let place = ids.get(name)?;
        Some(json!(format!("$response.body#{place}")))
    };
    for target in targets {
        let names = target.path.iter().map(|name| (name.clone(), name.as_str()));
        let parameters: Option<BTreeMap<String, Value>> = names
            .map(|(name, key)| Some((name, expression(key)?)))
            .collect();
        let fields = target.body.iter();
        let body: Option<Map<String, Value>> = fields
            .map(|field| Some(((*field).to_owned(), expression(field)?)))
            .collect();
        let (Some(parameters), Some(body)) = (parameters, body) else {
            continue;
        };
        if parameters.is_empty() && body.is_empty() {
            continue;
        }
        let mut link = LinkBuilder::new().operation_id(target.id.clone());
        for (name, expression) in parameters {
            link = link.parameter(name, expression);
        }
        if !body.is_empty() {
            link = link.request_body(Some(Value::Object(body)));
        }
        let links = &mut response.links;
        links.insert(target.id.clone(), RefOr::T(link.build()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_created_instance_leads_to_everything_that_can_be_done_with_it() {
        let text = super::super::render(&crate::router::document());
        let document: Value = serde_json::from_str(&text).unwrap();
        let created = &document["paths"]["/api/v2/instances"]["post"]["responses"]["201"];
        let links = created["links"].as_object().unwrap();
        let wanted: usize = document["paths"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(address, _)| address.contains("{instanceId}"))
            .map(|(_, path)| path.as_object().unwrap().len())
            .sum();
        assert_eq!(links.len(), wanted, "{links:?}");
        assert_eq!(
            links["startInstance"],
            json!({"operationId": "startInstance", "parameters": {"instanceId": "$response.body#/metadata/id"}})
        );
        let network = &document["paths"]["/api/v2/networks"]["post"]["responses"]["201"]["links"];
        assert_eq!(
            network["createSecurityGroup"]["requestBody"],
            json!({"networkId": "$response.body#/id"})
        );
    }

    #[test]
    fn every_source_is_an_operation_of_the_document() {
        let text = super::super::render(&crate::router::document());
        let document: Value = serde_json::from_str(&text).unwrap();
        let paths = document["paths"].as_object().unwrap().values();
        let operations: Vec<_> = paths
            .flat_map(|path| path.as_object().unwrap().values())
            .collect();
        for source in SOURCES {
            let found = operations
                .iter()
                .find(|operation| operation["operationId"] == source.operation);
            let links = &found.unwrap()["responses"][source.status]["links"];
            assert!(links.is_object(), "{}", source.operation);
        }
    }
}
