//! How fields of an instance are shown.

use std::net::IpAddr;

use fleetwright::Placement;

use super::{Shown, in_words};

impl Shown for Placement {
    /// The fields that are set.
    fn shown(&self) -> String {
        let groups = (!self.security_groups.is_empty()).then(|| self.security_groups.shown());
        let fields = [
            ("zone", self.zone.as_ref().map(Shown::shown)),
            ("network", self.network.as_ref().map(Shown::shown)),
            ("groups", groups),
            (
                "public address",
                self.public_address.map(|one| in_words(&one)),
            ),
            ("market", self.market.map(|market| in_words(&market))),
        ];
        let set = fields
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name} {}", value?)));
        let set: Vec<_> = set.collect();
        if set.is_empty() {
            return "nothing".to_owned();
        }
        set.join(", ")
    }
}

/// Shows the size of a disk.
pub(crate) fn gigabytes(size: Option<u32>) -> String {
    size.map_or_else(|| "none".to_owned(), |size| format!("{size} GB"))
}

/// Shows a private and a public address.
pub(crate) fn addresses((private, public): (Option<IpAddr>, Option<IpAddr>)) -> String {
    format!("private {}, public {}", private.shown(), public.shown())
}

/// Shows a string that may be absent, in quotes.
pub(crate) fn quoted(text: Option<&str>) -> String {
    text.map_or_else(|| "none".to_owned(), |text| format!("{text:?}"))
}

#[cfg(test)]
mod tests {
    use fleetwright::{Market, Zone};

    use super::*;

    #[test]
    fn absent_fields_are_none() {
        assert_eq!(gigabytes(None), "none");
        assert_eq!(gigabytes(Some(33)), "33 GB");
        let address = IpAddr::from([10, 0, 0, 1]);
        assert_eq!(
            addresses((Some(address), None)),
            "private 10.0.0.1, public none"
        );
        assert_eq!(quoted(None), "none");
        assert_eq!(quoted(Some("a b")), "\"a b\"");
    }

    #[test]
    fn placement_is_shown_by_its_fields() {
        let mut placement = Placement::default();
        assert_eq!(placement.shown(), "nothing");
        placement.zone = Some(Zone::new("a").unwrap());
        placement.market = Some(Market::OnDemand);
        assert_eq!(placement.shown(), "zone a, market on demand");
    }
}
