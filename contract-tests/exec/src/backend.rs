//! The backend as a command that can be started, with what it declared.
//!
//! Owns the handshake. The command is started once to learn what it declares, and then once for each account; every
//! start must declare the same.

use std::{
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle, sleep},
    time::{Duration, Instant},
};

use fleetwright_contract_tests::CONTRACT_VERSION;
use serde_json::{Value, json};

use crate::{
    hello::Hello,
    message::{PROTOCOL, Reply},
    problems::Problems,
    process::Process,
};

/// A backend that can be started.
#[derive(Debug)]
pub(crate) struct Backend {
    command: Vec<String>,
    pub(crate) hello: Hello,
    /// How long a process may take to start, and to answer where the contract sets no time.
    pub(crate) limit: Duration,
    /// As it was declared, to be compared.
    declared: Value,
    /// Threads that wait for the end of processes.
    ending: Mutex<Vec<JoinHandle<()>>>,
}

/// Where a process finds what another one left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State<'a> {
    /// A folder for everything that must survive the process; none if it declares that nothing does.
    pub(crate) directory: Option<&'a str>,
    /// Whether an earlier process of the same account died.
    pub(crate) restarted: bool,
}

impl Backend {
    /// Starts the command once, to learn what it declares.
    ///
    /// # Errors
    /// Why it cannot be started, or what is wrong with its declaration.
    pub(crate) fn new(command: Vec<String>, limit: Duration) -> Result<Self, String> {
        let state = State {
            directory: None,
            restarted: false,
        };
        let process = Process::start(&command, "backend", &Problems::default())?;
        let process = Arc::new(process);
        let declared = shake_hands(&process, state, limit)?;
        let hello = Hello::parse(&declared)
            .map_err(|problem| format!("the reply to hello is wrong: {problem}"))?;
        let this = Self {
            command,
            hello,
            limit,
            declared,
            ending: Mutex::default(),
        };
        this.close(process);
        Ok(this)
    }

    /// Starts a process for an account.
    ///
    /// # Errors
    /// Why it cannot be started. The problem is recorded.
    pub(crate) fn start(
        &self,
        label: &str,
        problems: &Problems,
        state: State<'_>,
    ) -> Result<Arc<Process>, String> {
        let started = Process::start(&self.command, label, problems).map(Arc::new);
        let greeted = started.and_then(|process| {
            let declared = shake_hands(&process, state, self.limit)?;
            if declared == self.declared {
                Ok(process)
            } else {
                Err(process.break_off("its reply to hello is another one than at its first start"))
            }
        });
        greeted.inspect_err(|problem| problems.add(problem))
    }

    /// Closes a process without waiting for its end.
    pub(crate) fn close(&self, process: Arc<Process>) {
        let waiting = thread::spawn(move || process.close());
        let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        ending.retain(|thread| !thread.is_finished());
        ending.push(waiting);
    }

    /// Waits until every process has ended.
    pub(crate) fn wait_for_processes(&self) {
        let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in ending.drain(..) {
            // A thread that panicked has nothing left to wait for.
            let _ = thread.join();
        }
    }
}

/// Sends the first request and returns what the backend declares.
fn shake_hands(process: &Arc<Process>, state: State<'_>, limit: Duration) -> Result<Value, String> {
    let params = json!({
        "protocol": PROTOCOL,
        "contract": CONTRACT_VERSION,
        "directory": state.directory,
        "restarted": state.restarted,
    });
    let mut call = process.send(None, "hello", params, Duration::ZERO, None);
    let start = Instant::now();
    loop {
        match call.try_next()? {
            Some(Reply::Result(declared)) => return Ok(declared),
            Some(other) => {
                return Err(process.break_off(&format!("it answered hello with {other:?}")));
            }
            None if start.elapsed() > limit => {
                return Err(process.break_off(&format!("it did not answer hello within {limit:?}")));
            }
            None => sleep(Duration::from_millis(1)),
        }
    }
}
