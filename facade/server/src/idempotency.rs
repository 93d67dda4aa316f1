//! Idempotency keys: a request that is repeated with its key is carried out once, also after a crash.
//!
//! The key is recorded before the request is carried out, and its response afterwards. A key belongs to one caller and one request. It is
//! kept for a day. A response never has a secret, so that none is stored here.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::http::{HeaderMap, StatusCode};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use fleetwright_identity::Actor;
use fleetwright_runtime::clock::{Clock, between};
use fleetwright_store::{
    Document, IndexName, Invalid, Key, Store, StoreError, Table, Transaction, Versioned,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{failure::Failure, wire};

/// The kind of the records.
pub(crate) const KIND: &str = "http-request";
/// Finds the requests of a caller, oldest first.
pub(crate) const BY_CALLER: &str = "caller";
/// How long a key is kept.
const KEEP: Duration = Duration::from_secs(24 * 3600);
/// After this time a request without a response was interrupted by a crash. It is longer than any request takes.
const INTERRUPTED_AFTER: Duration = Duration::from_secs(90);
/// The most keys of one caller.
const MAX_KEYS: usize = 10_000;
/// The longest key.
const MAX_KEY: usize = 128;

/// A request with a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Recorded {
    caller: String,
    fingerprint: String,
    at: DateTime<Utc>,
    response: Option<Stored>,
}

impl Document for Recorded {
    const KIND: &'static str = KIND;
}

/// A response as it was sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// What is to be done with a request.
pub(crate) enum Claim {
    /// Carry it out, and record its response.
    Run(Box<Versioned<Recorded>>),
    /// Repeat this response.
    Repeat(Stored),
}

/// The recorded requests.
#[derive(Clone, Debug)]
pub(crate) struct Idempotency {
    store: Arc<dyn Store>,
    table: Table<Recorded>,
    clock: Arc<dyn Clock>,
    counts: Arc<Mutex<HashMap<String, usize>>>,
}

/// The key of a request, if it has one.
pub(crate) fn key_of(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let field = "Idempotency-Key";
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    let fits = (1..=MAX_KEY).contains(&text.len()) && values.next().is_none();
    if fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(Some(text.to_owned()));
    }
    Err(Failure::invalid(
        field,
        format!("expected one key of 1 to {MAX_KEY} visible ASCII characters"),
    ))
}

/// A digest of what is requested.
pub(crate) fn fingerprint(method: &str, target: &str, body: &[u8]) -> String {
    let digest = Sha256::new()
        .chain_update(method.as_bytes())
        .chain_update([0])
        .chain_update(target.as_bytes())
        .chain_update([0])
        .chain_update(body)
        .finalize();
    URL_SAFE_NO_PAD.encode(digest)
}

/// How long a caller waits for a request that is under way: twice as long each time, so that few attempts outlast an interrupted one.
fn wait_for(since: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    let age = between(since, now);
    let left = INTERRUPTED_AFTER.saturating_sub(age);
    age.min(left).max(Duration::from_secs(1))
}

/// A request whose first attempt may have been carried out, and must not be carried out twice.
fn interrupted() -> Failure {
    let detail = "Idempotency-Key: the first request with this key was interrupted and may have been carried out: read the instance, then use a new key";
    Failure::new(StatusCode::CONFLICT, "conflict", detail)
}

impl Idempotency {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Result<Self, Invalid> {
        Ok(Self {
            table: Table::new(Arc::clone(&store))?,
            store,
            clock,
            counts: Arc::default(),
        })
    }

