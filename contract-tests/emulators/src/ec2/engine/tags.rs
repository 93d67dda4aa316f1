//! Tags of instances, volumes, network interfaces and images.

use std::sync::Arc;

use super::{
    Look, Mode, Seq, World,
    filter::{self, Filter, Filtered},
    page::{Page, Paging},
    read::check_ids,
    record::Tags,
};
use crate::ec2::error::Refusal;

/// The most tags of a resource.
const MOST: usize = 50;

/// A tag of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TagRow {
    pub(crate) resource: String,
    pub(crate) kind: Kind,
    pub(crate) key: String,
    pub(crate) value: String,
}

/// What a tag is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Instance,
    Volume,
    Nic,
    Image,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Instance, Self::Volume, Self::Nic, Self::Image];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Volume => "volume",
            Self::Nic => "network-interface",
            Self::Image => "image",
        }
    }

    const fn rank(self) -> u64 {
        match self {
            Self::Instance => 0,
            Self::Volume => 1,
            Self::Nic => 2,
            Self::Image => 3,
        }
    }
}

/// Refuses tags that EC2 does not take.
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
    if tags.len() > MOST {
        let message = format!("The maximum number of tags on a resource is {MOST}");
        return Err(Refusal::client("TagLimitExceeded", message));
    }
    Ok(())
}

impl World {
    /// Adds and replaces tags, on all resources or none.
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

    /// Removes tags: by key and value where a value is given, all of them where `which` is empty.
    pub(crate) fn delete_tags(
        &mut self,
        ids: &[String],
        which: &[(String, Option<String>)],
        mode: Mode,
    ) -> Result<(), Refusal> {
        let mut changes = Vec::new();
        for (kind, seq) in self.resources(ids)? {
            let mut kept = self.tags_of(kind, seq).cloned().unwrap_or_default();
            kept.retain(|key, value| {
                let named = |(k, v): &(String, Option<String>)| {
                    k == key && v.as_ref().is_none_or(|v| v == value)
                };
                !(which.is_empty() || which.iter().any(named))
            });
            changes.push((kind, seq, kept));
        }
        self.set_tags(changes, mode)
    }

