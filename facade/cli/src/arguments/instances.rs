//! Arguments of the commands for instances.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

use super::{Agreement, pair};
use crate::context::duration;

/// Commands for instances.
#[derive(Debug, Subcommand)]
pub(crate) enum InstancesCommand {
    /// Create an instance.
    Create(CreateInstance),
    /// List instances.
    List(ListInstances),
    /// Show an instance.
    Show(OneInstance),
    /// Show what an update would do and what would be lost. Nothing is changed.
    Plan(PlanInstance),
    /// Change an instance. What loses data or addresses needs consent.
    Update(UpdateInstance),
    /// Start instances.
    Start(PowerInstances),
    /// Stop instances. They keep disk and quota.
    Stop(PowerInstances),
    /// Reboot an instance.
    Reboot {
        /// Id or name.
        instance: String,
        /// At once, instead of letting its system shut down.
        #[arg(long)]
        hard: bool,
    },
    /// Replace the machine of an instance: the data on its disk and its addresses are lost.
    Replace(ReplaceInstance),
    /// Delete instances with their data.
    Delete(DeleteInstances),
    /// Print changes as they happen, until interrupted.
    Watch {
        /// Begin after this position, instead of with every instance as it is now. With -o json each change has one.
        #[arg(long, value_name = "POSITION")]
        from: Option<String>,
    },
    /// List what happened to an instance.
    Events(OneInstance),
    /// Open a console session, or print the console output.
    Console {
        /// Id or name.
        instance: String,
        /// Print what the machine wrote, instead of the address of a session.
        #[arg(long)]
        log: bool,
        /// How many bytes of it, from the end.
        #[arg(long, requires = "log")]
        length: Option<u64>,
    },
    /// Run ssh with the key of an instance, which is removed afterwards.
    Ssh(SshInstance),
    /// Create an image of the disk of an instance.
    Snapshot {
        /// Id or name.
        instance: String,
        /// Name of the image.
        name: String,
        /// A text for people.
        #[arg(long)]
        description: Option<String>,
        /// A tag, name=value. Can be repeated.
        #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = pair)]
        tags: Vec<(String, String)>,
    },
}

/// One instance.
#[derive(Args, Debug)]
pub(crate) struct OneInstance {
    /// Id or name.
    pub(crate) instance: String,
}

/// Whether a command waits.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// Wait until it is done.
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long to wait: 90s, 10m.
    #[arg(long, value_parser = duration, default_value = "10m", requires = "wait")]
    pub(crate) timeout: Duration,
}

#[derive(Args, Debug)]
pub(crate) struct CreateInstance {
    /// Its name, unique in its network.
    pub(crate) name: String,
    /// Flavor: `fleetwright catalog flavors` lists them.
    #[arg(long)]
    pub(crate) flavor: String,
    /// Image: `fleetwright catalog images` lists them.
    #[arg(long)]
    pub(crate) image: String,
    /// Network, by id or name [default: the only one].
    #[arg(long)]
    pub(crate) network: Option<String>,
    /// A text for people.
    #[arg(long)]
    pub(crate) description: Option<String>,
    /// A tag, name=value. Can be repeated.
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) tags: Vec<(String, String)>,
    /// Security group, by id or name. Can be repeated.
    #[arg(long = "group", value_name = "GROUP")]
    pub(crate) groups: Vec<String>,
    /// Give it a public address while it runs.
    #[arg(long)]
    pub(crate) public_ip: bool,
    /// SSH certificate authority, by id or name.
    #[arg(long)]
    pub(crate) authority: Option<String>,
    /// File with user data in a format of cloud-init; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) user_data: Option<PathBuf>,
    /// Key by which a repeated command finds the first one [default: a new one].
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    #[command(flatten)]
    pub(crate) waiting: Waiting,
}

