//! IP addresses: released addresses are reused as late as possible.

use std::{collections::VecDeque, net::Ipv4Addr};

use ipnet::Ipv4Net;

/// A range of addresses. Addresses that were never used are taken first, then the ones released
/// longest ago.
#[derive(Debug)]
pub(crate) struct AddressPool {
    first: u32,
    size: u32,
    used: u32,
    returned: VecDeque<Ipv4Addr>,
}

impl AddressPool {
    /// The addresses of a subnet, without the first and the last few, which the cloud reserves.
    pub(crate) fn subnet(cidr: Ipv4Net, (first, last): (u32, u32)) -> Self {
        let first = u32::from(cidr.network()).saturating_add(first);
        let end = u32::from(cidr.broadcast()).saturating_add(1);
        Self {
            first,
            size: end.saturating_sub(last).saturating_sub(first),
            used: 0,
            returned: VecDeque::new(),
        }
    }

    /// 198.18.0.0/15, which RFC 2544 reserves for tests.
    pub(crate) fn public() -> Self {
        Self::subnet(Ipv4Net::new_assert([198, 18, 0, 0].into(), 15), (4, 1))
    }

    /// Returns how many addresses are free.
    pub(crate) fn free(&self) -> u64 {
        u64::from(self.size - self.used) + self.returned.len() as u64
    }

    /// Takes the next free address, or returns `None` if all are in use.
    pub(crate) fn take(&mut self) -> Option<Ipv4Addr> {
        if self.used < self.size {
            self.used += 1;
            return Some(Ipv4Addr::from(self.first + self.used - 1));
        }
        self.returned.pop_front()
    }

    /// Takes one address of the range, and returns whether it was free.
    pub(crate) fn take_exactly(&mut self, address: Ipv4Addr) -> bool {
        let number = u32::from(address).checked_sub(self.first);
        let Some(number) = number.filter(|number| *number < self.size) else {
            return false;
        };
        // The addresses before it were never used either; they are taken later.
        while self.used <= number {
            self.returned
                .push_front(Ipv4Addr::from(self.first + self.used));
            self.used += 1;
        }
        let free = self.returned.iter().position(|other| *other == address);
        free.is_some_and(|position| self.returned.remove(position).is_some())
    }

    /// Releases an address.
    pub(crate) fn release(&mut self, address: Ipv4Addr) {
        self.returned.push_back(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subnet_reserves_addresses_and_reuses_released_ones_last() {
        let mut pool = AddressPool::subnet("10.0.0.0/29".parse().unwrap(), (4, 1));
        assert_eq!(pool.free(), 3);
        let first = pool.take().unwrap();
        assert_eq!(first, Ipv4Addr::new(10, 0, 0, 4));
        pool.release(first);
        assert_eq!(pool.take(), Some(Ipv4Addr::new(10, 0, 0, 5)));
        assert_eq!(pool.take(), Some(Ipv4Addr::new(10, 0, 0, 6)));
        assert_eq!(pool.take(), Some(first));
        assert_eq!((pool.take(), pool.free()), (None, 0));
        assert_eq!(
            AddressPool::subnet("10.0.0.0/32".parse().unwrap(), (4, 1)).free(),
            0
        );
        assert_eq!(AddressPool::public().free(), (1 << 17) - 5);
    }

    #[test]
    fn an_address_can_be_chosen_once() {
        let mut pool = AddressPool::subnet("10.0.0.0/28".parse().unwrap(), (4, 1));
        let chosen = Ipv4Addr::new(10, 0, 0, 7);
        assert!(pool.take_exactly(chosen) && !pool.take_exactly(chosen));
        assert!(!pool.take_exactly(Ipv4Addr::new(10, 0, 0, 1)));
        assert!(!pool.take_exactly(Ipv4Addr::new(10, 0, 0, 15)));
        let free = pool.free();
        let rest: std::collections::BTreeSet<_> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(rest.len() as u64, free);
        assert!(!rest.contains(&chosen));
        pool.release(chosen);
        assert!(pool.take_exactly(chosen));
    }
}
