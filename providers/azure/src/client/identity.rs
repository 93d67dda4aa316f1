//! Identity: Microsoft's credential types as sources of tokens, and the token that all calls share.
//!
//! Owns every use of `azure_identity`. The SDK for machines must never get a token, because it writes
//! headers into its debug log.
//!
//! A credential of `azure_identity` is built for each request, because it keeps its token and would
//! return one that Azure has refused; the client's own cache limits the requests. The crate's retries
//! are off, and its error texts, which may quote secrets, are not kept: [`TokenService`] classifies
//! every response itself.
//!
//! Submodules: `cache` keeps the token, `service` sends requests to token services, `certificate`
//! signs assertions, `command` runs the `az` command.

mod cache;
mod certificate;
mod command;
mod service;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use azure_core_v1::{
    cloud::{CloudConfiguration, CustomConfiguration},
    credentials::{Secret, TokenCredential},
    error::Error,
    http::{ClientMethodOptions, ClientOptions, RetryOptions, Transport, Url},
};
use azure_identity::{
    AzureCliCredential, AzureCliCredentialOptions, ClientAssertion, ClientAssertionCredential,
    ClientAssertionCredentialOptions, ClientSecretCredential, ClientSecretCredentialOptions,
    ManagedIdentityCredential, ManagedIdentityCredentialOptions, UserAssignedId,
};
use chrono::{DateTime, Utc};
use fleetwright::async_trait;
use uuid::Uuid;

pub(super) use self::cache::TokenCache;
use self::{
    command::AzCommand,
    service::{Kind, TokenService},
};
use crate::{
    ManagedIdentity, ServicePrincipal, Token, TokenFailure, TokenSource, credentials::IdentityId,
};

/// Where `azure_identity` requests the tokens of a machine.
const METADATA_HOST: &str = "http://169.254.169.254";

/// How a service principal proves who it is.
pub(crate) enum Proof {
    Secret(String),
    /// The path of a PEM file.
    Certificate(PathBuf),
    /// The path of a file with a token of another issuer.
    TokenFile(PathBuf),
}

impl Proof {
    /// The settings that a user must check if the proof is refused.
    const fn settings(&self) -> &'static str {
        match self {
            Self::Secret(_) => "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET",
            Self::Certificate(_) => {
                "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_CERTIFICATE_PATH"
            }
            Self::TokenFile(_) => "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_FEDERATED_TOKEN_FILE",
        }
    }
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret(_) => f.write_str("Secret"),
            Self::Certificate(path) => f.debug_tuple("Certificate").field(path).finish(),
            Self::TokenFile(path) => f.debug_tuple("TokenFile").field(path).finish(),
        }
    }
}

/// A service principal, at the authority of its tenant.
#[derive(Debug)]
pub(crate) struct EntraSource {
    principal: ServicePrincipal,
    proof: Proof,
    http: service::LazyClient,
}

impl EntraSource {
    /// Creates a source. Sends nothing.
    pub(crate) const fn new(principal: ServicePrincipal, proof: Proof) -> Self {
        Self {
            principal,
            proof,
            http: service::LazyClient::new(service::Proxy::Environment),
        }
    }

    /// Returns the assertion that a file proves.
    async fn assertion(&self, path: &Path, authority: &Url) -> Result<String, TokenFailure> {
        let name = path.display();
        let content = {
            let path = path.to_owned();
            // The file may be on a network file system.
            let read = tokio::task::spawn_blocking(move || std::fs::read(path)).await;
            read.map_err(|_| TokenFailure::unavailable(format!("reading {name} was cancelled")))?
        };
        let content = content.map_err(|error| unread_file(&name, &error, self.proof.settings()))?;
        if matches!(self.proof, Proof::Certificate(_)) {
            let ServicePrincipal { tenant, client, .. } = &self.principal;
            let audience = format!(
                "{}/{tenant}/oauth2/v2.0/token",
                authority.origin().ascii_serialization()
            );
            let signed = certificate::sign(&content, &audience, client, Utc::now(), Uuid::new_v4());
            return signed.map_err(|problem| {
                TokenFailure::refused(format!("the certificate file {name} {problem}"))
            });
        }
        let token = String::from_utf8(content).unwrap_or_default();
        let token = token.trim();
        if token.is_empty() {
            return Err(TokenFailure::refused(format!(
                "the token file {name} contains no token; check {}",
                self.proof.settings()
            )));
        }
        Ok(token.to_owned())
    }
}

