//! Networks, security groups and certificate authorities.

use serde::{Deserialize, Serialize};

/// A request for a new network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NetworkCreate {
    /// The organization.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub organization_id: String,
    /// The project.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub project_id: String,
    /// The region.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 63, pattern = r"^[0-9a-z](?:[0-9a-z._-]{0,61}[0-9a-z])?$")
    )]
    pub region_id: String,
    /// The name, unique in the project.
    #[cfg_attr(
        feature = "openapi",
        schema(
            max_length = 63,
            pattern = r"^[0-9A-Za-z](?:[0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?$"
        )
    )]
    pub name: String,
    /// The addresses, as an IPv4 prefix of 8 to 28 bits: `10.0.0.0/16`.
    #[cfg_attr(feature = "openapi", schema(schema_with = crate::schema::network_prefix))]
    pub prefix: String,
    /// The addresses of name servers: at most 5, each once.
    #[cfg_attr(feature = "openapi", schema(schema_with = crate::schema::name_servers))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dns_nameservers: Vec<String>,
}

/// A network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub id: String,
    /// Its organization.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub organization_id: String,
    /// Its project.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub project_id: String,
    /// Its region.
    pub region_id: String,
    /// Its name.
    pub name: String,
    /// Its addresses.
    pub prefix: String,
    /// The addresses of its name servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dns_nameservers: Vec<String>,
    /// Whether it can be used.
    pub state: NetworkState,
}

/// Whether a network can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum NetworkState {
    /// It can.
    Ready,
    /// It is being deleted.
    Deleting,
}

/// A page of networks, in the order of their ids.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct NetworkPage {
    /// The networks.
    pub items: Vec<Network>,
    /// Where the next page starts: pass it as `after`. It is absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A request for a new security group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecurityGroupCreate {
    /// Its network.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub network_id: String,
    /// The name, unique in the network.
    #[cfg_attr(
        feature = "openapi",
        schema(
            max_length = 63,
            pattern = r"^[0-9A-Za-z](?:[0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?$"
        )
    )]
    pub name: String,
    /// Its rules, at most 100.
    #[cfg_attr(feature = "openapi", schema(max_items = 100))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
}

/// The new rules of a security group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecurityGroupUpdate {
    /// They replace the present ones. At most 100.
    #[cfg_attr(feature = "openapi", schema(max_items = 100))]
    pub rules: Vec<Rule>,
}

/// A rule of a security group: which connections it permits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// Into or out of the machine.
    pub direction: Direction,
    /// The protocol.
    pub protocol: Protocol,
    /// The port, or the first of several. Only for TCP and UDP.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 65535))]
    #[serde(
        default,
        deserialize_with = "crate::number::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub port: Option<u16>,
    /// The last port of several.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 65535))]
    #[serde(
        default,
        deserialize_with = "crate::number::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub port_max: Option<u16>,
    /// The addresses at the other end, as a prefix. Default: all.
    #[cfg_attr(feature = "openapi", schema(schema_with = crate::schema::prefix))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// The direction of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum Direction {
    /// Into the machine.
    Ingress,
    /// Out of the machine.
    Egress,
}

/// The protocol of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub enum Protocol {
    /// All of them.
    Any,
    /// ICMP.
    Icmp,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A security group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroup {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub id: String,
    /// Its organization.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub organization_id: String,
    /// Its project.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub project_id: String,
    /// Its network.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub network_id: String,
    /// Its name.
    pub name: String,
    /// Its rules.
    pub rules: Vec<Rule>,
}

/// A page of security groups, in the order of their ids.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupPage {
    /// The groups.
    pub items: Vec<SecurityGroup>,
    /// Where the next page starts: pass it as `after`. It is absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A request to register an SSH certificate authority.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SshAuthorityCreate {
    /// The organization.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub organization_id: String,
    /// The project.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub project_id: String,
    /// The name, unique in the project.
    #[cfg_attr(
        feature = "openapi",
        schema(
            max_length = 63,
            pattern = r"^[0-9A-Za-z](?:[0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?$"
        )
    )]
    pub name: String,
    /// Its public key, one line in the format of OpenSSH.
    #[cfg_attr(feature = "openapi", schema(max_length = 8192))]
    pub public_key: String,
}

/// An SSH certificate authority.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SshAuthority {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub id: String,
    /// Its organization.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub organization_id: String,
    /// Its project.
    #[cfg_attr(feature = "openapi", schema(format = "uuid"))]
    pub project_id: String,
    /// Its name.
    pub name: String,
    /// Its public key.
    pub public_key: String,
}

/// A page of certificate authorities, in the order of their ids.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SshAuthorityPage {
    /// The authorities.
    pub items: Vec<SshAuthority>,
    /// Where the next page starts: pass it as `after`. It is absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
