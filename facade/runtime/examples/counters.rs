//! A controller on a store: brings every counter to the target value in its record, one step per reconcile.
//!
//! Run it with `cargo run -p fleetwright-runtime --example counters`.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use fleetwright_runtime::{Action, Backoff, Runner, clock::SystemClock, watch_keys};
use fleetwright_store::{
    Commit, Document, Interest, Key, MemoryStore, Schema, Store, StoreError, Table, Transaction,
    Watch,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Clone, Serialize, Deserialize)]
struct Counter {
    desired: u32,
    actual: u32,
}

impl Document for Counter {
    const KIND: &'static str = "counter";
}

struct Controller {
    store: Arc<dyn Store>,
    counters: Table<Counter>,
}

impl Controller {
    /// Reads the record, decides, and takes one step.
    async fn reconcile(&self, key: Key) -> Result<Action, StoreError> {
        let Some(read) = self.counters.get(&key).await? else {
            return Ok(Action::AwaitChange);
        };
        if read.value.actual == read.value.desired {
            println!("{key} is {}", read.value.actual);
            return Ok(Action::AwaitChange);
        }
        let mut counter = read.value.clone();
        counter.actual += 1;
        let transaction = self.counters.replace(Transaction::new(), &read, &counter)?;
        self.store.commit(&transaction).await?;
        // The commit wakes the key through the watch.
        Ok(Action::AwaitChange)
    }

    /// Lists all keys, and watches from there.
    async fn list_all(&self) -> Result<(Vec<Key>, Watch), StoreError> {
        let page = self.counters.list_all(&self.counters.all()).await?;
        let interest = Interest::kinds([self.counters.kind().clone()]);
        let watch = self.store.watch(page.revision, interest).await?;
        Ok((page.items.into_iter().map(|item| item.key).collect(), watch))
    }

    async fn run(&self) {
        let keys = watch_keys("counters", || self.list_all(), keys_of);
        let backoff = Backoff {
            first: Duration::from_secs(1),
            max: Duration::from_secs(60),
        };
        let error_policy = |key: &Key, error: &StoreError, failures| {
            if error.conflict().is_some() {
                // Another writer was faster: read the record again at once.
                return Duration::ZERO;
            }
            println!("{key} failed: {error}");
            let seed = Uuid::new_v5(&Uuid::NAMESPACE_OID, key.as_str().as_bytes());
            backoff.delay(seed, failures)
        };
        Runner::new(keys, Arc::new(SystemClock))
            .concurrency(NonZeroUsize::MIN.saturating_add(3))
            .run(|key| self.reconcile(key), error_policy)
            .await;
    }
}

fn keys_of(commit: &Commit) -> Vec<Key> {
    let keys = commit.changes.iter().map(|change| change.id().key.clone());
    keys.collect()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schema = Schema::builder().kind(Counter::KIND).build()?;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(schema));
    let counters = Table::<Counter>::new(Arc::clone(&store))?;
    let controller = Controller {
        store: Arc::clone(&store),
        counters: counters.clone(),
    };
    let clients = async {
        for (name, desired) in [("a", 3), ("b", 5)] {
            let counter = Counter { desired, actual: 0 };
            let create = counters.create(Transaction::new(), &Key::new(name)?, &counter)?;
            store.commit(&create).await?;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        for found in counters.list_all(&counters.all()).await?.items {
            assert_eq!(found.value.actual, found.value.desired);
        }
        Ok(())
    };
    tokio::select! {
        () = controller.run() => Ok(()),
        done = clients => done,
    }
}
