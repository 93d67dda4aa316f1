//! Where random bytes come from, so that a simulation can replay them.
//!
//! Services that create ids, keys or nonces take an `Arc<dyn Entropy>`.

use std::fmt::Debug;

use uuid::{Builder, Uuid};

/// A source of random bytes.
///
/// # Contract
///
/// The bytes are unpredictable and never repeat. A source that breaks either promise is for simulations only: keys and sealed
/// secrets created with it protect nothing.
///
/// A source for a simulation, which repeats its bytes:
///
/// ```
/// use fleetwright_runtime::entropy::{Entropy, EntropyError, new_uuid};
///
/// #[derive(Debug)]
/// struct Zeros;
///
/// impl Entropy for Zeros {
///     fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
///         bytes.fill(0);
///         Ok(())
///     }
/// }
///
/// assert_eq!(new_uuid(&Zeros)?.to_string(), "00000000-0000-4000-8000-000000000000");
/// # Ok::<(), EntropyError>(())
/// ```
pub trait Entropy: Send + Sync + Debug {
    /// Fills all of `bytes`.
    ///
    /// # Errors
    ///
    /// No random bytes are available. The content of `bytes` must not be used.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError>;
}

/// No random bytes are available. Nothing was created.
///
/// ```
/// use fleetwright_runtime::entropy::EntropyError;
///
/// let error = EntropyError::new("the hardware source is not connected");
/// assert_eq!(error.to_string(), "no random bytes are available: the hardware source is not connected");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no random bytes are available: {reason}")]
pub struct EntropyError {
    reason: String,
}

impl EntropyError {
    /// Creates the error with a reason for the operator.
    pub fn new(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { reason }
    }
}

/// The operating system's random source. Use this one in programs.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        getrandom::fill(bytes).map_err(|error| EntropyError::new(error.to_string()))
    }
}

/// Creates a random UUID of version 4.
///
/// ```
/// use fleetwright_runtime::entropy::{OsEntropy, new_uuid};
///
/// assert_ne!(new_uuid(&OsEntropy)?, new_uuid(&OsEntropy)?);
/// # Ok::<(), fleetwright_runtime::entropy::EntropyError>(())
/// ```
///
/// # Errors
///
/// The source has no random bytes.
pub fn new_uuid(entropy: &dyn Entropy) -> Result<Uuid, EntropyError> {
    let mut bytes = [0; 16];
    entropy.fill(&mut bytes)?;
    Ok(Builder::from_random_bytes(bytes).into_uuid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_uuids_differ_and_have_version_4() {
        let [one, two] = [(); 2].map(|()| new_uuid(&OsEntropy).unwrap());
        assert_ne!(one, two);
        assert_eq!(one.get_version_num(), 4);
    }
}
