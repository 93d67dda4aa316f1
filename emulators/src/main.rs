//! The emulators as a program: `fleetwright-emulators ec2 --listen 127.0.0.1:4566`.
//!
//! Parses the command line, reads the knobs file, and serves one cloud until the process ends.
#![cfg_attr(
    not(any(feature = "azure", feature = "ec2", feature = "gcp")),
    allow(
        dead_code,
        unused_imports,
        unreachable_code,
        clippy::needless_pass_by_value,
        reason = "no cloud feature is enabled, so nothing can be served"
    )
)]

use std::{fs, net::SocketAddr, path::PathBuf, process::ExitCode, thread};

use clap::{Args, Parser, Subcommand};
use fleetwright_emulators::{Cloud, Emulator};
use serde::de::DeserializeOwned;

/// Emulators of EC2, Compute Engine and Azure on a local port, for clients of any language.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the Azure Resource Manager API.
    #[cfg(feature = "azure")]
    Azure(AzureOptions),
    /// Serve the EC2 query protocol.
    #[cfg(feature = "ec2")]
    Ec2(Ec2Options),
    /// Serve the Compute Engine REST API.
    #[cfg(feature = "gcp")]
    Gcp(GcpOptions),
}

/// The options that every cloud has.
#[derive(Debug, Args)]
struct Common {
    /// Accept a listen address that other machines can reach. The emulators do not authenticate
    /// callers.
    #[arg(long)]
    allow_remote: bool,
    /// Seed of all random choices: ids and lags. Overrides the knobs file.
    #[arg(long)]
    seed: Option<u64>,
    /// JSON file with knobs. Knobs that it leaves out keep their defaults.
    #[arg(long, value_name = "FILE")]
    knobs: Option<PathBuf>,
}

#[cfg(feature = "azure")]
#[derive(Debug, Args)]
struct AzureOptions {
    /// Address and port to listen on. Port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:4568")]
    listen: SocketAddr,
    #[command(flatten)]
    common: Common,
    /// Accept only this bearer token. Repeat the option to accept several.
    #[arg(long = "token", value_name = "TOKEN")]
    tokens: Vec<String>,
    /// Refuse every subscription but this one. Repeat the option to accept several.
    #[arg(long = "subscription", value_name = "ID")]
    subscriptions: Vec<String>,
}

#[cfg(feature = "ec2")]
#[derive(Debug, Args)]
struct Ec2Options {
    /// Address and port to listen on. Port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:4566")]
    listen: SocketAddr,
    #[command(flatten)]
    common: Common,
    /// Also accept this access key id, besides `test`. Repeat the option to accept several.
    #[arg(long = "access-key", value_name = "ID")]
    access_keys: Vec<String>,
}

#[cfg(feature = "gcp")]
#[derive(Debug, Args)]
struct GcpOptions {
    /// Address and port to listen on. Port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:4567")]
    listen: SocketAddr,
    #[command(flatten)]
    common: Common,
    /// Accept only this access token. Repeat the option to accept several.
    #[arg(long = "access-token", value_name = "TOKEN")]
    access_tokens: Vec<String>,
    /// Refuse every project but this one and those of the public images. Repeat the option to accept
    /// several.
    #[arg(long = "project", value_name = "NAME")]
    projects: Vec<String>,
}

fn main() -> ExitCode {
    if let Err(message) = run(Cli::parse().command) {
        eprintln!("error: {message}");
    }
    ExitCode::FAILURE
}

/// Serves a cloud. Returns only if that is not possible.
fn run(command: Command) -> Result<(), String> {
    match command {
        #[cfg(feature = "azure")]
        Command::Azure(options) => {
            let mut knobs: fleetwright_emulators::azure::Knobs = options.common.read_knobs()?;
            knobs.seed = options.common.seed.unwrap_or(knobs.seed);
            knobs.tokens.extend(options.tokens);
            knobs.subscriptions.extend(options.subscriptions);
            serve::<fleetwright_emulators::azure::Azure>(options.listen, &options.common, knobs)
        }
        #[cfg(feature = "ec2")]
        Command::Ec2(options) => {
            let mut knobs: fleetwright_emulators::ec2::Knobs = options.common.read_knobs()?;
            knobs.seed = options.common.seed.unwrap_or(knobs.seed);
            knobs.access_keys.extend(options.access_keys);
            serve::<fleetwright_emulators::ec2::Ec2>(options.listen, &options.common, knobs)
        }
        #[cfg(feature = "gcp")]
        Command::Gcp(options) => {
            let mut knobs: fleetwright_emulators::gcp::Knobs = options.common.read_knobs()?;
            knobs.seed = options.common.seed.unwrap_or(knobs.seed);
            knobs.access_tokens.extend(options.access_tokens);
            knobs.projects.extend(options.projects);
            serve::<fleetwright_emulators::gcp::Gcp>(options.listen, &options.common, knobs)
        }
    }
}

/// Starts an emulator, prints its address, and serves until the process ends.
fn serve<C: Cloud>(listen: SocketAddr, common: &Common, knobs: C::Knobs) -> Result<(), String> {
    common.check_address(listen)?;
    let emulator = Emulator::<C>::start_at(listen, knobs)
        .map_err(|error| format!("cannot listen at {listen}: {error}"))?;
    println!("{} listens at {}", C::NAME, emulator.endpoint());
    loop {
        thread::park();
    }
}

impl Common {
    /// Refuses an address that is not loopback, unless remote access was allowed.
    fn check_address(&self, listen: SocketAddr) -> Result<(), String> {
        if listen.ip().is_loopback() || self.allow_remote {
            return Ok(());
        }
        Err(format!(
            "{listen} is not a loopback address; pass --allow-remote to use it anyway"
        ))
    }

    /// Reads the knobs file, or returns the defaults without one.
    fn read_knobs<K: DeserializeOwned + Default>(&self) -> Result<K, String> {
        let Some(path) = &self.knobs else {
            return Ok(K::default());
        };
        let text =
            fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        serde_json::from_slice(&text)
            .map_err(|error| format!("invalid knobs in {}: {error}", path.display()))
    }
}
