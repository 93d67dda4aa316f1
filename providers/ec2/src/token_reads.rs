//! Look-ups of launch tokens, which concurrent launches of a handle share.
//!
//! Owns which look-ups are in one read. A read has a filter of up to 200 tokens. A lone look-up is sent at once. One that comes while a
//! read is in flight waits until that read ends, or for [`PATIENCE`], and is then sent together with all others that wait.
//!
//! A look-up never gets a result of a read that began before it. No task is spawned: one of the look-ups sends the read. If that one is
//! dropped, another one sends it again; if it is not polled, the others read again after [`STUCK_AFTER`].

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use aws_sdk_ec2::types::{Filter, Instance};
use fleetwright::LaunchToken;
use futures_util::future::{BoxFuture, Either, select};
use tokio::{
    sync::{Notify, Semaphore, oneshot},
    time::timeout,
};

use crate::{batch::MAX_FILTER_VALUES, error::Failure, token};

/// How long a look-up waits for the read in flight, so that a slow one does not delay it further.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long a look-up waits for the read that it is a part of. A read takes less than a second; longer, the look-up that sends it
/// may not be polled anymore.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// What a token has launched.
pub(crate) type Found = Result<Vec<Instance>, Failure>;

/// The look-ups of a handle.
#[derive(Debug)]
pub(crate) struct TokenReads {
    waiting: Mutex<Waiting>,
    /// Has one permit, for the read in flight.
    turn: Semaphore,
    /// Signals that a read was dropped and its look-ups wait again.
    returned: Notify,
}

/// The look-ups that are in no read yet, by number.
#[derive(Debug, Default)]
struct Waiting {
    lookups: BTreeMap<u64, Lookup>,
    next_number: u64,
}

#[derive(Debug)]
struct Lookup {
    /// The filter value that selects the token's instances.
    pattern: String,
    result: oneshot::Sender<Found>,
}

impl TokenReads {
    pub(crate) fn new() -> Self {
        Self {
            waiting: Mutex::default(),
            turn: Semaphore::new(1),
            returned: Notify::new(),
        }
    }

    /// Reads everything that a token has launched, in all zones and of all types. `list` reads all instances that a filter selects.
    pub(crate) async fn read<'a>(
        &self,
        token: &LaunchToken,
        list: impl Fn(Filter) -> BoxFuture<'a, Found>,
    ) -> Found {
        let pattern = token::pattern(token);
        let (mut place, mut result) = self.join(&pattern);
        loop {
            let turn = pin!(timeout(PATIENCE, self.turn.acquire()));
            let turn = match select(&mut result, turn).await {
                Either::Left((Ok(found), _)) => return found,
                Either::Left((Err(_), _)) => {
                    (place, result) = self.join(&pattern);
                    continue;
                }
                Either::Right((turn, _)) => turn.ok().and_then(Result::ok),
            };
            let returned = pin!(timeout(STUCK_AFTER, self.returned.notified()));
            if place.leave() {
                return self.send(&pattern, list).await;
            }
            // Another look-up has taken this one into its read.
            drop(turn);
            match select(&mut result, returned).await {
                Either::Left((Ok(found), _)) => return found,
                Either::Right((Ok(()), _)) => {}
                Either::Left((Err(_), _)) | Either::Right((Err(_), _)) => {
                    (place, result) = self.join(&pattern);
                }
            }
        }
    }

    /// Adds a look-up to those that wait.
    fn join(&self, pattern: &str) -> (Place<'_>, oneshot::Receiver<Found>) {
        let (result, receiver) = oneshot::channel();
        let mut waiting = self.lock();
        let number = waiting.next_number;
        waiting.next_number += 1;
        let pattern = pattern.to_owned();
        waiting.lookups.insert(number, Lookup { pattern, result });
        let reads = self;
        (Place { reads, number }, receiver)
    }

    /// Sends one read for `pattern` and for the look-ups that wait, the first ones first.
    async fn send<'a>(
        &self,
        pattern: &str,
        list: impl Fn(Filter) -> BoxFuture<'a, Found>,
    ) -> Found {
        let mut taken = self.take_waiting();
        let patterns = taken.lookups.values().map(|lookup| &*lookup.pattern);
        let patterns: BTreeSet<_> = patterns.chain([pattern]).collect();
        let filter = Filter::builder()
            .name("client-token")
            .set_values(Some(patterns.into_iter().map(ToOwned::to_owned).collect()))
            .build();
        let found = list(filter).await;
        if taken.lookups.is_empty() {
            return found;
        }
        let parts = found.map(by_prefix);
        for (_, lookup) in std::mem::take(&mut taken.lookups) {
            // It may have been dropped meanwhile.
            let _ = lookup.result.send(part(&parts, &lookup.pattern));
        }
        part(&parts, pattern)
    }

    /// Takes as many of the look-ups that wait as fit into a read beside one more.
    fn take_waiting(&self) -> Taken<'_> {
        let mut waiting = self.lock();
        let rest = match waiting.lookups.keys().nth(MAX_FILTER_VALUES - 1) {
            Some(first) => {
                let first = *first;
                waiting.lookups.split_off(&first)
            }
            None => BTreeMap::new(),
        };
        let lookups = std::mem::replace(&mut waiting.lookups, rest);
        let reads = self;
        Taken { reads, lookups }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sorts instances by the part of their client token that all launches of one launch token share.
fn by_prefix(natives: Vec<Instance>) -> BTreeMap<String, Vec<Instance>> {
    let mut parts: BTreeMap<String, Vec<Instance>> = BTreeMap::new();
    for native in natives {
        let prefix = token::prefix_of(native.client_token().unwrap_or_default());
        parts.entry(prefix.to_owned()).or_default().push(native);
    }
    parts
}

/// Returns the part of a read that one look-up has requested.
fn part(parts: &Result<BTreeMap<String, Vec<Instance>>, Failure>, pattern: &str) -> Found {
    match parts {
        Ok(parts) => {
            let part = parts.get(token::prefix_of(pattern));
            Ok(part.cloned().unwrap_or_default())
        }
        Err(failure) => Err(failure.clone()),
    }
}

/// A look-up that waits, until it is dropped or in a read.
struct Place<'a> {
    reads: &'a TokenReads,
    number: u64,
}

impl Place<'_> {
    /// Stops waiting. Returns whether no read has taken this look-up yet.
    fn leave(&self) -> bool {
        self.reads.lock().lookups.remove(&self.number).is_some()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Look-ups of a read. Without their results they wait again.
struct Taken<'a> {
    reads: &'a TokenReads,
    lookups: BTreeMap<u64, Lookup>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut lookups = std::mem::take(&mut self.lookups);
        lookups.retain(|_, lookup| !lookup.result.is_closed());
        if !lookups.is_empty() {
            self.reads.lock().lookups.append(&mut lookups);
            self.reads.returned.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests;
