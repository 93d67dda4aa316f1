//! The response of a successful call: a status, headers and a body.
//!
//! Request ids and the date are added later, by [`Cloud::response`](crate::cloud::Cloud::response).

use serde_json::Value;

/// The response of a successful call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiResponse {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The `Content-Type` header.
    pub(crate) content_type: &'static str,
    /// Further headers, with names in lower case.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The body; empty for a response without a document.
    pub(crate) body: String,
}

/// The content type of documents.
pub(crate) const JSON: &str = "application/json; charset=utf-8";

impl ApiResponse {
    /// Creates a response with a JSON document and status 200.
    pub(crate) fn document(document: &Value) -> Self {
        Self {
            status: 200,
            content_type: JSON,
            headers: Vec::new(),
            body: document.to_string(),
        }
    }

    /// Creates a response without a body.
    pub(crate) fn bare(status: u16) -> Self {
        Self {
            status,
            content_type: JSON,
            headers: Vec::new(),
            body: String::new(),
        }
    }

    /// Creates a response with plain text and status 200. Only the console uses it.
    pub(crate) fn text(body: String) -> Self {
        Self {
            status: 200,
            content_type: "text/plain; charset=utf-8",
            headers: Vec::new(),
            body,
        }
    }

    /// Replaces the status.
    pub(crate) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}
