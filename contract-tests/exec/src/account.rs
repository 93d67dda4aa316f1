//! One account of the backend: a process that is started when it is needed, and again after it died.
//!
//! Owns the process, the account's clock and the numbers of its sessions. A process that died where a fault told it to is
//! followed by another one, which finds the account as the first one left it.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use fleetwright_contract_tests::Time;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, timeout};

use crate::{
    backend::{Backend, State},
    message::Reply,
    pending_call::PendingCall,
    problems::Problems,
    process::Process,
};

/// One account.
#[derive(Debug)]
pub(crate) struct Account {
    backend: Arc<Backend>,
    label: String,
    problems: Problems,
    directory: Option<TempDir>,
    process: Mutex<Option<Arc<Process>>>,
    /// Whether a process died since the faults were cleared.
    crashed: AtomicBool,
    sessions: AtomicU64,
    start: OnceLock<Instant>,
}

impl Account {
    /// Creates an account. Its process is started by the first request.
    pub(crate) fn new(backend: &Arc<Backend>, label: &str, problems: &Problems) -> Self {
        let directory = backend.hello.restart.then(TempDir::new);
        let directory = directory.and_then(|created| {
            let created = created.inspect_err(|error| {
                problems.add(&format!(
                    "cannot create a folder for the backend's state: {error}"
                ));
            });
            created.ok()
        });
        Self {
            backend: Arc::clone(backend),
            label: label.to_owned(),
            problems: problems.clone(),
            directory,
            process: Mutex::default(),
            crashed: AtomicBool::new(false),
            sessions: AtomicU64::new(0),
            start: OnceLock::new(),
        }
    }

    /// Returns the backend.
    pub(crate) fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }

    /// Returns the number of a new session.
    pub(crate) fn next_session(&self) -> u64 {
        self.sessions.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Opens a session and returns the process that did. `options` is `default` or `other`.
    pub(crate) async fn open_session(&self, session: u64, options: &str) -> Option<Arc<Process>> {
        let params = json!({ "session": session, "options": options });
        let opened = self.ask_process("open", params).await;
        opened.map(|(process, _)| process)
    }

    /// Sends a request of a session.
    pub(crate) fn send(
        &self,
        process: &Arc<Process>,
        session: Option<u64>,
        method: &str,
        params: Value,
    ) -> PendingCall {
        let start = *self.start.get_or_init(Instant::now);
        let clock = match self.backend.hello.time {
            Time::Real => None,
            Time::Virtual => Some(stop_clock(process, method, self.backend.limit)),
        };
        process.send(session, method, params, start.elapsed(), clock)
    }

    /// Asks the account itself. Returns `None` if the backend broke the protocol, which is recorded.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, method: &str, params: Value) -> Option<T> {
        let (process, result) = self.ask_process(method, params).await?;
        let result = serde_json::from_value(result).map_err(|error| {
            process.break_off(&format!("the result of {method} is wrong: {error}"))
        });
        result.ok()
    }

    /// Asks the account itself, and returns the process that answered. A process that is just dying does not; the
    /// next one does.
    async fn ask_process(&self, method: &str, params: Value) -> Option<(Arc<Process>, Value)> {
        let limit = self.backend.limit;
        loop {
            let process = self.process().ok()?;
            let mut call = self.send(&process, None, method, params.clone());
            let problem = match timeout(limit, call.next_unless_crashed()).await {
                Ok(Ok(Some(Reply::Result(result)))) => return Some((process, result)),
                Ok(Ok(Some(other))) => format!("it answered {method} with {other:?}"),
                // It cannot die again: the next one has no faults.
                Ok(Ok(None)) => continue,
                Ok(Err(_)) => return None,
                Err(_) => format!("it did not answer {method} within {limit:?}"),
            };
            process.break_off(&problem);
            return None;
        }
    }

    /// Says whether a fault tells the process to die from now on.
    pub(crate) fn allow_crash(&self, allowed: bool) {
        if let Ok(process) = self.process() {
            process.allow_crash(allowed);
        }
        if !allowed {
            self.crashed.store(false, Ordering::SeqCst);
        }
    }

    /// Returns whether a process died where a fault told it to since the faults were cleared.
    pub(crate) fn has_crashed(&self) -> bool {
        self.note_crash(&self.current());
        self.crashed.load(Ordering::SeqCst)
    }

    /// Returns the running process. Starts one if there is none, or if the last one died where a fault told it to.
    fn process(&self) -> Result<Arc<Process>, String> {
        let mut current = self.current();
        self.note_crash(&current);
        if let Some(process) = current.clone().filter(|process| !process.has_crashed()) {
            return Ok(process);
        }
        let state = State {
            directory: self.directory.as_ref().and_then(|dir| dir.path().to_str()),
            restarted: current.is_some(),
        };
        let started = self.backend.start(&self.label, &self.problems, state)?;
        *current = Some(Arc::clone(&started));
        Ok(started)
    }

    fn note_crash(&self, current: &Option<Arc<Process>>) {
        if current
            .as_ref()
            .is_some_and(|process| process.has_crashed())
        {
            self.crashed.store(true, Ordering::SeqCst);
        }
    }

    fn current(&self) -> MutexGuard<'_, Option<Arc<Process>>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if let Some(process) = self.current().take() {
            self.backend.close(process);
        }
    }
}

/// Stops the kit's paused clock until the returned value is dropped.
///
/// A paused clock jumps to the next timer whenever every task waits, and a task that waits for another process is no
/// exception. Tokio leaves the clock alone while a blocking task runs, so one runs for as long as the request takes.
fn stop_clock(process: &Arc<Process>, method: &str, limit: Duration) -> mpsc::Sender<()> {
    let (clock, stopped) = mpsc::channel();
    let (process, method) = (Arc::downgrade(process), method.to_owned());
    tokio::task::spawn_blocking(move || {
        let timed_out = stopped.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
        if let Some(process) = process.upgrade().filter(|_| timed_out) {
            process.break_off(&format!(
                "it did not answer {method} within {limit:?}; in virtual time a call that never returns is answered \
                 with `hangs`"
            ));
        }
    });
    clock
}
