//! The command line.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use chrono::{Duration, Utc};
use clap::{Parser, Subcommand, ValueEnum};
use fleetwright_identity::ActorName;

use crate::{
    auth::tokens::{self, NewToken},
    check, config,
    error::ServerError,
    meaning::chain,
    start::{Server, announce},
    telemetry,
};

/// The address without a configuration.
const LISTEN: &str = "127.0.0.1:8080";

/// Runs fleetwright as a service. Without a configuration file it runs a sample on a simulated cloud.
#[derive(Debug, Parser)]
#[command(name = "fleetwright-server", version)]
struct Arguments {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Checks the configuration file and the files that it names, and ends.
    #[arg(long, requires = "config")]
    check: bool,
    /// The address to listen at, instead of the configured one.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// The folder of the sample's database. Without it the sample is removed when the program ends.
    #[arg(long, value_name = "FOLDER", conflicts_with = "config")]
    data: Option<PathBuf>,
    /// Keeps the records of the sample in memory instead of in a database. They end with the program.
    #[arg(long, conflicts_with_all = ["config", "data"])]
    in_memory: bool,
    /// How log lines are written to standard error. RUST_LOG chooses which.
    #[arg(long, value_enum, default_value = "text")]
    log: LogFormat,
    #[command(subcommand)]
    command: Option<Command>,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object for each line.
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Tokens of users.
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Creates a token: prints it once, and adds its hash to the file.
    New {
        /// The user.
        #[arg(long)]
        actor: String,
        /// The file of tokens. It is created if it is missing; a running service reads it again.
        #[arg(long, value_name = "FILE")]
        tokens: PathBuf,
        /// In how many days it expires. Without it, never.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: Option<u32>,
    },
}

/// Runs the program until it is told to stop.
///
/// ```no_run
/// #[tokio::main]
/// async fn main() -> std::process::ExitCode {
///     fleetwright_server::run().await
/// }
/// ```
pub async fn run() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.command {
        Some(Command::Token { command }) => new_token(command),
        None if arguments.check => return check_files(&arguments),
        None => serve_with_telemetry(&arguments).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fleetwright-server: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

async fn serve_with_telemetry(arguments: &Arguments) -> Result<(), ServerError> {
    let traces = match &arguments.config {
        Some(config) => config::load(config)?.traces,
        None => None,
    };
    let traces = telemetry::start(arguments.log, traces.as_ref())?;
    let served = serve(arguments).await;
    traces.finish().await;
    served
}

async fn serve(arguments: &Arguments) -> Result<(), ServerError> {
    // Dropped at the end, and removed with it.
    let mut temporary = None;
    let default = LISTEN.parse().map_err(ServerError::internal)?;
    let address = arguments.listen.unwrap_or(default);
    let server = match (&arguments.config, &arguments.data) {
        (Some(config), _) => Server::from_file(config, arguments.listen).await?,
        (None, None) if arguments.in_memory => Server::sample_in_memory(address).await?,
        (None, data) => {
            let folder = match data {
                Some(folder) => {
                    std::fs::create_dir_all(folder)?;
                    folder.clone()
                }
                None => temporary.insert(tempfile::tempdir()?).path().to_owned(),
            };
            Server::sample(&folder, address).await?
        }
    };
    // Before the program says that it is ready, so that a signal right after that is not lost.
    let stop = stop_signal()?;
    announce(&server)?;
    stop.await?;
    tracing::info!("stopping: no request is accepted any more");
    server.shutdown().await;
    Ok(())
}

/// Receives the signals that stop the process from now on. The future ends with the first one.
fn stop_signal() -> std::io::Result<impl Future<Output = std::io::Result<()>>> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => Ok(()),
                _ = terminate.recv() => Ok(()),
            }
        })
    }
    #[cfg(not(unix))]
    Ok(tokio::signal::ctrl_c())
}

fn check_files(arguments: &Arguments) -> ExitCode {
    let Some(config) = &arguments.config else {
        return ExitCode::FAILURE;
    };
    match check(config) {
        Ok(()) => {
            println!("{} has no mistakes", config.display());
            ExitCode::SUCCESS
        }
        Err(errors) => {
            for error in errors {
                eprintln!("{}", chain(&error));
            }
            ExitCode::FAILURE
        }
    }
}

fn new_token(command: &TokenCommand) -> Result<(), ServerError> {
    let TokenCommand::New {
        actor,
        tokens,
        days,
    } = command;
    let actor = ActorName::new(actor).map_err(ServerError::internal)?;
    let expires = days.map(|days| Utc::now() + Duration::days(i64::from(days)));
    let token = NewToken::generate().map_err(|error| ServerError::internal(error.to_string()))?;
    tokens::append(tokens, &token.lines(&actor, expires))?;
    println!("{}", token.text);
    Ok(())
}
