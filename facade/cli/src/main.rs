//! `fleetwright`: the command line of `fleetwright-server`. README.md has examples and the exit codes.

mod arguments;
mod commands;
mod confirm;
mod context;
mod failure;
mod find;
mod output;
mod progress;
mod settings;
mod ssh;
mod table;

use std::process::ExitCode;

use clap::Parser as _;

use crate::{arguments::Arguments, failure::Failure};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.global.verbose {
        show_requests();
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(commands::run(arguments)),
        Err(error) => Err(Failure::other(format!(
            "the runtime cannot be started: {error}"
        ))),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}

/// Shows each request and its result on standard error. The client's events have no token, and those of other crates are not shown.
fn show_requests() {
    use tracing_subscriber::{
        filter::Targets, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
    };
    let requests = Targets::new().with_target(
        "fleetwright_client",
        tracing_subscriber::filter::LevelFilter::DEBUG,
    );
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time()
        .with_target(false);
    // It fails only if there is a subscriber already.
    let _ = tracing_subscriber::registry()
        .with(lines)
        .with(requests)
        .try_init();
}
