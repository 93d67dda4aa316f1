//! The SSH key pairs of servers: one for each, with the private key sealed.

use std::sync::Arc;

use fleetwright_identity::{
    Access, OrganizationId, Principal, ProjectId, Refused, Resource, Scope, Verb,
};
use fleetwright_runtime::entropy::Entropy;
use fleetwright_store::{
    Damaged, Document, Invalid, Key, RecordId, Store, StoreError, Table, Transaction, Versioned,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{KeyPairError, Keyring, OpenError, SealError, Sealed, Secret, SshKeyPair};

/// The key pair of one server, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerKey {
    /// The organization of the server.
    pub organization: OrganizationId,
    /// The project of the server.
    pub project: ProjectId,
    /// The line for `authorized_keys`.
    pub public_key: String,
    /// The content of the private key file, sealed.
    pub private_key: Sealed,
}

/// Returns the place for which a private key is sealed. It contains the tenant, so that a record with another tenant written
/// into it does not open.
fn place(organization: OrganizationId, project: ProjectId) -> String {
    format!("private_key of {organization} {project}")
}

impl Document for ServerKey {
    const KIND: &'static str = "server-key";
}

/// Why a key pair was not created or not returned. It never contains a part of a key.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The server has no key pair, or is not visible to the principal.
    #[error("server {0} has no key")]
    NotFound(Uuid),
    /// The principal can see the server and lacks the permission for its key.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The private key could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The private key could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The key pair could not be generated.
    #[error(transparent)]
    Generate(#[from] KeyPairError),
    /// The store failed.
    #[error("the key of a server could not be read or stored")]
    Store(#[from] StoreError),
}

impl From<Invalid> for KeyError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

/// The result of [`ServerKeys::reseal`] and of [`SealedStore::reseal`](super::SealedStore::reseal).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResealReport {
    /// How many records were sealed with the current key.
    pub count: usize,
    /// The secrets that could not be opened. Their records are unchanged.
    pub failed: Vec<OpenError>,
    /// The records that cannot be read.
    pub damaged: Vec<Damaged>,
}

/// The key pairs of all servers.
///
/// ```
/// use std::sync::Arc;
/// use fleetwright_identity::{ActorName, Permission, Principal};
/// use fleetwright_region::{
///     schema,
///     secret::{Keyring, ServerKeys},
/// };
/// use fleetwright_runtime::entropy::OsEntropy;
/// use fleetwright_store::{MemoryStore, Schema, Store, Transaction};
/// use uuid::Uuid;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store: Arc<dyn Store> =
///     Arc::new(MemoryStore::new(schema::add_kinds(Schema::builder()).build()?));
/// let keyring: Keyring = "may:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=".parse()?;
/// let keys = ServerKeys::new(store.clone(), keyring.into(), Arc::new(OsEntropy))?;
///
/// // In the transaction that creates the server:
/// let (server, tenant) = (Uuid::from_u128(7), (Uuid::from_u128(1).into(), Uuid::from_u128(2).into()));
/// let (transaction, public_key) = keys.create(Transaction::new(), server, tenant.0, tenant.1)?;
/// store.commit(&transaction).await?;
///
/// let principal = Principal::service(ActorName::new("compute")?, Permission::all());
/// assert_eq!(keys.public_key(&principal, server).await?, public_key);
/// let private_key = keys.private_key(&principal, server).await?;
/// assert!(private_key.expose().starts_with(b"-----BEGIN OPENSSH PRIVATE KEY-----"));
///
/// // In the transaction that deletes the server:
/// store.commit(&ServerKeys::delete(Transaction::new(), server)?).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ServerKeys {
    table: Table<ServerKey>,
    store: Arc<dyn Store>,
    keyring: Arc<Keyring>,
    entropy: Arc<dyn Entropy>,
}

/// Whether new servers get key pairs. There is no default: the choice is explicit.
#[derive(Clone, Debug)]
pub enum SshKeys {
    /// New servers get none. For installations without a keyring, or with images without cloud-init. Existing key pairs stay, and are
    /// deleted with their servers.
    Disabled,
    /// Every new server gets one, in the transaction that creates it. The public key is in the server's record, and reaches each of
    /// its machines [in the user data](fleetwright_cloud_init::assemble()).
    OnePerServer(ServerKeys),
}

