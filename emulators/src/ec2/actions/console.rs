//! GetConsoleOutput.
//!
//! The console has one line for each boot, reboot and stop of the instance. Its base64 text is broken
//! into lines of the length that the knob `console_line_length` sets.

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
    let length = engine.core.knobs.console_line_length as usize;
    call.respond(&Response {
        instance_id: id,
        timestamp: engine.stamp(engine.now()),
        output: text.map(|text| wrap(&STANDARD.encode(text), length)),
    })
}

/// Breaks base64 into lines of `length`, each of which ends with a newline. Zero leaves it as it is.
fn wrap(encoded: &str, length: usize) -> String {
    if length == 0 {
        return encoded.to_owned();
    }
    let mut lines = String::with_capacity(encoded.len() + encoded.len() / length + 1);
    for (at, c) in encoded.chars().enumerate() {
        if at > 0 && at % length == 0 {
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
    fn base64_has_lines_of_the_length() {
        let text = "x".repeat(150);
        let encoded = STANDARD.encode(&text);
        let lines = wrap(&encoded, 76);
        let lengths: Vec<_> = lines.lines().map(str::len).collect();
        assert_eq!(lengths, [76, 76, 48]);
        assert_eq!(lines.replace('\n', ""), encoded);
        assert_eq!(wrap(&encoded, 0), encoded);
    }
}
