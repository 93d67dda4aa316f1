//! The emulators as a program: `fleetwright-emulators ec2 --listen 127.0.0.1:4566`.

use std::{fs, net::SocketAddr, path::PathBuf, process::ExitCode, thread};

use clap::{Args, Parser, Subcommand};
use fleetwright_emulators::ec2::{Ec2Emulator, Knobs};

/// Clouds on loopback, for the clients of any language.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    cloud: Cloud,
}

#[derive(Debug, Subcommand)]
enum Cloud {
    /// EC2's query protocol.
    Ec2(Ec2Options),
}

#[derive(Debug, Args)]
struct Ec2Options {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:4566")]
    listen: SocketAddr,
    /// Listen at an address that other machines can reach. Nothing is authenticated.
    #[arg(long)]
    allow_remote: bool,
    /// Where all chance comes from.
    #[arg(long)]
    seed: Option<u64>,
    /// Also know this access key id; may be given more than once.
    #[arg(long = "access-key", value_name = "ID")]
    access_keys: Vec<String>,
    /// A JSON file of knobs; what it leaves out keeps its default.
    #[arg(long, value_name = "FILE")]
    knobs: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Cli {
        cloud: Cloud::Ec2(options),
    } = Cli::parse();
    match start(options) {
        Ok(emulator) => {
            println!("ec2 listens at {}", emulator.endpoint());
            loop {
                thread::park();
            }
        }
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn start(options: Ec2Options) -> Result<Ec2Emulator, String> {
    if !options.listen.ip().is_loopback() && !options.allow_remote {
        return Err(format!(
            "{} is not a loopback address; say --allow-remote if you mean it",
            options.listen
        ));
    }
    let mut knobs = match &options.knobs {
        None => Knobs::default(),
        Some(path) => read_knobs(path)?,
    };
    knobs.seed = options.seed.unwrap_or(knobs.seed);
    knobs.access_keys.extend(options.access_keys);
    Ec2Emulator::start_at(options.listen, knobs)
        .map_err(|error| format!("{}: {error}", options.listen))
}

fn read_knobs(path: &std::path::Path) -> Result<Knobs, String> {
    let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
}