impl ServerKeys {
    /// Creates the service over a store.
    ///
    /// # Errors
    ///
    /// The store's schema lacks the kind.
    pub fn new(
        store: Arc<dyn Store>,
        keyring: Arc<Keyring>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            table: Table::new(Arc::clone(&store))?,
            store,
            keyring,
            entropy,
        })
    }

    /// Adds the creation of a key pair to the transaction that creates a server, and returns the public key. The transaction
    /// fails if the server has a key pair.
    ///
    /// # Errors
    ///
    /// The key pair cannot be generated or sealed.
    pub fn create(
        &self,
        transaction: Transaction,
        server: Uuid,
        organization: OrganizationId,
        project: ProjectId,
    ) -> Result<(Transaction, String), KeyError> {
        let pair = SshKeyPair::generate(&format!("server-{server}"), &*self.entropy)?;
        let key = record_key(server)?;
        let record = self.table.id(&key);
        let place = place(organization, project);
        let sealed = self
            .keyring
            .seal(&record, &place, &pair.private, &*self.entropy)?;
        let value = ServerKey {
            organization,
            project,
            public_key: pair.public.clone(),
            private_key: sealed,
        };
        let transaction = self.table.create(transaction, &key, &value)?;
        Ok((transaction, pair.public))
    }

    /// Adds the deletion of the key pair, if there is one, to the transaction that deletes a server. This needs no keyring.
    ///
    /// # Errors
    ///
    /// None for a valid UUID; the type is that of record ids.
    pub fn delete(transaction: Transaction, server: Uuid) -> Result<Transaction, Invalid> {
        let id = RecordId::new(ServerKey::KIND, server.hyphenated().to_string())?;
        Ok(transaction.delete(id))
    }

    /// Returns the public key of a server. Requires the permission to read instances in the server's project.
    ///
    /// # Errors
    ///
    /// The server has no key pair, or is not visible to the principal.
    pub async fn public_key(
        &self,
        principal: &Principal,
        server: Uuid,
    ) -> Result<String, KeyError> {
        let found = self.find(principal, Verb::Read, server).await?;
        Ok(found.value.public_key)
    }

    /// Returns the private key of a server. Requires the permission for the SSH keys of instances in the server's project,
    /// which the permission to read instances does not include.
    ///
    /// # Errors
    ///
    /// The server has no key pair or is not visible, the principal lacks the permission, or the keyring does not open the key.
    pub async fn private_key(
        &self,
        principal: &Principal,
        server: Uuid,
    ) -> Result<Secret, KeyError> {
        let found = self.find(principal, Verb::SshKey, server).await?;
        Ok(self.open(&found)?)
    }

    /// Seals again all private keys that are not sealed with the current key. Records that others change meanwhile are left
    /// for the next call. When a call reseals nothing and reports nothing, the old keys can be removed from the keyring.
    ///
    /// # Errors
    ///
    /// The store or the entropy fails. Keys that were resealed before stay so: call it again.
    pub async fn reseal(&self) -> Result<ResealReport, KeyError> {
        let mut report = ResealReport::default();
        let page = self.table.list_all(&self.table.all()).await?;
        report.damaged = page.damaged;
        for found in page.items {
            if found.value.private_key.key() == self.keyring.current() {
                continue;
            }
            match self.open(&found) {
                Ok(secret) => report.count += self.reseal_one(&found, &secret).await?,
                Err(error) => report.failed.push(error),
            }
        }
        Ok(report)
    }

    async fn reseal_one(
        &self,
        found: &Versioned<ServerKey>,
        secret: &Secret,
    ) -> Result<usize, KeyError> {
        let mut value = found.value.clone();
        let record = self.table.id(&found.key);
        let place = place(value.organization, value.project);
        value.private_key = self.keyring.seal(&record, &place, secret, &*self.entropy)?;
        let transaction = self.table.replace(Transaction::new(), found, &value)?;
        match self.store.commit(&transaction).await {
            Ok(_) => Ok(1),
            Err(error) if error.conflict().is_some() => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    fn open(&self, found: &Versioned<ServerKey>) -> Result<Secret, OpenError> {
        let record = self.table.id(&found.key);
        let place = place(found.value.organization, found.value.project);
        self.keyring.open(&record, &place, &found.value.private_key)
    }

    async fn find(
        &self,
        principal: &Principal,
        verb: Verb,
        server: Uuid,
    ) -> Result<Versioned<ServerKey>, KeyError> {
        let found = self.table.get(&record_key(server)?).await?;
        let found = found.ok_or(KeyError::NotFound(server))?;
        let scope = Scope::Project(found.value.organization, found.value.project);
        // Tenants have permissions on instances, not on servers.
        match principal.access(verb, Resource::Instances, &scope) {
            Access::Allowed => Ok(found),
            Access::Refused(refused) => Err(refused.into()),
            Access::NotVisible => Err(KeyError::NotFound(server)),
        }
    }
}

fn record_key(server: Uuid) -> Result<Key, Invalid> {
    Key::new(server.hyphenated().to_string())
}
