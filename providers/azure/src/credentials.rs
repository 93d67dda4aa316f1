//! Credentials: who the provisioner is, and where its tokens come from.
//!
//! Owns the public types for credentials. They hold what was configured; the client requests, keeps
//! and renews the token.

mod environment;
mod token;

use std::{fmt, path::PathBuf, sync::Arc};

use crate::{AzureCloud, client::identity};

pub(crate) use self::environment::cloud_of_env;
use self::token::Fixed;
pub use self::token::{Token, TokenFailure, TokenSource};

/// A source of access tokens. Cheap to clone.
///
/// Each provisioner keeps one token for all its calls. It renews the token in the background, five
/// minutes before it expires, and requests another one after Azure has refused it. While the token
/// is valid, no call waits for its renewal or fails because of it.
///
/// ```
/// use fleetwright_azure::{
///     AzureCredentials, ManagedIdentity, ServicePrincipal, Token, TokenFailure, TokenSource,
///     fleetwright::async_trait,
/// };
///
/// // A service principal with a secret.
/// let principal = ServicePrincipal::new("tenant", "client");
/// let credentials = AzureCredentials::client_secret(principal, "s3cr3t");
/// assert!(!format!("{credentials:?}").contains("s3cr3t"));
///
/// // A user-assigned identity of the machine that this program runs on.
/// let credentials = AzureCredentials::managed_identity(ManagedIdentity::client_id("client"));
///
/// // Your own source of tokens.
/// #[derive(Debug)]
/// struct Vault;
///
/// #[async_trait]
/// impl TokenSource for Vault {
///     async fn token(&self, _scope: &str) -> Result<Token, TokenFailure> {
///         Err(TokenFailure::unavailable("the vault cannot be reached; retry later"))
///     }
/// }
/// let credentials = AzureCredentials::of(Vault);
/// ```
#[derive(Clone, Debug)]
pub struct AzureCredentials {
    pub(crate) source: Arc<dyn TokenSource>,
}

impl AzureCredentials {
    /// Takes the credentials that the environment configures. The variables select one source; no
    /// other is tried if it fails. Sends nothing.
    ///
    /// `AZURE_TOKEN_CREDENTIALS` names the source. Without it, the first row whose variable is set
    /// counts:
    ///
    /// | set | value of `AZURE_TOKEN_CREDENTIALS` | source |
    /// | --- | --- | --- |
    /// | `AZURE_CLIENT_SECRET` | `EnvironmentCredential` | [`client_secret`](Self::client_secret) |
    /// | `AZURE_CLIENT_CERTIFICATE_PATH` | `EnvironmentCredential` | [`client_certificate`](Self::client_certificate) |
    /// | `AZURE_FEDERATED_TOKEN_FILE` | `WorkloadIdentityCredential` | [`workload_identity`](Self::workload_identity) |
    /// | `IDENTITY_ENDPOINT` or `AZURE_POD_IDENTITY_AUTHORITY_HOST` | `ManagedIdentityCredential` | [`managed_identity`](Self::managed_identity) |
    /// | | `AzureCliCredential` | [`azure_cli`](Self::azure_cli) |
    ///
    /// The first three need `AZURE_TENANT_ID` and `AZURE_CLIENT_ID`. With a managed identity,
    /// `AZURE_CLIENT_ID` selects a user-assigned one. `AZURE_AUTHORITY_HOST` selects the authority;
    /// the default is that of the public cloud. An empty variable counts as unset.
    ///
    /// # Errors
    ///
    /// [`TokenFailure::Refused`], which names the variables to set.
    pub fn from_env() -> Result<Self, TokenFailure> {
        environment::select(&|name| std::env::var(name).ok())
    }

    /// Takes a service principal with a secret.
    ///
    /// The secret is kept in memory and never logged; `Debug` does not show it.
    pub fn client_secret(principal: ServicePrincipal, secret: impl Into<String>) -> Self {
        let proof = identity::Proof::Secret(secret.into());
        Self::of(identity::EntraSource::new(principal, proof))
    }

    /// Takes a service principal with a certificate: the path of a PEM file that contains the
    /// certificate and its RSA key, without a password. The file is read at every request for a
    /// token.
    pub fn client_certificate(principal: ServicePrincipal, pem_file: impl Into<PathBuf>) -> Self {
        let proof = identity::Proof::Certificate(pem_file.into());
        Self::of(identity::EntraSource::new(principal, proof))
    }

