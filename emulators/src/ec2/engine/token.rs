//! Client tokens: a launch with the same token and parameters returns the same instances.
//!
//! A token is zonal where the request names a zone or a subnet, and regional otherwise, as EC2
//! defines it: the same token in another zone launches again. A launch that failed without effect
//! frees its token.

use uuid::Uuid;

use super::{Engine, Event, Seq};
use crate::ec2::error::Refusal;

/// A token, with its zone if it is zonal.
pub(crate) type TokenKey = (String, Option<String>);

/// The launch of a client token.
#[derive(Debug)]
pub(crate) struct TokenEntry {
    /// The digest of its parameters.
    digest: Uuid,
    /// The instances that it launched.
    instances: Vec<Seq>,
    /// How many of them are not terminated.
    alive: usize,
}

impl Engine {
    /// Returns the instances that a token has already launched, or `None` for a new token.
    ///
    /// # Errors
    ///
    /// `IdempotentParameterMismatch` for other parameters, `IdempotentInstanceTerminated` if all
    /// instances are terminated.
    pub(super) fn replay(&self, key: &TokenKey, digest: Uuid) -> Result<Option<Vec<Seq>>, Refusal> {
        let Some(entry) = self.tokens.get(key) else {
            return Ok(None);
        };
        if entry.digest != digest {
            let message = "Arguments on this idempotent request are inconsistent with arguments used in previous \
                           request(s).";
            return Err(Refusal::client("IdempotentParameterMismatch", message));
        }
        if entry.alive == 0 {
            let message = "The client token you have provided is associated with an instance that has been terminated. \
                           Please use a different client token.";
            return Err(Refusal::client("IdempotentInstanceTerminated", message));
        }
        Ok(Some(entry.instances.clone()))
    }

    /// Remembers the launch of a token.
    pub(super) fn remember(&mut self, key: TokenKey, digest: Uuid, instances: Vec<Seq>) {
        let alive = instances.len();
        let entry = TokenEntry {
            digest,
            instances,
            alive,
        };
        self.tokens.insert(key, entry);
    }

    /// Counts a terminated instance of a token. When all are terminated, the token is spent and
    /// forgotten after `timing.token_retention`.
    pub(super) fn count_terminated(&mut self, key: Option<TokenKey>) {
        let Some(key) = key else { return };
        let Some(entry) = self.tokens.get_mut(&key) else {
            return;
        };
        entry.alive = entry.alive.saturating_sub(1);
        if entry.alive == 0 {
            self.after(self.core.knobs.timing.token_retention, Event::Forget(key));
        }
    }

    /// Forgets a token, which can launch again from then on.
    pub(super) fn forget(&mut self, key: &TokenKey) {
        self.tokens.remove(key);
    }
}

#[cfg(test)]
impl Engine {
    /// Returns every token with the number of its live instances, and all its instances.
    pub(super) fn known_tokens(&self) -> impl Iterator<Item = (&TokenKey, (usize, &[Seq]))> {
        self.tokens
            .iter()
            .map(|(key, entry)| (key, (entry.alive, entry.instances.as_slice())))
    }
}
