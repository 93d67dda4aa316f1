//! The spec of a server, and the plan of a change from one spec to another.
//!
//! Owns the one total match that maps a changed field to its change method. It compares with what was last applied to the machine,
//! never with what was requested before.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright::{OptionalVerb, PublicAddress, Tags, UserData};
use serde::{Deserialize, Serialize};

use crate::{
    ids::{FlavorId, ImageId, NetworkId, SecurityGroupId, SshAuthorityId},
    secret::UnopenedUserData,
};

/// The desired spec of a server.
///
/// ```
/// use fleetwright::PublicAddress;
/// use fleetwright_region::{ids::{FlavorId, ImageId, NetworkId}, server::ServerSpec};
///
/// # let network = NetworkId::from_uuid(uuid::Uuid::from_u128(3));
/// let mut spec = ServerSpec::new(FlavorId::new("small")?, ImageId::new("debian-13")?, network);
/// spec.public_ip = PublicAddress::Assigned;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerSpec {
    /// Its size.
    pub flavor: FlavorId,
    /// What it boots from.
    pub image: ImageId,
    /// The network it is in.
    pub network: NetworkId,
    /// Its security groups.
    #[serde(default)]
    pub security_groups: BTreeSet<SecurityGroupId>,
    /// Whether it gets a public address.
    pub public_ip: PublicAddress,
    /// The authority whose certificates it trusts. Each launch configures that, in addition to the user data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_authority: Option<SshAuthorityId>,
    /// The user data of its first boot. Never shown by `Debug`, and [sealed](crate::secret::SealedStore) in records.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::secret::read_user_data"
    )]
    pub user_data: Option<UserData>,
    /// Set if the record has user data that cannot be opened. Such a spec launches no machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_user_data: Option<UnopenedUserData>,
    /// Tags for the cloud, in addition to those of the region.
    #[serde(default)]
    pub tags: Tags,
}

impl ServerSpec {
    /// Creates a spec with the required fields; set the others directly.
    pub fn new(flavor: FlavorId, image: ImageId, network: NetworkId) -> Self {
        Self {
            flavor,
            image,
            network,
            security_groups: BTreeSet::new(),
            public_ip: PublicAddress::Absent,
            ssh_authority: None,
            user_data: None,
            sealed_user_data: None,
            tags: Tags::new(),
        }
    }

    /// Returns a copy for another field of a record. User data that cannot be opened belongs to one field, and is left out.
    pub(crate) fn copied(&self) -> Self {
        Self {
            sealed_user_data: None,
            ..self.clone()
        }
    }

    /// Returns the fields in which another spec differs.
    pub fn changed(&self, other: &Self) -> BTreeSet<Field> {
        let differs = |field: &Field| match field {
            Field::Flavor => self.flavor != other.flavor,
            Field::Image => self.image != other.image,
            Field::Network => self.network != other.network,
            Field::SecurityGroups => self.security_groups != other.security_groups,
            Field::PublicIp => self.public_ip != other.public_ip,
            Field::SshAuthority => self.ssh_authority != other.ssh_authority,
            Field::UserData => {
                self.user_data != other.user_data || self.sealed_user_data != other.sealed_user_data
            }
            Field::Tags => self.tags != other.tags,
        };
        Field::ALL.into_iter().filter(differs).collect()
    }
}

/// A field of a [`ServerSpec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each variant is named after its field")]
pub enum Field {
    Flavor,
    Image,
    Network,
    SecurityGroups,
    PublicIp,
    SshAuthority,
    UserData,
    Tags,
}

impl Field {
    /// Every field.
    pub const ALL: [Self; 8] = [
        Self::Flavor,
        Self::Image,
        Self::Network,
        Self::SecurityGroups,
        Self::PublicIp,
        Self::SshAuthority,
        Self::UserData,
        Self::Tags,
    ];

    /// Returns the least destructive change method for this field that a provider supports.
    pub fn needs(self, verbs: &BTreeSet<OptionalVerb>) -> ChangeMethod {
        let offered = |verb, method, otherwise| {
            if verbs.contains(&verb) {
                method
            } else {
                otherwise
            }
        };
        match self {
            Self::Tags => offered(
                OptionalVerb::UpdateTags,
                ChangeMethod::Retag,
                ChangeMethod::NextLaunch,
            ),
            Self::UserData => ChangeMethod::NextLaunch,
            Self::Flavor => offered(
                OptionalVerb::ResizeInstance,
                ChangeMethod::Resize,
                ChangeMethod::Replace,
            ),
            Self::Image => offered(
                OptionalVerb::ReimageInstance,
                ChangeMethod::Reimage,
                ChangeMethod::Replace,
            ),
            Self::Network | Self::SecurityGroups | Self::PublicIp | Self::SshAuthority => {
                ChangeMethod::Replace
            }
        }
    }
}

/// How a changed field is applied, from the least to the most destructive method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeMethod {
    /// The tags of the machine are changed. Nothing is lost.
    Retag,
    /// The change takes effect at the next launch. Nothing is lost, and nothing happens now.
    NextLaunch,
    /// The machine is stopped, gets another size and is started: disk and id stay, a public address may change.
    Resize,
    /// The machine gets another image: addresses stay, **what was on the root disk is lost**.
    Reimage,
    /// The machine is terminated and another one is launched: **disk and addresses are lost**.
    Replace,
}

