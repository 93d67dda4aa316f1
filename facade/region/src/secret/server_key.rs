//! The key pairs of servers, one for each: the public half to be put on the server, the private half sealed.

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
    /// Whose it is.
    pub organization: OrganizationId,
    /// In which project.
    pub project: ProjectId,
    /// The line for `authorized_keys`.
    pub public_key: String,
    /// The private key's file, sealed.
    pub private_key: Sealed,
}

/// What a private key is sealed for, beside its record: whose it is. A record that was given to another tenant does
/// not open for that one.
fn place(organization: OrganizationId, project: ProjectId) -> String {
    format!("private_key of {organization} {project}")
}

impl Document for ServerKey {
    const KIND: &'static str = "server-key";
}

/// Why a key was not made or not shown. It never holds a part of one.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There is none, or the principal may not know that there is.
    #[error("server {0} has no key")]
    NotFound(Uuid),
    /// The principal may see the server and not its key.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// It could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It could not be made.
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

/// What came of sealing keys anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResealReport {
    /// How many were.
    pub count: usize,
    /// Those that cannot be opened, and why. They are as they were.
    pub failed: Vec<OpenError>,
    /// Records that cannot be read.
    pub damaged: Vec<Damaged>,
}

/// The key pairs of all servers.
#[derive(Clone, Debug)]
pub struct ServerKeys {
    table: Table<ServerKey>,
    store: Arc<dyn Store>,
    keyring: Arc<Keyring>,
    entropy: Arc<dyn Entropy>,
}

/// Whether servers have key pairs of their own. There is no default: who leaves them out says so.
#[derive(Clone, Debug)]
pub enum SshKeys {
    /// None has one, for want of a keyring or of cloud-init on the images. Keys that servers have already stay theirs, and go
    /// with them.
    Disabled,
    /// Every server that is made has one, made in the transaction that makes it. Its public half is in the server's record, and is put
    /// onto each of its machines [with the launch](fleetwright_cloud_init::assemble()).
    OnePerServer(ServerKeys),
}

impl ServerKeys {
    /// Over a store whose schema has them.
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

    /// Adds to the transaction that makes a server that its key pair is made too, and answers the public half. Fails
    /// to commit if the server has one.
    pub fn create(
        &self,
        transaction: Transaction,
        server: Uuid,
        organization: OrganizationId,
        project: ProjectId,
    ) -> Result<(Transaction, String), KeyError> {
        let pair = SshKeyPair::generate(&format!("server-{server}"), &*self.entropy)?;
        let key = key_of(server)?;
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

    /// Adds to the transaction that deletes a server that its key pair goes too, if it has one. That takes no keyring.
    pub fn delete(transaction: Transaction, server: Uuid) -> Result<Transaction, Invalid> {
        let id = RecordId::new(ServerKey::KIND, server.hyphenated().to_string())?;
        Ok(transaction.delete(id))
    }

    /// The public half, for whoever may read the instance.
    pub async fn public_key(
        &self,
        principal: &Principal,
        server: Uuid,
    ) -> Result<String, KeyError> {
        let found = self.find(principal, Verb::Read, server).await?;
        Ok(found.value.public_key)
    }

    /// The private half, for whoever may be shown the SSH key of instances in the server's project. That permission is
    /// one of its own: reading an instance does not give it.
    pub async fn private_key(
        &self,
        principal: &Principal,
        server: Uuid,
    ) -> Result<Secret, KeyError> {
        let found = self.find(principal, Verb::SshKey, server).await?;
        Ok(self.open(&found)?)
    }

    /// Seals everything anew that is sealed with another key than the current one. What somebody else changes meanwhile
    /// is left to the next time; once nothing is resealed and nothing is wrong, old keys are no longer needed.
    pub async fn reseal(&self) -> Result<ResealReport, KeyError> {
        let mut done = ResealReport::default();
        let page = self.table.list_all(&self.table.all()).await?;
        done.damaged = page.damaged;
        for found in page.items {
            if found.value.private_key.key() == self.keyring.current() {
                continue;
            }
            match self.open(&found) {
                Ok(secret) => done.count += self.reseal_one(&found, &secret).await?,
                Err(error) => done.failed.push(error),
            }
        }
        Ok(done)
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
        let found = self.table.get(&key_of(server)?).await?;
        let found = found.ok_or(KeyError::NotFound(server))?;
        let scope = Scope::Project(found.value.organization, found.value.project);
        // A tenant's server is its instance: that is what tenants are given permissions on.
        match principal.access(verb, Resource::Instances, &scope) {
            Access::Allowed => Ok(found),
            Access::Refused(refused) => Err(refused.into()),
            Access::NotVisible => Err(KeyError::NotFound(server)),
        }
    }
}

fn key_of(server: Uuid) -> Result<Key, Invalid> {
    Key::new(server.hyphenated().to_string())
}
