//! One process of the backend: its pipes, its end and its limits.
//!
//! Owns the child. Three threads read its output, read its errors and write its input, so that nothing here can block
//! the kit. Whatever the process does, every request ends: the process answers, or it dies, or it is killed because
//! it broke the protocol.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Read as _, Write as _},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, sleep},
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::Value;

use crate::{
    calls::{Calls, End},
    message::{Cancel, MAX_LINE_BYTES, Request, parse_reply},
    pending_call::PendingCall,
    problems::Problems,
};

/// How long a process may take to end after its input was closed.
const END_LIMIT: Duration = Duration::from_secs(5);

/// How many lines of the errors are repeated in a message.
const LAST_LINES: usize = 8;

/// The longest line of the errors that is shown, in characters.
const MAX_SHOWN_CHARS: usize = 400;

/// A process of the backend.
#[derive(Debug)]
pub(crate) struct Process {
    shared: Arc<Shared>,
    /// Lines for the process. Removed to close its input.
    input: Mutex<Option<mpsc::Sender<String>>>,
}

#[derive(Debug)]
struct Shared {
    calls: Calls,
    child: Mutex<Child>,
    problems: Problems,
    /// Whether a fault tells the process to die.
    may_crash: AtomicBool,
    /// Whether the input was closed, after which the process may end.
    closing: AtomicBool,
    last_errors: Mutex<VecDeque<String>>,
}

impl Process {
    /// Starts a process. Its errors are shown with `label`, and what it does wrong is added to `problems`.
    pub(crate) fn start(
        command: &[String],
        label: &str,
        problems: &Problems,
    ) -> Result<Self, String> {
        let (program, arguments) = command.split_first().ok_or("there is no command")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {program}: {error}"))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(format!("{program} has no pipes"));
        };
        let shared = Arc::new(Shared {
            calls: Calls::default(),
            child: Mutex::new(child),
            problems: problems.clone(),
            may_crash: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            last_errors: Mutex::default(),
        });
        let (input, lines) = mpsc::channel();
        thread::spawn(move || write_lines(stdin, &lines));
        let (errors_ended, errors_end) = mpsc::channel::<()>();
        let (reader, label) = (Arc::clone(&shared), label.to_owned());
        thread::spawn(move || {
            reader.show_errors(stderr, &label);
            drop(errors_ended);
        });
        let reader = Arc::clone(&shared);
        thread::spawn(move || reader.read_replies(stdout, &errors_end));
        Ok(Self {
            shared,
            input: Mutex::new(Some(input)),
        })
    }

    /// Sends a request. `clock` is dropped when it ends.
    pub(crate) fn send(
        self: &Arc<Self>,
        session: Option<u64>,
        method: &str,
        params: Value,
        now: Duration,
        clock: Option<mpsc::Sender<()>>,
    ) -> PendingCall {
        let (id, replies) = self.shared.calls.add(clock);
        self.write(&Request {
            id,
            session,
            method: method.to_owned(),
            params,
            now_ms: crate::fault::millis(now),
        });
        PendingCall::new(Arc::clone(self), id, replies)
    }

    /// Withdraws a request, and tells the process if it has not answered yet.
    pub(crate) fn cancel(&self, id: u64) {
        if self.shared.calls.cancel(id) {
            self.write(&Cancel { cancel: id });
        }
    }

    /// Says whether a fault tells the process to die.
    pub(crate) fn allow_crash(&self, allowed: bool) {
        self.shared.may_crash.store(allowed, Ordering::SeqCst);
    }

    /// Returns how the process ended, or `None` while it runs.
    pub(crate) fn ended(&self) -> Option<End> {
        self.shared.calls.ended()
    }

    /// Returns whether the process died where a fault told it to.
    pub(crate) fn has_crashed(&self) -> bool {
        matches!(self.ended(), Some(End::Crashed))
    }

    /// Records that the process broke the protocol, and kills it. Returns the problem.
    pub(crate) fn break_off(&self, problem: &str) -> String {
        self.shared.break_off(problem)
    }

    /// Closes the input and waits until the process has ended. Kills it if that takes too long.
    pub(crate) fn close(&self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        self.input().take();
        self.shared.wait_or_kill(END_LIMIT);
    }

    fn input(&self) -> MutexGuard<'_, Option<mpsc::Sender<String>>> {
        self.input.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, line: &impl Serialize) {
        // Serializing our own messages cannot fail, and a closed pipe is reported by the reader.
        if let (Some(input), Ok(line)) = (&*self.input(), serde_json::to_string(line)) {
            let _ = input.send(line);
        }
    }
}

impl Drop for Process {
    /// Never leaves a process behind, not even if the kit panics.
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        if self.input().take().is_some() {
            self.shared.kill();
        }
    }
}