impl ChangeMethod {
    /// Returns whether the tenant loses data or addresses.
    pub fn is_destructive(self) -> bool {
        match self {
            Self::Retag | Self::NextLaunch | Self::Resize => false,
            Self::Reimage | Self::Replace => true,
        }
    }
}

/// The plan of a change: the change method of each changed field.
///
/// ```
/// use std::collections::BTreeSet;
/// use fleetwright::OptionalVerb;
/// use fleetwright_region::{ids::FlavorId, server::{ChangeMethod, Plan}};
///
/// # let applied = fleetwright_facade_testkit::bare_server(1).spec;
/// let mut wanted = applied.clone();
/// wanted.flavor = FlavorId::new("large")?;
/// let plan = |verbs| Plan::between(&applied, &wanted, &verbs);
/// assert!(plan(BTreeSet::from([OptionalVerb::ResizeInstance])).has(ChangeMethod::Resize));
/// assert_eq!(plan(BTreeSet::new()).destructive().count(), 1, "without resize, it is replaced");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Plan {
    /// The changed fields with their methods.
    pub methods: BTreeMap<Field, ChangeMethod>,
}

impl Plan {
    /// Returns the plan from the applied spec to the desired one.
    pub fn between(
        applied: &ServerSpec,
        wanted: &ServerSpec,
        verbs: &BTreeSet<OptionalVerb>,
    ) -> Self {
        let changed = applied.changed(wanted).into_iter();
        Self {
            methods: changed.map(|field| (field, field.needs(verbs))).collect(),
        }
    }

    /// Returns whether some field is changed by this method.
    pub fn has(&self, method: ChangeMethod) -> bool {
        self.methods.values().any(|needed| *needed == method)
    }

    /// Returns the fields whose change is destructive.
    pub fn destructive(&self) -> impl Iterator<Item = (Field, ChangeMethod)> {
        let methods = self.methods.iter().map(|(field, method)| (*field, *method));
        methods.filter(|(_, method)| method.is_destructive())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn spec() -> ServerSpec {
        let network = NetworkId::from_uuid(Uuid::from_u128(1));
        ServerSpec::new(
            FlavorId::new("small").unwrap(),
            ImageId::new("linux").unwrap(),
            network,
        )
    }

    fn with(field: Field) -> ServerSpec {
        let mut other = spec();
        match field {
            Field::Flavor => other.flavor = FlavorId::new("large").unwrap(),
            Field::Image => other.image = ImageId::new("bsd").unwrap(),
            Field::Network => other.network = NetworkId::from_uuid(Uuid::from_u128(2)),
            Field::SecurityGroups => {
                let group = SecurityGroupId::from_uuid(Uuid::from_u128(3));
                other.security_groups.insert(group);
            }
            Field::PublicIp => other.public_ip = PublicAddress::Assigned,
            Field::SshAuthority => {
                other.ssh_authority = Some(SshAuthorityId::from_uuid(Uuid::from_u128(4)));
            }
            Field::UserData => other.user_data = Some(UserData::new("#!").unwrap()),
            Field::Tags => other.tags = Tags::new().with("a", "b").unwrap(),
        }
        other
    }

    #[test]
    fn every_field_change_is_detected_with_its_method() {
        let all: BTreeSet<_> = OptionalVerb::ALL.into();
        let methods = |verbs: &BTreeSet<_>| {
            Field::ALL.map(|field| {
                assert_eq!(spec().changed(&with(field)), [field].into());
                let plan = Plan::between(&spec(), &with(field), verbs);
                plan.methods[&field]
            })
        };
        use ChangeMethod::{NextLaunch, Reimage, Replace, Resize, Retag};
        let (r, n) = (Replace, NextLaunch);
        assert_eq!(methods(&all), [Resize, Reimage, r, r, r, r, n, Retag]);
        assert_eq!(methods(&BTreeSet::new()), [r, r, r, r, r, r, n, n]);
        assert_eq!(Plan::between(&spec(), &spec(), &all), Plan::default());
    }

    #[test]
    fn plan_names_what_it_destroys() {
        let mut wanted = with(Field::Image);
        wanted.tags = with(Field::Tags).tags;
        let plan = Plan::between(&spec(), &wanted, &OptionalVerb::ALL.into());
        assert_eq!(
            plan.destructive().collect::<Vec<_>>(),
            [(Field::Image, ChangeMethod::Reimage)]
        );
        assert!(plan.has(ChangeMethod::Retag) && !plan.has(ChangeMethod::Replace));
    }

    #[test]
    fn spec_round_trips_and_debug_hides_user_data() {
        let mut spec = with(Field::UserData);
        spec.user_data = Some(UserData::new("hunter2").unwrap());
        let json = serde_json::to_value(&spec).unwrap();
        assert_eq!(serde_json::from_value::<ServerSpec>(json).unwrap(), spec);
        assert!(!format!("{spec:?}").contains("hunter2"));
    }
}
