//! The fields of an update, and what a change of each affects: the one total match.

use std::collections::BTreeSet;

use fleetwright_region::server::Field;

use super::UpdateInstance;
use crate::{instance::Instance, loss};

/// A field that an update names.
///
/// ```
/// use fleetwright_compute::service::{FieldScope, InstanceField};
///
/// assert_eq!(InstanceField::Name.scope(), FieldScope::Immutable);
/// assert_eq!(InstanceField::Description.scope(), FieldScope::Record);
/// ```
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

/// What a change of a field affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldScope {
    /// It cannot be changed.
    Immutable,
    /// It is in the record alone: nothing has to be applied.
    Record,
    /// It is this field of the server, whose plan has the change method.
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

    /// What a change of it affects.
    pub fn scope(self) -> FieldScope {
        match self {
            Self::Name => FieldScope::Immutable,
            // Of the addresses only that there are none: others are refused before they are stored.
            Self::Description | Self::AllowedSources => FieldScope::Record,
            Self::Tags => FieldScope::Server(Field::Tags),
            Self::Flavor => FieldScope::Server(Field::Flavor),
            Self::Image => FieldScope::Server(Field::Image),
            Self::SecurityGroups => FieldScope::Server(Field::SecurityGroups),
            Self::PublicIp => FieldScope::Server(Field::PublicIp),
            Self::SshAuthority => FieldScope::Server(Field::SshAuthority),
            Self::UserData => FieldScope::Server(Field::UserData),
        }
    }

    /// The fields in which an update differs from the desired state.
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

    /// Its name in events.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Description => "description",
            Self::AllowedSources => "allowed source addresses",
            Self::Tags => loss::field_name(Field::Tags),
            Self::Flavor => loss::field_name(Field::Flavor),
            Self::Image => loss::field_name(Field::Image),
            Self::SecurityGroups => loss::field_name(Field::SecurityGroups),
            Self::PublicIp => loss::field_name(Field::PublicIp),
            Self::SshAuthority => loss::field_name(Field::SshAuthority),
            Self::UserData => loss::field_name(Field::UserData),
        }
    }
}
