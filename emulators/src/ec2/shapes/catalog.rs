//! Shapes of zones.
//!
//! Fields are in the order of EC2's responses.

use serde::Serialize;

use crate::ec2::wire::xml::Set;

/// An availability zone.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Zone {
    /// The name, for example `us-east-1a`.
    pub(crate) zone_name: String,
    /// Always `available`.
    pub(crate) zone_state: &'static str,
    /// The region.
    pub(crate) region_name: String,
    /// The id, which is the same in all accounts, for example `use1-az1`.
    pub(crate) zone_id: String,
    /// The zone group: the region.
    pub(crate) group_name: String,
    /// The border group: the region.
    pub(crate) network_border_group: String,
    /// Always `availability-zone`.
    pub(crate) zone_type: &'static str,
    /// Always `opt-in-not-required`.
    pub(crate) opt_in_status: &'static str,
    /// Always empty.
    pub(crate) message_set: Set<()>,
}
