//! What the commands do. A command reads, calls and prints; rules are the service's.

mod bindings;
mod catalog;
mod change;
pub(crate) mod instances;
mod networks;
mod operator;
mod tenants;
mod watch;

use clap::CommandFactory as _;
use serde::Serialize;

use crate::{
    arguments::{Arguments, Command},
    context::Context,
    failure::Failure,
    output::Output,
    settings,
    table::Table,
};

/// Runs a command and returns the exit code: 0, or that of ssh.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let output = Output::new(arguments.global.output, arguments.global.color);
    let connect = || {
        let (client, defaults) = settings::connect(&arguments.global)?;
        Ok::<_, Failure>(Context {
            client,
            output,
            defaults,
        })
    };
    match arguments.command {
        Command::Completion { shell } => completion(&output, shell),
        Command::Version { client: true } => version(&output, None),
        Command::Version { client: false } => {
            let service = connect()?.client.read_version().await?;
            version(&output, Some(service))
        }
        Command::Instances(command) => return instances::run(&connect()?, command).await,
        Command::Networks(command) => networks::networks(&connect()?, command).await,
        Command::Groups(command) => networks::groups(&connect()?, command).await,
        Command::Authorities(command) => networks::authorities(&connect()?, command).await,
        Command::Catalog(command) => catalog::run(&connect()?, command).await,
        Command::Images(command) => catalog::images(&connect()?, command).await,
        Command::Organizations(command) => tenants::organizations(&connect()?, command).await,
        Command::Projects(command) => tenants::projects(&connect()?, command).await,
        Command::Quota(command) => tenants::quota(&connect()?, command).await,
        Command::Bindings(command) => bindings::run(&connect()?, command).await,
        Command::Audit(command) => bindings::audit(&connect()?, command).await,
        Command::Caller => bindings::caller(&connect()?).await,
        Command::Operator(command) => operator::run(&connect()?, command).await,
    }?;
    Ok(0)
}

fn completion(output: &Output, shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "fleetwright", &mut script);
    output.text(&String::from_utf8_lossy(&script))
}

/// The versions of both sides.
#[derive(Serialize)]
struct Versions {
    client: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<fleetwright_api::Version>,
}

fn version(output: &Output, service: Option<fleetwright_api::Version>) -> Result<(), Failure> {
    let versions = Versions {
        client: env!("CARGO_PKG_VERSION").to_owned(),
        service,
    };
    output.show(&versions, |versions| {
        let service = versions.service.as_ref();
        Table::fields()
            .field("fleetwright", versions.client.clone())
            .some(
                "service",
                service.map(|service| format!("{} {}", service.name, service.version)),
            )
    })
}
