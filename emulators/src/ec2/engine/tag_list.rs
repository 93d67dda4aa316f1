//! The list of all tags, resource by resource.
//!
//! The list is in the order of kind, resource and key. A page token stands for a position in this
//! order, so a page can begin in the middle of a resource.

use super::{
    Engine, ReadLag, Seq,
    filter::{self, Filter, Filtered},
    page::{Page, PageRequest},
    record::Tags,
    tags::Kind,
};
use crate::ec2::error::Refusal;

/// A tag of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TagRow {
    /// The id of the resource.
    pub(crate) resource: String,
    /// Its kind.
    pub(crate) kind: Kind,
    /// The key.
    pub(crate) key: String,
    /// The value, maybe empty.
    pub(crate) value: String,
}

impl Engine {
    /// Returns a page of tags: of instances first, then of volumes, interfaces, images and snapshots.
    ///
    /// Tags of instances may lag; terminated instances have theirs as long as they are described.
    ///
    /// # Errors
    ///
    /// `InvalidParameterValue` for an unknown filter.
    pub(crate) fn tags_page(
        &mut self,
        filters: &[Filter],
        paging: &PageRequest,
        read_lag: ReadLag,
    ) -> Result<Page<TagRow>, Refusal> {
        filter::check::<TagRow>(filters)?;
        let moment = self.read_time(read_lag);
        let (first, after) = (
            TagPosition::parse(paging.position.after),
            paging.position.after,
        );
        let engine = &*self;
        let rows = Kind::ALL
            .into_iter()
            .filter(|kind| kind.rank() >= first.rank)
            .flat_map(move |kind| {
                let from = if kind.rank() == first.rank {
                    first.seq
                } else {
                    0
                };
                engine
                    .resources_of_kind(kind, from, filters)
                    .flat_map(move |(seq, id)| {
                        let tags = match kind {
                            Kind::Instance => engine
                                .instances
                                .get(&seq)
                                .and_then(|i| Some(&*i.version_at(moment)?.tags)),
                            Kind::Volume
                            | Kind::Nic
                            | Kind::Image
                            | Kind::Snapshot
                            | Kind::Vpc
                            | Kind::Subnet
                            | Kind::Group
                            | Kind::Key
                            | Kind::Address
                            | Kind::SpotRequest => engine.tags_of(kind, seq),
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
                                (TagPosition::position(kind, seq, number), row)
                            })
                    })
            });
        let rows = rows.filter(|(position, _)| *position > after);
        let (page, records_read) = paging.take(rows.map(|(position, row)| {
            let passes = filter::passes(&row, filters);
            (position, passes.then_some(row))
        }));
        self.core.records_read += records_read;
        Ok(page)
    }

    /// Returns the resources of a kind from `from` on. If a filter `resource-id` without wildcards
    /// is present, only the resources that it names are read.
    fn resources_of_kind<'a>(
        &'a self,
        kind: Kind,
        from: Seq,
        filters: &[Filter],
    ) -> Box<dyn Iterator<Item = (Seq, &'a str)> + 'a> {
        if let Some(table) = self.table(kind) {
            return Box::new(table.ids_from(from).into_iter());
        }
        let by_id = filters
            .iter()
            .find(|f| f.name == "resource-id" && f.values.iter().all(|v| filter::is_plain(v)));
        if let Some(by_id) = by_id {
            let ids = match kind {
                Kind::Instance => &self.by_id,
                Kind::Volume => &self.volume_ids,
                Kind::Nic => &self.nic_ids,
                Kind::Image => &self.image_ids,
                Kind::Snapshot => &self.snapshot_ids,
                Kind::Vpc
                | Kind::Subnet
                | Kind::Group
                | Kind::Key
                | Kind::Address
                | Kind::SpotRequest => return Box::new(std::iter::empty()),
            };
            let mut found: Vec<(Seq, &str)> = by_id
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
            Kind::Snapshot => Box::new(
                self.snapshots
                    .range(from..)
                    .map(|(seq, s)| (*seq, s.id.as_str())),
            ),
            Kind::Vpc
            | Kind::Subnet
            | Kind::Group
            | Kind::Key
            | Kind::Address
            | Kind::SpotRequest => Box::new(std::iter::empty()),
        }
    }
}

/// A position in the list of tags: the kind, the resource and the number of its tag.
#[derive(Clone, Copy, Debug)]
struct TagPosition {
    /// The rank of the kind.
    rank: u64,
    /// The resource.
    seq: Seq,
}

impl TagPosition {
    /// Returns the kind and the resource of a position.
    const fn parse(position: u64) -> Self {
        Self {
            rank: position >> 60,
            seq: (position >> 6) & ((1 << 54) - 1),
        }
    }

    /// Returns the position of a tag: four bits for the kind, 54 for the resource, six for the
    /// tag.
    fn position(kind: Kind, seq: Seq, number: usize) -> u64 {
        kind.rank() << 60 | seq << 6 | (number as u64 + 1).min(63)
    }
}

impl Filtered for TagRow {
    /// The filters of DescribeTags.
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
