//! Ids that are never given twice, and addresses that are, but not soon.

use std::{collections::VecDeque, net::Ipv4Addr};

use ipnet::Ipv4Net;
use uuid::Builder;

/// Hands out ids: scrambled numbers of a counter, so no two are ever the same.
#[derive(Debug)]
pub(crate) struct Names {
    seed: u64,
    given: u64,
}

impl Names {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { seed, given: 0 }
    }

    /// The next id of a kind, such as `i-0123456789abcdef0`: 17 digits, as EC2's.
    pub(crate) fn next(&mut self, prefix: &str) -> String {
        format!("{prefix}-0{:016x}", self.number())
    }

    /// A hardware address that nobody else has: locally administered.
    pub(crate) fn mac(&mut self) -> String {
        self.given += 1;
        let [_, _, _, a, b, c, d, e] = self.given.to_be_bytes();
        format!("02:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}")
    }

    /// The id of a request.
    pub(crate) fn request(&mut self) -> String {
        let (high, low) = (self.number(), self.number());
        let bytes = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
        Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// The next number, scrambled one to one by the finalizer of SplitMix64, so that none repeats.
    fn number(&mut self) -> u64 {
        self.given += 1;
        let start = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.given.wrapping_add(start);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

/// A range of addresses: those never used first, then those given back longest ago.
#[derive(Debug)]
pub(crate) struct Pool {
    first: u32,
    size: u32,
    begun: u32,
    returned: VecDeque<Ipv4Addr>,
}

impl Pool {
    /// A subnet's addresses, without the first four and the last, which EC2 keeps.
    pub(crate) fn subnet(cidr: Ipv4Net) -> Self {
        let first = u32::from(cidr.network()).saturating_add(4);
        let last = u32::from(cidr.broadcast());
        Self {
            first,
            size: last.saturating_sub(first),
            begun: 0,
            returned: VecDeque::new(),
        }
    }

    /// 198.18.0.0/15, which is set apart for tests.
    pub(crate) fn public() -> Self {
        Self::subnet(Ipv4Net::new_assert([198, 18, 0, 0].into(), 15))
    }

    /// How many are left.
    pub(crate) fn left(&self) -> u64 {
        u64::from(self.size - self.begun) + self.returned.len() as u64
    }

    /// The next free address, or nothing when all are in use.
    pub(crate) fn take(&mut self) -> Option<Ipv4Addr> {
        if self.begun < self.size {
            self.begun += 1;
            return Some(Ipv4Addr::from(self.first + self.begun - 1));
        }
        self.returned.pop_front()
    }

    /// Takes an address back.
    pub(crate) fn give_back(&mut self, address: Ipv4Addr) {
        self.returned.push_back(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_follow_the_seed_and_never_repeat() {
        let mut names = Names::new(3);
        let ids: BTreeSet<_> = (0..10_000).map(|_| names.next("i")).collect();
        assert_eq!(ids.len(), 10_000);
        assert_eq!(Names::new(3).next("i"), Names::new(3).next("i"));
        assert_ne!(Names::new(3).next("i"), Names::new(4).next("i"));
        assert_eq!(names.next("vol").len(), "vol-".len() + 17);
        assert_ne!(names.mac(), names.mac());
        assert_eq!(names.request().len(), 36);
    }

    #[test]
    fn a_subnet_keeps_five_addresses_and_reuses_the_oldest_last() {
        let mut pool = Pool::subnet("10.0.0.0/29".parse().unwrap());
        assert_eq!(pool.left(), 3);
        let first = pool.take().unwrap();
        assert_eq!(first, Ipv4Addr::new(10, 0, 0, 4));
        pool.give_back(first);
        assert_eq!(pool.take(), Some(Ipv4Addr::new(10, 0, 0, 5)));
        assert_eq!(pool.take(), Some(Ipv4Addr::new(10, 0, 0, 6)));
        assert_eq!(pool.take(), Some(first));
        assert_eq!((pool.take(), pool.left()), (None, 0));
        assert_eq!(Pool::subnet("10.0.0.0/32".parse().unwrap()).left(), 0);
        assert_eq!(Pool::public().left(), (1 << 17) - 5);
    }
}
