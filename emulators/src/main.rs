//! The emulators as a program: `fleetwright-emulators`, or `fleetwright-emulators ec2 --listen 127.0.0.1:4566`.
//!
//! Parses the command line, reads the knobs files, and serves one cloud or all of them until the process ends.
#![cfg_attr(
    not(any(feature = "azure", feature = "ec2", feature = "gcp")),
    allow(
        dead_code,
        unused_imports,
        unused_mut,
        clippy::needless_pass_by_value,
        reason = "no cloud feature is enabled, so nothing can be served"
    )
)]

use std::{
    any::Any,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    thread,
};

use clap::{Args, Parser, Subcommand};
use fleetwright_emulators::{Cloud, CommonKnobs as _, Emulator};
use serde::de::DeserializeOwned;

/// Emulators of EC2, Compute Engine and Azure on local ports, for clients of any language.
///
/// Without a command all clouds are served. Each prints its address when it is ready; set it as the endpoint of your client:
///
///   aws --endpoint-url http://127.0.0.1:4566 ec2 describe-instances
///
/// Any credentials are accepted. What an emulator does, what it is asked and what exists in it is at /_emulator:
///
///   curl http://127.0.0.1:4566/_emulator/oracle
#[derive(Debug, Parser)]
#[command(version, verbatim_doc_comment)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve every cloud, each on a port of its own. This is the default.
    All(AllOptions),
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

/// The options of all clouds together. Each cloud has more when it is served alone.
#[derive(Debug, Args)]
struct AllOptions {
    /// Address to listen on.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// Port of EC2. Port 0 takes a free one.
    #[arg(long, default_value_t = 4566)]
    ec2_port: u16,
    /// Port of Compute Engine. Port 0 takes a free one.
    #[arg(long, default_value_t = 4567)]
    gcp_port: u16,
    /// Port of Azure. Port 0 takes a free one.
    #[arg(long, default_value_t = 4568)]
    azure_port: u16,
    /// Accept a host address that other machines can reach. The emulators do not authenticate callers.
    #[arg(long)]
    allow_remote: bool,
    /// Seed of all random choices: ids and lags.
    #[arg(long)]
    seed: Option<u64>,
}

impl Default for AllOptions {
    fn default() -> Self {
        Self {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            ec2_port: 4566,
            gcp_port: 4567,
            azure_port: 4568,
            allow_remote: false,
            seed: None,
        }
    }
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
    /// Accept only this access key id. Repeat the option to accept several.
    #[arg(long = "access-key", value_name = "ID")]
    access_keys: Vec<String>,
    /// The name of the region, and accept only clients of it. Default: `us-east-1`, and clients of any region.
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
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
    let command = Cli::parse().command;
    let command = command.unwrap_or_else(|| Command::All(AllOptions::default()));
    if let Err(message) = run(command) {
        eprintln!("error: {message}");
    }
    ExitCode::FAILURE
}

/// Serves a cloud or all of them. Returns only if that is not possible.
fn run(command: Command) -> Result<(), String> {
    let _servers = start(command)?;
    loop {
        thread::park();
    }
}

/// The running emulators, which stop when they are dropped.
type Servers = Vec<Box<dyn Any>>;

/// Starts the emulators of a command.
fn start(command: Command) -> Result<Servers, String> {
    match command {
        Command::All(options) => start_all(&options),
        #[cfg(feature = "azure")]
        Command::Azure(options) => {
            let mut knobs: fleetwright_emulators::azure::Knobs = options.common.read_knobs()?;
            knobs.seed = options.common.seed.unwrap_or(knobs.seed);
            knobs.tokens.extend(options.tokens);
            knobs.subscriptions.extend(options.subscriptions);
            let remote = options.common.allow_remote;
            let server =
                serve::<fleetwright_emulators::azure::Azure>(options.listen, remote, knobs)?;
            Ok(vec![server])
        }
        #[cfg(feature = "ec2")]
        Command::Ec2(options) => {
            let mut knobs: fleetwright_emulators::ec2::Knobs = options.common.read_knobs()?;
            knobs.seed = options.common.seed.unwrap_or(knobs.seed);
            knobs.access_keys.extend(options.access_keys);
            if let Some(region) = &options.region {
                knobs.rename_region(region);
                knobs.check_region = true;
            }
            let remote = options.common.allow_remote;
            let server = serve::<fleetwright_emulators::ec2::Ec2>(options.listen, remote, knobs)?;
            Ok(vec![server])
        }
        #[cfg(feature = "gcp")]
        Command::Gcp(options) => {
            let mut knobs: fleetwright_emulators::gcp::Knobs = options.common.read_knobs()?;
            knobs.seed = options.common.seed.unwrap_or(knobs.seed);
            knobs.access_tokens.extend(options.access_tokens);
            knobs.projects.extend(options.projects);
            let remote = options.common.allow_remote;
            let server = serve::<fleetwright_emulators::gcp::Gcp>(options.listen, remote, knobs)?;
            Ok(vec![server])
        }
    }
}

/// Starts every cloud that the program was built with.
#[allow(
    clippy::vec_init_then_push,
    reason = "each cloud has a feature, and a list cannot leave out elements"
)]
fn start_all(options: &AllOptions) -> Result<Servers, String> {
    let mut servers = Servers::new();
    #[cfg(feature = "ec2")]
    servers.push(start_one::<fleetwright_emulators::ec2::Ec2>(
        options,
        options.ec2_port,
    )?);
    #[cfg(feature = "gcp")]
    servers.push(start_one::<fleetwright_emulators::gcp::Gcp>(
        options,
        options.gcp_port,
    )?);
    #[cfg(feature = "azure")]
    servers.push(start_one::<fleetwright_emulators::azure::Azure>(
        options,
        options.azure_port,
    )?);
    if servers.is_empty() {
        return Err(
            "this program was built without a cloud; build it with the features azure, ec2 or gcp"
                .to_owned(),
        );
    }
    println!("ready");
    Ok(servers)
}

/// Starts one of all clouds, with the knobs that it has by default.
fn start_one<C: Cloud>(options: &AllOptions, port: u16) -> Result<Box<dyn Any>, String>
where
    C::Knobs: Default,
{
    let mut knobs = C::Knobs::default();
    let seed = options.seed.unwrap_or(knobs.seed());
    knobs.set_seed(seed);
    serve::<C>(
        SocketAddr::new(options.host, port),
        options.allow_remote,
        knobs,
    )
}

/// Starts an emulator and prints its address. An address that is not loopback must be allowed.
fn serve<C: Cloud>(
    listen: SocketAddr,
    allow_remote: bool,
    knobs: C::Knobs,
) -> Result<Box<dyn Any>, String> {
    if !listen.ip().is_loopback() && !allow_remote {
        return Err(format!(
            "{listen} is not a loopback address; pass --allow-remote to use it anyway"
        ));
    }
    let emulator = Emulator::<C>::start_at(listen, knobs)
        .map_err(|error| format!("cannot listen at {listen}: {error}"))?;
    println!("{} listens at {}", C::NAME, emulator.endpoint());
    Ok(Box::new(emulator))
}

impl Common {
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
