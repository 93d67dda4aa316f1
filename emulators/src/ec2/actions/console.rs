//! GetConsoleOutput.
//!
//! The console has one line for each boot, reboot and stop of the instance. The base64 of it has lines of 76
//! characters, like the example of GetConsoleOutput in the Amazon EC2 API reference.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;

use super::Call;
use crate::ec2::{engine::Engine, error::Refusal};

/// The response.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    /// The instance.
    instance_id: String,
    /// The time of the call.
    timestamp: String,
    /// The console output in base64; missing if there is none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
}

/// Returns the console output of an instance, which never lags.
///
/// # Errors
///
/// `InvalidInstanceID.NotFound` or `InvalidInstanceID.Malformed`.
pub(super) fn output(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let id = root.required("InstanceId")?;
    // The console output is always current here, so `Latest` makes no difference.
    let _latest = root.flag("Latest")?;
    call.finish_read()?;
    let found = engine.find(std::slice::from_ref(&id))?;
    let lines = found
        .first()
        .and_then(|seq| engine.instances.get(seq))
        .map(|instance| instance.console.join("\n"));
    let text = lines
        .filter(|text| !text.is_empty())
        .map(|text| format!("{text}\n"));
    call.respond(&Response {
        instance_id: id,
        timestamp: engine.stamp(engine.now()),
        output: text.map(|text| wrap(&STANDARD.encode(text))),
    })
}

/// The length of a line of base64, as in MIME.
const LINE_LENGTH: usize = 76;

/// Breaks base64 into lines. Each one ends with a newline.
fn wrap(encoded: &str) -> String {
    let mut lines = String::with_capacity(encoded.len() + encoded.len() / LINE_LENGTH + 1);
    for (at, c) in encoded.chars().enumerate() {
        if at > 0 && at % LINE_LENGTH == 0 {
            lines.push('\n');
        }
        lines.push(c);
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_lines_of_76_characters() {
        let text = "x".repeat(150);
        let encoded = STANDARD.encode(&text);
        let lines = wrap(&encoded);
        let lengths: Vec<_> = lines.lines().map(str::len).collect();
        assert_eq!(lengths, [76, 76, 48]);
        assert_eq!(lines.replace('\n', ""), encoded);
    }
}
