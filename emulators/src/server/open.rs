//! The open connections of this process, so that some can be closed when the descriptors run out.
//!
//! A process has one limit of descriptors for all its servers, so there is one list. A connection without a request makes room for
//! a new one: otherwise clients that keep connections open without using them would shut out everybody else.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use tokio::task::AbortHandle;

/// Connections with their tasks, by the address of their activity.
type Connections = BTreeMap<usize, (Arc<Activity>, AbortHandle)>;

/// The open connections of all servers in this process.
static OPEN: LazyLock<Mutex<Connections>> = LazyLock::new(Mutex::default);

/// Counts the requests and the beginnings of all connections, to compare when each connection was last used.
static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// What a connection does.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Whether it has a request without a response.
    busy: AtomicBool,
    /// The count of [`REQUESTS`] when this one was last used.
    last_used: AtomicU64,
    /// Whether the connection has ended.
    ended: AtomicBool,
}

impl Activity {
    /// Marks the connection as busy until the result is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.busy.store(true, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }
}

/// A request of a connection, until its response is complete or dropped.
#[derive(Debug)]
pub(super) struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        let used = REQUESTS.fetch_add(1, Ordering::Relaxed);
        self.0.last_used.store(used + 1, Ordering::Relaxed);
        self.0.busy.store(false, Ordering::Relaxed);
    }
}

/// Removes a connection from the list when it ends, also by an abort.
struct Listed(Arc<Activity>);

impl Drop for Listed {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
        list().remove(&key(&self.0));
    }
}

/// Runs a connection to its end and then removes it from the list.
pub(super) async fn until_closed(activity: Arc<Activity>, serving: impl Future<Output = ()>) {
    let _listed = Listed(activity);
    serving.await;
}

/// Adds a connection to the list, unless it has ended already.
pub(super) fn add(activity: Arc<Activity>, task: AbortHandle) {
    let mut open = list();
    if !activity.ended.load(Ordering::Acquire) {
        // A new connection is the newest of all, so that it has time to send its request.
        let used = REQUESTS.fetch_add(1, Ordering::Relaxed);
        activity.last_used.fetch_max(used + 1, Ordering::Relaxed);
        open.insert(key(&activity), (activity, task));
    }
}

/// Closes the connection without a request that was unused for the longest time. Returns whether there was one.
pub(super) fn close_unused() -> bool {
    let mut open = list();
    let unused = open
        .iter()
        .filter(|(_, (activity, _))| !activity.busy.load(Ordering::Relaxed));
    let oldest = unused.min_by_key(|(_, (activity, _))| activity.last_used.load(Ordering::Relaxed));
    let removed = oldest
        .map(|(key, _)| *key)
        .and_then(|key| open.remove(&key));
    // The abort may drop the connection at once, which locks the list.
    drop(open);
    removed.map(|(_, task)| task.abort()).is_some()
}

/// Returns the key of a connection.
fn key(activity: &Arc<Activity>) -> usize {
    Arc::as_ptr(activity) as usize
}

/// Locks the list.
fn list() -> MutexGuard<'static, Connections> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}