    /// Takes the identity of a workload: the path of a file that contains a token of another
    /// issuer, such as Kubernetes, which the application trusts. The file is read at every request
    /// for a token, because its issuer replaces it.
    pub fn workload_identity(principal: ServicePrincipal, token_file: impl Into<PathBuf>) -> Self {
        let proof = identity::Proof::TokenFile(token_file.into());
        Self::of(identity::EntraSource::new(principal, proof))
    }

    /// Takes an identity of the Azure resource that this program runs on: a virtual machine, or an
    /// app service with `IDENTITY_ENDPOINT` and `IDENTITY_HEADER`.
    pub fn managed_identity(which: ManagedIdentity) -> Self {
        Self::of(identity::ManagedSource::new(which))
    }

    /// Takes the login of the `az` command, version 2.54 or later, for a developer's machine. The
    /// command runs at every request for a token.
    pub fn azure_cli() -> Self {
        Self::of(identity::CliSource)
    }

    /// Takes one token that is never renewed, for an emulator or a short script.
    pub fn token(token: impl Into<String>) -> Self {
        Self::of(Fixed(token.into()))
    }

    /// Takes any other source of tokens.
    pub fn of(source: impl TokenSource + 'static) -> Self {
        Self {
            source: Arc::new(source),
        }
    }
}

/// An application of a tenant, and the authority that knows it. Contains no secret.
///
/// ```
/// use fleetwright_azure::{AzureCloud, AzureCredentials, ServicePrincipal};
///
/// let principal = ServicePrincipal::new("my-tenant", "my-application")
///     .at(AzureCloud::UsGovernment.authority());
/// let credentials = AzureCredentials::client_certificate(principal, "/etc/fleet/client.pem");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServicePrincipal {
    /// The tenant: its id or its domain.
    pub tenant: String,
    /// The id of the application, which Azure also calls the client id.
    pub client: String,
    /// The URL of the authority: `https`, or `http` on this machine.
    pub authority: String,
}

impl ServicePrincipal {
    /// Creates a service principal of the public cloud.
    pub fn new(tenant: impl Into<String>, client: impl Into<String>) -> Self {
        Self {
            tenant: tenant.into(),
            client: client.into(),
            authority: AzureCloud::Public.authority().to_owned(),
        }
    }

    /// Sets the authority: that of another [`AzureCloud`], or one of your own.
    #[must_use]
    pub fn at(mut self, authority: impl Into<String>) -> Self {
        self.authority = authority.into();
        self
    }
}

/// Which managed identity to use, and where its tokens are requested.
///
/// ```
/// use fleetwright_azure::{AzureCredentials, ManagedIdentity};
///
/// let credentials = AzureCredentials::managed_identity(ManagedIdentity::system());
/// let other = AzureCredentials::managed_identity(ManagedIdentity::client_id("my-client-id"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedIdentity {
    pub(crate) id: IdentityId,
    /// The URL of the metadata service; `None` for `http://169.254.169.254`.
    pub(crate) metadata_host: Option<String>,
}

/// How an identity is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IdentityId {
    System,
    Client(String),
    Object(String),
    Resource(String),
}

impl ManagedIdentity {
    const fn new(id: IdentityId) -> Self {
        Self {
            id,
            metadata_host: None,
        }
    }

    /// The identity that the resource itself has.
    pub const fn system() -> Self {
        Self::new(IdentityId::System)
    }

    /// A user-assigned identity, by its client id.
    pub fn client_id(id: impl Into<String>) -> Self {
        Self::new(IdentityId::Client(id.into()))
    }

    /// A user-assigned identity, by its object id.
    pub fn object_id(id: impl Into<String>) -> Self {
        Self::new(IdentityId::Object(id.into()))
    }

    /// A user-assigned identity, by its resource id. Not for app services.
    pub fn resource_id(id: impl Into<String>) -> Self {
        Self::new(IdentityId::Resource(id.into()))
    }

    /// Sets the URL of the metadata service, in place of `http://169.254.169.254`.
    #[must_use]
    pub fn at(mut self, metadata_host: impl Into<String>) -> Self {
        self.metadata_host = Some(metadata_host.into());
        self
    }
}

impl fmt::Display for ManagedIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            IdentityId::System => f.write_str("the system-assigned identity"),
            IdentityId::Client(id) => write!(f, "the identity with client id {id}"),
            IdentityId::Object(id) => write!(f, "the identity with object id {id}"),
            IdentityId::Resource(id) => write!(f, "the identity {id}"),
        }
    }
}
