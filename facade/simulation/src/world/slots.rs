//! The processes that run now.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fleetwright_chaos::SeededRng;
use tokio::sync::Notify;

use super::Process;
use crate::scenario::pick;

/// A place for each process of a scenario: empty from its crash until the next one starts.
#[derive(Debug)]
pub struct Slots {
    running: Mutex<Vec<Option<Arc<Process>>>>,
    started: Notify,
}

impl Slots {
    /// Creates empty slots.
    pub(super) fn new(count: usize) -> Self {
        Self {
            running: Mutex::new(vec![None; count]),
            started: Notify::new(),
        }
    }

    pub(super) fn set(&self, number: usize, process: Option<Arc<Process>>) {
        if let Some(slot) = self.lock().get_mut(number) {
            *slot = process;
        }
        self.started.notify_one();
    }

    /// Returns whether no process runs.
    pub(super) fn is_empty(&self) -> bool {
        self.running().is_empty()
    }

    /// Returns the processes that run now.
    pub fn running(&self) -> Vec<Arc<Process>> {
        self.lock().iter().flatten().cloned().collect()
    }

    /// Returns one of the processes that run now. Waits until one does.
    pub async fn any(&self, rng: &mut SeededRng) -> Arc<Process> {
        loop {
            let running = self.running();
            let chosen = match running.len() {
                0 | 1 => 0,
                count => pick(rng, count),
            };
            if let Some(process) = running.get(chosen) {
                return Arc::clone(process);
            }
            self.started.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Arc<Process>>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
