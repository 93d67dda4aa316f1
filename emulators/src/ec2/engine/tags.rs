//! Tags of instances, volumes, network interfaces, images and snapshots.
//!
//! A call changes the tags of all named resources or of none. A change of an instance's tags is a
//! new version, so reads of it may lag; other tags change at once.

use std::sync::Arc;

use super::{Engine, Mode, Seq, read::check_ids, record::Tags, table::Tagged};
use crate::ec2::error::Refusal;

/// The maximum number of tags of a resource.
const MAX_TAGS: usize = 50;

/// The kind of a tagged resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// An instance.
    Instance,
    /// A volume.
    Volume,
    /// A network interface.
    Nic,
    /// An image.
    Image,
    /// A snapshot.
    Snapshot,
    /// A VPC.
    Vpc,
    /// A subnet.
    Subnet,
    /// A security group.
    Group,
    /// A key pair.
    Key,
    /// An elastic address.
    Address,
    /// A request for a spot instance.
    SpotRequest,
}

impl Kind {
    /// All kinds, in the order of DescribeTags.
    pub(super) const ALL: [Self; 11] = [
        Self::Instance,
        Self::Volume,
        Self::Nic,
        Self::Image,
        Self::Snapshot,
        Self::Vpc,
        Self::Subnet,
        Self::Group,
        Self::Key,
        Self::Address,
        Self::SpotRequest,
    ];

    /// Returns EC2's name of the kind, as in `ResourceType`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Volume => "volume",
            Self::Nic => "network-interface",
            Self::Image => "image",
            Self::Snapshot => "snapshot",
            Self::Vpc => "vpc",
            Self::Subnet => "subnet",
            Self::Group => "security-group",
            Self::Key => "key-pair",
            Self::Address => "elastic-ip",
            Self::SpotRequest => "spot-instances-request",
        }
    }

    /// Returns the position of the kind in DescribeTags.
    pub(super) const fn rank(self) -> u64 {
        match self {
            Self::Instance => 0,
            Self::Volume => 1,
            Self::Nic => 2,
            Self::Image => 3,
            Self::Snapshot => 4,
            Self::Vpc => 5,
            Self::Subnet => 6,
            Self::Group => 7,
            Self::Key => 8,
            Self::Address => 9,
            Self::SpotRequest => 10,
        }
    }
}

/// Refuses tags that EC2 does not accept.
///
/// Keys have 1 to 128 characters and do not begin with `aws:`, in any case; values have at most
/// 256.
///
/// # Errors
///
/// `InvalidParameterValue`, or `TagLimitExceeded` for more than 50 tags.
pub(crate) fn check(tags: &Tags) -> Result<(), Refusal> {
    for (key, value) in tags {
        if key.is_empty() || key.chars().count() > 128 {
            let message = format!("Tag key must be between 1 and 128 characters long: '{key}'");
            return Err(Refusal::invalid(message));
        }
        if value.chars().count() > 256 {
            let message = format!(
                "Tag value exceeds the maximum length of 256 characters for the key '{key}'"
            );
            return Err(Refusal::invalid(message));
        }
        if key.to_ascii_lowercase().starts_with("aws:") {
            let message =
                format!("Tag keys starting with 'aws:' are reserved for internal use: '{key}'");
            return Err(Refusal::invalid(message));
        }
    }
    if tags.len() > MAX_TAGS {
        let message = format!("The maximum number of tags on a resource is {MAX_TAGS}");
        return Err(Refusal::client("TagLimitExceeded", message));
    }
    Ok(())
}

impl Engine {
    /// Adds and replaces tags, on all resources or none.
    ///
    /// # Errors
    ///
    /// The refusals of `check`, also for the tags together with those that a resource has, and the
    /// code of the kind for a missing resource.
    pub(crate) fn create_tags(
        &mut self,
        ids: &[String],
        tags: &Tags,
        mode: Mode,
    ) -> Result<(), Refusal> {
        check(tags)?;
        let mut changes = Vec::new();
        for (kind, seq) in self.resources(ids)? {
            let mut merged = self.tags_of(kind, seq).cloned().unwrap_or_default();
            merged.extend(tags.clone());
            check(&merged)?;
            changes.push((kind, seq, merged));
        }
        self.set_tags(changes, mode)
    }

