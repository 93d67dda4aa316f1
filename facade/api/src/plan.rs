//! Plans: what an update would do.

use serde::{Deserialize, Serialize};

/// The change method of each changed field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The fields of the machine that change. Empty if the machine stays as it is.
    pub changes: Vec<PlannedChange>,
    /// Whether data or addresses are lost. Then the update needs `allowReplace=true`.
    pub destructive: bool,
    /// What is lost, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// How one field is changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlannedChange {
    /// The field: `flavor`, `image`, `tags` and others.
    pub field: String,
    /// How.
    pub method: ChangeMethod,
}

/// How a changed field is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum ChangeMethod {
    /// The tags of the machine are changed, and nothing else.
    Retag,
    /// It takes effect when the machine is launched the next time.
    NextLaunch,
    /// The machine is stopped and resized; disk and addresses stay.
    Resize,
    /// The disk is replaced; addresses stay.
    Reimage,
    /// The machine is replaced by another one; disk and addresses are lost.
    Replace,
}
