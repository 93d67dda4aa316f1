//! Errors of the SDK, as failures of a call.

use std::time::Duration;

use chrono::{DateTime, Utc};
use google_cloud_gax::{
    client_builder::Error as BuildError,
    error::{Error, rpc::StatusDetails},
};

use super::non_empty;
use crate::error::{Cause, Failure};

/// Why a client could not be built. Contains nothing from the configuration.
pub(crate) fn build_error_message(error: &BuildError) -> &'static str {
    if error.is_default_credentials() {
        "no credentials were found for Compute Engine; set up application default credentials"
    } else if error.is_universe_domain_mismatch() {
        "the credentials belong to another universe than GOOGLE_CLOUD_UNIVERSE_DOMAIN says; use \
         credentials of that universe, or remove the variable"
    } else {
        "a client of Compute Engine could not be created; check the endpoint"
    }
}

/// Converts an error of the SDK. Headers and bodies are not kept.
#[expect(
    clippy::needless_pass_by_value,
    reason = "`map_err` passes the error by value"
)]
pub(super) fn failure(error: Error) -> Failure {
    let header = |name| {
        let headers = error.http_headers()?;
        headers.get(name)?.to_str().ok().map(str::trim)
    };
    let server_time = header("date").and_then(parse_date);
    let retry_after = header("retry-after").and_then(|text| parse_retry_after(text, server_time));
    let status = error.status();
    let details = status.map(|status| status.details.as_slice());
    let reason = details.unwrap_or_default().iter().find_map(|detail| {
        if let StatusDetails::ErrorInfo(info) = detail {
            return non_empty(&info.reason);
        }
        None
    });
    let message = status
        .map(|status| status.message.as_str())
        .filter(|text| !text.is_empty());
    let (cause, fallback) = cause(&error);
    Failure::new(cause, message.unwrap_or(fallback))
        .with_code(reason.unwrap_or_default())
        .with_retry_after(retry_after)
        .with_server_time(server_time)
}

/// Parses a retry delay, which is given in seconds or as a date on the server's clock.
fn parse_retry_after(text: &str, server_time: Option<DateTime<Utc>>) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let left = parse_date(text)? - server_time.unwrap_or_else(Utc::now);
    Some(left.to_std().unwrap_or_default())
}

/// Parses an HTTP date.
fn parse_date(text: &str) -> Option<DateTime<Utc>> {
    let date = DateTime::parse_from_rfc2822(text).ok()?;
    Some(date.with_timezone(&Utc))
}

/// Returns how a call failed, and a message for failures without one.
fn cause(error: &Error) -> (Cause, &'static str) {
    if error.is_authentication() {
        if error.is_transient_and_before_rpc() {
            return (
                Cause::CredentialsUnavailable,
                "credentials for Compute Engine cannot be obtained at the moment",
            );
        }
        let message = "no credentials for Compute Engine were found";
        return (Cause::NoCredentials, message);
    }
    if let Some(status) = error.http_status_code() {
        return (Cause::Responded(status), "Compute Engine gave no reason");
    }
    if error.is_transient_and_before_rpc() {
        return (
            Cause::NotConnected,
            "no connection to Compute Engine could be made",
        );
    }
    if error.is_timeout() {
        return (Cause::TimedOut, "Compute Engine did not respond in time");
    }
    if error.is_deserialization() {
        return (
            Cause::Unreadable,
            "the response of Compute Engine cannot be read",
        );
    }
    if error.is_serialization() || error.is_binding() {
        return (Cause::NotSent, "the request could not be built");
    }
    (
        Cause::Disconnected,
        "the connection to Compute Engine failed",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_date_is_compared_with_the_servers_clock() {
        let now = parse_date("Mon, 16 Nov 2026 10:00:15 GMT");
        let date = "Mon, 16 Nov 2026 10:00:45 GMT";
        assert_eq!(parse_retry_after(date, now), Some(Duration::from_secs(30)));
        assert_eq!(parse_retry_after("7", now), Some(Duration::from_secs(7)));
        assert_eq!(parse_retry_after("soon", now), None);
    }
}
