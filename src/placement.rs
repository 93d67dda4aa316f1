//! The placement of an instance, with the same meaning on every cloud.
//!
//! Owns the neutral fields only. Options of a single cloud (profiles, key pairs, metadata options)
//! belong to that provider's options.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{NetworkId, SecurityGroupId, Zone};

/// The zone, network, security groups, public address and market of an instance.
///
/// In a config every field is optional: an unset field has the value that the provider was created
/// with. A field that is set and not [supported](crate::Capabilities::placement) is refused, and
/// nothing is created. In an [`InstanceInfo`](crate::InstanceInfo) the fields have the observed
/// values.
///
/// ```
/// use fleetwright::{Market, Placement, PlacementField, Zone};
///
/// let mut placement = Placement::default();
/// placement.zone = Some(Zone::new("zone-a")?);
/// placement.market = Some(Market::Spot);
/// assert_eq!(placement.fields_set(), [PlacementField::Zone, PlacementField::Spot]);
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Placement {
    /// The zone. A provider never launches in another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<Zone>,
    /// The network or subnet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkId>,
    /// The security groups. Default: empty, which is the provider's default.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub security_groups: BTreeSet<SecurityGroupId>,
    /// Whether the instance gets a public address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_address: Option<PublicAddress>,
    /// On demand or spot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub market: Option<Market>,
}

impl Placement {
    /// Returns the fields that are set, in the order of [`PlacementField::ALL`]. The on-demand market
    /// counts as not set, because every backend supports it.
    pub fn fields_set(&self) -> Vec<PlacementField> {
        let set = |field: &PlacementField| match field {
            PlacementField::Zone => self.zone.is_some(),
            PlacementField::Network => self.network.is_some(),
            PlacementField::SecurityGroups => !self.security_groups.is_empty(),
            PlacementField::PublicAddress => self.public_address.is_some(),
            PlacementField::Spot => self.market == Some(Market::Spot),
        };
        PlacementField::ALL.into_iter().filter(set).collect()
    }
}

/// Whether an instance gets a public address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublicAddress {
    /// The instance has a public address while it runs.
    Assigned,
    /// The instance has no public address.
    Absent,
}

/// The market on which the capacity is bought.
///
/// A spot instance that the cloud takes back is terminated or stopped with the cloud's reason in
/// [`InstanceInfo::state_reason`](crate::InstanceInfo::state_reason).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Market {
    /// At the list price, until the instance is terminated.
    OnDemand,
    /// Cheaper, and the cloud may terminate the instance.
    Spot,
}

/// A field of [`Placement`] that a backend may or may not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementField {
    /// [`Placement::zone`].
    Zone,
    /// [`Placement::network`].
    Network,
    /// [`Placement::security_groups`].
    SecurityGroups,
    /// [`Placement::public_address`].
    PublicAddress,
    /// [`Placement::market`] as [`Market::Spot`].
    Spot,
}

impl PlacementField {
    /// All fields.
    pub const ALL: [Self; 5] = [
        Self::Zone,
        Self::Network,
        Self::SecurityGroups,
        Self::PublicAddress,
        Self::Spot,
    ];

    /// Returns the field's path inside an [`InstanceConfig`](crate::InstanceConfig), as in errors.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Zone => "placement.zone",
            Self::Network => "placement.network",
            Self::SecurityGroups => "placement.security_groups",
            Self::PublicAddress => "placement.public_address",
            Self::Spot => "placement.market",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_set_returns_the_set_fields() {
        let mut placement = Placement::default();
        assert_eq!(placement.fields_set(), []);
        placement.market = Some(Market::OnDemand);
        assert_eq!(placement.fields_set(), []);
        placement.market = Some(Market::Spot);
        placement.zone = Some(Zone::new("z").unwrap());
        placement.network = Some(NetworkId::new("n").unwrap());
        placement
            .security_groups
            .insert(SecurityGroupId::new("g").unwrap());
        placement.public_address = Some(PublicAddress::Absent);
        assert_eq!(placement.fields_set(), PlacementField::ALL);
        assert_eq!(
            PlacementField::ALL.map(PlacementField::path).join(" "),
            "placement.zone placement.network placement.security_groups \
             placement.public_address placement.market"
        );
    }

    #[test]
    fn only_set_fields_are_serialized() {
        assert_eq!(serde_json::to_string(&Placement::default()).unwrap(), "{}");
        let mut placement = Placement {
            market: Some(Market::Spot),
            ..Placement::default()
        };
        placement.public_address = Some(PublicAddress::Assigned);
        let json = r#"{"public_address":"assigned","market":"spot"}"#;
        assert_eq!(serde_json::to_string(&placement).unwrap(), json);
        let from_later = r#"{"public_address":"assigned","market":"spot","rack":7}"#;
        assert_eq!(
            serde_json::from_str::<Placement>(from_later).unwrap(),
            placement
        );
    }
}
