//! GetConsoleOutput.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;

use super::Call;
use crate::ec2::{engine::Engine, error::Refusal};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Reply {
    instance_id: String,
    timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
}

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
    call.reply(&Reply {
        instance_id: id,
        timestamp: engine.stamp(engine.now()),
        output: text.map(|text| STANDARD.encode(text)),
    })
}
