//! Client tokens: a launch with the same token and parameters returns the same instances.
//!
//! A token is zonal where the request names a zone or a subnet, and regional otherwise, as EC2
//! defines it: the same token in another zone launches again. The token of a launch that was refused for
//! lack of capacity or quota stays bound to its parameters, unless `knobs.failed_launch_keeps_token` is off.

use std::time::Duration;

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
    /// The instances that it launched; empty if the launch was refused.
    instances: Vec<Seq>,
    /// How many of them are not terminated.
    alive: usize,
    /// When it is forgotten; `None` while an instance is alive.
    forgotten_at: Option<Duration>,
}

impl Engine {
    /// Returns the instances that a token has already launched, or `None` for a new token and for one whose
    /// launch was refused.
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
        if entry.instances.is_empty() {
            return Ok(None);
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
            forgotten_at: None,
        };
        self.tokens.insert(key, entry);
    }

    /// Remembers the parameters of a launch that was refused, for `timing.token_retention`. The token can
    /// launch with these parameters and with no others.
    pub(super) fn remember_failure(&mut self, key: TokenKey, digest: Uuid) {
        if self.core.knobs.failed_launch_keeps_token {
            self.remember(key.clone(), digest, Vec::new());
            self.forget_later(key);
        }
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
            self.forget_later(key);
        }
    }

    /// Forgets a token after `timing.token_retention`, unless it launches before.
    fn forget_later(&mut self, key: TokenKey) {
        let retention = self.core.knobs.timing.token_retention;
        let at = self.now().saturating_add(retention);
        if let Some(entry) = self.tokens.get_mut(&key) {
            entry.forgotten_at = Some(at);
        }
        self.after(retention, Event::Forget(key));
    }

    /// Forgets a token whose time is over. It can launch again from then on.
    pub(super) fn forget(&mut self, key: &TokenKey) {
        let now = self.now();
        let entry = self.tokens.get(key);
        let is_due = entry.and_then(|entry| entry.forgotten_at);
        if is_due.is_some_and(|at| at <= now) {
            self.tokens.remove(key);
        }
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
