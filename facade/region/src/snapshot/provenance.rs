//! The provenance tags of an image. Pure.

use fleetwright::Tags;

use crate::{
    controller::tags::{REGION, SERVER},
    ids::{ImageId, RegionId},
    server::{Server, ServerId},
    tags::strip_reserved,
};

/// The image of the catalog.
pub const IMAGE: &str = "fleetwright-image";
/// The image that the source machine was booted from.
pub const SOURCE_IMAGE: &str = "fleetwright-source-image";

/// Where an image comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provenance {
    /// The region that created it.
    pub region: RegionId,
    /// The server it was created from.
    pub server: ServerId,
    /// The image itself.
    pub image: ImageId,
    /// The image that the server's machine was booted from.
    pub source: ImageId,
}

impl Provenance {
    /// Creates the provenance of an image of a server.
    pub fn new(server: &Server, image: &ImageId, source: &ImageId) -> Self {
        Self {
            region: server.region.clone(),
            server: server.id,
            image: image.clone(),
            source: source.clone(),
        }
    }

    /// Returns the tags of an image: the requested ones without the [reserved](crate::tags) ones, and the provenance. A caller can neither
    /// forge nor change nor hide the provenance.
    #[must_use]
    pub fn added_to(&self, requested: &Tags) -> Tags {
        // All keys are valid, so this cannot fail.
        let mut tags = strip_reserved(requested).unwrap_or_default();
        for (key, value) in self.tags() {
            let _ = tags.insert(key, value);
        }
        tags
    }

    fn tags(&self) -> [(&'static str, String); 4] {
        [
            (REGION, self.region.to_string()),
            (SERVER, self.server.to_string()),
            (IMAGE, self.image.to_string()),
            (SOURCE_IMAGE, self.source.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::tags::is_reserved;

    /// Keys of which many are reserved, or nearly.
    fn keys() -> impl Strategy<Value = String> {
        let known = [
            REGION,
            SERVER,
            IMAGE,
            SOURCE_IMAGE,
            "fleetwright/server",
            "fleetwrights",
        ];
        let known = prop::sample::select(known.map(str::to_owned).to_vec());
        prop_oneof![
            known.clone(),
            known.prop_map(|key| key.to_uppercase()),
            "[a-z]{1,4}"
        ]
    }

    proptest! {
        #[test]
        fn provenance_is_always_present_and_cannot_be_forged(
            requested in prop::collection::btree_map(keys(), "[a-z]{0,4}", 0..12),
            server: u128,
        ) {
            let provenance = Provenance {
                region: RegionId::new("here").unwrap(),
                server: ServerId::from_uuid(Uuid::from_u128(server)),
                image: ImageId::new("copy").unwrap(),
                source: ImageId::new("linux").unwrap(),
            };
            let tags = provenance.added_to(&Tags::try_from(requested.clone()).unwrap());
            let (own, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
                tags.iter().partition(|(key, _)| is_reserved(key));
            let expected = provenance.tags();
            let expected = expected.iter().map(|(key, value)| (*key, value.as_str()));
            prop_assert_eq!(own, expected.collect::<BTreeMap<_, _>>());
            let requested = requested.iter().map(|(key, value)| (key.as_str(), value.as_str()));
            let requested: BTreeMap<_, _> = requested.filter(|(key, _)| !is_reserved(key)).collect();
            prop_assert_eq!(others, requested);
        }
    }
}
