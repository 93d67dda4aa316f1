//! XML documents: responses and refusals as EC2 writes them.

use quick_xml::{SeError, se};
use serde::Serialize;

use super::{VERSION, action::Action};
use crate::ec2::error::Refusal;

const DECLARATION: &str = r#"<?xml version="1.0" encoding="UTF-8"?>"#;

/// A list, whose every element is an `item`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Set<T> {
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

#[derive(Serialize)]
struct Document<'a, T> {
    #[serde(rename = "@xmlns")]
    namespace: &'a str,
    #[serde(rename = "requestId")]
    request_id: &'a str,
    #[serde(flatten)]
    body: T,
}

/// Encodes the response to an action.
pub(crate) fn reply<T: Serialize>(
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

#[derive(Serialize)]
struct Errors<'a> {
    #[serde(rename = "Errors")]
    errors: ErrorList<'a>,
    #[serde(rename = "RequestID")]
    request_id: &'a str,
}

#[derive(Serialize)]
struct ErrorList<'a> {
    #[serde(rename = "Error")]
    error: ErrorItem<'a>,
}

#[derive(Serialize)]
struct ErrorItem<'a> {
    #[serde(rename = "Code")]
    code: &'a str,
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

fn render<T: Serialize>(root: &str, document: &T) -> Result<String, SeError> {
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
        let text = reply(Action::DescribeTags, "r", &body).unwrap();
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
