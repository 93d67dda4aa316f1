//! The credentials of the environment. Pure: the caller reads the variables.
//!
//! Owns which variables select which source. It never tries a second source, because that would
//! hide why the configured one fails.

use crate::{
    AzureCloud, AzureCredentials, ManagedIdentity, ServicePrincipal, TokenFailure, client::identity,
};

const SELECTION: &str = "AZURE_TOKEN_CREDENTIALS";
const AUTHORITY: &str = "AZURE_AUTHORITY_HOST";
const TENANT: &str = "AZURE_TENANT_ID";
const CLIENT: &str = "AZURE_CLIENT_ID";
const SECRET: &str = "AZURE_CLIENT_SECRET";
const CERTIFICATE: &str = "AZURE_CLIENT_CERTIFICATE_PATH";
const PASSWORD: &str = "AZURE_CLIENT_CERTIFICATE_PASSWORD";
const TOKEN_FILE: &str = "AZURE_FEDERATED_TOKEN_FILE";
const METADATA: &str = "AZURE_POD_IDENTITY_AUTHORITY_HOST";
const APP_SERVICE: &str = "IDENTITY_ENDPOINT";
const APP_SERVICE_SECRET: &str = "IDENTITY_HEADER";

/// Reads a variable.
pub(super) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A source that the environment can select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Secret,
    Certificate,
    TokenFile,
    Managed,
    Cli,
}

/// Returns the credentials that the variables configure.
pub(super) fn select(variables: Variables<'_>) -> Result<AzureCredentials, TokenFailure> {
    let read = |name: &str| variables(name).filter(|value| !value.is_empty());
    let choice = choose(&read)?;
    Ok(match choice {
        Choice::Secret => {
            let (principal, secret) = principal(&read, SECRET)?;
            AzureCredentials::client_secret(principal, secret)
        }
        Choice::Certificate => {
            if read(PASSWORD).is_some() {
                return Err(TokenFailure::refused(format!(
                    "{PASSWORD} is set, but certificates with a password are not supported; write the key without \
                     a password into the PEM file that {CERTIFICATE} names, and unset {PASSWORD}"
                )));
            }
            let (principal, path) = principal(&read, CERTIFICATE)?;
            AzureCredentials::client_certificate(principal, path)
        }
        Choice::TokenFile => {
            let (principal, path) = principal(&read, TOKEN_FILE)?;
            AzureCredentials::workload_identity(principal, path)
        }
        Choice::Managed => AzureCredentials::managed_identity(managed(&read)?),
        Choice::Cli => AzureCredentials::azure_cli(),
    })
}

/// Returns the cloud of the authority that the process environment selects.
pub(crate) fn cloud_of_env() -> Result<AzureCloud, TokenFailure> {
    cloud(&|name| std::env::var(name).ok())
}

/// Returns the cloud that the authority of `variables` belongs to.
fn cloud(variables: Variables<'_>) -> Result<AzureCloud, TokenFailure> {
    let Some(authority) = variables(AUTHORITY).filter(|value| !value.is_empty()) else {
        return Ok(AzureCloud::Public);
    };
    let host = identity::host_of(&authority, AUTHORITY)?;
    AzureCloud::of_authority(&host).ok_or_else(|| {
        TokenFailure::refused(format!(
            "{AUTHORITY} names {host}, which belongs to none of Microsoft's clouds, so the endpoint is unknown; use \
             AzureProvisioner::new with the endpoint and the scope in AzureOptions"
        ))
    })
}

