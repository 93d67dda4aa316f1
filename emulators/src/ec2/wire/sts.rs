//! The documents and the codes of STS, which differ from those of EC2.
//!
//! The envelopes are those of the query protocol (Smithy, "AWS query protocol"); the codes are those of the AWS
//! STS API reference, "Common Errors".

use serde::Serialize;

use super::{action::Action, service::Service, xml::render};
use crate::ec2::error::Refusal;

/// The API version of STS.
pub(crate) const VERSION: &str = "2011-06-15";

/// The XML namespace of every document.
const NAMESPACE: &str = "https://sts.amazonaws.com/doc/2011-06-15/";

/// The part of a response that is not the result.
#[derive(Serialize)]
struct Metadata<'a> {
    #[serde(rename = "RequestId")]
    request_id: &'a str,
}

/// The identity of a caller, as the result of `GetCallerIdentity`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct CallerIdentity {
    /// The ARN of the user or role.
    pub(crate) arn: String,
    /// The unique id of the user or role.
    pub(crate) user_id: String,
    /// The account, twelve digits.
    pub(crate) account: String,
}

/// The response of `GetCallerIdentity`.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "@xmlns")]
    namespace: &'a str,
    #[serde(rename = "GetCallerIdentityResult")]
    result: &'a CallerIdentity,
    #[serde(rename = "ResponseMetadata")]
    metadata: Metadata<'a>,
}

/// Encodes the identity of a caller.
///
/// # Errors
///
/// `InternalFailure` if it cannot be written as XML.
pub(crate) fn identity(result: &CallerIdentity, request_id: &str) -> Result<String, Refusal> {
    let document = Document {
        namespace: NAMESPACE,
        result,
        metadata: Metadata { request_id },
    };
    let root = format!("{}Response", Action::GetCallerIdentity.name());
    render(&root, &document).map_err(|_unwritable| convert(Refusal::internal()))
}

/// The document of a refusal.
#[derive(Serialize)]
struct ErrorResponse<'a> {
    #[serde(rename = "@xmlns")]
    namespace: &'a str,
    #[serde(rename = "Error")]
    error: ErrorItem<'a>,
    #[serde(rename = "RequestId")]
    request_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ErrorItem<'a> {
    /// Whose mistake it is: `Sender` or `Receiver`.
    r#type: &'a str,
    code: &'a str,
    message: &'a str,
}

/// Encodes a refusal.
pub(crate) fn refusal(refusal: &Refusal, request_id: &str) -> String {
    let document = ErrorResponse {
        namespace: NAMESPACE,
        error: ErrorItem {
            r#type: if refusal.status < 500 {
                "Sender"
            } else {
                "Receiver"
            },
            code: &refusal.code,
            message: &refusal.message,
        },
        request_id,
    };
    render("ErrorResponse", &document).unwrap_or_default()
}

/// Returns a refusal of EC2 with the status and the code that STS has for the same cause.
pub(crate) fn convert(refusal: Refusal) -> Refusal {
    let (status, code) = match &*refusal.code {
        "AuthFailure" if refusal.message.contains("scoped") => (403, "SignatureDoesNotMatch"),
        "AuthFailure" => (403, "InvalidClientTokenId"),
        "RequestExpired" => (403, "ExpiredToken"),
        "RequestLimitExceeded" => (400, "Throttling"),
        "InternalError" => (500, "InternalFailure"),
        "UnauthorizedOperation" => (403, "AccessDenied"),
        "UnknownParameter" => (400, "ValidationError"),
        _ => {
            return Refusal {
                service: Service::Sts,
                ..refusal
            };
        }
    };
    Refusal {
        status,
        code: code.into(),
        service: Service::Sts,
        ..refusal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_the_codes_and_the_document_of_sts() {
        let cases = [
            (Refusal::throttled(), 400, "Throttling"),
            (Refusal::expired(), 403, "ExpiredToken"),
            (Refusal::internal(), 500, "InternalFailure"),
            (
                Refusal::new(401, "AuthFailure", "AWS was not able to validate"),
                403,
                "InvalidClientTokenId",
            ),
            (Refusal::missing("Version"), 400, "MissingParameter"),
        ];
        for (given, status, code) in cases {
            let converted = convert(given);
            assert_eq!((converted.status, &*converted.code), (status, code));
            assert_eq!(converted.service, Service::Sts);
        }
        let text = refusal(&convert(Refusal::throttled()), "r");
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ErrorResponse \
                        xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type><Code>Throttling</Code>\
                        <Message>Request limit exceeded.</Message></Error><RequestId>r</RequestId></ErrorResponse>";
        assert_eq!(text, expected);
    }
}
