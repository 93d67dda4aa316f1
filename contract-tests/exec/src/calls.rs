//! The requests of one process that wait for a reply, and how they end.
//!
//! Owns the ids of requests and the delivery of replies. It never waits itself: a
//! [`PendingCall`](crate::pending_call::PendingCall) does. Every request ends, because the process replies, dies or is
//! killed; the reason is in [`End`].

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError, mpsc},
};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::message::Reply;

/// How the process ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// It died where a fault told it to. Its calls never return.
    Crashed,
    /// It broke the protocol, or ended when it should not.
    Broken(String),
}

/// The waiting requests.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last_id: u64,
    waiting: HashMap<u64, Waiting>,
    /// Requests that nobody waits for. Their replies are ignored.
    cancelled: HashSet<u64>,
    end: Option<End>,
}

#[derive(Debug)]
struct Waiting {
    replies: UnboundedSender<Reply>,
    /// Dropped after the last reply was sent: the clock of the kit stands still until then.
    _clock: Option<mpsc::Sender<()>>,
}

impl Calls {
    /// Adds a request, and returns its id and its replies. `clock` is dropped when the request ends.
    pub(crate) fn add(&self, clock: Option<mpsc::Sender<()>>) -> (u64, UnboundedReceiver<Reply>) {
        let (sender, receiver) = unbounded_channel();
        let mut state = self.state();
        state.last_id += 1;
        let id = state.last_id;
        if state.end.is_none() {
            let waiting = Waiting {
                replies: sender,
                _clock: clock,
            };
            state.waiting.insert(id, waiting);
        }
        (id, receiver)
    }

    /// Removes a request that nobody waits for any more. Returns whether it was still waiting.
    pub(crate) fn cancel(&self, id: u64) -> bool {
        let mut state = self.state();
        let was_waiting = state.waiting.remove(&id).is_some();
        if was_waiting {
            state.cancelled.insert(id);
        }
        was_waiting
    }

    /// Delivers a reply.
    ///
    /// # Errors
    /// What is wrong with a reply that no request waits for.
    pub(crate) fn deliver(&self, id: u64, reply: Reply) -> Result<(), String> {
        let mut state = self.state();
        if id > state.last_id {
            return Err(format!("it replied to request {id}, which was never sent"));
        }
        let last = reply.is_last();
        match state.waiting.get(&id) {
            // The receiver may be gone already.
            Some(waiting) => drop(waiting.replies.send(reply)),
            None if state.cancelled.contains(&id) => {}
            None => return Err(format!("it replied to request {id} twice")),
        }
        if last {
            // Only now may the clock go on: the reply is there to be read.
            state.waiting.remove(&id);
            state.cancelled.remove(&id);
        }
        Ok(())
    }

    /// Ends every request. Only the first reason counts. Returns whether this is the first.
    pub(crate) fn end(&self, end: End) -> bool {
        let mut state = self.state();
        let first = state.end.is_none();
        state.end.get_or_insert(end);
        state.waiting.clear();
        first
    }

    /// Returns how the process ended, or `None` while it runs.
    pub(crate) fn ended(&self) -> Option<End> {
        self.state().end.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn result() -> Reply {
        Reply::Result(Value::Null)
    }

    #[test]
    fn replies_reach_their_own_request_in_order() {
        let calls = Calls::default();
        let (first, mut replies) = calls.add(None);
        let (second, mut others) = calls.add(None);
        calls.deliver(second, Reply::Page(vec![])).unwrap();
        calls.deliver(first, result()).unwrap();
        calls.deliver(second, result()).unwrap();
        assert!(matches!(replies.try_recv(), Ok(Reply::Result(_))));
        assert!(matches!(others.try_recv(), Ok(Reply::Page(_))));
        assert!(matches!(others.try_recv(), Ok(Reply::Result(_))));
    }

    #[test]
    fn reply_that_nobody_asked_for_is_refused() {
        let calls = Calls::default();
        assert!(
            calls
                .deliver(1, result())
                .unwrap_err()
                .contains("never sent")
        );
        let (id, _replies) = calls.add(None);
        calls.deliver(id, result()).unwrap();
        assert!(calls.deliver(id, result()).unwrap_err().contains("twice"));
        let (dropped, _replies) = calls.add(None);
        assert!(calls.cancel(dropped));
        calls.deliver(dropped, result()).unwrap();
        assert!(calls.deliver(dropped, result()).is_err());
    }

    #[test]
    fn end_closes_every_request_and_later_ones() {
        let calls = Calls::default();
        let (_, mut before) = calls.add(None);
        assert!(calls.end(End::Broken("first".to_owned())));
        assert!(!calls.end(End::Crashed));
        let (_, mut after) = calls.add(None);
        assert!(before.try_recv().is_err() && after.try_recv().is_err());
        assert!(matches!(calls.ended(), Some(End::Broken(reason)) if reason == "first"));
    }
}
