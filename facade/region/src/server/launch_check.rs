//! Whether a requested spec can be launched, checked before the request is stored.

use fleetwright_runtime::entropy::{Entropy, EntropyError};
use uuid::Uuid;

use super::{NewServer, Server, ServerError, ServerId, ServerSpec, Servers, create::new_record};
use crate::{
    ids::RegionId,
    launch_config::{LaunchConfigs, LaunchRefusal},
    secret::{SshKeyPair, SshKeys},
};

impl Servers {
    /// Sets the launch configs of a region, so that requests are checked with the mapping and the provider that launch them. Without
    /// them, a request that cannot be launched is refused at its launch only.
    #[must_use]
    pub fn with_launch_configs(mut self, region: RegionId, configs: LaunchConfigs) -> Self {
        self.launch_configs.insert(region, configs);
        self
    }

    /// Returns why the first machine of a new server could not be launched now, or `None`. Nothing is written, and no cloud is called.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn refusal_of_new(
        &self,
        new: &NewServer,
    ) -> Result<Option<LaunchRefusal>, ServerError> {
        let mut server = new_record(new, self.clock.now());
        server.public_key = match &self.keys {
            SshKeys::Disabled => None,
            SshKeys::OnePerServer(_) => Some(sample_public_key(new.id)?),
        };
        self.refusal(&server, 1).await
    }

    /// Returns why another machine of a server could not be launched now with this spec, or `None`. Nothing is written, and no cloud is
    /// called.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn refusal_of_spec(
        &self,
        server: &Server,
        spec: &ServerSpec,
    ) -> Result<Option<LaunchRefusal>, ServerError> {
        let mut wanted = server.clone();
        wanted.spec = spec.clone();
        let last = server
            .launch
            .as_ref()
            .map_or(0, |launch| launch.incarnation);
        self.refusal(&wanted, last.saturating_add(1)).await
    }

    async fn refusal(
        &self,
        server: &Server,
        incarnation: u64,
    ) -> Result<Option<LaunchRefusal>, ServerError> {
        let Some(configs) = self.launch_configs.get(&server.region) else {
            return Ok(None);
        };
        Ok(configs.complete(server, incarnation).await?.err())
    }
}

/// Returns a public key of the length that the server's key will have, so that the size of the assembled user data is known before the
/// key exists. It is derived from the id: nobody may use it.
fn sample_public_key(server: ServerId) -> Result<String, ServerError> {
    let comment = format!("server-{server}");
    let pair = SshKeyPair::generate(&comment, &Derived(server.as_uuid()));
    let pair = pair.map_err(|source| ServerError::Key {
        id: server,
        source: source.into(),
    })?;
    Ok(pair.public)
}

#[derive(Debug)]
struct Derived(Uuid);

impl Entropy for Derived {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        for (number, chunk) in (0_u64..).zip(bytes.chunks_mut(16)) {
            let drawn = Uuid::new_v5(&self.0, &number.to_le_bytes());
            chunk.copy_from_slice(&drawn.as_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fleetwright_runtime::entropy::OsEntropy;

    use super::*;

    #[test]
    fn sample_key_has_the_length_of_a_real_one() {
        let id: ServerId = "cea82847-20ce-5f13-87fb-9f3cc7da081d".parse().unwrap();
        let sample = sample_public_key(id).unwrap();
        let real = SshKeyPair::generate(&format!("server-{id}"), &OsEntropy).unwrap();
        assert_eq!(sample.len(), real.public.len());
        assert_ne!(sample, real.public);
    }
}
