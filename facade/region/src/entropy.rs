//! Where randomness comes from: given by whoever builds the services, so that a simulation replays.

use std::fmt::Debug;

use uuid::{Builder, Uuid};

/// A source of random bytes.
///
/// # Contract
///
/// The bytes cannot be guessed and do not come twice. A source that keeps to neither belongs into a simulation: with it
/// the keys and the sealed values are worth nothing.
pub trait Entropy: Send + Sync + Debug {
    /// Fills all of `bytes`, or fails.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy>;
}

/// There was no randomness to be had. Nothing was made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes: {reason}")]
pub struct NoEntropy {
    reason: String,
}

impl NoEntropy {
    /// In words.
    pub fn new(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { reason }
    }
}

/// The operating system's.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        getrandom::fill(bytes).map_err(|error| NoEntropy::new(error.to_string()))
    }
}

/// A random UUID.
pub(crate) fn new_uuid(entropy: &dyn Entropy) -> Result<Uuid, NoEntropy> {
    let mut bytes = [0; 16];
    entropy.fill(&mut bytes)?;
    Ok(Builder::from_random_bytes(bytes).into_uuid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_gives_other_bytes_each_time() {
        let [one, two] = [(); 2].map(|()| new_uuid(&OsEntropy).unwrap());
        assert_ne!(one, two);
        assert_eq!(one.get_version_num(), 4);
    }
}
