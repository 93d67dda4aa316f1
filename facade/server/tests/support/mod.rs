//! A service in a process of its own, and an HTTP client that sends exactly what a test says.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

use std::{
    fmt::Write as _,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

/// The program: that of the package whose test this is.
pub const PROGRAM: &str = match (
    option_env!("CARGO_BIN_EXE_fleetwright-server"),
    option_env!("CARGO_BIN_EXE_server-e2e"),
) {
    (Some(program), _) | (None, Some(program)) => program,
    (None, None) => panic!("the package has no program"),
};

/// A running program. It is killed when it is dropped.
pub struct Running {
    pub child: Child,
    pub address: SocketAddr,
    /// What it printed before it was ready.
    pub greeting: String,
}

impl Running {
    /// Starts the sample.
    pub fn sample() -> Self {
        Self::start(&["--listen", "127.0.0.1:0"])
    }

    /// Starts the sample with its records in memory.
    pub fn sample_in_memory() -> Self {
        Self::start(&["--listen", "127.0.0.1:0", "--in-memory"])
    }

    /// Starts the program with a configuration file.
    pub fn with_config(config: &Path) -> Self {
        Self::start(&[
            "--listen",
            "127.0.0.1:0",
            "--config",
            config.to_str().unwrap(),
        ])
    }

    /// Starts the program with a configuration file and environment variables.
    pub fn with_environment(config: &Path, variables: &[(&str, &str)]) -> Self {
        let mut program = Command::new(PROGRAM);
        program
            .args(["--listen", "127.0.0.1:0", "--config"])
            .arg(config)
            .envs(variables.iter().copied())
            .env("RUST_LOG", "warn");
        Self::spawn(program, false)
    }

    /// Starts the sample with a log of every request, as JSON.
    pub fn sample_with_log() -> Self {
        let mut program = Command::new(PROGRAM);
        program
            .args(["--listen", "127.0.0.1:0", "--log", "json"])
            .env("RUST_LOG", "info")
            .stderr(Stdio::piped());
        Self::spawn(program, true)
    }

    /// Starts the service of a configuration with a log of every request, as JSON.
    pub fn with_log(config: &Path) -> Self {
        let mut program = Command::new(PROGRAM);
        program
            .args(["--listen", "127.0.0.1:0", "--log", "json", "--config"])
            .arg(config)
            .env("RUST_LOG", "info")
            .stderr(Stdio::piped());
        Self::spawn(program, false)
    }

    /// Sends SIGTERM and returns what the program logged.
    pub fn log_after_sigterm(&mut self) -> String {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        let mut log = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut log)
            .unwrap();
        assert!(self.child.wait().unwrap().success());
        log
    }

    fn start(arguments: &[&str]) -> Self {
        let mut program = Command::new(PROGRAM);
        program.args(arguments).env("RUST_LOG", "warn");
        Self::spawn(program, !arguments.contains(&"--config"))
    }

    fn spawn(mut program: Command, is_sample: bool) -> Self {
        let mut child = program.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        lines.read_line(&mut greeting).unwrap();
        let address = greeting
            .trim()
            .rsplit_once("://")
            .expect("the ready line")
            .1;
        let address = address.parse().unwrap();
        // Only the sample prints more, and its last line is known.
        while is_sample && !greeting.contains("openapi.json") {
            assert!(lines.read_line(&mut greeting).unwrap() > 0, "{greeting}");
        }
        Self {
            child,
            address,
            greeting,
        }
    }

    /// The token that the sample printed.
    pub fn token(&self) -> String {
        let line = self
            .greeting
            .lines()
            .find_map(|line| line.strip_prefix("export TOKEN="));
        line.unwrap().to_owned()
    }

    pub fn client(&self, token: &str) -> Client {
        Client {
            address: self.address,
            token: Some(token.to_owned()),
        }
    }

    /// Sends SIGTERM and returns the exit code.
    pub fn terminate(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of one caller.
#[derive(Clone)]
pub struct Client {
    pub address: SocketAddr,
    pub token: Option<String>,
}

/// A response.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Fails unless it has this status.
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// The code of the problem.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap().to_owned()
    }
}

impl Client {
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], None)
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[], Some(body))
    }

    pub fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, &[], Some(body))
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], None)
    }

    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Answer {
        self.try_send(method, path, headers, body).unwrap()
    }

    pub fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> std::io::Result<Answer> {
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n");
        if let Some(token) = &self.token {
            let _ = write!(text, "Authorization: Bearer {token}\r\n");
        }
        for (name, value) in headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        let body = body.map(ToString::to_string).unwrap_or_default();
        if !body.is_empty() {
            text.push_str("Content-Type: application/json\r\n");
        }
        let _ = write!(text, "Content-Length: {}\r\n\r\n{body}", body.len());
        self.raw(text.as_bytes())
    }

    /// Sends bytes and reads until the other side closes.
    pub fn raw(&self, bytes: &[u8]) -> std::io::Result<Answer> {
        let mut stream = self.connect()?;
        // The service may respond and close before it has read everything.
        let _ = stream.write_all(bytes);
        let mut all = Vec::new();
        let read = stream.read_to_end(&mut all);
        if all.is_empty() {
            read?;
        }
        Ok(parse(&String::from_utf8_lossy(&all)))
    }

    pub fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect(self.address)?;
        // So that a service that never responds fails the test.
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        Ok(stream)
    }

    /// Opens a watch.
    pub fn watch(&self, path: &str, headers: &[(&str, &str)]) -> Events {
        let mut stream = self.connect().unwrap();
        let token = self.token.as_deref().unwrap();
        let mut text =
            format!("GET {path} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {token}\r\n");
        for (name, value) in headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        text.push_str("\r\n");
        stream.write_all(text.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let mut status = String::new();
        lines.read_line(&mut status).unwrap();
        Events { lines, status }
    }
}

