//! Organizations, projects, role bindings and quotas.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A request for a new organization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OrganizationCreate {
    /// Its name, unique in the installation.
    #[cfg_attr(
        feature = "openapi",
        schema(
            max_length = 63,
            pattern = r"^[0-9A-Za-z](?:[0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?$"
        )
    )]
    pub name: String,
}

/// An organization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Organization {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub id: String,
    /// Its name.
    pub name: String,
    /// When it was created.
    pub creation_time: DateTime<Utc>,
    /// Who created it.
    pub created_by: String,
    /// Whether something can be created in it.
    pub state: TenantState,
}

/// Whether something can be created in an organization or a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum TenantState {
    /// It can.
    Open,
    /// It is being deleted.
    Deleting,
}

/// A page of organizations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OrganizationPage {
    /// The organizations.
    pub items: Vec<Organization>,
    /// Where the next page starts: pass it as `after`. It is absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A request for a new project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProjectCreate {
    /// Its name, unique in the organization.
    #[cfg_attr(
        feature = "openapi",
        schema(
            max_length = 63,
            pattern = r"^[0-9A-Za-z](?:[0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?$"
        )
    )]
    pub name: String,
}

/// A project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub id: String,
    /// Its organization.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub organization_id: String,
    /// Its name.
    pub name: String,
    /// When it was created.
    pub creation_time: DateTime<Utc>,
    /// Who created it.
    pub created_by: String,
    /// Whether something can be created in it.
    pub state: TenantState,
}

/// A page of projects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProjectPage {
    /// The projects.
    pub items: Vec<Project>,
    /// Where the next page starts: pass it as `after`. It is absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Where a role holds. Without an organization: on the whole platform.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scope {
    /// The organization.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<String>,
    /// The project, with its organization.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
}

/// A request to give a role to a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RoleBindingCreate {
    /// Who gets it: `user:` and a name.
    #[cfg_attr(
        feature = "openapi",
        schema(pattern = r"^user:[^\u0000-\u001f\u007f-\u009f]{1,256}$")
    )]
    pub actor: String,
    /// The role.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 64, pattern = r"^[a-z][a-z0-9-]{0,63}$")
    )]
    pub role: String,
    /// Where it holds.
    pub scope: Scope,
}

/// A role of a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RoleBinding {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub id: String,
    /// Who has it.
    pub actor: String,
    /// The role.
    pub role: String,
    /// Where it holds.
    pub scope: Scope,
    /// When it was created.
    pub creation_time: DateTime<Utc>,
    /// Who created it.
    pub created_by: String,
}

/// A page of role bindings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RoleBindingPage {
    /// The bindings.
    pub items: Vec<RoleBinding>,
    /// Where the next page starts: pass it as `after`. It is absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A role: what it permits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Role {
    /// Its name.
    pub name: String,
    /// Where it can be bound: `global`, `organization` or `project`.
    pub level: String,
    /// What it permits, as verb and resource.
    pub permissions: Vec<String>,
}

/// The roles of the installation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RoleList {
    /// The roles, in the order of their names.
    pub items: Vec<Role>,
}

/// Who the caller is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Caller {
    /// The caller.
    pub actor: String,
    /// The roles that it has now.
    pub grants: Vec<CallerGrant>,
}

/// A role of the caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CallerGrant {
    /// The role.
    pub role: String,
    /// Where it holds.
    pub scope: Scope,
}

/// What an organization or a project may use, and uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Quota {
    /// The organization.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub organization_id: String,
    /// The project, for the quota of a project.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// One for each kind.
    pub lines: Vec<QuotaLine>,
}

/// The quota of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct QuotaLine {
    /// What is limited: `servers`, `gpus`, `networks` and others.
    pub kind: String,
    /// How much is used.
    pub used: u64,
    /// How much may be used. It is absent if only the organization has a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// New limits. Kinds that are left out keep theirs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QuotaUpdate {
    /// The limits.
    pub limits: Vec<QuotaLimit>,
}

/// The limit of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QuotaLimit {
    /// What is limited.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 64, pattern = r"^[a-z][a-z0-9-]{0,63}$")
    )]
    pub kind: String,
    /// How much may be used.
    #[cfg_attr(feature = "openapi", schema(schema_with = crate::schema::limit))]
    #[serde(deserialize_with = "crate::number::whole")]
    pub limit: u64,
}

/// Who did what to which record, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// When.
    pub at: DateTime<Utc>,
    /// Who.
    pub actor: String,
    /// What.
    pub verb: String,
    /// To what kind of record.
    pub resource: String,
    /// To which record.
    pub record: String,
    /// The name of the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its organization.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<String>,
    /// Its project.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// The generation that the request created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// `done`, `requested`, `disclosed` or `refused`.
    pub outcome: String,
}

/// A page of the audit log, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuditPage {
    /// The entries.
    pub items: Vec<AuditEntry>,
    /// Where the next page starts: pass it as `after`. It is absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