/// Returns the source that the variables select.
fn choose(read: Variables<'_>) -> Result<Choice, TokenFailure> {
    let is_set = |name: &str| read(name).is_some();
    let principal = || {
        let each = [(SECRET, Choice::Secret), (CERTIFICATE, Choice::Certificate)];
        let found = each.into_iter().find(|(name, _)| is_set(name));
        found.map(|(_, choice)| choice)
    };
    if let Some(name) = read(SELECTION) {
        return match name.to_ascii_lowercase().as_str() {
            "environmentcredential" => principal().ok_or_else(|| {
                TokenFailure::refused(format!(
                    "{SELECTION} is EnvironmentCredential, but neither {SECRET} nor {CERTIFICATE} is set"
                ))
            }),
            "workloadidentitycredential" => Ok(Choice::TokenFile),
            "managedidentitycredential" => Ok(Choice::Managed),
            "azureclicredential" => Ok(Choice::Cli),
            _ => Err(TokenFailure::refused(format!(
                "{SELECTION} must be EnvironmentCredential, WorkloadIdentityCredential, ManagedIdentityCredential or \
                 AzureCliCredential"
            ))),
        };
    }
    if let Some(choice) = principal() {
        return Ok(choice);
    }
    if is_set(TOKEN_FILE) {
        return Ok(Choice::TokenFile);
    }
    if is_set(APP_SERVICE) || is_set(METADATA) {
        return Ok(Choice::Managed);
    }
    Err(TokenFailure::refused(format!(
        "no credentials for Azure are configured: set {TENANT} and {CLIENT} with {SECRET}, {CERTIFICATE} or \
         {TOKEN_FILE}; or set {SELECTION} to ManagedIdentityCredential on an Azure machine, or to AzureCliCredential \
         after az login"
    )))
}

/// Returns the service principal and the value of `proof`. The error names every variable that is
/// missing.
fn principal(read: Variables<'_>, proof: &str) -> Result<(ServicePrincipal, String), TokenFailure> {
    let needed = [TENANT, CLIENT, proof];
    let missing: Vec<_> = needed
        .into_iter()
        .filter(|name| read(name).is_none())
        .collect();
    if !missing.is_empty() {
        let missing = missing.join(" and ");
        let why = if read(proof).is_some() {
            format!("{proof} is set")
        } else {
            format!("{SELECTION} selects this source")
        };
        return Err(TokenFailure::refused(format!(
            "{why}, but {missing} is not; set it"
        )));
    }
    let value = |name| read(name).unwrap_or_default();
    let mut principal = ServicePrincipal::new(value(TENANT), value(CLIENT));
    if let Some(authority) = read(AUTHORITY) {
        identity::host_of(&authority, AUTHORITY)?;
        principal = principal.at(authority);
    }
    Ok((principal, value(proof)))
}

