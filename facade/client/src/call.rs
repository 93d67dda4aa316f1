//! One call: its request, its attempts, its deadline, and the meaning of the response.

use std::{error::Error as _, time::Duration};

use bytes::{Bytes, BytesMut};
use fleetwright_api::Problem;
use reqwest::{
    RequestBuilder, Response,
    header::{AUTHORIZATION, CONTENT_TYPE, ETAG, IF_MATCH, RETRY_AFTER},
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::{Instant, timeout_at};

use crate::{Client, Effect, Error, operation::Operation, retry};

/// How long one attempt may take. The service ends requests after 30 s by default.
const ATTEMPT_WITHIN: Duration = Duration::from_secs(40);
/// The largest response that is read. A page of 500 instances has less.
const MAX_BODY: usize = 64 << 20;

/// What one call sends.
#[derive(Debug)]
pub(crate) struct Call {
    operation: &'static Operation,
    path: String,
    query: Vec<(&'static str, String)>,
    body: Option<Vec<u8>>,
    if_match: Option<String>,
    once: bool,
}

/// A response of success.
pub(crate) struct Success {
    operation: &'static Operation,
    status: u16,
    pub(crate) etag: Option<String>,
    body: Bytes,
}

impl Call {
    /// A call with the variable parts of its address, in their order.
    pub(crate) fn new(operation: &'static Operation, parts: &[&str]) -> Result<Self, Error> {
        Ok(Self {
            operation,
            path: fill(operation.path, parts)?,
            query: Vec::new(),
            body: None,
            if_match: None,
            once: false,
        })
    }

    /// Adds a parameter, if there is a value.
    pub(crate) fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query
            .extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Adds a parameter once for each value.
    pub(crate) fn queries(
        mut self,
        name: &'static str,
        values: impl IntoIterator<Item = impl ToString>,
    ) -> Self {
        let values = values.into_iter().map(|value| (name, value.to_string()));
        self.query.extend(values);
        self
    }

    pub(crate) fn body(mut self, body: &impl Serialize) -> Result<Self, Error> {
        let text = serde_json::to_vec(body);
        self.body = Some(text.map_err(|error| Error::invalid("body", error.to_string()))?);
        Ok(self)
    }

    pub(crate) fn if_match(mut self, etag: Option<&str>) -> Self {
        self.if_match = etag.map(str::to_owned);
        self
    }

    /// Sends it once: its failure is what the caller asks for.
    pub(crate) fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// The request, without an idempotency key.
    pub(crate) fn request(&self, client: &Client) -> RequestBuilder {
        let mut url = format!("{}{}", client.shared.base, self.path);
        if !self.query.is_empty() {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.extend_pairs(&self.query);
            url = format!("{url}?{}", query.finish());
        }
        let mut request = client
            .shared
            .http
            .request(self.operation.http_method(), url);
        if let Some(token) = client.token() {
            request = request.header(AUTHORIZATION, token.header().clone());
        }
        if let Some(body) = &self.body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.clone());
        }
        if let Some(etag) = &self.if_match {
            request = request.header(IF_MATCH, etag);
        }
        request
    }
}

impl Success {
    /// The value in the body.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| Error::Response {
            operation: self.operation.id,
            status: self.status,
            problem: error.to_string(),
            effect: effect_of(self.operation),
        })
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    /// Sends a call, again where that is safe and can help, until it succeeds or its deadline passes.
    pub(crate) async fn send(&self, call: Call) -> Result<Success, Error> {
        let started = Instant::now();
        let deadline = started + self.deadline;
        // One key for all attempts: the service carries out one of them.
        let key = call.operation.has_key().then(|| self.new_key());
        let attempts = if call.once { 1 } else { self.attempts };
        let mut delays = retry::delays(attempts);
        let mut last = None;
        // One attempt that may have been carried out is enough.
        let mut effect = Effect::None;
        loop {
            let attempt = timeout_at(deadline, self.attempt(&call, key.as_deref())).await;
            let Ok(result) = attempt else {
                return Err(self.late(call.operation, effect_of(call.operation), last));
            };
            let error = match result {
                Ok(success) => return Ok(success),
                Err(error) => error,
            };
            tracing::debug!(operation = call.operation.id, %error, "an attempt failed");
            if error.effect() == Effect::Unknown {
                effect = Effect::Unknown;
            }
            let next = delays
                .next()
                .filter(|_| retry::can_retry(call.operation, &error));
            let Some(next) = next else {
                return Err(error.after(effect));
            };
            let delay = retry::delay(&error, next);
            if Instant::now() + delay >= deadline {
                return Err(self.late(call.operation, effect, Some(Box::new(error))));
            }
            last = Some(Box::new(error));
            tokio::time::sleep(delay).await;
        }
    }

    /// Sends a call and reads the value in the response.
    pub(crate) async fn fetch<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        self.send(call).await?.json()
    }

    /// Sends a call whose response has no body.
    pub(crate) async fn perform(&self, call: Call) -> Result<(), Error> {
        self.send(call).await.map(drop)
    }

    fn new_key(&self) -> String {
        let key = self.key.clone();
        key.unwrap_or_else(|| uuid::Uuid::new_v4().to_string())
    }

    fn late(&self, operation: &Operation, effect: Effect, last: Option<Box<Error>>) -> Error {
        Error::Deadline {
            operation: operation.id,
            after: self.deadline,
            effect,
            last,
        }
    }

    async fn attempt(&self, call: &Call, key: Option<&str>) -> Result<Success, Error> {
        let operation = call.operation;
        let mut request = call.request(self).timeout(ATTEMPT_WITHIN);
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        let response = request
            .send()
            .await
            .map_err(|error| lost(operation, error))?;
        let status = response.status();
        tracing::debug!(
            operation = operation.id,
            method = operation.method,
            path = call.path,
            status = status.as_u16(),
            "response"
        );
        if !status.is_success() {
            return Err(failure(operation, response).await);
        }
        let etag = response.headers().get(ETAG);
        let etag = etag.and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        Ok(Success {
            operation,
            status: status.as_u16(),
            etag,
            body: read(operation, response).await?,
        })
    }
}

