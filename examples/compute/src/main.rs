//! A tenant's instances, from a catalog file to a fleet process that is killed in the middle of its work.
//!
//! `cargo run -p compute` hosts an EC2 on loopback, runs itself again as the fleet process, creates instances on SQLite, moves
//! each to another flavor, which replaces its machine, and kills the fleet process at a different moment of each replacement.
//! The next process continues: in the end there is one machine for each instance, and nothing is left when they are deleted.

mod cloud;
mod facade;
mod fleet;
mod moment;
mod story;
mod tenants;
mod truth;
mod wait;

use std::{error::Error, fs, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

use facade::DATABASE;

/// Why the example failed.
type Failure = Box<dyn Error + Send + Sync>;

/// Creates a tenant's instances over an emulated EC2 and SQLite, moves each to another flavor, and kills the fleet process in the
/// middle of every one of these replacements. No account and no network is needed.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    /// Where to keep the database, and a catalog.toml and mapping.toml of your own to begin with; a temporary folder if it is
    /// not given.
    #[arg(long)]
    folder: Option<PathBuf>,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// The fleet process, which the example starts, kills and starts again. It runs until its standard input ends.
    Fleet {
        /// Where the emulated EC2 listens.
        #[arg(long)]
        endpoint: String,
        /// The folder of the story.
        #[arg(long)]
        folder: PathBuf,
    },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.role {
        Some(Role::Fleet { endpoint, folder }) => fleet::run(&endpoint, &folder).await,
        None => run(arguments.folder).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {}", error_chain(failure.as_ref()));
            ExitCode::FAILURE
        }
    }
}

async fn run(folder: Option<PathBuf>) -> Result<(), Failure> {
    let Some(folder) = folder else {
        let folder = tempfile::tempdir()?;
        return story::run(folder.path()).await;
    };
    let refused = |error| format!("--folder {} cannot be used: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(refused)?;
    if folder.join(DATABASE).exists() {
        let folder = folder.display();
        return Err(format!(
            "--folder {folder} has a {DATABASE} already, whose emulated cloud no longer exists: delete it, or give another folder"
        )
        .into());
    }
    story::run(&folder).await
}

/// The message of an error with those of its sources.
pub(crate) fn error_chain(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        message = format!("{message}: {cause}");
        next = cause.source();
    }
    message
}