pub fn parse(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let status = status.and_then(|status| status.parse().ok()).unwrap_or(0);
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let is_chunked = headers
        .iter()
        .any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let text = if is_chunked {
        unchunk(body)
    } else {
        body.to_owned()
    };
    Answer {
        status,
        headers,
        text,
    }
}

fn unchunk(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).unwrap_or(0);
        if length == 0 || rest.len() < length {
            break;
        }
        text.push_str(&rest[..length]);
        body = rest.get(length + 2..).unwrap_or_default();
    }
    text
}

/// The events of a watch.
pub struct Events {
    lines: BufReader<TcpStream>,
    /// The line with the status.
    pub status: String,
}

/// One event.
#[derive(Clone, Debug, Default)]
pub struct Event {
    pub name: String,
    pub id: Option<String>,
    pub data: Value,
}

impl Events {
    /// The next event with this name.
    pub fn next(&mut self, name: &str) -> Event {
        loop {
            let event = self.read();
            if event.name == name {
                return event;
            }
        }
    }

    /// Reads until the service ends the watch.
    pub fn read_to_end(mut self) {
        let mut rest = Vec::new();
        self.lines.read_to_end(&mut rest).unwrap();
    }

    fn read(&mut self) -> Event {
        let mut event = Event::default();
        loop {
            let mut line = String::new();
            assert!(
                self.lines.read_line(&mut line).unwrap() > 0,
                "the watch ended"
            );
            if let Some(name) = line.strip_prefix("event: ") {
                name.trim().clone_into(&mut event.name);
            } else if let Some(data) = line.strip_prefix("data: ") {
                event.data = serde_json::from_str(data).unwrap();
            } else if let Some(id) = line.strip_prefix("id: ") {
                event.id = Some(id.trim().to_owned());
            } else if line.trim().is_empty() && !event.name.is_empty() {
                return event;
            }
        }
    }
}

/// The tenant of the sample: the ids of its organization, project and network.
pub struct Tenant {
    pub organization: String,
    pub project: String,
    pub network: String,
}

impl Tenant {
    /// The only one that the caller sees.
    pub fn only(client: &Client) -> Self {
        let network = client.get("/api/v2/networks").expect(200).json()["items"][0].clone();
        let id = |field: &str| network[field].as_str().unwrap().to_owned();
        Self {
            organization: id("organizationId"),
            project: id("projectId"),
            network: id("id"),
        }
    }

    /// Creates an organization with a project, a network and a user.
    pub fn create(admin: &Client, name: &str, user: &str) -> Self {
        let id = |answer: Answer| answer.expect(201).json()["id"].as_str().unwrap().to_owned();
        let organization = id(admin.post("/api/v2/organizations", &json!({"name": name})));
        let projects = format!("/api/v2/organizations/{organization}/projects");
        let project = id(admin.post(&projects, &json!({"name": "shop"})));
        let scope = json!({"organizationId": organization, "projectId": project});
        let binding =
            json!({"actor": format!("user:{user}"), "role": "project-user", "scope": scope});
        admin.post("/api/v2/rolebindings", &binding).expect(201);
        let new = json!({
            "organizationId": organization, "projectId": project, "regionId": "north", "name": "blue", "prefix": "10.0.0.0/16",
        });
        let network = id(admin.post("/api/v2/networks", &new));
        Self {
            organization,
            project,
            network,
        }
    }

    pub fn instance(&self, name: &str) -> Value {
        json!({
            "metadata": {"name": name},
            "spec": {
                "organizationId": self.organization, "projectId": self.project, "networkId": self.network,
                "flavorId": "standard-2", "imageId": "debian-13",
            },
        })
    }
}

/// A configuration in a folder, with tokens that the program created.
pub struct Files {
    pub folder: tempfile::TempDir,
}

impl Files {
    pub fn new(limits: &str) -> Self {
        Self::with_regions(&format!(
            "[[region]]\nprovider = 'memory'\nmapping = 'mapping.toml'\n[limits]\n{limits}\n"
        ))
    }

    /// A configuration that ends with these lines.
    pub fn with_regions(regions: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/src/sample");
        for name in ["catalog.toml", "mapping.toml"] {
            std::fs::copy(sources.join(name), folder.path().join(name)).unwrap();
        }
        let config = format!(
            "database = 'fleet.db'\ncatalog = 'catalog.toml'\ntokens = 'tokens.toml'\nadministrator = 'olga'\n{regions}"
        );
        std::fs::write(folder.path().join("server.toml"), config).unwrap();
        Self { folder }
    }

    pub fn token(&self, actor: &str) -> String {
        let created = Command::new(PROGRAM)
            .args(["token", "new", "--actor", actor, "--tokens"])
            .arg(self.folder.path().join("tokens.toml"))
            .output()
            .unwrap();
        assert!(created.status.success(), "{created:?}");
        String::from_utf8(created.stdout).unwrap().trim().to_owned()
    }

    /// Checks the files with the program.
    pub fn check(&self) -> Output {
        let config = self.folder.path().join("server.toml");
        let mut program = Command::new(PROGRAM);
        program.arg("--check").arg("--config").arg(config);
        program.output().unwrap()
    }

    pub fn start(&self) -> Running {
        Running::with_config(&self.folder.path().join("server.toml"))
    }
}
