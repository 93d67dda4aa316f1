//! What a list returns.

use std::fmt;

use fleetwright_api::{PowerState, ProvisioningStatus};
use serde::Serialize;

use crate::call::Call;

/// Which instances are listed. A field with several values accepts any of them; an instance fits if every field does.
///
/// ```
/// use fleetwright_api::PowerState;
/// use fleetwright_client::InstanceFilter;
///
/// let mut filter = InstanceFilter::default();
/// filter.tags.push(("team".to_owned(), "blue".to_owned()));
/// filter.power_states.push(PowerState::Running);
/// # assert_eq!(filter.tags.len(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstanceFilter {
    /// Name and value of tags, all of which an instance must have. Default: none.
    pub tags: Vec<(String, String)>,
    /// Ids of organizations. Default: all.
    pub organizations: Vec<String>,
    /// Ids of projects. Default: all.
    pub projects: Vec<String>,
    /// Ids of regions. Default: all.
    pub regions: Vec<String>,
    /// Ids of networks. Default: all.
    pub networks: Vec<String>,
    /// States of the machine. Default: all.
    pub power_states: Vec<PowerState>,
    /// How far the instance is. Default: all.
    pub provisioning: Vec<ProvisioningStatus>,
    /// How many a page has, 1 to 500. Default: 100.
    pub page_size: Option<u32>,
}

/// Which networks, security groups or certificate authorities are listed.
///
/// ```
/// use fleetwright_client::RecordFilter;
///
/// let mut filter = RecordFilter::default();
/// filter.region = Some("north".to_owned());
/// # assert!(filter.network.is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordFilter {
    /// The id of an organization. Default: all.
    pub organization: Option<String>,
    /// The id of a project, with its organization. Default: all.
    pub project: Option<String>,
    /// The id of a region. Default: all.
    pub region: Option<String>,
    /// The id of a network. Default: all.
    pub network: Option<String>,
    /// How many a page has, 1 to 500. Default: 100.
    pub page_size: Option<u32>,
}

/// Which entries of the audit log are listed.
///
/// ```
/// use fleetwright_client::AuditFilter;
///
/// let mut filter = AuditFilter::default();
/// filter.actor = Some("user:ada".to_owned());
/// # assert!(filter.record.is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditFilter {
    /// The id of an organization. Default: what the caller may read.
    pub organization: Option<String>,
    /// The id of a project, with its organization. Default: all.
    pub project: Option<String>,
    /// Who did it: `user:` or `service:` and a name. Default: anybody.
    pub actor: Option<String>,
    /// To what kind of record. Default: any.
    pub resource: Option<String>,
    /// The id of a record. Default: any.
    pub record: Option<String>,
    /// Not before this, in RFC 3339. Default: from the beginning.
    pub from: Option<String>,
    /// Before this, in RFC 3339. Default: until now.
    pub until: Option<String>,
    /// How many a page has, 1 to 500. Default: 100.
    pub page_size: Option<u32>,
}

impl InstanceFilter {
    pub(crate) fn add_to(&self, call: Call) -> Call {
        let tags = self
            .tags
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        call.queries("tag", tags)
            .queries("organizationId", &self.organizations)
            .queries("projectId", &self.projects)
            .queries("regionId", &self.regions)
            .queries("networkId", &self.networks)
            .queries("powerState", self.power_states.iter().map(wire_name))
            .queries(
                "provisioningStatus",
                self.provisioning.iter().map(wire_name),
            )
            .query("limit", self.page_size)
    }
}

impl RecordFilter {
    pub(crate) fn add_to(&self, call: Call) -> Call {
        call.query("organizationId", self.organization.as_ref())
            .query("projectId", self.project.as_ref())
            .query("regionId", self.region.as_ref())
            .query("networkId", self.network.as_ref())
            .query("limit", self.page_size)
    }
}

impl AuditFilter {
    pub(crate) fn add_to(&self, call: Call) -> Call {
        call.query("organizationId", self.organization.as_ref())
            .query("projectId", self.project.as_ref())
            .query("actor", self.actor.as_ref())
            .query("resource", self.resource.as_ref())
            .query("record", self.record.as_ref())
            .query("from", self.from.as_ref())
            .query("until", self.until.as_ref())
            .query("limit", self.page_size)
    }
}

/// The name of a state as it is sent.
fn wire_name(state: &(impl Serialize + fmt::Debug)) -> String {
    match serde_json::to_value(state) {
        Ok(serde_json::Value::String(name)) => name,
        // The states are enums without fields, whose value is a string.
        Ok(_) | Err(_) => format!("{state:?}"),
    }
}
