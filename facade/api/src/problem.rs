//! Problems: why a request failed (RFC 9457).

use serde::{Deserialize, Serialize};

use crate::Plan;

/// Why a request failed, and what to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// A link to the meaning of the code.
    pub r#type: String,
    /// The meaning of the code, in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The code, for programs: `not_found`, `conflict` and others.
    pub code: String,
    /// What is wrong, with what, and what to do.
    pub detail: String,
    /// The id of this request in the log of the server.
    pub trace_id: String,
    /// After how many seconds a retry can succeed; the request has changed nothing then. Without it, a retry cannot succeed, or it is not known whether the request was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// For `consent_needed`: what the change would do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// For `conflict`: the record that has the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing_id: Option<String>,
}
