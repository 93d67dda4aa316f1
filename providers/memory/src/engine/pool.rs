//! Unique ids, and pools of addresses.
//!
//! Ids are never reused. Addresses are reused as late as possible, so that a test notices code that
//! confuses an instance with the next holder of its address.

use std::{
    collections::{BTreeSet, VecDeque},
    net::Ipv4Addr,
};

use fleetwright::{ImageId, InstanceId, MacAddress};

use super::Seq;

/// Generates ids: scrambled numbers of a counter, so they are unique and follow from the seed. The number of an id can be computed, so
/// that an instance is found without an index of ids.
#[derive(Debug)]
pub(super) struct IdGenerator {
    seed: u64,
    generated: u64,
}

/// The factors of the finalizer of SplitMix64.
const FACTORS: (u64, u64) = (0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb);
/// Their inverses: factor times inverse is 1.
const INVERSES: (u64, u64) = (0x96de_1b17_3f11_9089, 0x3196_42b2_d24d_8ec3);

impl IdGenerator {
    pub(super) const fn new(seed: u64) -> Self {
        Self { seed, generated: 0 }
    }

    /// Returns the next number and its scrambled form. Scrambling is a bijection (the finalizer of
    /// SplitMix64), so the scrambled forms never repeat.
    fn next(&mut self) -> (u64, u64) {
        self.generated += 1;
        let mut bits = self.generated.wrapping_add(self.offset());
        bits = (bits ^ (bits >> 30)).wrapping_mul(FACTORS.0);
        bits = (bits ^ (bits >> 27)).wrapping_mul(FACTORS.1);
        (self.generated, bits ^ (bits >> 31))
    }

    /// Returns the number with this scrambled form.
    fn unscrambled(&self, mut bits: u64) -> u64 {
        bits = (bits ^ (bits >> 31) ^ (bits >> 62)).wrapping_mul(INVERSES.1);
        bits = (bits ^ (bits >> 27) ^ (bits >> 54)).wrapping_mul(INVERSES.0);
        bits = bits ^ (bits >> 30) ^ (bits >> 60);
        bits.wrapping_sub(self.offset())
    }

    const fn offset(&self) -> u64 {
        self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[expect(
        clippy::expect_used,
        reason = "the text contains only hexadecimal digits"
    )]
    pub(super) fn instance(&mut self) -> (Seq, InstanceId) {
        let (number, scrambled) = self.next();
        let id = InstanceId::new(format!("i-{scrambled:016x}")).expect("a valid id");
        (number, id)
    }

    /// Returns the number that an instance with this id has. `None` if no instance can have it. What else has a number is no instance.
    pub(super) fn number_of(&self, id: &InstanceId) -> Option<Seq> {
        let digits = id.as_str().strip_prefix("i-")?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if digits.len() != 16 || !digits.bytes().all(is_digit) {
            return None;
        }
        let scrambled = u64::from_str_radix(digits, 16).ok()?;
        Some(self.unscrambled(scrambled))
    }

    #[expect(
        clippy::expect_used,
        reason = "the text contains only hexadecimal digits"
    )]
    pub(super) fn image(&mut self) -> ImageId {
        ImageId::new(format!("img-{:016x}", self.next().1)).expect("a valid id")
    }

    pub(super) fn disk(&mut self) -> String {
        format!("disk-{:016x}", self.next().1)
    }

    /// Returns a unique, locally administered hardware address.
    pub(super) fn mac(&mut self) -> MacAddress {
        let [_, _, _, a, b, c, d, e] = self.next().0.to_be_bytes();
        MacAddress::new([2, a, b, c, d, e])
    }
}

/// A range of addresses. Unused addresses are allocated first, then those that were released
/// longest ago.
#[derive(Debug)]
pub(crate) struct AddressPool {
    first: u32,
    size: u32,
    /// How many of the range were allocated at least once.
    ever_allocated: u32,
    /// Released addresses, oldest release first.
    released: VecDeque<Ipv4Addr>,
    used: BTreeSet<Ipv4Addr>,
}

