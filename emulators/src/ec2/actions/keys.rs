//! Key pairs.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{Call, common::tag_trees};
use crate::ec2::{
    engine::{Engine, filter::Filtered, network::Key, record::Tags, table::Resource as _},
    error::Refusal,
    wire::tree::Tree,
};

/// Creates a key pair of ed25519 and returns the private key, which is not kept.
///
/// EC2's default is `rsa`; a call that names it is refused, because the emulator generates no such keys.
///
/// # Errors
///
/// `MissingParameter`, `UnsupportedOperation` for the type `rsa` or the format `ppk`, `InvalidKeyPair.Duplicate`.
pub(super) fn create(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let name = root.required("KeyName")?;
    let kind = root.text("KeyType").unwrap_or_else(|| "ed25519".to_owned());
    let format = root.text("KeyFormat").unwrap_or_else(|| "pem".to_owned());
    let tags = call.tags_for("key-pair")?;
    let mode = call.mode()?;
    call.finish()?;
    if kind != "ed25519" || format != "pem" {
        let message = format!(
            "CreateKeyPair with the type '{kind}' and the format '{format}' is not emulated. The emulator generates keys of \
             the type ed25519 in the format pem, and imports keys of rsa by ImportKeyPair."
        );
        return Err(Refusal::unsupported(message));
    }
    let (id, private) = engine.create_key(name, tags, mode)?;
    let key = engine.network.keys.get(&id).ok_or_else(Refusal::internal)?;
    let created = Tree::default()
        .text("keyName", &key.name)
        .text("keyFingerprint", &key.fingerprint)
        .text("keyMaterial", private)
        .text("keyPairId", &key.id)
        .set("tagSet", tag_trees(&key.tags));
    call.respond(&created)
}

/// Imports a public key, which is in base64 in the request.
///
/// # Errors
///
/// `MissingParameter`, `InvalidKey.Format` or `InvalidKeyPair.Duplicate`.
pub(super) fn import(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let (name, material) = (
        root.required("KeyName")?,
        root.required("PublicKeyMaterial")?,
    );
    let tags = call.tags_for("key-pair")?;
    let mode = call.mode()?;
    call.finish()?;
    let decoded = STANDARD.decode(material.trim()).ok();
    // A key in plain text is no valid base64, because it has spaces.
    let text = decoded
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or(material);
    let id = engine.import_key(name, &text, tags, mode)?;
    let key = engine.network.keys.get(&id).ok_or_else(Refusal::internal)?;
    let imported = Tree::default()
        .text("keyName", &key.name)
        .text("keyFingerprint", &key.fingerprint)
        .text("keyPairId", &key.id)
        .set("tagSet", tag_trees(&key.tags));
    call.respond(&imported)
}

/// Deletes a key pair by its name or id. One that does not exist is no error (API reference, "DeleteKeyPair").
///
/// # Errors
///
/// `MissingParameter`
pub(super) fn delete(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let (name, id) = (root.text("KeyName"), root.text("KeyPairId"));
    let mode = call.mode()?;
    call.finish()?;
    if name.is_none() && id.is_none() {
        return Err(Refusal::missing("KeyName"));
    }
    let deleted = engine.delete_key(name.as_deref(), id.as_deref(), mode)?;
    let deleted = Tree::default()
        .text("return", true)
        .some("keyPairId", deleted);
    call.respond(&deleted)
}

/// Describes key pairs by name, id and filters.
///
/// # Errors
///
/// `InvalidKeyPair.NotFound`
pub(super) fn describe(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let names = root.list("KeyName");
    let with_public_key = root.flag("IncludePublicKey")?.unwrap_or(false);
    let named = |key: &&Key| names.is_empty() || names.contains(&key.name);
    let all: Vec<Key> = engine.network.keys.iter().filter(named).cloned().collect();
    let missing = |name: &str| {
        let message = format!("The key pair '{name}' does not exist");
        Refusal::client("InvalidKeyPair.NotFound", message)
    };
    if let Some(name) = names
        .iter()
        .find(|name| !all.iter().any(|key| key.name == **name))
    {
        return Err(missing(name));
    }
    let (found, _) = call.select(engine, all, ("KeyPairId", |key| key.id()), missing)?;
    let tree = |key: &Key| {
        Tree::default()
            .text("keyPairId", &key.id)
            .text("keyFingerprint", &key.fingerprint)
            .text("keyName", &key.name)
            .text("keyType", key.kind)
            .some("publicKey", with_public_key.then_some(&key.public_key))
            .text("createTime", engine.stamp(key.created))
            .set("tagSet", tag_trees(&key.tags))
    };
    call.respond_list("keySet", found.iter().map(tree), None)
}

impl Filtered for Key {
    /// The filters of key pairs.
    const NAMES: &'static [&'static str] = &["fingerprint", "key-name", "key-pair-id"];

    fn values(&self, name: &str) -> Vec<String> {
        match name {
            "fingerprint" => vec![self.fingerprint.clone()],
            "key-name" => vec![self.name.clone()],
            "key-pair-id" => vec![self.id.clone()],
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}
