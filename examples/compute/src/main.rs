//! A tenant's instances, from a catalog file to a fleet process that is killed in the middle of its work.
//!
//! `cargo run -p compute` hosts an EC2 on loopback, runs itself again as the fleet process, creates instances on SQLite, moves
//! each to another flavor, which replaces its machine, and kills the fleet process at a different moment of each replacement.
//! The next process goes on: there is one machine for each instance in the end, and nothing is left when they are deleted.

mod cloud;
mod facade;
mod fleet;
mod moment;
mod story;
mod truth;
mod wait;

use std::{error::Error, fs, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

use facade::DATABASE;

/// Why the example could not tell its story.
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
    /// The fleet process, which the story starts, kills and starts again. It works until its standard input ends.
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
    let done = match arguments.role {
        Some(Role::Fleet { endpoint, folder }) => fleet::run(&endpoint, &folder).await,
        None => tell(arguments.folder).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {}", in_words(failure.as_ref()));
            ExitCode::FAILURE
        }
    }
}

async fn tell(folder: Option<PathBuf>) -> Result<(), Failure> {
    let Some(folder) = folder else {
        let folder = tempfile::tempdir()?;
        return story::tell(folder.path()).await;
    };
    let refused = |error| format!("--folder {} cannot be used: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(refused)?;
    if folder.join(DATABASE).exists() {
        let folder = folder.display();
        return Err(format!(
            "--folder {folder} has a {DATABASE} already, whose cloud is gone: delete it, or give another folder"
        )
        .into());
    }
    story::tell(&folder).await
}

/// An error with everything that it follows from.
pub(crate) fn in_words(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        words = format!("{words}: {cause}");
        next = cause.source();
    }
    words
}
