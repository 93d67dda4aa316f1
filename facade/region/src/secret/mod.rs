//! Secrets at rest: user data, and the SSH key pairs of servers.
//!
//! A secret is sealed with a key of the operator and bound to its record: copied to another record, it does not open. A
//! sealed value contains the id of its key. The operator can give several keys: the first one seals, all of them open.
//! No error, log or `Debug` output may contain a secret or a key.

mod keyring;
mod seal;
mod sealed_field;
mod sealed_store;
mod server_key;
mod ssh;
mod value;

pub use keyring::{KeyId, Keyring, KeyringError};
pub use seal::{OpenError, SealError, Sealed};
pub(crate) use sealed_field::read_config;
pub use sealed_field::{SealedField, UnopenedUserData, read_user_data};
pub use sealed_store::SealedStore;
pub use server_key::{KeyError, ResealReport, ServerKey, ServerKeys, SshKeys};
pub use ssh::{KeyPairError, SshKeyPair};
pub use value::Secret;

#[cfg(test)]
mod tests;
