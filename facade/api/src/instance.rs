//! Instances: the machines of a tenant.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{MetadataWrite, Plan, Tag, UserDataText};

/// A request for a new instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceCreate {
    /// Its name, description and tags. The name cannot be changed later.
    pub metadata: MetadataWrite,
    /// What it is made of.
    pub spec: InstanceCreateSpec,
}

/// The spec of a new instance. Its region is that of its network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceCreateSpec {
    /// The organization.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub organization_id: String,
    /// The project, whose quota pays.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub project_id: String,
    /// The network, which cannot be changed later.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub network_id: String,
    /// The flavor: processors, memory and disk.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 63, pattern = r"^[0-9a-z](?:[0-9a-z._-]{0,61}[0-9a-z])?$")
    )]
    pub flavor_id: String,
    /// The image that it boots from.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 63, pattern = r"^[0-9a-z](?:[0-9a-z._-]{0,61}[0-9a-z])?$")
    )]
    pub image_id: String,
    /// Security groups and addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub networking: Option<Networking>,
    /// The certificate authority whose certificates open the machine.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_certificate_authority_id: Option<String>,
    /// User data in base64, in a format of cloud-init.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<UserDataText>,
}

/// The new desired state of an instance. It replaces description, tags and spec; what is left out is removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceUpdate {
    /// Its name, which must be the present one, description and tags.
    pub metadata: MetadataWrite,
    /// What it is made of.
    pub spec: InstanceSpec,
}

/// The spec of an instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceSpec {
    /// The flavor: processors, memory and disk.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 63, pattern = r"^[0-9a-z](?:[0-9a-z._-]{0,61}[0-9a-z])?$")
    )]
    pub flavor_id: String,
    /// The image that it boots from.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 63, pattern = r"^[0-9a-z](?:[0-9a-z._-]{0,61}[0-9a-z])?$")
    )]
    pub image_id: String,
    /// Security groups and addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub networking: Option<Networking>,
    /// The certificate authority whose certificates open the machine.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_certificate_authority_id: Option<String>,
    /// User data in base64. Lists, and responses to writes, leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<UserDataText>,
}

/// How an instance is connected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Networking {
    /// The ids of its security groups, which are of its network. At most 32.
    #[cfg_attr(feature = "openapi", schema(format = "uuid", max_items = 32))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<String>,
    /// Whether it has a public address while it runs. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<bool>,
    /// Further source addresses, as CIDR prefixes. No region supports any at present.
    #[cfg_attr(feature = "openapi", schema(schema_with = crate::schema::prefixes))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_source_addresses: Vec<String>,
}

/// An instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    /// Who it is, and how far it is.
    pub metadata: InstanceMetadata,
    /// What was requested.
    pub spec: InstanceSpec,
    /// What was observed.
    pub status: InstanceStatus,
}

/// Who an instance is, and how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct InstanceMetadata {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub id: String,
    /// Its name.
    pub name: String,
    /// A text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its tags, in the order of their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
    /// Its organization.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub organization_id: String,
    /// Its project.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub project_id: String,
    /// When it was created.
    pub creation_time: DateTime<Utc>,
    /// Who created it: `user:` or `service:` and a name.
    pub created_by: String,
    /// When its desired state was changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_time: Option<DateTime<Utc>>,
    /// Who changed it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_by: Option<String>,
    /// When its deletion was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_time: Option<DateTime<Utc>>,
    /// Who requested its deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_by: Option<String>,
    /// Raised by each change of the desired state.
    pub generation: u64,
    /// How far its machine is from the desired state.
    pub provisioning_status: ProvisioningStatus,
    /// Whether it is as desired.
    pub health_status: HealthStatus,
}

/// How far an instance is from its desired state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum ProvisioningStatus {
    /// Nothing has been done yet.
    Pending,
    /// It is being brought to its desired state.
    Provisioning,
    /// It is in its desired state.
    Provisioned,
    /// It is being deleted.
    Deprovisioning,
    /// A decision of its tenant or of an operator is needed: the conditions say which.
    Error,
}

