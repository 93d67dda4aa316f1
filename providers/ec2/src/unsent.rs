//! Why a request was not sent: credentials, region, or the request itself.
//!
//! Owns the difference between a setting that is missing or wrong, which a retry cannot repair, and a source of
//! credentials that does not respond at the moment. The SDK's own text is only read and never shown: it can contain
//! the output of a credentials process or the response of a credentials service.

use std::error::Error as StdError;

use aws_config::{imds::client::error::ImdsError, meta::ProviderChainError};
use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_ec2::error::SdkError;
use aws_smithy_runtime_api::client::result::ConnectorError;
use fleetwright_provider_support::Setting;

use crate::error::{Cause, Failure};

/// What to do if no source has credentials.
const NO_CREDENTIALS: &str = "no credentials were found for EC2: set AWS_ACCESS_KEY_ID and \
    AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a profile with credentials in ~/.aws/credentials or ~/.aws/config, \
    or run where an instance, a container or a web identity has a role";

/// What to do if the selected profile does not exist.
const NO_PROFILE: &str = "no credentials were found for EC2: the selected profile does not exist; set \
    AWS_PROFILE to a profile of ~/.aws/credentials or ~/.aws/config (AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE), \
    or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";

/// What to do if a source is set up wrongly.
const BAD_SETTINGS: &str = "the settings for the credentials of EC2 are invalid: check the profile that \
    AWS_PROFILE selects in ~/.aws/credentials and ~/.aws/config (AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE), \
    and the variables AWS_CONTAINER_CREDENTIALS_* and AWS_WEB_IDENTITY_TOKEN_FILE";

/// What to do if a source was called and has none to give.
const REFUSED: &str = "the source of the credentials for EC2 failed or refused to give them: check the role and \
    the credential_process of the profile that AWS_PROFILE selects, the login of its SSO session, and the role of \
    the instance, of the container or of AWS_ROLE_ARN";

/// What happened if a source may have credentials later.
const UNAVAILABLE: &str = "the source of the credentials for EC2 does not respond: the metadata service, the \
    container endpoint or the security token service; retry, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";

/// The missing or unknown region, as an invalid value.
const REGION: Cause = Cause::InvalidSetting(&Setting {
    field: "region",
    expected: "known; set AWS_REGION, or region in the profile of ~/.aws/config, or the region of SdkConfig",
});

/// Converts the error of a call whose request was not sent.
pub(crate) fn failure<E, R>(error: &SdkError<E, R>) -> Failure
where
    SdkError<E, R>: StdError + 'static,
{
    let (cause, message) = match error {
        // The credentials were waited for: only a request takes no time before it is sent.
        SdkError::TimeoutError(_) => (Cause::CredentialsUnavailable, UNAVAILABLE),
        SdkError::ConstructionFailure(_)
        | SdkError::DispatchFailure(_)
        | SdkError::ResponseError(_)
        | SdkError::ServiceError(_)
        | _ => cause(error),
    };
    Failure::new(cause, message)
}

/// Returns the cause and what to do.
fn cause(error: &(dyn StdError + 'static)) -> (Cause, &'static str) {
    let credentials = sources(error).find_map(|one| one.downcast_ref::<CredentialsError>());
    if let Some(credentials) = credentials {
        return without_credentials(credentials);
    }
    // The SDK keeps the types of these errors to itself.
    let mentions = |word: &str| sources(error).any(|one| one.to_string().contains(word));
    if mentions("identity resolver timed out") {
        (Cause::CredentialsUnavailable, UNAVAILABLE)
    } else if mentions("identity") {
        (Cause::NoCredentials, NO_CREDENTIALS)
    } else if mentions("egion") {
        (REGION, "")
    } else {
        (Cause::NotSent, "the request to EC2 could not be built")
    }
}

/// Returns the cause and what to do if a source of credentials failed.
fn without_credentials(error: &CredentialsError) -> (Cause, &'static str) {
    match error {
        CredentialsError::CredentialsNotLoaded(_) => {
            let attempts = attempts(error);
            // A machine without a metadata service cannot reach it; one that refuses connections exists.
            if attempts.iter().any(|one| is_refused_connection(*one)) {
                (Cause::CredentialsUnavailable, UNAVAILABLE)
            } else if attempts.iter().any(|one| is_missing_profile(*one)) {
                (Cause::NoCredentials, NO_PROFILE)
            } else {
                (Cause::NoCredentials, NO_CREDENTIALS)
            }
        }
        CredentialsError::InvalidConfiguration(_) => (Cause::NoCredentials, BAD_SETTINGS),
        CredentialsError::ProviderTimedOut(_) => (Cause::CredentialsUnavailable, UNAVAILABLE),
        // `ProviderError` and `Unhandled`: the source was called.
        _ if may_pass(error) => (Cause::CredentialsUnavailable, UNAVAILABLE),
        CredentialsError::ProviderError(_) | CredentialsError::Unhandled(_) | _ => {
            (Cause::NoCredentials, REFUSED)
        }
    }
}

/// Returns the error of each source that was tried.
fn attempts(error: &CredentialsError) -> Vec<&CredentialsError> {
    let chain = error
        .source()
        .and_then(|source| source.downcast_ref::<ProviderChainError<CredentialsError>>());
    chain.map_or_else(
        || vec![error],
        |chain| chain.attempts().iter().map(|one| one.error()).collect(),
    )
}

/// Returns whether a source refused the connection.
fn is_refused_connection(error: &(dyn StdError + 'static)) -> bool {
    let io = sources(error).filter_map(|one| one.downcast_ref::<std::io::Error>());
    let kinds: Vec<_> = io.map(std::io::Error::kind).collect();
    kinds.contains(&std::io::ErrorKind::ConnectionRefused)
}

/// Returns whether the selected profile does not exist. The type of that error is private.
fn is_missing_profile(error: &(dyn StdError + 'static)) -> bool {
    sources(error).any(|one| one.to_string().contains("was not defined"))
}

/// Returns whether a source that was called may have credentials later: it could not be reached, took too long,
/// was overloaded or broke down.
fn may_pass(error: &CredentialsError) -> bool {
    let is_connection = |one: &(dyn StdError + 'static)| {
        let metadata = one.downcast_ref::<ImdsError>();
        let unreachable = matches!(
            metadata,
            Some(ImdsError::IoError(_) | ImdsError::FailedToLoadToken(_))
        );
        unreachable || one.is::<ConnectorError>()
    };
    let status = status_in(&format!("{error:?}"));
    match status {
        Some(status) => status == 429 || status >= 500,
        None => sources(error).any(is_connection),
    }
}

/// Returns the HTTP status in the debug output of an error. Sources report it under types of their own.
fn status_in(debug: &str) -> Option<u16> {
    let (_, rest) = debug.split_once("StatusCode(")?;
    let (digits, _) = rest.split_once(')')?;
    digits.parse().ok()
}

/// Returns an error and its sources.
fn sources<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    let next = |one: &&'a (dyn StdError + 'static)| {
        let one: &'a (dyn StdError + 'static) = *one;
        one.source()
    };
    std::iter::successors(Some(error), next)
}