#[async_trait]
impl TokenSource for EntraSource {
    async fn token(&self, scope: &str) -> Result<Token, TokenFailure> {
        let Self {
            principal, proof, ..
        } = self;
        let authority = authority_url(&principal.authority, "the authority")?;
        let service = TokenService {
            http: self.http.client()?,
            kind: Kind::Authority,
            route: Some((over_https(&authority), authority.clone())),
            who: format!(
                "application {} of tenant {}",
                principal.client, principal.tenant
            ),
            settings: proof.settings(),
        };
        let options = client_options(service, Some(over_https(&authority)));
        let (tenant, client) = (principal.tenant.clone(), principal.client.clone());
        let malformed = |_| {
            TokenFailure::refused(format!(
                "the tenant, the client id or the proof of application {client} has no valid form; check {}",
                proof.settings()
            ))
        };
        let credential: Arc<dyn TokenCredential> = match proof {
            Proof::Secret(secret) => {
                let options = ClientSecretCredentialOptions {
                    client_options: options,
                };
                let secret = Secret::new(secret.clone());
                ClientSecretCredential::new(&tenant, client.clone(), secret, Some(options))
                    .map_err(malformed)?
            }
            Proof::Certificate(path) | Proof::TokenFile(path) => {
                let assertion = Assertion(self.assertion(path, &authority).await?);
                let options = ClientAssertionCredentialOptions {
                    client_options: options,
                };
                ClientAssertionCredential::new(tenant, client.clone(), assertion, Some(options))
                    .map_err(malformed)?
            }
        };
        request_token(&*credential, scope, unread_response()).await
    }
}

/// An assertion for one request. `Debug` does not show it.
struct Assertion(String);

impl fmt::Debug for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Assertion")
    }
}

#[async_trait]
impl ClientAssertion for Assertion {
    async fn secret(&self, _: Option<ClientMethodOptions<'_>>) -> azure_core_v1::Result<String> {
        Ok(self.0.clone())
    }
}

/// An identity of the machine or app service that this program runs on.
#[derive(Debug)]
pub(crate) struct ManagedSource {
    identity: ManagedIdentity,
    http: service::LazyClient,
}

impl ManagedSource {
    /// Creates a source. Sends nothing.
    pub(crate) const fn new(identity: ManagedIdentity) -> Self {
        Self {
            identity,
            http: service::LazyClient::new(service::Proxy::None),
        }
    }
}

#[async_trait]
impl TokenSource for ManagedSource {
    async fn token(&self, scope: &str) -> Result<Token, TokenFailure> {
        let Self { identity, http } = self;
        let route = match &identity.metadata_host {
            Some(host) => Some((parse(METADATA_HOST)?, parse(host)?)),
            None => None,
        };
        let service = TokenService {
            http: http.client()?,
            kind: Kind::Metadata,
            route,
            who: identity.to_string(),
            settings: "the identities of this machine, and AZURE_CLIENT_ID",
        };
        let user_assigned_id = match identity.id.clone() {
            IdentityId::System => None,
            IdentityId::Client(id) => Some(UserAssignedId::ClientId(id)),
            IdentityId::Object(id) => Some(UserAssignedId::ObjectId(id)),
            IdentityId::Resource(id) => Some(UserAssignedId::ResourceId(id)),
        };
        let options = ManagedIdentityCredentialOptions {
            user_assigned_id,
            client_options: client_options(service, None),
        };
        let unsupported = |error: Error| TokenFailure::refused(error.to_string());
        let credential = ManagedIdentityCredential::new(Some(options)).map_err(unsupported)?;
        request_token(&*credential, scope, unread_response()).await
    }
}

/// The login of the `az` command.
#[derive(Debug)]
pub(crate) struct CliSource;

#[async_trait]
impl TokenSource for CliSource {
    async fn token(&self, scope: &str) -> Result<Token, TokenFailure> {
        let options = AzureCliCredentialOptions {
            executor: Some(Arc::new(AzCommand)),
            ..AzureCliCredentialOptions::default()
        };
        let unsupported = |error: Error| TokenFailure::refused(error.to_string());
        let credential = AzureCliCredential::new(Some(options)).map_err(unsupported)?;
        let unread =
            "the az command printed no token; update the Azure CLI to version 2.54 or later";
        request_token(&*credential, scope, TokenFailure::refused(unread)).await
    }
}

