//! What only operators of the installation see.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::Instance;

/// An instance with what is behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// The instance.
    pub instance: Instance,
    /// The hidden server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerView>,
    /// What it is charged, by kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Vec<crate::QuotaLimit>>,
}

/// A hidden server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerView {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub id: String,
    /// Where it is in its life.
    pub phase: String,
    /// The generation of its desired state.
    pub generation: u64,
    /// The last generation that is applied.
    pub observed_generation: u64,
    /// The id of its machine at the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The number of its launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<u64>,
    /// Differences that this system did not cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<String>,
    /// Problems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<crate::Condition>,
    /// Its last events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<OperatorEvent>,
}

/// An event of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OperatorEvent {
    /// When.
    pub at: DateTime<Utc>,
    /// Which part of the system.
    pub by: String,
    /// What happened.
    pub message: String,
}

/// How a region is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegionReport {
    /// The region.
    pub id: String,
    /// The account of its machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The account that its credentials belong to now, if it is another: nothing is changed until an operator decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_account: Option<String>,
    /// The last scan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<Scan>,
    /// Launches that reached another account, or may have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaked_launches: Vec<LeakedLaunch>,
}

/// The result of a scan of a region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Scan {
    /// When.
    pub at: DateTime<Utc>,
    /// How many machines were seen.
    pub machines: u64,
    /// How many servers there are.
    pub servers: u64,
    /// What could not be seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<String>,
    /// Why nothing is changed, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<String>,
    /// Machines without a server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orphans: Vec<Orphan>,
}

/// A machine that belongs to no server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Orphan {
    /// Its id at the cloud.
    pub machine: String,
    /// The server that its tags name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Since when.
    pub since: DateTime<Utc>,
    /// What was done.
    pub outcome: String,
}

/// A launch in another account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct LeakedLaunch {
    /// Its launch token.
    pub token: String,
    /// The server that it was for.
    pub server: String,
    /// The account, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The machine, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// When.
    pub at: DateTime<Utc>,
}

/// How the regions are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegionReportList {
    /// The regions.
    pub items: Vec<RegionReport>,
}

/// The account that an operator accepts for a region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccountAccept {
    /// The account that is recorded now.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 2048, pattern = r"^[!-~]+$")
    )]
    pub expected: String,
    /// The account to record instead.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 2048, pattern = r"^[!-~]+$")
    )]
    pub account: String,
}

/// A leaked launch that an operator has cleaned up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeakResolve {
    /// Its launch token.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 128, pattern = r"^[!-~]+$")
    )]
    pub token: String,
}
