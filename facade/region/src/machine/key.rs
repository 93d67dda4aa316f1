//! The private key of a server.

use fleetwright_identity::{Principal, Verb};

use super::{MachineAccess, MachineError};
use crate::{
    secret::{KeyError, Secret, SshKeys},
    server::{Server, ServerId},
};

impl MachineAccess {
    /// Returns the private key of a server. No other server has the same key, and it exists from the creation of the server on, with or
    /// without a machine.
    pub async fn ssh_key(
        &self,
        principal: &Principal,
        id: ServerId,
    ) -> Result<Secret, MachineError> {
        let verb = Verb::SshKey;
        let server = self.permitted(principal, verb, id).await?;
        let result = async {
            let key = self.open_key(&server).await?;
            self.record_disclosure(principal, verb, &server).await?;
            Ok(key)
        };
        let result = result.await;
        Self::record_outcome(verb, id, Some(&server.region), result)
    }

    async fn open_key(&self, server: &Server) -> Result<Secret, MachineError> {
        let id = server.id;
        let keys = match (&self.keys, &server.public_key) {
            (_, None) => return Err(MachineError::NoKey(id)),
            (SshKeys::Disabled, Some(_)) => return Err(MachineError::NoKeyring(id)),
            (SshKeys::OnePerServer(keys), Some(_)) => keys,
        };
        match keys.private_key(&self.own, id.as_uuid()).await {
            Ok(secret) => Ok(secret),
            Err(KeyError::NotFound(_)) => Err(MachineError::NoKey(id)),
            Err(KeyError::Store(error)) => Err(error.into()),
            Err(source) => Err(MachineError::Key { id, source }),
        }
    }
}
