//! Ids that are never reused, and addresses that are, but not soon.

use std::{
    collections::{BTreeSet, VecDeque},
    net::Ipv4Addr,
};

use fleetwright::{ImageId, InstanceId, MacAddress};

/// Hands out names: scrambled numbers of a counter, so no two are ever the same.
#[derive(Debug)]
pub(super) struct Names {
    seed: u64,
    given: u64,
}

impl Names {
    pub(super) const fn new(seed: u64) -> Self {
        Self { seed, given: 0 }
    }

    /// The next number and its scrambled form. Scrambling is one to one (the finalizer of
    /// SplitMix64), so the forms never repeat.
    fn next(&mut self) -> (u64, u64) {
        self.given += 1;
        let mut bits = self
            .given
            .wrapping_add(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (self.given, bits ^ (bits >> 31))
    }

    #[expect(
        clippy::expect_used,
        reason = "the text contains only hexadecimal digits"
    )]
    pub(super) fn instance(&mut self) -> InstanceId {
        InstanceId::new(format!("i-{:016x}", self.next().1)).expect("a plain name")
    }

    #[expect(
        clippy::expect_used,
        reason = "the text contains only hexadecimal digits"
    )]
    pub(super) fn image(&mut self) -> ImageId {
        ImageId::new(format!("img-{:016x}", self.next().1)).expect("a plain name")
    }

    pub(super) fn disk(&mut self) -> String {
        format!("disk-{:016x}", self.next().1)
    }

    /// A locally administered address that no other card has.
    pub(super) fn mac(&mut self) -> MacAddress {
        let [_, _, _, a, b, c, d, e] = self.next().0.to_be_bytes();
        MacAddress::new([2, a, b, c, d, e])
    }
}

/// A range of addresses, those never used first, then those given back longest ago.
#[derive(Debug)]
pub(crate) struct AddressPool {
    first: u32,
    size: u32,
    /// How many of the range were ever handed out.
    begun: u32,
    /// Given back, the longest ago first.
    returned: VecDeque<Ipv4Addr>,
    used: BTreeSet<Ipv4Addr>,
}

impl AddressPool {
    /// 10.0.0.0/8, without its first and last address.
    pub(super) const fn private() -> Self {
        Self::new(Ipv4Addr::new(10, 0, 0, 1), (1 << 24) - 2)
    }

    /// 198.18.0.0/15, which is set apart for tests, without its first and last address.
    pub(super) const fn public() -> Self {
        Self::new(Ipv4Addr::new(198, 18, 0, 1), (1 << 17) - 2)
    }

    const fn new(first: Ipv4Addr, size: u32) -> Self {
        Self {
            first: first.to_bits(),
            size,
            begun: 0,
            returned: VecDeque::new(),
            used: BTreeSet::new(),
        }
    }

    /// How many are left.
    pub(super) fn left(&self) -> u64 {
        u64::from(self.size - self.begun) + self.returned.len() as u64
    }

    /// The next free address, or nothing when all are in use.
    pub(super) fn take(&mut self) -> Option<Ipv4Addr> {
        let address = if self.begun < self.size {
            self.begun += 1;
            Ipv4Addr::from_bits(self.first + self.begun - 1)
        } else {
            self.returned.pop_front()?
        };
        self.used.insert(address);
        Some(address)
    }

    pub(super) fn give_back(&mut self, address: Ipv4Addr) {
        if self.used.remove(&address) {
            self.returned.push_back(address);
        }
    }

    /// Those in use.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.used.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_never_repeat_and_follow_the_seed() {
        let mut names = Names::new(3);
        let mut seen = BTreeSet::new();
        for _ in 0..10_000 {
            assert!(seen.insert(names.instance().as_str().to_owned()));
        }
        assert_eq!(Names::new(3).instance(), Names::new(3).instance());
        assert_ne!(Names::new(3).instance(), Names::new(4).instance());
        assert_eq!(Names::new(0).instance().as_str(), "i-5692161d100b05e5");
        assert!(names.image().as_str().starts_with("img-"));
        assert!(names.disk().starts_with("disk-"));
        let (one, two) = (names.mac(), names.mac());
        assert_ne!(one, two);
        assert_eq!(one.bytes()[0], 2);
    }

    #[test]
    fn an_address_given_back_comes_last() {
        let mut pool = AddressPool::new(Ipv4Addr::new(10, 0, 0, 1), 3);
        let first = pool.take().unwrap();
        assert_eq!(first, Ipv4Addr::new(10, 0, 0, 1));
        pool.give_back(first);
        let second = pool.take().unwrap();
        assert_ne!(second, first);
        assert_eq!(pool.left(), 2);
        assert_eq!(pool.take(), Some(Ipv4Addr::new(10, 0, 0, 3)));
        assert_eq!(pool.take(), Some(first));
        assert_eq!((pool.take(), pool.left()), (None, 0));
        assert_eq!(pool.in_use().count(), 3);
    }

    #[test]
    fn the_ranges_stay_within_their_networks() {
        for (mut pool, last) in [
            (AddressPool::private(), Ipv4Addr::new(10, 255, 255, 254)),
            (AddressPool::public(), Ipv4Addr::new(198, 19, 255, 254)),
        ] {
            pool.begun = pool.size - 1;
            assert_eq!(pool.take(), Some(last));
        }
    }
}
