//! The program against a service in this process.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "each test program uses a part"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

use fleetwright_server::Server;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

/// The program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_fleetwright");

/// A running sample: a simulated cloud, and records in SQLite or in memory.
pub struct Service {
    pub runtime: Runtime,
    pub server: Option<Server>,
    pub folder: tempfile::TempDir,
    pub url: String,
    pub token: String,
}

impl Service {
    pub fn start() -> Self {
        Self::start_with(async |folder| {
            Server::sample(folder, "127.0.0.1:0".parse().unwrap()).await
        })
    }

    pub fn start_in_memory() -> Self {
        Self::start_with(async |_| Server::sample_in_memory("127.0.0.1:0".parse().unwrap()).await)
    }

    fn start_with(
        start: impl AsyncFnOnce(&Path) -> Result<Server, fleetwright_server::ServerError>,
    ) -> Self {
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let server = runtime.block_on(start(folder.path())).unwrap();
        Self {
            url: format!("http://{}", server.address()),
            token: server.token().unwrap().to_owned(),
            runtime,
            server: Some(server),
            folder,
        }
    }

    /// The program with address and token in its environment, and nothing else of this machine.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program(arguments);
        command
            .env("FLEETWRIGHT_URL", &self.url)
            .env("FLEETWRIGHT_TOKEN", &self.token);
        command
    }

    /// Runs a command. No output of any command may have the token.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(!shown.contains(&self.token), "{arguments:?}: {shown}");
        output
    }

    /// Runs a command that must succeed, and returns what it prints.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        text(&output.stdout)
    }

    /// The same, and reads the JSON that it prints.
    pub fn json<T: DeserializeOwned>(&self, arguments: &[&str]) -> T {
        let mut all = arguments.to_vec();
        all.extend(["-o", "json"]);
        let printed = self.ok(&all);
        serde_json::from_str(&printed)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {printed}"))
    }

    /// Runs a command that must end with a code, and returns what it reports.
    pub fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {output:?}"
        );
        text(&output.stderr)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.shutdown());
        }
    }
}

/// The program without any setting of this machine.
pub fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null());
    command
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Writes a file that only its owner can read.
pub fn write_secret(path: &Path, content: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}
