//! Arguments of the commands for networks, what belongs to them, and the catalog.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fleetwright_api::{Direction, Protocol, Rule};

use super::{Agreement, InProject, wire_value};

/// Which records are listed.
#[derive(Args, Clone, Debug)]
pub(crate) struct ListRecords {
    /// Only of this organization, by id or name.
    #[arg(long)]
    pub(crate) organization: Option<String>,
    /// Only of this project, by id or name.
    #[arg(long)]
    pub(crate) project: Option<String>,
    /// Only in this region.
    #[arg(long)]
    pub(crate) region: Option<String>,
    /// Only of this network, by id or name.
    #[arg(long)]
    pub(crate) network: Option<String>,
}

/// Commands for networks.
#[derive(Debug, Subcommand)]
pub(crate) enum NetworksCommand {
    /// Create a network.
    Create {
        /// Its name, unique in its project.
        name: String,
        #[command(flatten)]
        place: InProject,
        /// Its region.
        #[arg(long)]
        region: String,
        /// Its addresses: 10.0.0.0/16.
        #[arg(long)]
        prefix: String,
        /// Address of a name server. Can be repeated.
        #[arg(long = "dns", value_name = "ADDRESS")]
        dns: Vec<String>,
    },
    /// List networks.
    List(ListRecords),
    /// Show a network.
    Show {
        /// Id or name.
        network: String,
    },
    /// Delete a network.
    Delete {
        /// Id or name.
        network: String,
        /// Delete its instances, with their data, first.
        #[arg(long)]
        with_instances: bool,
        #[command(flatten)]
        agreement: Agreement,
    },
}

/// Commands for security groups.
#[derive(Debug, Subcommand)]
pub(crate) enum GroupsCommand {
    /// Create a security group.
    Create {
        /// Its name, unique in its network.
        name: String,
        /// Its network, by id or name [default: the only one].
        #[arg(long)]
        network: Option<String>,
        /// A rule: ingress:tcp:443, ingress:udp:5000-5010:10.0.0.0/8, egress:any. Can be repeated.
        #[arg(long = "rule", value_name = "RULE", value_parser = rule)]
        rules: Vec<Rule>,
    },
    /// List security groups.
    List(ListRecords),
    /// Show a security group with its rules.
    Show {
        /// Id or name.
        group: String,
    },
    /// Replace the rules of a security group.
    Update {
        /// Id or name.
        group: String,
        /// A rule, as for create. Without any, the group permits nothing.
        #[arg(long = "rule", value_name = "RULE", value_parser = rule)]
        rules: Vec<Rule>,
    },
    /// Delete a security group that no instance uses.
    Delete {
        /// Id or name.
        group: String,
        #[command(flatten)]
        agreement: Agreement,
    },
}

/// Commands for certificate authorities.
#[derive(Debug, Subcommand)]
pub(crate) enum AuthoritiesCommand {
    /// Register a certificate authority.
    Create {
        /// Its name, unique in its project.
        name: String,
        #[command(flatten)]
        place: InProject,
        /// File with its public key, in the format of OpenSSH.
        #[arg(long, value_name = "FILE")]
        public_key: PathBuf,
    },
    /// List certificate authorities.
    List(ListRecords),
    /// Show a certificate authority.
    Show {
        /// Id or name.
        authority: String,
    },
    /// Delete a certificate authority that no instance uses.
    Delete {
        /// Id or name.
        authority: String,
        #[command(flatten)]
        agreement: Agreement,
    },
}

/// What is on offer.
#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// List the regions.
    Regions(Offer),
    /// List the flavors of a region: processors, memory and disk.
    Flavors(Offer),
    /// List the images of a region.
    Images(Offer),
}

/// To whom it is on offer.
#[derive(Args, Debug)]
pub(crate) struct Offer {
    /// Organization, by id or name [default: the profile's, or the only one].
    #[arg(long)]
    pub(crate) organization: Option<String>,
    /// Region [default: all].
    #[arg(long)]
    pub(crate) region: Option<String>,
}

/// Commands for one image.
#[derive(Debug, Subcommand)]
pub(crate) enum ImagesCommand {
    /// Show an image.
    Show {
        /// Id.
        image: String,
    },
    /// Share an image of a project with its organization.
    Share {
        /// Id.
        image: String,
    },
    /// Delete an image that was created as a snapshot.
    Delete {
        /// Id.
        image: String,
        #[command(flatten)]
        agreement: Agreement,
    },
}

/// A rule as text: direction, protocol, port or ports, prefix, with colons between them.
fn rule(text: &str) -> Result<Rule, String> {
    let mut parts = text.splitn(3, ':');
    let mut part = || parts.next().filter(|part| !part.is_empty());
    let wrong = |problem: String| {
        format!(
            "{problem}: expected direction:protocol:port:prefix, such as ingress:tcp:443 or egress:any"
        )
    };
    let missing = |what: &str| wrong(format!("it has no {what}"));
    let direction = part().ok_or_else(|| missing("direction"))?;
    let direction: Direction = wire_value(direction).map_err(wrong)?;
    let protocol = part().ok_or_else(|| missing("protocol"))?;
    let protocol: Protocol = wire_value(protocol).map_err(wrong)?;
    let rest = part().unwrap_or_default();
    // An IPv6 prefix has colons too, and no port has letters, dots or slashes.
    let (ports, prefix) = match rest.split_once(':') {
        Some((ports, prefix)) if is_ports(ports) => (Some(ports), Some(prefix)),
        None if is_ports(rest) => (Some(rest), None),
        Some(_) | None => (None, Some(rest).filter(|rest| !rest.is_empty())),
    };
    let (port, port_max) = match ports.map(|ports| {
        ports
            .split_once('-')
            .map_or((ports, None), |(first, last)| (first, Some(last)))
    }) {
        Some((first, last)) => (Some(number(first)?), last.map(number).transpose()?),
        None => (None, None),
    };
    Ok(Rule {
        direction,
        protocol,
        port,
        port_max,
        prefix: prefix.map(str::to_owned),
    })
}

fn is_ports(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'-')
}

fn number(text: &str) -> Result<u16, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is no port: expected 1 to 65535"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_short() {
        let parsed =
            |text: &str| serde_json::to_string(&rule(text)?).map_err(|error| error.to_string());
        let expected = [
            (
                "ingress:tcp:443",
                r#"{"direction":"ingress","protocol":"tcp","port":443}"#,
            ),
            ("egress:any", r#"{"direction":"egress","protocol":"any"}"#),
            (
                "ingress:udp:5000-5010:10.0.0.0/8",
                r#"{"direction":"ingress","protocol":"udp","port":5000,"portMax":5010,"prefix":"10.0.0.0/8"}"#,
            ),
            (
                "ingress:icmp:10.0.0.0/8",
                r#"{"direction":"ingress","protocol":"icmp","prefix":"10.0.0.0/8"}"#,
            ),
            (
                "ingress:tcp:22:2001:db8::/32",
                r#"{"direction":"ingress","protocol":"tcp","port":22,"prefix":"2001:db8::/32"}"#,
            ),
        ];
        for (text, json) in expected {
            assert_eq!(parsed(text).as_deref(), Ok(json), "{text}");
        }
        for text in [
            "",
            "ingress",
            "in:tcp:1",
            "ingress:tls:1",
            "ingress:tcp:70000",
            "ingress:tcp:1-",
        ] {
            assert!(rule(text).is_err(), "{text}");
        }
    }
}
