//! The lines of the protocol, in both directions.
//!
//! Owns their JSON form. `docs/exec-protocol.md` describes it, and its examples are tested here. What a method's
//! parameters and results contain is the business of the files that send the requests.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::wire_error::WireError;

/// The version of the protocol.
pub(crate) const PROTOCOL: u32 = 1;

/// The longest line that is read, in bytes.
pub(crate) const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// A request to the backend.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    pub(crate) id: u64,
    /// The handle of the call; none for the methods of the account itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<u64>,
    pub(crate) method: String,
    pub(crate) params: Value,
    /// The clock of the kit, in milliseconds. It starts at 0 for each account.
    pub(crate) now_ms: u64,
}

/// Says that nobody waits for a request any more.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cancel {
    pub(crate) cancel: u64,
}

/// What a backend answers to a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The result. It ends the request.
    Result(Value),
    /// The error of the call. It ends the request.
    Error(Box<WireError>),
    /// A part of a streamed result. Others follow.
    Page(Vec<Value>),
    /// The call never returns. It ends the request.
    Hangs,
}

impl Reply {
    /// Returns whether no other reply to the same request follows.
    pub(crate) const fn is_last(&self) -> bool {
        match self {
            Self::Result(_) | Self::Error(_) | Self::Hangs => true,
            Self::Page(_) => false,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyLine {
    id: u64,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    error: Option<Box<WireError>>,
    page: Option<Vec<Value>>,
    hangs: Option<bool>,
}

/// A result that is present is never `None`, even if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Parses a line of the backend into the id of the request and the reply.
pub(crate) fn parse_reply(line: &str) -> Result<(u64, Reply), String> {
    let parsed: ReplyLine = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let reply = match (parsed.result, parsed.error, parsed.page, parsed.hangs) {
        (Some(result), None, None, None) => Reply::Result(result),
        (None, Some(error), None, None) => Reply::Error(error),
        (None, None, Some(page), None) => Reply::Page(page),
        (None, None, None, Some(true)) => Reply::Hangs,
        _ => {
            return Err(
                "a reply has exactly one of `result`, `error`, `page` and `hangs: true`".to_owned(),
            );
        }
    };
    Ok((parsed.id, reply))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_has_exactly_one_answer() {
        assert!(matches!(
            parse_reply(r#"{"id":7,"result":null}"#),
            Ok((7, Reply::Result(Value::Null)))
        ));
        assert!(matches!(
            parse_reply(r#"{"id":7,"hangs":true}"#),
            Ok((7, Reply::Hangs))
        ));
        for wrong in [
            r#"{"id":7}"#,
            r#"{"id":7,"hangs":false}"#,
            r#"{"id":7,"result":1,"page":[]}"#,
        ] {
            assert!(parse_reply(wrong).unwrap_err().contains("exactly one"));
        }
        assert!(
            parse_reply(r#"{"id":7,"resutl":1}"#)
                .unwrap_err()
                .contains("resutl")
        );
        assert!(parse_reply("starting up ...").is_err());
    }
}
