//! Shows what a machine would boot with: `cargo run -p fleetwright-cloud-init --example user_data`
//!
//! Reads requests from standard input, one line of JSON each, such as `{"own": "IyEvYmluL3NoCg==", "key": "ssh-ed25519 AAAA me"}`: the user
//! data in base64, the server's public key, and the public key of the `authority` that it trusts. Each may be missing. Writes one line for
//! each request: the `type`, whether it is compressed (`packed`), and the assembled user data in base64 (`whole`), or why it is `refused`.
//! `scripts/check-cloud-init` uses it.

use std::{
    error::Error,
    io::{self, BufRead as _, Write as _},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fleetwright_cloud_init::{Format, ManagedConfig, UserDataError, assemble, check};
use serde_json::{Value, json};
use uuid::Uuid;

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        writeln!(out, "{}", respond(&request)?)?;
        out.flush()?;
    }
    Ok(())
}

fn respond(request: &Value) -> Result<Value, Box<dyn Error>> {
    let own = STANDARD.decode(request["own"].as_str().unwrap_or_default())?;
    let mut managed = ManagedConfig::new(Uuid::from_u128(1));
    if let Some(key) = request["key"].as_str() {
        managed = managed.with_public_key(key);
    }
    if let Some(key) = request["authority"].as_str() {
        // The algorithm and the key, without the comment.
        let key: Vec<_> = key.split_ascii_whitespace().take(2).collect();
        managed = managed.with_authority(&key.join(" "), &Uuid::from_u128(7).to_string());
    }
    Ok(describe(&own, &managed).unwrap_or_else(|bad| json!({ "refused": bad.to_string() })))
}

fn describe(own: &[u8], managed: &ManagedConfig) -> Result<Value, UserDataError> {
    let format = check(own, managed.mode())?;
    let (content_type, packed) = match format {
        Format::Empty => (None, false),
        Format::Plain(kind) => (Some(kind.content_type()), false),
        Format::Gzip(kind) => (Some(kind.content_type()), true),
    };
    let assembled = assemble(own, managed)?;
    let whole = (!assembled.is_empty()).then(|| STANDARD.encode(assembled));
    Ok(json!({ "type": content_type, "packed": packed, "whole": whole }))
}
