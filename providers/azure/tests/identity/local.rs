//! A token service, a Resource Manager and a log, all on this machine.
#![allow(dead_code, reason = "no test binary uses all of them")]

use std::{
    fmt::{Debug, Write as _},
    sync::{Arc, Mutex},
    time::Duration,
};

use fleetwright_azure::{AzureCredentials, AzureOptions, AzureProvisioner};
use fleetwright_provider_testkit::canned_responses::{self, CannedResponse, Request};
use tracing::{Event, Subscriber, field::Field, field::Visit};
use tracing_subscriber::{Layer, layer::Context, prelude::*};

use crate::emulated::AzureHarness;

type Requests = Arc<Mutex<Vec<Request>>>;

/// A token service. It keeps all requests.
pub(crate) struct TokenServer {
    pub(crate) url: String,
    requests: Requests,
}

impl TokenServer {
    /// Starts a service that responds to the request with a number, from 1.
    pub(crate) fn start(
        respond: impl Fn(usize, &Request) -> CannedResponse + Send + 'static,
    ) -> Self {
        let requests = Requests::default();
        let kept = Arc::clone(&requests);
        let url = canned_responses::serve(move |request| {
            let number = {
                let mut kept = kept.lock().unwrap();
                kept.push(request.clone());
                kept.len()
            };
            respond(number, request)
        });
        Self {
            url: url.unwrap(),
            requests,
        }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

/// Issues a token for an hour, in the form of an authority and of a metadata service.
pub(crate) fn issued(number: usize, _: &Request) -> CannedResponse {
    let ends = chrono::Utc::now().timestamp() + 3600;
    CannedResponse::ok(format!(
        r#"{{"token_type":"Bearer","expires_in":3600,"ext_expires_in":3600,"expires_on":"{ends}",
            "resource":"https://management.azure.com","access_token":"s3cr3t-token-{number}"}}"#
    ))
}

/// A Resource Manager without machines. It keeps all requests.
pub(crate) struct Arm {
    pub(crate) url: String,
    requests: Requests,
    refused: Arc<Mutex<Vec<String>>>,
}

impl Arm {
    pub(crate) fn start() -> Self {
        let (requests, refused) = (Requests::default(), Arc::<Mutex<Vec<String>>>::default());
        let (kept, no) = (Arc::clone(&requests), Arc::clone(&refused));
        let url = canned_responses::serve(move |request| {
            kept.lock().unwrap().push(request.clone());
            let carries = |token: &String| {
                let line = format!("authorization: Bearer {token}");
                request.headers.contains(&line)
            };
            if no.lock().unwrap().iter().any(carries) {
                let body = r#"{"error":{"code":"ExpiredAuthenticationToken","message":"expired"}}"#;
                return CannedResponse::new("401 Unauthorized", body);
            }
            CannedResponse::ok(r#"{"value":[]}"#)
        });
        Self {
            url: url.unwrap(),
            requests,
            refused,
        }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Refuses a token from now on.
    pub(crate) fn refuse(&self, token: &str) {
        self.refused.lock().unwrap().push(token.to_owned());
    }

    pub(crate) fn provisioner(
        &self,
        credentials: AzureCredentials,
        call_timeout: Duration,
    ) -> AzureProvisioner {
        let mut options = AzureOptions::default();
        options.endpoint.clone_from(&self.url);
        options.call_timeout = call_timeout;
        AzureProvisioner::new(credentials, AzureHarness::launch_config(), options).unwrap()
    }
}

/// Returns a field of a form.
pub(crate) fn form(request: &Request, name: &str) -> Option<String> {
    field(&String::from_utf8_lossy(&request.body), name)
}

/// Returns a parameter of the query.
pub(crate) fn query(request: &Request, name: &str) -> Option<String> {
    field(request.path.split_once('?')?.1, name)
}

fn field(pairs: &str, name: &str) -> Option<String> {
    let pairs = form_urlencoded::parse(pairs.as_bytes());
    let mut found = pairs.filter(|(key, _)| key == name);
    found.next().map(|(_, value)| value.into_owned())
}

/// Collects all log output as text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<String>>);

impl Log {
    /// Installs it for the whole process: a subscriber of one thread can miss events whose call site another thread
    /// has used before.
    pub(crate) fn install(&self) {
        let subscriber = tracing_subscriber::registry().with(self.clone());
        tracing::subscriber::set_global_default(subscriber).unwrap();
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = self.0.lock().unwrap();
        let _ = write!(text, "{} ", event.metadata().target());
        event.record(&mut Line(&mut text));
        text.push('\n');
    }
}

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}