/// What a response of failure says.
pub(crate) async fn failure(operation: &'static Operation, response: Response) -> Error {
    let status = response.status().as_u16();
    let seconds = response.headers().get(RETRY_AFTER);
    let seconds = seconds.and_then(|value| value.to_str().ok()?.parse().ok());
    let body = match read(operation, response).await {
        Ok(body) => body,
        Err(error) => return error,
    };
    match serde_json::from_slice::<Problem>(&body) {
        Ok(mut problem) => {
            problem.retry_after = problem.retry_after.or(seconds);
            Error::Problem {
                operation: operation.id,
                effect: effect_of_problem(operation, &problem),
                problem: Box::new(problem),
            }
        }
        Err(_) => Error::Response {
            operation: operation.id,
            status,
            problem:
                "it is no problem of fleetwright-server; something else may answer at the address"
                    .to_owned(),
            // What refuses a request before the service does has not carried it out.
            effect: if status < 500 {
                Effect::None
            } else {
                effect_of(operation)
            },
        },
    }
}

/// Reads a body, up to a limit.
async fn read(operation: &'static Operation, mut response: Response) -> Result<Bytes, Error> {
    let mut body = BytesMut::new();
    while let Some(part) = response
        .chunk()
        .await
        .map_err(|error| lost(operation, error))?
    {
        if body.len() + part.len() > MAX_BODY {
            return Err(Error::Response {
                operation: operation.id,
                status: response.status().as_u16(),
                problem: format!("it has more than {} MiB", MAX_BODY >> 20),
                effect: effect_of(operation),
            });
        }
        body.extend_from_slice(&part);
    }
    Ok(body.freeze())
}

/// A request that got no whole response.
pub(crate) fn lost(operation: &'static Operation, error: reqwest::Error) -> Error {
    let effect = if error.is_connect() || error.is_builder() {
        Effect::None
    } else {
        effect_of(operation)
    };
    let problem = match () {
        () if error.is_timeout() && !error.is_connect() => "the service did not respond in time",
        () if error.is_connect() => "the service cannot be reached",
        () if error.is_builder() => "the request cannot be sent",
        () => "the response was lost",
    };
    // The text of the HTTP client's own error says no more than this; its sources do.
    let error = error.without_url();
    let source = match error.source() {
        Some(source) => chain(source).into(),
        None => error.to_string().into(),
    };
    Error::Connection {
        operation: operation.id,
        problem,
        effect,
        source,
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// What a request may have changed once it has arrived.
fn effect_of(operation: &Operation) -> Effect {
    if operation.method == "GET" {
        Effect::None
    } else {
        Effect::Unknown
    }
}

/// What a request may have changed that the service answered with a problem.
fn effect_of_problem(operation: &Operation, problem: &Problem) -> Effect {
    match (problem.status, problem.retry_after) {
        // A fault says nothing about what was done before it.
        (500, _) => effect_of(operation),
        // What is busy or away and has done nothing says after how long to retry.
        (502..=504, None) => effect_of(operation),
        // The service has refused it.
        _ => Effect::None,
    }
}

/// Puts values into the variable parts of an address.
fn fill(template: &str, parts: &[&str]) -> Result<String, Error> {
    let mut path = String::new();
    let mut rest = template;
    let mut parts = parts.iter();
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        let part = parts.next().copied().unwrap_or_default();
        if matches!(part, "" | "." | "..") {
            return Err(Error::invalid(
                name,
                format!("expected an id, and not {part:?}"),
            ));
        }
        path.push_str(before);
        path.extend(
            form_urlencoded::byte_serialize(part.as_bytes()).map(|text| text.replace('+', "%20")),
        );
        rest = after;
    }
    path.push_str(rest);
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_change_the_address() {
        let filled = |part: &str| fill("/a/{id}/b", &[part]).map_err(|error| error.to_string());
        assert_eq!(filled("x-1"), Ok("/a/x-1/b".to_owned()));
        assert_eq!(
            filled("x/../y?z#é +"),
            Ok("/a/x%2F..%2Fy%3Fz%23%C3%A9%20%2B/b".to_owned())
        );
        for part in ["", ".", ".."] {
            assert!(
                filled(part).is_err_and(|text| text.starts_with("id: ")),
                "{part:?}"
            );
        }
    }
}