/// The options of every credential: our transport, no retries, an explicit authority.
fn client_options(service: TokenService, authority: Option<Url>) -> ClientOptions {
    let cloud = authority.map(|url| {
        let mut custom = CustomConfiguration::default();
        url.as_str().clone_into(&mut custom.authority_host);
        Arc::new(CloudConfiguration::from(custom))
    });
    ClientOptions {
        retry: RetryOptions::none(),
        transport: Some(Transport::new(Arc::new(service))),
        cloud,
        ..ClientOptions::default()
    }
}

/// Requests a token. `unread` is the failure for a response that cannot be read.
async fn request_token(
    credential: &dyn TokenCredential,
    scope: &str,
    unread: TokenFailure,
) -> Result<Token, TokenFailure> {
    match credential.get_token(&[scope], None).await {
        Ok(token) => {
            let ends = DateTime::from_timestamp(token.expires_on.unix_timestamp(), 0);
            Ok(Token::new(token.token.secret(), ends.unwrap_or_default()))
        }
        Err(error) => Err(token_failure(&error).unwrap_or(unread)),
    }
}

fn unread_response() -> TokenFailure {
    TokenFailure::unavailable("the response to a request for a token for Azure cannot be read")
}

/// Returns the failure that our transport or command put into an error. `None` for an error about a
/// response or an output that cannot be read; its text may quote a secret and is not kept.
fn token_failure(error: &Error) -> Option<TokenFailure> {
    let mut at: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = at {
        if let Some(failure) = inner.downcast_ref::<TokenFailure>() {
            return Some(failure.clone());
        }
        if let Some(error) = inner.downcast_ref::<io::Error>() {
            // An I/O error hides the error that it wraps from `source`.
            let wrapped = error.get_ref().and_then(|it| it.downcast_ref());
            return Some(wrapped.cloned().unwrap_or_else(|| {
                TokenFailure::unavailable(format!("the az command cannot be run: {}", error.kind()))
            }));
        }
        at = inner.source();
    }
    None
}

/// Returns the failure of a file that cannot be read.
fn unread_file(name: &dyn fmt::Display, error: &io::Error, settings: &str) -> TokenFailure {
    let message = format!("{name} cannot be read: {}; check {settings}", error.kind());
    let permanent = [
        io::ErrorKind::NotFound,
        io::ErrorKind::PermissionDenied,
        io::ErrorKind::IsADirectory,
        io::ErrorKind::NotADirectory,
    ];
    if permanent.contains(&error.kind()) {
        TokenFailure::Refused(message)
    } else {
        TokenFailure::Unavailable(message)
    }
}

/// Returns the host of an authority that `name` configures.
pub(crate) fn host_of(authority: &str, name: &str) -> Result<String, TokenFailure> {
    let url = authority_url(authority, name)?;
    Ok(url.host_str().unwrap_or_default().to_owned())
}

/// Parses the URL of an authority: `https`, or `http` on this machine, without a path.
fn authority_url(text: &str, name: &str) -> Result<Url, TokenFailure> {
    let url = Url::parse(text).ok().filter(|url| {
        let secure = url.scheme() == "https" || url.scheme() == "http" && super::is_loopback(url);
        secure
            && url.has_host()
            && url.path() == "/"
            && url.query().is_none()
            && url.username().is_empty()
            && url.password().is_none()
    });
    url.ok_or_else(|| {
        TokenFailure::refused(format!(
            "{name} must be a URL such as https://login.microsoftonline.com: https, or http on this machine, and without \
             a path"
        ))
    })
}

/// Returns the URL that `azure_identity` gets: it refuses `http`, which our transport then uses for
/// an authority on this machine.
fn over_https(authority: &Url) -> Url {
    let mut url = authority.clone();
    let port = url.port_or_known_default();
    // Neither fails: both schemes are known, and the URL has a host.
    let _ = url.set_scheme("https");
    let _ = url.set_port(port);
    url
}

/// Parses the URL of a metadata service.
fn parse(text: &str) -> Result<Url, TokenFailure> {
    let url = Url::parse(text).ok();
    let url = url.filter(|url| url.has_host() && ["http", "https"].contains(&url.scheme()));
    url.ok_or_else(|| {
        TokenFailure::refused(
            "the metadata service must be a URL such as http://127.0.0.1:2579; check \
             AZURE_POD_IDENTITY_AUTHORITY_HOST",
        )
    })
}
