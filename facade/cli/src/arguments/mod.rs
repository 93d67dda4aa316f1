//! The arguments. They are read here and nowhere else.

mod instances;
mod networks;
mod tenancy;

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
pub(crate) use instances::*;
pub(crate) use networks::*;
pub(crate) use tenancy::*;

use crate::{
    context::duration,
    failure::EXIT_CODES,
    output::{Color, Format},
};

/// Instances, networks, tenants and quotas of a fleetwright service.
///
/// The service and the token come from arguments, from the environment (FLEETWRIGHT_URL, FLEETWRIGHT_TOKEN, FLEETWRIGHT_TOKEN_FILE), or
/// from a profile of the config file. Instances and other records are named by id or by name.
#[derive(Debug, Parser)]
#[command(name = "fleetwright", version, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// For every command.
#[derive(Args, Debug)]
#[command(next_help_heading = "For every command")]
pub(crate) struct Global {
    /// Address of the service [env: FLEETWRIGHT_URL].
    #[arg(long, global = true)]
    pub(crate) url: Option<String>,
    /// File with the token, which nobody else may read; `-` for standard input [env: FLEETWRIGHT_TOKEN_FILE].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Profile of the config file, instead of the address and the token of the environment [env: FLEETWRIGHT_PROFILE, which they overrule].
    #[arg(long, global = true)]
    pub(crate) profile: Option<String>,
    /// Config file [default: fleetwright/config.toml in $XDG_CONFIG_HOME or ~/.config].
    #[arg(long, global = true, value_name = "FILE", env = "FLEETWRIGHT_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Trust the certificate authorities in this PEM file, and no others.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Send the token without encryption to another machine.
    #[arg(long, global = true)]
    pub(crate) allow_plain_http: bool,
    /// How long one call may take, with its retries: 90s, 5m [default: 2m].
    #[arg(long, global = true, value_parser = duration)]
    pub(crate) deadline: Option<Duration>,
    /// How results are printed.
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,
    /// When colours are used. NO_COLOR is honoured.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
    /// Show each request and its result on standard error, without the token.
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Machines.
    #[command(subcommand, visible_alias = "instance")]
    Instances(InstancesCommand),
    /// Networks.
    #[command(subcommand, visible_alias = "network")]
    Networks(NetworksCommand),
    /// Security groups: which connections instances accept and open.
    #[command(subcommand, visible_alias = "group")]
    Groups(GroupsCommand),
    /// SSH certificate authorities.
    #[command(subcommand, visible_alias = "authority")]
    Authorities(AuthoritiesCommand),
    /// Regions, flavors and images on offer.
    #[command(subcommand)]
    Catalog(CatalogCommand),
    /// One image, such as a snapshot of an instance.
    #[command(subcommand, visible_alias = "image")]
    Images(ImagesCommand),
    /// Organizations.
    #[command(subcommand, visible_alias = "organization")]
    Organizations(OrganizationsCommand),
    /// Projects of an organization.
    #[command(subcommand, visible_alias = "project")]
    Projects(ProjectsCommand),
    /// What may be used, and is used.
    #[command(subcommand)]
    Quota(QuotaCommand),
    /// Who has which role.
    #[command(subcommand, visible_alias = "binding")]
    Bindings(BindingsCommand),
    /// Who did what, and when.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Who the caller is, with its roles.
    Caller,
    /// What only operators may see and do.
    #[command(subcommand)]
    Operator(OperatorCommand),
    /// Print a completion script for a shell.
    ///
    /// For bash: fleetwright completion bash > ~/.local/share/bash-completion/completions/fleetwright
    Completion {
        /// The shell.
        shell: Shell,
    },
    /// Print the versions of this program and of the service.
    Version {
        /// Only of this program: nothing is sent.
        #[arg(long)]
        client: bool,
    },
}

/// Consent to what cannot be undone.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Agreement {
    /// Do not ask.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// A name and a value, as `name=value`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or_else(|| "expected name=value".to_owned())?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn no_argument_takes_a_token() {
        let mut commands = vec![Arguments::command()];
        while let Some(command) = commands.pop() {
            for argument in command.get_arguments() {
                let id = argument.get_id().as_str();
                let is_launch = command.get_name() == "resolve-leak";
                assert!(id != "token" || is_launch, "{}: {id}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }
}
