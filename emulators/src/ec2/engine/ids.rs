//! Generates ids and hardware addresses in EC2's form.

use crate::cloud::ids::IdGenerator;

/// Generates ids that never repeat.
#[derive(Debug)]
pub(crate) struct ResourceIds(IdGenerator);

impl ResourceIds {
    /// Creates a generator. The same seed gives the same ids.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(IdGenerator::new(seed))
    }

    /// Returns the next id with a prefix, for example `i-0123456789abcdef0`: 17 digits, as EC2's.
    pub(crate) fn next(&mut self, prefix: &str) -> String {
        format!("{prefix}-0{:016x}", self.0.number())
    }

    /// Returns the next number, of which none repeats.
    pub(crate) fn number(&mut self) -> u64 {
        self.0.number()
    }

    /// Returns a unique, locally administered hardware address.
    pub(crate) fn mac(&mut self) -> String {
        let [_, _, _, a, b, c, d, e] = self.0.count().to_be_bytes();
        format!("02:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_the_seed_and_never_repeat() {
        let mut ids = ResourceIds::new(3);
        assert_ne!(ids.next("i"), ids.next("i"));
        assert_eq!(ResourceIds::new(3).next("i"), ResourceIds::new(3).next("i"));
        assert_ne!(ResourceIds::new(3).next("i"), ResourceIds::new(4).next("i"));
        assert_eq!(ids.next("vol").len(), "vol-".len() + 17);
        assert_ne!(ids.mac(), ids.mac());
    }
}
