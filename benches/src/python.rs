//! The Python environment of `emulators/peers/run`, and its clients as programs that make calls.
//!
//! Owns the processes. Without that environment the variants in Python are left out, and the program says why.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde::Deserialize;

/// The root of the workspace.
pub fn root() -> &'static Path {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR"));
    benches.parent().unwrap_or(benches)
}

/// Returns the interpreter of the environment with the pinned clients.
///
/// # Errors
///
/// What is missing, and how to get it.
pub fn interpreter() -> Result<PathBuf, String> {
    let peers = root().join("target/peers");
    let found = std::fs::read_dir(&peers).into_iter().flatten().flatten();
    let complete = found.map(|entry| entry.path());
    let complete = complete.filter(|path| path.join("complete").exists());
    let python = complete.map(|path| path.join("bin/python")).max();
    python.ok_or_else(|| {
        "there is no environment in target/peers; emulators/peers/run creates it".to_owned()
    })
}

/// What a client reports of some calls.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Report {
    /// The time of all calls in nanoseconds.
    pub ns: f64,
    /// Their processor time in nanoseconds.
    pub cpu_ns: f64,
    /// The time to the first item of a list in nanoseconds.
    pub first_ns: f64,
    /// The number of items of a list.
    pub items: usize,
}

/// A running client.
#[derive(Debug)]
pub struct Client {
    child: Child,
    asked: ChildStdin,
    reported: BufReader<ChildStdout>,
}

impl Client {
    /// Starts a client by its name in `client.py`.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn start(name: &str, endpoint: &str) -> Result<Self, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/client.py");
        let mut child = Command::new(interpreter()?)
            .arg("-B")
            .arg(script)
            .args([name, endpoint])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{name} does not start: {error}"))?;
        let (asked, reported) = (child.stdin.take(), child.stdout.take());
        let (Some(asked), Some(reported)) = (asked, reported) else {
            return Err(format!("{name} has no pipes"));
        };
        let mut client = Self {
            child,
            asked,
            reported: BufReader::new(reported),
        };
        client.line().map_err(|error| format!("{name}: {error}"))?;
        Ok(client)
    }

    /// Makes `count` calls of an operation. `name` names what is launched.
    pub fn call(&mut self, operation: &str, name: &str, count: u32) -> Report {
        let asked = serde_json::json!({ "operation": operation, "name": name, "count": count });
        writeln!(self.asked, "{asked}").expect("a client that reads");
        let line = self.line().expect("a client that answers");
        serde_json::from_str(&line).expect("a report")
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.reported.read_line(&mut line) {
            Ok(0) => Err("the client has ended".to_owned()),
            Ok(_) => Ok(line),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