/// Whether an instance is as desired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum HealthStatus {
    /// There is no recent observation.
    Unknown,
    /// It is as desired.
    Healthy,
    /// It differs from what is desired.
    Degraded,
    /// It failed, or was lost.
    Error,
}

/// Where the machine of an instance is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum PowerState {
    /// It has not been launched.
    Pending,
    /// It is being launched.
    Building,
    /// It runs.
    Running,
    /// It is being stopped.
    Stopping,
    /// It is stopped.
    Stopped,
    /// It is being replaced by another one.
    Replacing,
    /// It is being deleted.
    Deleting,
    /// It could not be launched.
    Failed,
    /// It disappeared, or somebody else removed it.
    Lost,
}

/// The power state that was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum DesiredPower {
    /// It shall run.
    Running,
    /// It shall be stopped.
    Stopped,
    /// It shall be deleted.
    Deleted,
}

/// What is known of the machine of an instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct InstanceStatus {
    /// Its region.
    pub region_id: String,
    /// Its network.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub network_id: String,
    /// Where its machine is in its life.
    pub power_state: PowerState,
    /// The requested power state.
    pub desired_power: DesiredPower,
    /// Its private address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_ip: Option<String>,
    /// Its public address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<String>,
    /// Its hardware address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
    /// The last generation that is fully applied.
    pub observed_generation: u64,
    /// When its machine was observed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<DateTime<Utc>>,
    /// Problems and pending steps, shown until they are over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The change that is being applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_action: Option<PendingAction>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// Fields that a newer version of the server wrote, and this one does not understand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_shown: Vec<String>,
}

/// A problem or a pending step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is: `noCapacity`, `consentNeeded`, `lost` and others.
    pub kind: String,
    /// What happened, and what to do.
    pub message: String,
    /// Since when.
    pub since: DateTime<Utc>,
}

/// A change that is being applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PendingAction {
    /// The change method of each field.
    pub plan: Plan,
    /// Why.
    pub reason: String,
    /// What is lost by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// Since when.
    pub since: DateTime<Utc>,
}

/// What an instance waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// In words.
    pub what: String,
    /// Since when.
    pub since: DateTime<Utc>,
    /// The last attempt and its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt: Option<String>,
    /// When the next attempt is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<DateTime<Utc>>,
}

/// A row of a list of instances: without user data and events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct InstanceSummary {
    /// Who it is, and how far it is.
    pub metadata: InstanceMetadata,
    /// What was requested, without user data.
    pub spec: InstanceSpec,
    /// What was observed.
    pub status: InstanceStatus,
}

/// A page of instances, in the order of their ids.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct InstancePage {
    /// The instances. A page can be short, or empty, before the last one.
    pub items: Vec<InstanceSummary>,
    /// Where the next page starts: pass it as `after`. It is absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Pass it as `from` to the watch: it then sends every change after this page, and perhaps some before.
    pub watch_from: String,
}

/// A request is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// It is applied once `observedGeneration` has reached this.
    pub generation: u64,
}

/// An event of an instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// When.
    pub at: DateTime<Utc>,
    /// Who.
    pub by: String,
    /// What kind: `created`, `applied`, `problem` and others.
    pub kind: String,
    /// What happened.
    pub message: String,
}

/// The last events of an instance, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EventList {
    /// The events, at most 64.
    pub items: Vec<Event>,
}

/// The private key of an instance.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SshKey {
    /// In the format of OpenSSH. Treat it like a password.
    pub private_key: String,
}

/// A session on the console of an instance.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConsoleSession {
    /// The address to open. It grants access: treat it like a password.
    pub url: String,
    /// When it expires, if the cloud says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
}

/// The end of the console output of an instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConsoleOutput {
    /// The text.
    pub contents: String,
    /// When the cloud captured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_at: Option<DateTime<Utc>>,
}

/// A request for an image of the disk of an instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SnapshotCreate {
    /// The name, the description and the tags of the image.
    pub metadata: MetadataWrite,
}