/// Returns the managed identity.
fn managed(read: Variables<'_>) -> Result<ManagedIdentity, TokenFailure> {
    if read(APP_SERVICE).is_some() && read(APP_SERVICE_SECRET).is_none() {
        return Err(TokenFailure::refused(format!(
            "{APP_SERVICE} is set, but {APP_SERVICE_SECRET} is not; an app service sets both, and the managed identity \
             of an Azure Arc machine is not supported"
        )));
    }
    let identity = read(CLIENT).map_or_else(ManagedIdentity::system, ManagedIdentity::client_id);
    Ok(match read(METADATA) {
        Some(host) => identity.at(host),
        None => identity,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what these variables select: the source's `Debug`, or the error.
    fn selected(pairs: &[(&str, &str)]) -> Result<String, String> {
        let read = |name: &str| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        match select(&read) {
            Ok(credentials) => Ok(format!("{credentials:?}")),
            Err(failure) => {
                assert!(matches!(failure, TokenFailure::Refused(_)), "{failure:?}");
                Err(failure.to_string())
            }
        }
    }

    const PRINCIPAL: [(&str, &str); 2] = [(TENANT, "t-1"), (CLIENT, "c-1")];

    fn with<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        PRINCIPAL.into_iter().chain(more.iter().copied()).collect()
    }

    #[test]
    fn variables_select_one_source_in_a_fixed_order() {
        let all = with(&[
            (SECRET, "s3cr3t"),
            (CERTIFICATE, "/c.pem"),
            (TOKEN_FILE, "/token"),
            (APP_SERVICE, "http://127.0.0.1/msi"),
            (APP_SERVICE_SECRET, "s3cr3t"),
        ]);
        let names = ["Secret", "Certificate", "TokenFile", "ManagedSource"];
        for (at, name) in names.into_iter().enumerate() {
            let unset = [SECRET, CERTIFICATE, TOKEN_FILE];
            let left: Vec<_> = all
                .iter()
                .copied()
                .filter(|(key, _)| !unset[..at].contains(key))
                .collect();
            let source = selected(&left).unwrap();
            assert!(source.contains(name), "{name}: {source}");
            assert!(!source.contains("s3cr3t"), "{source}");
        }
    }

    #[test]
    fn selection_overrides_the_order_and_must_be_complete() {
        let cases = [
            ("AzureCliCredential", "CliSource"),
            ("managedidentitycredential", "ManagedSource"),
            ("WorkloadIdentityCredential", "TokenFile"),
            ("EnvironmentCredential", "Secret"),
        ];
        let all = with(&[(SECRET, "s3cr3t"), (TOKEN_FILE, "/token")]);
        for (value, name) in cases {
            let mut all = all.clone();
            all.push((SELECTION, value));
            let source = selected(&all).unwrap();
            assert!(source.contains(name), "{value}: {source}");
        }
        let error = selected(&with(&[(SELECTION, "WorkloadIdentityCredential")])).unwrap_err();
        assert!(error.contains(TOKEN_FILE), "{error}");
        let error = selected(&with(&[(SELECTION, "EnvironmentCredential")])).unwrap_err();
        assert!(
            error.contains(SECRET) && error.contains(CERTIFICATE),
            "{error}"
        );
        let error = selected(&[(SELECTION, "s3cr3t")]).unwrap_err();
        assert!(
            error.contains("AzureCliCredential") && !error.contains("s3cr3t"),
            "{error}"
        );
    }

    #[test]
    fn error_names_the_variables_that_are_missing() {
        let nothing = selected(&[]).unwrap_err();
        for name in [TENANT, CLIENT, SECRET, CERTIFICATE, TOKEN_FILE, SELECTION] {
            assert!(nothing.contains(name), "{name}: {nothing}");
        }
        // Every proof needs tenant and client. An empty variable is unset.
        for proof in [SECRET, CERTIFICATE, TOKEN_FILE] {
            for (left, missing) in [(TENANT, CLIENT), (CLIENT, TENANT)] {
                let error =
                    selected(&[(proof, "/s3cr3t"), (left, "x"), (missing, "")]).unwrap_err();
                assert!(error.contains(missing) && !error.contains(left), "{error}");
                assert!(!error.contains("s3cr3t"), "{error}");
            }
        }
        let error = selected(&[(APP_SERVICE, "http://127.0.0.1/msi")]).unwrap_err();
        assert!(error.contains(APP_SERVICE_SECRET), "{error}");
        let error = selected(&with(&[(CERTIFICATE, "/c.pem"), (PASSWORD, "s3cr3t")])).unwrap_err();
        assert!(
            error.contains(PASSWORD) && !error.contains("s3cr3t"),
            "{error}"
        );
    }

    #[test]
    fn client_id_selects_a_user_assigned_identity() {
        let managed = (SELECTION, "ManagedIdentityCredential");
        assert!(selected(&[managed]).unwrap().contains("System"));
        let user = selected(&[managed, (CLIENT, "c-1")]).unwrap();
        assert!(user.contains(r#"Client("c-1")"#), "{user}");
        let custom = selected(&[(METADATA, "http://127.0.0.1:4141")]).unwrap();
        assert!(custom.contains("http://127.0.0.1:4141"), "{custom}");
    }

    #[test]
    fn authority_decides_the_cloud() {
        let cloud_of = |value: &str| {
            let read = |name: &str| (name == AUTHORITY).then(|| value.to_owned());
            cloud(&read).map_err(|failure| failure.to_string())
        };
        assert_eq!(cloud_of(""), Ok(AzureCloud::Public));
        for cloud in AzureCloud::ALL {
            assert_eq!(cloud_of(cloud.authority()), Ok(cloud));
            assert_eq!(cloud_of(&format!("{}/", cloud.authority())), Ok(cloud));
        }
        assert!(
            cloud_of("https://login.example.net")
                .unwrap_err()
                .contains("AzureOptions")
        );
        for odd in [
            "login.microsoftonline.us",
            "http://login.microsoftonline.us",
            "https://a/b",
        ] {
            assert!(cloud_of(odd).unwrap_err().contains(AUTHORITY), "{odd}");
            let error = selected(&with(&[(SECRET, "s3cr3t"), (AUTHORITY, odd)])).unwrap_err();
            assert!(error.contains(AUTHORITY), "{error}");
        }
        let source = selected(&with(&[
            (SECRET, "s3cr3t"),
            (AUTHORITY, AzureCloud::UsGovernment.authority()),
        ]));
        assert!(source.unwrap().contains("login.microsoftonline.us"));
    }
}
