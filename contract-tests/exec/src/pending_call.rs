//! A request that was sent and waits for its replies.
//!
//! Owns the wait and the withdrawal: a dropped call is withdrawn, as a caller's timeout drops a future.

use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, error::TryRecvError};

use crate::{calls::End, message::Reply, process::Process};

/// A request that was sent.
#[derive(Debug)]
pub(crate) struct PendingCall {
    process: Arc<Process>,
    id: u64,
    replies: UnboundedReceiver<Reply>,
}

impl PendingCall {
    pub(crate) const fn new(
        process: Arc<Process>,
        id: u64,
        replies: UnboundedReceiver<Reply>,
    ) -> Self {
        Self {
            process,
            id,
            replies,
        }
    }

    /// Returns the next reply, or `None` if the process died where a fault told it to.
    ///
    /// # Errors
    /// How the process broke the protocol.
    pub(crate) async fn next_unless_crashed(&mut self) -> Result<Option<Reply>, String> {
        match (self.replies.recv().await, self.process.ended()) {
            (Some(reply), _) => Ok(Some(reply)),
            (None, Some(End::Broken(problem))) => Err(problem),
            (None, Some(End::Crashed) | None) => Ok(None),
        }
    }

    /// Returns the next reply if there is one, without waiting: for code that runs outside of a runtime.
    ///
    /// # Errors
    /// How the process ended.
    pub(crate) fn try_next(&mut self) -> Result<Option<Reply>, String> {
        match self.replies.try_recv() {
            Ok(reply) => Ok(Some(reply)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => match self.process.ended() {
                Some(End::Broken(problem)) => Err(problem),
                Some(End::Crashed) | None => Err("the backend's process has ended".to_owned()),
            },
        }
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.process.cancel(self.id);
    }
}