#[derive(Args, Debug, Default)]
pub(crate) struct ListInstances {
    /// Only of this organization, by id or name.
    #[arg(long)]
    pub(crate) organization: Option<String>,
    /// Only of this project, by id or name.
    #[arg(long)]
    pub(crate) project: Option<String>,
    /// Only in this region.
    #[arg(long)]
    pub(crate) region: Vec<String>,
    /// Only of this network, by id or name.
    #[arg(long)]
    pub(crate) network: Option<String>,
    /// Only with this tag, name=value. Can be repeated.
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) tags: Vec<(String, String)>,
    /// Only in this state: running, stopped, failed and others. Can be repeated.
    #[arg(long = "state", value_name = "STATE", value_parser = super::instances::wire_value::<fleetwright_api::PowerState>)]
    pub(crate) states: Vec<fleetwright_api::PowerState>,
    /// Only with this progress: provisioned, error and others. Can be repeated.
    #[arg(long = "status", value_name = "STATUS", value_parser = super::instances::wire_value::<fleetwright_api::ProvisioningStatus>)]
    pub(crate) statuses: Vec<fleetwright_api::ProvisioningStatus>,
}

/// What an update changes. What is not named stays as it is.
#[derive(Args, Clone, Debug)]
pub(crate) struct Changes {
    /// Another flavor.
    #[arg(long)]
    pub(crate) flavor: Option<String>,
    /// Another image.
    #[arg(long)]
    pub(crate) image: Option<String>,
    /// Another description; an empty one removes it.
    #[arg(long)]
    pub(crate) description: Option<String>,
    /// Set a tag, name=value. Can be repeated.
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) tags: Vec<(String, String)>,
    /// Remove a tag. Can be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) remove_tag: Vec<String>,
    /// These security groups instead of the present ones, by id or name. Can be repeated.
    #[arg(long = "group", value_name = "GROUP", conflicts_with = "no_groups")]
    pub(crate) groups: Vec<String>,
    /// No security groups.
    #[arg(long)]
    pub(crate) no_groups: bool,
    /// Whether it has a public address while it runs.
    #[arg(long, value_name = "YES|NO", value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) public_ip: Option<bool>,
    /// Another SSH certificate authority, by id or name; an empty one removes it.
    #[arg(long)]
    pub(crate) authority: Option<String>,
    /// File with other user data; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) user_data: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct PlanInstance {
    /// Id or name.
    pub(crate) instance: String,
    #[command(flatten)]
    pub(crate) changes: Changes,
}

#[derive(Args, Debug)]
pub(crate) struct UpdateInstance {
    /// Id or name.
    pub(crate) instance: String,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Consent to the loss of data or addresses that the plan names. Without a terminal this is required for it.
    #[arg(long, visible_alias = "yes", short_alias = 'y')]
    pub(crate) allow_replace: bool,
    #[command(flatten)]
    pub(crate) waiting: Waiting,
}

#[derive(Args, Debug)]
pub(crate) struct PowerInstances {
    /// Ids or names.
    #[arg(required = true)]
    pub(crate) instances: Vec<String>,
    #[command(flatten)]
    pub(crate) waiting: Waiting,
}

#[derive(Args, Debug)]
pub(crate) struct ReplaceInstance {
    /// Id or name.
    pub(crate) instance: String,
    #[command(flatten)]
    pub(crate) agreement: Agreement,
    #[command(flatten)]
    pub(crate) waiting: Waiting,
}

#[derive(Args, Debug)]
pub(crate) struct DeleteInstances {
    /// Ids or names.
    #[arg(required = true)]
    pub(crate) instances: Vec<String>,
    #[command(flatten)]
    pub(crate) agreement: Agreement,
    #[command(flatten)]
    pub(crate) waiting: Waiting,
}

#[derive(Args, Debug)]
pub(crate) struct SshInstance {
    /// Id or name.
    pub(crate) instance: String,
    /// User of the machine.
    #[arg(short, long)]
    pub(crate) user: Option<String>,
    /// Use the private address [default: the public one, if there is one].
    #[arg(long)]
    pub(crate) private: bool,
    /// Command to run on the machine, with its arguments [default: a shell]. Options of ssh belong into ssh's config file.
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
}

/// A state by its name in the service's interface.
pub(crate) fn wire_value<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    let parsed = serde_json::from_value(serde_json::Value::String(text.to_lowercase()));
    // The message names the states that exist.
    parsed.map_err(|error| error.to_string())
}
