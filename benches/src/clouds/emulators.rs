//! The emulators themselves: requests per second, with small and large fleets, and beside moto on EC2.
//!
//! The client sends finished requests over a few connections and reads the whole response, so nearly all of the work is the server's.
//! The emulator runs in this process on a thread of its own, moto in a process of its own.

use std::{
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use reqwest::Client;
use tokio::runtime::Runtime;

use super::{
    sdk::{Sdk as _, TAG, Token, azure, ec2, gcp},
    world::{Vendor, World},
};
use crate::{
    measure::{Amount, Effort, Row, Variant, interleave},
    python,
};

/// How many requests are sent at the same time.
const AT_ONCE: usize = 16;
/// The size of moto's fleet, which takes it a while to launch.
const MOTO_FLEET: u32 = 1_000;
/// A signature whose form is right. Neither the emulator nor moto computes it.
const SIGNATURE: &str = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/ec2/aws4_request, SignedHeaders=host, \
    Signature=0000000000000000000000000000000000000000000000000000000000000000";

/// A request that is measured.
#[derive(Clone, Copy, Debug)]
enum Operation {
    ReadOne,
    ListPage,
    StopAndStart,
}

impl Operation {
    const ALL: [Self; 3] = [Self::ReadOne, Self::ListPage, Self::StopAndStart];

    const fn name(self) -> &'static str {
        match self {
            Self::ReadOne => "read one",
            Self::ListPage => "a page of a list",
            Self::StopAndStart => "stop and start",
        }
    }
}

/// A server with a fleet, and a client of it.
struct Server {
    vendor: Vendor,
    endpoint: String,
    client: Client,
    names: Vec<String>,
    next: usize,
    /// Ends with this.
    _running: Running,
}

enum Running {
    Emulator { _world: Box<World> },
    Moto { _process: Process },
}

