//! Key pairs: generated, imported, deleted.
//!
//! A generated key is of ed25519 and follows from the seed, so it is no secret. Nothing can log in to an instance here.

use ssh_key::{
    Algorithm, HashAlg, LineEnding, PrivateKey, PublicKey,
    private::Ed25519Keypair,
    public::{Ed25519PublicKey, KeyData},
};

use super::{Engine, Mode, network::Key, record::Tags};
use crate::ec2::error::Refusal;

impl Engine {
    /// Adds a key pair of the knobs. Nobody has its private key, so none is computed: that would slow down every start.
    pub(super) fn add_catalog_key(&mut self, name: String) {
        let public = Ed25519PublicKey(self.key_bytes());
        self.add_key(name, &KeyData::Ed25519(public).into(), Tags::new());
    }

    /// Creates a key pair and returns its id and its private key in the format of OpenSSH.
    ///
    /// # Errors
    ///
    /// `InvalidKeyPair.Duplicate`
    pub(crate) fn create_key(
        &mut self,
        name: String,
        tags: Tags,
        mode: Mode,
    ) -> Result<(String, String), Refusal> {
        self.check_new_key(&name)?;
        mode.check_dry_run()?;
        let key = self.generate_key();
        let id = self.add_key(name, key.public_key(), tags);
        let text = key.to_openssh(LineEnding::LF);
        let text = text.map_err(|_unencodable| Refusal::internal())?;
        Ok((id, text.to_string()))
    }

    /// Imports a public key in the format of OpenSSH, of RSA or ed25519, and returns the id of the pair.
    ///
    /// # Errors
    ///
    /// `InvalidKeyPair.Duplicate` or `InvalidKey.Format`.
    pub(crate) fn import_key(
        &mut self,
        name: String,
        material: &str,
        tags: Tags,
        mode: Mode,
    ) -> Result<String, Refusal> {
        self.check_new_key(&name)?;
        let key = PublicKey::from_openssh(material.trim())
            .ok()
            .filter(|key| kind(key).is_some());
        let key = key.ok_or_else(|| {
            let message = "Key is not in valid OpenSSH public key format";
            Refusal::client("InvalidKey.Format", message)
        })?;
        mode.check_dry_run()?;
        Ok(self.add_key(name, &key, tags))
    }

    /// Deletes a key pair by its name or id, and returns its id. One that does not exist is no error.
    pub(crate) fn delete_key(
        &mut self,
        name: Option<&str>,
        id: Option<&str>,
        mode: Mode,
    ) -> Result<Option<String>, Refusal> {
        mode.check_dry_run()?;
        let named = |key: &&Key| {
            name.is_none_or(|name| key.name == name) && id.is_none_or(|id| key.id == id)
        };
        let found = self
            .network
            .keys
            .iter()
            .find(named)
            .map(|key| key.id.clone());
        if let Some(id) = &found {
            self.network.keys.remove(id);
        }
        Ok(found)
    }

    /// Refuses a name that is taken.
    fn check_new_key(&self, name: &str) -> Result<(), Refusal> {
        if self.network.key(name).is_none() {
            return Ok(());
        }
        let message = format!("The keypair already exists: {name}");
        Err(Refusal::client("InvalidKeyPair.Duplicate", message))
    }

    /// Stores a key pair and returns its id.
    fn add_key(&mut self, name: String, public: &PublicKey, tags: Tags) -> String {
        let (seq, id) = (self.next_seq(), self.ids.next("key"));
        let key = Key {
            id: id.clone(),
            name,
            kind: kind(public).unwrap_or("rsa"),
            fingerprint: public.fingerprint(HashAlg::Sha256).to_string(),
            public_key: public.to_openssh().unwrap_or_default(),
            created: self.now(),
            tags,
        };
        self.network.keys.put(seq, key);
        id
    }

    /// Generates a key from the numbers of the ids.
    fn generate_key(&mut self) -> PrivateKey {
        PrivateKey::from(Ed25519Keypair::from_seed(&self.key_bytes()))
    }

    /// Returns as many bytes as a key has.
    fn key_bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for part in bytes.chunks_exact_mut(8) {
            part.copy_from_slice(&self.ids.number().to_be_bytes());
        }
        bytes
    }
}

/// Returns EC2's name of a key's type; `None` for one that EC2 does not have.
fn kind(key: &PublicKey) -> Option<&'static str> {
    let algorithm = key.algorithm();
    if algorithm == Algorithm::Ed25519 {
        return Some("ed25519");
    }
    matches!(algorithm, Algorithm::Rsa { .. }).then_some("rsa")
}
