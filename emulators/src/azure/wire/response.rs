//! The response of a successful call: a status, a document, and headers.

use serde_json::Value;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiResponse {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

/// What documents are.
pub(crate) const JSON: &str = "application/json; charset=utf-8";

impl ApiResponse {
    /// A document, status 200.
    pub(crate) fn document(document: &Value) -> Self {
        Self {
            status: 200,
            content_type: JSON,
            headers: Vec::new(),
            body: document.to_string(),
        }
    }

    /// Nothing but a status.
    pub(crate) fn bare(status: u16) -> Self {
        Self {
            status,
            content_type: JSON,
            headers: Vec::new(),
            body: String::new(),
        }
    }

    /// Plain text.
    pub(crate) fn text(body: String) -> Self {
        Self {
            status: 200,
            content_type: "text/plain; charset=utf-8",
            headers: Vec::new(),
            body,
        }
    }

    /// The same with another status.
    pub(crate) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The same with one header more.
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}
