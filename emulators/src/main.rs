//! The emulators as a program: `fleetwright-emulators ec2 --listen 127.0.0.1:4566`.
#![cfg_attr(
    not(any(feature = "azure", feature = "ec2", feature = "gcp")),
    allow(
        dead_code,
        unreachable_code,
        clippy::needless_pass_by_value,
        reason = "without a cloud nothing is started"
    )
)]

use std::{fs, net::SocketAddr, path::PathBuf, process::ExitCode, thread};

use clap::{Args, Parser, Subcommand};
use serde::de::DeserializeOwned;

/// Clouds on loopback, for the clients of any language.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    cloud: Cloud,
}

#[derive(Debug, Subcommand)]
enum Cloud {
    /// Azure Resource Manager's API.
    #[cfg(feature = "azure")]
    Azure(azure::Options),
    /// EC2's query protocol.
    #[cfg(feature = "ec2")]
    Ec2(ec2::Options),
    /// Compute Engine's REST API.
    #[cfg(feature = "gcp")]
    Gcp(gcp::Options),
}

/// What every cloud is told.
#[derive(Debug, Args)]
struct Common {
    /// Listen at an address that other machines can reach. Nothing is authenticated.
    #[arg(long)]
    allow_remote: bool,
    /// Where all chance comes from.
    #[arg(long)]
    seed: Option<u64>,
    /// A JSON file of knobs; what it leaves out keeps its default.
    #[arg(long, value_name = "FILE")]
    knobs: Option<PathBuf>,
}

fn main() -> ExitCode {
    if let Err(message) = serve(Cli::parse().cloud) {
        eprintln!("error: {message}");
    }
    ExitCode::FAILURE
}

/// Serves a cloud; comes back only if that is not possible.
fn serve(cloud: Cloud) -> Result<(), String> {
    match cloud {
        #[cfg(feature = "azure")]
        Cloud::Azure(options) => azure::serve(options),
        #[cfg(feature = "ec2")]
        Cloud::Ec2(options) => ec2::serve(options),
        #[cfg(feature = "gcp")]
        Cloud::Gcp(options) => gcp::serve(options),
    }
}

/// Says where a cloud listens, and lets it until the program is ended.
fn wait(cloud: &str, endpoint: &str) -> ! {
    println!("{cloud} listens at {endpoint}");
    loop {
        thread::park();
    }
}

impl Common {
    fn check(&self, listen: SocketAddr) -> Result<(), String> {
        if listen.ip().is_loopback() || self.allow_remote {
            return Ok(());
        }
        Err(format!(
            "{listen} is not a loopback address; say --allow-remote if you mean it"
        ))
    }

    fn read_knobs<K: DeserializeOwned + Default>(&self) -> Result<K, String> {
        let Some(path) = &self.knobs else {
            return Ok(K::default());
        };
        let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

#[cfg(feature = "azure")]
mod azure {
    use std::net::SocketAddr;

    use fleetwright_emulators::azure::{AzureEmulator, Knobs};

    use super::Common;

    #[derive(Debug, clap::Args)]
    pub(super) struct Options {
        /// Where to listen; port 0 takes a free one.
        #[arg(long, default_value = "127.0.0.1:4568")]
        listen: SocketAddr,
        #[command(flatten)]
        common: Common,
        /// Know this bearer token, and no other; may be given more than once.
        #[arg(long = "token", value_name = "TOKEN")]
        tokens: Vec<String>,
        /// This subscription exists, and no other; may be given more than once.
        #[arg(long = "subscription", value_name = "ID")]
        subscriptions: Vec<String>,
    }

    pub(super) fn serve(options: Options) -> Result<(), String> {
        options.common.check(options.listen)?;
        let mut knobs: Knobs = options.common.read_knobs()?;
        knobs.seed = options.common.seed.unwrap_or(knobs.seed);
        knobs.tokens.extend(options.tokens);
        knobs.subscriptions.extend(options.subscriptions);
        let emulator = AzureEmulator::start_at(options.listen, knobs)
            .map_err(|error| format!("{}: {error}", options.listen))?;
        super::wait("azure", &emulator.endpoint())
    }
}

#[cfg(feature = "ec2")]
mod ec2 {
    use std::net::SocketAddr;

    use fleetwright_emulators::ec2::{Ec2Emulator, Knobs};

    use super::Common;

    #[derive(Debug, clap::Args)]
    pub(super) struct Options {
        /// Where to listen; port 0 takes a free one.
        #[arg(long, default_value = "127.0.0.1:4566")]
        listen: SocketAddr,
        #[command(flatten)]
        common: Common,
        /// Also know this access key id; may be given more than once.
        #[arg(long = "access-key", value_name = "ID")]
        access_keys: Vec<String>,
    }

    pub(super) fn serve(options: Options) -> Result<(), String> {
        options.common.check(options.listen)?;
        let mut knobs: Knobs = options.common.read_knobs()?;
        knobs.seed = options.common.seed.unwrap_or(knobs.seed);
        knobs.access_keys.extend(options.access_keys);
        let emulator = Ec2Emulator::start_at(options.listen, knobs)
            .map_err(|error| format!("{}: {error}", options.listen))?;
        super::wait("ec2", &emulator.endpoint())
    }
}

#[cfg(feature = "gcp")]
mod gcp {
    use std::net::SocketAddr;

    use fleetwright_emulators::gcp::{GcpEmulator, Knobs};

    use super::Common;

    #[derive(Debug, clap::Args)]
    pub(super) struct Options {
        /// Where to listen; port 0 takes a free one.
        #[arg(long, default_value = "127.0.0.1:4567")]
        listen: SocketAddr,
        #[command(flatten)]
        common: Common,
        /// Know this access token, and no other; may be given more than once.
        #[arg(long = "access-token", value_name = "TOKEN")]
        access_tokens: Vec<String>,
        /// This project exists, and no other; may be given more than once.
        #[arg(long = "project", value_name = "NAME")]
        projects: Vec<String>,
    }

    pub(super) fn serve(options: Options) -> Result<(), String> {
        options.common.check(options.listen)?;
        let mut knobs: Knobs = options.common.read_knobs()?;
        knobs.seed = options.common.seed.unwrap_or(knobs.seed);
        knobs.access_tokens.extend(options.access_tokens);
        knobs.projects.extend(options.projects);
        let emulator = GcpEmulator::start_at(options.listen, knobs)
            .map_err(|error| format!("{}: {error}", options.listen))?;
        super::wait("gcp", &emulator.endpoint())
    }
}
