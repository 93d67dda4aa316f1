//! The fields that an update brings, and how far a change of each reaches: the one total match.

use std::collections::BTreeSet;

use fleetwright_region::server::Field;

use super::UpdateInstance;
use crate::{instance::Instance, lost};

/// A field of what a tenant says of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each variant is named after its field")]
pub enum InstanceField {
    Name,
    Description,
    Tags,
    Flavor,
    Image,
    SecurityGroups,
    PublicIp,
    AllowedSources,
    SshAuthority,
    UserData,
}

/// How far a change of a field reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaches {
    /// It cannot be changed.
    Nothing,
    /// It is in the record alone: nothing is to be made true.
    Record,
    /// It is this field of the server, whose plan says what the change takes.
    Server(Field),
}

impl InstanceField {
    /// Every field.
    pub const ALL: [Self; 10] = [
        Self::Name,
        Self::Description,
        Self::Tags,
        Self::Flavor,
        Self::Image,
        Self::SecurityGroups,
        Self::PublicIp,
        Self::AllowedSources,
        Self::SshAuthority,
        Self::UserData,
    ];

    /// How far a change of it reaches.
    pub fn reaches(self) -> Reaches {
        match self {
            Self::Name => Reaches::Nothing,
            // Of the addresses only that there are none: others are refused before they are stored.
            Self::Description | Self::AllowedSources => Reaches::Record,
            Self::Tags => Reaches::Server(Field::Tags),
            Self::Flavor => Reaches::Server(Field::Flavor),
            Self::Image => Reaches::Server(Field::Image),
            Self::SecurityGroups => Reaches::Server(Field::SecurityGroups),
            Self::PublicIp => Reaches::Server(Field::PublicIp),
            Self::SshAuthority => Reaches::Server(Field::SshAuthority),
            Self::UserData => Reaches::Server(Field::UserData),
        }
    }

    /// The fields in which an update differs from what is asked.
    pub fn changed(instance: &Instance, wanted: &UpdateInstance) -> BTreeSet<Self> {
        let (spec, other) = (&instance.spec, &wanted.spec);
        let (net, other_net) = (&spec.networking, &other.networking);
        let differs = |field: &Self| match field {
            Self::Name => instance.name != wanted.name,
            Self::Description => instance.description != wanted.description,
            Self::Tags => instance.tags != wanted.tags,
            Self::Flavor => spec.flavor != other.flavor,
            Self::Image => spec.image != other.image,
            Self::SecurityGroups => net.security_groups != other_net.security_groups,
            Self::PublicIp => net.public_ip != other_net.public_ip,
            Self::AllowedSources => net.allowed_sources != other_net.allowed_sources,
            Self::SshAuthority => spec.ssh_authority != other.ssh_authority,
            Self::UserData => spec.user_data != other.user_data,
        };
        Self::ALL.into_iter().filter(differs).collect()
    }

    /// As an event names it.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Description => "description",
            Self::AllowedSources => "allowed source addresses",
            Self::Tags => lost::name(Field::Tags),
            Self::Flavor => lost::name(Field::Flavor),
            Self::Image => lost::name(Field::Image),
            Self::SecurityGroups => lost::name(Field::SecurityGroups),
            Self::PublicIp => lost::name(Field::PublicIp),
            Self::SshAuthority => lost::name(Field::SshAuthority),
            Self::UserData => lost::name(Field::UserData),
        }
    }
}
