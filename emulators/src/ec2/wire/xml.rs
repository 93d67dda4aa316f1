//! XML documents: responses and refusals as EC2 writes them.
//!
//! Owns the envelopes and the escaping. The elements of a response are in `shapes`.

use quick_xml::{SeError, se};
use serde::Serialize;

use super::{VERSION, action::Action};
use crate::ec2::error::Refusal;

/// The first line of every document.
const DECLARATION: &str = r#"<?xml version="1.0" encoding="UTF-8"?>"#;

/// A list, whose every element is an `item`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Set<T> {
    /// The elements.
    item: Vec<T>,
}

impl<T> Default for Set<T> {
    fn default() -> Self {
        Self { item: Vec::new() }
    }
}

impl<T> FromIterator<T> for Set<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self {
            item: items.into_iter().collect(),
        }
    }
}

impl<T> From<Vec<T>> for Set<T> {
    fn from(item: Vec<T>) -> Self {
        Self { item }
    }
}

/// A response: the action's elements with the request id.
#[derive(Serialize)]
struct Document<'a, T> {
    /// The XML namespace, which has the API version.
    #[serde(rename = "@xmlns")]
    namespace: &'a str,
    /// The id of the request.
    #[serde(rename = "requestId")]
    request_id: &'a str,
    /// The elements of the action.
    #[serde(flatten)]
    body: T,
}

/// Encodes the response to an action.
///
/// # Errors
///
/// `InternalError` if a shape cannot be written as XML.
pub(crate) fn response<T: Serialize>(
    action: Action,
    request_id: &str,
    body: &T,
) -> Result<String, Refusal> {
    let namespace = format!("http://ec2.amazonaws.com/doc/{VERSION}/");
    let document = Document {
        namespace: &namespace,
        request_id,
        body,
    };
    let root = format!("{}Response", action.name());
    render(&root, &document).map_err(|_unwritable| Refusal::internal())
}

/// The envelope of a refusal.
#[derive(Serialize)]
struct Errors<'a> {
    /// The list of errors, which always has one.
    #[serde(rename = "Errors")]
    errors: ErrorList<'a>,
    /// The id of the request. EC2 writes it in another case than in responses.
    #[serde(rename = "RequestID")]
    request_id: &'a str,
}

/// The list of errors.
#[derive(Serialize)]
struct ErrorList<'a> {
    /// The error.
    #[serde(rename = "Error")]
    error: ErrorItem<'a>,
}

/// An error.
#[derive(Serialize)]
struct ErrorItem<'a> {
    /// EC2's code.
    #[serde(rename = "Code")]
    code: &'a str,
    /// The message for humans.
    #[serde(rename = "Message")]
    message: &'a str,
}

/// Encodes a refusal in EC2's envelope.
pub(crate) fn refusal(refusal: &Refusal, request_id: &str) -> String {
    let document = Errors {
        errors: ErrorList {
            error: ErrorItem {
                code: &refusal.code,
                message: &refusal.message,
            },
        },
        request_id,
    };
    render("Response", &document).unwrap_or_else(|_unwritable| DECLARATION.to_owned())
}

/// Writes a document with its declaration. Escapes carriage returns, which XML readers would
/// change.
pub(super) fn render<T: Serialize>(root: &str, document: &T) -> Result<String, SeError> {
    let mut text = format!("{DECLARATION}\n");
    let mut serializer = se::Serializer::with_root(&mut text, Some(root))?;
    serializer.set_quote_level(se::QuoteLevel::Partial);
    document.serialize(serializer)?;
    // XML readers turn a bare carriage return into a line feed, so it is escaped.
    Ok(text.replace('\r', "&#13;"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Body {
        #[serde(rename = "tagSet")]
        tags: Set<String>,
        #[serde(rename = "nextToken", skip_serializing_if = "Option::is_none")]
        next: Option<String>,
    }

    #[test]
    fn response_has_namespace_request_id_and_items() {
        let body = Body {
            tags: ["a<b".to_owned(), " c\r".to_owned()].into_iter().collect(),
            next: None,
        };
        let text = response(Action::DescribeTags, "r", &body).unwrap();
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<DescribeTagsResponse \
                        xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>r</requestId><tagSet><item>a&lt;b</item>\
                        <item> c&#13;</item></tagSet></DescribeTagsResponse>";
        assert_eq!(text, expected);
    }

    #[test]
    fn refusal_has_the_error_envelope() {
        let text = refusal(&Refusal::invalid("a & b"), "r");
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>InvalidParameterValue</Code>\
                        <Message>a &amp; b</Message></Error></Errors><RequestID>r</RequestID></Response>";
        assert_eq!(text, expected);
    }
}
