//! Shows what a machine would boot with: `cargo run -p fleetwright-region --example user_data`
//!
//! Reads a line of JSON for each question, such as `{"own": "IyEvYmluL3NoCg==", "key": "ssh-ed25519 AAAA me"}`: the tenant's user data in
//! base64, the server's public key, and the public key of the `authority` that it trusts, each of which may be missing. Answers each by a line:
//! the `type` and whether it is `packed`, and the `whole` in base64, or why it is `refused`. `scripts/check-cloud-init` asks it.

use std::{
    error::Error,
    io::{self, BufRead as _, Write as _},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fleetwright::UserData;
use fleetwright_region::{
    ids::SshAuthorityId,
    network::AuthorityKey,
    user_data::{BadUserData, Format, Managed, assemble, check},
};
use serde_json::{Value, json};
use uuid::Uuid;

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line?)?;
        writeln!(out, "{}", answer(&asked)?)?;
        out.flush()?;
    }
    Ok(())
}

fn answer(asked: &Value) -> Result<Value, Box<dyn Error>> {
    let own = STANDARD.decode(asked["own"].as_str().unwrap_or_default())?;
    let mut managed = Managed::nothing(Uuid::from_u128(1));
    if let Some(key) = asked["key"].as_str() {
        managed = managed.with_public_key(key);
    }
    if let Some(key) = asked["authority"].as_str() {
        let id = SshAuthorityId::from_uuid(Uuid::from_u128(7));
        managed = managed.with_authority(id, &AuthorityKey::new(key)?);
    }
    Ok(told(&own, &managed).unwrap_or_else(|bad| json!({ "refused": bad.to_string() })))
}

fn told(own: &[u8], managed: &Managed) -> Result<Value, BadUserData> {
    let format = check(own, managed.mode())?;
    let (of, packed) = match format {
        Format::Empty => (None, false),
        Format::Plain(sort) => (Some(sort.content_type()), false),
        Format::Gzip(sort) => (Some(sort.content_type()), true),
    };
    let own = UserData::new(own).ok();
    let whole = assemble(own.as_ref(), managed)?;
    let whole = whole.map(|whole| STANDARD.encode(whole.as_bytes()));
    Ok(json!({ "type": of, "packed": packed, "whole": whole }))
}
