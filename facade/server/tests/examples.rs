//! Every operation of the OpenAPI document has an example, and does what the example shows.
//!
//! The document is walked, so that an operation without an example fails. The ids of the examples are replaced by those of the records that the
//! examples create, as far as a link of the document leads from one to the other.
//!
//! With FLEETWRIGHT_UPDATE_EXAMPLES=1 the responses are written into `src/document/examples.json`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::{collections::BTreeMap, path::Path, thread, time::Duration};

use jsonschema::Validator;
use serde_json::{Map, Value, json};
use support::{Answer, Client, Running};

/// How often an operation is repeated that has to wait for another one.
const ATTEMPTS: usize = 120;
/// The responses that show a secret, or nothing that is worth showing.
const NOT_SHOWN: [(&str, &str); 2] = [
    ("readInstanceSshKey", "/privateKey"),
    ("openInstanceConsole", "/url"),
];

/// An operation of the document.
struct Operation<'d> {
    id: &'d str,
    method: String,
    address: &'d str,
    described: &'d Value,
}

/// What has been learned: for each value of the examples the one of this run.
#[derive(Default)]
struct Learned(BTreeMap<String, String>);

impl Learned {
    fn replace(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => json!(self.0.get(text).unwrap_or(text)),
            Value::Array(items) => items.iter().map(|item| self.replace(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter();
                let replaced = fields.map(|(name, value)| (name.clone(), self.replace(value)));
                Value::Object(replaced.collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// The value with the ids of the examples.
    fn restore(&self, text: &str) -> String {
        let mut restored = text.to_owned();
        for (example, real) in &self.0 {
            restored = restored.replace(real, example);
        }
        restored
    }
}

impl<'d> Operation<'d> {
    fn all(document: &'d Value) -> Vec<Self> {
        let mut all = Vec::new();
        for (address, methods) in document["paths"].as_object().unwrap() {
            for (method, described) in methods.as_object().unwrap() {
                let id = described["operationId"].as_str().unwrap();
                let method = method.to_uppercase();
                all.push(Self {
                    id,
                    method,
                    address,
                    described,
                });
            }
        }
        all
    }

    fn parameters(&self) -> impl Iterator<Item = &Value> {
        self.described["parameters"]
            .as_array()
            .into_iter()
            .flatten()
    }

    /// The example of the request body. An operation that has a body and no example of it fails the test.
    fn body(&self) -> Option<&Value> {
        let content = self.described.pointer("/requestBody/content")?;
        let example = &content["application/json"]["example"];
        assert!(
            example.is_object(),
            "{} has no example of its body",
            self.id
        );
        Some(example)
    }

    /// What the operation needs: the examples of its path and its body that are ids.
    fn needs(&self) -> Vec<String> {
        let mut found = Vec::new();
        for parameter in self.parameters() {
            if parameter["in"] == "path" {
                let example = parameter["example"].as_str();
                found.push(
                    example
                        .unwrap_or_else(|| panic!("{}: {parameter}", self.id))
                        .to_owned(),
                );
            }
        }
        if let Some(body) = self.body() {
            collect_ids(body, &mut found);
        }
        found
    }

    fn target(&self, learned: &Learned) -> String {
        let mut address = self.address.to_owned();
        let mut query = Vec::new();
        for parameter in self.parameters() {
            let name = parameter["name"].as_str().unwrap();
            let example = learned.replace(&parameter["example"]);
            let text = |value: &Value| value.as_str().map_or(value.to_string(), ToOwned::to_owned);
            if parameter["in"] == "path" {
                address = address.replace(&format!("{{{name}}}"), &text(&example));
            } else if parameter["in"] == "query" {
                let values = example.as_array().cloned().unwrap_or(vec![example]);
                let present = values.iter().filter(|value| !value.is_null());
                query.extend(
                    present.map(|value| format!("{name}={}", text(value).replace('=', "%3D"))),
                );
            }
        }
        match query.is_empty() {
            true => address,
            false => format!("{address}?{}", query.join("&")),
        }
    }

    /// Creates come first, and deletions last.
    fn order(&self) -> usize {
        let is_create = self.described["responses"]["201"].is_object();
        match self.method.as_str() {
            "POST" if is_create => 0,
            "GET" => 1,
            "PUT" => 2,
            "DELETE" => 4,
            _ => 3,
        }
    }
}

fn collect_ids(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() == 36 && text.matches('-').count() == 4 => {
            found.push(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| collect_ids(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| collect_ids(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The schemas of a document.
struct Schemas<'d>(&'d Value);

impl Schemas<'_> {
    fn validator(&self, schema: &Value) -> Validator {
        let mut whole = schema.clone();
        whole["components"] = self.0["components"].clone();
        let options = jsonschema::draft202012::options().should_validate_formats(true);
        options.build(&whole).unwrap()
    }

    fn check(&self, what: &str, schema: &Value, value: &Value) {
        let validator = self.validator(schema);
        let errors: Vec<_> = validator
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{what}: {errors:?} in {value}");
    }
}

/// Sends the request of an example, again while the response says that a retry can succeed.
fn send(client: &Client, operation: &Operation<'_>, learned: &Learned) -> Answer {
    let target = operation.target(learned);
    let body = operation.body().map(|body| learned.replace(body));
    for _ in 0..ATTEMPTS {
        let answer = client.send(&operation.method, &target, &[], body.as_ref());
        let waits = [409, 503].contains(&answer.status) && answer.header("retry-after").is_some();
        if !waits {
            return answer;
        }
        thread::sleep(Duration::from_millis(250));
    }
    panic!("{} {target} does not succeed", operation.method)
}

/// Learns the ids of a response, by the links of the document.
fn learn(operation: &Operation<'_>, answer: &Answer, all: &[Operation<'_>], learned: &mut Learned) {
    let response = &operation.described["responses"][answer.status.to_string()];
    let Some(links) = response["links"].as_object() else {
        return;
    };
    let body = answer.json();
    let mut add = |example: &Value, expression: &Value| {
        let place = expression.as_str().unwrap().strip_prefix("$response.body#");
        let real = body.pointer(place.unwrap()).and_then(Value::as_str);
        let real = real.unwrap_or_else(|| panic!("{}: {expression} in {body}", operation.id));
        let example = example.as_str().unwrap().to_owned();
        learned.0.entry(example).or_insert_with(|| real.to_owned());
    };
    for link in links.values() {
        let target = all.iter().find(|other| link["operationId"] == other.id);
        let target = target.unwrap_or_else(|| panic!("{link} leads to no operation"));
        for (name, expression) in link["parameters"].as_object().into_iter().flatten() {
            let mut parameters = target.parameters();
            let parameter = parameters
                .find(|parameter| parameter["name"] == *name)
                .unwrap();
            add(&parameter["example"], expression);
        }
        for (name, expression) in link["requestBody"].as_object().into_iter().flatten() {
            add(&target.body().unwrap()[name], expression);
        }
    }
}

/// Checks a response against the document, and returns what is shown of it.
fn check(
    operation: &Operation<'_>,
    answer: &Answer,
    schemas: &Schemas<'_>,
    learned: &Learned,
) -> Option<Value> {
    let id = operation.id;
    assert!((200..300).contains(&answer.status), "{id}: {answer:?}");
    let response = &operation.described["responses"][answer.status.to_string()];
    assert!(
        response.is_object(),
        "{id}: {} is not described",
        answer.status
    );
    let Some(content) = response["content"].as_object() else {
        assert_eq!(answer.text, "", "{id}");
        return None;
    };
    let (kind, described) = content.iter().next().unwrap();
    let sent = answer.header("content-type").unwrap_or_default();
    assert!(
        sent.starts_with(kind.as_str()),
        "{id}: {sent} is not {kind}"
    );
    let shown = match kind.as_str() {
        "application/json" => {
            schemas.check(id, &described["schema"], &answer.json());
            let mut shown: Value = serde_json::from_str(&learned.restore(&answer.text)).unwrap();
            for (_, place) in NOT_SHOWN.iter().filter(|(secret, _)| *secret == id) {
                *shown.pointer_mut(place).unwrap() = json!("…");
            }
            shorten(&mut shown);
            shown
        }
        "text/event-stream" => {
            let changes = answer
                .text
                .lines()
                .filter_map(|line| line.strip_prefix("data: "));
            let changes = changes.filter(|data| data.contains("instance"));
            let mut count = 0;
            for change in changes {
                let schema = json!({"$ref": "#/components/schemas/InstanceChange"});
                schemas.check(id, &schema, &serde_json::from_str(change).unwrap());
                count += 1;
            }
            assert!(count > 0, "{answer:?}");
            return None;
        }
        _ => return None,
    };
    if let Some(example) = described.get("example") {
        schemas.check(
            &format!("the example of {id}"),
            &described["schema"],
            example,
        );
    } else {
        let updates = std::env::var_os("FLEETWRIGHT_UPDATE_EXAMPLES").is_some();
        assert!(
            updates,
            "{id} has no example of its response: run this test with FLEETWRIGHT_UPDATE_EXAMPLES=1"
        );
    }
    Some(shown)
}

/// Keeps the first two items of each list.
fn shorten(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.truncate(2);
            items.iter_mut().for_each(shorten);
        }
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_operation_does_what_its_example_shows() {
    let running = Running::sample();
    let client = running.client(&running.token());
    let document = client.get("/openapi.json").expect(200).json();
    let all = Operation::all(&document);
    let schemas = Schemas(&document);
    let mut learned = Learned::default();
    let mut waiting: Vec<&Operation<'_>> = all.iter().collect();
    waiting.sort_by_key(|operation| operation.order());
    let mut shown = Map::new();
    let mut postponed = 0;
    while !waiting.is_empty() {
        let is_ready = |operation: &&&Operation<'_>| {
            operation
                .needs()
                .iter()
                .all(|id| learned.0.contains_key(id))
        };
        let ready = waiting.iter().find(is_ready).copied();
        let operation = ready.unwrap_or_else(|| {
            panic!(
                "nothing leads to the ids of {:?}",
                waiting
                    .iter()
                    .map(|operation| operation.id)
                    .collect::<Vec<_>>()
            )
        });
        waiting.retain(|other| other.id != operation.id);
        if let Some(body) = operation.body() {
            let schema =
                &operation.described["requestBody"]["content"]["application/json"]["schema"];
            schemas.check(operation.id, schema, body);
        }
        let answer = send(&client, operation, &learned);
        // What contains something is deleted after it.
        if operation.method == "DELETE" && answer.status == 409 && postponed < 40 * ATTEMPTS {
            postponed += 1;
            thread::sleep(Duration::from_millis(10));
            waiting.push(operation);
            continue;
        }
        learn(operation, &answer, &all, &mut learned);
        let response = check(operation, &answer, &schemas, &learned);
        shown.insert(
            operation.id.to_owned(),
            json!({"status": answer.status, "response": response}),
        );
    }
    if std::env::var_os("FLEETWRIGHT_UPDATE_EXAMPLES").is_some() {
        write(&shown);
    }
}

/// Writes the responses into the file of examples.
fn write(shown: &Map<String, Value>) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/document/examples.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut examples: BTreeMap<String, BTreeMap<String, Value>> =
        serde_json::from_str(&text).unwrap();
    for (id, response) in shown {
        let example = examples.entry(id.clone()).or_default();
        for (name, value) in response.as_object().unwrap() {
            if !value.is_null() {
                example.insert(name.clone(), value.clone());
            }
        }
    }
    let text = serde_json::to_string_pretty(&examples).unwrap();
    std::fs::write(file, format!("{text}\n")).unwrap();
}
