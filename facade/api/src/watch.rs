//! Changes of instances, as server-sent events.

use serde::{Deserialize, Serialize};

use crate::InstanceSummary;

/// An event of a watch, as its lines are read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WatchEvent {
    /// What happened.
    pub event: WatchEventKind,
    /// Where to resume: send it as `Last-Event-ID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// JSON: `InstanceChange` for `instance`, `InstanceGone` for `deleted`, and an empty object for the others.
    pub data: String,
}

/// What an event of a watch says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum WatchEventKind {
    /// An instance is as the data says.
    Instance,
    /// An instance is gone.
    Deleted,
    /// Every present instance was sent.
    Synced,
    /// Nothing happened up to here.
    Position,
}

/// The data of the events `instance` of a watch: an instance as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct InstanceChange {
    /// The instance.
    pub instance: InstanceSummary,
}

/// The data of the events `deleted` of a watch: an instance whose record is gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct InstanceGone {
    /// The instance.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub id: String,
}