    fn set_tags(&mut self, changes: Vec<(Kind, Seq, Tags)>, mode: Mode) -> Result<(), Refusal> {
        mode.go()?;
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
            }
        }
        Ok(())
    }

    /// What ids stand for; one that is of nothing fails all.
    fn resources(&mut self, ids: &[String]) -> Result<Vec<(Kind, Seq)>, Refusal> {
        let mut found = Vec::new();
        for id in ids {
            let one = std::slice::from_ref(id);
            let prefix = id.split('-').next().unwrap_or_default();
            found.push(match prefix {
                "i" => (
                    Kind::Instance,
                    self.find(one)?.first().copied().unwrap_or_default(),
                ),
                "vol" => {
                    check_ids(one, "vol", "InvalidVolumeID.Malformed")?;
                    let seq = self.volume_ids.get(id).copied();
                    (Kind::Volume, seq.ok_or_else(|| no_volume(id))?)
                }
                "eni" => {
                    check_ids(one, "eni", "InvalidNetworkInterfaceId.Malformed")?;
                    let seq = self.nic_ids.get(id).copied();
                    (Kind::Nic, seq.ok_or_else(|| no_nic(id))?)
                }
                "ami" => {
                    check_ids(one, "ami", "InvalidAMIID.Malformed")?;
                    let seq = self.image_ids.get(id).copied();
                    (Kind::Image, seq.ok_or_else(|| super::image::no_image(id))?)
                }
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

    fn tags_of(&self, kind: Kind, seq: Seq) -> Option<&Tags> {
        match kind {
            Kind::Instance => self
                .instances
                .get(&seq)
                .map(|instance| &*instance.current().tags),
            Kind::Volume => self.volumes.get(&seq).map(|volume| &volume.tags),
            Kind::Nic => self.nics.get(&seq).map(|nic| &nic.tags),
            Kind::Image => self.images.get(&seq).map(|image| &image.tags),
        }
    }

    /// A page of tags, of instances first, then volumes, interfaces and images.
    pub(crate) fn tags_page(
        &mut self,
        filters: &[Filter],
        paging: &Paging,
        look: Look,
    ) -> Result<Page<TagRow>, Refusal> {
        filter::check::<TagRow>(filters)?;
        let moment = self.moment(look);
        let (first, passed) = (Place::of(paging.after), paging.after);
        let world = &*self;
        let rows = Kind::ALL
            .into_iter()
            .filter(|kind| kind.rank() >= first.rank)
            .flat_map(move |kind| {
                let from = if kind.rank() == first.rank {
                    first.seq
                } else {
                    0
                };
                world
                    .tagged(kind, from, filters)
                    .flat_map(move |(seq, id)| {
                        let tags = match kind {
                            Kind::Instance => world
                                .instances
                                .get(&seq)
                                .and_then(|i| Some(&*i.version_at(moment)?.tags)),
                            Kind::Volume | Kind::Nic | Kind::Image => world.tags_of(kind, seq),
                        };
                        tags.into_iter()
                            .flatten()
                            .enumerate()
                            .map(move |(number, (key, value))| {
                                let row = TagRow {
                                    resource: id.to_owned(),
                                    kind,
                                    key: key.clone(),
                                    value: value.clone(),
                                };
                                (Place::position(kind, seq, number), row)
                            })
                    })
            });
        let rows = rows.filter(|(position, _)| *position > passed);
        let (page, touched) = paging.take(rows.map(|(position, row)| {
            let passes = filter::passes(&row, filters);
            (position, passes.then_some(row))
        }));
        self.touched += touched;
        Ok(page)
    }

    /// The resources of a kind from `from` on; only the named one where a filter names one.
    fn tagged<'a>(
        &'a self,
        kind: Kind,
        from: Seq,
        filters: &[Filter],
    ) -> Box<dyn Iterator<Item = (Seq, &'a str)> + 'a> {
        let named = filters
            .iter()
            .find(|f| f.name == "resource-id" && f.values.iter().all(|v| filter::is_plain(v)));
        if let Some(named) = named {
            let ids = match kind {
                Kind::Instance => &self.by_id,
                Kind::Volume => &self.volume_ids,
                Kind::Nic => &self.nic_ids,
                Kind::Image => &self.image_ids,
            };
            let mut found: Vec<(Seq, &str)> = named
                .values
                .iter()
                .filter_map(|id| ids.get_key_value(id))
                .map(|(id, seq)| (*seq, id.as_str()))
                .collect();
            found.sort_unstable();
            return Box::new(found.into_iter().filter(move |(seq, _)| *seq >= from));
        }
        match kind {
            Kind::Instance => Box::new(
                self.instances
                    .range(from..)
                    .map(|(seq, i)| (*seq, i.fixed.id.as_str())),
            ),
            Kind::Volume => Box::new(
                self.volumes
                    .range(from..)
                    .map(|(seq, v)| (*seq, v.id.as_str())),
            ),
            Kind::Nic => Box::new(
                self.nics
                    .range(from..)
                    .map(|(seq, n)| (*seq, n.id.as_str())),
            ),
            Kind::Image => Box::new(
                self.images
                    .range(from..)
                    .map(|(seq, i)| (*seq, i.id.as_str())),
            ),
        }
    }
}

/// Where in the list of tags a position is: the kind, the resource and the number of its tag.
#[derive(Clone, Copy, Debug)]
struct Place {
    rank: u64,
    seq: Seq,
}

impl Place {
    const fn of(position: u64) -> Self {
        Self {
            rank: position >> 60,
            seq: (position >> 6) & ((1 << 54) - 1),
        }
    }

    fn position(kind: Kind, seq: Seq, number: usize) -> u64 {
        kind.rank() << 60 | seq << 6 | (number as u64 + 1).min(63)
    }
}

pub(crate) fn no_volume(id: &str) -> Refusal {
    Refusal::client(
        "InvalidVolume.NotFound",
        format!("The volume '{id}' does not exist."),
    )
}

pub(crate) fn no_nic(id: &str) -> Refusal {
    Refusal::not_found(
        "InvalidNetworkInterfaceID.NotFound",
        "networkInterface",
        &[id],
    )
}

impl Filtered for TagRow {
    const NAMES: &'static [&'static str] = &["key", "resource-id", "resource-type", "value"];

    fn values(&self, name: &str) -> Vec<String> {
        match name {
            "key" => vec![self.key.clone()],
            "resource-id" => vec![self.resource.clone()],
            "resource-type" => vec![self.kind.name().to_owned()],
            "value" => vec![self.value.clone()],
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        None
    }
}