/// A process that ends with this.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    async fn emulator(vendor: Vendor, size: u32) -> Self {
        let world = World::start(vendor, Duration::ZERO).await;
        let populated = world.emulator.populate(size).into_iter();
        let name = |id: String| id.rsplit('/').next().map(ToOwned::to_owned);
        Self {
            vendor,
            endpoint: world.emulator.endpoint(),
            client: Client::new(),
            names: populated.filter_map(name).collect(),
            next: 0,
            _running: Running::Emulator {
                _world: Box::new(world),
            },
        }
    }

    /// Starts moto with instances.
    async fn moto() -> Result<Self, String> {
        let python = python::interpreter()?;
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0));
        let port = listener.and_then(|it| it.local_addr());
        let port = port.map_err(|error| error.to_string())?.port();
        let child = Command::new(python)
            .args(["-B", "-m", "moto.server", "-H", "127.0.0.1", "-p"])
            .arg(port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let process = Process(child.map_err(|error| format!("moto does not start: {error}"))?);
        for _ in 0..600 {
            if tokio::net::TcpStream::connect(("127.0.0.1", port))
                .await
                .is_ok()
            {
                let endpoint = format!("http://127.0.0.1:{port}");
                let sdk = ec2::Ec2Sdk::new(&endpoint);
                return Ok(Self {
                    vendor: Vendor::Ec2,
                    names: sdk.launch("fleet", Token::Absent, MOTO_FLEET).await,
                    endpoint,
                    client: Client::new(),
                    next: 0,
                    _running: Running::Moto { _process: process },
                });
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err("moto does not listen after a minute".to_owned())
    }

    /// Sends the requests of `count` operations, [`AT_ONCE`] operations at the same time.
    async fn run(&mut self, operation: Operation, count: u32) {
        let mut names = Vec::new();
        for _ in 0..count {
            // Another one at each call.
            self.next = (self.next + 7919) % self.names.len();
            names.push(self.names[self.next].clone());
        }
        let server = &*self;
        let sent = names.iter().map(|name| server.operate(operation, name));
        stream::iter(sent.collect::<Vec<_>>())
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<()>>()
            .await;
    }

    async fn operate(&self, operation: Operation, name: &str) {
        match operation {
            Operation::ReadOne => self.send(&self.read(name)).await,
            Operation::ListPage => self.send(&self.page()).await,
            Operation::StopAndStart => {
                for verb in ["stop", "start"] {
                    self.send(&self.change(verb, name)).await;
                }
            }
        }
    }

    fn read(&self, name: &str) -> Request {
        match self.vendor {
            Vendor::Ec2 => Request::ec2(&format!("DescribeInstances&InstanceId.1={name}")),
            Vendor::Gcp => Request::get(&format!("{}/{name}", gcp_path())),
            Vendor::Azure => {
                Request::get(&azure_path(&format!("/{name}"), "&$expand=instanceView"))
            }
        }
    }

    fn page(&self) -> Request {
        match self.vendor {
            Vendor::Ec2 => Request::ec2(&format!(
                "DescribeInstances&MaxResults=50&Filter.1.Name=tag:{}&Filter.1.Value.1={}",
                TAG.0, TAG.1
            )),
            Vendor::Gcp => Request::get(&format!(
                "{}?maxResults=50&filter=labels.{}%3D{}",
                gcp_path(),
                TAG.0,
                TAG.1
            )),
            Vendor::Azure => Request::get(&azure_path("", "")),
        }
    }

    fn change(&self, verb: &str, name: &str) -> Request {
        match self.vendor {
            Vendor::Ec2 => {
                let action = if verb == "stop" {
                    "StopInstances"
                } else {
                    "StartInstances"
                };
                Request::ec2(&format!("{action}&InstanceId.1={name}"))
            }
            Vendor::Gcp => Request::post(&format!("{}/{name}/{verb}", gcp_path())),
            Vendor::Azure => {
                let action = if verb == "stop" { "deallocate" } else { verb };
                Request::post(&azure_path(&format!("/{name}/{action}"), ""))
            }
        }
    }

    async fn send(&self, request: &Request) {
        let url = format!("{}{}", self.endpoint, request.path);
        let sent = match &request.body {
            None => self.client.get(url),
            Some(body) => self.client.post(url).body(body.clone()),
        };
        let sent = match self.vendor {
            Vendor::Ec2 => sent
                .header("authorization", SIGNATURE)
                .header("x-amz-date", "20260101T000000Z")
                .header("content-type", "application/x-www-form-urlencoded"),
            Vendor::Gcp | Vendor::Azure => sent.header("authorization", "Bearer any"),
        };
        let response = sent.send().await.expect("a response");
        let status = response.status();
        let body = response.bytes().await.expect("a body");
        let text = String::from_utf8_lossy(&body);
        assert!(status.is_success(), "{status} for {}: {text}", request.path);
    }
}

/// A request without its host.
struct Request {
    path: String,
    /// A GET has none.
    body: Option<String>,
}

impl Request {
    fn ec2(parameters: &str) -> Self {
        Self {
            path: "/".to_owned(),
            body: Some(format!("Version=2016-11-15&Action={parameters}")),
        }
    }

    fn get(path: &str) -> Self {
        let path = path.to_owned();
        Self { path, body: None }
    }

    fn post(path: &str) -> Self {
        let (path, body) = (path.to_owned(), Some(String::new()));
        Self { path, body }
    }
}

fn gcp_path() -> String {
    let (project, zone) = (gcp::PROJECT, gcp::ZONE);
    format!("/compute/v1/projects/{project}/zones/{zone}/instances")
}

fn azure_path(rest: &str, query: &str) -> String {
    let (subscription, group) = (azure::SUBSCRIPTION, azure::GROUP);
    format!(
        "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachines{rest}?api-version=2024-07-01{query}"
    )
}

/// Measures every emulator and size, and moto.
pub fn run(effort: Effort) -> Vec<Row> {
    let runtime = Arc::new(super::runtime());
    let large = effort.fleet.max(10_000);
    Vendor::ALL
        .into_iter()
        .flat_map(|vendor| cloud(effort, &runtime, vendor, [1_000, large]))
        .collect()
}

fn cloud(effort: Effort, runtime: &Arc<Runtime>, vendor: Vendor, sizes: [u32; 2]) -> Vec<Row> {
    let mut rows = Vec::new();
    for operation in Operation::ALL {
        let mut servers = Vec::new();
        for size in sizes {
            let server = runtime.block_on(Server::emulator(vendor, size));
            servers.push((format!("{size} instances"), server));
        }
        if vendor == Vendor::Ec2 {
            match runtime.block_on(Server::moto()) {
                Ok(moto) => servers.push((format!("moto, {MOTO_FLEET} instances"), moto)),
                Err(reason) => eprintln!("not measured: moto: {reason}"),
            }
        }
        let mut variants: Vec<Variant<'_>> = servers
            .into_iter()
            .map(|(name, mut server)| -> Variant<'_> {
                let runtime = Arc::clone(runtime);
                let run = move |count| runtime.block_on(server.run(operation, count));
                (name, Box::new(run))
            })
            .collect();
        let times = interleave(effort, &mut variants);
        for ((variant, _), (median_ns, spread_ns)) in variants.iter().zip(times) {
            let requests = match operation {
                Operation::ReadOne | Operation::ListPage => 1.0,
                Operation::StopAndStart => 2.0,
            };
            rows.push(Row {
                group: "emulators",
                operation: format!("{}: {}", vendor.name(), operation.name()),
                variant: variant.clone(),
                median_ns,
                spread_ns,
                details: vec![(
                    "requests per second",
                    Amount::Count((requests * 1e9 / median_ns).round()),
                )],
                ..Row::default()
            });
        }
    }
    rows
}