    /// Removes tags: by key, and by value if one is given; all tags if `removals` is empty.
    ///
    /// A tag that a resource does not have is ignored.
    ///
    /// # Errors
    ///
    /// The code of the kind for a missing resource.
    pub(crate) fn delete_tags(
        &mut self,
        ids: &[String],
        removals: &[(String, Option<String>)],
        mode: Mode,
    ) -> Result<(), Refusal> {
        let mut changes = Vec::new();
        for (kind, seq) in self.resources(ids)? {
            let mut remaining = self.tags_of(kind, seq).cloned().unwrap_or_default();
            remaining.retain(|key, value| {
                let is_removed = |(k, v): &(String, Option<String>)| {
                    k == key && v.as_ref().is_none_or(|v| v == value)
                };
                !(removals.is_empty() || removals.iter().any(is_removed))
            });
            changes.push((kind, seq, remaining));
        }
        self.set_tags(changes, mode)
    }

    /// Replaces the tags of resources, unless the call is a dry run.
    fn set_tags(&mut self, changes: Vec<(Kind, Seq, Tags)>, mode: Mode) -> Result<(), Refusal> {
        mode.check_dry_run()?;
        for (kind, seq, tags) in changes {
            match kind {
                Kind::Instance => self.revise(seq, |version| version.tags = Arc::new(tags)),
                Kind::Volume => {
                    if let Some(volume) = self.volumes.get_mut(&seq) {
                        volume.tags = tags;
                    }
                }
                Kind::Nic => {
                    if let Some(nic) = self.nics.get_mut(&seq) {
                        nic.tags = tags;
                    }
                }
                Kind::Image => {
                    if let Some(image) = self.images.get_mut(&seq) {
                        image.tags = tags;
                    }
                }
                Kind::Snapshot => {
                    if let Some(snapshot) = self.snapshots.get_mut(&seq) {
                        snapshot.tags = tags;
                    }
                }
                Kind::Address => self.addresses.set_tags(seq, tags),
                Kind::SpotRequest => self.spot_requests.set_tags(seq, tags),
                Kind::Vpc | Kind::Subnet | Kind::Group | Kind::Key => {
                    if let Some(table) = self.network.tagged_mut(kind) {
                        table.set_tags(seq, tags);
                    }
                }
            }
        }
        Ok(())
    }

