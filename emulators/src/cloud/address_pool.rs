//! Addresses: given again when they came back, but not soon.

use std::{collections::VecDeque, net::Ipv4Addr};

use ipnet::Ipv4Net;

/// A range of addresses: those never used first, then those given back longest ago.
#[derive(Debug)]
pub(crate) struct AddressPool {
    first: u32,
    size: u32,
    begun: u32,
    returned: VecDeque<Ipv4Addr>,
}

impl AddressPool {
    /// A subnet's addresses, without the first and the last few, which the cloud keeps.
    pub(crate) fn subnet(cidr: Ipv4Net, (first, last): (u32, u32)) -> Self {
        let first = u32::from(cidr.network()).saturating_add(first);
        let end = u32::from(cidr.broadcast()).saturating_add(1);
        Self {
            first,
            size: end.saturating_sub(last).saturating_sub(first),
            begun: 0,
            returned: VecDeque::new(),
        }
    }

    /// 198.18.0.0/15, which is set apart for tests.
    pub(crate) fn public() -> Self {
        Self::subnet(Ipv4Net::new_assert([198, 18, 0, 0].into(), 15), (4, 1))
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
    pub(crate) fn release(&mut self, address: Ipv4Addr) {
        self.returned.push_back(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_keeps_some_addresses_and_reuses_the_oldest_last() {
        let mut pool = AddressPool::subnet("10.0.0.0/29".parse().unwrap(), (4, 1));
        assert_eq!(pool.left(), 3);
        let first = pool.take().unwrap();
        assert_eq!(first, Ipv4Addr::new(10, 0, 0, 4));
        pool.release(first);
        assert_eq!(pool.take(), Some(Ipv4Addr::new(10, 0, 0, 5)));
        assert_eq!(pool.take(), Some(Ipv4Addr::new(10, 0, 0, 6)));
        assert_eq!(pool.take(), Some(first));
        assert_eq!((pool.take(), pool.left()), (None, 0));
        assert_eq!(
            AddressPool::subnet("10.0.0.0/32".parse().unwrap(), (4, 1)).left(),
            0
        );
        assert_eq!(AddressPool::public().left(), (1 << 17) - 5);
    }
}
