//! Checking user data before a server is created or changed.

use fleetwright_cloud_init::UserDataError;

use super::{
    ServerSpec, Servers,
    create::{KeyPair, user_data_mode},
};
use crate::secret::SshKeys;

impl Servers {
    /// Checks the user data of a spec for a new server, together with the key pair that the server gets and the authority that it
    /// trusts.
    pub fn check_user_data(&self, spec: &ServerSpec) -> Result<(), UserDataError> {
        let Some(data) = &spec.user_data else {
            return Ok(());
        };
        let keyed = match &self.keys {
            SshKeys::Disabled => KeyPair::Without,
            SshKeys::OnePerServer(_) => KeyPair::With,
        };
        fleetwright_cloud_init::check(data.as_bytes(), user_data_mode(keyed, spec)).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fleetwright::UserData;
    use fleetwright_runtime::{clock::SystemClock, entropy::OsEntropy};
    use fleetwright_store::{MemoryStore, Schema, Store};
    use uuid::Uuid;

    use super::*;
    use crate::{
        ids::{FlavorId, ImageId, NetworkId, SshAuthorityId},
        schema,
        secret::ServerKeys,
        server::NoDependencyCheck,
    };

    fn servers(keys: impl FnOnce(Arc<dyn Store>) -> SshKeys) -> Servers {
        let schema = schema::add_kinds(Schema::builder()).build().unwrap();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(schema));
        let keys = keys(Arc::clone(&store));
        Servers::new(
            store,
            Arc::new(SystemClock),
            Arc::new(NoDependencyCheck),
            keys,
        )
        .unwrap()
    }

    #[test]
    fn user_data_is_checked_with_the_managed_part() {
        let without = servers(|_| SshKeys::Disabled);
        let with = servers(|store| {
            let keyring = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
            let keyring = Arc::new(keyring.parse().unwrap());
            SshKeys::OnePerServer(ServerKeys::new(store, keyring, Arc::new(OsEntropy)).unwrap())
        });
        let network = NetworkId::from_uuid(Uuid::from_u128(1));
        let (small, linux) = (FlavorId::new("small"), ImageId::new("linux"));
        let mut spec = ServerSpec::new(small.unwrap(), linux.unwrap(), network);
        assert_eq!(with.check_user_data(&spec), Ok(()));
        // What is to be a list, and is none that could be added to.
        spec.user_data = Some(UserData::new("#cloud-config\nwrite_files: 1\n").unwrap());
        assert_eq!(without.check_user_data(&spec), Ok(()));
        assert!(with.check_user_data(&spec).is_err());
        spec.ssh_authority = Some(SshAuthorityId::from_uuid(Uuid::from_u128(2)));
        assert!(without.check_user_data(&spec).is_err());
        spec.user_data = Some(UserData::new("nothing known").unwrap());
        assert!(without.check_user_data(&spec).is_err());
    }
}