impl AddressPool {
    /// 10.0.0.0/8, without its first and last address.
    pub(super) const fn private() -> Self {
        Self::new(Ipv4Addr::new(10, 0, 0, 1), (1 << 24) - 2)
    }

    /// 198.18.0.0/15, which is reserved for benchmarks, without its first and last address.
    pub(super) const fn public() -> Self {
        Self::new(Ipv4Addr::new(198, 18, 0, 1), (1 << 17) - 2)
    }

    const fn new(first: Ipv4Addr, size: u32) -> Self {
        Self {
            first: first.to_bits(),
            size,
            ever_allocated: 0,
            released: VecDeque::new(),
            used: BTreeSet::new(),
        }
    }

    /// Returns how many addresses are free.
    pub(super) fn available(&self) -> u64 {
        u64::from(self.size - self.ever_allocated) + self.released.len() as u64
    }

    /// Allocates the next free address, or returns `None` if all are in use.
    pub(super) fn allocate(&mut self) -> Option<Ipv4Addr> {
        let address = if self.ever_allocated < self.size {
            self.ever_allocated += 1;
            Ipv4Addr::from_bits(self.first + self.ever_allocated - 1)
        } else {
            self.released.pop_front()?
        };
        self.used.insert(address);
        Some(address)
    }

    /// Releases an address. Does nothing if it is not in use.
    pub(super) fn release(&mut self, address: Ipv4Addr) {
        if self.used.remove(&address) {
            self.released.push_back(address);
        }
    }

    /// Returns the addresses in use, in ascending order.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.used.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_an_id_is_found_again() {
        for seed in [0, 1, 7, u64::MAX] {
            let mut generator = IdGenerator::new(seed);
            for _ in 0..1000 {
                generator.disk();
                let (number, id) = generator.instance();
                assert_eq!(generator.number_of(&id), Some(number));
            }
            for strange in [
                "i-",
                "i-0123456789abcde",
                "i-0123456789ABCDEF",
                "i-+123456789abcdef",
                "vm-1",
            ] {
                assert_eq!(
                    generator.number_of(&InstanceId::new(strange).unwrap()),
                    None
                );
            }
        }
    }

    #[test]
    fn ids_are_unique_and_follow_from_the_seed() {
        let mut generator = IdGenerator::new(3);
        let mut ids = BTreeSet::new();
        for _ in 0..10_000 {
            assert!(ids.insert(generator.instance().1.as_str().to_owned()));
        }
        assert_eq!(
            IdGenerator::new(3).instance(),
            IdGenerator::new(3).instance()
        );
        assert_ne!(
            IdGenerator::new(3).instance(),
            IdGenerator::new(4).instance()
        );
        assert_eq!(
            IdGenerator::new(0).instance().1.as_str(),
            "i-5692161d100b05e5"
        );
        assert!(generator.image().as_str().starts_with("img-"));
        assert!(generator.disk().starts_with("disk-"));
        let (one, two) = (generator.mac(), generator.mac());
        assert_ne!(one, two);
        assert_eq!(one.bytes()[0], 2);
    }

    #[test]
    fn released_address_is_allocated_last() {
        let mut pool = AddressPool::new(Ipv4Addr::new(10, 0, 0, 1), 3);
        let first = pool.allocate().unwrap();
        assert_eq!(first, Ipv4Addr::new(10, 0, 0, 1));
        pool.release(first);
        let second = pool.allocate().unwrap();
        assert_ne!(second, first);
        assert_eq!(pool.available(), 2);
        assert_eq!(pool.allocate(), Some(Ipv4Addr::new(10, 0, 0, 3)));
        assert_eq!(pool.allocate(), Some(first));
        assert_eq!((pool.allocate(), pool.available()), (None, 0));
        assert_eq!(pool.in_use().count(), 3);
    }

    #[test]
    fn ranges_stay_within_their_networks() {
        for (mut pool, last) in [
            (AddressPool::private(), Ipv4Addr::new(10, 255, 255, 254)),
            (AddressPool::public(), Ipv4Addr::new(198, 19, 255, 254)),
        ] {
            pool.ever_allocated = pool.size - 1;
            assert_eq!(pool.allocate(), Some(last));
        }
    }
}
