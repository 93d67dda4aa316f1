//! The life of one process, which ends when it crashes.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// One process, from its start to its crash. Everything that a process has in flight ends with it.
#[derive(Debug)]
pub struct Life {
    /// The number of the process: one that is started in place of a crashed one has the same.
    pub number: usize,
    over: AtomicBool,
    ended: Notify,
}

impl Life {
    /// Begins the life of a process.
    pub fn new(number: usize) -> Self {
        Self {
            number,
            over: AtomicBool::new(false),
            ended: Notify::new(),
        }
    }

    /// Ends it.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.ended.notify_waiters();
    }

    /// Returns whether it ended.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Waits until it ends.
    pub async fn wait_for_end(&self) {
        let ended = self.ended.notified();
        if !self.is_over() {
            ended.await;
        }
    }

    /// Never returns if it is over: what a crashed process had in flight does not continue.
    pub async fn wait_if_over(&self) {
        if self.is_over() {
            std::future::pending::<()>().await;
        }
    }
}