    /// Records a key before its request is carried out. One that was interrupted is carried out again if it `may_run_again`.
    pub(crate) async fn claim(
        &self,
        caller: &Actor,
        key: &str,
        fingerprint: String,
        may_run_again: bool,
    ) -> Result<Claim, Failure> {
        let caller = wire::actor(caller);
        let digest = Sha256::new()
            .chain_update(&caller)
            .chain_update([0])
            .chain_update(key)
            .finalize();
        let id = Key::new(URL_SAFE_NO_PAD.encode(digest)).map_err(StoreError::from)?;
        for _ in 0..4 {
            let now = self.clock.now();
            let wanted = Recorded {
                caller: caller.clone(),
                fingerprint: fingerprint.clone(),
                at: now,
                response: None,
            };
            let found = self.table.get(&id).await?;
            let transaction = match &found {
                None => {
                    self.check_count(&caller, now).await?;
                    self.table.create(Transaction::new(), &id, &wanted)?
                }
                Some(found) => {
                    let before = &found.value;
                    let is_old = before.at + KEEP < now;
                    if !is_old && before.fingerprint != fingerprint {
                        let detail = "Idempotency-Key: the key was used for another request; use a new key for each request";
                        return Err(Failure::new(
                            StatusCode::UNPROCESSABLE_ENTITY,
                            "unprocessable_content",
                            detail,
                        ));
                    }
                    match &before.response {
                        Some(response) if !is_old => return Ok(Claim::Repeat(response.clone())),
                        None if before.at + INTERRUPTED_AFTER > now => {
                            let detail = "Idempotency-Key: the first request with this key is still being carried out; retry";
                            let failure = Failure::new(StatusCode::CONFLICT, "conflict", detail);
                            return Err(failure.retry_after(wait_for(before.at, now)));
                        }
                        None if !may_run_again && !is_old => return Err(interrupted()),
                        Some(_) | None => self.table.replace(Transaction::new(), found, &wanted)?,
                    }
                }
            };
            match self.store.commit(&transaction).await {
                Ok(revision) => {
                    let claimed = match found {
                        Some(found) => found.replaced_by(revision, wanted),
                        None => Versioned::created(id, revision, wanted),
                    };
                    return Ok(Claim::Run(Box::new(claimed)));
                }
                // Another request with the key was faster: look at it.
                Err(error) if error.conflict().is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let detail = "Idempotency-Key: several requests with this key arrive at once; retry";
        Err(Failure::new(StatusCode::CONFLICT, "conflict", detail)
            .retry_after(Duration::from_secs(1)))
    }

    /// Records the response. `None` forgets the key: the request had no effect and may be retried.
    pub(crate) async fn finish(
        &self,
        claimed: &Versioned<Recorded>,
        response: Option<Stored>,
    ) -> Result<(), StoreError> {
        let transaction = match response {
            Some(response) => {
                let mut finished = claimed.value.clone();
                finished.response = Some(response);
                self.table.replace(Transaction::new(), claimed, &finished)?
            }
            None => self.table.remove(Transaction::new(), claimed),
        };
        self.store.commit(&transaction).await.map(drop)
    }

    /// Refuses the key of a caller that has too many. Counts once, and again when the bound is reached.
    async fn check_count(&self, caller: &str, now: DateTime<Utc>) -> Result<(), Failure> {
        let known = self.count_one_more(caller);
        if known.is_some_and(|count| count < MAX_KEYS) {
            return Ok(());
        }
        let count = self.prune(caller, now).await?;
        self.counts().insert(caller.to_owned(), count + 1);
        if count < MAX_KEYS {
            return Ok(());
        }
        let detail = "Idempotency-Key: the caller has used too many keys within a day; send the request without a key, or later";
        Err(Failure::busy(
            StatusCode::TOO_MANY_REQUESTS,
            detail,
            Duration::from_secs(60),
        ))
    }

    fn count_one_more(&self, caller: &str) -> Option<usize> {
        let mut counts = self.counts();
        let count = counts.get_mut(caller)?;
        *count += 1;
        Some(*count)
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, HashMap<String, usize>> {
        self.counts
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Removes the old keys of a caller, and returns the number of the others.
    async fn prune(&self, caller: &str, now: DateTime<Utc>) -> Result<usize, StoreError> {
        let index = IndexName::new(BY_CALLER)?;
        let page = self.table.list_all(&self.table.by(&index, caller)).await?;
        let (old, kept): (Vec<_>, Vec<_>) = page
            .items
            .iter()
            .partition(|found| found.value.at + KEEP < now);
        for old in old.chunks(64) {
            let remove = old.iter().fold(Transaction::new(), |all, found| {
                self.table.remove(all, found)
            });
            // Another replica may have been faster.
            if let Err(error) = self.store.commit(&remove).await
                && error.conflict().is_none()
            {
                return Err(error);
            }
        }
        Ok(kept.len())
    }

    /// Removes the old keys of all callers. It is called once an hour.
    pub(crate) async fn prune_all(&self) -> Result<(), StoreError> {
        let page = self.table.list_all(&self.table.all()).await?;
        let callers: std::collections::BTreeSet<_> = page
            .items
            .into_iter()
            .map(|found| found.value.caller)
            .collect();
        for caller in callers {
            let count = self.prune(&caller, self.clock.now()).await?;
            self.counts().insert(caller, count);
        }
        Ok(())
    }
}