    /// Finds the resources with these ids. One missing id fails the whole call.
    ///
    /// # Errors
    ///
    /// The malformed or not-found code of the kind that the prefix names, `InvalidID` for an
    /// unknown prefix.
    fn resources(&mut self, ids: &[String]) -> Result<Vec<(Kind, Seq)>, Refusal> {
        let mut found = Vec::new();
        for id in ids {
            let id_slice = std::slice::from_ref(id);
            let prefix = id.split('-').next().unwrap_or_default();
            found.push(match prefix {
                "i" => (
                    Kind::Instance,
                    self.find(id_slice)?.first().copied().unwrap_or_default(),
                ),
                "vol" => {
                    check_ids(id_slice, "vol", "InvalidVolumeID.Malformed")?;
                    let seq = self.volume_ids.get(id).copied();
                    (Kind::Volume, seq.ok_or_else(|| volume_not_found(id))?)
                }
                "eni" => {
                    check_ids(id_slice, "eni", "InvalidNetworkInterfaceId.Malformed")?;
                    let seq = self.nic_ids.get(id).copied();
                    (Kind::Nic, seq.ok_or_else(|| nic_not_found(id))?)
                }
                "ami" => {
                    check_ids(id_slice, "ami", "InvalidAMIID.Malformed")?;
                    let seq = self.image_ids.get(id).copied();
                    (
                        Kind::Image,
                        seq.ok_or_else(|| super::image::image_not_found(id))?,
                    )
                }
                "snap" => {
                    check_ids(id_slice, "snap", "InvalidSnapshotID.Malformed")?;
                    let seq = self.snapshot_ids.get(id).copied();
                    (
                        Kind::Snapshot,
                        seq.ok_or_else(|| super::snapshot::snapshot_not_found(id))?,
                    )
                }
                "vpc" => self.network_resource(Kind::Vpc, id, "InvalidVpcID.NotFound")?,
                "subnet" => self.network_resource(Kind::Subnet, id, "InvalidSubnetID.NotFound")?,
                "sg" => self.network_resource(Kind::Group, id, "InvalidGroup.NotFound")?,
                "key" => self.network_resource(Kind::Key, id, "InvalidKeyPair.NotFound")?,
                "eipalloc" => {
                    self.network_resource(Kind::Address, id, "InvalidAllocationID.NotFound")?
                }
                "sir" => self.network_resource(
                    Kind::SpotRequest,
                    id,
                    "InvalidSpotInstanceRequestID.NotFound",
                )?,
                _ => {
                    return Err(Refusal::client(
                        "InvalidID",
                        format!("The ID '{id}' is not valid"),
                    ));
                }
            });
        }
        Ok(found)
    }

    /// Returns the true tags of a resource.
    pub(super) fn tags_of(&self, kind: Kind, seq: Seq) -> Option<&Tags> {
        match kind {
            Kind::Instance => self
                .instances
                .get(&seq)
                .map(|instance| &*instance.current().tags),
            Kind::Volume => self.volumes.get(&seq).map(|volume| &volume.tags),
            Kind::Nic => self.nics.get(&seq).map(|nic| &nic.tags),
            Kind::Image => self.images.get(&seq).map(|image| &image.tags),
            Kind::Snapshot => self.snapshots.get(&seq).map(|snapshot| &snapshot.tags),
            Kind::Vpc
            | Kind::Subnet
            | Kind::Group
            | Kind::Key
            | Kind::Address
            | Kind::SpotRequest => self.table(kind)?.tags(seq),
        }
    }

    /// Returns the resources of a kind that is kept in a table; `None` for another kind.
    pub(super) fn table(&self, kind: Kind) -> Option<&dyn Tagged> {
        match kind {
            Kind::Address => Some(&self.addresses),
            Kind::SpotRequest => Some(&self.spot_requests),
            Kind::Instance
            | Kind::Volume
            | Kind::Nic
            | Kind::Image
            | Kind::Snapshot
            | Kind::Vpc
            | Kind::Subnet
            | Kind::Group
            | Kind::Key => self.network.tagged(kind),
        }
    }

    /// Returns a resource of a table, or the refusal with a code.
    fn network_resource(
        &self,
        kind: Kind,
        id: &str,
        code: &'static str,
    ) -> Result<(Kind, Seq), Refusal> {
        let seq = self.table(kind).and_then(|table| table.seq(id));
        let missing = || Refusal::not_found(code, kind.name(), &[id]);
        Ok((kind, seq.ok_or_else(missing)?))
    }
}

/// Returns the refusal of a volume that does not exist: `InvalidVolume.NotFound`.
pub(crate) fn volume_not_found(id: &str) -> Refusal {
    Refusal::client(
        "InvalidVolume.NotFound",
        format!("The volume '{id}' does not exist."),
    )
}

/// Returns the refusal of a network interface that does not exist:
/// `InvalidNetworkInterfaceID.NotFound`.
pub(crate) fn nic_not_found(id: &str) -> Refusal {
    Refusal::not_found(
        "InvalidNetworkInterfaceID.NotFound",
        "networkInterface",
        &[id],
    )
}
