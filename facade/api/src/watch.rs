//! Changes of instances, as server-sent events.

use serde::{Deserialize, Serialize};

use crate::InstanceSummary;

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