impl Shared {
    /// Delivers every line of the output until it ends, and then records how the process ended.
    fn read_replies(&self, stdout: ChildStdout, errors_end: &mpsc::Receiver<()>) {
        let mut reader = BufReader::new(stdout);
        let partial = loop {
            let problem = match read_line(&mut reader) {
                Ok(Line::Complete(line)) => match self.handle_line(&line) {
                    Ok(()) => continue,
                    Err(problem) => problem,
                },
                Ok(Line::TooLong) => format!("it wrote a line of more than {MAX_LINE_BYTES} bytes"),
                Ok(Line::Partial(line)) => break Some(line),
                Ok(Line::End) => break None,
                Err(error) => format!("its output cannot be read: {error}"),
            };
            self.break_off(&problem);
            return;
        };
        let status = self.wait_or_kill(END_LIMIT);
        if self.closing.load(Ordering::SeqCst) || self.may_crash.load(Ordering::SeqCst) {
            self.calls.end(End::Crashed);
            return;
        }
        // What it wrote last usually says why.
        let _ = errors_end.recv_timeout(Duration::from_millis(500));
        let status = status.map_or("no exit status".to_owned(), |status| status.to_string());
        let within = partial.map_or(String::new(), |line| format!(", within the line {line}"));
        self.break_off(&format!("it ended with {status}{within}"));
    }

    /// Delivers the reply in a line.
    fn handle_line(&self, line: &str) -> Result<(), String> {
        let parsed = parse_reply(line);
        let (id, reply) = parsed.map_err(|error| {
            format!(
                "it wrote a line that is no reply ({error}): {}",
                shorten(line)
            )
        })?;
        self.calls.deliver(id, reply)
    }

    /// Shows what the process writes to its standard error.
    fn show_errors(&self, stderr: ChildStderr, label: &str) {
        let mut reader = BufReader::new(stderr);
        let mut line = Vec::new();
        // A line without an end is shown in parts. The pipe must never be full.
        while let Ok(1..) = reader.by_ref().take(1 << 16).read_until(b'\n', &mut line) {
            let text = shorten(String::from_utf8_lossy(&line).trim_end());
            eprintln!("{label}: {text}");
            line.clear();
            let mut last = self
                .last_errors
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if last.len() == LAST_LINES {
                last.pop_front();
            }
            last.push_back(text);
        }
    }

    fn break_off(&self, problem: &str) -> String {
        let last = self
            .last_errors
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let last: Vec<_> = last.iter().map(String::as_str).collect();
        let mut text = format!("the backend's process broke the protocol: {problem}");
        if !last.is_empty() {
            text += &format!("; it wrote last: {}", last.join(" | "));
        }
        // The problem is recorded before the calls end, because a caller reads the problems when its call has ended.
        if self.calls.ended().is_none() && !self.closing.load(Ordering::SeqCst) {
            self.problems.add(&text);
        }
        self.calls.end(End::Broken(text.clone()));
        self.kill();
        text
    }

    fn kill(&self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have ended already.
        let _ = child.kill();
        let _ = child.wait();
    }

    /// Waits for the end of the process, and kills it after `limit`.
    fn wait_or_kill(&self, limit: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        loop {
            let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
            match child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if start.elapsed() < limit => {}
                Ok(None) | Err(_) => {
                    drop(child);
                    self.kill();
                    return None;
                }
            }
            drop(child);
            sleep(Duration::from_millis(2));
        }
    }
}

/// Writes lines until there are no more, and closes the pipe.
fn write_lines(mut stdin: ChildStdin, lines: &mpsc::Receiver<String>) {
    for mut line in lines {
        line.push('\n');
        // A process that does not read its input any more is reported by the reader.
        if stdin.write_all(line.as_bytes()).is_err() || stdin.flush().is_err() {
            return;
        }
    }
}

/// What is read from the output.
enum Line {
    Complete(String),
    /// The output ended within a line. The text is cut for a message.
    Partial(String),
    TooLong,
    End,
}

/// Reads a line.
fn read_line(reader: &mut impl BufRead) -> io::Result<Line> {
    let mut line = Vec::new();
    let limit = MAX_LINE_BYTES as u64 + 1;
    reader.by_ref().take(limit).read_until(b'\n', &mut line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
        let text = String::from_utf8(line);
        return text
            .map(Line::Complete)
            .map_err(|_| io::Error::other("a line is not UTF-8"));
    }
    Ok(match line.len() {
        0 => Line::End,
        length if length > MAX_LINE_BYTES => Line::TooLong,
        _ => Line::Partial(shorten(&String::from_utf8_lossy(&line))),
    })
}

/// Cuts a line for a message.
fn shorten(line: &str) -> String {
    match line.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line.to_owned(),
    }
}
